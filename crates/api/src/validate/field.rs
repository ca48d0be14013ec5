//! Errors about a field in Kubernetes' words: `path: Invalid value: "x": detail`.

use std::fmt::Display;

use serde::Serialize;

use crate::decode::FieldError;

/// The field must be there.
pub(super) fn required(path: impl Display, detail: &str) -> FieldError {
    error(path, "Required value", detail)
}

/// The field must not be there.
pub(super) fn forbidden(path: impl Display, detail: &str) -> FieldError {
    error(path, "Forbidden", detail)
}

/// The field makes no sense together with others.
pub(super) fn internal(path: impl Display, detail: &str) -> FieldError {
    error(path, "Internal error", detail)
}

/// The field's value is wrong.
pub(super) fn invalid(path: impl Display, value: &impl Serialize, detail: &str) -> FieldError {
    error(path, &format!("Invalid value: {}", rendered(value)), detail)
}

/// Something else has the same value already.
pub(super) fn duplicate(path: impl Display, value: &str) -> FieldError {
    error(path, &format!("Duplicate value: {}", rendered(&value)), "")
}

/// The field names something that is not there.
pub(super) fn not_found(path: impl Display, value: &str) -> FieldError {
    error(path, &format!("Not found: {}", rendered(&value)), "")
}

/// The field's value is none of those that are known.
pub(super) fn not_supported(path: impl Display, value: &str, supported: &[&str]) -> FieldError {
    let supported: Vec<String> = supported.iter().map(rendered).collect();
    let detail = format!("supported values: {}", supported.join(", "));
    error(path, &format!("Unsupported value: {}", rendered(&value)), &detail)
}

fn error(path: impl Display, problem: &str, detail: &str) -> FieldError {
    let message =
        if detail.is_empty() { problem.to_owned() } else { format!("{problem}: {detail}") };
    FieldError { path: path.to_string(), message }
}

/// The value as JSON; inside lists and objects with Go's escapes.
fn rendered(value: &impl Serialize) -> String {
    let json = serde_json::to_string(value).expect("API types are always JSON");
    if json.starts_with(['{', '[']) {
        json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
    } else {
        json
    }
}
