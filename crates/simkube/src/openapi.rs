//! What do objects look like? OpenAPI v3 documents per group and version, and the same knowledge
//! used to read bodies of built-in kinds as a typed server does.
//!
//! `built_in.json` holds the definitions of the built-in kinds as a real API server publishes them,
//! without descriptions.

mod typed;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::kinds::{KindInfo, Kinds};

pub use typed::check;

const REFERENCE: &str = "#/components/schemas/";
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Definitions by name.
static BUILT_IN: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("openapi/built_in.json"))
        .expect("the definitions of the built-in kinds are JSON")
});

/// A definition by its name.
pub fn by_name(name: &str) -> Option<&'static Value> {
    BUILT_IN.get(name)
}

/// A definition by the last part of its name.
pub fn by_short_name(short: &str) -> Option<&'static Value> {
    let found = BUILT_IN.iter().find(|(name, _)| name.rsplit('.').next() == Some(short));
    found.map(|(_, definition)| definition)
}

/// The document of `/openapi/v3`: where the documents of all groups and versions are.
pub fn index(kinds: &Kinds) -> Value {
    let mut paths = Map::new();
    for (_, kind) in kinds.served() {
        let path = base(kind);
        if paths.contains_key(&path) {
            continue;
        }
        let hash = document(kinds, &path).map_or(0, |document| fingerprint(&document.to_string()));
        let url = format!("/openapi/v3/{path}?hash={hash:016X}");
        paths.insert(path, json!({"serverRelativeURL": url}));
    }
    json!({"paths": paths})
}

/// The document of `/openapi/v2` in protobuf: one that defines nothing. kubectl asks for it when it
/// validates a `kind: List` by itself, and skips what it finds no definition for.
pub fn version_2() -> Vec<u8> {
    let text = |number: u8, text: &str| {
        let length = u8::try_from(text.len()).expect("the texts below are short");
        [&[number << 3 | 2, length], text.as_bytes()].concat()
    };
    let info = [text(1, "Kubernetes"), text(2, "v1.35")].concat();
    let info_length = u8::try_from(info.len()).expect("two short texts");
    let no_paths_and_definitions = [8 << 3 | 2, 0, 9 << 3 | 2, 0];
    [&text(1, "2.0")[..], &[2 << 3 | 2, info_length], &info, &no_paths_and_definitions].concat()
}

/// The document of one group and version, such as `apis/apps/v1`.
pub fn document(kinds: &Kinds, path: &str) -> Option<Value> {
    let served: Vec<&KindInfo> =
        kinds.served().map(|(_, kind)| kind).filter(|kind| base(kind) == path).collect();
    let version = &served.first()?.version;
    let mut schemas = Map::new();
    let mut paths = Map::new();
    for kind in &served {
        let name = match definition(kind) {
            Some(name) => name.clone(),
            None => {
                let name = custom_name(kind);
                schemas.insert(name.clone(), custom_schema(kind));
                name
            }
        };
        collect(&name, &mut schemas);
        add_paths(&mut paths, kind, path, &name);
    }
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": version},
        "paths": paths,
        "components": {"schemas": schemas},
    }))
}

/// The name of a built-in kind's definition.
fn definition(kind: &KindInfo) -> Option<&'static String> {
    let wanted = json!({"group": kind.group, "kind": kind.kind, "version": kind.version});
    let found = BUILT_IN.iter().find(|(_, definition)| {
        let kinds = definition["x-kubernetes-group-version-kind"].as_array();
        kinds.is_some_and(|kinds| kinds.contains(&wanted))
    });
    found.map(|(name, _)| name)
}

/// Adds a definition and all it refers to.
fn collect(name: &str, schemas: &mut Map<String, Value>) {
    if !schemas.contains_key(name) {
        let Some(definition) = BUILT_IN.get(name) else {
            return;
        };
        schemas.insert(name.to_owned(), definition.clone());
    }
    let mut named = Vec::new();
    references(&schemas[name], &mut named);
    for name in named {
        if !schemas.contains_key(&name) {
            collect(&name, schemas);
        }
    }
}

fn references(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            if let Some(name) = reference(schema) {
                found.push(name.to_owned());
            }
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

/// The definition a schema refers to, directly or as its only `allOf`.
pub fn reference(schema: &Value) -> Option<&str> {
    let direct = schema["$ref"].as_str();
    let wrapped = || schema["allOf"].as_array()?.first()?["$ref"].as_str();
    direct.or_else(wrapped)?.strip_prefix(REFERENCE)
}

/// `dev.example.v1.Widget` for `widgets.example.dev`.
fn custom_name(kind: &KindInfo) -> String {
    let group: Vec<&str> = kind.group.split('.').rev().collect();
    format!("{}.{}.{}", group.join("."), kind.version, kind.kind)
}

/// The schema of a definition. Like a real server, this one describes the fields of every object
/// itself, whatever the definition says of them.
fn custom_schema(kind: &KindInfo) -> Value {
    let mut schema = kind.open_api.as_deref().cloned().unwrap_or_else(|| json!({"type": "object"}));
    let text = |description: &str| json!({"type": "string", "description": description});
    schema["properties"]["apiVersion"] = text("API group and version of this object.");
    schema["properties"]["kind"] = text("Kind of this object, in CamelCase.");
    schema["properties"]["metadata"] = json!({
        "description": "Metadata of this object: its name, labels, annotations and owners.",
        "allOf": [{"$ref": format!("{REFERENCE}{OBJECT_META}")}],
    });
    schema["x-kubernetes-group-version-kind"] = json!([group_version_kind(kind)]);
    schema
}

fn add_paths(paths: &mut Map<String, Value>, kind: &KindInfo, base: &str, definition: &str) {
    let scope = if kind.namespaced { "/namespaces/{namespace}" } else { "" };
    let all = format!("/{base}{scope}/{}", kind.plural);
    let one = format!("{all}/{{name}}");
    let operation = |action: &str, parameters: &[&str]| {
        let parameters: Vec<Value> = parameters
            .iter()
            .map(|name| json!({"name": name, "in": "query", "schema": {"type": "string"}}))
            .collect();
        let schema = json!({"$ref": format!("{REFERENCE}{definition}")});
        json!({
            "parameters": parameters,
            "responses": {"200": {"description": "OK", "content": {
                "application/json": {"schema": schema}
            }}},
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": group_version_kind(kind),
        })
    };
    const WRITE: [&str; 3] = ["dryRun", "fieldManager", "fieldValidation"];
    const SELECT: [&str; 5] =
        ["labelSelector", "fieldSelector", "limit", "continue", "resourceVersion"];
    paths.insert(
        all,
        json!({
            "get": operation("list", &SELECT),
            "post": operation("post", &WRITE),
            "delete": operation("deletecollection", &SELECT),
        }),
    );
    paths.insert(
        one,
        json!({
            "get": operation("get", &[]),
            "put": operation("put", &WRITE),
            "patch": operation("patch", &["dryRun", "fieldManager", "fieldValidation", "force"]),
            "delete": operation("delete", &["dryRun", "gracePeriodSeconds", "propagationPolicy"]),
        }),
    );
}

fn group_version_kind(kind: &KindInfo) -> Value {
    json!({"group": kind.group, "version": kind.version, "kind": kind.kind})
}

fn base(kind: &KindInfo) -> String {
    match &*kind.group {
        "" => format!("api/{}", kind.version),
        group => format!("apis/{group}/{}", kind.version),
    }
}

/// FNV-1a: tells a client whether a document has changed.
fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_kind_has_a_definition() {
        for (_, kind) in Kinds::default().served() {
            assert!(definition(kind).is_some(), "{}", kind.qualified());
        }
    }

    #[test]
    fn a_document_is_closed_under_reference() {
        let document = document(&Kinds::default(), "apis/apps/v1").unwrap();
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let mut named = Vec::new();
        references(&document, &mut named);
        assert!(named.iter().all(|name| schemas.contains_key(name)));
        let patch =
            &document["paths"]["/apis/apps/v1/namespaces/{namespace}/replicasets/{name}"]["patch"];
        assert_eq!(patch["x-kubernetes-group-version-kind"]["kind"], "ReplicaSet");
        assert!(
            patch["parameters"].as_array().unwrap().iter().any(|p| p["name"] == "fieldValidation")
        );
    }

    #[test]
    fn the_index_leads_to_every_document() {
        let kinds = Kinds::default();
        let index = index(&kinds);
        for path in index["paths"].as_object().unwrap().keys() {
            assert!(document(&kinds, path).is_some(), "{path}");
        }
        assert_eq!(document(&kinds, "apis/frob.dev/v1"), None);
    }
}
