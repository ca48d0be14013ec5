//! Takes what our CRDs embed out of Kubernetes' own OpenAPI documents.
//!
//! ```text
//! kubectl get --raw /openapi/v3/api/v1 > core.json
//! kubectl get --raw /openapi/v3/apis/batch/v1 > batch.json
//! cargo run -p gradus-api --example kubernetes_schema -- core.json batch.json \
//!     > crates/api/src/crd/kubernetes.json
//! ```

use std::collections::BTreeMap;
use std::error::Error;

use serde_json::{Map, Value};

/// Where the walk begins.
const ROOTS: [&str; 2] = ["io.k8s.api.core.v1.PodTemplateSpec", "io.k8s.api.batch.v1.JobSpec"];
/// Types that `crd/kubernetes.rs` describes itself.
const OWN: [&str; 4] = ["ObjectMeta", "Quantity", "IntOrString", "Time"];
/// Fields that are left out, and why is said there too.
const LEFT_OUT: [(&str, &str); 2] = [("PodSpec", "volumes"), ("PodSpec", "workloadRef")];
/// What is kept of a schema beside its parts.
const KEYWORDS: [&str; 6] = [
    "type",
    "format",
    "required",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut published = Map::new();
    for path in std::env::args().skip(1) {
        let mut document: Value = serde_json::from_str(&std::fs::read_to_string(&path)?)?;
        let schemas = document["components"]["schemas"].as_object_mut();
        published.append(schemas.ok_or(format!("{path}: no OpenAPI v3 document"))?);
    }
    let mut taken = BTreeMap::new();
    for root in ROOTS {
        take(root, &published, &mut taken)?;
    }
    let lines: Vec<String> =
        taken.iter().map(|(name, schema)| format!("{}:{schema}", Value::from(&name[..]))).collect();
    println!("{{\n{}\n}}", lines.join(",\n"));
    Ok(())
}

/// Takes one definition and all it refers to; gives its short name.
fn take(
    name: &str,
    published: &Map<String, Value>,
    taken: &mut BTreeMap<String, Value>,
) -> Result<String, Box<dyn Error>> {
    let short = name.rsplit(['.', '/']).next().unwrap_or(name).to_owned();
    if OWN.contains(&&short[..]) || taken.contains_key(&short) {
        return Ok(short);
    }
    let name = name.rsplit('/').next().unwrap_or(name);
    let schema = published.get(name).ok_or(format!("{name}: in none of the documents"))?;
    taken.insert(short.clone(), Value::Null);
    let reduced = reduce(schema, &short, published, taken)?;
    taken.insert(short.clone(), reduced);
    Ok(short)
}

/// The schema without what the CRDs do not carry; references by short names.
fn reduce(
    schema: &Value,
    owner: &str,
    published: &Map<String, Value>,
    taken: &mut BTreeMap<String, Value>,
) -> Result<Value, Box<dyn Error>> {
    let reference = schema.get("$ref").or_else(|| schema["allOf"][0].get("$ref"));
    if let Some(name) = reference.and_then(Value::as_str) {
        return Ok(serde_json::json!({ "$ref": take(name, published, taken)? }));
    }
    let mut reduced = Map::new();
    for keyword in KEYWORDS {
        reduced.extend(schema.get(keyword).map(|value| (keyword.to_owned(), value.clone())));
    }
    for part in ["items", "additionalProperties"] {
        if let Some(value) = schema.get(part) {
            reduced.insert(part.to_owned(), reduce(value, "", published, taken)?);
        }
    }
    if let Some(fields) = schema["properties"].as_object() {
        let mut properties = Map::new();
        for (field, value) in fields {
            if !LEFT_OUT.contains(&(owner, &field[..])) {
                properties.insert(field.clone(), reduce(value, "", published, taken)?);
            }
        }
        reduced.insert("properties".to_owned(), Value::Object(properties));
    }
    Ok(Value::Object(reduced))
}
