//! Objects that a router makes beside those of users: whose they are, and what they are made of.

use std::sync::Arc;

use gradus_api::names::{self, annotation};
use serde_json::{Value, json};

use super::{RouteView, Undo};
use crate::decision::ObjectRef;
use crate::frame::Meta;
use crate::world::RolloutView;

/// The annotation in which kubectl keeps what a user applied; it is no part of a copy.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// A manifest of an object that belongs to a Rollout and goes with it.
pub(super) fn manifest(rollout: &RolloutView, target: &ObjectRef, spec: Value) -> Value {
    json!({
        "apiVersion": target.kind.api_version(),
        "kind": &*target.kind.name,
        "metadata": {
            "name": &*target.name,
            "namespace": &*target.namespace,
            "ownerReferences": [rollout.owner_reference()],
        },
        "spec": spec,
    })
}

/// Does an object belong to this Rollout?
pub(super) fn is_owned(object: &RouteView, rollout: &RolloutView) -> bool {
    object.owner() == Some(rollout.uid)
}

/// The Rollout that an object belongs to.
pub(super) fn managers(meta: &Meta) -> Vec<Arc<str>> {
    let owner = meta.controller().filter(|owner| {
        *owner.kind == *names::kind::ROLLOUT && *owner.api_version == *names::API_VERSION
    });
    owner.map(|owner| Arc::clone(&owner.name)).into_iter().collect()
}

/// An object that was made for a Rollout goes when that lets go of it.
pub(super) fn released(_object: &RouteView, _rollouts: &[Arc<str>]) -> Undo {
    Undo::Delete
}

/// The Rollout that an object of a user says it is used by.
pub(super) fn users(meta: &Meta) -> Vec<Arc<str>> {
    let name = meta.annotations.get(annotation::MANAGED_BY);
    name.map(|name| Arc::from(name.as_str())).into_iter().collect()
}

/// The labels or annotations of an object that a copy of it has too; `None` where there are none.
pub(super) fn copied(object: &RouteView, field: &str) -> Option<Value> {
    let mut all = object.0["metadata"][field].as_object()?.clone();
    all.remove(LAST_APPLIED);
    all.remove(annotation::TRAFFIC);
    (!all.is_empty()).then_some(Value::Object(all))
}

/// Does a stored value say everything that is wanted? A server adds defaults of its own.
pub(super) fn covers(stored: &Value, wanted: &Value) -> bool {
    match (stored, wanted) {
        (Value::Object(stored), Value::Object(wanted)) => wanted.iter().all(|(key, value)| {
            stored.get(key).map_or(value.is_null(), |stored| covers(stored, value))
        }),
        (Value::Array(stored), Value::Array(wanted)) => {
            stored.len() == wanted.len()
                && stored.iter().zip(wanted).all(|(stored, wanted)| covers(stored, wanted))
        }
        (stored, wanted) => stored == wanted,
    }
}
