//! Are the numbers, times and places of a Rollout ones that can be meant?

use gradus_api::names;
use gradus_api::values::parse_go_duration;
use gradus_manifest::Document;
use gradus_simkube::review;
use serde_json::Value;

use super::experiments;
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

/// Names of Services.
const SERVICES: [&str; 8] = [
    "spec.strategy.blueGreen.activeService",
    "spec.strategy.blueGreen.previewService",
    "spec.strategy.canary.canaryService",
    "spec.strategy.canary.pingPong.pingService",
    "spec.strategy.canary.pingPong.pongService",
    "spec.strategy.canary.stableService",
    "spec.strategy.canary.trafficRouting.alb.rootService",
    "spec.strategy.canary.trafficRouting.smi.rootService",
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
    for (path, message) in texts(&object).into_iter().chain(labels(&object)) {
        add(&path, message);
    }
    let port = "spec.strategy.canary.trafficRouting.alb.servicePort";
    if let Some(number) = at(&object, port).as_i64().filter(|it| !(1..=65_535).contains(it)) {
        add(port, format!("Invalid value: {number}: must be between 1 and 65535, inclusive"));
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

/// Names and values that are empty, or none of those that are known.
fn texts(object: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let active = "spec.strategy.blueGreen.activeService";
    if at(object, active) == "" {
        found.push((active.to_owned(), "Required value".to_owned()));
    }
    for path in SERVICES {
        let name = at(object, path);
        let name = name.as_str().filter(|name| !name.is_empty()).unwrap_or("any");
        if !review::label_faults(name).is_empty() {
            let message =
                "no Service can have this name: expected lower case letters, digits and -";
            found.push((path.to_owned(), format!("Invalid value: {name:?}: {message}")));
        }
    }
    let rule = "spec.strategy.canary.trafficRouting.istio.destinationRule";
    let subset = |field: &str| at(object, &format!("{rule}.{field}"));
    let canary = subset("canarySubsetName");
    if canary.as_str().is_some_and(|name| !name.is_empty() && canary == subset("stableSubsetName"))
    {
        let message = "Invalid value: the canary and the stable subset must be two".to_owned();
        found.push((format!("{rule}.canarySubsetName"), message));
    }
    let workload = &object["spec"]["workloadRef"];
    if workload.is_object() && workload["name"].as_str().is_none_or(str::is_empty) {
        found.push(("spec.workloadRef.name".to_owned(), "Required value".to_owned()));
    }
    let ways = [names::value::NEVER, names::value::ON_SUCCESS, names::value::PROGRESSIVELY];
    if let Some(way) = workload["scaleDown"].as_str().filter(|way| !ways.contains(way)) {
        found.push(("spec.workloadRef.scaleDown".to_owned(), unsupported(way, &ways)));
    }
    nested(&object["spec"]["strategy"], "spec.strategy", &mut found);
    found
}

fn unsupported(value: &str, known: &[&str]) -> String {
    let known: Vec<String> = known.iter().map(|one| format!("{one:?}")).collect();
    format!("Unsupported value: {value:?}: supported values: {}", known.join(", "))
}

/// Templates without a name, and revisions that there are not, in all analyses of a strategy.
fn nested(value: &Value, path: &str, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = format!("{path}.{name}");
                let revisions = [names::value::STABLE, names::value::LATEST];
                match (name.as_str(), value.as_str()) {
                    ("templateName", Some("")) => {
                        found.push((path, "Required value".to_owned()));
                    }
                    ("podTemplateHashValue", Some(text)) if !revisions.contains(&text) => {
                        found.push((path, unsupported(text, &revisions)));
                    }
                    _ => nested(value, &path, found),
                }
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                nested(item, &format!("{path}[{at}]"), found);
            }
        }
        _ => {}
    }
}

/// Labels that pods are given while they are new or stable, which a server would refuse.
fn labels(object: &Value) -> Vec<(String, String)> {
    let strategy = &object["spec"]["strategy"];
    let given = [
        ("canary", "canaryMetadata"),
        ("canary", "stableMetadata"),
        ("blueGreen", "activeMetadata"),
        ("blueGreen", "previewMetadata"),
    ];
    let of = |(kind, field): (&str, &str)| {
        let labels = strategy[kind][field]["labels"].as_object().cloned().unwrap_or_default();
        let path = format!("spec.strategy.{kind}.{field}.labels");
        let wrong = review::faults_of_labels(&labels).into_iter();
        let wrong = wrong.map(move |(key, why)| {
            let value = labels[&key].as_str().unwrap_or_default();
            (format!("{path}.{key}"), format!("Invalid value: {value:?}: {why}"))
        });
        wrong.collect::<Vec<_>>()
    };
    given.into_iter().flat_map(of).collect()
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
    let parts = experiments::parts(experiment).into_iter();
    found.extend(parts.map(|(field, message)| (format!("experiment.{field}"), message)));
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
