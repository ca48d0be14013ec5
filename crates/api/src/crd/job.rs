//! The schema of a Job's spec.

use serde_json::Value;

/// The schema of a Job's spec.
pub(crate) fn schema() -> Value {
    crate::schema::free_form_object()
}
