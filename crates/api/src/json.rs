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

/// One field of an object. `is_left_out` says whether its default value is.
pub(crate) fn put<T: Json + Default + PartialEq>(
    object: &mut Map<String, Value>,
    name: &str,
    field: &T,
    is_left_out: bool,
) {
    if !(is_left_out && *field == T::default()) {
        object.insert(name.to_owned(), field.to_json());
    }
}
