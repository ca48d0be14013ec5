//! Values and JSON: what a provider answered becomes a value, and `toJSON` writes one.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;

use super::{Key, List, Map, Value};
use crate::builtins::base64;
use crate::error::Fault;
use crate::number::json_float;
use crate::types::{ListKind, MapKind};

impl Value {
    /// A JSON document, as Go reads it: every number is a fraction. Nothing if it is nested deeper
    /// than [`super::MOST_NESTED`].
    pub fn from_json(json: &Json) -> Option<Value> {
        Self::read_json(json).ok()
    }

    pub(crate) fn read_json(json: &Json) -> Result<Value, Fault> {
        Ok(match json {
            Json::Null => Value::Nil,
            Json::Bool(truth) => Value::Bool(*truth),
            Json::Number(number) => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
            Json::String(text) => Value::text(text),
            Json::Array(items) => {
                let items: Result<Vec<_>, Fault> = items.iter().map(Self::read_json).collect();
                Value::List(List::new(ListKind::Any, items?)?)
            }
            Json::Object(fields) => {
                let mut entries = BTreeMap::new();
                for (key, value) in fields {
                    entries.insert(Key::Text(Arc::from(key.as_str())), Self::read_json(value)?);
                }
                Value::Map(Map::new(MapKind::Text, entries)?)
            }
        })
    }
}

/// The text of a value in JSON, on lines indented by two spaces, as Go writes it.
pub(crate) fn to_json_text(value: &Value) -> Result<String, Fault> {
    let mut text = String::new();
    write(&mut text, value, 0)?;
    Ok(text)
}

fn write(text: &mut String, value: &Value, depth: usize) -> Result<(), Fault> {
    match value {
        Value::Nil => text.push_str("null"),
        Value::Bool(truth) => text.push_str(if *truth { "true" } else { "false" }),
        Value::Int(_, number) | Value::Duration(number) => text.push_str(&number.to_string()),
        Value::Month(number) | Value::Weekday(number) => text.push_str(&number.to_string()),
        Value::Float(number) if !number.is_finite() => {
            return Err(Fault::run(format!("json: unsupported value: {value}")));
        }
        Value::Float(number) => text.push_str(&json_float(*number)),
        Value::Text(inside) => quote(text, inside),
        Value::List(list) if list.is_nil => text.push_str("null"),
        Value::List(list) if list.kind() == ListKind::Byte => quote(text, &base64::of_list(list)),
        Value::List(list) => write_list(text, list, depth)?,
        Value::Map(map) if map.kind() != MapKind::Text => {
            return Err(Fault::run(format!("json: unsupported type: {}", map.kind())));
        }
        Value::Map(map) => write_map(text, map, depth)?,
        Value::Time(moment) => quote(text, &moment.rfc3339()),
        Value::Zone(_) => text.push_str("{}"),
        Value::Function(_) => {
            return Err(Fault::run(format!("json: unsupported type: {}", value.type_name())));
        }
    }
    Ok(())
}

fn write_list(text: &mut String, list: &List, depth: usize) -> Result<(), Fault> {
    if list.items().is_empty() {
        text.push_str("[]");
        return Ok(());
    }
    for (at, item) in list.items().iter().enumerate() {
        text.push_str(if at == 0 { "[" } else { "," });
        new_line(text, depth + 1);
        write(text, item, depth + 1)?;
    }
    new_line(text, depth);
    text.push(']');
    Ok(())
}

fn write_map(text: &mut String, map: &Map, depth: usize) -> Result<(), Fault> {
    if map.entries().is_empty() {
        text.push_str("{}");
        return Ok(());
    }
    for (at, (key, value)) in map.entries().iter().enumerate() {
        text.push_str(if at == 0 { "{" } else { "," });
        new_line(text, depth + 1);
        quote(text, &key.value().to_string());
        text.push_str(": ");
        write(text, value, depth + 1)?;
    }
    new_line(text, depth);
    text.push('}');
    Ok(())
}

fn new_line(text: &mut String, depth: usize) {
    text.push('\n');
    text.push_str(&"  ".repeat(depth));
}

/// Go also escapes what HTML would take for a tag.
fn quote(text: &mut String, inside: &str) {
    text.push('"');
    for letter in inside.chars() {
        match letter {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                text.push_str(&format!("\\u{:04x}", u32::from(letter)));
            }
            other => text.push(other),
        }
    }
    text.push('"');
}
