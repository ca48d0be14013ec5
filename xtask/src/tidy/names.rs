//! Has each public name one meaning, and does anybody use it? Inside a file the compiler looks; between
//! files, and between crates, nobody else does.

use std::collections::BTreeMap;

use super::{Finding, code::Source};

/// Crates whose types meet in one file: they share their names. Every other crate has its own.
const SHARED: [&str; 3] = ["api", "engine", "controller"];

/// Names of several types that mean the same each time.
const SAME_MEANING: [&str; 2] = [
    "Arguments", // What a command takes.
    "Source",    // What an engine watches.
];

/// What declares a type.
const TYPES: [&str; 5] = ["struct", "enum", "trait", "type", "union"];

/// What declares anything that may be used elsewhere.
const ITEMS: [&str; 8] = ["struct", "enum", "trait", "type", "union", "fn", "const", "static"];

/// A public item: its name, and where it is declared.
struct Item<'s> {
    name: &'s str,
    path: &'s str,
    line: usize,
}

impl Item<'_> {
    fn finding(&self, text: String) -> Finding {
        Finding::new(self.path, self.line, text)
    }
}

/// Public types of one name.
pub fn ambiguous(sources: &[Source]) -> Vec<Finding> {
    let mut known: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| !is_test(&source.path)) {
        let Some(family) = crate_of(&source.path) else { continue };
        let family = if SHARED.contains(&family) { SHARED[0] } else { family };
        let of_file = items(source, &TYPES).filter(|(_, indented)| !indented);
        for (item, _) in of_file.filter(|(item, _)| !SAME_MEANING.contains(&item.name)) {
            if let Some(other) = known.get(&(family, item.name)) {
                let text = format!("`{}` is a type of {other}, expected a new name", item.name);
                findings.push(item.finding(text));
            } else {
                known.insert((family, item.name), item.path);
            }
        }
    }
    findings
}

/// Public items that nothing names but their declaration.
pub fn unused(sources: &[Source]) -> Vec<Finding> {
    let declared = sources.iter().filter(|source| !is_test(&source.path));
    let declared: Vec<Item<'_>> = declared
        .filter(|source| crate_of(&source.path).is_some())
        .flat_map(|source| items(source, &ITEMS))
        .map(|(item, _)| item)
        .collect();
    let mut named: BTreeMap<&str, usize> = declared.iter().map(|item| (item.name, 0)).collect();
    // serde is told of functions in strings.
    let strings = sources.iter().flat_map(|source| source.strings.iter().map(|(_, text)| &**text));
    let code = sources.iter().map(|source| source.code.as_str());
    for word in code.chain(strings).flat_map(words) {
        if let Some(count) = named.get_mut(word) {
            *count += 1;
        }
    }
    let is_unused = |item: &&Item<'_>| named.get(item.name) == Some(&1);
    let unused = declared.iter().filter(is_unused);
    unused
        .map(|item| item.finding(format!("nobody uses `{}`, expected no such", item.name)))
        .collect()
}

/// What a file declares as public, and whether that is indented.
fn items<'s>(
    source: &'s Source,
    keywords: &'static [&'static str],
) -> impl Iterator<Item = (Item<'s>, bool)> {
    source.code.lines().enumerate().filter_map(move |(at, line)| {
        let rest = after_visibility(line.trim_start())?;
        let mut words =
            words(rest).skip_while(|word| ["async", "unsafe"].contains(word)).peekable();
        let mut keyword = words.next()?;
        if keyword == "const" && words.peek() == Some(&"fn") {
            keyword = words.next()?;
        }
        let name = words.next().filter(|_| keywords.contains(&keyword))?;
        let item = Item { name, path: &source.path, line: at + 1 };
        Some((item, line.starts_with(' ')))
    })
}

/// What follows `pub`, or `pub(…)`.
fn after_visibility(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub")?;
    match rest.strip_prefix('(') {
        Some(inner) => inner.split_once(") ").map(|(_, rest)| rest),
        None => rest.strip_prefix(' '),
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|one: char| !(one.is_alphanumeric() || one == '_')).filter(|word| !word.is_empty())
}

/// The crate of a file of sources; none for other files.
fn crate_of(path: &str) -> Option<&str> {
    let (name, rest) = path.strip_prefix("crates/")?.split_once('/')?;
    rest.starts_with("src/").then_some(name)
}

fn is_test(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("/tests.rs")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(rule: fn(&[Source]) -> Vec<Finding>, files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> =
            files.iter().map(|(path, text)| Source::new(path, (*text).to_owned())).collect();
        rule(&sources).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_public_type_has_its_name_alone() {
        let (one, other) = ("pub struct Told;\n", "\npub(super) enum Told {}\n");
        let cases = [
            ("of one crate", "crates/lab/src/a.rs", "crates/lab/src/b.rs", other, 1),
            ("of crates that meet", "crates/api/src/a.rs", "crates/controller/src/b.rs", other, 1),
            ("of crates that do not", "crates/promql/src/a.rs", "crates/api/src/b.rs", other, 0),
            ("in tests", "crates/lab/src/a.rs", "crates/lab/src/tests/b.rs", other, 0),
            ("a private one", "crates/lab/src/a.rs", "crates/lab/src/b.rs", "struct Told;\n", 0),
            (
                "in a module",
                "crates/lab/src/a.rs",
                "crates/lab/src/b.rs",
                "    pub struct Told;\n",
                0,
            ),
            ("a comment", "crates/lab/src/a.rs", "crates/lab/src/b.rs", "// pub struct Told;\n", 0),
            (
                "another one",
                "crates/lab/src/a.rs",
                "crates/lab/src/b.rs",
                "pub struct Toldest;\n",
                0,
            ),
            ("a function", "crates/lab/src/a.rs", "crates/lab/src/b.rs", "pub fn Told() {}\n", 0),
        ];
        for (what, here, there, text, count) in cases {
            assert_eq!(lines(ambiguous, &[(here, one), (there, text)]).len(), count, "{what}");
        }
        let same = [("crates/cli/src/a.rs", "pub struct Arguments;"); 2];
        assert_eq!(lines(ambiguous, &same), [""; 0], "it means the same");
        let found =
            lines(ambiguous, &[("crates/api/src/a.rs", one), ("crates/api/src/b.rs", other)]);
        let expected = "crates/api/src/b.rs:2: `Told` is a type of crates/api/src/a.rs, \
                        expected a new name";
        assert_eq!(found, [expected]);
    }

    #[test]
    fn what_is_public_is_used() {
        let declared = "mod a {\n    pub const fn lonely() {}\n}\n";
        let cases = [
            ("nowhere", "", 1),
            ("in a comment", "// lonely", 1),
            ("as a part of a name", "fn lonely_one() {}", 1),
            ("elsewhere", "fn f() { a::lonely() }", 0),
            ("by serde", "#[serde(default = \"a::lonely\")]", 0),
        ];
        for (what, text, count) in cases {
            let files = [("crates/api/src/a.rs", declared), ("crates/lab/tests/b.rs", text)];
            assert_eq!(lines(unused, &files).len(), count, "{what}");
        }
    }
}
