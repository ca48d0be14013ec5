//! What does a patch make of an object: JSON merge patch, JSON patch, strategic merge patch.

mod json;
mod keys;
mod strategic;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

pub(crate) use json::go_kind;
pub use json::json;
pub use keys::{Keys, Strategy};
pub use strategic::strategic;

/// The most operations one JSON patch may hold, as on a real API server.
pub const MAX_JSON_OPERATIONS: usize = 10_000;

/// Why a patch could not be applied, sorted by the HTTP status the server answers with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// 400: the patch itself is malformed.
    #[error("{0}")]
    Malformed(String),
    /// 413: more operations than [`MAX_JSON_OPERATIONS`].
    #[error("{0}")]
    TooLarge(String),
    /// 422: the patch is well formed but does not fit this object.
    #[error("{0}")]
    DoesNotApply(String),
    /// 500: the real server answers an internal error here, so do we.
    #[error("{0}")]
    Internal(String),
}

/// What an RFC 7386 merge patch makes of a value. Nothing of the patch is copied, and no list that
/// the patch replaces.
pub fn merged(value: &Value, patch: Value) -> Value {
    let Value::Object(changes) = patch else { return patch };
    if changes.values().any(Value::is_array) {
        return rebuilt(value, changes);
    }
    // Little is lost that the patch replaces: a whole map is copied sooner than it is built.
    let mut fields = value.as_object().cloned().unwrap_or_default();
    merge(&mut fields, changes);
    Value::Object(fields)
}

/// Lays changes over the fields of an object.
fn merge(fields: &mut Map<String, Value>, changes: Map<String, Value>) {
    for (name, change) in changes {
        if change.is_null() {
            fields.remove(&name);
        } else if let Some(field) = fields.get_mut(&name) {
            match (field, change) {
                (Value::Object(inner), Value::Object(changes)) => merge(inner, changes),
                (field, change) => *field = merged(&Value::Null, change),
            }
        } else {
            fields.insert(name, merged(&Value::Null, change));
        }
    }
}

/// The same without copying what is replaced.
fn rebuilt(value: &Value, changes: Map<String, Value>) -> Value {
    let none = Map::new();
    let mut fields = value.as_object().unwrap_or(&none).iter().peekable();
    let mut built = Vec::with_capacity(fields.len() + changes.len());
    let copied = |(name, field): (&String, &Value)| (name.clone(), field.clone());
    // Both are sorted by name, and so is the result.
    for (name, change) in changes {
        while let Some(kept) = fields.next_if(|(field, _)| **field < name) {
            built.push(copied(kept));
        }
        let old = fields.next_if(|(field, _)| **field == name);
        if !change.is_null() {
            let old = old.map_or(&Value::Null, |(_, old)| old);
            built.push((name, merged(old, change)));
        }
    }
    built.extend(fields.map(copied));
    Value::Object(built.into_iter().collect())
}
