//! How deep may a value be? The parser gives a whole list up for one value that is nested too deeply,
//! so what is deeper than anybody writes is passed over before it does.

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// Levels below a field of a spec or status. The parser's own limit is 128, lists included.
const DEEPEST: usize = 100;

/// What stands where a field was nested deeper: of a wrong type for whoever reads the field, so that
/// the object says which one it is.
const TOO_DEEP: &str = "a value nested too deeply";

/// Any value; fields of it that are nested too deeply are a text that says so.
pub(super) struct Bounded(pub(super) Value);

impl<'de> Deserialize<'de> for Bounded {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = deserializer.deserialize_any(Level { is_top: true, left: DEEPEST })?;
        Ok(Bounded(value.unwrap_or_else(too_deep)))
    }
}

fn too_deep() -> Value {
    Value::String(TOO_DEEP.to_owned())
}

/// A value below which so many levels are allowed; `None` for one that has more.
#[derive(Clone, Copy)]
struct Level {
    is_top: bool,
    left: usize,
}

impl Level {
    fn below(self) -> Option<Self> {
        Some(Level { is_top: false, left: self.left.checked_sub(1)? })
    }
}

impl<'de> DeserializeSeed<'de> for Level {
    type Value = Option<Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Level {
    type Value = Option<Value>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Some(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Some(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Some(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Some(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Some(value.into()))
    }

    fn visit_string<E>(self, value: String) -> Result<Self::Value, E> {
        Ok(Some(value.into()))
    }

    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(Some(Value::Null))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Some(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut values = Some(Vec::new());
        loop {
            // What is known to be too deep is passed over; the parser must come to its end.
            let (Some(below), Some(kept)) = (self.below(), &mut values) else {
                values = None;
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                break;
            };
            match seq.next_element_seed(below)? {
                None => break,
                Some(None) => values = None,
                Some(Some(value)) => kept.push(value),
            }
        }
        Ok(values.map(Value::Array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut values = Some(Map::new());
        loop {
            let (Some(below), Some(kept)) = (self.below(), &mut values) else {
                values = None;
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                break;
            };
            let Some(key) = map.next_key::<String>()? else { break };
            match map.next_value_seed(below)? {
                Some(value) => drop(kept.insert(key, value)),
                None if self.is_top => drop(kept.insert(key, too_deep())),
                None => values = None,
            }
        }
        Ok(values.map(Value::Object))
    }
}
