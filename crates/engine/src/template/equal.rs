//! Do two pod templates ask for the same pods? A ReplicaSet's template is compared with a
//! Rollout's by one digest each, made of what the user wrote and the API server's defaults alone.

use gradus_api::names::label::POD_TEMPLATE_HASH;
use serde_json::{Map, Value};

use super::defaults;
use super::digest::Fnv128;
use super::encode::{Dialect, is_zero, write};
use super::order::{Kind, PodTemplateSpec};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

type Object = Map<String, Value>;

/// Where a template comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// A ReplicaSet: the controller's additions are taken out.
    Live,
    /// A Rollout or the workload it names: everything in it is the user's.
    Desired,
}

/// Equal for two templates that ask for the same pods.
///
/// Not part of it: the hash label, the order of keys, missing against empty lists and maps, how a
/// quantity is written, what the API server fills in, the deprecated `serviceAccount`, fields that
/// Kubernetes does not know. Of a live template also not: the metadata recorded in `ephemeral`
/// (the annotation's JSON; unreadable is none) and an injected anti-affinity term.
pub fn normalized_digest(template: &Value, ephemeral: Option<&str>, side: Side) -> u128 {
    let mut normal = template.as_object().cloned().unwrap_or_default();
    if let Some(Value::Object(metadata)) = normal.get_mut("metadata") {
        if let Some(Value::Object(labels)) = metadata.get_mut("labels") {
            labels.remove(POD_TEMPLATE_HASH);
        }
        if let (Side::Live, Some(recorded)) = (side, ephemeral) {
            remove_recorded(metadata, recorded);
        }
    }
    if let Some(Value::Object(spec)) = normal.get_mut("spec") {
        blank_service_account(spec);
        if side == Side::Live {
            remove_injected_term(spec);
        }
        remove_empty_affinity(spec);
    }
    defaults::apply(&mut normal);
    let mut digest = Fnv128::default();
    let normal = Value::Object(normal);
    write(&mut digest, Dialect::ByValue, &Kind::Struct(PodTemplateSpec), Some(&normal));
    digest.0
}

/// The stable hash that an injected anti-affinity term of this template keeps away from.
pub fn injected_stable_hash(template: &Value) -> Option<String> {
    let affinity = template.get("spec")?.get("affinity")?.get("podAntiAffinity")?;
    let mut terms = [REQUIRED, PREFERRED].into_iter().filter_map(|kind| affinity.get(kind));
    let expression = terms.find_map(|list| list.as_array()?.iter().find_map(hash_expression))?;
    expression.get("values")?.get(0)?.as_str().map(str::to_owned)
}

/// An injected term is known by its expression over the hash label.
fn hash_expression(term: &Value) -> Option<&Value> {
    let term = term.get("podAffinityTerm").unwrap_or(term);
    let expressions = term.get("labelSelector")?.get("matchExpressions")?.as_array()?;
    expressions.iter().find(|expression| expression["key"] == POD_TEMPLATE_HASH)
}

/// At most one term is ever injected: the first one found goes.
fn remove_injected_term(spec: &mut Object) {
    let anti_affinity =
        spec.get_mut("affinity").and_then(|affinity| affinity.get_mut("podAntiAffinity"));
    let Some(Value::Object(anti_affinity)) = anti_affinity else { return };
    for kind in [REQUIRED, PREFERRED] {
        let Some(Value::Array(terms)) = anti_affinity.get_mut(kind) else { continue };
        if let Some(index) = terms.iter().position(|term| hash_expression(term).is_some()) {
            terms.remove(index);
            return;
        }
    }
}

/// An anti-affinity without terms asks for nothing, and neither does an affinity without parts.
fn remove_empty_affinity(spec: &mut Object) {
    let Some(Value::Object(affinity)) = spec.get_mut("affinity") else { return };
    let is_empty = |part: &Value| part.as_object().is_some_and(|part| part.values().all(is_zero));
    if affinity.get("podAntiAffinity").is_some_and(is_empty) {
        affinity.remove("podAntiAffinity");
    }
    if affinity.values().all(Value::is_null) {
        spec.remove("affinity");
    }
}

/// Removes the labels and annotations that are recorded as ours, whatever their value.
fn remove_recorded(metadata: &mut Object, recorded: &str) {
    let Ok(recorded) = serde_json::from_str::<Value>(recorded) else { return };
    for kind in ["labels", "annotations"] {
        let Some(Value::Object(ours)) = recorded.get(kind) else { continue };
        if let Some(Value::Object(all)) = metadata.get_mut(kind) {
            all.retain(|key, _| !ours.contains_key(key));
        }
    }
}

/// The API server copies the deprecated field and the current one into each other.
fn blank_service_account(spec: &mut Object) {
    let deprecated = spec.remove("serviceAccount");
    if let Some(name) = deprecated
        && spec.get("serviceAccountName").is_none_or(is_zero)
    {
        spec.insert("serviceAccountName".into(), name);
    }
}

#[cfg(test)]
mod tests;
