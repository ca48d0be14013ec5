//! From query parameters and the body of a DELETE to the options of a call.

use serde_json::Value;

use super::query::Query;
use crate::error::{ApiError, Cause};
use crate::request::{FieldValidation, Options, Propagation, Request, Verb};

/// Reads the query parameters.
pub fn read(call: &mut Request, query: &Query) -> Result<(), ApiError> {
    let options = &mut call.options;
    let text = |name: &str| query.get(name).map(Into::into);
    options.dry_run = is_dry_run(query.get("dryRun"))?;
    options.field_manager = text("fieldManager").unwrap_or_default();
    options.field_validation = field_validation(query.get("fieldValidation"))?;
    options.label_selector = text("labelSelector");
    options.field_selector = text("fieldSelector");
    options.limit = number(query, "limit")?.filter(|limit| *limit > 0);
    options.continue_token = text("continue");
    options.grace_seconds = number(query, "gracePeriodSeconds")?;
    if let Some(policy) = query.get("propagationPolicy") {
        options.propagation = Some(propagation(policy)?);
    }
    options.resource_version = version(query)?;
    if call.verb == Verb::List {
        options.exact_version = is_exact(query)?;
    }
    Ok(())
}

/// Reads the DeleteOptions a DELETE may carry as its body; what it says counts.
pub fn read_deletion(options: &mut Options, body: &Value) -> Result<(), ApiError> {
    if let Some(seconds) = body["gracePeriodSeconds"].as_i64() {
        options.grace_seconds = Some(seconds);
    }
    match (body["propagationPolicy"].as_str(), body["orphanDependents"].as_bool()) {
        (Some(policy), _) => options.propagation = Some(propagation(policy)?),
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
        options.dry_run = is_dry_run(dry_run.as_str())?;
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

/// Whether a list asks for exactly its version, if it says how it means it.
fn is_exact(query: &Query) -> Result<bool, ApiError> {
    let field = "resourceVersionMatch";
    let Some(word) = query.get(field) else {
        return Ok(false);
    };
    let forbidden = |why: &str| Err(invalid_options("ListOptions", Cause::forbidden(field, why)));
    match (word, query.get("resourceVersion")) {
        (_, None) => {
            forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided")
        }
        ("Exact", Some("0")) => {
            forbidden("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"")
        }
        ("Exact", Some(_)) => Ok(true),
        ("NotOlderThan", Some(_)) => Ok(false),
        (other, Some(_)) => Err(invalid_options(
            "ListOptions",
            Cause::unsupported(field, &Value::from(other), &["Exact", "NotOlderThan", ""]),
        )),
    }
}

fn is_dry_run(value: Option<&str>) -> Result<bool, ApiError> {
    match value {
        None => Ok(false),
        Some("All") => Ok(true),
        Some(other) => Err(invalid_options(
            "CreateOptions",
            Cause::unsupported("dryRun", &Value::from(vec![other]), &["All"]),
        )),
    }
}

fn field_validation(value: Option<&str>) -> Result<FieldValidation, ApiError> {
    match value {
        None | Some("Warn") => Ok(FieldValidation::Warn),
        Some("Strict") => Ok(FieldValidation::Strict),
        Some("Ignore") => Ok(FieldValidation::Ignore),
        Some(other) => Err(invalid_options(
            "CreateOptions",
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

fn number<T: std::str::FromStr>(query: &Query, name: &str) -> Result<Option<T>, ApiError> {
    let Some(text) = query.get(name) else {
        return Ok(None);
    };
    let wrong = || ApiError::bad_request(format!("{name}: {text:?} is not a number"));
    text.parse().map(Some).map_err(|_| wrong())
}
