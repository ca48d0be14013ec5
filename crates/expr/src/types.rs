//! What is known of a value before it is there: the types of Go, as far as expressions meet them.

use std::fmt;
use std::sync::Arc;

/// The type of a variable, an argument or a part of an expression.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Type {
    /// Nothing is known.
    #[default]
    Unknown,
    /// Declared as "anything", such as an element of a JSON document.
    Any,
    /// The value `nil`.
    Nil,
    /// `bool`.
    Bool,
    /// `int`.
    Int,
    /// `int64`.
    Int64,
    /// `uint8`: one byte of a text.
    Byte,
    /// `float64`.
    Float,
    /// `string`.
    Text,
    /// A list, and what is known of its elements beyond the kind.
    List(ListKind, Option<Box<Type>>),
    /// A map.
    Map(MapKind),
    /// `time.Time`.
    Time,
    /// `time.Duration`.
    Duration,
    /// `*time.Location`.
    Zone,
    /// `time.Month`.
    Month,
    /// `time.Weekday`.
    Weekday,
    /// A function.
    Function(Arc<Signature>),
}

/// The lists of Go that expressions meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// `[]interface {}`: of a JSON document, a literal, `map`, `filter`.
    Any,
    /// `[]float64`: several samples of a provider.
    Float,
    /// `[]int`: a range.
    Int,
    /// `[]string`: `split`.
    Text,
    /// `[]uint8`: a literal of bytes.
    Byte,
    /// `[2]interface {}`: a key and its value.
    Pair,
    /// `[][2]interface {}`: `toPairs`.
    Pairs,
}

/// The maps of Go that expressions meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapKind {
    /// `map[string]interface {}`: of a JSON document or a literal.
    Text,
    /// `map[interface {}]interface {}`: `fromPairs`.
    Any,
    /// `map[interface {}][]interface {}`: `groupBy`.
    Groups,
    /// `map[string]struct {}`: texts behind `in`.
    TextSet,
    /// `map[int]struct {}`: integers behind `in`.
    IntSet,
}

/// What a function takes and gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Signature {
    /// What it takes; the last is repeated where the function is variadic.
    pub parameters: Vec<Type>,
    /// Does the last parameter stand for any number of arguments?
    pub is_variadic: bool,
    /// What it gives.
    pub result: Type,
}

/// The kinds that lists and assignments are compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Invalid,
    Interface,
    Bool,
    Int,
    Int64,
    Byte,
    Float,
    Text,
    List,
    Array,
    Map,
    Struct,
    Pointer,
    Function,
}

impl Type {
    /// A list of values of which nothing but this is known.
    pub(crate) fn list_of(element: Type) -> Type {
        Type::List(ListKind::Any, Some(Box::new(element)))
    }

    pub(crate) const ANYTHING: Type = Type::List(ListKind::Any, None);

    pub(crate) fn is_unknown(&self) -> bool {
        matches!(self, Type::Unknown | Type::Any)
    }

    pub(crate) fn is_integer(&self) -> bool {
        matches!(self, Type::Int | Type::Int64 | Type::Byte)
    }

    pub(crate) fn is_number(&self) -> bool {
        self.is_integer() || *self == Type::Float
    }

    pub(crate) fn is_list(&self) -> bool {
        matches!(self, Type::List(..))
    }

    pub(crate) fn shape(&self) -> Shape {
        match self {
            Type::Unknown | Type::Nil => Shape::Invalid,
            Type::Any => Shape::Interface,
            Type::Bool => Shape::Bool,
            Type::Int | Type::Month | Type::Weekday => Shape::Int,
            Type::Int64 | Type::Duration => Shape::Int64,
            Type::Byte => Shape::Byte,
            Type::Float => Shape::Float,
            Type::Text => Shape::Text,
            Type::List(ListKind::Pair, _) => Shape::Array,
            Type::List(..) => Shape::List,
            Type::Map(_) => Shape::Map,
            Type::Time => Shape::Struct,
            Type::Zone => Shape::Pointer,
            Type::Function(_) => Shape::Function,
        }
    }

    /// What an element is, of a list or of a map.
    pub(crate) fn element(&self) -> Type {
        match self {
            Type::List(_, Some(element)) => (**element).clone(),
            Type::List(kind, None) => kind.element(),
            Type::Map(MapKind::Groups) => Type::ANYTHING,
            Type::Map(_) => Type::Any,
            _ => Type::Unknown,
        }
    }

    /// What a key of a map is.
    pub(crate) fn key(&self) -> Type {
        match self {
            Type::Map(MapKind::Text | MapKind::TextSet) => Type::Text,
            Type::Map(MapKind::IntSet) => Type::Int,
            Type::Map(_) => Type::Any,
            _ => Type::Unknown,
        }
    }

    /// May a value of this type stand where that one is wanted?
    pub(crate) fn is_assignable_to(&self, wanted: &Type) -> bool {
        if *self == Type::Nil {
            let holds_nil = [Shape::Interface, Shape::List, Shape::Map, Shape::Pointer];
            return holds_nil.contains(&wanted.shape()) || wanted.shape() == Shape::Function;
        }
        match (self, wanted) {
            (Type::Unknown, _) | (_, Type::Unknown) => false,
            (_, Type::Any) => true,
            (Type::List(one, _), Type::List(other, _)) => one == other,
            (one, other) => one == other,
        }
    }

    /// May the two be compared with `==`?
    pub(crate) fn is_comparable_to(&self, other: &Type) -> bool {
        self.is_unknown()
            || other.is_unknown()
            || *self == Type::Nil
            || *other == Type::Nil
            || self.is_number() && other.is_number()
            || self.is_list() && other.is_list()
            || self.is_assignable_to(other)
    }
}

impl ListKind {
    pub(crate) fn element(self) -> Type {
        match self {
            ListKind::Any | ListKind::Pair => Type::Any,
            ListKind::Float => Type::Float,
            ListKind::Int => Type::Int,
            ListKind::Text => Type::Text,
            ListKind::Byte => Type::Byte,
            ListKind::Pairs => Type::List(ListKind::Pair, None),
        }
    }
}

/// As Go writes the type.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Type::Unknown | Type::Nil => "unknown",
            Type::Any => "interface {}",
            Type::Bool => "bool",
            Type::Int => "int",
            Type::Int64 => "int64",
            Type::Byte => "uint8",
            Type::Float => "float64",
            Type::Text => "string",
            Type::List(kind, _) => return kind.fmt(f),
            Type::Map(kind) => return kind.fmt(f),
            Type::Time => "time.Time",
            Type::Duration => "time.Duration",
            Type::Zone => "*time.Location",
            Type::Month => "time.Month",
            Type::Weekday => "time.Weekday",
            Type::Function(signature) => return signature.fmt(f),
        })
    }
}

impl fmt::Display for ListKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ListKind::Any => "[]interface {}",
            ListKind::Float => "[]float64",
            ListKind::Int => "[]int",
            ListKind::Text => "[]string",
            ListKind::Byte => "[]uint8",
            ListKind::Pair => "[2]interface {}",
            ListKind::Pairs => "[][2]interface {}",
        })
    }
}

impl fmt::Display for MapKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MapKind::Text => "map[string]interface {}",
            MapKind::Any => "map[interface {}]interface {}",
            MapKind::Groups => "map[interface {}][]interface {}",
            MapKind::TextSet => "map[string]struct {}",
            MapKind::IntSet => "map[int]struct {}",
        })
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("func(")?;
        for (at, parameter) in self.parameters.iter().enumerate() {
            let is_rest = self.is_variadic && at + 1 == self.parameters.len();
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{}{parameter}", if is_rest { "..." } else { "" })?;
        }
        write!(f, ") {}", self.result)
    }
}
