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

/// Applies an RFC 7386 merge patch.
pub fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        target.clone_from(patch);
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(fields) = target else {
        return;
    };
    for (key, change) in changes {
        if change.is_null() {
            fields.remove(key);
            continue;
        }
        match fields.get_mut(key) {
            Some(field) => merge(field, change),
            None => {
                let mut field = Value::Null;
                merge(&mut field, change);
                fields.insert(key.clone(), field);
            }
        }
    }
}
