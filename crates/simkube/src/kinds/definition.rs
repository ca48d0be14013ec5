//! What does a CustomResourceDefinition install?

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{Column, Generation, Kind, KindId, ScalePaths};
use crate::error::Cause;
use crate::schema::Schema;

/// The kinds a definition installs, the stored version first.
pub(crate) fn installed(spec: &Value) -> Result<Vec<Kind>, Vec<Cause>> {
    let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut kinds = Vec::new();
    let mut causes = Vec::new();
    for (index, version) in versions.iter().enumerate() {
        match kind(spec, version, index) {
            Ok(kind) if version["storage"] == true => kinds.insert(0, kind),
            Ok(kind) => kinds.push(kind),
            Err(cause) => causes.push(cause),
        }
    }
    if causes.is_empty() { Ok(kinds) } else { Err(causes) }
}

/// What is wrong with a definition, beyond its schemas.
pub(crate) fn check(name: &str, spec: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let group = text(spec, "group");
    let plural = text(&spec["names"], "plural");
    let expected = format!("{plural}.{group}");
    if name != expected {
        let why = "must be spec.names.plural+\".\"+spec.group";
        causes.push(Cause::invalid("metadata.name", &json!(name), why));
    }
    for (field, value) in [
        ("spec.group", group),
        ("spec.names.plural", plural),
        ("spec.names.kind", text(&spec["names"], "kind")),
    ] {
        if value.is_empty() {
            causes.push(Cause::required(field, ""));
        }
    }
    match text(spec, "scope") {
        "Namespaced" | "Cluster" => {}
        "" => causes.push(Cause::required("spec.scope", "")),
        _ => causes.push(Cause::unsupported(
            "spec.scope",
            &spec["scope"],
            &["Cluster", "Namespaced"],
        )),
    }
    let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
        let why = "must have exactly one version marked as storage version";
        causes.push(Cause::invalid("spec.versions", &spec["versions"], why));
        let why = "must have at least one stored version";
        causes.push(Cause::invalid("status.storedVersions", &json!([]), why));
    }
    for (index, version) in versions.iter().enumerate() {
        if version["schema"]["openAPIV3Schema"].is_null() {
            let field = format!("spec.versions[{index}].schema.openAPIV3Schema");
            causes.push(Cause::required(field, "schemas are required"));
        }
    }
    causes
}

/// The status of a definition whose kinds are served.
pub(crate) fn established(spec: &Value, now: Timestamp) -> Value {
    let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let stored: Vec<&Value> = versions
        .iter()
        .filter(|version| version["storage"] == true)
        .map(|version| &version["name"])
        .collect();
    let condition = |kind: &str, reason: &str, message: &str| {
        json!({ "type": kind, "status": "True", "reason": reason, "message": message,
            "lastTransitionTime": now.to_string() })
    };
    json!({
        "acceptedNames": spec["names"],
        "storedVersions": stored,
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted",
                "the initial names have been accepted"),
        ],
    })
}

/// The status of a definition that is being deleted, with its objects.
pub(crate) fn terminating(status: &Value, now: Timestamp) -> Value {
    let mut status = status.clone();
    let condition = json!({
        "type": "Terminating", "status": "True", "reason": "InstanceDeletionInProgress",
        "message": "CustomResource deletion is in progress",
        "lastTransitionTime": now.to_string(),
    });
    if let Some(conditions) = status["conditions"].as_array_mut() {
        conditions.push(condition);
    }
    status
}

fn kind(spec: &Value, version: &Value, index: usize) -> Result<Kind, Cause> {
    let names = &spec["names"];
    let subresources = &version["subresources"];
    let written = &version["schema"]["openAPIV3Schema"];
    let schema = Schema::compile(written).map_err(|error| {
        let field = format!("spec.versions[{index}].schema.openAPIV3Schema");
        Cause::new("FieldValueInvalid", field, format!("Invalid value: {error}"))
    })?;
    Ok(Kind {
        group: text(spec, "group").into(),
        version: text(version, "name").into(),
        kind: text(names, "kind").into(),
        list_kind: text(names, "listKind").into(),
        plural: text(names, "plural").into(),
        singular: text(names, "singular").into(),
        short_names: texts(&names["shortNames"]),
        categories: texts(&names["categories"]),
        namespaced: spec["scope"] == "Namespaced",
        has_status: subresources.get("status").is_some_and(Value::is_object),
        scale: subresources.get("scale").and_then(Value::as_object).map(scale),
        generation: Generation::Content,
        custom: true,
        unconditional_update: false,
        returns_deleted: false,
        schema: Some(Arc::new(schema)),
        open_api: Some(Arc::new(written.clone())),
        columns: columns(&version["additionalPrinterColumns"]),
        served: version["served"] == true,
        stored_as: KindId(0),
    })
}

fn scale(paths: &Map<String, Value>) -> ScalePaths {
    let path = |key: &str| {
        let text = paths.get(key).and_then(Value::as_str)?;
        Some(text.trim_start_matches('.').to_owned())
    };
    ScalePaths {
        wanted: path("specReplicasPath").unwrap_or_default(),
        seen: path("statusReplicasPath").unwrap_or_default(),
        selector: path("labelSelectorPath"),
    }
}

fn columns(list: &Value) -> Vec<Column> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter()
        .map(|column| Column {
            name: text(column, "name").to_owned(),
            column_type: text(column, "type").to_owned(),
            format: text(column, "format").to_owned(),
            description: text(column, "description").to_owned(),
            priority: column["priority"].as_i64().unwrap_or_default(),
            json_path: text(column, "jsonPath").to_owned(),
        })
        .collect()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

fn texts(list: &Value) -> Vec<String> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}
