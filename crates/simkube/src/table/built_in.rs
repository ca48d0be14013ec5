//! The columns of the built-in kinds.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age;
use crate::kinds::KindId;
use crate::selector::LabelSelector;

/// Name, type, priority (0: always shown), and how a cell is made.
pub type BuiltIn = (&'static str, &'static str, i64, fn(&Value, Timestamp) -> Value);

/// The first column of nearly every kind.
pub const NAME: BuiltIn = ("Name", "string", 0, |o, _| o["metadata"]["name"].clone());
const AGE: BuiltIn = ("Age", "string", 0, age_of);
const CREATED: BuiltIn =
    ("Created At", "date", 0, |o, _| o["metadata"]["creationTimestamp"].clone());
const CONTAINERS: BuiltIn = ("Containers", "string", 1, |o, _| containers(o, "name"));
const IMAGES: BuiltIn = ("Images", "string", 1, |o, _| containers(o, "image"));
const SELECTOR: BuiltIn = ("Selector", "string", 1, |o, _| selector(&o["spec"]["selector"]));

/// The columns of a kind, in their order.
pub fn columns(id: KindId) -> Vec<BuiltIn> {
    match id {
        KindId::POD => pod(),
        KindId::REPLICA_SET => vec![
            NAME,
            ("Desired", "integer", 0, |o, _| number(&o["spec"]["replicas"])),
            ("Current", "integer", 0, |o, _| number(&o["status"]["replicas"])),
            ("Ready", "integer", 0, |o, _| number(&o["status"]["readyReplicas"])),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ],
        KindId::DEPLOYMENT => vec![
            NAME,
            ("Ready", "string", 0, ready_of_wanted),
            ("Up-to-date", "string", 0, |o, _| number(&o["status"]["updatedReplicas"])),
            ("Available", "string", 0, |o, _| number(&o["status"]["availableReplicas"])),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ],
        KindId::STATEFUL_SET => {
            vec![NAME, ("Ready", "string", 0, ready_of_wanted), AGE, CONTAINERS, IMAGES]
        }
        KindId::JOB => job(),
        KindId::SERVICE => service(),
        KindId::NAMESPACE => {
            vec![NAME, ("Status", "string", 0, |o, _| o["status"]["phase"].clone()), AGE]
        }
        KindId::NODE => node(),
        KindId::EVENT => event(),
        KindId::CONFIG_MAP => vec![NAME, ("Data", "string", 0, data), AGE],
        KindId::SECRET => vec![
            NAME,
            ("Type", "string", 0, |o, _| o["type"].clone()),
            ("Data", "string", 0, data),
            AGE,
        ],
        KindId::SERVICE_ACCOUNT => {
            vec![NAME, ("Secrets", "string", 0, |o, _| json!(length(&o["secrets"]))), AGE]
        }
        KindId::INGRESS => ingress(),
        KindId::LEASE => {
            vec![NAME, ("Holder", "string", 0, |o, _| text(&o["spec"]["holderIdentity"])), AGE]
        }
        KindId::POD_DISRUPTION_BUDGET => vec![
            NAME,
            ("Min Available", "string", 0, |o, _| or_not_available(&o["spec"]["minAvailable"])),
            ("Max Unavailable", "string", 0, |o, _| or_not_available(&o["spec"]["maxUnavailable"])),
            ("Allowed Disruptions", "integer", 0, |o, _| {
                number(&o["status"]["disruptionsAllowed"])
            }),
            AGE,
        ],
        KindId::CUSTOM_RESOURCE_DEFINITION => vec![NAME, CREATED],
        KindId::ENDPOINT_SLICE => endpoint_slice(),
        _ => vec![NAME, AGE],
    }
}

fn pod() -> Vec<BuiltIn> {
    vec![
        NAME,
        ("Ready", "string", 0, |o, _| {
            let statuses = list(&o["status"]["containerStatuses"]);
            let ready = statuses.iter().filter(|one| one["ready"] == true).count();
            json!(format!("{ready}/{}", length(&o["spec"]["containers"])))
        }),
        ("Status", "string", 0, |o, _| json!(pod_status(o))),
        ("Restarts", "string", 0, |o, _| {
            let statuses = list(&o["status"]["containerStatuses"]);
            let restarts: i64 = statuses.iter().filter_map(|s| s["restartCount"].as_i64()).sum();
            json!(restarts.to_string())
        }),
        AGE,
        ("IP", "string", 1, |o, _| or_none(&o["status"]["podIP"])),
        ("Node", "string", 1, |o, _| or_none(&o["spec"]["nodeName"])),
        ("Nominated Node", "string", 1, |o, _| or_none(&o["status"]["nominatedNodeName"])),
        ("Readiness Gates", "string", 1, readiness_gates),
    ]
}

/// The phase, or the reason a container gives for not running.
fn pod_status(pod: &Value) -> String {
    let status = &pod["status"];
    let mut shown = status["phase"].as_str().unwrap_or("Unknown").to_owned();
    if let Some(reason) = status["reason"].as_str().filter(|reason| !reason.is_empty()) {
        reason.clone_into(&mut shown);
    }
    let mut is_running = false;
    for container in list(&status["containerStatuses"]).iter().rev() {
        let state = &container["state"];
        let reason = |kind: &str| {
            state[kind]["reason"].as_str().filter(|reason| !reason.is_empty()).map(str::to_owned)
        };
        if let Some(waiting) = reason("waiting") {
            shown = waiting;
        } else if let Some(terminated) = reason("terminated") {
            shown = terminated;
        } else if state["terminated"].is_object() {
            shown = format!("ExitCode:{}", state["terminated"]["exitCode"]);
        } else if container["ready"] == true && state["running"].is_object() {
            is_running = true;
        }
    }
    if shown == "Completed" && is_running {
        shown = "Running".into();
    }
    if !pod["metadata"]["deletionTimestamp"].is_null() {
        shown = "Terminating".into();
    }
    shown
}

fn readiness_gates(pod: &Value, _: Timestamp) -> Value {
    let gates = list(&pod["spec"]["readinessGates"]);
    if gates.is_empty() {
        return json!("<none>");
    }
    let conditions = list(&pod["status"]["conditions"]);
    let is_met = |gate: &&Value| {
        conditions.iter().any(|one| one["type"] == gate["conditionType"] && one["status"] == "True")
    };
    json!(format!("{}/{}", gates.iter().filter(is_met).count(), gates.len()))
}

fn job() -> Vec<BuiltIn> {
    vec![
        NAME,
        ("Status", "string", 0, |o, _| {
            let is_true = |name: &str| {
                let conditions = list(&o["status"]["conditions"]);
                conditions.iter().any(|one| one["type"] == name && one["status"] == "True")
            };
            json!(match () {
                () if is_true("Complete") => "Complete",
                () if is_true("Failed") => "Failed",
                () if !o["metadata"]["deletionTimestamp"].is_null() => "Terminating",
                () if is_true("Suspended") => "Suspended",
                () => "Running",
            })
        }),
        ("Completions", "string", 0, |o, _| {
            let wanted = o["spec"]["completions"].as_i64().unwrap_or(1);
            json!(format!("{}/{wanted}", o["status"]["succeeded"].as_i64().unwrap_or(0)))
        }),
        ("Duration", "string", 0, |o, now| {
            let moment = |field: &str| o["status"][field].as_str()?.parse::<Timestamp>().ok();
            match (moment("startTime"), moment("completionTime")) {
                (None, _) => json!(""),
                (Some(start), end) => json!(age::since(start, end.unwrap_or(now))),
            }
        }),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ]
}

fn service() -> Vec<BuiltIn> {
    vec![
        NAME,
        ("Type", "string", 0, |o, _| o["spec"]["type"].clone()),
        ("Cluster-IP", "string", 0, |o, _| or_none(&o["spec"]["clusterIP"])),
        ("External-IP", "string", 0, |o, _| {
            json!(match o["spec"]["type"].as_str() {
                Some("ExternalName") => o["spec"]["externalName"].as_str().unwrap_or("<none>"),
                Some("LoadBalancer") => "<pending>",
                _ => "<none>",
            })
        }),
        ("Port(s)", "string", 0, |o, _| {
            let ports = list(&o["spec"]["ports"]).iter().map(|port| {
                let node = port["nodePort"].as_i64().filter(|node| *node > 0);
                let node = node.map_or(String::new(), |node| format!(":{node}"));
                format!("{}{node}/{}", port["port"], port["protocol"].as_str().unwrap_or("TCP"))
            });
            none_if_empty(&ports.collect::<Vec<_>>().join(","))
        }),
        AGE,
        ("Selector", "string", 1, |o, _| labels(&o["spec"]["selector"])),
    ]
}

fn node() -> Vec<BuiltIn> {
    vec![
        NAME,
        ("Status", "string", 0, |o, _| {
            let conditions = list(&o["status"]["conditions"]);
            let ready = conditions.iter().find(|one| one["type"] == "Ready");
            let status = match ready {
                Some(ready) if ready["status"] == "True" => "Ready",
                Some(_) => "NotReady",
                None => "Unknown",
            };
            let cordoned =
                if o["spec"]["unschedulable"] == true { ",SchedulingDisabled" } else { "" };
            json!(format!("{status}{cordoned}"))
        }),
        ("Roles", "string", 0, |o, _| {
            let labels = o["metadata"]["labels"].as_object();
            let roles = labels.into_iter().flat_map(|labels| labels.keys());
            let roles = roles.filter_map(|key| key.strip_prefix("node-role.kubernetes.io/"));
            none_if_empty(&roles.collect::<Vec<_>>().join(","))
        }),
        AGE,
        ("Version", "string", 0, |o, _| text(&o["status"]["nodeInfo"]["kubeletVersion"])),
    ]
}

fn event() -> Vec<BuiltIn> {
    vec![
        ("Last Seen", "string", 0, |o, now| {
            let last = &o["lastTimestamp"];
            let last = if last.is_null() { &o["eventTime"] } else { last };
            json!(age::of(last, now))
        }),
        ("Type", "string", 0, |o, _| o["type"].clone()),
        ("Reason", "string", 0, |o, _| o["reason"].clone()),
        ("Object", "string", 0, |o, _| {
            let about = &o["involvedObject"];
            let kind = about["kind"].as_str().unwrap_or_default().to_lowercase();
            json!(format!("{kind}/{}", about["name"].as_str().unwrap_or_default()))
        }),
        ("Subobject", "string", 1, |o, _| text(&o["involvedObject"]["fieldPath"])),
        ("Source", "string", 1, |o, _| text(&o["source"]["component"])),
        ("Message", "string", 0, |o, _| json!(o["message"].as_str().unwrap_or_default().trim())),
        ("First Seen", "string", 1, |o, now| json!(age::of(&o["firstTimestamp"], now))),
        ("Count", "integer", 1, |o, _| json!(o["count"].as_i64().unwrap_or(1))),
        ("Name", "string", 1, |o, _| o["metadata"]["name"].clone()),
    ]
}

fn ingress() -> Vec<BuiltIn> {
    vec![
        NAME,
        ("Class", "string", 0, |o, _| or_none(&o["spec"]["ingressClassName"])),
        ("Hosts", "string", 0, |o, _| {
            let rules = list(&o["spec"]["rules"]);
            let hosts: Vec<&str> = rules.iter().filter_map(|rule| rule["host"].as_str()).collect();
            json!(if hosts.is_empty() { "*".into() } else { hosts.join(",") })
        }),
        ("Address", "string", 0, |o, _| {
            let addresses = list(&o["status"]["loadBalancer"]["ingress"]);
            let name = |one: &&Value| one["ip"].as_str().or(one["hostname"].as_str()).is_some();
            let shown = addresses.iter().filter(name).map(|one| {
                one["ip"].as_str().or(one["hostname"].as_str()).unwrap_or_default().to_owned()
            });
            json!(shown.collect::<Vec<_>>().join(","))
        }),
        ("Ports", "string", 0, |o, _| {
            json!(if length(&o["spec"]["tls"]) > 0 { "80, 443" } else { "80" })
        }),
        AGE,
    ]
}

fn endpoint_slice() -> Vec<BuiltIn> {
    vec![
        NAME,
        ("AddressType", "string", 0, |o, _| o["addressType"].clone()),
        ("Ports", "string", 0, |o, _| {
            let ports = list(&o["ports"]).iter().map(|port| port["port"].to_string());
            json!(match ports.collect::<Vec<_>>().join(",") {
                ports if ports.is_empty() => "<unset>".into(),
                ports => ports,
            })
        }),
        ("Endpoints", "string", 0, |o, _| {
            let addresses = list(&o["endpoints"]).iter();
            let addresses =
                addresses.flat_map(|one| list(&one["addresses"])).filter_map(Value::as_str);
            json!(match addresses.collect::<Vec<_>>().join(",") {
                addresses if addresses.is_empty() => "<unset>".into(),
                addresses => addresses,
            })
        }),
        AGE,
    ]
}

fn age_of(object: &Value, now: Timestamp) -> Value {
    json!(age::of(&object["metadata"]["creationTimestamp"], now))
}

fn ready_of_wanted(object: &Value, _: Timestamp) -> Value {
    let ready = object["status"]["readyReplicas"].as_i64().unwrap_or(0);
    json!(format!("{ready}/{}", object["spec"]["replicas"].as_i64().unwrap_or(0)))
}

fn data(object: &Value, _: Timestamp) -> Value {
    let count = |field: &str| object[field].as_object().map_or(0, serde_json::Map::len);
    json!(count("data") + count("binaryData"))
}

fn containers(object: &Value, field: &str) -> Value {
    let containers = list(&object["spec"]["template"]["spec"]["containers"]);
    let names: Vec<&str> = containers.iter().filter_map(|one| one[field].as_str()).collect();
    json!(names.join(","))
}

fn selector(selector: &Value) -> Value {
    match LabelSelector::from_json(selector) {
        Ok(selector) => none_if_empty(&selector.to_string()),
        Err(error) => json!(error.to_string()),
    }
}

fn labels(labels: &Value) -> Value {
    let pairs = labels.as_object().into_iter().flatten();
    let pairs = pairs.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    none_if_empty(&pairs.collect::<Vec<_>>().join(","))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn length(value: &Value) -> usize {
    list(value).len()
}

fn number(value: &Value) -> Value {
    json!(value.as_i64().unwrap_or(0))
}

fn text(value: &Value) -> Value {
    json!(value.as_str().unwrap_or_default())
}

fn or_none(value: &Value) -> Value {
    none_if_empty(value.as_str().unwrap_or_default())
}

fn or_not_available(value: &Value) -> Value {
    match value {
        Value::Null => json!("N/A"),
        Value::String(text) => json!(text),
        other => json!(other.to_string()),
    }
}

fn none_if_empty(text: &str) -> Value {
    json!(if text.is_empty() { "<none>" } else { text })
}
