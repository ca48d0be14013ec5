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

/// What an RFC 7386 merge patch makes of a value. Nothing is copied that the patch replaces.
pub fn merged(value: &Value, patch: &Value) -> Value {
    let Value::Object(changes) = patch else { return patch.clone() };
    let none = Map::new();
    let fields = value.as_object().unwrap_or(&none);
    let kept = fields.iter().filter(|(name, _)| !changes.contains_key(*name));
    let kept = kept.map(|(name, field)| (name.clone(), field.clone()));
    let changed = changes.iter().filter(|(_, change)| !change.is_null()).map(|(name, change)| {
        let field = fields.get(name).unwrap_or(&Value::Null);
        (name.clone(), merged(field, change))
    });
    Value::Object(kept.chain(changed).collect())
}
