//! What is the smallest merge patch that turns one state into another, and what does one do?

use serde::Serialize;
use serde_json::{Map, Value};

/// States of which the difference can be sent.
pub trait Difference {
    /// The RFC 7386 patch from this state to `new`, with explicit nulls for what is gone; `None` if
    /// they are equal.
    fn difference(&self, new: &Self) -> Option<Value>;
}

impl Difference for Value {
    fn difference(&self, new: &Self) -> Option<Value> {
        if self == new {
            return None;
        }
        let (Value::Object(old), Value::Object(new)) = (self, new) else {
            return Some(new.clone());
        };
        let mut patch = Map::new();
        for (key, value) in new {
            match old.get(key) {
                None => {
                    patch.insert(key.clone(), value.clone());
                }
                Some(known) => {
                    if let Some(inner) = known.difference(value) {
                        patch.insert(key.clone(), inner);
                    }
                }
            }
        }
        for key in old.keys().filter(|key| !new.contains_key(*key)) {
            patch.insert(key.clone(), Value::Null);
        }
        Some(Value::Object(patch))
    }
}

/// The patch from one state to another, each as its JSON.
pub(crate) fn between<T: Serialize + PartialEq>(old: &T, new: &T) -> Option<Value> {
    let json = |state: &T| serde_json::to_value(state).expect("API types have texts for keys");
    if old == new { None } else { json(old).difference(&json(new)) }
}

/// The state of what has none.
impl Difference for () {
    fn difference(&self, (): &Self) -> Option<Value> {
        None
    }
}

/// Applies an RFC 7386 merge patch: nulls remove, objects merge, everything else replaces.
pub fn apply(into: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = Value::Object(Map::new());
    }
    let Value::Object(into) = into else { return };
    for (key, value) in patch {
        if value.is_null() {
            into.remove(key);
        } else {
            apply(into.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::decode;
    use crate::rollout::RolloutStatus;

    #[test]
    fn only_what_differs_is_sent_and_what_is_gone_is_null() {
        let cases = [
            ("equal", json!({"a": 1}), json!({"a": 1}), None),
            ("changed", json!({"a": 1, "b": 2}), json!({"a": 1, "b": 3}), Some(json!({"b": 3}))),
            ("gone", json!({"a": 1, "b": 2}), json!({"a": 1}), Some(json!({"b": null}))),
            (
                "nested",
                json!({"c": {"x": 1, "y": 2}}),
                json!({"c": {"x": 1}}),
                Some(json!({"c": {"y": null}})),
            ),
            (
                "lists are replaced whole",
                json!({"l": [1, 2]}),
                json!({"l": [1]}),
                Some(json!({"l": [1]})),
            ),
            ("new object", json!({}), json!({"c": {"x": 1}}), Some(json!({"c": {"x": 1}}))),
        ];
        for (what, old, new, expected) in cases {
            assert_eq!(old.difference(&new), expected, "{what}");
            let mut applied = old;
            apply(&mut applied, &expected.unwrap_or(json!({})));
            assert_eq!(applied, new, "{what}, applied");
        }
    }

    #[test]
    fn a_struct_differs_as_its_json_does() {
        let paused = json!({
            "phase": "Paused", "replicas": 3, "HPAReplicas": 3, "stableRS": "a", "abort": true,
            "pauseConditions": [{ "reason": "r", "startTime": "2026-01-01T00:00:00Z" }],
            "canary": { "stablePingPong": "ping", "currentExperiment": "e" },
            "alb": { "ingress": "i", "loadBalancer": { "name": "n", "arn": "a" } },
        });
        let healthy = json!({
            "phase": "Healthy", "replicas": 5, "HPAReplicas": 5, "stableRS": "b",
            "canary": { "stablePingPong": "pong" }, "blueGreen": { "activeSelector": "b" },
            "alb": { "ingress": "i", "loadBalancer": { "name": "m", "arn": "a" } },
        });
        let states = [json!({}), paused, healthy];
        let pairs = states.iter().flat_map(|old| states.iter().map(move |new| (old, new)));
        for (old, new) in pairs {
            let (old, new) = (decode::<RolloutStatus>(old).0, decode::<RolloutStatus>(new).0);
            let expected = json!(old).difference(&json!(new));
            assert_eq!(old.difference(&new), expected, "from {old:?} to {new:?}");
        }
    }
}
