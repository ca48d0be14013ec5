//! Patch: from an old state and a patch to the wanted state.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::change::no_version;
use super::{check_named, check_path, check_type, undeterminable};
use crate::SimCluster;
use crate::error::{ApiError, Cause, Details};
use crate::kinds::KindInfo;
use crate::object::Object;
use crate::openapi;
use crate::patch::{self, Keys, PatchError, go_kind};
use crate::request::{FieldValidation, PatchKind, Reply, Request, Verb};

impl SimCluster {
    pub(super) fn patch(
        &mut self,
        mut request: Request,
        kind: &KindInfo,
        now: Timestamp,
    ) -> Result<Reply, ApiError> {
        let before = self.find(&request, kind)?;
        let wanted = match (request.verb, &*request.body) {
            (Verb::Patch(PatchKind::Merge), Value::Object(patch))
                if is_in_parts(&before, patch) =>
            {
                if names_type(patch) {
                    check_version(kind, &request.body, &request.name)?;
                    check_type(kind, &request.body, &request.name)?;
                }
                let mut wanted = Object { version: 0, ..Object::clone(&before) };
                if let Some(change) = patch.get("metadata") {
                    let takes_version = || change.get("resourceVersion").is_some_and(is_no_version);
                    if !kind.unconditional_update && takes_version() {
                        return Err(no_version(kind, &request.name));
                    }
                    let version = wanted.meta.merge(change);
                    wanted.version = version.map_err(|error| unreadable(error, &request.body))?;
                }
                // A refusal of unknown fields repeats the body; else nobody reads it again.
                let body = match request.options.field_validation {
                    FieldValidation::Ignore => std::mem::take(&mut request.body),
                    FieldValidation::Warn | FieldValidation::Strict => Arc::clone(&request.body),
                };
                merge_parts(&mut wanted, Arc::unwrap_or_clone(body));
                wanted
            }
            (Verb::Patch(language), _) => {
                let mut value = before.to_json(&self.kinds);
                apply(&mut value, &request.body, language, kind)?;
                check_named(kind, &value).map_err(|error| unreadable(error, &value))?;
                check_version(kind, &value, &request.name)?;
                check_type(kind, &value, &request.name)?;
                if language == PatchKind::Json && !kind.custom {
                    let checked = openapi::check(kind, &mut value, false, &request.options);
                    checked.map_err(|error| unreadable(error, &value))?;
                }
                let version = value["metadata"].get("resourceVersion");
                let takes_version = version.is_none_or(is_no_version);
                if takes_version && is_object_left(&value) && !kind.unconditional_update {
                    return Err(no_version(kind, &request.name));
                }
                let read = Object::from_json(before.kind, value.clone());
                read.map_err(|error| unreadable(error, &value))?
            }
            _ => return Err(super::no_such_resource()),
        };
        if wanted.meta.name.is_empty() {
            return Err(undeterminable(&request.name));
        }
        check_path(&request, &wanted.meta)?;
        self.change(&request, kind, before, wanted, now)
    }
}

/// A patch whose result is no object of any kind is the patch's fault.
pub(crate) fn unreadable(error: ApiError, value: &Value) -> ApiError {
    if error.reason != "BadRequest" {
        return error;
    }
    let cause = Cause::invalid("patch", &json!(value.to_string()), &error.message);
    let message = format!(" \"\" is invalid: patch: {}", cause.message);
    let details = Details { causes: vec![cause], ..Details::default() };
    ApiError { code: 422, reason: "Invalid", message, details: Some(Box::new(details)) }
}

fn is_no_version(version: &Value) -> bool {
    version.is_null() || version == ""
}

/// Whether a patch has left the object its name, without which it is no object.
fn is_object_left(value: &Value) -> bool {
    value["metadata"]["name"].as_str().is_some_and(|name| !name.is_empty())
}

/// Whether a patch says anything of what the object is. Nearly none does.
fn names_type(patch: &Map<String, Value>) -> bool {
    patch.keys().any(|field| field == "apiVersion" || field == "kind")
}

/// Whether the stored parts are what the patch is about: of a running pod only the metadata is.
fn is_in_parts(before: &Object, patch: &Map<String, Value>) -> bool {
    let takes = |field: &str| patch.get(field) == Some(&Value::Null);
    let takes_type = names_type(patch) && (takes("apiVersion") || takes("kind"));
    !takes_type
        && (before.pod.is_none() || (!patch.contains_key("spec") && !patch.contains_key("status")))
}

/// A patch makes no other version of an object.
fn check_version(kind: &KindInfo, value: &Value, name: &str) -> Result<(), ApiError> {
    let found = value["apiVersion"].as_str().filter(|text| !text.is_empty());
    let Some(found) = found.filter(|text| !kind.has_api_version(text)) else { return Ok(()) };
    let why = format!("must be {}", kind.api_version());
    if kind.custom {
        let cause = Cause::invalid("apiVersion", &json!(found), &why);
        return Err(ApiError::invalid(kind, name, vec![cause]));
    }
    Err(unreadable(ApiError::bad_request(format!("apiVersion {found}: {why}")), value))
}

/// Lays a patch of any language over a whole document.
pub(super) fn apply(
    value: &mut Value,
    body: &Value,
    language: PatchKind,
    kind: &KindInfo,
) -> Result<(), ApiError> {
    let result = match language {
        PatchKind::Merge if body.is_object() => {
            *value = patch::merged(value, body.clone());
            Ok(())
        }
        PatchKind::Merge => Err(PatchError::Malformed(format!(
            "error decoding patch: json: cannot unmarshal {} into Go value of type \
             map[string]interface {{}}",
            go_kind(body)
        ))),
        PatchKind::Json => match body.as_array() {
            Some(operations) => patch::json(value, operations),
            None => Err(PatchError::Malformed(format!(
                "error decoding patch: json: cannot unmarshal {} into Go value of type \
                 []handlers.jsonPatchOp",
                go_kind(body)
            ))),
        },
        PatchKind::Strategic if kind.custom => {
            return Err(ApiError::unsupported_media_type(
                "the body of the request was in an unknown format - accepted media types \
                 include: application/json-patch+json, application/merge-patch+json, \
                 application/apply-patch+yaml",
            ));
        }
        PatchKind::Strategic => patch::strategic(value, body, &Keys::BUILT_IN),
    };
    result.map_err(refusal)
}

/// A merge patch touches only the parts it names, so only those are copied.
fn merge_parts(wanted: &mut Object, patch: Value) {
    let Value::Object(patch) = patch else { return };
    for (field, change) in patch {
        match field.as_str() {
            "apiVersion" | "kind" | "metadata" => {}
            "spec" => wanted.merge_spec(change),
            "status" => wanted.status = Arc::new(patch::merged(&wanted.status, change)),
            _ => {
                let rest: &mut Map<String, Value> = Arc::make_mut(&mut wanted.rest);
                if change.is_null() {
                    rest.remove(&field);
                } else {
                    let field = rest.entry(field).or_insert(Value::Null);
                    *field = patch::merged(field, change);
                }
            }
        }
    }
}

fn refusal(error: PatchError) -> ApiError {
    let message = error.to_string();
    match error {
        PatchError::Malformed(_) => ApiError::bad_request(message),
        PatchError::TooLarge(_) => {
            ApiError { code: 413, reason: "RequestEntityTooLarge", message, details: None }
        }
        PatchError::DoesNotApply(_) => {
            let message = "the server rejected our request due to an error in our request";
            ApiError { code: 422, reason: "Invalid", message: message.to_owned(), details: None }
        }
        PatchError::Internal(_) => ApiError::internal(message),
    }
}
