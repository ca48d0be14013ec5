//! What does the API server say when it refuses, in the words Kubernetes uses?

use serde_json::{Map, Value, json};

use crate::kinds::KindInfo;
pub use crate::schema::Cause;

impl Cause {
    /// The value is there, but wrong.
    pub fn invalid(field: impl Into<String>, value: &Value, why: &str) -> Self {
        Self::new("FieldValueInvalid", field, format!("Invalid value: {value}: {why}"))
    }

    /// The value must be there.
    pub fn required(field: impl Into<String>, why: &str) -> Self {
        let message = match why {
            "" => "Required value".to_owned(),
            why => format!("Required value: {why}"),
        };
        Self::new("FieldValueRequired", field, message)
    }

    /// The value may not be there, or may not be changed.
    pub fn forbidden(field: impl Into<String>, why: &str) -> Self {
        Self::new("FieldValueForbidden", field, format!("Forbidden: {why}"))
    }

    /// The value is none of those the field knows.
    pub fn unsupported(field: impl Into<String>, value: &Value, supported: &[&str]) -> Self {
        let known: Vec<String> = supported.iter().map(|one| format!("{one:?}")).collect();
        let message = format!("Unsupported value: {value}: supported values: {}", known.join(", "));
        Self::new("FieldValueNotSupported", field, message)
    }

    /// The value occurs twice where it may occur once.
    pub fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self::new("FieldValueDuplicate", field, format!("Duplicate value: {value}"))
    }

    /// A cause with its own reason.
    pub fn new(reason: &'static str, field: impl Into<String>, message: String) -> Self {
        Self { reason, message, field: field.into() }
    }
}

/// What a refusal is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// Name of the object.
    pub name: String,
    /// API group of the object, empty for the core group.
    pub group: String,
    /// The resource (`pods`), or the kind (`Pod`) where a field is invalid.
    pub kind: String,
    /// The object's uid, where the server tells it.
    pub uid: String,
    /// Which fields are wrong.
    pub causes: Vec<Cause>,
    /// When to ask again.
    pub retry_after_seconds: u32,
}

/// A refusal: HTTP status and the Status object that goes with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// HTTP status.
    pub code: u16,
    /// For example `NotFound`.
    pub reason: &'static str,
    /// The sentence a person reads.
    pub message: String,
    /// What it is about.
    pub details: Option<Box<Details>>,
}

impl ApiError {
    /// There is no such object.
    pub fn not_found(kind: &KindInfo, name: &str) -> Self {
        let message = format!("{} {name:?} not found", kind.resource());
        Self::about(404, "NotFound", message, kind, name)
    }

    /// An object of that name is there already.
    pub fn already_exists(kind: &KindInfo, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", kind.resource());
        Self::about(409, "AlreadyExists", message, kind, name)
    }

    /// The writer's picture of the object is not the server's.
    pub fn conflict(kind: &KindInfo, name: &str, why: &str) -> Self {
        let resource = kind.resource();
        let message = format!("Operation cannot be fulfilled on {resource} {name:?}: {why}");
        Self::about(409, "Conflict", message, kind, name)
    }

    /// The write was made from an older version of the object.
    pub fn stale(kind: &KindInfo, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version \
                   and try again";
        Self::conflict(kind, name, why)
    }

    /// Admission says no.
    pub fn forbidden(kind: &KindInfo, name: &str, why: &str) -> Self {
        let message = format!("{} {name:?} is forbidden: {why}", kind.resource());
        Self::about(403, "Forbidden", message, kind, name)
    }

    /// Fields are wrong.
    pub fn invalid(kind: &KindInfo, name: &str, causes: Vec<Cause>) -> Self {
        let mut seen: Vec<String> = Vec::new();
        for cause in &causes {
            let sentence = format!("{}: {}", cause.field, cause.message);
            if !seen.contains(&sentence) {
                seen.push(sentence);
            }
        }
        let what = if seen.len() == 1 { seen.remove(0) } else { format!("[{}]", seen.join(", ")) };
        let message = format!("{} {name:?} is invalid: {what}", kind.qualified());
        let mut refusal = Self::about(422, "Invalid", message, kind, name);
        if let Some(details) = &mut refusal.details {
            details.kind = kind.kind.to_string();
            details.causes = causes;
        }
        refusal
    }

    /// The request itself makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self { code: 400, reason: "BadRequest", message: message.into(), details: None }
    }

    /// The server itself stumbles. It gives no reason.
    pub fn internal(message: impl Into<String>) -> Self {
        Self { code: 500, reason: "", message: message.into(), details: None }
    }

    /// The resource does not know this verb.
    pub fn method_not_allowed(what: &str) -> Self {
        let message = format!("{what} is not supported on resources of this kind");
        Self { code: 405, reason: "MethodNotAllowed", message, details: None }
    }

    /// The body is in a language this resource does not speak.
    pub fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self { code: 415, reason: "UnsupportedMediaType", message: message.into(), details: None }
    }

    /// The version asked for is no longer kept.
    pub fn gone(message: impl Into<String>) -> Self {
        Self { code: 410, reason: "Expired", message: message.into(), details: None }
    }

    /// The version asked for has not happened yet.
    pub fn too_large_version(asked: u64, current: u64) -> Self {
        let message = format!("Too large resource version: {asked}, current: {current}");
        let causes =
            vec![Cause::new("ResourceVersionTooLarge", "", "Too large resource version".into())];
        let details = Details { causes, retry_after_seconds: 1, ..Details::default() };
        Self { code: 504, reason: "Timeout", message, details: Some(Box::new(details)) }
    }

    /// The server asks the caller to come back later.
    pub fn too_many_requests(message: impl Into<String>) -> Self {
        Self { code: 429, reason: "TooManyRequests", message: message.into(), details: None }
    }

    /// A refusal about one object.
    pub fn about(
        code: u16,
        reason: &'static str,
        message: String,
        kind: &KindInfo,
        name: &str,
    ) -> Self {
        let details = Details {
            name: name.to_owned(),
            group: kind.group.to_string(),
            kind: kind.plural.to_string(),
            ..Details::default()
        };
        Self { code, reason, message, details: Some(Box::new(details)) }
    }

    /// The Status object as HTTP sends it.
    pub fn to_json(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        if let Some(details) = &self.details {
            status["details"] = details.to_json();
        }
        status
    }
}

impl Details {
    /// As `details` of a Status.
    pub fn to_json(&self) -> Value {
        let mut map = Map::new();
        for (key, text) in
            [("name", &self.name), ("group", &self.group), ("kind", &self.kind), ("uid", &self.uid)]
        {
            if !text.is_empty() {
                map.insert(key.to_owned(), json!(text));
            }
        }
        if !self.causes.is_empty() {
            let causes: Vec<Value> = self.causes.iter().map(cause_json).collect();
            map.insert("causes".to_owned(), Value::Array(causes));
        }
        if self.retry_after_seconds > 0 {
            map.insert("retryAfterSeconds".to_owned(), json!(self.retry_after_seconds));
        }
        Value::Object(map)
    }
}

fn cause_json(cause: &Cause) -> Value {
    let mut map = Map::new();
    for (key, text) in
        [("reason", cause.reason), ("message", &cause.message), ("field", &cause.field)]
    {
        if !text.is_empty() {
            map.insert(key.to_owned(), json!(text));
        }
    }
    Value::Object(map)
}
