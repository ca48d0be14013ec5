//! The CustomResourceDefinitions of the five kinds, and how they look as YAML.

use std::sync::OnceLock;

use serde_json::{Map, Value, json};

use crate::analysis::{AnalysisRunSpec, AnalysisRunStatus, AnalysisTemplateSpec};
use crate::experiment::{ExperimentSpec, ExperimentStatus};
use crate::names::{API_VERSION, GROUP, VERSION, kind, plural};
use crate::rollout::{RolloutSpec, RolloutStatus};
use crate::schema::{Schema, with};

pub(crate) mod kubernetes;
pub mod yaml;

const HEADER: &str = "# Made by `cargo xtask crds`.\n";

/// What `kubectl explain` says about each kind.
const ROLLOUT: &str = "Rollout runs a set of equal pods, as a Deployment does, and replaces them by \
    a canary or a blue-green strategy when the pod template changes.";
const ANALYSIS_RUN: &str = "AnalysisRun takes measurements of metrics and decides from them whether \
    an update or an Experiment goes well.";
const ANALYSIS_TEMPLATE: &str = "AnalysisTemplate is a reusable set of metrics, from which Rollouts \
    and Experiments in its namespace start AnalysisRuns.";
const CLUSTER_ANALYSIS_TEMPLATE: &str = "ClusterAnalysisTemplate is a reusable set of metrics, from \
    which Rollouts and Experiments in all namespaces start AnalysisRuns.";
const EXPERIMENT: &str = "Experiment runs sets of pods side by side for a limited time, with \
    analyses that compare them.";

/// What it says about the fields that all of them have.
const API_VERSION_FIELD: &str = "API group and version of this object";
const KIND_FIELD: &str = "Kind of this object, in CamelCase.";
const SPEC_FIELD: &str = "Desired state, written by users.";
const STATUS_FIELD: &str = "Observed state, written by the controller.";

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
    let schema = object(ROLLOUT, RolloutSpec::schema(), Some(RolloutStatus::schema()));
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
    let status = Some(AnalysisRunStatus::schema());
    let schema = object(ANALYSIS_RUN, AnalysisRunSpec::schema(), status);
    definition(&names, "Namespaced", json!([phase(), age()]), schema)
}

fn experiments() -> Value {
    let names = Names { kind: kind::EXPERIMENT, plural: plural::EXPERIMENTS, short: "exp" };
    let schema = object(EXPERIMENT, ExperimentSpec::schema(), Some(ExperimentStatus::schema()));
    definition(&names, "Namespaced", json!([phase(), age()]), schema)
}

fn templates(cluster: bool) -> Value {
    let (names, scope, about) = if cluster {
        let (kind, plural) = (kind::CLUSTER_ANALYSIS_TEMPLATE, plural::CLUSTER_ANALYSIS_TEMPLATES);
        (Names { kind, plural, short: "cat" }, "Cluster", CLUSTER_ANALYSIS_TEMPLATE)
    } else {
        let (kind, plural) = (kind::ANALYSIS_TEMPLATE, plural::ANALYSIS_TEMPLATES);
        (Names { kind, plural, short: "at" }, "Namespaced", ANALYSIS_TEMPLATE)
    };
    let schema = object(about, AnalysisTemplateSpec::schema(), None);
    definition(&names, scope, json!([age()]), schema)
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

/// A whole object, described so: what every kind has, and its own spec and status.
fn object(about: &str, spec: Value, status: Option<Value>) -> Value {
    let described = |schema, text: &str| with(schema, json!({ "description": text }));
    let mut properties = Map::new();
    let version = format!("{API_VERSION_FIELD}: `{API_VERSION}`.");
    properties.insert("apiVersion".into(), described(String::schema(), &version));
    properties.insert("kind".into(), described(String::schema(), KIND_FIELD));
    // The server describes it itself, and refuses a definition that says more.
    properties.insert("metadata".into(), json!({ "type": "object" }));
    properties.insert("spec".into(), described(spec, SPEC_FIELD));
    let status = status.map(|status| described(status, STATUS_FIELD));
    properties.extend(status.map(|status| ("status".into(), status)));
    let object = json!({ "type": "object", "required": ["spec"], "properties": properties });
    described(object, about)
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
