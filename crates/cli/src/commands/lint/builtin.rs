//! Which fields have a Service and an Ingress? The kinds of Kubernetes that a Rollout names.

use serde_json::{Map, Value, json};

/// Group, kind and schema of each.
pub fn schemas() -> [(&'static str, &'static str, Value); 3] {
    [
        ("", "Service", resource(&service())),
        ("networking.k8s.io", "Ingress", resource(&ingress())),
        ("extensions", "Ingress", free()),
    ]
}

fn resource(spec: &Value) -> Value {
    let mut schema = object(&[]);
    schema["properties"]["spec"] = spec.clone();
    schema["properties"]["status"] = free();
    schema
}

fn free() -> Value {
    json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// An object with these fields: `name:type`, where a type in brackets is a list of it.
fn object(fields: &[&str]) -> Value {
    let mut properties = Map::new();
    for field in fields {
        let (name, r#type) = field.split_once(':').unwrap_or((field, "string"));
        let schema = match r#type.strip_prefix('[').and_then(|each| each.strip_suffix(']')) {
            Some(each) => json!({ "type": "array", "items": scalar(each) }),
            None => scalar(r#type),
        };
        properties.insert(name.to_owned(), schema);
    }
    json!({ "type": "object", "properties": properties })
}

fn scalar(r#type: &str) -> Value {
    match r#type {
        "any" => free(),
        "intOrString" => json!({ "x-kubernetes-int-or-string": true }),
        "texts" => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        other => json!({ "type": other }),
    }
}

fn list(item: Value) -> Value {
    json!({ "type": "array", "items": item })
}

fn service() -> Value {
    let mut spec = object(&[
        "allocateLoadBalancerNodePorts:boolean",
        "clusterIP",
        "clusterIPs:[string]",
        "externalIPs:[string]",
        "externalName",
        "externalTrafficPolicy",
        "healthCheckNodePort:integer",
        "internalTrafficPolicy",
        "ipFamilies:[string]",
        "ipFamilyPolicy",
        "loadBalancerClass",
        "loadBalancerIP",
        "loadBalancerSourceRanges:[string]",
        "publishNotReadyAddresses:boolean",
        "selector:texts",
        "sessionAffinity",
        "sessionAffinityConfig:any",
        "trafficDistribution",
        "type",
    ]);
    spec["properties"]["ports"] = list(object(&[
        "appProtocol",
        "name",
        "nodePort:integer",
        "port:integer",
        "protocol",
        "targetPort:intOrString",
    ]));
    spec
}

fn ingress() -> Value {
    let mut backend = object(&["resource:any"]);
    backend["properties"]["service"] = object(&["name"]);
    backend["properties"]["service"]["properties"]["port"] = object(&["name", "number:integer"]);
    let mut path = object(&["path", "pathType"]);
    path["properties"]["backend"] = backend.clone();
    let mut http = object(&[]);
    http["properties"]["paths"] = list(path);
    let mut rule = object(&["host"]);
    rule["properties"]["http"] = http;
    let mut spec = object(&["ingressClassName"]);
    spec["properties"]["defaultBackend"] = backend;
    spec["properties"]["rules"] = list(rule);
    spec["properties"]["tls"] = list(object(&["hosts:[string]", "secretName"]));
    spec
}
