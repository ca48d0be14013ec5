//! Which crate may use which, and where does the rest come from? Read from `cargo metadata`.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::code::Source;
use super::{Finding, licence};

/// Our crates, from left to right: each may use those before it.
const ORDER: [&str; 10] = [
    "gradus-promql",
    "gradus-goplugin",
    "gradus-expr",
    "gradus-jsonpath",
    "gradus-manifest",
    "gradus-api",
    "gradus-engine",
    "gradus-controller",
    "gradus-lab",
    "gradus",
];

/// The cluster in memory: it knows none of ours but a language that knows nobody, and these alone
/// know it.
const CLUSTER: &str = "gradus-simkube";
const LANGUAGE: &str = "gradus-promql";
const KNOW_THE_CLUSTER: [&str; 3] = ["gradus-lab", "gradus", "xtask"];

/// The registry everybody can reach.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// The part of `cargo metadata` that is read.
#[derive(Clone, Debug, Deserialize)]
pub struct Metadata {
    packages: Vec<Package>,
    workspace_members: Vec<String>,
    resolve: Resolve,
}

#[derive(Clone, Debug, Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
    manifest_path: PathBuf,
    dependencies: Vec<Dependency>,
    targets: Vec<Target>,
}

#[derive(Clone, Debug, Deserialize)]
struct Dependency {
    name: String,
    rename: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
struct Target {
    src_path: PathBuf,
}

#[derive(Clone, Debug, Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Clone, Debug, Deserialize)]
struct Node {
    id: String,
    features: Vec<String>,
}

impl Metadata {
    /// The root file of every target of the workspace.
    pub fn targets(&self) -> impl Iterator<Item = &Path> {
        self.members().flat_map(|package| &package.targets).map(|target| target.src_path.as_path())
    }

    fn is_member(&self, package: &Package) -> bool {
        self.workspace_members.contains(&package.id)
    }

    fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| self.is_member(package))
    }

    fn foreign(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| !self.is_member(package))
    }
}

/// Crates use only what stands to their left.
pub fn arrows(root: &Path, metadata: &Metadata) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in metadata.members() {
        let manifest = package.manifest_path.strip_prefix(root).unwrap_or(&package.manifest_path);
        let text = std::fs::read_to_string(&package.manifest_path).unwrap_or_default();
        for Dependency { name, .. } in &package.dependencies {
            if let Some(expected) = wrong_arrow(&package.name, name) {
                let line = line_with(&text, name);
                let text = format!("{} uses {name}, expected {expected}", package.name);
                findings.push(Finding::new(&manifest.display().to_string(), line, text));
            }
        }
    }
    findings
}

/// Nothing that no source of the package names: it would be built for nobody.
pub fn unused(root: &Path, metadata: &Metadata, sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in metadata.members() {
        let manifest = package.manifest_path.strip_prefix(root).unwrap_or(&package.manifest_path);
        let folder = manifest.parent().unwrap_or(manifest);
        let own: Vec<&Source> =
            sources.iter().filter(|source| Path::new(&source.path).starts_with(folder)).collect();
        for Dependency { name, rename } in &package.dependencies {
            let word = rename.as_ref().unwrap_or(name).replace('-', "_");
            if !own.iter().any(|source| names(&source.code, &word)) {
                let text = format!("{} does not use {name}, expected it to", package.name);
                findings.push(Finding::new(&manifest.display().to_string(), 1, text));
            }
        }
    }
    findings
}

/// Does this word stand in the code?
fn names(code: &str, word: &str) -> bool {
    code.split(|sign: char| !sign.is_alphanumeric() && sign != '_').any(|part| part == word)
}

/// Nothing whose licence we may not use.
pub fn licences(lock: &str, metadata: &Metadata) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in metadata.foreign() {
        let licence = package.license.as_deref().unwrap_or("no licence");
        if !licence::is_allowed(licence) {
            let what = format!("has {licence}, expected a licence tidy allows");
            findings.push(about(package, lock, &what));
        }
    }
    findings
}

/// Nothing from a place of our own: a clone must build anywhere.
pub fn sources(lock: &str, metadata: &Metadata) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in metadata.foreign().filter(|one| one.source.as_deref() != Some(REGISTRY)) {
        let source = package.source.as_deref().unwrap_or("a path");
        let what = format!("is from {source}, expected the public registry");
        findings.push(about(package, lock, &what));
    }
    findings
}

/// A feature is on for the whole program when any dependency asks for it; this one would make JSON
/// keep the order of writing, where equal objects must be equal text.
pub fn features(lock: &str, metadata: &Metadata) -> Vec<Finding> {
    let ordered = |package: &&Package| {
        let node = metadata.resolve.nodes.iter().find(|node| node.id == package.id);
        let feature = "preserve_order".to_owned();
        package.name == "serde_json" && node.is_some_and(|node| node.features.contains(&feature))
    };
    let found = metadata.packages.iter().filter(ordered);
    found.map(|one| about(one, lock, "has preserve_order on, expected it off")).collect()
}

/// What was expected, if this arrow is wrong.
fn wrong_arrow(from: &str, to: &str) -> Option<&'static str> {
    if to == CLUSTER {
        let known = KNOW_THE_CLUSTER.contains(&from);
        return (!known).then_some("only gradus-lab, gradus and xtask to use it");
    }
    let right = ORDER.iter().position(|name| *name == to)?;
    if from == CLUSTER {
        return (to != LANGUAGE).then_some("it to use none of ours but promql");
    }
    let left = ORDER.iter().position(|name| *name == from)?;
    (left <= right)
        .then_some("promql · expr · jsonpath · manifest · api · engine · controller · lab · cli, each using those before it")
}

fn about(package: &Package, lock: &str, what: &str) -> Finding {
    let Package { name, version, .. } = package;
    let line = line_with(lock, &format!("name = \"{name}\"\nversion = \"{version}\""));
    Finding::new("Cargo.lock", line, format!("{name} {version} {what}"))
}

fn line_with(text: &str, words: &str) -> usize {
    text.find(words).map_or(1, |at| text[..at].matches('\n').count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn arrows_point_to_the_left() {
        let cases = [
            ("to the left", "gradus-controller", "gradus-engine", true),
            ("to the right", "gradus-engine", "gradus-controller", false),
            ("to itself", "gradus-api", "gradus-api", false),
            ("the cluster knows nobody", "gradus-simkube", "gradus-api", false),
            ("but a language", "gradus-simkube", "gradus-promql", true),
            ("the lab knows the cluster", "gradus-lab", "gradus-simkube", true),
            ("the controller does not", "gradus-controller", "gradus-simkube", false),
            ("an example does not either", "database-operator", "gradus-simkube", false),
            ("an example stands on the controller", "database-operator", "gradus-controller", true),
            ("others' crates", "gradus-api", "serde", true),
        ];
        for (what, from, to, allowed) in cases {
            assert_eq!(wrong_arrow(from, to).is_none(), allowed, "{what}");
        }
    }

    #[test]
    fn a_dependency_is_named_by_a_source_of_its_package() {
        let dependencies = json!([{ "name": "serde-json" }, { "name": "a", "rename": "b" }]);
        let document = json!({
            "packages": [{
                "id": "1", "name": "x", "version": "1.0.0", "dependencies": dependencies,
                "manifest_path": "/r/crates/x/Cargo.toml", "targets": [],
            }],
            "workspace_members": ["1"],
            "resolve": { "nodes": [] },
        });
        let metadata: Metadata = serde_json::from_value(document).unwrap();
        let cases = [
            ("both", "crates/x/src/lib.rs", "use b::C; serde_json::to_value(c)", 0),
            ("one of them", "crates/x/src/lib.rs", "use b::C;", 1),
            ("in a comment", "crates/x/src/lib.rs", "use b::C; // serde_json", 1),
            ("another name", "crates/x/src/lib.rs", "use b::C; serde_jsonpath::f()", 1),
            ("elsewhere", "crates/y/src/lib.rs", "use b::C; serde_json::f()", 2),
        ];
        for (what, path, text, count) in cases {
            let sources = [Source::new(path, text.to_owned())];
            let findings = unused(Path::new("/r"), &metadata, &sources);
            assert_eq!(findings.len(), count, "{what}: {findings:?}");
        }
    }

    /// One foreign package, with these words for licence, source and feature.
    fn metadata(license: &str, source: &str, feature: &str) -> Metadata {
        let document = json!({
            "packages": [{
                "id": "1", "name": "serde_json", "version": "1.0.0", "license": license,
                "source": source, "manifest_path": "x", "dependencies": [], "targets": [],
            }],
            "workspace_members": [],
            "resolve": { "nodes": [{ "id": "1", "features": [feature] }] },
        });
        serde_json::from_value(document).unwrap()
    }

    #[test]
    fn foreign_packages_are_held_to_licence_source_and_features() {
        let lock = "\n[[package]]\nname = \"serde_json\"\nversion = \"1.0.0\"\n";
        let good = metadata("MIT", REGISTRY, "std");
        for rule in [licences, sources, features] {
            assert_eq!(rule(lock, &good), []);
        }
        let bad = metadata("GPL-3.0", "git+https://x.org", "preserve_order");
        for rule in [licences, sources, features] {
            let findings = rule(lock, &bad);
            assert_eq!((findings.len(), findings[0].line), (1, 3));
        }
    }
}
