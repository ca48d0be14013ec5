//! How much does the controller remember of one Rollout? Measured as the system sees it, in a process of
//! its own: what the allocator adds counts, too.

use gradus_engine::frame::Frame;
use gradus_engine::world::RolloutView;
use serde_json::{Value, json};

/// So many are held at once: enough that pages and their rounding do not matter.
const VIEWS: usize = 2_000;

/// What a view may take beside the text of its template: 10,000 of them, with their ReplicaSets, fit
/// into the 120 MB that `cargo xtask bench` allows.
const MOST: usize = 8 * 1024;

#[test]
fn a_rollout_takes_at_most_8_kilobytes_on_top_of_its_template() {
    // The first of all pays for what is made once.
    let first = view(0);
    let template = first.spec.template.len();
    let before = resident_bytes();
    let views: Vec<RolloutView> = (1..=VIEWS).map(view).collect();
    let taken = resident_bytes().saturating_sub(before) / VIEWS;
    assert!(views.iter().all(|view| view.spec.errors.is_empty()), "{:?}", first.spec.errors);
    println!("{taken} bytes, {template} of them the template");
    assert!(taken > template, "nothing was measured: {taken} bytes");
    assert!(taken <= template + MOST, "{taken} bytes with a template of {template}");
}

/// A Rollout in the middle of an update, as it comes over the watch.
fn view(number: usize) -> RolloutView {
    let frame = serde_json::from_str::<Frame>(&rollout(number).to_string());
    RolloutView::read(&frame.expect("a Rollout"), None)
}

fn rollout(number: usize) -> Value {
    let condition = |kind: &str, reason: &str, message: &str| {
        json!({ "type": kind, "status": "True", "reason": reason, "message": message,
                "lastUpdateTime": "2026-11-16T00:10:00Z",
                "lastTransitionTime": "2026-11-16T00:10:00Z" })
    };
    json!({
        "metadata": {
            "name": format!("checkout-{number}"), "namespace": "shop", "generation": 7,
            "uid": format!("{number:08x}-0000-4000-8000-000000000000"),
            "resourceVersion": number.to_string(), "creationTimestamp": "2026-11-14T22:00:00Z",
            "labels": { "app": "checkout", "team": "payments" },
            "annotations": { "rollout.argoproj.io/revision": "7" },
        },
        "spec": {
            "replicas": 10, "revisionHistoryLimit": 5, "progressDeadlineSeconds": 600,
            "selector": { "matchLabels": { "app": "checkout" } },
            "template": {
                "metadata": { "labels": { "app": "checkout" } },
                "spec": { "containers": [{
                    "name": "checkout", "image": format!("example.com/checkout:{number}"),
                    "ports": [{ "name": "http", "containerPort": 8080, "protocol": "TCP" }],
                    "env": [{ "name": "LOG_LEVEL", "value": "info" }],
                    "resources": { "requests": { "cpu": "100m", "memory": "128Mi" } },
                    "readinessProbe": { "httpGet": { "path": "/ready", "port": "http" } },
                }] },
            },
            "strategy": { "canary": {
                "canaryService": "checkout-canary", "stableService": "checkout-stable",
                "maxSurge": "25%", "maxUnavailable": 0,
                "trafficRouting": { "nginx": { "stableIngress": "checkout" } },
                "steps": [
                    { "setWeight": 5 }, { "pause": { "duration": "10m" } },
                    { "setWeight": 20 }, { "pause": { "duration": "10m" } },
                    { "setWeight": 50 }, { "pause": {} },
                ],
            } },
        },
        "status": {
            "phase": "Paused", "message": "CanaryPauseStep", "observedGeneration": "7",
            "currentPodHash": "65774b4f85", "stableRS": "5b4d8854fd", "selector": "app=checkout",
            "currentStepIndex": 3, "currentStepHash": "6d846f5bb9", "replicas": 12,
            "updatedReplicas": 2, "readyReplicas": 12, "availableReplicas": 12, "HPAReplicas": 12,
            "controllerPause": true, "blueGreen": {},
            "pauseConditions": [
                { "reason": "CanaryPauseStep", "startTime": "2026-11-16T00:10:00Z" },
            ],
            "canary": { "weights": {
                "canary": { "podTemplateHash": "65774b4f85", "serviceName": "checkout-canary",
                            "weight": 20 },
                "stable": { "podTemplateHash": "5b4d8854fd", "serviceName": "checkout-stable",
                            "weight": 80 },
            } },
            "conditions": [
                condition("Available", "AvailableReason", "Rollout has minimum availability"),
                condition("Completed", "RolloutCompleted", "RolloutCompleted"),
                condition("Healthy", "RolloutHealthy", "Rollout is not healthy"),
                condition("Paused", "RolloutPaused", "Rollout is paused"),
                condition("Progressing", "RolloutPaused", "Rollout is paused"),
            ],
        },
    })
}

fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    let kilobytes = line.split_whitespace().next().and_then(|number| number.parse::<usize>().ok());
    kilobytes.expect("a number of kB") * 1024
}
