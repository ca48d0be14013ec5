//! What does the server add to an object and demand of it before it is stored?

mod builtin;
mod containers;
mod custom;
mod defaults;
mod definition;
mod denial;
mod ingress;
mod metadata;
mod pod;
mod quantity;
mod quota;
mod service;
mod template;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::{Value, json};

use crate::error::{ApiError, Cause};
use crate::kinds::{KindId, KindInfo};
use crate::object::Object;
use crate::pod_status::quality_of_service;
use crate::request::{FieldValidation, Options};

pub(crate) use custom::Sound;
pub(crate) use definition::CLEAN_UP;
pub use denial::Denial;
pub(crate) use metadata::{dns_1035, dns_label, label_value, qualified_name, subdomain};
pub(crate) use template::pod_spec;

/// Fills in what a new object leaves out and drops what its kind does not know.
pub(crate) fn complete(object: &mut Object, kind: &KindInfo) {
    match &kind.schema {
        Some(schema) => {
            custom::complete(object, None, schema, kind.has_status);
        }
        None => defaults::complete(object, None),
    }
}

/// The same for the parts a write has changed. Tells what it found, for [`check_changed`].
pub(crate) fn complete_changed(wanted: &mut Object, before: &Object, kind: &KindInfo) -> Sound {
    match &kind.schema {
        Some(schema) => custom::complete(wanted, Some(before), schema, false),
        None => {
            defaults::complete(wanted, Some(before));
            Sound::default()
        }
    }
}

/// What is wrong with a new object. What a pod shares with one like it, which was found right, is
/// not asked again.
pub(crate) fn check_new(object: &Object, like: Option<&Object>, kind: &KindInfo) -> Vec<Cause> {
    let mut causes = metadata::check(object, like, kind);
    if like.is_some_and(|like| Arc::ptr_eq(&like.spec, &object.spec)) {
        return causes;
    }
    match &kind.schema {
        Some(schema) => {
            causes.extend(custom::check(object, None, schema, kind, Sound::default()));
        }
        None => causes.extend(builtin::check(object, None)),
    }
    causes
}

/// What is wrong with the new state of an object.
pub(crate) fn check_changed(
    wanted: &Object,
    before: &Object,
    kind: &KindInfo,
    sound: Sound,
) -> Vec<Cause> {
    let mut causes = Vec::new();
    if !Arc::ptr_eq(&wanted.meta, &before.meta) {
        causes.extend(metadata::check(wanted, Some(before), kind));
    }
    match &kind.schema {
        Some(schema) => causes.extend(custom::check(wanted, Some(before), schema, kind, sound)),
        None => causes.extend(builtin::check(wanted, Some(before))),
    }
    causes
}

/// Names the fields that the kind does not know or that are there twice, as warnings or as a
/// refusal.
pub(crate) fn unknown_fields(
    kind: &KindInfo,
    object: &Object,
    options: &Options,
) -> Result<Vec<String>, ApiError> {
    let validation = options.field_validation;
    let Some(schema) = kind.schema.as_ref().filter(|_| validation != FieldValidation::Ignore)
    else {
        return Ok(Vec::new());
    };
    let mut unknown = custom::unknown_fields(object, schema);
    unknown.sort();
    let named = options.named(&unknown);
    if named.is_empty() || validation == FieldValidation::Warn {
        return Ok(named);
    }
    Err(ApiError::bad_request(format!(
        "{} in version {:?} cannot be handled as a {}: strict decoding error: {}",
        kind.kind,
        kind.version,
        kind.kind,
        named.join(", ")
    )))
}

/// Refuses a built-in object whose parts are not even objects; the rest may rely on it.
pub(crate) fn check_shape(kind: &KindInfo, object: &Object) -> Result<(), ApiError> {
    if kind.custom {
        return Ok(());
    }
    for (field, part) in [("spec", &object.spec), ("status", &object.status)] {
        if !part.is_null() && !part.is_object() {
            return Err(ApiError::bad_request(format!(
                "{} in version {:?} cannot be handled as a {}: {field}: expected an object, found \
                 {part}",
                kind.kind, kind.version, kind.kind
            )));
        }
    }
    if object.kind == KindId::SECRET {
        defaults::check_data(object)?;
    }
    Ok(())
}

/// The status of an object nobody has looked at yet.
pub(crate) fn first_status(object: &Object) -> Arc<Value> {
    match object.kind {
        KindId::NAMESPACE => Arc::new(json!({ "phase": "Active" })),
        KindId::POD => first_pod_status(&object.spec),
        KindId::REPLICA_SET => Arc::new(json!({ "replicas": 0 })),
        KindId::STATEFUL_SET => Arc::new(json!({ "replicas": 0, "availableReplicas": 0 })),
        KindId::SERVICE | KindId::INGRESS => Arc::new(json!({ "loadBalancer": {} })),
        KindId::POD_DISRUPTION_BUDGET => Arc::new(json!({
            "currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0,
        })),
        KindId::DEPLOYMENT | KindId::JOB | KindId::RESOURCE_QUOTA => Arc::new(json!({})),
        // There is room for every claim at once.
        KindId::PERSISTENT_VOLUME_CLAIM => Arc::new(json!({ "phase": "Bound" })),
        // A node reports itself.
        KindId::NODE => object.status.clone(),
        _ => Arc::default(),
    }
}

/// The status of a pod nobody has looked at yet.
pub(crate) fn first_pod_status(spec: &Value) -> Arc<Value> {
    Arc::new(json!({ "phase": "Pending", "qosClass": quality_of_service(spec) }))
}
