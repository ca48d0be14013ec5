//! Is a written schema certainly right? One quick walk says so of nearly every one. It may say no
//! where the slower walks find nothing, never yes where they find something.

use serde_json::{Map, Value};

use super::structural::{flag, is_integer_or_string, is_simple, text};
use super::written::TYPES;

/// Is it certain that nothing is wrong with a whole schema?
pub fn is_fine(schema: &Value) -> bool {
    is_right(schema, true)
}

fn is_right(schema: &Value, is_root: bool) -> bool {
    let Value::Object(fields) = schema else { return false };
    if !is_root && is_simple(fields) {
        return true;
    }
    let is_known = |(name, value): (&String, &Value)| match name.as_str() {
        "description" | "title" | "format" | "required" | "enum" | "minimum" | "maximum"
        | "minLength" | "maxLength" | "minItems" | "maxItems" | "default" => true,
        // It is read when the schema is compiled.
        "pattern" => true,
        "x-kubernetes-list-type" | "x-kubernetes-list-map-keys" => true,
        "type" => value.as_str().is_some_and(|kind| TYPES.contains(&kind)),
        "properties" => value.as_object().is_some_and(|all| {
            all.iter().all(|(name, one)| match name.as_str() {
                "kind" | "apiVersion" if is_root => is_only(one, "string"),
                "metadata" if is_root => is_only(one, "object"),
                _ => is_right(one, false),
            })
        }),
        "items" => is_right(value, false),
        "additionalProperties" => {
            !is_root && is_right(value, false) && !fields.contains_key("properties")
        }
        "nullable" => !is_root,
        "x-kubernetes-preserve-unknown-fields" => *value == true,
        "x-kubernetes-int-or-string" => *value == true,
        "anyOf" => is_integer_or_string(fields),
        "x-kubernetes-map-type" => {
            (value == "atomic" || value == "granular") && text(fields, "type") == "object"
        }
        "x-kubernetes-validations" => {
            value.as_array().is_some_and(|rules| rules.iter().all(is_plain_rule))
        }
        _ => false,
    };
    fields.iter().all(is_known) && has_type(fields, is_root) && is_list(fields) && fits(fields)
}

fn is_only(schema: &Value, kind: &str) -> bool {
    schema.as_object().is_some_and(|fields| fields.len() == 1 && text(fields, "type") == kind)
}

/// A rule of one line, perhaps with a message of one line, and nothing else.
fn is_plain_rule(rule: &Value) -> bool {
    let is_line = |text: &str| !text.trim().is_empty() && !text.contains(['\n', '\r']);
    rule["rule"].is_string()
        && rule.as_object().into_iter().flatten().all(|(name, value)| {
            matches!(name.as_str(), "rule" | "message") && value.as_str().is_some_and(is_line)
        })
}

fn has_type(fields: &Map<String, Value>, is_root: bool) -> bool {
    let is_open = fields.contains_key("x-kubernetes-preserve-unknown-fields");
    let takes_both = fields.contains_key("x-kubernetes-int-or-string");
    match text(fields, "type") {
        "object" => true,
        "array" => fields.contains_key("items") && !is_root,
        "" => is_open != takes_both && !is_root,
        _ => !is_root,
    }
}

/// Are the items of a list told apart by what they have?
fn is_list(fields: &Map<String, Value>) -> bool {
    let keys = fields.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
    let items = fields.get("items").and_then(Value::as_object);
    let kind = text(fields, "x-kubernetes-list-type");
    match (kind, keys, items) {
        ("", None, _) => !fields.contains_key("x-kubernetes-list-type"),
        ("atomic", None, Some(_)) => true,
        ("set", None, Some(items)) => is_simple(items),
        ("map", Some(keys), Some(items)) => {
            let required = items.get("required").and_then(Value::as_array);
            let is_key = |key: &Value| {
                let name = key.as_str().unwrap_or_default();
                let property = items.get("properties").and_then(|all| all.get(name));
                let has_value = required.is_some_and(|names| names.contains(key))
                    || property.is_some_and(|one| one.get("default").is_some_and(|d| !d.is_null()));
                has_value
                    && property.and_then(Value::as_object).is_some_and(|one| {
                        !matches!(text(one, "type"), "array" | "object") && !flag(one, "nullable")
                    })
            };
            let is_new = |at: usize| !keys[..at].contains(&keys[at]);
            text(items, "type") == "object"
                && !flag(items, "nullable")
                && !keys.is_empty()
                && keys.iter().all(is_key)
                && (0..keys.len()).all(is_new)
        }
        _ => false,
    }
}

/// Is a default what its schema asks for, as far as is seen at a glance?
fn fits(fields: &Map<String, Value>) -> bool {
    let Some(default) = fields.get("default").filter(|default| !default.is_null()) else {
        return true;
    };
    let is_free = fields.iter().all(|(name, value)| match name.as_str() {
        "type" | "default" | "description" | "properties" | "format" => true,
        "enum" => value.as_array().is_some_and(|choices| choices.contains(default)),
        _ => false,
    });
    is_free
        && match (text(fields, "type"), default) {
            ("string", Value::String(_)) => !fields.contains_key("format"),
            ("boolean", Value::Bool(_)) => true,
            ("integer", Value::Number(number)) => number.is_i64() || number.is_u64(),
            ("object", Value::Object(given)) => given.is_empty(),
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_fine_at_a_glance_has_no_problem() {
        let list = |keys: Value, items: Value| {
            json!({"type": "array", "items": items, "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": keys})
        };
        let item = json!({"type": "object", "required": ["k"], "properties": {
            "k": {"type": "string"}, "other": {"type": "string"},
        }});
        let cases = [
            ("a text", json!({"type": "string", "pattern": "^a"}), true),
            ("no type", json!({"description": "a"}), false),
            ("a number or a text", json!({"x-kubernetes-int-or-string": true}), true),
            ("a list without items", json!({"type": "array"}), false),
            ("a list with keys", list(json!(["k"]), item.clone()), true),
            ("a key that may be absent", list(json!(["other"]), item.clone()), false),
            ("a key named twice", list(json!(["k", "k"]), item), false),
            ("a default", json!({"type": "string", "enum": ["a"], "default": "a"}), true),
            (
                "a default of no choice",
                json!({"type": "string", "enum": ["a"], "default": "b"}),
                false,
            ),
            ("a default of another type", json!({"type": "integer", "default": "1"}), false),
            (
                "a type among alternatives",
                json!({"type": "object", "not": {"type": "string"}}),
                false,
            ),
        ];
        for (what, part, expected) in cases {
            let schema = json!({"type": "object", "properties": {"spec": part}});
            assert_eq!(is_fine(&schema), expected, "{what}");
            assert_eq!(crate::schema::problems(&schema, "x").is_empty(), expected, "{what}");
        }
    }
}
