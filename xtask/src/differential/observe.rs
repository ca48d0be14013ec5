//! What is compared of one side at a checkpoint: the objects of a case without what must differ
//! between two sides or two runs. Times become the word `time`, pod template hashes the image they
//! stand for; the hashes themselves are compared apart.

use std::collections::BTreeMap;

use gradus_api::names::{self, annotation, label};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::mirror::Held;

/// What one side of a checkpoint is, as JSON:
/// `{ rollout, replicaSets, pods, services, ingresses, deployments, runs, experiments, splits, events,
/// hashes }`.
pub fn observe(held: &Held, case: &str, namespace: &str) -> Value {
    let hashes = hashes(held);
    let of_kind = |kind: &str| -> Vec<(&str, &Value)> {
        let all = held.objects.iter().filter(|((one, _), _)| one == kind);
        all.map(|((_, name), object)| (name.as_str(), object)).collect()
    };
    let by_name = |kind: &str, seen: fn(&Value) -> Value| -> Value {
        let all = of_kind(kind).into_iter().filter(|(_, object)| !is_leaving(object));
        all.map(|(name, object)| (name.to_owned(), seen(object))).collect()
    };
    let is_ours = |object: &Value| has_hash(object);
    let sets: Map<String, Value> = of_kind("ReplicaSet")
        .into_iter()
        .filter(|(_, set)| is_ours(set))
        .map(|(name, set)| (name.to_owned(), replica_set(set)))
        .collect();
    let seen = json!({
        "rollout": of_kind("Rollout").first().map(|(_, object)| rollout(object)),
        "replicaSets": sets,
        "pods": pods(&of_kind("Pod")),
        "services": by_name("Service", service),
        "ingresses": by_name("Ingress", ingress),
        "deployments": by_name("Deployment", |one| json!({ "replicas": one["spec"]["replicas"] })),
        "runs": by_name(names::kind::ANALYSIS_RUN, run),
        "experiments": by_name(names::kind::EXPERIMENT, experiment),
        "splits": held.splits,
        "events": held.events.iter().map(event).collect::<Vec<_>>(),
    });
    let mut seen = plain(&seen, &Words { case, namespace, hashes: &hashes });
    let hashes = hashes.into_iter().map(|(hash, image)| (image, Value::from(hash)));
    seen["hashes"] = hashes.collect();
    seen
}

/// What the library that Argo Rollouts posts Events with puts before those of one reason that come too
/// often.
const COMBINED: &str = "(combined from similar events): ";

/// What is put in place of texts that differ between sides or runs.
struct Words<'a> {
    case: &'a str,
    namespace: &'a str,
    /// Images by hash.
    hashes: &'a BTreeMap<String, String>,
}

/// Images by pod template hash.
fn hashes(held: &Held) -> BTreeMap<String, String> {
    let sets = held.objects.iter().filter(|((kind, _), set)| kind == "ReplicaSet" && has_hash(set));
    let pairs = sets.filter_map(|(_, set)| {
        let hash = set["metadata"]["labels"][label::POD_TEMPLATE_HASH].as_str()?;
        let image = set["spec"]["template"]["spec"]["containers"][0]["image"].as_str()?;
        let image = image.rsplit('/').next().unwrap_or(image);
        Some((hash.to_owned(), format!("<{image}>")))
    });
    pairs.collect()
}

fn has_hash(object: &Value) -> bool {
    object["metadata"]["labels"][label::POD_TEMPLATE_HASH].is_string()
}

fn is_leaving(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

fn rollout(object: &Value) -> Value {
    let mut status = object["status"].clone();
    let generation = object["metadata"]["generation"].to_string();
    let is_observed = status["observedGeneration"] == generation.as_str();
    if let Some(fields) = status.as_object_mut() {
        fields.remove("observedGeneration");
        // Newer than the release that we are compared with.
        fields.remove("duration");
        fields.insert("isObserved".to_owned(), is_observed.into());
        let conditions = conditions(fields.get("conditions").unwrap_or(&Value::Null));
        fields.insert("conditions".to_owned(), conditions);
    }
    json!({
        "revision": object["metadata"]["annotations"][annotation::REVISION],
        "replicas": object["spec"]["replicas"],
        "paused": object["spec"]["paused"],
        "status": status,
    })
}

fn conditions(list: &Value) -> Value {
    let mut seen = Map::new();
    for condition in list.as_array().into_iter().flatten() {
        let text = |field: &str| condition[field].as_str().unwrap_or_default();
        let summary = json!({
            "is": format!("{} {}", text("status"), text("reason")),
            "message": text("message"),
        });
        seen.insert(text("type").to_owned(), summary);
    }
    Value::Object(seen)
}

fn replica_set(set: &Value) -> Value {
    let (metadata, spec, status) = (&set["metadata"], &set["spec"], &set["status"]);
    json!({
        "replicas": spec["replicas"],
        "available": status["availableReplicas"],
        "minReadySeconds": spec["minReadySeconds"],
        "labels": metadata["labels"],
        "annotations": metadata["annotations"],
        "template": spec["template"]["metadata"],
        "affinity": spec["template"]["spec"]["affinity"],
    })
}

/// Labels and annotations of the pods of each revision, and how many have them. Names are random.
fn pods(pods: &[(&str, &Value)]) -> Value {
    let mut counts = BTreeMap::<String, u64>::new();
    for (_, pod) in pods {
        if has_hash(pod) && !is_leaving(pod) {
            let metadata = &pod["metadata"];
            let seen = json!({
                "labels": metadata["labels"], "annotations": metadata["annotations"],
            });
            *counts.entry(seen.to_string()).or_default() += 1;
        }
    }
    let seen = |(text, count): (String, u64)| {
        let mut pod: Value = serde_json::from_str(&text).unwrap_or_default();
        pod["count"] = count.into();
        pod
    };
    counts.into_iter().map(seen).collect()
}

fn service(object: &Value) -> Value {
    json!({
        "selector": object["spec"]["selector"],
        "annotations": object["metadata"]["annotations"],
    })
}

fn ingress(object: &Value) -> Value {
    json!({
        "labels": object["metadata"]["labels"],
        "annotations": object["metadata"]["annotations"],
        "spec": object["spec"],
    })
}

/// What a Rollout asks of a run, and how it ended; what was measured is not the Rollout's.
fn run(object: &Value) -> Value {
    let spec = &object["spec"];
    json!({
        "labels": object["metadata"]["labels"],
        "annotations": object["metadata"]["annotations"],
        "args": spec["args"],
        "metrics": spec["metrics"],
        "isTerminated": spec["terminate"],
        "phase": object["status"]["phase"],
    })
}

fn experiment(object: &Value) -> Value {
    let spec = &object["spec"];
    json!({
        "labels": object["metadata"]["labels"],
        "annotations": object["metadata"]["annotations"],
        "duration": spec["duration"],
        "isTerminated": spec["terminate"],
        "phase": object["status"]["phase"],
    })
}

fn event(event: &Value) -> Value {
    let text = |field: &str| event[field].as_str().unwrap_or_default();
    let message = text("message");
    let message = message.strip_prefix(COMBINED).unwrap_or(message);
    json!(format!("{} {}: {message}", text("type"), text("reason")))
}

/// A value without empty parts, with `time` for times and plain words for what differs by chance.
fn plain(value: &Value, words: &Words<'_>) -> Value {
    match value {
        Value::String(text) if text.parse::<Timestamp>().is_ok() => "time".into(),
        Value::String(text) => replaced(text, words).into(),
        Value::Array(list) => list.iter().map(|item| plain(item, words)).collect(),
        Value::Object(map) => {
            let fields =
                map.iter().map(|(field, value)| (replaced(field, words), plain(value, words)));
            Value::Object(fields.filter(|(_, value)| !is_empty(value)).collect())
        }
        _ => value.clone(),
    }
}

fn replaced(text: &str, words: &Words<'_>) -> String {
    let mut text = text.replace(words.namespace, "NAMESPACE");
    for (hash, image) in words.hashes {
        text = text.replace(hash, image);
    }
    text.replace(words.case, "NAME")
}

/// Nothing, or what says no more than nothing. A 0 does: a count that is there is a count.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(case: &str, namespace: &str, hash: &str, at: &str) -> Held {
        let mut held = Held::empty();
        let image = "example.com/app:v1";
        let labels = json!({ label::POD_TEMPLATE_HASH: hash });
        held.put("ReplicaSet", json!({
            "metadata": { "name": format!("{case}-{hash}"), "labels": labels },
            "spec": { "replicas": 2, "template": { "spec": { "containers": [{ "image": image }] } } },
        }));
        held.put(
            "Rollout",
            json!({
                "metadata": { "name": case, "generation": 4 },
                "status": {
                    "observedGeneration": "4", "abortedAt": at, "stableRS": hash, "abort": false,
                    "conditions": [{
                        "type": "Paused", "status": "True", "reason": "RolloutPaused",
                        "message": format!("{namespace}/{case}"), "lastUpdateTime": at,
                    }],
                },
            }),
        );
        held
    }

    #[test]
    fn names_hashes_and_times_of_two_sides_are_the_same_words() {
        let argo = held("case1", "with-argo", "5d8f", "2026-01-01T00:00:00Z");
        let ours = held("case9", "with-gradus", "77aa", "2026-02-02T02:02:02Z");
        let mut argo = observe(&argo, "case1", "with-argo");
        let mut ours = observe(&ours, "case9", "with-gradus");
        let status = json!({
            "isObserved": true, "abortedAt": "time", "stableRS": "<app:v1>",
            "conditions": { "Paused": { "is": "True RolloutPaused", "message": "NAMESPACE/NAME" } },
        });
        assert_eq!(argo["rollout"]["status"], status);
        assert_eq!(argo["replicaSets"]["NAME-<app:v1>"]["replicas"], 2);
        assert_eq!(argo["hashes"], json!({ "<app:v1>": "5d8f" }), "the hashes themselves");
        argo["hashes"] = Value::Null;
        ours["hashes"] = Value::Null;
        assert_eq!(argo, ours);
    }

    #[test]
    fn an_event_that_was_combined_with_others_says_the_same() {
        let told = |message: &str| {
            event(&json!({ "type": "Normal", "reason": "ScalingReplicaSet", "message": message }))
        };
        assert_eq!(told("(combined from similar events): Scaled down"), told("Scaled down"));
    }

    #[test]
    fn an_unobserved_spec_and_a_missing_time_are_seen() {
        let mut one = held("case1", "with-argo", "5d8f", "2026-01-01T00:00:00Z");
        let rollout = json!({
            "metadata": { "name": "case1", "generation": 5 },
            "status": { "observedGeneration": "4" },
        });
        one.put("Rollout", rollout);
        let seen = observe(&one, "case1", "with-argo");
        assert_eq!(seen["rollout"], Value::Null, "neither observed nor anything else");
    }
}
