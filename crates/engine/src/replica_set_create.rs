//! The manifest of a ReplicaSet, for whoever owns it: a Rollout or an Experiment.

use gradus_api::names::label;
use serde_json::{Map, Value, json};

/// What a new ReplicaSet is made of.
#[derive(Clone, Debug)]
pub struct NewReplicaSet<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// The owner reference of its controller.
    pub owner: Value,
    /// The pod template hash: a label of the ReplicaSet and its pods, and part of its selector.
    pub hash: &'a str,
    /// Its selector, still without the hash.
    pub selector: Value,
    /// Its pod template, still without the hash. The ReplicaSet gets the labels of the pods.
    pub template: Value,
    /// Its own annotations.
    pub annotations: Map<String, Value>,
    /// How many pods it is to have at first.
    pub replicas: i32,
    /// Seconds that a pod must be ready before it counts as available; 0 is left out.
    pub min_ready_seconds: i32,
}

/// The object to be created.
pub fn manifest(new: NewReplicaSet<'_>) -> Value {
    let NewReplicaSet { mut selector, mut template, .. } = new;
    let hash = json!(new.hash);
    let labels = entry(entry(&mut template, "metadata"), "labels");
    labels[label::POD_TEMPLATE_HASH] = hash.clone();
    let labels = labels.clone();
    entry(&mut selector, "matchLabels")[label::POD_TEMPLATE_HASH] = hash;
    let mut spec =
        object([("replicas", json!(new.replicas)), ("selector", selector), ("template", template)]);
    if new.min_ready_seconds != 0 {
        spec["minReadySeconds"] = json!(new.min_ready_seconds);
    }
    let metadata = object([
        ("name", json!(new.name)),
        ("namespace", json!(new.namespace)),
        ("labels", labels),
        ("annotations", Value::Object(new.annotations)),
        ("ownerReferences", Value::Array(vec![new.owner])),
    ]);
    object([
        ("apiVersion", json!("apps/v1")),
        ("kind", json!("ReplicaSet")),
        ("metadata", metadata),
        ("spec", spec),
    ])
}

/// An object of fields that are moved, not copied, into it.
pub(crate) fn object<const COUNT: usize>(fields: [(&str, Value); COUNT]) -> Value {
    Value::Object(fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

/// The object under a key, made where it is missing or null.
fn entry<'a>(object: &'a mut Value, key: &str) -> &'a mut Value {
    if !object.is_object() {
        *object = json!({});
    }
    if !object[key].is_object() {
        object[key] = json!({});
    }
    &mut object[key]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_in_the_labels_the_pods_and_the_selector() {
        let new = NewReplicaSet {
            namespace: "shop",
            name: "web-abc",
            owner: json!({ "kind": "Experiment", "name": "web" }),
            hash: "abc",
            selector: json!({ "matchLabels": { "app": "web" } }),
            template: json!({ "metadata": { "labels": { "app": "web" } }, "spec": {} }),
            annotations: Map::new(),
            replicas: 2,
            min_ready_seconds: 0,
        };
        let both = json!({ "app": "web", "rollouts-pod-template-hash": "abc" });
        let expected = json!({
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": "web-abc", "namespace": "shop", "labels": both, "annotations": {},
                "ownerReferences": [{ "kind": "Experiment", "name": "web" }],
            },
            "spec": {
                "replicas": 2,
                "selector": { "matchLabels": both },
                "template": { "metadata": { "labels": both }, "spec": {} },
            },
        });
        assert_eq!(manifest(new.clone()), expected);
        let bare = NewReplicaSet { selector: Value::Null, template: json!({}), ..new };
        let hash = json!({ "rollouts-pod-template-hash": "abc" });
        let made = manifest(NewReplicaSet { min_ready_seconds: 5, ..bare });
        assert_eq!(made["spec"]["selector"]["matchLabels"], hash, "without labels of its own");
        assert_eq!(made["spec"]["template"]["metadata"]["labels"], hash);
        assert_eq!(made["spec"]["minReadySeconds"], 5);
    }
}
