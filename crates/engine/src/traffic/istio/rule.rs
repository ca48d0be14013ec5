//! The subsets of a DestinationRule: one per revision, each with the revision's hash.

use std::collections::BTreeMap;

use gradus_api::names::{annotation, label};
use gradus_api::traffic::IstioDestinationRule;
use serde_json::{Map, Value, json};

use super::{Goal, RouteView};

/// The hash of a subset.
pub fn hash<'v>(rule: &'v RouteView, subset: &str) -> Option<&'v str> {
    let found = subsets(rule).iter().find(|known| known["name"] == subset)?;
    found["labels"][label::POD_TEMPLATE_HASH].as_str()
}

/// The patch that gives the subsets their hashes and notes whose they are; `None` where all is so.
pub fn planned(
    rule: &RouteView,
    config: &IstioDestinationRule,
    goal: &Goal<'_>,
    rollout: &str,
) -> Option<Value> {
    let mut wanted: BTreeMap<&str, &str> = BTreeMap::new();
    wanted.extend(goal.additional.iter().map(|one| (&*one.service, &*one.hash)));
    let additional: Vec<&str> = wanted.keys().copied().collect();
    wanted.insert(&config.stable_subset_name, goal.stable_subset_hash);
    wanted.insert(&config.canary_subset_name, goal.subset_hash);
    let named = |known: &Value| {
        let hash = wanted.get(known["name"].as_str()?)?;
        let mut subset = known.clone();
        match (*hash, subset.pointer_mut("/labels").and_then(Value::as_object_mut)) {
            ("", Some(labels)) => drop(labels.remove(label::POD_TEMPLATE_HASH)),
            ("", None) => {}
            (hash, _) => subset["labels"][label::POD_TEMPLATE_HASH] = json!(hash),
        }
        Some(subset)
    };
    let mut after: Vec<Value> = subsets(rule).iter().filter_map(named).collect();
    for service in additional {
        if !after.iter().any(|known| known["name"] == service) {
            let labels = json!({ label::POD_TEMPLATE_HASH: wanted[service] });
            after.push(json!({ "name": service, "labels": labels }));
        }
    }
    let mut patch = Map::new();
    if after != subsets(rule) {
        patch.insert("spec".to_owned(), json!({ "subsets": after }));
    }
    if rule.annotation(annotation::MANAGED_BY) != Some(rollout) {
        let notes = json!({ annotation::MANAGED_BY: rollout });
        patch.insert("metadata".to_owned(), json!({ "annotations": notes }));
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// The patch that takes off what we have written: every subset selects pods of all revisions again.
pub fn released(rule: &RouteView) -> Value {
    let mut after = subsets(rule).to_vec();
    for labels in after.iter_mut().filter_map(|subset| subset.pointer_mut("/labels")) {
        if let Some(labels) = labels.as_object_mut() {
            labels.remove(label::POD_TEMPLATE_HASH);
        }
    }
    let mut patch = json!({ "metadata": { "annotations": { annotation::MANAGED_BY: null } } });
    if after != subsets(rule) {
        patch["spec"] = json!({ "subsets": after });
    }
    patch
}

fn subsets(rule: &RouteView) -> &[Value] {
    rule.spec()["subsets"].as_array().map_or(&[], Vec::as_slice)
}
