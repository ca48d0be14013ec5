//! JSON to gob, along the table of types. Definitions precede the first value that needs them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value as Json;

use super::wire::{put_bytes, put_int, put_uint};
use crate::schema::{Field, Schema, Shape};

/// The argument of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Argument<'a> {
    /// `true`, as the calls of go-plugin itself have it.
    True,
    /// A text, likewise.
    Text(&'a str),
    /// Nothing, where anything could stand.
    Nil,
    /// A struct, where anything could stand.
    Struct {
        /// The name under which the plugin knows its type.
        registered: &'a str,
        /// Its type in the table.
        name: &'static str,
        /// Its fields.
        value: &'a Json,
    },
}

/// Why a value cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: expected {expected}")]
pub struct EncodeError {
    path: String,
    expected: &'static str,
}

/// One direction of a stream: what was defined on it stays so.
#[derive(Debug)]
pub(crate) struct Encoder {
    schema: &'static Schema,
    ids: BTreeMap<Shape, i64>,
    next: i64,
}

const BOOL: i64 = 1;
const INT: i64 = 2;
const UINT: i64 = 3;
const BYTES: i64 = 5;
const TEXT: i64 = 6;
const INTERFACE: i64 = 8;

impl Encoder {
    /// Ids below 64 are Go's own.
    pub fn new(schema: &'static Schema, first_id: i64) -> Self {
        Encoder { schema, ids: BTreeMap::new(), next: first_id }
    }

    /// The head of a call.
    pub fn request(&mut self, method: &str, number: u64) -> Vec<u8> {
        let mut out = Vec::new();
        let known = Shape::Struct("Request");
        let id = self.ids.get(&known).copied().unwrap_or_else(|| {
            let fields = [("ServiceMethod", TEXT), ("Seq", UINT)];
            let id = self.take_id(known);
            define(&mut out, id, |out| put_struct_type(out, "Request", id, &fields));
            id
        });
        let mut value = Vec::new();
        put_uint(&mut value, 1);
        put_bytes(&mut value, method.as_bytes());
        if number != 0 {
            put_uint(&mut value, 1);
            put_uint(&mut value, number);
        }
        value.push(0);
        put_message(&mut out, id, &value);
        out
    }

    /// The argument of a call.
    pub fn argument(&mut self, argument: Argument<'_>) -> Result<Vec<u8>, EncodeError> {
        let mut out = Vec::new();
        match argument {
            Argument::True => put_message(&mut out, BOOL, &[0, 1]),
            Argument::Text(text) => {
                let mut value = vec![0];
                put_bytes(&mut value, text.as_bytes());
                put_message(&mut out, TEXT, &value);
            }
            Argument::Nil => put_message(&mut out, INTERFACE, &[0, 0]),
            Argument::Struct { registered, name, value } => {
                let mut inner = Vec::new();
                self.put_struct(&mut inner, name, value, &mut Path::default())?;
                let id = self.define(&Shape::Struct(name), &mut out);
                let mut whole = vec![0];
                put_bytes(&mut whole, registered.as_bytes());
                put_int(&mut whole, id);
                put_bytes(&mut whole, &inner);
                put_message(&mut out, INTERFACE, &whole);
            }
        }
        Ok(out)
    }

    /// Why an argument cannot be sent, before anything of it is.
    pub fn check(&self, argument: Argument<'_>) -> Result<(), EncodeError> {
        match argument {
            Argument::Struct { name, value, .. } => {
                self.put_struct(&mut Vec::new(), name, value, &mut Path::default())
            }
            Argument::True | Argument::Text(_) | Argument::Nil => Ok(()),
        }
    }

    fn take_id(&mut self, shape: Shape) -> i64 {
        let id = self.next;
        self.next += 1;
        self.ids.insert(shape, id);
        id
    }

    /// The id of a shape, defined before it is used: the outer first, then its parts.
    fn define(&mut self, shape: &Shape, out: &mut Vec<u8>) -> i64 {
        let known = match shape {
            Shape::Text => Some(TEXT),
            Shape::Int => Some(INT),
            Shape::Bool => Some(BOOL),
            Shape::Bytes => Some(BYTES),
            other => self.ids.get(other).copied(),
        };
        if let Some(id) = known {
            return id;
        }
        let id = self.take_id(shape.clone());
        let mut parts = Vec::new();
        match shape {
            Shape::List(inner) => {
                let inner = self.define(inner, &mut parts);
                define(out, id, |out| put_list_type(out, id, inner));
            }
            Shape::Map(inner) => {
                let inner = self.define(inner, &mut parts);
                define(out, id, |out| put_map_type(out, id, inner));
            }
            Shape::Time => define(out, id, |out| put_gob_encoder_type(out, id)),
            other => {
                let name = match other {
                    Shape::Struct(name) => name,
                    _ => "IntOrString",
                };
                let fields = self.schema.fields(name).iter();
                let fields: Vec<(&str, i64)> = fields
                    .map(|field| (field.name, self.define(&field.shape, &mut parts)))
                    .collect();
                define(out, id, |out| put_struct_type(out, name, id, &fields));
            }
        }
        out.extend_from_slice(&parts);
        id
    }

    fn put_struct(
        &self,
        out: &mut Vec<u8>,
        name: &str,
        value: &Json,
        path: &mut Path,
    ) -> Result<(), EncodeError> {
        if !value.is_object() && !value.is_null() {
            return Err(path.expected("an object"));
        }
        let mut last = -1;
        for (number, field) in (0i64..).zip(self.schema.fields(name)) {
            let inner = if field.json.is_empty() { value } else { &value[field.json.as_str()] };
            path.0.push(field.json.clone());
            if !is_left_out(field, inner) {
                put_uint(out, (number - last).unsigned_abs());
                self.put(out, &field.shape, inner, path)?;
                last = number;
            }
            path.0.pop();
        }
        out.push(0);
        Ok(())
    }

    fn put(
        &self,
        out: &mut Vec<u8>,
        shape: &Shape,
        value: &Json,
        path: &mut Path,
    ) -> Result<(), EncodeError> {
        match shape {
            Shape::Text => {
                let text = value.as_str().ok_or_else(|| path.expected("a text"))?;
                put_bytes(out, text.as_bytes());
            }
            Shape::Int => {
                let number = value.as_i64().ok_or_else(|| path.expected("a whole number"))?;
                put_int(out, number);
            }
            Shape::Bool => {
                let flag = value.as_bool().ok_or_else(|| path.expected("true or false"))?;
                put_uint(out, u64::from(flag));
            }
            Shape::Bytes => put_bytes(out, value.to_string().as_bytes()),
            Shape::Time => put_bytes(out, &time_of(value, path)?),
            Shape::IntOrString => put_int_or_string(out, value, path)?,
            // A quantity has no exported fields that carry its value: Go's own encoder loses it, too.
            Shape::Struct("Quantity") => out.push(0),
            Shape::Struct(name) => self.put_struct(out, name, value, path)?,
            Shape::List(inner) => {
                let items = value.as_array().ok_or_else(|| path.expected("a list"))?;
                put_uint(out, items.len() as u64);
                for item in items {
                    self.put_element(out, inner, item, path)?;
                }
            }
            Shape::Map(inner) => {
                let entries = value.as_object().ok_or_else(|| path.expected("an object"))?;
                put_uint(out, entries.len() as u64);
                for (key, item) in entries {
                    put_bytes(out, key.as_bytes());
                    path.0.push(key.clone());
                    self.put_element(out, inner, item, path)?;
                    path.0.pop();
                }
            }
        }
        Ok(())
    }

    /// What stands in a list or a map is never left out: nothing is its zero.
    fn put_element(
        &self,
        out: &mut Vec<u8>,
        shape: &Shape,
        value: &Json,
        path: &mut Path,
    ) -> Result<(), EncodeError> {
        match shape {
            Shape::Text | Shape::Bytes if value.is_null() => out.push(0),
            _ => self.put(out, shape, value, path)?,
        }
        Ok(())
    }
}

/// Zero is not sent, and nor is what is not there; a struct that is no pointer always is.
fn is_left_out(field: &Field, value: &Json) -> bool {
    match &field.shape {
        Shape::Struct(_) | Shape::IntOrString => field.is_pointer && value.is_null(),
        Shape::Bytes | Shape::Map(_) => value.is_null(),
        Shape::List(_) => value.as_array().is_none_or(Vec::is_empty),
        _ => match value {
            Json::Null | Json::Bool(false) => true,
            Json::String(text) => text.is_empty(),
            Json::Number(number) => number.as_i64() == Some(0),
            _ => false,
        },
    }
}

/// A struct {Type, IntVal, StrVal}: 0 a number, 1 a text.
fn put_int_or_string(out: &mut Vec<u8>, value: &Json, path: &Path) -> Result<(), EncodeError> {
    match value {
        Json::Null => {}
        Json::String(text) => {
            put_uint(out, 1);
            put_int(out, 1);
            if !text.is_empty() {
                put_uint(out, 2);
                put_bytes(out, text.as_bytes());
            }
        }
        Json::Number(_) => {
            let number = value.as_i64().ok_or_else(|| path.expected("a whole number"))?;
            if number != 0 {
                put_uint(out, 2);
                put_int(out, number);
            }
        }
        _ => return Err(path.expected("a number or a text")),
    }
    out.push(0);
    Ok(())
}

/// A version, seconds since the year 1, nanoseconds, and -1 for UTC.
fn time_of(value: &Json, path: &Path) -> Result<Vec<u8>, EncodeError> {
    const YEAR_1: i64 = 62_135_596_800;
    let time = value.as_str().and_then(|text| text.parse::<Timestamp>().ok());
    let time = time.ok_or_else(|| path.expected("a time"))?;
    let (mut seconds, mut nanoseconds) = (time.as_second(), time.subsec_nanosecond());
    if nanoseconds < 0 {
        seconds -= 1;
        nanoseconds += 1_000_000_000;
    }
    let mut bytes = vec![1];
    bytes.extend_from_slice(&(seconds + YEAR_1).to_be_bytes());
    bytes.extend_from_slice(&nanoseconds.to_be_bytes());
    bytes.extend_from_slice(&[0xff, 0xff]);
    Ok(bytes)
}

/// Where in the argument a value stands.
#[derive(Debug, Default)]
struct Path(Vec<String>);

impl Path {
    fn expected(&self, expected: &'static str) -> EncodeError {
        let words = self.0.iter().filter(|word| !word.is_empty()).map(String::as_str);
        EncodeError { path: words.collect::<Vec<_>>().join("."), expected }
    }
}

fn put_message(out: &mut Vec<u8>, id: i64, value: &[u8]) {
    let mut body = Vec::with_capacity(value.len() + 9);
    put_int(&mut body, id);
    body.extend_from_slice(value);
    put_bytes(out, &body);
}

fn define(out: &mut Vec<u8>, id: i64, put_type: impl FnOnce(&mut Vec<u8>)) {
    let mut body = Vec::new();
    put_type(&mut body);
    put_message(out, -id, &body);
}

/// The name and the id that every definition begins with.
fn put_common(out: &mut Vec<u8>, name: &str, id: i64) {
    out.push(1);
    if !name.is_empty() {
        out.push(1);
        put_bytes(out, name.as_bytes());
    }
    out.push(if name.is_empty() { 2 } else { 1 });
    put_int(out, id);
    out.push(0);
}

fn put_struct_type(out: &mut Vec<u8>, name: &str, id: i64, fields: &[(&str, i64)]) {
    out.push(3);
    put_common(out, name, id);
    if !fields.is_empty() {
        out.push(1);
        put_uint(out, fields.len() as u64);
        for (name, id) in fields {
            out.push(1);
            put_bytes(out, name.as_bytes());
            out.push(1);
            put_int(out, *id);
            out.push(0);
        }
    }
    out.extend_from_slice(&[0, 0]);
}

fn put_list_type(out: &mut Vec<u8>, id: i64, element: i64) {
    out.push(2);
    put_common(out, "", id);
    out.push(1);
    put_int(out, element);
    out.extend_from_slice(&[0, 0]);
}

fn put_map_type(out: &mut Vec<u8>, id: i64, element: i64) {
    out.push(4);
    put_common(out, "", id);
    out.push(1);
    put_int(out, TEXT);
    out.push(1);
    put_int(out, element);
    out.extend_from_slice(&[0, 0]);
}

fn put_gob_encoder_type(out: &mut Vec<u8>, id: i64) {
    out.push(5);
    put_common(out, "", id);
    // GobEncoderT holds nothing else.
    out.extend_from_slice(&[0, 0]);
}
