//! How does an API type become JSON and come back, without a general serializer in between?

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::patch::Difference;

/// A type that knows its JSON. A status is read and written all day; this says what serde says of
/// it, for a fraction of the work.
pub trait Json: Sized {
    /// It as JSON.
    fn to_json(&self) -> Value;

    /// It from JSON in which every field has the right type; `None` where that is not certain.
    fn from_json(json: &Value) -> Option<Self>;

    /// The merge patch from this to `new`, which differs: what is no object is replaced whole.
    fn patch_to(&self, new: &Self) -> Value {
        new.to_json()
    }
}

impl Json for String {
    fn to_json(&self) -> Value {
        Value::String(self.clone())
    }

    fn from_json(json: &Value) -> Option<Self> {
        json.as_str().map(str::to_owned)
    }
}

impl Json for bool {
    fn to_json(&self) -> Value {
        Value::Bool(*self)
    }

    fn from_json(json: &Value) -> Option<Self> {
        json.as_bool()
    }
}

impl Json for i32 {
    fn to_json(&self) -> Value {
        Value::Number((*self).into())
    }

    fn from_json(json: &Value) -> Option<Self> {
        json.as_i64().and_then(|number| number.try_into().ok())
    }
}

impl Json for i64 {
    fn to_json(&self) -> Value {
        Value::Number((*self).into())
    }

    fn from_json(json: &Value) -> Option<Self> {
        json.as_i64()
    }
}

impl Json for Arc<Value> {
    fn to_json(&self) -> Value {
        Value::clone(self)
    }

    fn from_json(json: &Value) -> Option<Self> {
        Some(Arc::new(json.clone()))
    }

    fn patch_to(&self, new: &Self) -> Value {
        self.difference(new).unwrap_or_else(|| new.to_json())
    }
}

impl<T: Json> Json for Option<T> {
    fn to_json(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::to_json)
    }

    fn from_json(json: &Value) -> Option<Self> {
        if json.is_null() { Some(None) } else { T::from_json(json).map(Some) }
    }

    fn patch_to(&self, new: &Self) -> Value {
        match (self, new) {
            (Some(old), Some(new)) => old.patch_to(new),
            _ => new.to_json(),
        }
    }
}

impl<T: Json> Json for Box<T> {
    fn to_json(&self) -> Value {
        T::to_json(self)
    }

    fn from_json(json: &Value) -> Option<Self> {
        T::from_json(json).map(Box::new)
    }

    fn patch_to(&self, new: &Self) -> Value {
        T::patch_to(self, new)
    }
}

impl<T: Json> Json for Vec<T> {
    fn to_json(&self) -> Value {
        Value::Array(self.iter().map(T::to_json).collect())
    }

    fn from_json(json: &Value) -> Option<Self> {
        let items = json.as_array()?;
        let mut read = Vec::with_capacity(items.len());
        for item in items {
            read.push(T::from_json(item)?);
        }
        Some(read)
    }
}

impl<T: Json> Json for BTreeMap<String, T> {
    fn to_json(&self) -> Value {
        let pairs = self.iter().map(|(key, value)| (key.clone(), value.to_json()));
        Value::Object(pairs.collect())
    }

    fn from_json(json: &Value) -> Option<Self> {
        let pairs = json.as_object()?.iter();
        pairs.map(|(key, value)| Some((key.clone(), T::from_json(value)?))).collect()
    }

    fn patch_to(&self, new: &Self) -> Value {
        let (old, new) = (self.to_json(), new.to_json());
        old.difference(&new).unwrap_or(new)
    }
}

/// The patch of one field, if it differs. `is_left_out` says whether its default value is.
pub(crate) fn put_patch<T: Json + Default + PartialEq>(
    patch: &mut Map<String, Value>,
    name: &str,
    (old, new): (&T, &T),
    is_left_out: bool,
) {
    if old == new {
        return;
    }
    let value = match is_left_out.then(T::default) {
        Some(default) if *new == default => Value::Null,
        Some(default) if *old == default => new.to_json(),
        _ => old.patch_to(new),
    };
    patch.insert(name.to_owned(), value);
}

/// One field of an object, unless it is left out: `is_left_out` says whether its default value is.
#[inline]
pub(crate) fn field<T: Json + Default + PartialEq>(value: &T, is_left_out: bool) -> Option<Value> {
    let is_written = !(is_left_out && *value == T::default());
    is_written.then(|| value.to_json())
}

/// The object of these fields, each of which stands in its [`place`]. Where all are given, as in
/// conditions, the blank object is copied and filled in: no name has to be searched for its place.
pub(crate) fn object<const COUNT: usize>(
    blank: &Map<String, Value>,
    fields: [Option<Value>; COUNT],
) -> Value {
    if fields.iter().all(Option::is_some) {
        let mut object = blank.clone();
        for (place, field) in object.values_mut().zip(fields) {
            *place = field.unwrap_or_default();
        }
        return Value::Object(object);
    }
    let named = blank.keys().zip(fields);
    Value::Object(named.filter_map(|(name, field)| Some((name.clone(), field?))).collect())
}

/// An object with these names and nothing else.
pub(crate) fn blank(names: &[&str]) -> Map<String, Value> {
    names.iter().map(|name| ((*name).to_owned(), Value::Null)).collect()
}

/// Where a name stands among all names once they are sorted; known when the program is built.
pub(crate) const fn place(names: &[&str], name: &str) -> usize {
    let (mut place, mut at) = (0, 0);
    while at < names.len() {
        if is_before(names[at].as_bytes(), name.as_bytes()) {
            place += 1;
        }
        at += 1;
    }
    place
}

const fn is_before(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() {
        if one[at] != other[at] {
            return one[at] < other[at];
        }
        at += 1;
    }
    one.len() < other.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_its_place() {
        let names = ["type", "status", "statuses", "HPAReplicas", "abort"];
        let mut sorted = names;
        sorted.sort_unstable();
        for name in names {
            assert_eq!(sorted[place(&names, name)], name);
        }
    }
}
