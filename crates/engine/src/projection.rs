//! What of a status must be equal wherever a scenario is told? One projection for the tables of the
//! engine, for `simulate()`, for the live lab and for a real control plane.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// Revision numbers by pod template hash, read from the ReplicaSets.
pub type Revisions = BTreeMap<String, i64>;

/// What two runs of one scenario must agree on: hashes become revision numbers; the step hash,
/// generations and times are left out; a condition is its type, status and reason.
pub fn project(status: &Value, revisions: &Revisions) -> Value {
    fields(status, revisions).map(|(field, value)| (field.clone(), value)).collect()
}

/// Is this the projection of a status?
pub fn is_projection(expected: &Value, status: &Value, revisions: &Revisions) -> bool {
    let Value::Object(expected) = expected else { return false };
    let mut expected = expected.iter();
    let is_next = |(field, value): (&String, Value)| {
        expected.next().is_some_and(|(name, expected)| name == field && *expected == value)
    };
    fields(status, revisions).all(is_next) && expected.next().is_none()
}

/// The fields of a status that two runs must agree on, by name, as they are seen.
fn fields<'a>(
    status: &'a Value,
    revisions: &'a Revisions,
) -> impl Iterator<Item = (&'a String, Value)> {
    let seen = |field: &str, value: &Value| match field {
        "currentStepHash" | "observedGeneration" | "workloadObservedGeneration" | "duration" => {
            Value::Null
        }
        "conditions" => conditions(value),
        "pauseConditions" => reasons(value),
        "selector" => json!(selector(value.as_str().unwrap_or(""), revisions)),
        _ => plain(value, revisions),
    };
    let all = status.as_object().into_iter().flatten();
    all.map(move |(field, value)| (field, seen(field, value))).filter(|(_, seen)| !is_empty(seen))
}

fn conditions(list: &Value) -> Value {
    let mut seen = Map::new();
    for condition in list.as_array().into_iter().flatten() {
        let text = |field: &str| condition[field].as_str().unwrap_or("");
        let summary = [text("status"), " ", text("reason")].concat();
        seen.insert(text("type").to_owned(), summary.into());
    }
    Value::Object(seen)
}

fn reasons(list: &Value) -> Value {
    list.as_array().into_iter().flatten().map(|pause| pause["reason"].clone()).collect()
}

/// A selector as text, with the revision number for the hash in it.
fn selector(text: &str, revisions: &Revisions) -> String {
    let has_hash =
        |part: &str| part.split_once('=').is_some_and(|(_, v)| revisions.contains_key(v));
    if !text.split(',').any(has_hash) {
        return text.to_owned();
    }
    let requirements = text.split(',').map(|requirement| match requirement.split_once('=') {
        Some((key, value)) => match revisions.get(value) {
            Some(revision) => format!("{key}=revision {revision}"),
            None => requirement.to_owned(),
        },
        None => requirement.to_owned(),
    });
    requirements.collect::<Vec<_>>().join(",")
}

/// A name with the revision number for the hash in it, as those of runs and Experiments.
pub fn named(text: &str, revisions: &Revisions) -> String {
    if !text.split('-').any(|part| revisions.contains_key(part)) {
        return text.to_owned();
    }
    let parts = text.split('-').map(|part| match revisions.get(part) {
        Some(revision) => format!("(revision {revision})"),
        None => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("-")
}

/// The value without times and with revision numbers for hashes.
pub fn plain(value: &Value, revisions: &Revisions) -> Value {
    match value {
        Value::String(text) => match revisions.get(text) {
            Some(revision) => json!(format!("revision {revision}")),
            None if is_time(text) => Value::Null,
            None => json!(named(text, revisions)),
        },
        Value::Array(list) => list.iter().map(|item| plain(item, revisions)).collect(),
        Value::Object(map) => {
            let fields = map.iter().map(|(field, value)| (field.clone(), plain(value, revisions)));
            Value::Object(fields.filter(|(_, value)| !is_empty(value)).collect())
        }
        _ => value.clone(),
    }
}

fn is_time(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit()) && text.parse::<Timestamp>().is_ok()
}

fn is_empty(value: &Value) -> bool {
    match value {
        // A flag that a person has cleared by hand stays in the store; it says no more than none.
        Value::Null | Value::Bool(false) => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paused() -> Value {
        json!({
            "observedGeneration": "2", "phase": "Paused", "message": "CanaryPauseStep",
            "currentPodHash": "bbb", "stableRS": "aaa", "currentStepHash": "ccc",
            "currentStepIndex": 1, "updatedReplicas": 1, "controllerPause": true,
            "abortedAt": "2026-01-01T00:00:00Z", "blueGreen": {}, "canary": {},
            "pauseConditions": [{"reason": "CanaryPauseStep", "startTime": "2026-01-01T00:00:00Z"}],
            "selector": "app=web,rollouts-pod-template-hash=aaa",
            "conditions": [{"type": "Paused", "status": "True", "reason": "RolloutPaused",
                "message": "x", "lastUpdateTime": "2026-01-01T00:00:00Z"}],
        })
    }

    #[test]
    fn hashes_become_revisions_and_times_are_left_out() {
        let revisions = Revisions::from([("aaa".to_owned(), 1), ("bbb".to_owned(), 2)]);
        let expected = json!({
            "phase": "Paused", "message": "CanaryPauseStep", "currentPodHash": "revision 2",
            "stableRS": "revision 1", "currentStepIndex": 1, "updatedReplicas": 1,
            "controllerPause": true, "pauseConditions": ["CanaryPauseStep"],
            "conditions": {"Paused": "True RolloutPaused"},
            "selector": "app=web,rollouts-pod-template-hash=revision 1",
        });
        assert_eq!(project(&paused(), &revisions), expected);
        assert!(is_projection(&expected, &paused(), &revisions));
        for (field, value) in
            [("phase", json!("Healthy")), ("zeal", json!(1)), ("message", json!(""))]
        {
            let mut other = expected.clone();
            other[field] = value;
            assert!(!is_projection(&other, &paused(), &revisions), "{other}");
        }
        let mut less = expected;
        less.as_object_mut().unwrap().remove("message");
        assert!(!is_projection(&less, &paused(), &revisions), "{less}");
        assert!(!is_projection(&Value::Null, &paused(), &revisions));
    }
}
