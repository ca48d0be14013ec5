//! Which nodes shall the new pods keep away from? An injected term that names the stable revision.

use gradus_api::names::label::POD_TEMPLATE_HASH;
use gradus_api::rollout::AntiAffinity;
use serde_json::{Value, json};

use super::objects::Objects;

const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// The affinity of the new ReplicaSet's pods: the user's, and the term while an update is under way.
/// `None` where there is neither.
pub(super) fn wanted(objects: &Objects<'_>, hash: &str, template: &Value) -> Option<Value> {
    let written = &template["spec"]["affinity"];
    let mut affinity = (!written.is_null()).then(|| written.clone());
    let stable = &objects.status.stable_rs;
    if stable.is_empty() || **stable == *hash {
        return affinity;
    }
    let Some(anti_affinity) = strategy(objects) else { return affinity };
    let term = json!({
        "labelSelector": {
            "matchExpressions": [
                { "key": POD_TEMPLATE_HASH, "operator": "In", "values": [stable] },
            ],
        },
        "namespaces": [&*objects.rollout().namespace],
        "topologyKey": "kubernetes.io/hostname",
    });
    let (list, entry) = match &anti_affinity.preferred_during_scheduling_ignored_during_execution {
        Some(preferred) => {
            (PREFERRED, json!({ "weight": preferred.weight, "podAffinityTerm": term }))
        }
        None => (REQUIRED, term),
    };
    let terms = &mut affinity.get_or_insert_with(|| json!({}))["podAntiAffinity"][list];
    match terms {
        Value::Array(terms) => terms.push(entry),
        none => *none = json!([entry]),
    }
    affinity
}

/// A merge patch that replaces an affinity whole.
pub(super) fn replacement(affinity: Option<Value>) -> Value {
    let Some(affinity) = affinity else { return Value::Null };
    let or_null = |part: &Value| if part.is_null() { Value::Null } else { part.clone() };
    let anti = &affinity["podAntiAffinity"];
    let anti = if anti.is_null() {
        Value::Null
    } else {
        json!({ PREFERRED: or_null(&anti[PREFERRED]), REQUIRED: or_null(&anti[REQUIRED]) })
    };
    json!({
        "nodeAffinity": or_null(&affinity["nodeAffinity"]),
        "podAffinity": or_null(&affinity["podAffinity"]),
        "podAntiAffinity": anti,
    })
}

fn strategy<'w>(objects: &Objects<'w>) -> Option<&'w AntiAffinity> {
    let strategy = &objects.spec().strategy;
    let canary = strategy.canary.as_ref().and_then(|canary| canary.anti_affinity.as_ref());
    canary.or_else(|| strategy.blue_green.as_ref()?.anti_affinity.as_ref())
}
