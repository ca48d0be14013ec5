//! How is an object brought to what is wanted of it, without touching what is not ours?

use serde_json::Value;

pub use gradus_api::patch::Difference;

/// `found` with everything that `wanted` says, and nothing else changed: maps are laid over each
/// other, of a list of named things those are changed that are named, any other value is replaced.
/// So one who owns some fields of an object leaves those of others, and defaults, alone.
pub fn overlay(found: &Value, wanted: &Value) -> Value {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            let mut laid = found.clone();
            for (key, value) in wanted {
                let under = found.get(key).unwrap_or(&Value::Null);
                laid.insert(key.clone(), overlay(under, value));
            }
            Value::Object(laid)
        }
        (Value::Array(found), Value::Array(wanted)) if wanted.iter().all(is_named) => {
            let mut laid = found.clone();
            for value in wanted {
                match laid.iter_mut().find(|one| one["name"] == value["name"]) {
                    Some(there) => *there = overlay(there, value),
                    None => laid.push(value.clone()),
                }
            }
            Value::Array(laid)
        }
        _ => wanted.clone(),
    }
}

fn is_named(value: &Value) -> bool {
    value["name"].is_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_is_wanted_is_laid_over_what_is_found() {
        let cases = [
            (
                "fields of others stay",
                json!({"a": 1, "b": 2}),
                json!({"b": 3}),
                json!({"a": 1, "b": 3}),
            ),
            ("null is replaced", json!(null), json!({"a": 1}), json!({"a": 1})),
            (
                "named things keep their defaults and their neighbours",
                json!([{"name": "x", "image": "1", "policy": "Always"}, {"name": "sidecar"}]),
                json!([{"name": "x", "image": "2"}]),
                json!([{"name": "x", "image": "2", "policy": "Always"}, {"name": "sidecar"}]),
            ),
            (
                "a missing named thing is added",
                json!([]),
                json!([{"name": "x"}]),
                json!([{"name": "x"}]),
            ),
            ("other lists are replaced", json!([1, 2]), json!([3]), json!([3])),
        ];
        for (what, found, wanted, expected) in cases {
            assert_eq!(overlay(&found, &wanted), expected, "{what}");
        }
    }
}
