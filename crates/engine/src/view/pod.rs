//! How does a pod stand, in the words that kubectl uses?

use serde_json::Value;

use super::object::{Object, text};
use super::{Fact, Node, NodeKind};

/// A pod as a node of a tree.
pub(super) fn node(pod: &Object<'_>) -> Node {
    let seen = look(pod);
    let all = pod.part("spec")["containers"].as_array().map_or(0, Vec::len);
    let mut facts = vec![Fact::Ready { ready: seen.ready, all }];
    facts.extend((seen.restarts > 0).then_some(Fact::Restarts(seen.restarts)));
    Node {
        kind: NodeKind::Pod,
        name: pod.name().to_owned(),
        status: status(pod, seen.reason),
        created: pod.created(),
        facts,
        children: Vec::new(),
    }
}

struct ContainerSummary {
    reason: Option<String>,
    ready: usize,
    restarts: i64,
}

/// A pod that is being deleted says so, whatever its containers do.
fn status(pod: &Object<'_>, reason: Option<String>) -> String {
    let own = text(&pod.part("status")["reason"]);
    if pod.is_deleting() {
        return if own == "NodeLost" { "Unknown" } else { "Terminating" }.to_owned();
    }
    let general = if own.is_empty() { text(&pod.part("status")["phase"]) } else { own };
    reason.unwrap_or_else(|| general.to_owned())
}

fn look(pod: &Object<'_>) -> ContainerSummary {
    let status = pod.part("status");
    let list = |field: &str| status[field].as_array().cloned().unwrap_or_default();
    let specs = pod.part("spec")["initContainers"].as_array().cloned().unwrap_or_default();
    let mut restarts = 0;
    for (index, container) in list("initContainerStatuses").iter().enumerate() {
        restarts += container["restartCount"].as_i64().unwrap_or(0);
        let is_sidecar = specs
            .iter()
            .any(|spec| spec["name"] == container["name"] && spec["restartPolicy"] == "Always");
        if let Some(reason) = initialising(container, is_sidecar, index, specs.len()) {
            return ContainerSummary { reason: Some(reason), ready: 0, restarts };
        }
    }
    let containers = list("containerStatuses");
    let is_ready =
        |container: &&Value| container["ready"] == true && !container["state"]["running"].is_null();
    let ready = containers.iter().filter(is_ready).count();
    let mut reason = containers.iter().find_map(stopped);
    if reason.as_deref() == Some("Completed") && ready > 0 {
        reason = Some("Running".to_owned());
    }
    let restarts = containers.iter().filter_map(|c| c["restartCount"].as_i64()).sum();
    ContainerSummary { reason, ready, restarts }
}

/// Why an init container still holds the others up.
fn initialising(container: &Value, is_sidecar: bool, index: usize, count: usize) -> Option<String> {
    let terminated = &container["state"]["terminated"];
    let waiting = text(&container["state"]["waiting"]["reason"]);
    if terminated["exitCode"] == 0 || is_sidecar && container["started"] == true {
        return None;
    }
    if !terminated.is_null() {
        return Some(format!("Init:{}", ending(terminated)));
    }
    if !waiting.is_empty() && waiting != "PodInitializing" {
        return Some(format!("Init:{waiting}"));
    }
    Some(format!("Init:{index}/{count}"))
}

/// Why a container does not run.
fn stopped(container: &Value) -> Option<String> {
    let waiting = text(&container["state"]["waiting"]["reason"]);
    let terminated = &container["state"]["terminated"];
    if !waiting.is_empty() {
        return Some(waiting.to_owned());
    }
    (!terminated.is_null()).then(|| ending(terminated))
}

/// How a container ended.
fn ending(terminated: &Value) -> String {
    let reason = text(&terminated["reason"]);
    if !reason.is_empty() {
        return reason.to_owned();
    }
    match terminated["signal"].as_i64().filter(|signal| *signal != 0) {
        Some(signal) => format!("Signal:{signal}"),
        None => format!("ExitCode:{}", terminated["exitCode"].as_i64().unwrap_or(0)),
    }
}
