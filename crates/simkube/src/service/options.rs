//! From query parameters and the body of a DELETE to the options of a call.

use serde_json::Value;

use super::query::Query;
use crate::error::{ApiError, Cause};
use crate::request::{FieldValidation, Options, Propagation, Request, Verb};

/// Reads the query parameters.
pub fn read(call: &mut Request, query: &Query) -> Result<(), ApiError> {
    let options = &mut call.options;
    let text = |name: &str| query.get(name).map(Into::into);
    if let Some(kind) = written_with(call.verb) {
        options.dry_run = is_dry_run(query.get("dryRun"), kind)?;
        options.field_manager = field_manager(query.get("fieldManager"), kind)?.into();
        options.field_validation = field_validation(query.get("fieldValidation"), kind)?;
    }
    options.label_selector = text("labelSelector");
    options.field_selector = text("fieldSelector");
    let limit = number::<i64>(query, "limit")?.filter(|limit| *limit > 0);
    options.limit = limit.and_then(|limit| usize::try_from(limit).ok());
    options.continue_token = text("continue");
    options.grace_seconds = number(query, "gracePeriodSeconds")?;
    if let Some(policy) = query.get("propagationPolicy") {
        options.propagation = Some(propagation(policy)?);
    }
    options.resource_version = version(query)?;
    if call.verb == Verb::List {
        // A list takes no time, but it is read.
        number::<i64>(query, "timeoutSeconds")?;
        options.exact_version = is_exact(query, options.limit.is_some())?;
    }
    Ok(())
}

/// Reads the DeleteOptions a DELETE may carry as its body; what it says counts.
pub fn read_deletion(options: &mut Options, body: &Value) -> Result<(), ApiError> {
    match &body["gracePeriodSeconds"] {
        Value::Null => {}
        Value::Number(seconds) if seconds.is_i64() => options.grace_seconds = seconds.as_i64(),
        other => {
            let message = format!("gracePeriodSeconds: expected a whole number, found {other}");
            return Err(ApiError::bad_request(message));
        }
    }
    match (body["propagationPolicy"].as_str(), body["orphanDependents"].as_bool()) {
        (Some(policy), Some(_)) => {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            let cause = Cause::invalid("propagationPolicy", &Value::from(policy), why);
            return Err(invalid_options("DeleteOptions", cause));
        }
        (Some(policy), None) => options.propagation = Some(propagation(policy)?),
        (None, Some(true)) => options.propagation = Some(Propagation::Orphan),
        (None, Some(false)) => options.propagation = Some(Propagation::Background),
        (None, None) => {}
    }
    options.expect_uid = body["preconditions"]["uid"].as_str().map(Into::into);
    if let Some(version) = body["preconditions"]["resourceVersion"].as_str() {
        // A version that is no number is one that no object has.
        options.expect_version = Some(version.parse().unwrap_or(u64::MAX));
    }
    if let Some(dry_run) = body["dryRun"].as_array().and_then(|list| list.first()) {
        options.dry_run = is_dry_run(dry_run.as_str(), "DeleteOptions")?;
    }
    Ok(())
}

/// The `resourceVersion` parameter; 0 means any version, which is what nothing means here too.
pub fn version(query: &Query) -> Result<Option<u64>, ApiError> {
    let Some(text) = query.get("resourceVersion") else {
        return Ok(None);
    };
    text.parse().map(Some).map_err(|_| {
        ApiError::bad_request(format!("invalid resource version {text:?}: it is not a number"))
    })
}

/// A refusal about the options of a request, not about an object.
pub fn invalid_options(kind: &str, cause: Cause) -> ApiError {
    let message = format!("{kind}.meta.k8s.io \"\" is invalid: {}: {}", cause.field, cause.message);
    let details = crate::error::Details {
        group: "meta.k8s.io".into(),
        kind: kind.into(),
        causes: vec![cause],
        ..Default::default()
    };
    ApiError { code: 422, reason: "Invalid", message, details: Some(Box::new(details)) }
}

/// The longest name under which fields are written.
const LONGEST_MANAGER: usize = 128;

/// What the options of a verb are called, if it writes.
fn written_with(verb: Verb) -> Option<&'static str> {
    match verb {
        Verb::Get | Verb::List => None,
        Verb::Create => Some("CreateOptions"),
        Verb::Update => Some("UpdateOptions"),
        Verb::Patch(_) => Some("PatchOptions"),
        Verb::Delete | Verb::DeleteCollection => Some("DeleteOptions"),
    }
}

/// Whether a list asks for exactly its version: it says so, or it wants pages of a version.
fn is_exact(query: &Query, is_paged: bool) -> Result<bool, ApiError> {
    let field = "resourceVersionMatch";
    let forbidden =
        |field: &str, why: &str| Err(invalid_options("ListOptions", Cause::forbidden(field, why)));
    if query.get("sendInitialEvents").is_some() {
        return forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list");
    }
    let version = query.get("resourceVersion");
    let Some(word) = query.get(field) else {
        return Ok(is_paged && version.is_some_and(|version| version != "0"));
    };
    match (word, version) {
        (_, None) => {
            forbidden(field, "resourceVersionMatch is forbidden unless resourceVersion is provided")
        }
        _ if query.get("continue").is_some() => {
            forbidden(field, "resourceVersionMatch is forbidden when continue is provided")
        }
        ("Exact", Some("0")) => forbidden(
            field,
            "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
        ),
        ("Exact", Some(_)) => Ok(true),
        ("NotOlderThan", Some(_)) => Ok(false),
        (other, Some(_)) => Err(invalid_options(
            "ListOptions",
            Cause::unsupported(field, &Value::from(other), &["Exact", "NotOlderThan", ""]),
        )),
    }
}

fn is_dry_run(value: Option<&str>, kind: &str) -> Result<bool, ApiError> {
    match value {
        None => Ok(false),
        Some("All") => Ok(true),
        Some(other) => Err(invalid_options(
            kind,
            Cause::unsupported("dryRun", &Value::from(vec![other]), &["All"]),
        )),
    }
}

fn field_manager<'a>(value: Option<&'a str>, kind: &str) -> Result<&'a str, ApiError> {
    let name = value.unwrap_or_default();
    let refused = |cause| Err(invalid_options(kind, cause));
    if name.len() > LONGEST_MANAGER {
        let message = format!("Too long: may not be more than {LONGEST_MANAGER} bytes");
        return refused(Cause::new("FieldValueTooLong", "fieldManager", message));
    }
    if name.chars().any(char::is_control) {
        let why = "should only contain printable characters";
        return refused(Cause::invalid("fieldManager", &Value::from(name), why));
    }
    Ok(name)
}

fn field_validation(value: Option<&str>, kind: &str) -> Result<FieldValidation, ApiError> {
    match value {
        None | Some("Warn") => Ok(FieldValidation::Warn),
        Some("Strict") => Ok(FieldValidation::Strict),
        Some("Ignore") => Ok(FieldValidation::Ignore),
        Some(other) => Err(invalid_options(
            kind,
            Cause::unsupported(
                "fieldValidation",
                &Value::from(other),
                &["", "Ignore", "Strict", "Warn"],
            ),
        )),
    }
}

fn propagation(policy: &str) -> Result<Propagation, ApiError> {
    match policy {
        "Background" => Ok(Propagation::Background),
        "Foreground" => Ok(Propagation::Foreground),
        "Orphan" => Ok(Propagation::Orphan),
        other => Err(invalid_options(
            "DeleteOptions",
            Cause::unsupported(
                "propagationPolicy",
                &Value::from(other),
                &["Foreground", "Background", "Orphan", "nil"],
            ),
        )),
    }
}

/// A parameter that is a number.
pub fn number<T: std::str::FromStr>(query: &Query, name: &str) -> Result<Option<T>, ApiError> {
    let Some(text) = query.get(name) else {
        return Ok(None);
    };
    let wrong = || ApiError::bad_request(format!("{name}: {text:?} is not a number"));
    text.parse().map(Some).map_err(|_| wrong())
}
