//! From the bytes of a request to the document the cluster is called with.

use std::sync::Arc;

use http::header;
use http::request::Parts;
use serde_json::Value;

use super::twice::duplicates;
use super::{header_text, options, protobuf};
use crate::error::ApiError;
use crate::kinds::{KindInfo, Kinds};
use crate::openapi;
use crate::patch::go_kind;
use crate::request::{FieldValidation, PatchKind, Request, Subresource, Verb};
use crate::verbs::unreadable;

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const UNKNOWN_FORMAT: &str =
    "the body of the request was in an unknown format - accepted media types include";

/// Decodes the body for the call's verb and puts it into the call; the result is warnings.
pub fn read(
    call: &mut Request,
    kinds: &Kinds,
    parts: &Parts,
    body: &[u8],
) -> Result<Vec<String>, ApiError> {
    let kind = kinds.get(call.kind);
    match call.verb {
        Verb::Get | Verb::List => {}
        Verb::Delete | Verb::DeleteCollection => {
            if !body.is_empty() {
                let document = object(parts, body, None)?;
                if let Some(other) = document["kind"].as_str().filter(|kind| !is_deletion(kind)) {
                    return Err(ApiError::bad_request(format!(
                        "{other} cannot be handled as DeleteOptions"
                    )));
                }
                options::read_deletion(&mut call.options, &document)?;
            }
        }
        Verb::Create | Verb::Update => {
            call.body = Arc::new(object(parts, body, Some(kind))?);
            if call.options.field_validation != FieldValidation::Ignore {
                call.options.duplicate_fields = duplicates(body).into();
            }
            return check_fields(call, kind);
        }
        Verb::Patch(language) => {
            call.body = Arc::new(patch(language, body)?);
            // What a JSON patch makes of an object is seen when it is applied.
            if language != PatchKind::Json {
                return check_fields(call, kind);
            }
        }
    }
    Ok(Vec::new())
}

/// Which patch language the content type names, if the kind speaks it.
pub fn patch_kind(parts: &Parts, kind: &KindInfo) -> Result<PatchKind, ApiError> {
    match media_type(parts) {
        "application/merge-patch+json" => Ok(PatchKind::Merge),
        "application/json-patch+json" => Ok(PatchKind::Json),
        "application/strategic-merge-patch+json" if !kind.custom => Ok(PatchKind::Strategic),
        "application/apply-patch+yaml" | "application/apply-patch+cbor" => {
            Err(ApiError::unsupported_media_type(
                "this cluster knows no server-side apply; plain kubectl apply works",
            ))
        }
        _ => {
            let strategic = match kind.custom {
                true => "",
                false => ", application/strategic-merge-patch+json",
            };
            Err(ApiError::unsupported_media_type(format!(
                "{UNKNOWN_FORMAT}: application/json-patch+json, application/merge-patch+json\
                 {strategic}, application/apply-patch+yaml"
            )))
        }
    }
}

/// Decodes an object; `kind` is what the path says it is.
pub fn object(parts: &Parts, body: &[u8], kind: Option<&KindInfo>) -> Result<Value, ApiError> {
    let mut document = match media_type(parts) {
        "" | JSON => serde_json::from_slice(body).map_err(|error| unrecognized(kind, &error)),
        YAML | "application/x-yaml" | "text/yaml" => {
            serde_saphyr::from_slice(body).map_err(|error| unrecognized(kind, &error))
        }
        PROTOBUF if !kind.is_some_and(|kind| kind.custom) => {
            protobuf::read(body).map_err(|error| ApiError::bad_request(error.to_string()))
        }
        _ => {
            let message = format!("{UNKNOWN_FORMAT}: {JSON}, {YAML}, {PROTOBUF}");
            return Err(ApiError::unsupported_media_type(message));
        }
    }?;
    if !matches!(document, Value::Object(_)) {
        return Err(unrecognized(kind, &"expected an object"));
    }
    whole_numbers(&mut document);
    Ok(document)
}

fn is_deletion(kind: &str) -> bool {
    matches!(kind, "" | "DeleteOptions")
}

fn patch(language: PatchKind, body: &[u8]) -> Result<Value, ApiError> {
    let mut document: Value = serde_json::from_slice(body)
        .map_err(|error| ApiError::bad_request(format!("error decoding patch: {error}")))?;
    let expected = match (language, &document) {
        (PatchKind::Json, Value::Array(_)) => None,
        (PatchKind::Json, _) => Some("[]handlers.jsonPatchOp"),
        (PatchKind::Merge | PatchKind::Strategic, Value::Object(_)) => None,
        (PatchKind::Merge | PatchKind::Strategic, _) => Some("map[string]interface {}"),
    };
    if let Some(expected) = expected {
        return Err(ApiError::bad_request(format!(
            "error decoding patch: json: cannot unmarshal {} into Go value of type {expected}",
            go_kind(&document)
        )));
    }
    whole_numbers(&mut document);
    if language == PatchKind::Merge {
        drop_nulls_in_lists(&mut document);
    }
    Ok(document)
}

/// A null of a merge patch takes a field away. In a list, which is replaced whole, there is none
/// to be taken: the objects in it lose their nulls, and only items that are null stay.
fn drop_nulls_in_lists(patch: &mut Value) {
    match patch {
        Value::Object(fields) => fields.values_mut().for_each(drop_nulls_in_lists),
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// Built-in kinds are decoded into types by a real server: what the types do not have is dropped,
/// and warned about or refused. Custom kinds have schemas for that.
fn check_fields(call: &mut Request, kind: &KindInfo) -> Result<Vec<String>, ApiError> {
    let is_whole = matches!(call.subresource, Subresource::None | Subresource::Status);
    if kind.custom || !is_whole {
        return Ok(Vec::new());
    }
    let is_patch = matches!(call.verb, Verb::Patch(_));
    let body = Arc::make_mut(&mut call.body);
    let checked = openapi::check(kind, body, is_patch, &call.options);
    if is_patch { checked.map_err(|error| unreadable(error, &call.body)) } else { checked }
}

/// `1.0` is the integer 1, as Go prints it.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let whole = number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0);
            if let Some(float) = whole.filter(|float| float.abs() < 9e15) {
                *value = Value::from(float as i64);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(fields) => fields.values_mut().for_each(whole_numbers),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

fn unrecognized(kind: Option<&KindInfo>, error: &dyn std::fmt::Display) -> ApiError {
    let name = kind.map_or("DeleteOptions", |kind| &*kind.kind);
    ApiError::bad_request(format!(
        "the object provided is unrecognized (must be of type {name}): couldn't get version/kind; \
         json parse error: {error}"
    ))
}

fn media_type(parts: &Parts) -> &str {
    let text = header_text(parts, header::CONTENT_TYPE);
    text.split(';').next().unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nulls_in_the_lists_of_a_merge_patch_take_nothing_away() {
        let cases = [
            (
                "of fields",
                json!({"a": null, "b": {"c": null}}),
                json!({"a": null, "b": {"c": null}}),
            ),
            ("of items", json!({"a": [null, 1]}), json!({"a": [null, 1]})),
            ("in items", json!({"a": [{"b": null, "c": 1}]}), json!({"a": [{"c": 1}]})),
            ("deep in items", json!({"a": [[{"b": {"c": null}}]]}), json!({"a": [[{"b": {}}]]})),
        ];
        for (what, mut patch, expected) in cases {
            drop_nulls_in_lists(&mut patch);
            assert_eq!(patch, expected, "{what}");
        }
    }
}
