//! The row of a pod: how far it has come, and what holds it up.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age;
use super::built_in::{AGE, BuiltIn, NAME, list, or_none};

/// The columns of pods.
pub fn columns() -> Vec<BuiltIn> {
    vec![
        NAME,
        ("Ready", "string", 0, |o, _| {
            let row = Row::of(o);
            json!(format!("{}/{}", row.ready, row.containers))
        }),
        ("Status", "string", 0, |o, _| json!(Row::of(o).status)),
        ("Restarts", "string", 0, |o, now| {
            let Row { restarts, last_restart, .. } = Row::of(o);
            json!(match last_restart.filter(|_| restarts != 0) {
                Some(last) => format!("{restarts} ({} ago)", age::since(last, now)),
                None => restarts.to_string(),
            })
        }),
        AGE,
        ("IP", "string", 1, |o, _| or_none(&o["status"]["podIP"])),
        ("Node", "string", 1, |o, _| or_none(&o["spec"]["nodeName"])),
        ("Nominated Node", "string", 1, |o, _| or_none(&o["status"]["nominatedNodeName"])),
        ("Readiness Gates", "string", 1, readiness_gates),
    ]
}

/// What a client is told about a pod that has come to its end.
pub fn conditions(pod: &Value) -> Option<Value> {
    let (reason, message) = match pod["status"]["phase"].as_str()? {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    let done = json!({
        "type": "Completed", "status": "True", "reason": reason, "message": message,
    });
    Some(json!([done]))
}

/// What the cells of a pod are made from.
struct Row {
    ready: usize,
    containers: usize,
    status: String,
    restarts: i64,
    last_restart: Option<Timestamp>,
}

impl Row {
    fn of(pod: &Value) -> Self {
        let status = &pod["status"];
        let first = |field: &str| status[field].as_str().filter(|text| !text.is_empty());
        let is_gated = list(&status["conditions"])
            .iter()
            .any(|one| one["type"] == "PodScheduled" && one["reason"] == "SchedulingGated");
        let shown = first("reason").or(first("phase")).unwrap_or_default();
        let sides = list(&pod["spec"]["initContainers"]).iter();
        let mut row = Self {
            ready: 0,
            containers: list(&pod["spec"]["containers"]).len()
                + sides.filter(|one| runs_alongside(one)).count(),
            status: if is_gated { "SchedulingGated".into() } else { shown.into() },
            restarts: 0,
            last_restart: None,
        };
        let is_held_up = row.initialize(pod);
        if !is_held_up || has_condition(status, "Initialized") {
            row.run(pod);
        }
        let has_ended = matches!(first("phase"), Some("Succeeded" | "Failed"));
        if !pod["metadata"]["deletionTimestamp"].is_null() {
            if first("reason") == Some("NodeLost") {
                row.status = "Unknown".into();
            } else if !has_ended {
                row.status = "Terminating".into();
            }
        }
        row
    }

    /// Goes through the containers that run before the others. Is one of them in the way?
    fn initialize(&mut self, pod: &Value) -> bool {
        let specs = list(&pod["spec"]["initContainers"]);
        for (at, container) in list(&pod["status"]["initContainerStatuses"]).iter().enumerate() {
            self.count_restarts(container);
            let (waiting, terminated) =
                (&container["state"]["waiting"], &container["state"]["terminated"]);
            let spec = specs.iter().find(|spec| spec["name"] == container["name"]);
            if terminated["exitCode"] == 0 {
                continue;
            }
            if spec.is_some_and(runs_alongside) && container["started"] == true {
                self.ready += usize::from(container["ready"] == true);
                continue;
            }
            let waits_for = waiting["reason"].as_str().filter(|reason| !reason.is_empty());
            self.status = if terminated.is_object() {
                format!("Init:{}", ended(terminated))
            } else if let Some(reason) = waits_for.filter(|reason| *reason != "PodInitializing") {
                format!("Init:{reason}")
            } else {
                format!("Init:{at}/{}", specs.len())
            };
            return true;
        }
        false
    }

    /// Goes through the containers that do the work.
    fn run(&mut self, pod: &Value) {
        let status = &pod["status"];
        (self.restarts, self.last_restart) = (0, None);
        let specs = list(&pod["spec"]["initContainers"]);
        for container in list(&status["initContainerStatuses"]) {
            if specs.iter().any(|spec| spec["name"] == container["name"] && runs_alongside(spec)) {
                self.count_restarts(container);
            }
        }
        let (mut is_running, mut failure) = (false, None);
        for container in list(&status["containerStatuses"]).iter().rev() {
            self.count_restarts(container);
            let state = &container["state"];
            let waits_for = state["waiting"]["reason"].as_str();
            if let Some(reason) = waits_for.filter(|reason| !reason.is_empty()) {
                self.status = reason.into();
            } else if state["terminated"].is_object() {
                self.status = ended(&state["terminated"]);
                if state["terminated"]["exitCode"] != 0 {
                    failure = Some(self.status.clone());
                }
            } else if container["ready"] == true && state["running"].is_object() {
                is_running = true;
                self.ready += 1;
            }
        }
        if self.status != "Completed" {
            return;
        }
        if is_running && has_condition(status, "Ready") {
            self.status = "Running".into();
        } else if let Some(failure) = failure {
            self.status = failure;
        } else if is_running {
            self.status = "NotReady".into();
        }
    }

    fn count_restarts(&mut self, container: &Value) {
        self.restarts += container["restartCount"].as_i64().unwrap_or_default();
        let ended = container["lastState"]["terminated"]["finishedAt"].as_str();
        self.last_restart = self.last_restart.max(ended.and_then(|text| text.parse().ok()));
    }
}

/// Why a container has ended.
fn ended(terminated: &Value) -> String {
    match (terminated["reason"].as_str(), terminated["signal"].as_i64()) {
        (Some(reason), _) if !reason.is_empty() => reason.to_owned(),
        (_, Some(signal)) if signal != 0 => format!("Signal:{signal}"),
        _ => format!("ExitCode:{}", terminated["exitCode"].as_i64().unwrap_or_default()),
    }
}

/// Whether a container that is started first goes on beside the others.
fn runs_alongside(container: &Value) -> bool {
    container["restartPolicy"] == "Always"
}

fn has_condition(status: &Value, name: &str) -> bool {
    let condition = list(&status["conditions"]).iter().find(|one| one["type"] == name);
    condition.is_some_and(|condition| condition["status"] == "True")
}

fn readiness_gates(pod: &Value, _: Timestamp) -> Value {
    let gates = list(&pod["spec"]["readinessGates"]);
    if gates.is_empty() {
        return json!("<none>");
    }
    let is_met = |gate: &&Value| {
        gate["conditionType"].as_str().is_some_and(|name| has_condition(&pod["status"], name))
    };
    json!(format!("{}/{}", gates.iter().filter(is_met).count(), gates.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_in_trouble_says_what_holds_it_up() {
        let waiting = json!({"waiting": {"reason": "CrashLoopBackOff"}});
        let ended =
            |code: i64, reason: &str| json!({"terminated": {"exitCode": code, "reason": reason}});
        let running = json!({"running": {}});
        let container = |name: &str, ready: bool, state: &Value| json!({"name": name, "ready": ready, "restartCount": 1, "state": state});
        let cases = [
            (
                "waits for its first container",
                json!({"initContainerStatuses": [container("i", false, &waiting)]}),
                ("0/2", "Init:CrashLoopBackOff", "1"),
            ),
            (
                "one of two is done",
                json!({
                    "initContainerStatuses": [container("i", true, &ended(0, ""))],
                    "containerStatuses": [
                        container("c", true, &running),
                        container("d", false, &ended(0, "Completed")),
                    ],
                }),
                ("1/2", "NotReady", "2"),
            ),
            (
                "one of two has failed",
                json!({"containerStatuses": [
                    container("c", false, &ended(0, "Completed")),
                    container("d", false, &ended(3, "")),
                ]}),
                ("0/2", "ExitCode:3", "2"),
            ),
            (
                "is evicted",
                json!({"phase": "Failed", "reason": "Evicted"}),
                ("0/2", "Evicted", "0"),
            ),
        ];
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        for (what, status, (ready, shown, restarts)) in cases {
            let spec = json!({
                "initContainers": [{"name": "i"}], "containers": [{"name": "c"}, {"name": "d"}],
            });
            let pod = json!({"spec": spec, "status": status});
            let cells: Vec<Value> =
                columns()[1..4].iter().map(|(.., cell)| cell(&pod, now)).collect();
            assert_eq!(cells, [ready, shown, restarts], "{what}");
        }
        let failed = json!({"status": {"phase": "Failed"}});
        assert_eq!(conditions(&failed).unwrap()[0]["message"], "The pod failed.");
        assert_eq!(conditions(&json!({"status": {"phase": "Running"}})), None);
    }
}
