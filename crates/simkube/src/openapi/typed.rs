//! How a server with Go types reads an object: fields the types do not have are dropped, values of
//! the wrong type are refused.

use serde_json::{Map, Value};

use super::{BUILT_IN, definition, reference};
use crate::kinds::Kind;
use crate::patch::go_kind;

/// Drops unknown fields and nulls from an object of a built-in kind, and names the unknown ones.
/// A patch keeps its nulls and its `$` directives. The error is the decoder's message.
pub fn typed(kind: &Kind, value: &mut Value, is_patch: bool) -> Result<Vec<String>, String> {
    let Some(name) = definition(kind) else {
        return Ok(Vec::new());
    };
    let mut reader = Reader { is_patch, unknown: Vec::new() };
    reader.read(value, &BUILT_IN[name], "", &kind.kind)?;
    Ok(reader.unknown)
}

struct Reader {
    is_patch: bool,
    unknown: Vec<String>,
}

impl Reader {
    /// `owner` is the type whose field this is, for the decoder's message.
    fn read(
        &mut self,
        value: &mut Value,
        schema: &Value,
        path: &str,
        owner: &str,
    ) -> Result<(), String> {
        let (schema, owner_below) = match reference(schema) {
            Some(name) => (
                BUILT_IN.get(name).unwrap_or(&Value::Null),
                name.rsplit('.').next().unwrap_or(name),
            ),
            None => (schema, owner),
        };
        let wrong = |value: &Value, expected: &str| {
            let found = go_kind(value);
            Err(format!(
                "json: cannot unmarshal {found} into Go struct field {owner}.{} of type {expected}",
                without_positions(path)
            ))
        };
        match (schema["type"].as_str(), &mut *value) {
            (_, Value::Null) => Ok(()),
            (Some("object"), Value::Object(fields)) => {
                self.fields(fields, schema, path, owner_below)
            }
            (Some("array"), Value::Array(items)) => {
                for (at, item) in items.iter_mut().enumerate() {
                    self.read(item, &schema["items"], &format!("{path}[{at}]"), owner_below)?;
                }
                Ok(())
            }
            (Some("string"), Value::String(_))
            | (Some("boolean"), Value::Bool(_))
            | (Some("number"), Value::Number(_)) => Ok(()),
            (Some("integer"), Value::Number(number)) if number.is_i64() || number.is_u64() => {
                Ok(())
            }
            (Some("object"), other) => wrong(other, owner_below),
            (Some("array"), other) => wrong(other, "[]"),
            (Some("boolean"), other) => wrong(other, "bool"),
            (Some("integer"), other) => wrong(other, schema["format"].as_str().unwrap_or("int64")),
            (Some(name), other) => wrong(other, name),
            // No type: an integer or a text, a quantity, or a document of any shape.
            (None, _) => Ok(()),
        }
    }

    fn fields(
        &mut self,
        fields: &mut Map<String, Value>,
        schema: &Value,
        path: &str,
        owner: &str,
    ) -> Result<(), String> {
        let known = schema["properties"].as_object();
        let each = schema.get("additionalProperties");
        if known.is_none() && each.is_none() {
            return Ok(());
        }
        let below = |name: &str| {
            if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
        };
        let is_patch = self.is_patch;
        let unknown = &mut self.unknown;
        fields.retain(|name, value| {
            if is_patch && name.starts_with('$') {
                return true;
            }
            if each.is_none() && !known.is_some_and(|known| known.contains_key(name)) {
                unknown.push(below(name));
                return false;
            }
            is_patch || !value.is_null() || each.is_some()
        });
        for (name, value) in fields.iter_mut() {
            if is_patch && name.starts_with('$') {
                continue;
            }
            let child = known.and_then(|known| known.get(name)).or(each);
            if let Some(child) = child {
                self.read(value, child, &below(name), owner)?;
            }
        }
        Ok(())
    }
}

fn without_positions(path: &str) -> String {
    let mut plain = String::with_capacity(path.len());
    let mut is_inside = false;
    for character in path.chars() {
        match character {
            '[' => is_inside = true,
            ']' => is_inside = false,
            other if !is_inside => plain.push(other),
            _ => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::{KindId, Kinds};

    #[test]
    fn unknown_fields_are_dropped_and_named() {
        let kinds = Kinds::default();
        let mut set = json!({
            "metadata": {"name": "a", "labels": {"x": "y"}, "frob": 1},
            "spec": {"replicas": 1, "typo": 2, "minReadySeconds": null, "template": {"spec": {
                "containers": [{"name": "c", "imagee": "x", "resources": {"limits": {"cpu": 1}}}]
            }}}
        });
        let unknown = typed(kinds.get(KindId::REPLICA_SET), &mut set, false).unwrap();
        assert_eq!(
            unknown,
            ["metadata.frob", "spec.typo", "spec.template.spec.containers[0].imagee"]
        );
        assert_eq!(
            set["spec"],
            json!({"replicas": 1, "template": {"spec": {
                "containers": [{"name": "c", "resources": {"limits": {"cpu": 1}}}]
            }}})
        );
    }

    #[test]
    fn a_patch_keeps_its_nulls_and_directives() {
        let kinds = Kinds::default();
        let patch = json!({"spec": {
            "replicas": null,
            "template": {"spec": {"$setElementOrder/containers": [{"name": "a"}], "containers": [
                {"name": "a", "$patch": "delete"}
            ]}}
        }});
        let mut read = patch.clone();
        assert_eq!(typed(kinds.get(KindId::DEPLOYMENT), &mut read, true), Ok(Vec::new()));
        assert_eq!(read, patch);
    }

    #[test]
    fn values_of_the_wrong_type_are_refused_in_the_decoders_words() {
        let kinds = Kinds::default();
        let mut set = json!({"spec": {"replicas": "3"}});
        assert_eq!(
            typed(kinds.get(KindId::REPLICA_SET), &mut set, false),
            Err("json: cannot unmarshal string into Go struct field ReplicaSetSpec.spec.replicas \
                 of type int32"
                .to_owned())
        );
    }
}
