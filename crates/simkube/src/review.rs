//! What would the API server say of an object of a built-in kind? Asked without a cluster, by tools
//! that judge manifests.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::admit;
use crate::error::Cause;
use crate::kinds::Kinds;
use crate::object::Object;
use crate::openapi;

/// What a quantity (`100m`, `1Gi`) looks like.
const QUANTITY: &str = concat!(
    r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)",
    r"([KMGTPE]i|[numkMGTPE]|[eE][+-]?([0-9]+\.?[0-9]*|\.[0-9]+))?$"
);

static KINDS: LazyLock<Kinds> = LazyLock::new(Kinds::default);

/// The schema of a built-in type by its short name (`Service`, `PodTemplateSpec`), with all it
/// refers to put in place, as a structural schema.
pub fn schema(name: &str) -> Option<Value> {
    openapi::by_short_name(name).map(structural)
}

/// Everything that the server would refuse in a new object of a built-in kind whose fields have the
/// right types. Nothing where the kind is not built in.
pub fn faults(object: &Value) -> Vec<Cause> {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let Some(id) = KINDS.by_name(text("apiVersion"), text("kind")) else { return Vec::new() };
    let kind = KINDS.get(id);
    let Ok(mut object) = Object::from_json(id, object.clone()) else { return Vec::new() };
    if admit::check_shape(kind, &object).is_err() {
        return Vec::new();
    }
    admit::complete(&mut object, kind);
    admit::check_new(&object, None, kind)
}

/// What is wrong with a name that must be a label of DNS, as that of a namespace.
pub fn label_faults(name: &str) -> Vec<String> {
    admit::dns_label(name)
}

/// What is wrong with labels, key by key.
pub fn faults_of_labels(labels: &Map<String, Value>) -> Vec<(String, String)> {
    let each = labels.iter().flat_map(|(key, value)| {
        let of_value = admit::label_value(value.as_str().unwrap_or_default());
        let all = admit::qualified_name(key).into_iter().chain(of_value);
        all.map(move |why| (key.clone(), why))
    });
    each.collect()
}

/// A published definition as the schema of a CustomResourceDefinition would say it.
fn structural(definition: &Value) -> Value {
    let referred = openapi::reference(definition);
    match referred.map(|name| (name, openapi::by_name(name))) {
        Some((name, _)) if name.ends_with(".Quantity") => {
            json!({ "x-kubernetes-int-or-string": true, "pattern": QUANTITY })
        }
        Some((name, _)) if name.ends_with(".IntOrString") => {
            json!({ "x-kubernetes-int-or-string": true })
        }
        Some((_, Some(definition))) => structural(definition),
        Some((_, None)) => free(),
        None => written_out(definition),
    }
}

fn written_out(definition: &Value) -> Value {
    let Value::Object(fields) = definition else { return free() };
    let mut schema = Map::new();
    for keyword in ["type", "format", "required", "enum"] {
        schema.extend(fields.get(keyword).map(|value| (keyword.to_owned(), value.clone())));
    }
    for part in ["items", "additionalProperties"] {
        schema.extend(fields.get(part).map(|value| (part.to_owned(), structural(value))));
    }
    let properties = fields.get("properties").and_then(Value::as_object);
    if let Some(properties) = properties {
        let each = properties.iter().map(|(name, value)| (name.clone(), structural(value)));
        schema.insert("properties".to_owned(), Value::Object(each.collect()));
    }
    let is_open = !schema.contains_key("properties")
        && !schema.contains_key("additionalProperties")
        && matches!(schema.get("type").and_then(Value::as_str), None | Some("object"));
    if is_open { free() } else { Value::Object(schema) }
}

fn free() -> Value {
    json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Schema;

    fn pod(container: Value) -> Value {
        let labels = json!({ "app": "web" });
        json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": { "name": "web" },
            "spec": { "selector": { "matchLabels": labels }, "template": {
                "metadata": { "labels": labels }, "spec": { "containers": [container] } } } })
    }

    #[test]
    fn fields_and_types_are_those_that_a_server_publishes() {
        let schema = Schema::compile(&schema("ReplicaSet").unwrap()).unwrap();
        let cases = [
            ("nothing wrong", json!({ "name": "c", "image": "i" }), ""),
            ("an unknown field", json!({ "name": "c", "imagee": "i" }), "imagee"),
            (
                "a quantity",
                json!({ "name": "c", "resources": { "limits": { "cpu": "100x" } } }),
                "cpu",
            ),
            (
                "a text for a number",
                json!({ "name": "c", "ports": [{ "containerPort": "a" }] }),
                "containerPort",
            ),
        ];
        for (what, container, expected) in cases {
            let object = pod(container);
            let unknown = schema.unknown_fields(&object).into_iter();
            let wrong = schema.validate(&object, None).into_iter().map(|cause| cause.field);
            let found: Vec<String> = unknown.chain(wrong).collect();
            assert_eq!(found.is_empty(), expected.is_empty(), "{what}: {found:?}");
            assert!(found.iter().all(|path| path.contains(expected)), "{what}: {found:?}");
        }
    }

    #[test]
    fn what_a_server_would_refuse_is_named() {
        let probe = json!({ "name": "c", "image": "i", "readinessProbe": { "periodSeconds": -1 } });
        let found: Vec<String> = faults(&pod(probe)).into_iter().map(|cause| cause.field).collect();
        let path = "spec.template.spec.containers[0].readinessProbe";
        assert_eq!(found, [path.to_owned(), format!("{path}.periodSeconds")]);
        assert!(faults(&json!({ "apiVersion": "x/v1", "kind": "Thing" })).is_empty());
    }
}
