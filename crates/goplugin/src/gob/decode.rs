//! gob to values, along the definitions that the other side sends. It may send anything: whatever it
//! claims about sizes is compared with what is there before memory is taken.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::wire::Cursor;
use crate::{DEFINITION_LIMIT, DEPTH_LIMIT, MESSAGE_LIMIT, TEXT_LIMIT, VALUE_LIMIT};

/// A value that a plugin sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// true or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A whole number without a sign.
    Uint(u64),
    /// A floating-point number.
    Float(f64),
    /// Bytes, also those of types that encode themselves.
    Bytes(Vec<u8>),
    /// A text; what is no UTF-8 in it was replaced.
    Text(String),
    /// A list or an array.
    List(Vec<Value>),
    /// Keys and values.
    Map(Vec<(Value, Value)>),
    /// Fields by their names in Go. Zero values are not sent.
    Struct(Vec<(Arc<str>, Value)>),
}

impl Value {
    /// The field of a struct, where it was sent.
    pub fn field(&self, name: &str) -> Option<&Value> {
        let Value::Struct(fields) = self else { return None };
        fields.iter().find(|(known, _)| **known == *name).map(|(_, value)| value)
    }

    /// The text of a field; empty where it was not sent.
    pub fn text(&self, name: &str) -> &str {
        match self.field(name) {
            Some(Value::Text(text)) => text,
            _ => "",
        }
    }

    /// The number of a field; 0 where it was not sent.
    pub fn int(&self, name: &str) -> i64 {
        match self.field(name) {
            Some(Value::Int(number)) => *number,
            Some(Value::Uint(number)) => i64::try_from(*number).unwrap_or(i64::MAX),
            _ => 0,
        }
    }

    /// The bytes of a field; none where it was not sent.
    pub fn bytes(&self, name: &str) -> &[u8] {
        match self.field(name) {
            Some(Value::Bytes(bytes)) => bytes,
            _ => &[],
        }
    }
}

/// Why a message cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GobError {
    /// It ends too early.
    #[error("gob: the message ends before its value does")]
    Short,
    /// It goes on after its value.
    #[error("gob: extra data after the value")]
    Extra,
    /// A number is longer than any.
    #[error("gob: a number of more than 8 bytes")]
    Number,
    /// It is too large.
    #[error("gob: {what} is larger than the limit of {limit}")]
    Limit {
        /// What.
        what: &'static str,
        /// How much is allowed.
        limit: usize,
    },
    /// A type is not defined.
    #[error("gob: type {0} is not defined, or not one that answers have")]
    UnknownType(i64),
    /// A type is defined twice, or badly.
    #[error("gob: the definition of type {0} is not valid")]
    Definition(i64),
    /// A struct has no such field.
    #[error("gob: a field that its struct does not have")]
    Field,
}

/// Cuts a stream into messages.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    buffer: Vec<u8>,
    /// Where the next message begins: many small ones are cut off together.
    at: usize,
}

impl Messages {
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.drain(..std::mem::take(&mut self.at));
        self.buffer.extend_from_slice(bytes);
    }

    /// Bytes that are kept.
    pub fn held(&self) -> usize {
        self.buffer.len()
    }

    /// The next message without its length, once it is complete.
    pub fn next(&mut self) -> Result<Option<Vec<u8>>, GobError> {
        let mut cursor = Cursor::new(&self.buffer[self.at..]);
        let length = match cursor.uint() {
            Ok(length) => usize::try_from(length).unwrap_or(usize::MAX),
            Err(GobError::Short) => return Ok(None),
            Err(error) => return Err(error),
        };
        if length > MESSAGE_LIMIT {
            return Err(GobError::Limit { what: "a message", limit: MESSAGE_LIMIT });
        }
        if cursor.remaining() < length {
            return Ok(None);
        }
        let start = self.buffer.len() - cursor.remaining();
        let message = self.buffer[start..start + length].to_vec();
        self.at = start + length;
        Ok(Some(message))
    }
}

/// One direction of a stream: what was defined on it stays so.
#[derive(Debug)]
pub(crate) struct Decoder {
    types: BTreeMap<i64, Type>,
    /// Bytes of definitions so far.
    defined: usize,
}

#[derive(Clone, Debug)]
enum Type {
    Bool,
    Int,
    Uint,
    Float,
    Bytes,
    Text,
    List(i64),
    Map(i64, i64),
    Struct(Arc<[(Arc<str>, i64)]>),
}

const FIRST_OWN: i64 = 64;
const WIRE_TYPE: i64 = 16;

impl Decoder {
    pub fn new() -> Self {
        Decoder { types: bootstrap(), defined: 0 }
    }

    /// Takes in a message: the value it holds, or nothing where it defines a type.
    pub fn take(&mut self, message: &[u8]) -> Result<Option<Value>, GobError> {
        let mut cursor = Cursor::new(message);
        let id = cursor.int()?;
        if id < 0 {
            let limit = DEFINITION_LIMIT;
            self.defined = self.defined.saturating_add(message.len());
            if self.defined > limit {
                return Err(GobError::Limit { what: "the sum of definitions", limit });
            }
            let id = id.checked_neg().ok_or(GobError::Number)?;
            let wire = Reading::new(&self.types).value(&mut cursor, WIRE_TYPE, 0)?;
            at_end(&cursor)?;
            let defined = type_of(&wire).ok_or(GobError::Definition(id))?;
            if id < FIRST_OWN || self.types.contains_key(&id) {
                return Err(GobError::Definition(id));
            }
            self.types.insert(id, defined);
            return Ok(None);
        }
        if id < FIRST_OWN && id > 6 {
            return Err(GobError::UnknownType(id));
        }
        let is_struct = matches!(self.types.get(&id), Some(Type::Struct(_)));
        if !is_struct && cursor.uint()? != 0 {
            return Err(GobError::Field);
        }
        let value = Reading::new(&self.types).value(&mut cursor, id, 0)?;
        at_end(&cursor)?;
        Ok(Some(value))
    }
}

fn at_end(cursor: &Cursor<'_>) -> Result<(), GobError> {
    if cursor.remaining() == 0 { Ok(()) } else { Err(GobError::Extra) }
}

/// Reads the values of one message, and counts them.
struct Reading<'t> {
    types: &'t BTreeMap<i64, Type>,
    left: usize,
}

impl<'t> Reading<'t> {
    fn new(types: &'t BTreeMap<i64, Type>) -> Self {
        Reading { types, left: VALUE_LIMIT }
    }

    fn value(&mut self, from: &mut Cursor<'_>, id: i64, depth: usize) -> Result<Value, GobError> {
        if depth > DEPTH_LIMIT {
            return Err(GobError::Limit { what: "the nesting", limit: DEPTH_LIMIT });
        }
        let limit = VALUE_LIMIT;
        let too_many = GobError::Limit { what: "the count of values", limit };
        self.left = self.left.checked_sub(1).ok_or(too_many)?;
        let types = self.types;
        Ok(match types.get(&id).ok_or(GobError::UnknownType(id))? {
            Type::Bool => Value::Bool(from.uint()? != 0),
            Type::Int => Value::Int(from.int()?),
            Type::Uint => Value::Uint(from.uint()?),
            Type::Float => Value::Float(f64::from_bits(from.uint()?.swap_bytes())),
            Type::Bytes => Value::Bytes(string(from)?.to_vec()),
            Type::Text => Value::Text(String::from_utf8_lossy(string(from)?).into_owned()),
            Type::List(element) => {
                let count = from.count()?;
                let items = (0..count).map(|_| self.value(from, *element, depth + 1));
                Value::List(items.collect::<Result<_, _>>()?)
            }
            Type::Map(key, element) => {
                let count = from.count()?;
                let mut entries = Vec::new();
                for _ in 0..count {
                    let key = self.value(from, *key, depth + 1)?;
                    entries.push((key, self.value(from, *element, depth + 1)?));
                }
                Value::Map(entries)
            }
            Type::Struct(known) => Value::Struct(self.fields(from, known, depth)?),
        })
    }

    fn fields(
        &mut self,
        from: &mut Cursor<'_>,
        known: &[(Arc<str>, i64)],
        depth: usize,
    ) -> Result<Vec<(Arc<str>, Value)>, GobError> {
        let mut fields = Vec::new();
        let mut next = 0usize; // One more than the number of the field before.
        loop {
            let delta = from.uint()?;
            if delta == 0 {
                return Ok(fields);
            }
            let delta = usize::try_from(delta).map_err(|_| GobError::Field)?;
            next = next.checked_add(delta).ok_or(GobError::Field)?;
            let (name, id) = known.get(next - 1).ok_or(GobError::Field)?;
            fields.push((Arc::clone(name), self.value(from, *id, depth + 1)?));
        }
    }
}

fn string<'a>(from: &mut Cursor<'a>) -> Result<&'a [u8], GobError> {
    let length = from.count()?;
    if length > TEXT_LIMIT {
        return Err(GobError::Limit { what: "a text", limit: TEXT_LIMIT });
    }
    from.take(length)
}

/// Go's own types, and those that definitions are made of.
fn bootstrap() -> BTreeMap<i64, Type> {
    let fields = |fields: &[(&str, i64)]| {
        Type::Struct(fields.iter().map(|(name, id)| (Arc::from(*name), *id)).collect())
    };
    const COMMON: i64 = 17;
    const FIELD: i64 = 18;
    const FIELDS: i64 = 19;
    let common = ("CommonType", COMMON);
    let whole = [("ArrayT", 20), ("SliceT", 21), ("StructT", 22), ("MapT", 23)];
    let opaque = [("GobEncoderT", 24), ("BinaryMarshalerT", 24), ("TextMarshalerT", 24)];
    BTreeMap::from([
        (1, Type::Bool),
        (2, Type::Int),
        (3, Type::Uint),
        (4, Type::Float),
        (5, Type::Bytes),
        (6, Type::Text),
        (WIRE_TYPE, fields(&[whole.as_slice(), opaque.as_slice()].concat())),
        (COMMON, fields(&[("Name", 6), ("Id", 2)])),
        (FIELD, fields(&[("Name", 6), ("Id", 2)])),
        (FIELDS, Type::List(FIELD)),
        (20, fields(&[common, ("Elem", 2), ("Len", 2)])),
        (21, fields(&[common, ("Elem", 2)])),
        (22, fields(&[common, ("Field", FIELDS)])),
        (23, fields(&[common, ("Key", 2), ("Elem", 2)])),
        (24, fields(&[common])),
    ])
}

/// What a definition says; `None` where it says nothing that can be used.
fn type_of(wire: &Value) -> Option<Type> {
    let Value::Struct(fields) = wire else { return None };
    let [(kind, body)] = fields.as_slice() else { return None };
    Some(match &**kind {
        "ArrayT" | "SliceT" => Type::List(body.int("Elem")),
        "MapT" => Type::Map(body.int("Key"), body.int("Elem")),
        "StructT" => {
            let fields = match body.field("Field") {
                Some(Value::List(fields)) => fields.as_slice(),
                _ => &[],
            };
            let field = |field: &Value| (Arc::from(field.text("Name")), field.int("Id"));
            Type::Struct(fields.iter().map(field).collect())
        }
        _ => Type::Bytes,
    })
}
