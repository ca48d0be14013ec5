//! Are the numbers, times and places of a Rollout ones that can be meant?

use gradus_api::values::parse_go_duration;
use gradus_manifest::Document;
use serde_json::Value;

use super::finding::Finding;
use super::metrics::no_duration;
use super::words::{at, no_percentage};

/// Numbers that cannot be negative and that the contract lets pass.
const NOT_NEGATIVE: [&str; 14] = [
    "spec.analysis.successfulRunHistoryLimit",
    "spec.analysis.unsuccessfulRunHistoryLimit",
    "spec.rollbackWindow.revisions",
    "spec.strategy.blueGreen.abortScaleDownDelaySeconds",
    "spec.strategy.blueGreen.autoPromotionSeconds",
    "spec.strategy.blueGreen.previewReplicaCount",
    "spec.strategy.blueGreen.scaleDownDelayRevisionLimit",
    "spec.strategy.blueGreen.scaleDownDelaySeconds",
    "spec.strategy.canary.abortScaleDownDelaySeconds",
    "spec.strategy.canary.analysis.startingStep",
    "spec.strategy.canary.minPodsPerReplicaSet",
    "spec.strategy.canary.scaleDownDelayRevisionLimit",
    "spec.strategy.canary.scaleDownDelaySeconds",
    "spec.strategy.canary.trafficRouting.maxTrafficWeight",
];

/// Numbers of pods, or percentages of all.
const AMOUNTS: [&str; 3] = [
    "spec.strategy.blueGreen.maxUnavailable",
    "spec.strategy.canary.maxSurge",
    "spec.strategy.canary.maxUnavailable",
];

/// Everything that is accepted and cannot be meant.
pub fn check(document: &Document) -> Vec<Finding> {
    let object = document.json();
    let mut findings = Vec::new();
    let mut add = |path: &str, message: String| {
        findings.push(Finding::error(document, path, message));
    };
    for path in NOT_NEGATIVE {
        if let Some(number) = at(&object, path).as_i64().filter(|number| *number < 0) {
            add(path, format!("Invalid value: {number}: must be 0 or more"));
        }
    }
    for path in AMOUNTS {
        match at(&object, path) {
            Value::Number(number) if number.as_i64().is_some_and(|number| number < 0) => {
                add(path, format!("Invalid value: {number}: must be 0 or more"));
            }
            Value::String(text) => {
                if let Some(message) = no_percentage(&text) {
                    add(path, message);
                }
            }
            _ => {}
        }
    }
    let canary = "spec.strategy.canary";
    let steps = at(&object, &format!("{canary}.steps"));
    let steps = steps.as_array().map_or(&[][..], Vec::as_slice);
    for (index, step) in steps.iter().enumerate() {
        for (field, message) in of_step(step) {
            add(&format!("{canary}.steps[{index}].{field}"), message);
        }
    }
    let starting = format!("{canary}.analysis.startingStep");
    if let Some(start) = at(&object, &starting).as_i64().filter(|it| *it >= steps.len() as i64) {
        let count = steps.len();
        let message = match count {
            0 => "there are no steps, so the analysis never starts".to_owned(),
            _ => format!(
                "there are {count} steps, counted from 0, so the analysis never starts at step {start}"
            ),
        };
        add(&starting, message);
    }
    findings
}

fn of_step(step: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for field in ["replicas", "weight"] {
        if let Some(number) = step["setCanaryScale"][field].as_i64().filter(|it| *it < 0) {
            let message = format!("Invalid value: {number}: must be 0 or more");
            found.push((format!("setCanaryScale.{field}"), message));
        }
    }
    let percentage = step["setMirrorRoute"]["percentage"].as_i64();
    if let Some(number) = percentage.filter(|number| !(0..=100).contains(number)) {
        let message = format!("Invalid value: {number}: must be between 0 and 100");
        found.push(("setMirrorRoute.percentage".to_owned(), message));
    }
    let experiment = &step["experiment"];
    if let Some(message) = no_duration(&experiment["duration"]) {
        found.push(("experiment.duration".to_owned(), message));
    }
    for (at, template) in experiment["templates"].as_array().into_iter().flatten().enumerate() {
        let origin = template["specRef"].as_str().unwrap_or_default();
        if !["stable", "canary"].contains(&origin) {
            let message = "supported values: \"canary\", \"stable\"";
            let message = format!("Unsupported value: {origin:?}: {message}");
            found.push((format!("experiment.templates[{at}].specRef"), message));
        }
    }
    let is_zero = |text: &str| parse_go_duration(text).is_ok_and(|span| span.is_zero());
    if experiment["duration"].as_str().is_some_and(is_zero) {
        let message = "an experiment of no length ends before it begins".to_owned();
        found.push(("experiment.duration".to_owned(), message));
    }
    found
}
