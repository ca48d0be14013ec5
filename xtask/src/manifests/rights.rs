//! The rights of each feature, as the files of `manifests/rbac/` grant them.

use std::{collections::BTreeSet, fs, io, path::Path, sync::Arc};

use gradus_manifest::Source;
use serde::Deserialize;

/// The rights of one feature.
#[derive(Clone, Debug)]
pub struct Fragment {
    /// The name of its file, without the ending.
    pub name: String,
    /// The first line of its comment.
    pub about: String,
    /// Its rules, with their comments.
    pub rules: String,
    /// Where it is granted.
    pub place: Place,
    /// It is granted unless somebody says otherwise.
    pub is_on: bool,
}

/// Where rights are granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Wherever the controller manages Rollouts.
    Managed,
    /// The same, but not where it manages some namespaces alone: what is granted has no namespace.
    Cluster,
    /// In the controller's own namespace alone.
    Home,
}

/// One rule of a role.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rule {
    pub api_groups: Vec<String>,
    pub resources: Vec<String>,
    /// Only objects of these names; all where there are none.
    #[serde(default)]
    #[cfg_attr(not(test), expect(dead_code, reason = "what tests look at"))]
    pub resource_names: Vec<String>,
    pub verbs: BTreeSet<String>,
}

/// The rights of every feature: first the core's, then by name.
pub fn fragments(folder: &Path) -> io::Result<Vec<Fragment>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        found.push(fragment(name, &fs::read_to_string(&path)?));
    }
    found.sort_by_key(|one| (one.name != "core", one.name.clone()));
    Ok(found)
}

/// A comment about the feature, an empty line, and the rules.
fn fragment(name: String, text: &str) -> Fragment {
    let (comment, rules) = text.split_once("\n\n").unwrap_or(("", text));
    let says = |line: &str| comment.lines().any(|one| one == line);
    let place = match (says("# scope: cluster"), says("# scope: home")) {
        (true, _) => Place::Cluster,
        (_, true) => Place::Home,
        _ => Place::Managed,
    };
    Fragment {
        about: comment.lines().next().unwrap_or_default().trim_start_matches("# ").to_owned(),
        place,
        is_on: !says("# default: off"),
        rules: rules.to_owned(),
        name,
    }
}

impl Fragment {
    /// Its rules, as the API server reads them.
    pub fn parsed(&self) -> Result<Vec<Rule>, String> {
        let file = format!("manifests/rbac/{}.yaml", self.name);
        let source = Arc::new(Source { name: file.clone(), text: self.rules.clone() });
        let documents = gradus_manifest::read(&source).map_err(|error| format!("{error:?}"))?;
        let rules = documents.first().ok_or_else(|| format!("{file}: expected a list of rules"))?;
        serde_json::from_value(rules.json()).map_err(|error| format!("{file}: {error}"))
    }
}
