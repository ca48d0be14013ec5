//! What a Rollout refers to: Services, an Ingress, a workload and an AnalysisTemplate.

use gradus_api::names;
use serde_json::{Value, json};

use super::Kind;
use crate::differential::stage::GOOD;

/// Longer than any case: nothing is measured, and a run ends when a person says how.
const NEVER_MEASURED: &str = "15m";

/// The AnalysisTemplate of a case.
pub fn check(name: &str) -> Value {
    let metric = json!({
        "name": "judged",
        "initialDelay": NEVER_MEASURED,
        "successCondition": "result.good",
        "provider": { "web": { "url": "http://127.0.0.1:9/", "jsonPath": "{$}" } },
    });
    let spec = json!({ "metrics": [metric] });
    object(names::API_VERSION, names::kind::ANALYSIS_TEMPLATE, &format!("{name}-check"), spec)
}

pub fn template(name: &str) -> Value {
    json!({
        "metadata": { "labels": { "app": name } },
        "spec": { "containers": [{ "name": "app", "image": format!("{GOOD}1") }] },
    })
}

pub fn deployment(name: &str) -> Value {
    let spec = json!({
        "replicas": 0,
        "selector": { "matchLabels": { "app": name } },
        "template": template(name),
    });
    object("apps/v1", "Deployment", &format!("{name}-workload"), spec)
}

pub fn service(name: &str, role: &str) -> Value {
    let spec = json!({ "selector": { "app": name }, "ports": [{ "port": 80 }] });
    object("v1", "Service", &format!("{name}-{role}"), spec)
}

pub fn ingress(name: &str, kind: Kind) -> Value {
    let (class, backend) = match kind {
        Kind::Alb => {
            let port = json!({ "name": "use-annotation" });
            ("alb", json!({ "name": format!("{name}-root"), "port": port }))
        }
        _ => ("nginx", json!({ "name": format!("{name}-stable"), "port": { "number": 80 } })),
    };
    let path = json!({ "path": "/", "pathType": "Prefix", "backend": { "service": backend } });
    let spec = json!({
        "ingressClassName": class,
        "rules": [{ "host": "app.example.com", "http": { "paths": [path] } }],
    });
    let mut ingress = object("networking.k8s.io/v1", "Ingress", &format!("{name}-web"), spec);
    if kind == Kind::Alb {
        // With managed routes Argo Rollouts panics on an Ingress that has none.
        ingress["metadata"]["annotations"] = json!({ "example.com/note": "n" });
    }
    ingress
}

pub fn object(api_version: &str, kind: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": api_version, "kind": kind, "metadata": { "name": name }, "spec": spec,
    })
}
