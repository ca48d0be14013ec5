//! Schemas of Kubernetes' own types, as far as our kinds embed them: pod templates, Jobs.
//!
//! `kubernetes.json` holds what the API server of Kubernetes 1.35 publishes at `/openapi/v3`,
//! without descriptions, defaults and enumerations, one definition per line, as
//! `examples/kubernetes_schema.rs` takes it out of the published documents. Left out are
//! `volumes` (kept as they are) and `workloadRef` of a pod's spec, which is newer than the
//! pod-template hash and would change a template without changing its hash.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::rollout::{LabelSelector, Metadata};
use crate::schema::{Schema, anything};
use crate::values::{IntOrString, Time};

const DEFINITIONS: &str = include_str!("kubernetes.json");

/// The defaults, no more and no fewer: the API server stores them, so they are part of what is
/// hashed.
const DEFAULTS: [(&str, &str, &str); 8] = [
    ("ContainerPort", "protocol", r#""TCP""#),
    ("GRPCAction", "service", r#""""#),
    ("FileKeySelector", "optional", "false"),
    ("ConfigMapKeySelector", "name", r#""""#),
    ("SecretKeySelector", "name", r#""""#),
    ("ConfigMapEnvSource", "name", r#""""#),
    ("SecretEnvSource", "name", r#""""#),
    ("LocalObjectReference", "name", r#""""#),
];

/// What a quantity (`100m`, `1Gi`) looks like.
const QUANTITY: &str = concat!(
    r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)",
    r"([KMGTPE]i|[numkMGTPE]|[eE][+-]?([0-9]+\.?[0-9]*|\.[0-9]+))?$"
);

/// The schema of a pod template.
pub(crate) fn pod_template() -> Value {
    Definitions::read().schema("PodTemplateSpec")
}

/// The schema of a Job's spec.
pub(crate) fn job() -> Value {
    Definitions::read().schema("JobSpec")
}

/// The schema of a label selector, with our descriptions.
pub(crate) fn label_selector() -> Value {
    let mut schema = Definitions::read().schema("LabelSelector");
    describe(&mut schema, &LabelSelector::schema());
    schema
}

/// Takes the descriptions of the fields over from a schema of the same shape.
fn describe(schema: &mut Value, from: &Value) {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (name, property) in properties.into_iter().flatten() {
        property["description"] = from["properties"][name]["description"].clone();
        describe(property, &from["properties"][name]);
    }
    if let Some(items) = schema.get_mut("items") {
        describe(items, &from["items"]);
    }
}

struct Definitions(BTreeMap<String, Value>);

impl Definitions {
    fn read() -> Self {
        Self(serde_json::from_str(DEFINITIONS).expect("the data is JSON, as the tests show"))
    }

    /// The definition with all it refers to put in place.
    fn schema(&self, name: &str) -> Value {
        let mut schema = match name {
            "ObjectMeta" => return Metadata::schema(),
            "Quantity" => return quantity(),
            "IntOrString" => return IntOrString::schema(),
            "Time" => return Time::schema(),
            _ => self.0.get(name).cloned().expect("every reference of the data is defined"),
        };
        self.replace_references(&mut schema);
        for (_, property, default) in DEFAULTS.iter().filter(|(owner, ..)| *owner == name) {
            let default = serde_json::from_str(default).expect("the defaults are JSON");
            schema["properties"][property]["default"] = default;
        }
        match name {
            "PodSpec" => schema["properties"]["volumes"] = anything(),
            "Container" | "EphemeralContainer" => {
                let resources = &mut schema["properties"]["resources"]["properties"];
                resources["limits"] = anything();
                resources["requests"] = anything();
            }
            _ => {}
        }
        schema
    }

    fn replace_references(&self, schema: &mut Value) {
        if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
            *schema = self.schema(name);
            return;
        }
        let parts: Vec<&mut Value> = match schema {
            Value::Object(keywords) => keywords.values_mut().collect(),
            Value::Array(items) => items.iter_mut().collect(),
            _ => return,
        };
        for part in parts {
            self.replace_references(part);
        }
    }
}

fn quantity() -> Value {
    let mut schema = IntOrString::schema();
    schema["pattern"] = json!(QUANTITY);
    schema
}
