//! The status of a pod the kubelet runs: a small struct in the store, JSON on the wire.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::behave::{ContainerState, Crash, Phase, PodState};
use crate::object::whole_seconds;

/// The conditions the kubelet (or the scheduler) writes; all others are somebody else's.
const OWN_CONDITIONS: [&str; 4] = ["PodScheduled", "Initialized", "ContainersReady", "Ready"];

/// The status of a pod the kubelet runs.
#[derive(Clone, Debug, PartialEq)]
pub struct PodStatus {
    /// Where it runs.
    pub node: Arc<str>,
    /// Its address within the pod network, as a running number.
    pub address: u32,
    /// When the kubelet took it.
    pub started: Timestamp,
    /// What its containers do.
    pub state: PodState,
    /// Whether it counts as ready: containers and readiness gates.
    pub ready: bool,
    /// Since when `ready` is what it is, in whole seconds.
    pub ready_since: Timestamp,
    /// Conditions others wrote, readiness gates among them.
    pub foreign: Arc<Vec<Value>>,
    /// How its containers end, where they crash.
    pub crash: Option<Arc<Crash>>,
    /// Why no node takes it; empty where one does.
    pub unschedulable: Arc<str>,
}

impl PodStatus {
    /// Whether all these conditions, written by others, are true.
    pub fn gates_open(&self, gates: &[String]) -> bool {
        gates.iter().all(|gate| {
            let is_open = |one: &Value| one["type"] == gate.as_str() && one["status"] == "True";
            self.foreign.iter().any(is_open)
        })
    }

    /// The conditions in a status that are not the kubelet's own.
    pub fn foreign_conditions(status: &Value) -> Vec<Value> {
        let list = status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
        let is_own =
            |one: &&Value| one["type"].as_str().is_some_and(|name| OWN_CONDITIONS.contains(&name));
        list.iter().filter(|one| !is_own(one)).cloned().collect()
    }

    /// `status` as HTTP sends it.
    pub fn to_json(&self, spec: &Value) -> Value {
        if !self.unschedulable.is_empty() {
            return self.unscheduled(spec);
        }
        let containers = spec["containers"].as_array().map(Vec::as_slice).unwrap_or_default();
        let started = whole_seconds(self.started).to_string();
        let mut status = json!({
            "phase": self.state.phase.name(),
            "hostIP": "127.0.0.1", "hostIPs": [{ "ip": "127.0.0.1" }],
            "startTime": started,
            "qosClass": quality_of_service(spec),
            "conditions": self.conditions(containers),
            "containerStatuses":
                containers.iter().map(|one| self.container(one)).collect::<Vec<_>>(),
        });
        if self.state.phase != Phase::Pending {
            let address = self.ip();
            status["podIPs"] = json!([{ "ip": address }]);
            status["podIP"] = json!(address);
        }
        status
    }

    /// What the scheduler writes about a pod that no node takes.
    fn unscheduled(&self, spec: &Value) -> Value {
        let why = Some(("Unschedulable", &*self.unschedulable));
        let mut conditions = vec![condition("PodScheduled", false, self.started, why)];
        conditions.extend(self.foreign.iter().cloned());
        json!({ "phase": "Pending", "qosClass": quality_of_service(spec), "conditions": conditions })
    }

    /// Its address within the pod network.
    pub fn ip(&self) -> String {
        let [_, second, third, fourth] = self.address.to_be_bytes();
        format!("10.{}.{third}.{fourth}", second.saturating_add(1))
    }

    fn conditions(&self, containers: &[Value]) -> Vec<Value> {
        let since = whole_seconds(self.state.since);
        let names: Vec<&str> = containers.iter().filter_map(|one| one["name"].as_str()).collect();
        let unready = format!("containers with unready status: [{}]", names.join(" "));
        let mut list = vec![
            condition("PodScheduled", true, self.started, None),
            condition("Initialized", true, self.started, None),
        ];
        let why_containers = match (self.state.ready, self.state.phase.has_ended()) {
            (true, _) => None,
            (false, true) => Some(("PodCompleted", "")),
            (false, false) => Some(("ContainersNotReady", unready.as_str())),
        };
        let why_pod = match (self.ready, self.state.ready) {
            (true, _) => None,
            (false, true) => Some(("ReadinessGatesNotReady", "")),
            (false, false) => why_containers,
        };
        list.push(condition("ContainersReady", self.state.ready, since, why_containers));
        list.push(condition("Ready", self.ready, self.ready_since, why_pod));
        list.extend(self.foreign.iter().cloned());
        list
    }

    fn container(&self, container: &Value) -> Value {
        let state = match self.state.container {
            ContainerState::Waiting(reason) => json!({ "waiting": { "reason": reason } }),
            ContainerState::Running(since) => {
                json!({ "running": { "startedAt": whole_seconds(since).to_string() } })
            }
            ContainerState::Terminated { exit_code, started, finished } => json!({ "terminated": {
                "exitCode": exit_code,
                "reason": if exit_code == 0 { "Completed" } else { "Error" },
                "startedAt": whole_seconds(started).to_string(),
                "finishedAt": whole_seconds(finished).to_string(),
            } }),
        };
        // What crashes is started again.
        let has_crashed = match self.state.container {
            ContainerState::Waiting(reason) => reason == "CrashLoopBackOff",
            ContainerState::Running(_) => self.state.restarts > 0,
            ContainerState::Terminated { .. } => false,
        };
        let last = if has_crashed {
            let Crash { exit_code, reason, message, .. } =
                self.crash.as_deref().cloned().unwrap_or_default();
            let mut ended = json!({ "exitCode": exit_code, "reason": reason });
            if !message.is_empty() {
                ended["message"] = json!(message);
            }
            json!({ "terminated": ended })
        } else {
            json!({})
        };
        json!({
            "name": container["name"], "image": container["image"], "imageID": "",
            "ready": self.state.ready,
            "started": matches!(self.state.container, ContainerState::Running(_)),
            "restartCount": self.state.restarts, "state": state, "lastState": last,
        })
    }
}

/// `status.qosClass`: how much a pod asks to be kept.
pub(crate) fn quality_of_service(spec: &Value) -> &'static str {
    let containers = ["containers", "initContainers"].into_iter();
    let containers = containers.flat_map(|list| spec[list].as_array().into_iter().flatten());
    let mut asks = false;
    let mut is_guaranteed = true;
    for container in containers {
        let resources = &container["resources"];
        for resource in ["cpu", "memory"] {
            let (limit, request) =
                (&resources["limits"][resource], &resources["requests"][resource]);
            asks |= !limit.is_null() || !request.is_null();
            is_guaranteed &= !limit.is_null() && limit == request;
        }
    }
    match (asks, is_guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

fn condition(kind: &str, on: bool, since: Timestamp, why: Option<(&str, &str)>) -> Value {
    let mut map = Map::new();
    map.insert("lastProbeTime".to_owned(), Value::Null);
    let mut put = |key: &str, text: &str| {
        map.insert(key.to_owned(), json!(text));
    };
    put("type", kind);
    put("status", if on { "True" } else { "False" });
    put("lastTransitionTime", &whole_seconds(since).to_string());
    if let Some((reason, message)) = why {
        put("reason", reason);
        if !message.is_empty() {
            put("message", message);
        }
    }
    Value::Object(map)
}
