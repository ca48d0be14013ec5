//! What is the smallest merge patch that turns one JSON value into another, and what does one do?

use serde_json::{Map, Value};

/// The RFC 7386 patch from `old` to `new`, with explicit nulls for what is gone; `None` if equal.
pub fn difference(old: &Value, new: &Value) -> Option<Value> {
    if old == new {
        return None;
    }
    let (Value::Object(old), Value::Object(new)) = (old, new) else {
        return Some(new.clone());
    };
    let mut patch = Map::new();
    for (key, value) in new {
        match old.get(key) {
            None => {
                patch.insert(key.clone(), value.clone());
            }
            Some(known) => {
                if let Some(inner) = difference(known, value) {
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
    use super::*;
    use serde_json::json;

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
            assert_eq!(difference(&old, &new), expected, "{what}");
            let mut applied = old;
            apply(&mut applied, &expected.unwrap_or(json!({})));
            assert_eq!(applied, new, "{what}, applied");
        }
    }
}
