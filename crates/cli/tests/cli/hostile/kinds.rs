//! The other two interfaces: metric plugins that go wrong are said on their AnalysisRuns, traffic plugins
//! on their Rollouts.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{PATIENCE, rollout};
use crate::cluster::Cluster;

/// A plugin that goes wrong when it is called.
pub struct Other {
    pub name: &'static str,
    pub list: &'static str,
    pub program: String,
    /// What is said of it.
    expected: &'static str,
}

const METRICS: &str = "metricProviderPlugins";
const ROUTERS: &str = "trafficRouterPlugins";

pub fn all() -> Vec<Other> {
    let (hangs, dies) = ("while :; do /bin/sleep 9; done", "exit 1");
    let floods = "while :; do echo flood flood flood flood flood flood >&2; done";
    let metric = |name, does, expected| Other {
        name,
        list: METRICS,
        program: super::lines_of("metric", "Run", does),
        expected,
    };
    let router = |name, does, expected| Other {
        name,
        list: ROUTERS,
        program: super::lines_of("router", "UpdateHash", does),
        expected,
    };
    vec![
        metric("m/hangs", hangs, "Run rpc call error: no answer within 5 s"),
        metric("m/dies", dies, "Run rpc call error: unexpected EOF (it has closed the connection)"),
        metric("m/floods", floods, "Run rpc call error: no answer within 5 s"),
        metric("m/garbage", "echo nonsense", "in a line, found nonsense"),
        router(
            "r/hangs",
            hangs,
            "failed to update hash via plugin: UpdateHash rpc call error: no answer within 5 s",
        ),
        router(
            "r/dies",
            dies,
            "failed to update hash via plugin: UpdateHash rpc call error: unexpected EOF",
        ),
        router("r/garbage", "echo nonsense", "in a line, found nonsense"),
    ]
}

/// Makes the objects that use them.
pub fn use_them(cluster: &Cluster, all: &[Other]) {
    for other in all {
        let name = other.name.replace('/', "-");
        if other.list == METRICS {
            let metric = json!({ "name": "m", "consecutiveErrorLimit": 0,
                "provider": { "plugin": { other.name: {} } } });
            cluster.store(&json!({ "apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisRun",
                    "metadata": { "name": name }, "spec": { "metrics": [metric] } }));
            continue;
        }
        let (stable, canary) = (format!("{name}-stable"), format!("{name}-canary"));
        for service in [&stable, &canary] {
            cluster.store(&json!({ "apiVersion": "v1", "kind": "Service",
                "metadata": { "name": service },
                "spec": { "selector": { "app": name }, "ports": [{ "port": 80 }] } }));
        }
        let mut rollout = rollout(&name, json!([{ "setWeight": 50 }]));
        let canary = json!({ "stableService": stable, "canaryService": canary,
            "steps": [{ "setWeight": 50 }],
            "trafficRouting": { "plugins": { other.name: {} } } });
        rollout["spec"]["strategy"]["canary"] = canary;
        cluster.create(rollout);
    }
}

/// Waits until each is said where it is used.
pub fn assert_said(cluster: &Cluster, all: &[Other]) {
    for other in all {
        let name = other.name.replace('/', "-");
        let began = Instant::now();
        loop {
            let kind = if other.list == METRICS { "AnalysisRun" } else { "Rollout" };
            let status = cluster.object(kind, &name)["status"].take();
            if said(&status).iter().any(|said| said.contains(other.expected)) {
                break;
            }
            assert!(began.elapsed() < PATIENCE, "{name}: {status:#}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Messages of measurements, and of what holds a Rollout.
fn said(status: &Value) -> Vec<String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let results = list(&status["metricResults"]);
    let measured = results.iter().flat_map(|result| list(&result["measurements"]));
    let conditions = list(&status["conditions"]).into_iter();
    let held = conditions.filter(|condition| condition["type"] == "Held");
    let all = measured.chain(held).map(|one| one["message"].as_str().map(str::to_owned));
    all.flatten().collect()
}
