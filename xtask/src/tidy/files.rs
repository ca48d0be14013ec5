//! What must every file keep to?

use super::{Finding, code::Source};

/// A file one can read in one sitting.
const LONGEST_FILE: usize = 600;

/// The one file that spells API strings out.
const API_STRINGS: &str = "crates/api/src/names.rs";

/// Neither longer than the limit nor cut into parts to get around it.
pub fn length(source: &Source) -> Vec<Finding> {
    let lines = source.text.lines().count();
    if lines <= LONGEST_FILE {
        return Vec::new();
    }
    let text = format!("{lines} lines, expected at most {LONGEST_FILE}");
    vec![Finding::new(&source.path, LONGEST_FILE + 1, text)]
}

/// Every file says what it is for.
pub fn first_line(source: &Source) -> Vec<Finding> {
    if source.text.starts_with("//!") {
        return Vec::new();
    }
    vec![Finding::new(&source.path, 1, "no sentence about the file, expected `//!` first")]
}

/// What is committed is finished, and every test runs.
pub fn unfinished(source: &Source) -> Vec<Finding> {
    let marks = ["todo!", "unimplemented!", "#[ignore"];
    let mut findings = Vec::new();
    for (number, line) in source.code.lines().enumerate() {
        for mark in marks.iter().filter(|mark| line.contains(*mark)) {
            let text = format!("`{mark}`, expected finished code and tests that run");
            findings.push(Finding::new(&source.path, number + 1, text));
        }
    }
    findings
}

/// An API string that is spelled out twice is misspelled once.
pub fn api_strings(source: &Source) -> Vec<Finding> {
    let group = concat!("argoproj", ".io/");
    let is_test = source.path.contains("/tests/") || source.path.ends_with("/tests.rs");
    if source.path == API_STRINGS || is_test {
        return Vec::new();
    }
    let tests_begin = tests_begin(source);
    let spelled = source.strings.iter().filter(|(line, text)| {
        text.contains(group) && tests_begin.is_none_or(|begin| *line < begin)
    });
    spelled
        .map(|(line, text)| {
            let text = format!("{text:?} spelled out, expected a name of {API_STRINGS}");
            Finding::new(&source.path, *line, text)
        })
        .collect()
}

/// Names of this machine's folders, as whole path segments.
pub fn machine_paths(path: &str, text: &str, names: &[String]) -> Vec<Finding> {
    let is_named = |line: &str, name: &str| {
        line.match_indices(name).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            let after = line[at + name.len()..].chars().next();
            let goes_on = |one: Option<char>| {
                one.is_some_and(|one| one.is_alphanumeric() || "._-".contains(one))
            };
            !goes_on(before) && before != Some('/') && after == Some('/')
        })
    };
    let mut findings = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for name in names.iter().filter(|name| is_named(line, name)) {
            let text = format!("`{name}/` is of this machine, expected no such path");
            findings.push(Finding::new(path, number + 1, text));
        }
    }
    findings
}

/// Tests stand last in a file, and may spell out what the code must produce.
fn tests_begin(source: &Source) -> Option<usize> {
    let lines: Vec<&str> = source.code.lines().map(str::trim).collect();
    let begins = |pair: &[&str]| match pair[0] {
        "#[test]" => true,
        // `mod tests;` may stand anywhere: its tests are in another file.
        "#[cfg(test)]" => pair[1].ends_with('{'),
        _ => false,
    };
    lines.windows(2).position(begins).map(|index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source::new(path, text.to_owned())
    }

    #[test]
    fn a_file_has_at_most_600_lines() {
        for (lines, found) in [(600, 0), (601, 1)] {
            let text = "//! x\n".repeat(lines);
            assert_eq!(length(&source("a.rs", &text)).len(), found, "{lines} lines");
        }
    }

    #[test]
    fn a_file_begins_with_what_it_is_for() {
        assert_eq!(first_line(&source("a.rs", "//! Parses flags.\n")), []);
        assert_eq!(first_line(&source("a.rs", "\n//! Parses flags.\n")).len(), 1);
        assert_eq!(first_line(&source("a.rs", "")).len(), 1);
    }

    #[test]
    fn unfinished_code_is_found_and_talk_of_it_is_not() {
        let cases = [
            ("code", "fn f() { todo!() }", 1),
            ("a test that does not run", "#[ignore]\nfn f() {}", 1),
            ("with a reason", "#[ignore = \"slow\"]\nfn f() {}", 1),
            ("a comment", "// todo! is not allowed", 0),
            ("a string", "const MARK: &str = \"todo!\";", 0),
        ];
        for (what, text, expected) in cases {
            assert_eq!(unfinished(&source("a.rs", text)).len(), expected, "{what}");
        }
    }

    #[test]
    fn api_strings_have_one_home() {
        let text = "const A: &str = \"argoproj.io/v1alpha1\";\n";
        let cases = [
            ("elsewhere", "crates/engine/src/a.rs", text.to_owned(), 1),
            ("at home", API_STRINGS, text.to_owned(), 0),
            ("in a file of tests", "crates/engine/tests/a.rs", text.to_owned(), 0),
            ("in the tests of a file", "crates/a.rs", format!("#[test]\nfn f() {{\n{text}}}"), 0),
            ("below `mod tests;`", "crates/a.rs", format!("#[cfg(test)]\nmod tests;\n{text}"), 1),
            ("in a comment", "crates/a.rs", "// \"argoproj.io/v1\"".to_owned(), 0),
        ];
        for (what, path, text, expected) in cases {
            assert_eq!(api_strings(&source(path, &text)).len(), expected, "{what}");
        }
    }

    #[test]
    fn paths_of_this_machine_are_found() {
        let names = ["/home/ann".to_owned()];
        let cases = [
            ("a path", "see /home/ann/notes", 1),
            ("in quotes", "\"/home/ann/notes\"", 1),
            ("somebody else's", "/home/anna/notes", 0),
            ("a part of another path", "https://x.org/home/ann/notes", 0),
        ];
        for (what, text, expected) in cases {
            assert_eq!(machine_paths("a", text, &names).len(), expected, "{what}");
        }
    }
}
