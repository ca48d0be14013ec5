//! The values of expressions: those of Go that conditions meet, each with the Go type it has there.

mod equal;
mod json;
mod print;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::environment::Function;
use crate::error::Fault;
use crate::time::{Moment, Zone};
use crate::types::{ListKind, MapKind, Type};

pub(crate) use equal::equal;
pub(crate) use json::to_json_text;

/// Lists and maps are nested no deeper: whatever walks a value does so with few calls on the stack.
pub const MOST_NESTED: u32 = 200;

/// A value.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// `nil`.
    #[default]
    Nil,
    /// A truth.
    Bool(bool),
    /// An integer of 64 bits, and which of Go's integer types it has.
    Int(IntKind, i64),
    /// A number with a fraction.
    Float(f64),
    /// A text.
    Text(Arc<str>),
    /// A list.
    List(List),
    /// A map.
    Map(Map),
    /// A moment in a time zone.
    Time(Moment),
    /// A span of time, in nanoseconds.
    Duration(i64),
    /// A time zone.
    Zone(Zone),
    /// A month, from 1.
    Month(u8),
    /// A day of the week, from 0 for Sunday.
    Weekday(u8),
    /// A function of the environment.
    Function(Function),
}

/// Which of Go's integer types an integer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IntKind {
    /// `int`.
    Int,
    /// `int64`.
    Int64,
    /// `uint8`.
    Byte,
}

/// A list; copies share its elements.
#[derive(Clone, Debug, PartialEq)]
pub struct List {
    kind: ListKind,
    items: Arc<[Value]>,
    /// Go tells a list that was never made from an empty one: `== nil` holds for it.
    is_nil: bool,
    depth: u32,
}

/// A map, in the order of its keys; copies share its entries.
#[derive(Clone, Debug, PartialEq)]
pub struct Map {
    kind: MapKind,
    entries: Arc<BTreeMap<Key, Value>>,
    depth: u32,
}

/// A key of a map. Integers and fractions are different keys, even where they are equal numbers.
#[derive(Clone, Debug)]
pub enum Key {
    /// `nil`.
    Nil,
    /// A truth.
    Bool(bool),
    /// An integer.
    Int(IntKind, i64),
    /// A number with a fraction.
    Float(f64),
    /// A text.
    Text(Arc<str>),
}

impl Value {
    /// A list of numbers, as a provider with several samples gives.
    pub fn floats(numbers: impl IntoIterator<Item = f64>) -> Value {
        let items = numbers.into_iter().map(Value::Float).collect();
        Value::List(List { kind: ListKind::Float, items, is_nil: false, depth: 1 })
    }

    /// A list of texts.
    pub fn texts<'t>(texts: impl IntoIterator<Item = &'t str>) -> Value {
        let items = texts.into_iter().map(Value::text).collect();
        Value::List(List { kind: ListKind::Text, items, is_nil: false, depth: 1 })
    }

    /// A text.
    pub fn text(text: &str) -> Value {
        Value::Text(Arc::from(text))
    }

    /// A moment: seconds since 1970, and nanoseconds of the next.
    pub fn time(seconds: i64, nanoseconds: u32) -> Value {
        Value::Time(Moment::utc(seconds, nanoseconds))
    }

    pub(crate) fn int(number: i64) -> Value {
        Value::Int(IntKind::Int, number)
    }

    pub(crate) fn bytes(bytes: &[u8]) -> Value {
        let items = bytes.iter().map(|byte| Value::Int(IntKind::Byte, i64::from(*byte)));
        let items = items.collect();
        Value::List(List { kind: ListKind::Byte, items, is_nil: false, depth: 1 })
    }

    /// A list with no particular kind of elements.
    pub(crate) fn list(items: Vec<Value>) -> Result<Value, Fault> {
        List::new(ListKind::Any, items).map(Value::List)
    }

    /// The type it has.
    pub fn type_of(&self) -> Type {
        match self {
            Value::Nil => Type::Nil,
            Value::Bool(_) => Type::Bool,
            Value::Int(IntKind::Int, _) => Type::Int,
            Value::Int(IntKind::Int64, _) => Type::Int64,
            Value::Int(IntKind::Byte, _) => Type::Byte,
            Value::Float(_) => Type::Float,
            Value::Text(_) => Type::Text,
            Value::List(list) => Type::List(list.kind, None),
            Value::Map(map) => Type::Map(map.kind),
            Value::Time(_) => Type::Time,
            Value::Duration(_) => Type::Duration,
            Value::Zone(_) => Type::Zone,
            Value::Month(_) => Type::Month,
            Value::Weekday(_) => Type::Weekday,
            Value::Function(function) => Type::Function(function.signature()),
        }
    }

    /// The name of its type, as Go prints it.
    pub fn type_name(&self) -> String {
        match self {
            Value::Nil => "<nil>".to_owned(),
            other => other.type_of().to_string(),
        }
    }

    /// Is it `nil`, or a list that was never made?
    pub fn is_nil(&self) -> bool {
        match self {
            Value::Nil => true,
            Value::List(list) => list.is_nil,
            _ => false,
        }
    }

    fn depth(&self) -> u32 {
        match self {
            Value::List(list) => list.depth,
            Value::Map(map) => map.depth,
            _ => 0,
        }
    }
}

impl List {
    pub(crate) fn new(kind: ListKind, items: Vec<Value>) -> Result<List, Fault> {
        let depth = nested(items.iter())?;
        Ok(List { kind, items: items.into(), is_nil: false, depth })
    }

    /// A list that was never made.
    pub(crate) fn nil_of(kind: ListKind) -> List {
        List { kind, items: Arc::from([]), is_nil: true, depth: 1 }
    }

    /// Which of Go's lists it is.
    pub fn kind(&self) -> ListKind {
        self.kind
    }

    /// Its elements.
    pub fn items(&self) -> &[Value] {
        &self.items
    }

    /// A part of it, of the same kind.
    pub(crate) fn part(&self, from: usize, to: usize) -> List {
        // A part of a pair is no pair any more.
        let kind = if self.kind == ListKind::Pair { ListKind::Any } else { self.kind };
        let items = self.items.get(from..to).unwrap_or_default();
        List { kind, items: items.into(), is_nil: self.is_nil, depth: self.depth }
    }
}

impl Map {
    pub(crate) fn new(kind: MapKind, entries: BTreeMap<Key, Value>) -> Result<Map, Fault> {
        let depth = nested(entries.values())?;
        Ok(Map { kind, entries: Arc::new(entries), depth })
    }

    /// Which of Go's maps it is.
    pub fn kind(&self) -> MapKind {
        self.kind
    }

    /// Its keys and values.
    pub fn entries(&self) -> &BTreeMap<Key, Value> {
        &self.entries
    }

    /// The value of a text.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.entries.get(&Key::Text(Arc::from(key)))
    }

    /// What a look-up of this value finds. Go looks up the zero of the key's type for `nil`.
    pub(crate) fn look_up(&self, key: &Value) -> Result<Option<&Value>, Fault> {
        let wrong = |wanted: &str| {
            Err(Fault::run(format!(
                "reflect.Value.MapIndex: value of type {} is not assignable to type {wanted}",
                key.type_name()
            )))
        };
        let key = match (self.kind, key) {
            (MapKind::Text | MapKind::TextSet, Value::Nil) => Key::Text(Arc::from("")),
            (MapKind::IntSet, Value::Nil) => Key::Int(IntKind::Int, 0),
            (MapKind::Text | MapKind::TextSet, Value::Text(_)) => Key::of(key)?,
            (MapKind::IntSet, Value::Int(IntKind::Int, _)) => Key::of(key)?,
            (MapKind::Text | MapKind::TextSet, _) => return wrong("string"),
            (MapKind::IntSet, _) => return wrong("int"),
            (MapKind::Any | MapKind::Groups, key) => Key::of(key)?,
        };
        Ok(self.entries.get(&key))
    }
}

impl Key {
    pub(crate) fn of(value: &Value) -> Result<Key, Fault> {
        match value {
            Value::Nil => Ok(Key::Nil),
            Value::Bool(truth) => Ok(Key::Bool(*truth)),
            Value::Int(kind, number) => Ok(Key::Int(*kind, *number)),
            Value::Float(number) => Ok(Key::Float(*number)),
            Value::Text(text) => Ok(Key::Text(Arc::clone(text))),
            other => {
                let name = other.type_name();
                Err(Fault::run(format!("runtime error: hash of unhashable type: {name}")))
            }
        }
    }

    /// The key as a value.
    pub fn value(&self) -> Value {
        match self {
            Key::Nil => Value::Nil,
            Key::Bool(truth) => Value::Bool(*truth),
            Key::Int(kind, number) => Value::Int(*kind, *number),
            Key::Float(number) => Value::Float(*number),
            Key::Text(text) => Value::Text(Arc::clone(text)),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Key::Nil => 0,
            Key::Int(..) => 1,
            Key::Float(_) => 2,
            Key::Text(_) => 3,
            Key::Bool(_) => 4,
        }
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Key::Bool(one), Key::Bool(other)) => one.cmp(other),
            (Key::Int(kind, one), Key::Int(other_kind, other)) => {
                kind.cmp(other_kind).then(one.cmp(other))
            }
            // Both zeros are one key.
            (Key::Float(one), Key::Float(other)) => (one + 0.0).total_cmp(&(other + 0.0)),
            (Key::Text(one), Key::Text(other)) => one.cmp(other),
            (one, other) => one.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Key {}

fn nested<'v>(inside: impl Iterator<Item = &'v Value>) -> Result<u32, Fault> {
    let depth = 1 + inside.map(Value::depth).max().unwrap_or(0);
    if depth > MOST_NESTED {
        return Err(Fault::limit(format!("values are nested deeper than {MOST_NESTED} levels")));
    }
    Ok(depth)
}
