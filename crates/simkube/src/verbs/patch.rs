//! Patch: from an old state and a patch to the wanted state.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::check_type;
use crate::SimCluster;
use crate::error::ApiError;
use crate::kinds::Kind;
use crate::object::Object;
use crate::patch::{self, Keys, PatchError};
use crate::request::{PatchKind, Reply, Request, Verb};

impl SimCluster {
    pub(super) fn patch(
        &mut self,
        request: &Request,
        kind: &Kind,
        now: Timestamp,
    ) -> Result<Reply, ApiError> {
        let before = self.find(request, kind)?;
        let wanted = match request.verb {
            Verb::Patch(PatchKind::Merge) if is_in_parts(&before, &request.body) => {
                check_type(kind, &request.body)?;
                merged(&before, &request.body)?
            }
            Verb::Patch(language) => {
                let mut value = before.to_json(&self.kinds);
                apply(&mut value, &request.body, language, kind)?;
                check_type(kind, &value)?;
                Object::from_json(before.kind, value)?
            }
            _ => return Err(super::no_such_resource()),
        };
        self.change(request, kind, before, wanted, now)
    }
}

/// Whether the stored parts are what the patch is about: of a running pod only the metadata is.
fn is_in_parts(before: &Object, patch: &Value) -> bool {
    before.pod.is_none() || (patch.get("spec").is_none() && patch.get("status").is_none())
}

/// Lays a patch of any language over a whole document.
pub(super) fn apply(
    value: &mut Value,
    body: &Value,
    language: PatchKind,
    kind: &Kind,
) -> Result<(), ApiError> {
    let result = match language {
        PatchKind::Merge => {
            patch::merge(value, body);
            Ok(())
        }
        PatchKind::Json => match body.as_array() {
            Some(operations) => patch::json(value, operations),
            None => Err(PatchError::Malformed("a JSON patch is a list of operations".to_owned())),
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
fn merged(before: &Object, patch: &Value) -> Result<Object, ApiError> {
    let Value::Object(patch) = patch else {
        return Err(ApiError::bad_request("a merge patch is a JSON object"));
    };
    let mut wanted = Object { version: 0, ..before.clone() };
    for (field, change) in patch {
        match field.as_str() {
            "apiVersion" | "kind" => {}
            "metadata" => wanted.version = merge_meta(&mut wanted, change)?,
            "spec" => merge_part(&mut wanted.spec, change),
            "status" => merge_part(&mut wanted.status, change),
            _ => {
                let rest: &mut Map<String, Value> = Arc::make_mut(&mut wanted.rest);
                if change.is_null() {
                    rest.remove(field);
                } else {
                    patch::merge(rest.entry(field.clone()).or_insert(Value::Null), change);
                }
            }
        }
    }
    Ok(wanted)
}

fn merge_meta(wanted: &mut Object, change: &Value) -> Result<u64, ApiError> {
    let only_version =
        change.as_object().is_some_and(|map| map.keys().all(|key| key == "resourceVersion"));
    if only_version {
        let (_, version) = crate::object::Meta::from_json(change.clone())?;
        return Ok(version);
    }
    Arc::make_mut(&mut wanted.meta).merge(change)
}

fn merge_part(part: &mut Arc<Value>, change: &Value) {
    if change.is_null() {
        *part = Arc::default();
    } else {
        patch::merge(Arc::make_mut(part), change);
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
        PatchError::Internal(_) => {
            ApiError { code: 500, reason: "InternalError", message, details: None }
        }
    }
}
