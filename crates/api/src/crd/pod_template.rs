//! The schema of a pod template.

use serde_json::Value;

/// The schema of a pod template.
pub(crate) fn schema() -> Value {
    crate::schema::free_form_object()
}
