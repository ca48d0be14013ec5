//! How a server with Go types reads an object: fields the types do not have are dropped, values of
//! the wrong type are refused.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{BUILT_IN, definition, reference};
use crate::error::ApiError;
use crate::kinds::KindInfo;
use crate::patch::go_kind;
use crate::request::{FieldValidation, Options};

/// Reads an object of a built-in kind, or a patch of one. Unknown fields are warned about, or
/// refused if the writer is strict. A patch keeps its nulls and its `$` directives.
pub fn check(
    kind: &KindInfo,
    value: &mut Value,
    is_patch: bool,
    options: &Options,
) -> Result<Vec<String>, ApiError> {
    let refuse = |problem: &str| {
        let KindInfo { kind, version, .. } = kind;
        ApiError::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: {problem}"
        ))
    };
    let unknown = typed(kind, value, is_patch).map_err(|problem| refuse(&problem))?;
    let warnings = options.named(&unknown);
    match options.field_validation {
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Strict if !warnings.is_empty() => {
            Err(refuse(&format!("strict decoding error: {}", warnings.join(", "))))
        }
        FieldValidation::Warn | FieldValidation::Strict => Ok(warnings),
    }
}

/// Drops unknown fields and nulls, and names the unknown ones. The error is the decoder's message.
fn typed(kind: &KindInfo, value: &mut Value, is_patch: bool) -> Result<Vec<String>, String> {
    let Some(name) = definition(kind) else {
        return Ok(Vec::new());
    };
    let mut reader = Reader { is_patch, unknown: Vec::new() };
    reader.read(value, &BUILT_IN[name], "", &kind.kind)?;
    reader.unknown.sort();
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
        let (resolved, owner_below) = match reference(schema) {
            Some(name) => (
                BUILT_IN.get(name).unwrap_or(&Value::Null),
                name.rsplit('.').next().unwrap_or(name),
            ),
            None => (schema, owner),
        };
        check_format(owner_below, value)?;
        let is_right = match (resolved["type"].as_str(), &mut *value) {
            (_, Value::Null) => true,
            (Some("object"), Value::Object(fields)) => {
                return self.fields(fields, resolved, path, owner_below);
            }
            (Some("array"), Value::Array(items)) => {
                for (at, item) in items.iter_mut().enumerate() {
                    self.read(item, &resolved["items"], &format!("{path}[{at}]"), owner_below)?;
                }
                true
            }
            (Some("string"), Value::String(_))
            | (Some("boolean"), Value::Bool(_))
            | (Some("number"), Value::Number(_)) => true,
            (Some("integer"), Value::Number(number)) => number.is_i64() || number.is_u64(),
            (Some(_), _) => false,
            // No type: an integer or a text, a quantity, or a document of any shape.
            (None, _) => true,
        };
        if is_right {
            return Ok(());
        }
        let found = match &*value {
            Value::Number(number) if resolved["type"] == "integer" => format!("number {number}"),
            other => go_kind(other).to_owned(),
        };
        Err(format!(
            "json: cannot unmarshal {found} into Go struct field {owner}.{} of type {}",
            without_positions(path),
            go_type(schema)
        ))
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
                // A text that is null is an empty one. Other fields have gone by now.
                if value.is_null() && !is_patch && is_text(child) {
                    *value = Value::from("");
                }
                self.read(value, child, &below(name), owner)?;
            }
        }
        Ok(())
    }
}

fn is_text(schema: &Value) -> bool {
    schema["type"] == "string" && schema.get("format").is_none()
}

/// The types that read their texts themselves.
fn check_format(name: &str, value: &Value) -> Result<(), String> {
    let Value::String(text) = value else {
        return Ok(());
    };
    let is_time = || text.parse::<Timestamp>().is_ok();
    // Go's layout wants exactly six digits behind the dot.
    let is_micro = || is_time() && text.find('.').is_some_and(|dot| digits_at(text, dot + 1) == 6);
    match name {
        "Time" if !is_time() => {
            Err(format!("parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\""))
        }
        "MicroTime" if !is_micro() => {
            Err(format!("parsing time {text:?} as \"2006-01-02T15:04:05.000000Z07:00\""))
        }
        "Quantity" if !is_quantity(text) => Err("quantities must match the regular expression \
             '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            .to_owned()),
        _ => Ok(()),
    }
}

fn digits_at(text: &str, from: usize) -> usize {
    text.bytes().skip(from).take_while(u8::is_ascii_digit).count()
}

fn is_quantity(text: &str) -> bool {
    let number = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = number.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(number.len());
    let (number, suffix) = number.split_at(end);
    let suffix = suffix.trim_start_matches(|c: char| "eEinumkKMGTP".contains(c));
    let exponent = suffix.strip_prefix(['+', '-']).unwrap_or(suffix);
    !number.is_empty() && exponent.bytes().all(|byte| byte.is_ascii_digit())
}

/// What Go calls the type of a field.
fn go_type(schema: &Value) -> String {
    if let Some(name) = reference(schema) {
        return format!("v1.{}", name.rsplit('.').next().unwrap_or(name));
    }
    match schema["type"].as_str() {
        Some("array") => format!("[]{}", go_type(&schema["items"])),
        Some("object") => format!("map[string]{}", go_type(&schema["additionalProperties"])),
        Some("boolean") => "bool".into(),
        Some("integer") => schema["format"].as_str().unwrap_or("int64").into(),
        Some("number") => "float64".into(),
        other => other.unwrap_or("interface {}").into(),
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
            ["metadata.frob", "spec.template.spec.containers[0].imagee", "spec.typo"]
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
        let into = "into Go struct field ServiceSpec.spec";
        let cases = [
            (json!({"spec": []}), "array into Go struct field Service.spec of type v1.ServiceSpec"),
            (
                json!({"spec": {"ports": {}}}),
                &*format!("object {into}.ports of type []v1.ServicePort"),
            ),
            (
                json!({"spec": {"selector": 1}}),
                &*format!("number {into}.selector of type map[string]string"),
            ),
            (
                json!({"spec": {"healthCheckNodePort": 1.5}}),
                &*format!("number 1.5 {into}.healthCheckNodePort of type int32"),
            ),
        ];
        for (mut service, expected) in cases {
            let found = typed(kinds.get(KindId::SERVICE), &mut service, false);
            assert_eq!(found, Err(format!("json: cannot unmarshal {expected}")), "{service}");
        }
    }

    #[test]
    fn times_and_quantities_read_their_texts() {
        let cases = [
            ("Time", "2026-01-01T00:00:00Z", true),
            ("Time", "noon", false),
            ("MicroTime", "2026-01-01T00:00:00.000000Z", true),
            ("MicroTime", "2026-01-01T00:00:00Z", false),
            ("Quantity", "1.5Gi", true),
            ("Quantity", "-100m", true),
            ("Quantity", "1e3", true),
            ("Quantity", "x", false),
            ("Quantity", "", false),
            ("Quantity", "1 Gi", false),
        ];
        for (name, text, is_right) in cases {
            assert_eq!(check_format(name, &json!(text)).is_ok(), is_right, "{name} {text:?}");
        }
    }
}
