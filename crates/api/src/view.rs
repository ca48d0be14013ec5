//! One description of a field gives its Rust field, its JSON, its schema in the CRD
//! and its text for `kubectl explain`, so that they cannot drift apart.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserializer, forward_to_deserialize_any};

/// Declares API structs. Every field has a doc comment and is one of
///
/// - `name: Type,` left out of the JSON when it has its default value, as Go's `omitempty`;
/// - `required name: Type,` always written, and required by the CRD;
/// - `always name: Type,` always written, not required.
///
/// JSON names are the camelCase of the Rust names, or what `as "NAME"` says.
/// `=> expression` replaces the schema that follows from the type.
///
/// Fields stand in the order in which Go writes them: hashes are made of the JSON text.
/// Nothing is required when reading, and unknown fields are ignored. Rare large members are
/// boxed: thousands of rollouts are kept in memory, and most of them lack most members.
macro_rules! view {
    ($($(#[$about:meta])* pub struct $name:ident { $($fields:tt)* })+) => {
        $(view!(@field [$(#[$about])*] $name {} {} $($fields)*);)+
    };
    (@field [$($about:tt)*] $name:ident { $($done:tt)* } { $($schema:tt)* }) => {
        $($about)*
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default, rename_all = "camelCase", remote = "Self")]
        pub struct $name { $($done)* }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                Self::serialize(self, serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::deserialize($crate::view::ObjectOnly(deserializer))
            }
        }

        impl $crate::schema::Schema for $name {
            fn schema() -> serde_json::Value {
                $crate::schema::object([$($schema)*])
            }
        }

        impl $crate::patch::Difference for $name {
            fn difference(&self, new: &Self) -> Option<serde_json::Value> {
                $crate::patch::between(self, new)
            }
        }
    };
    (@field $about:tt $name:ident { $($done:tt)* } { $($schema:tt)* }
        $(#[doc = $doc:literal])+ required $field:ident : $type:ty $(=> $special:expr)?,
        $($rest:tt)*
    ) => {
        view!(@field $about $name
            { $($done)* $(#[doc = $doc])+ pub $field: $type, }
            { $($schema)*
              (true, view!(@name $field), concat!($($doc),+), view!(@schema $type $(, $special)?)), }
            $($rest)*);
    };
    (@field $about:tt $name:ident { $($done:tt)* } { $($schema:tt)* }
        $(#[doc = $doc:literal])+ always $field:ident : $type:ty $(=> $special:expr)?,
        $($rest:tt)*
    ) => {
        view!(@field $about $name
            { $($done)* $(#[doc = $doc])+ pub $field: $type, }
            { $($schema)*
              (false, view!(@name $field), concat!($($doc),+),
               view!(@schema $type $(, $special)?)), }
            $($rest)*);
    };
    (@field $about:tt $name:ident { $($done:tt)* } { $($schema:tt)* }
        $(#[doc = $doc:literal])+ $field:ident : $type:ty as $json:literal, $($rest:tt)*
    ) => {
        view!(@field $about $name
            { $($done)*
              $(#[doc = $doc])+
              #[serde(rename = $json, skip_serializing_if = "crate::view::is_default")]
              pub $field: $type, }
            { $($schema)* (false, $json, concat!($($doc),+), view!(@schema $type)), }
            $($rest)*);
    };
    (@field $about:tt $name:ident { $($done:tt)* } { $($schema:tt)* }
        $(#[doc = $doc:literal])+ $field:ident : $type:ty $(=> $special:expr)?, $($rest:tt)*
    ) => {
        view!(@field $about $name
            { $($done)*
              $(#[doc = $doc])+
              #[serde(skip_serializing_if = "crate::view::is_default")]
              pub $field: $type, }
            { $($schema)*
              (false, view!(@name $field), concat!($($doc),+),
               view!(@schema $type $(, $special)?)), }
            $($rest)*);
    };
    (@name $field:ident) => {{
        const CAMEL: &$crate::view::Camel<{ stringify!($field).len() }> =
            &$crate::view::Camel::of(stringify!($field));
        const NAME: &str = CAMEL.as_str();
        NAME
    }};
    (@schema $type:ty) => { <$type as $crate::schema::Schema>::schema() };
    (@schema $type:ty, $special:expr) => { $special };
}

pub(crate) use view;

/// Lets a struct be read from an object alone. Left to itself, serde would take a list for its
/// fields in order, and `steps: [[20]]` would set a weight.
pub(crate) struct ObjectOnly<D>(pub D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for ObjectOnly<D> {
    type Error = D::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_struct(name, fields, ObjectVisitor(visitor))
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(ObjectVisitor(visitor))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        option unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier
        ignored_any
    }
}

struct ObjectVisitor<V>(V);

impl<'de, V: Visitor<'de>> Visitor<'de> for ObjectVisitor<V> {
    type Value = V::Value;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(map)
    }
}

/// The JSON name of a field, made of its Rust name when the program is built.
pub(crate) struct Camel<const LENGTH: usize> {
    letters: [u8; LENGTH],
    /// How many of them there are.
    used: usize,
}

impl<const LENGTH: usize> Camel<LENGTH> {
    pub(crate) const fn of(field: &str) -> Self {
        let field = field.as_bytes();
        let mut letters = [0; LENGTH];
        let mut used = 0;
        let mut begins_word = false;
        let mut at = if matches!(field, [b'r', b'#', ..]) { 2 } else { 0 };
        while at < field.len() {
            if field[at] == b'_' {
                begins_word = true;
            } else {
                letters[used] =
                    if begins_word { field[at].to_ascii_uppercase() } else { field[at] };
                used += 1;
                begins_word = false;
            }
            at += 1;
        }
        Camel { letters, used }
    }

    pub(crate) const fn as_str(&self) -> &str {
        let (name, _) = self.letters.split_at(self.used);
        match str::from_utf8(name) {
            Ok(name) => name,
            Err(_) => panic!("names of fields are ASCII"),
        }
    }
}

/// Whether a field may be left out of the JSON.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
