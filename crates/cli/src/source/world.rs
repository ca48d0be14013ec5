//! What would the objects of a saved World look like? A World keeps little of them: no pods, and
//! the images of the new revision alone.

use anyhow::bail;
use gradus_api::names::{API_VERSION, annotation, kind, label};
use gradus_engine::view::NamespaceObjects;
use gradus_engine::world::{Deadline, ReplicaSetView, RolloutView, World};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::near;

/// The Rollout of a World, and its ReplicaSets.
pub(super) fn objects(world: &World, name: &str) -> anyhow::Result<(Value, NamespaceObjects)> {
    let rollout = &world.rollout;
    if !name.is_empty() && *rollout.name != *name {
        let said = near::said(&gradus_engine::kinds::ROLLOUT, name);
        bail!("{said}\n  this World is about {}/{}", rollout.namespace, rollout.name);
    }
    let sets = world.replica_sets.present().into_iter().flatten();
    let replica_sets = sets.map(|set| replica_set(rollout, set)).collect();
    Ok((self::rollout(rollout), NamespaceObjects { replica_sets, ..NamespaceObjects::default() }))
}

fn rollout(view: &RolloutView) -> Value {
    let mut spec = json!(view.spec.fields);
    spec["template"] = template(view);
    json!({
        "apiVersion": API_VERSION,
        "kind": kind::ROLLOUT,
        "metadata": {
            "namespace": view.namespace,
            "name": view.name,
            "uid": view.uid,
            "generation": view.generation,
            "creationTimestamp": view.created,
            "labels": view.labels,
            "annotations": view.annotations,
        },
        "spec": spec,
        "status": view.status,
    })
}

fn replica_set(rollout: &RolloutView, view: &ReplicaSetView) -> Value {
    let mut annotations = json!({});
    if let Some(revision) = view.revision {
        annotations[annotation::REVISION] = json!(revision.to_string());
    }
    let time = |second: i64| Timestamp::from_second(second).ok();
    if let Deadline::At(second) = view.deadline {
        annotations[annotation::SCALE_DOWN_DEADLINE] = json!(time(second));
    }
    let is_new = [&rollout.hash, &rollout.legacy_hash].contains(&&view.hash);
    let conditions: Vec<Value> = view
        .failure()
        .map(|failure| {
            json!({ "type": "ReplicaFailure", "status": "True", "reason": failure.reason,
                "message": failure.message })
        })
        .into_iter()
        .collect();
    json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "namespace": rollout.namespace,
            "name": view.name,
            "uid": view.uid,
            "generation": view.generation,
            "creationTimestamp": time(view.created),
            "labels": { (label::POD_TEMPLATE_HASH): view.hash },
            "annotations": annotations,
            "ownerReferences": [{ "uid": rollout.uid, "controller": true }],
        },
        "spec": {
            "replicas": view.size,
            "template": if is_new { template(rollout) } else { Value::Null },
        },
        "status": {
            "observedGeneration": view.observed_generation,
            "replicas": view.replicas,
            "readyReplicas": view.ready,
            "availableReplicas": view.reported_available,
            "conditions": conditions,
        },
    })
}

fn template(view: &RolloutView) -> Value {
    serde_json::from_str(&view.spec.template).unwrap_or_default()
}
