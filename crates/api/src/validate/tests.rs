//! Every rule of the first stage, by the error users are shown first.

use serde_json::{Value, json};

use super::*;
use crate::decode::decode;

/// Rows of: what it is about, what is merged into a sound spec (null removes), the first error.
/// Those about labels and pods are what a Kubernetes 1.35 API server says of a ReplicaSet.
const CASES: &str = include_str!("cases.json");

#[test]
fn each_mistake_gives_its_error_first_and_a_sound_spec_none() {
    let cases: Vec<(String, Value, String)> = serde_json::from_str(CASES).unwrap();
    for (what, change, expected) in cases {
        let errors = validate(&spec(change), SpecSource::Written);
        let first = errors.first().map(ToString::to_string).unwrap_or_default();
        assert_eq!(first, expected, "{what}");
    }
}

#[test]
fn every_mistake_is_reported_in_order() {
    let change = json!({ "replicas": -1, "minReadySeconds": -2, "revisionHistoryLimit": -3,
        "strategy": { "canary": { "steps": [{ "setWeight": -4 }, { "setWeight": 101 }] } } });
    let errors = validate(&spec(change), SpecSource::Written);
    let paths: Vec<&str> = errors.iter().map(|error| error.path.as_str()).collect();
    let steps = ["spec.strategy.steps[0].setWeight", "spec.strategy.steps[1].setWeight"];
    assert_eq!(paths[..3], ["spec.replicas", "spec.minReadySeconds", "spec.revisionHistoryLimit"]);
    assert_eq!(paths[3..], steps);
}

#[test]
fn a_resolved_template_is_checked_like_a_written_one() {
    let change = json!({ "workloadRef": { "name": "w" }, "template": { "spec": null } });
    let errors = validate(&spec(change), SpecSource::Resolved);
    assert_eq!(errors[0].to_string(), "spec.template.spec.containers: Required value");
}

#[test]
fn a_template_that_is_no_object_is_an_error_and_no_panic() {
    for template in [json!(7), json!([]), json!({ "spec": 7 }), json!({ "metadata": [1] })] {
        let change = json!({ "template": template });
        assert_ne!(validate(&spec(change), SpecSource::Written), [], "{template}");
    }
}

/// A spec without a mistake, with `change` merged into it.
fn spec(change: Value) -> RolloutSpec {
    let mut value = json!({
        "selector": { "matchLabels": { "app": "web" } },
        "template": {
            "metadata": { "labels": { "app": "web" } },
            "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
        },
        "strategy": { "canary": {} },
    });
    merge(&mut value, change);
    let (spec, errors) = decode(&value);
    assert_eq!(errors, []);
    spec
}

fn merge(value: &mut Value, change: Value) {
    match (value, change) {
        (Value::Object(map), Value::Object(change)) => {
            for (key, change) in change {
                if change.is_null() {
                    map.remove(&key);
                } else {
                    merge(map.entry(key).or_insert(Value::Null), change);
                }
            }
        }
        (value, change) => *value = change,
    }
}
