//! Do autoscalers and disruption budgets beside a Rollout reach it?

use gradus_api::names::{self, kind};
use gradus_engine::kinds;
use serde_json::Value;

use super::beside::{Beside, is};
use super::finding::Finding;

/// Kinds that scale another object, and the field that names it.
const SCALERS: [(&str, &str); 2] =
    [("autoscaling", "HorizontalPodAutoscaler"), ("keda.sh", "ScaledObject")];

const TARGET: &str = "spec.scaleTargetRef";

/// Everything that keeps them from their work.
pub fn check(beside: Beside<'_>) -> Vec<Finding> {
    let document = beside.document;
    if SCALERS.iter().any(|(group, kind)| is(document, group, kind)) {
        return target(beside).into_iter().chain(limits(beside)).collect();
    }
    budget(beside).into_iter().collect()
}

/// What is scaled must be there, by its kind and version.
fn target(beside: Beside<'_>) -> Option<Finding> {
    let document = beside.document;
    let fields = ["apiVersion", "kind", "name"];
    let [version, kind, name] =
        fields.map(|field| document.text(&["spec", "scaleTargetRef", field]).unwrap_or_default());
    if kind == kind::ROLLOUT && version != names::API_VERSION {
        let message = match version {
            "" => format!("a Rollout needs the apiVersion {}", names::API_VERSION),
            found => format!(
                "there is no Rollout in {found:?}: its apiVersion is {}",
                names::API_VERSION
            ),
        };
        let path = format!("{TARGET}.apiVersion");
        return Some(Finding::error(document, &path, message).about("autoscaler"));
    }
    if kind == kind::ROLLOUT {
        let is_there = beside.find(&kinds::ROLLOUT, name).is_some();
        let missing = || beside.missing(&kinds::ROLLOUT, name, &format!("{TARGET}.name"));
        return if is_there { None } else { missing() };
    }
    let is_target = |other: &Value, version: &str, kind: &str| {
        other["apiVersion"] == version && other["kind"] == kind && other["metadata"]["name"] == name
    };
    let here = document.text(&["metadata", "namespace"]);
    let all = beside.all.iter().filter(|one| one.text(&["metadata", "namespace"]) == here);
    let all: Vec<Value> = all.map(|one| one.json()).collect();
    let has = |version, kind| all.iter().any(|other| is_target(other, version, kind));
    if has(version, kind) || !has(names::API_VERSION, kind::ROLLOUT) {
        return None;
    }
    // The field may be left out for a Deployment of KEDA's.
    let kind = if kind.is_empty() { "Deployment" } else { kind };
    let version = if version.is_empty() { "apps/v1" } else { version };
    let message = format!(
        "there is no {kind} {name:?} of {version} in these files, but a Rollout: it is scaled by \
         apiVersion {} and kind Rollout",
        names::API_VERSION
    );
    let path = format!("{TARGET}.kind");
    Some(Finding::warning(document, &path, message).about("autoscaler"))
}

/// Numbers of replicas between which an autoscaler can choose.
fn limits(beside: Beside<'_>) -> Option<Finding> {
    let document = beside.document;
    if !is(document, "autoscaling", "HorizontalPodAutoscaler") {
        return None;
    }
    let object = document.json();
    let spec = &object["spec"];
    let least = spec["minReplicas"].as_i64().unwrap_or(1);
    let error = |field: &str, message: String| {
        Some(Finding::error(document, &format!("spec.{field}"), message).about("autoscaler"))
    };
    match spec["maxReplicas"].as_i64() {
        Some(most) if most < 1 => {
            error("maxReplicas", format!("Invalid value: {most}: must be greater than 0"))
        }
        Some(most) if most < least => error(
            "maxReplicas",
            format!("Invalid value: {most}: must not be below minReplicas ({least})"),
        ),
        _ if least < 0 => {
            error("minReplicas", format!("Invalid value: {least}: must be 0 or more"))
        }
        _ => None,
    }
}

/// A budget that has the name of a Rollout and selects other pods.
fn budget(beside: Beside<'_>) -> Option<Finding> {
    let document = beside.document;
    if !is(document, "policy", "PodDisruptionBudget") {
        return None;
    }
    let name = document.text(&["metadata", "name"])?;
    let rollout = beside.find(&kinds::ROLLOUT, name)?;
    let labels = &rollout["spec"]["template"]["metadata"]["labels"];
    let object = document.json();
    let wanted = object["spec"]["selector"]["matchLabels"].as_object()?;
    let (key, value) = wanted.iter().find(|(key, value)| labels[*key] != **value)?;
    if !labels.is_object() {
        return None;
    }
    let value = value.as_str().unwrap_or_default();
    let message = format!("no pod of Rollout {name} is selected: they have no label {key}={value}");
    let path = "spec.selector.matchLabels";
    Some(Finding::warning(document, path, message).about("budget"))
}
