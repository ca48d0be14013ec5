//! What does each verb do? One entry for every caller, in process or over HTTP.

mod change;
mod create;
mod delete;
mod list;
mod patch;
mod pods;
mod scale;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::SimCluster;
use crate::error::{ApiError, Cause};
use crate::kinds::{KindId, KindInfo};
use crate::object::{Key, Meta, Object};
use crate::request::{Content, Reply, Request, Subresource, Verb};

pub(crate) use delete::{FOREGROUND, ORPHAN};
pub(crate) use list::Filter;
pub(crate) use patch::unreadable;

impl SimCluster {
    /// Answers one request at the moment `now`.
    pub fn call(&mut self, request: &Request, now: Timestamp) -> Result<Reply, ApiError> {
        self.serve(request.clone(), now)
    }

    /// The same, for who has no further use of the request: its body need not be copied.
    pub fn serve(&mut self, owned: Request, now: Timestamp) -> Result<Reply, ApiError> {
        let kinds = self.kinds.clone();
        let kind = kinds.get(owned.kind);
        let (asked, request) = (owned.kind, &owned);
        let mut reply = match (request.verb, request.subresource) {
            (Verb::List, Subresource::None) => self.list_verb(request, kind),
            (Verb::DeleteCollection, Subresource::None) => {
                self.delete_collection(request, kind, now)
            }
            (Verb::Get, Subresource::None) => self.find(request, kind).map(Reply::object),
            (Verb::Get, Subresource::Status) if kind.has_status => {
                self.find(request, kind).map(Reply::object)
            }
            (Verb::Create, Subresource::None) => self.create(owned, kind, now),
            (Verb::Update, Subresource::None) => self.update(request, kind, now),
            (Verb::Update, Subresource::Status) if kind.has_status => {
                self.update(request, kind, now)
            }
            (Verb::Patch(_), Subresource::None) => self.patch(owned, kind, now),
            (Verb::Patch(_), Subresource::Status) if kind.has_status => {
                self.patch(owned, kind, now)
            }
            (Verb::Delete, Subresource::None) => self.delete(request, kind, now),
            (Verb::Get | Verb::Update | Verb::Patch(_), Subresource::Scale)
                if kind.scale.is_some() =>
            {
                self.scale(request, kind, now)
            }
            (Verb::Create, Subresource::Eviction) if request.kind == KindId::POD => {
                self.evict(request, kind, now)
            }
            (Verb::Create, Subresource::Binding) if request.kind == KindId::POD => {
                self.bind(request, kind, now)
            }
            _ if kind.custom => Err(ApiError::not_found(kind, &request.name)),
            _ => Err(no_such_resource()),
        }?;
        if kind.stored_as != asked {
            as_version(&mut reply, asked);
        }
        Ok(reply)
    }

    /// The object a request names, if it is not older than the request allows.
    fn find(&self, request: &Request, kind: &KindInfo) -> Result<Arc<Object>, ApiError> {
        let current = self.version();
        if let Some(asked) = request.options.resource_version.filter(|asked| *asked > current) {
            return Err(ApiError::too_large_version(asked, current));
        }
        let key = Key { namespace: request.namespace.clone(), name: request.name.clone() };
        let found = self.store.get(kind.stored_as, &key);
        found.cloned().ok_or_else(|| ApiError::not_found(kind, &request.name))
    }
}

/// Refuses a whole body of a custom kind that does not say what it is.
fn check_named(kind: &KindInfo, body: &Value) -> Result<(), ApiError> {
    let is_named = |field: &str| body[field].as_str().is_some_and(|text| !text.is_empty());
    for (field, name) in [("kind", "Kind"), ("apiVersion", "apiVersion")] {
        if kind.custom && !is_named(field) {
            return Err(ApiError::bad_request(format!(
                "the object provided is unrecognized (must be of type {}): Object '{name}' is \
                 missing in '{body}'",
                kind.kind
            )));
        }
    }
    Ok(())
}

/// Refuses a body that says it is something else than the path says.
fn check_type(kind: &KindInfo, body: &Value, name: &str) -> Result<(), ApiError> {
    let text = |field: &str| body[field].as_str().filter(|text| !text.is_empty());
    if let Some(found) = text("apiVersion").filter(|found| !kind.has_api_version(found)) {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({found}) does not match the expected API version ({})",
            kind.api_version()
        )));
    }
    let Some(found) = text("kind").filter(|found| **found != *kind.kind) else {
        return Ok(());
    };
    if !kind.custom {
        return Err(ApiError::bad_request(format!(
            "{found} in version {:?} cannot be handled as a {}: unknown conversion",
            kind.version, kind.kind
        )));
    }
    let named = KindInfo { kind: found.into(), ..kind.clone() };
    let cause = Cause::invalid("kind", &json!(found), &format!("must be {}", kind.kind));
    Err(ApiError::invalid(&named, name, vec![cause]))
}

/// What the server says to a whole object without a name.
fn undeterminable(name: &str) -> ApiError {
    ApiError::bad_request(format!(
        "the name of the object ({name} based on URL) was undeterminable: name must be provided"
    ))
}

/// Refuses a body that names another object than the path.
fn check_path(request: &Request, meta: &Meta) -> Result<(), ApiError> {
    if !meta.name.is_empty() && meta.name != request.name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({}) does not match the name on the URL ({})",
            meta.name, request.name
        )));
    }
    if !meta.namespace.is_empty() && meta.namespace != request.namespace {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

/// What the server says for a path it does not know.
fn no_such_resource() -> ApiError {
    ApiError {
        code: 404,
        reason: "NotFound",
        message: "the server could not find the requested resource".to_owned(),
        details: None,
    }
}

fn as_version(reply: &mut Reply, kind: KindId) {
    match &mut reply.content {
        Content::Object(object) => *object = object.as_kind(kind),
        Content::List(list) => {
            list.kind = kind;
            for item in &mut list.items {
                *item = item.as_kind(kind);
            }
        }
        Content::Json(_) | Content::Deleted(_) => {}
    }
}
