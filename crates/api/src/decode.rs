//! Reads any JSON as an API type: what cannot be read is left out and named, the rest is kept.

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::{Path, Segment};
use thiserror::Error;

/// More wrong fields than this in one object are not told apart: it is read as empty.
const MAX_ROUNDS: usize = 32;

/// A field that could not be read and was left out.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{path}: {message}")]
pub struct FieldError {
    /// Where it stands, relative to what was read; empty for the whole.
    pub path: String,
    /// What was found and what was expected.
    pub message: String,
}

impl FieldError {
    /// The same, as seen from the object whose field was read.
    pub fn within(mut self, parent: &str) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{parent}{dot}{}", self.path);
        self
    }
}

/// Reads `value` as `T`. A field of the wrong type counts as missing and is reported; null
/// counts as missing and is not, as in Go.
///
/// An object without mistakes is read in place; only one with mistakes is searched and copied.
pub fn decode<T: DeserializeOwned + Default>(value: &Value) -> (T, Vec<FieldError>) {
    // Keeping the path costs more than reading; hardly any object needs it.
    if let Ok(decoded) = T::deserialize(value) {
        return (decoded, Vec::new());
    }
    let (mut path, mut message) = match attempt(value) {
        Ok(decoded) => return (decoded, Vec::new()),
        Err(failure) => failure,
    };
    let mut errors = Vec::new();
    let mut rest = value.clone();
    for _ in 0..MAX_ROUNDS {
        let Some(removed) = remove(&mut rest, &path) else { break };
        if !removed.is_null() {
            errors.push(FieldError { path: text(&path), message });
        }
        (path, message) = match attempt(&rest) {
            Ok(decoded) => return (decoded, errors),
            Err(failure) => failure,
        };
    }
    errors.push(FieldError { path: text(&path), message });
    (T::default(), errors)
}

fn attempt<T: DeserializeOwned>(value: &Value) -> Result<T, (Path, String)> {
    serde_path_to_error::deserialize(value)
        .map_err(|error| (error.path().clone(), error.inner().to_string()))
}

/// Takes the value at `path` out. An item of a list becomes an empty object instead, so that
/// the items after it keep their places; if even that was wrong, the whole list goes.
fn remove(value: &mut Value, path: &Path) -> Option<Value> {
    let segments: Vec<&Segment> = path.iter().collect();
    let (last, parents) = segments.split_last()?;
    let mut parent = &mut *value;
    for segment in parents {
        parent = match segment {
            Segment::Map { key } => parent.get_mut(key)?,
            Segment::Seq { index } => parent.get_mut(index)?,
            Segment::Enum { .. } | Segment::Unknown => return None,
        };
    }
    match last {
        Segment::Map { key } => parent.as_object_mut()?.remove(key),
        Segment::Seq { index } => {
            let item = parent.get_mut(index)?;
            let empty = Value::Object(serde_json::Map::new());
            if *item == empty {
                return Some(std::mem::replace(parent, Value::Array(Vec::new())));
            }
            Some(std::mem::replace(item, empty))
        }
        Segment::Enum { .. } | Segment::Unknown => None,
    }
}

fn text(path: &Path) -> String {
    if path.iter().next().is_none() { String::new() } else { path.to_string() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rollout::{RolloutSpec, RolloutStatus};

    #[test]
    fn what_is_right_is_read_and_what_is_unknown_ignored() {
        let value = json!({ "replicas": 3, "paused": true, "someday": { "a": 1 } });
        let (spec, errors) = decode::<RolloutSpec>(&value);
        assert_eq!((spec.replicas, spec.paused), (Some(3), true));
        assert_eq!(errors, []);
    }

    #[test]
    fn a_wrong_field_is_left_out_and_named() {
        let cases = [
            ("a text for a number", json!({ "replicas": "3" }), "replicas"),
            ("a number too large", json!({ "replicas": 3_000_000_000_u64 }), "replicas"),
            (
                "deep inside",
                json!({ "strategy": { "canary": { "steps": [{ "setWeight": true }] } } }),
                "strategy.canary.steps[0].setWeight",
            ),
            (
                "an item of a list",
                json!({ "strategy": { "canary": { "steps": [7] } } }),
                "strategy.canary.steps[0]",
            ),
            ("a list for an object", json!({ "strategy": [] }), "strategy"),
            ("a wrong duration", pause(json!(1.5)), "strategy.canary.steps[0].pause.duration"),
            ("the whole", json!("text"), ""),
        ];
        for (what, mut value, path) in cases {
            if let Some(object) = value.as_object_mut() {
                object.insert("minReadySeconds".into(), json!(7));
            }
            let (spec, errors) = decode::<RolloutSpec>(&value);
            let paths: Vec<&str> = errors.iter().map(|error| error.path.as_str()).collect();
            assert_eq!(paths, [path], "{what}");
            let kept = if value.is_object() { 7 } else { 0 };
            assert_eq!(spec.min_ready_seconds, kept, "{what}: the rest is kept");
        }
    }

    fn pause(duration: Value) -> Value {
        json!({ "strategy": { "canary": { "steps": [{ "pause": { "duration": duration } }] } } })
    }

    #[test]
    fn the_message_says_what_was_expected() {
        let (_, errors) = decode::<RolloutSpec>(&json!({ "replicas": "3" }));
        assert_eq!(errors[0].to_string(), "replicas: invalid type: string \"3\", expected i32");
    }

    #[test]
    fn steps_keep_their_places_when_one_is_wrong() {
        let steps = json!([{ "setWeight": 10 }, "pause", { "setWeight": 20 }]);
        let (spec, _) =
            decode::<RolloutSpec>(&json!({ "strategy": { "canary": { "steps": steps } } }));
        let weights: Vec<_> =
            spec.strategy.canary.unwrap().steps.iter().map(|step| step.set_weight).collect();
        assert_eq!(weights, [Some(10), None, Some(20)]);
    }

    #[test]
    fn a_list_of_texts_with_a_wrong_item_is_left_out() {
        let value = json!({ "selector": { "matchExpressions": [
            { "key": "a", "operator": "In", "values": [1] },
        ] } });
        let (spec, errors) = decode::<RolloutSpec>(&value);
        assert_eq!(spec.selector.unwrap().match_expressions[0].values, Vec::<String>::new());
        assert!(!errors.is_empty());
    }

    #[test]
    fn null_means_missing_and_is_no_mistake() {
        let value = json!({ "replicas": null, "paused": null, "strategy": { "canary": {
            "steps": null, "canaryService": null, "maxSurge": null } } });
        let (spec, errors) = decode::<RolloutSpec>(&value);
        assert_eq!(errors, []);
        assert_eq!(spec.replicas, None);
        assert_eq!(spec.strategy.canary, Some(Default::default()));
    }

    #[test]
    fn more_mistakes_than_anybody_reads_give_an_empty_object() {
        let steps: Vec<Value> = (0..100).map(|_| json!({ "setWeight": "x" })).collect();
        let value = json!({ "replicas": 2, "strategy": { "canary": { "steps": steps } } });
        let (spec, errors) = decode::<RolloutSpec>(&value);
        assert_eq!(spec, RolloutSpec::default());
        assert_eq!(errors.len(), MAX_ROUNDS + 1);
    }

    #[test]
    fn a_status_written_by_anybody_is_read() {
        for status in [json!({}), json!({ "canary": {}, "blueGreen": {} }), json!(null)] {
            let (decoded, errors) = decode::<RolloutStatus>(&status);
            assert_eq!(decoded, RolloutStatus::default());
            assert_eq!(errors.len(), usize::from(status.is_null()));
        }
    }
}
