//! Do two pod templates ask for the same pods? A ReplicaSet's template is compared with a
//! Rollout's by one digest each, made of what the user wrote and the API server's defaults alone.

use gradus_api::names::label::POD_TEMPLATE_HASH;
use serde_json::{Map, Value};

use super::digest::Wide;
use super::encode::{Dialect, is_zero, write, write_pairs};
use super::order::{Affinity, FieldType, PodSpec, TemplateMeta};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

type Object = Map<String, Value>;

/// Where a template comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplateSide {
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
pub fn normalized_digest(template: &Value, ephemeral: Option<&str>, side: TemplateSide) -> u128 {
    let recorded = ephemeral.filter(|_| side == TemplateSide::Live);
    let recorded = recorded.and_then(|text| serde_json::from_str::<Value>(text).ok());
    let mut digest = Wide::default();
    let metadata = template.get("metadata");
    write(&mut digest, Dialect::Comparison, &FieldType::Struct(TemplateMeta), metadata);
    for kind in ["labels", "annotations"] {
        let ours = recorded.as_ref().and_then(|recorded| recorded.get(kind)?.as_object());
        let is_users = |key: &str| {
            let is_hash = kind == "labels" && key == POD_TEMPLATE_HASH;
            !is_hash && !ours.is_some_and(|ours| ours.contains_key(key))
        };
        write_pairs(&mut digest, metadata.and_then(|metadata| metadata.get(kind)), is_users);
    }
    let spec = template.get("spec");
    write(&mut digest, Dialect::Comparison, &FieldType::Struct(PodSpec), spec);
    let affinity = spec.and_then(|spec| spec.get("affinity")).and_then(|all| users(all, side));
    write(&mut digest, Dialect::Comparison, &FieldType::Struct(Affinity), affinity.as_ref());
    digest.finish()
}

/// A ReplicaSet's template as the user wrote it: without the hash label, the metadata recorded in
/// `ephemeral` and an injected anti-affinity term.
pub fn users_template(template: &Value, ephemeral: Option<&str>) -> Value {
    let mut template = template.clone();
    if let Some(Value::Object(metadata)) = template.get_mut("metadata") {
        if let Some(Value::Object(labels)) = metadata.get_mut("labels") {
            labels.remove(POD_TEMPLATE_HASH);
        }
        if let Some(recorded) = ephemeral {
            remove_recorded(metadata, recorded);
        }
    }
    let affinity = template.get("spec").and_then(|spec| spec.get("affinity"));
    if let Some(affinity) = affinity.and_then(|all| users(all, TemplateSide::Live)) {
        let is_empty = affinity.as_object().is_some_and(|parts| parts.values().all(is_zero));
        let spec = template.get_mut("spec").and_then(Value::as_object_mut);
        let spec = spec.expect("a template with an affinity has a spec");
        if is_empty {
            spec.remove("affinity");
        } else {
            spec.insert("affinity".to_owned(), affinity);
        }
    }
    template
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

/// The affinity that is the user's. An anti-affinity without terms asks for nothing; so does an
/// affinity without parts, which is encoded as none.
fn users(affinity: &Value, side: TemplateSide) -> Option<Value> {
    let mut affinity = affinity.as_object()?.clone();
    if let Some(Value::Object(anti_affinity)) = affinity.get_mut("podAntiAffinity") {
        if side == TemplateSide::Live {
            remove_injected_term(anti_affinity);
        }
        if anti_affinity.values().all(is_zero) {
            affinity.remove("podAntiAffinity");
        }
    }
    Some(Value::Object(affinity))
}

/// At most one term is ever injected: the first one found goes.
fn remove_injected_term(anti_affinity: &mut Object) {
    for kind in [REQUIRED, PREFERRED] {
        let Some(Value::Array(terms)) = anti_affinity.get_mut(kind) else { continue };
        if let Some(index) = terms.iter().position(|term| hash_expression(term).is_some()) {
            terms.remove(index);
            return;
        }
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

#[cfg(test)]
mod tests;
