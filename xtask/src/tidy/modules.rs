//! Is every Rust file part of a crate? One that no `mod` names is compiled by nobody.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use super::{Finding, code::Source, packages::Metadata};

/// Files that cannot be reached from the root of any crate.
pub fn orphans(root: &Path, sources: &[Source], metadata: &Metadata) -> Vec<Finding> {
    let roots = metadata.targets().filter_map(|path| path.strip_prefix(root).ok());
    let roots = roots.filter_map(Path::to_str).map(str::to_owned).collect();
    unreached(sources, roots)
}

fn unreached(sources: &[Source], roots: BTreeSet<String>) -> Vec<Finding> {
    let files: BTreeMap<&str, &Source> =
        sources.iter().map(|source| (source.path.as_str(), source)).collect();
    let mut reached = BTreeSet::new();
    let mut open: Vec<(String, String)> =
        roots.into_iter().map(|path| (folder(&path).to_owned(), path)).collect();
    while let Some((below, path)) = open.pop() {
        let Some(source) = files.get(path.as_str()) else { continue };
        if !reached.insert(path) {
            continue;
        }
        for name in modules(&source.code) {
            let flat = format!("{below}/{name}.rs");
            let nested = format!("{below}/{name}/mod.rs");
            open.push((format!("{below}/{name}"), flat));
            open.push((format!("{below}/{name}"), nested));
        }
    }
    let is_orphan = |source: &&Source| !reached.contains(&source.path);
    let orphans = sources.iter().filter(is_orphan);
    orphans.map(|one| Finding::new(&one.path, 1, "no crate has it, expected a `mod`")).collect()
}

fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// The names in `mod name;`.
fn modules(code: &str) -> impl Iterator<Item = &str> {
    let after = |line: &str| line.find("mod ").map(|at| at + "mod ".len());
    code.lines().filter_map(move |line| {
        let line = line.trim();
        let before = &line[..after(line)? - "mod ".len()];
        let is_declaration = before.is_empty() || before.ends_with(' ') || before.ends_with(')');
        let name = line[after(line)?..].strip_suffix(';')?.trim();
        is_declaration.then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> =
            files.iter().map(|(path, text)| Source::new(path, (*text).to_owned())).collect();
        let roots = BTreeSet::from(["a/src/lib.rs".to_owned(), "a/tests/x.rs".to_owned()]);
        unreached(&sources, roots).into_iter().map(|finding| finding.path).collect()
    }

    #[test]
    fn files_that_a_mod_names_are_no_orphans() {
        let files = [
            ("a/src/lib.rs", "pub mod one;\n#[cfg(test)]\npub(crate) mod two;\n"),
            ("a/src/one.rs", "mod deep;\nmod inline { }\n"),
            ("a/src/one/deep.rs", ""),
            ("a/src/two/mod.rs", ""),
            ("a/tests/x.rs", "mod helping;"),
            ("a/tests/helping.rs", ""),
        ];
        assert_eq!(found(&files), Vec::<String>::new());
    }

    #[test]
    fn files_that_nobody_names_are_found() {
        let files = [
            ("a/src/lib.rs", "// mod one;\nmod two { }\n"),
            ("a/src/one.rs", ""),
            ("a/src/two.rs", ""),
            ("a/old/lib.rs", ""),
        ];
        assert_eq!(found(&files), ["a/src/one.rs", "a/src/two.rs", "a/old/lib.rs"]);
    }
}
