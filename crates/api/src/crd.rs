//! The CustomResourceDefinitions of the five kinds, and how they look as YAML.

use std::sync::OnceLock;

use serde_json::{Map, Value, json};

use crate::analysis::{AnalysisRunSpec, AnalysisRunStatus, AnalysisTemplateSpec};
use crate::experiment::{ExperimentSpec, ExperimentStatus};
use crate::names::{GROUP, VERSION, kind, plural};
use crate::rollout::{RolloutSpec, RolloutStatus};
use crate::schema::Schema;

pub(crate) mod kubernetes;
pub mod yaml;

const HEADER: &str = "# Made by `cargo xtask crds`.\n";

/// The five definitions, each with the name of its file. They are made once: that takes longer than to
/// simulate a rollout.
pub fn crds() -> Vec<(&'static str, Value)> {
    static MADE: OnceLock<Vec<(&'static str, Value)>> = OnceLock::new();
    let make = || {
        vec![
            ("rollout-crd.yaml", rollouts()),
            ("analysis-run-crd.yaml", analysis_runs()),
            ("analysis-template-crd.yaml", templates(false)),
            ("cluster-analysis-template-crd.yaml", templates(true)),
            ("experiment-crd.yaml", experiments()),
        ]
    };
    MADE.get_or_init(make).clone()
}

/// The files of the five definitions: name and text.
pub fn files() -> Vec<(&'static str, String)> {
    let file = |(name, crd): (_, Value)| (name, format!("{HEADER}{}", yaml::render(&crd)));
    crds().into_iter().map(file).collect()
}

fn rollouts() -> Value {
    let names = Names { kind: kind::ROLLOUT, plural: plural::ROLLOUTS, short: "ro" };
    let columns = [
        column("Desired", "integer", ".spec.replicas"),
        column("Current", "integer", ".status.replicas"),
        column("Up-to-date", "integer", ".status.updatedReplicas"),
        column("Available", "integer", ".status.availableReplicas"),
        age(),
    ];
    let schema = object(RolloutSpec::schema(), Some(RolloutStatus::schema()));
    let mut crd = definition(&names, "Namespaced", json!(columns), schema);
    crd["spec"]["versions"][0]["subresources"] = json!({
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.HPAReplicas",
            "labelSelectorPath": ".status.selector",
        },
    });
    crd
}

fn analysis_runs() -> Value {
    let names = Names { kind: kind::ANALYSIS_RUN, plural: plural::ANALYSIS_RUNS, short: "ar" };
    let schema = object(AnalysisRunSpec::schema(), Some(AnalysisRunStatus::schema()));
    definition(&names, "Namespaced", json!([phase(), age()]), schema)
}

fn experiments() -> Value {
    let names = Names { kind: kind::EXPERIMENT, plural: plural::EXPERIMENTS, short: "exp" };
    let schema = object(ExperimentSpec::schema(), Some(ExperimentStatus::schema()));
    definition(&names, "Namespaced", json!([phase(), age()]), schema)
}

fn templates(cluster: bool) -> Value {
    let (names, scope) = if cluster {
        let (kind, plural) = (kind::CLUSTER_ANALYSIS_TEMPLATE, plural::CLUSTER_ANALYSIS_TEMPLATES);
        (Names { kind, plural, short: "cat" }, "Cluster")
    } else {
        let (kind, plural) = (kind::ANALYSIS_TEMPLATE, plural::ANALYSIS_TEMPLATES);
        (Names { kind, plural, short: "at" }, "Namespaced")
    };
    definition(&names, scope, json!([age()]), object(AnalysisTemplateSpec::schema(), None))
}

struct Names {
    kind: &'static str,
    plural: &'static str,
    short: &'static str,
}

fn definition(names: &Names, scope: &str, columns: Value, schema: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{}.{GROUP}", names.plural) },
        "spec": {
            "group": GROUP,
            "names": {
                "kind": names.kind,
                "listKind": format!("{}List", names.kind),
                "plural": names.plural,
                "shortNames": [names.short],
                "singular": names.kind.to_lowercase(),
            },
            "scope": scope,
            "versions": [{
                "name": VERSION,
                "served": true,
                "storage": true,
                "additionalPrinterColumns": columns,
                "schema": { "openAPIV3Schema": schema },
            }],
        },
    })
}

/// A whole object: what every kind has, and its own spec and status.
fn object(spec: Value, status: Option<Value>) -> Value {
    let mut properties = Map::new();
    properties.insert("apiVersion".into(), String::schema());
    properties.insert("kind".into(), String::schema());
    properties.insert("metadata".into(), json!({ "type": "object" }));
    properties.insert("spec".into(), spec);
    properties.extend(status.map(|status| ("status".into(), status)));
    json!({ "type": "object", "required": ["spec"], "properties": properties })
}

fn column(name: &str, r#type: &str, path: &str) -> Value {
    json!({ "name": name, "type": r#type, "jsonPath": path })
}

fn phase() -> Value {
    column("Status", "string", ".status.phase")
}

fn age() -> Value {
    column("Age", "date", ".metadata.creationTimestamp")
}

#[cfg(test)]
mod tests;
