//! The rights that `manifests/rbac.yaml` grants on routing objects are those that routers need.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::traffic::ROUTERS;
use crate::traffic::tests::notes;

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
