//! CustomResourceDefinitions for the objects of routers, for scenarios: names and versions, and any
//! fields below `spec` and `status`. They are ours, not those that the routers ship.

use std::collections::BTreeSet;

use gradus_engine::decision::Kind;
use gradus_engine::traffic;
use gradus_simkube::kinds::Kinds;
use serde_json::{Value, json};

/// A definition for every routing kind that the embedded cluster does not have, with its plural.
pub fn definitions() -> Vec<(&'static str, Value)> {
    let built_in = Kinds::default();
    let is_built_in =
        |kind: &Kind| built_in.by_plural(&kind.group, &kind.version, &kind.plural).is_some();
    let kinds = traffic::accesses().map(|access| &access.kind);
    let kinds: BTreeSet<&'static Kind> = kinds.filter(|kind| !is_built_in(kind)).collect();
    kinds.into_iter().map(|kind| (&*kind.plural, definition(kind))).collect()
}

fn definition(kind: &Kind) -> Value {
    let Kind { name, group, version, plural } = kind;
    let anything = || json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let schema = json!({ "openAPIV3Schema": {
        "type": "object", "properties": { "spec": anything(), "status": anything() },
    } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{plural}.{group}"),
            // Groups of Kubernetes' own ask for it.
            "annotations": { "api-approved.kubernetes.io": "unapproved, for tests" },
        },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {
                "kind": name, "listKind": format!("{name}List"),
                "plural": plural, "singular": name.to_lowercase(),
            },
            "versions": [{
                "name": version, "served": true, "storage": true, "schema": schema,
                "subresources": { "status": {} },
            }],
        },
    })
}
