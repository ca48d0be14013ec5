//! The rights that `manifests/rbac.yaml` grants on routing objects are those that routers need. It is
//! written by `cargo xtask manifests` from one file per feature.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::traffic::ROUTERS;
use crate::traffic::tests::notes;

const DOCUMENT: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/traffic.md"));
const MANIFEST: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../manifests/rbac.yaml"));

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    api_groups: Vec<String>,
    resources: Vec<String>,
    verbs: BTreeSet<String>,
}

#[test]
fn the_manifest_grants_each_router_its_verbs_and_no_more() {
    let role = MANIFEST.split("---\n").find(|part| part.contains("\nkind: ClusterRole\n")).unwrap();
    let role: BTreeMap<String, serde_json::Value> = serde_saphyr::from_str(role).unwrap();
    let rules: Vec<Rule> = serde_json::from_value(role["rules"].clone()).unwrap();
    let mut needed: BTreeMap<(&str, &str), BTreeSet<String>> = BTreeMap::new();
    let routers = ROUTERS.iter().filter(|entry| entry.config != notes::ENTRY.config);
    for access in routers.flat_map(|entry| entry.access) {
        let verbs = needed.entry((&access.kind.group, &access.kind.plural)).or_default();
        verbs.extend(access.verbs.iter().map(|verb| (*verb).to_owned()));
    }
    for ((group, resource), verbs) in needed {
        let is_about = |rule: &&Rule| {
            rule.api_groups.iter().any(|known| known == group)
                && rule.resources.iter().any(|known| known == resource)
        };
        let granted = rules.iter().find(is_about).map(|rule| &rule.verbs);
        assert_eq!(granted, Some(&verbs), "{resource} of {group}");
    }
}

/// The fragment of each router in the documents is a ClusterRole of its own.
#[test]
fn the_documents_grant_each_router_what_it_needs_and_no_more() {
    let routers = ROUTERS.iter().filter(|entry| entry.config != notes::ENTRY.config);
    for entry in routers {
        let name = entry.config.name().rsplit('/').next().unwrap().to_lowercase();
        let title = format!("\n  name: gradus-{name}\n");
        let mut blocks = DOCUMENT.split("```").filter(|block| block.starts_with("yaml\n"));
        let block = blocks.find(|block| block.to_lowercase().contains(&title));
        let block = block.unwrap_or_else(|| panic!("no rights of {name} in the document"));
        let role = block.trim_start_matches("yaml");
        let role: BTreeMap<String, serde_json::Value> = serde_saphyr::from_str(role).unwrap();
        let rules: Vec<Rule> = serde_json::from_value(role["rules"].clone()).unwrap();
        let mut granted = BTreeMap::new();
        for rule in rules {
            for resource in rule.resources {
                granted.insert((rule.api_groups[0].clone(), resource), rule.verbs.clone());
            }
        }
        let needed: BTreeMap<(String, String), BTreeSet<String>> = entry
            .access
            .iter()
            .map(|access| {
                let verbs = access.verbs.iter().map(|verb| (*verb).to_owned()).collect();
                ((access.kind.group.to_string(), access.kind.plural.to_string()), verbs)
            })
            .collect();
        assert_eq!(granted, needed, "{name}");
    }
}
