//! What does the answer to a request, or its absence, mean for the next pass?

use std::error::Error;
use std::time::Duration;

use gradus_engine::ask::Class;
use gradus_engine::decision::ObjectRef;
use gradus_engine::frame::Frame;
use http::{HeaderMap, StatusCode, header};
use serde::Deserialize;
use serde_json::Value;

use crate::cluster::{Listing, WriteError};
use crate::connect::TokenError;
use crate::one_line::{flat, one_line};
use crate::tolerant::Tolerant;

/// Refuses a target without a name: its path would be that of all objects of the kind.
pub(super) fn check_name(verb: &str, target: &ObjectRef) -> Result<(), WriteError> {
    if target.name.is_empty() {
        return Err(failure(Class::Denied, format!("{verb} {target}: the name is empty")));
    }
    Ok(())
}

/// The object in the body of a good answer.
pub(super) fn frame(verb: &str, target: &ObjectRef, body: &[u8]) -> Result<Frame, WriteError> {
    // Done, but unreadable: as if there were no answer.
    let unreadable = |error| failure(Class::Unknown, format!("{verb} {target}: answer: {error}"));
    serde_json::from_slice::<Tolerant>(body).map(|object| object.0).map_err(unreadable)
}

/// The same with everything in it.
pub(super) fn object(verb: &str, target: &ObjectRef, body: &[u8]) -> Result<Value, WriteError> {
    let unreadable = |error| failure(Class::Unknown, format!("{verb} {target}: answer: {error}"));
    serde_json::from_slice(body).map_err(unreadable)
}

/// The objects in the body of a good answer to a list, and what names the next page.
pub(super) fn page(
    listing: &Listing,
    body: &[u8],
) -> Result<(Vec<Frame>, Option<String>), WriteError> {
    let Listing { kind, namespace, .. } = listing;
    let unreadable = |error| {
        let message = format!("list {} of {namespace}: answer: {error}", kind.plural);
        failure(Class::Unknown, message)
    };
    let listed = serde_json::from_slice::<Listed>(body).map_err(unreadable)?;
    let next = Some(listed.metadata.next).filter(|next| !next.is_empty());
    Ok((listed.items.into_iter().map(|item| item.0).collect(), next))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Listed {
    metadata: ListedMeta,
    items: Vec<Tolerant>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ListedMeta {
    #[serde(rename = "continue")]
    next: String,
}

/// The server's refusal.
pub(super) fn refused(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> WriteError {
    let said = serde_json::from_slice::<Said>(body).unwrap_or_default();
    let retry_after = headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
    let retry_after = retry_after.and_then(|text| text.parse().ok());
    WriteError {
        class: if body.starts_with(NO_SUCH_PATH) {
            Class::Unreachable
        } else {
            class(status, &said)
        },
        message: message(status, &said, body),
        retry_after_secs: retry_after.or(said.details.retry_after_seconds),
    }
}

/// What an answer of the API server with this status and this text means. The simulator asks here, too,
/// so that both mean the same.
pub fn classify(status: u16, body: &str) -> WriteError {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    refused(status, &HeaderMap::new(), body.as_bytes())
}

/// The exchange broke; before or after the request was sent?
pub(super) fn broken(verb: &str, target: &ObjectRef, error: kube::Error) -> WriteError {
    let class = if never_sent(&error) { Class::Unreachable } else { Class::Unknown };
    failure(class, format!("{verb} {target}: {}", one_line(&error)))
}

/// No answer in time.
pub(super) fn late(verb: &str, target: &ObjectRef, limit: Duration) -> WriteError {
    let seconds = limit.as_secs();
    failure(Class::Unknown, format!("{verb} {target}: no answer within {seconds} s"))
}

fn failure(class: Class, message: String) -> WriteError {
    WriteError { class, message, retry_after_secs: None }
}

/// What the server says of a path that none of its kinds, or none of its groups, has.
const NO_SUCH_KIND: &str = "the server could not find the requested resource";
const NO_SUCH_PATH: &[u8] = b"404 page not found";

/// The parts of a `Status` that decide.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Said {
    message: String,
    reason: String,
    details: Details,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Details {
    retry_after_seconds: Option<u32>,
    causes: Vec<FieldCause>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct FieldCause {
    field: String,
}

fn class(status: StatusCode, said: &Said) -> Class {
    match status.as_u16() {
        409 if said.reason == "AlreadyExists" => Class::Exists,
        409 => Class::Stale,
        // Only a precondition names a uid, so this is another object of the same name.
        422 if said.details.causes.iter().any(|cause| cause.field == "metadata.uid") => {
            Class::Stale
        }
        // The server does not have the kind, or not yet: that says nothing of the object.
        404 if said.message == NO_SUCH_KIND => Class::Unreachable,
        404 | 410 => Class::Gone,
        429 => Class::Throttled,
        // Our credentials are at fault, not this write: nothing to tell the object's owner.
        401 => Class::Unreachable,
        // Admission that could not be asked stops a write before it is stored.
        500 if said.message.contains("failed calling webhook") => Class::Denied,
        // The store may have taken the write before the answer went wrong.
        408 | 500.. => Class::Unknown,
        _ => Class::Denied,
    }
}

fn message(status: StatusCode, said: &Said, body: &[u8]) -> String {
    if !said.message.is_empty() {
        return said.message.clone();
    }
    let text = flat(&String::from_utf8_lossy(body));
    let text = if text.is_empty() { "no explanation".to_owned() } else { text };
    format!("the server answered {}: {text}", status.as_u16())
}

/// Is it certain that the request did not leave this process?
fn never_sent(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let connect = error.downcast_ref::<hyper_util::client::legacy::Error>();
        let refused = error.downcast_ref::<std::io::Error>();
        if connect.is_some_and(|error| error.is_connect())
            || refused.is_some_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
            || matches!(error.downcast_ref(), Some(kube::Error::Auth(_)))
            || error.is::<TokenError>()
        {
            return true;
        }
        cause = error.source();
    }
    false
}
