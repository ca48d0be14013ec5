//! What does a CustomResourceDefinition install?

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{Column, Generation, KindId, KindInfo, ScalePaths};
use crate::error::Cause;
use crate::schema::Schema;

/// The kinds a definition installs, the stored version first.
pub(crate) fn installed(spec: &Value) -> Result<Vec<KindInfo>, Vec<Cause>> {
    let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_common = versions.windows(2).all(|two| two[0]["schema"] == two[1]["schema"]);
    let mut kinds = Vec::new();
    let mut causes = Vec::new();
    for (index, version) in versions.iter().enumerate() {
        // What all versions have in common is named once.
        let path = match is_common {
            true => "spec.validation".to_owned(),
            false => format!("spec.versions[{index}].schema"),
        };
        match kind(spec, version, &path) {
            Ok(kind) if version["storage"] == true => kinds.insert(0, kind),
            Ok(kind) => kinds.push(kind),
            Err(cause) => causes.push(cause),
        }
    }
    if causes.is_empty() { Ok(kinds) } else { Err(causes) }
}

/// The versions in which objects of a definition are stored, or were before.
pub(crate) fn stored_versions(spec: &Value, before: &Value) -> Vec<String> {
    let mut stored = texts(&before["storedVersions"]);
    let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let storage = versions.iter().find(|version| version["storage"] == true);
    let name = storage.map(|version| text(version, "name").to_owned());
    stored.extend(name.filter(|name| !texts(&before["storedVersions"]).contains(name)));
    stored
}

/// The status of a definition whose kinds are served.
pub(crate) fn established(spec: &Value, stored: &[String], now: Timestamp) -> Value {
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

fn kind(spec: &Value, version: &Value, path: &str) -> Result<KindInfo, Cause> {
    let names = &spec["names"];
    let subresources = &version["subresources"];
    let written = &version["schema"]["openAPIV3Schema"];
    let schema = Schema::compile(written).map_err(|error| {
        let field = format!("{path}.{}", error.path);
        Cause::new("FieldValueInvalid", field, format!("Invalid value: {}", error.problem))
    })?;
    Ok(KindInfo {
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
        put_creates: false,
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
