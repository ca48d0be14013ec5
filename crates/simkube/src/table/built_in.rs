//! The columns of the built-in kinds.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{age, network, pod};
use crate::kinds::KindId;
use crate::selector::LabelSelector;

/// Name, type, priority (0: always shown), and how a cell is made.
pub type BuiltIn = (&'static str, &'static str, i64, fn(&Value, Timestamp) -> Value);

/// The first column of nearly every kind.
pub const NAME: BuiltIn = ("Name", "string", 0, |o, _| o["metadata"]["name"].clone());
/// The last column of nearly every kind that `-o wide` does not ask for.
pub const AGE: BuiltIn = ("Age", "string", 0, age_of);
const CREATED: BuiltIn =
    ("Created At", "date", 0, |o, _| o["metadata"]["creationTimestamp"].clone());
const CONTAINERS: BuiltIn =
    ("Containers", "string", 1, |o, _| containers(&o["spec"]["template"], "name"));
const IMAGES: BuiltIn = ("Images", "string", 1, |o, _| containers(&o["spec"]["template"], "image"));
const SELECTOR: BuiltIn = ("Selector", "string", 1, |o, _| selector(&o["spec"]["selector"]));

/// The columns of a kind, in their order.
pub fn columns(id: KindId) -> Vec<BuiltIn> {
    match id {
        KindId::POD => pod::columns(),
        KindId::POD_TEMPLATE => pod_template(),
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
        KindId::SERVICE => network::service(),
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
        KindId::PERSISTENT_VOLUME_CLAIM => claim(),
        KindId::RESOURCE_QUOTA => vec![
            NAME,
            ("Request", "string", 0, |o, _| json!(quota(o, false))),
            ("Limit", "string", 0, |o, _| json!(quota(o, true))),
            AGE,
        ],
        KindId::INGRESS => network::ingress(),
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
        KindId::ROLE_BINDING | KindId::CLUSTER_ROLE_BINDING => binding(),
        KindId::CUSTOM_RESOURCE_DEFINITION | KindId::ROLE | KindId::CLUSTER_ROLE => {
            vec![NAME, CREATED]
        }
        KindId::ENDPOINT_SLICE => network::endpoint_slice(),
        _ => vec![NAME, AGE],
    }
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
                () if is_true("FailureTarget") => "FailureTarget",
                () if is_true("SuccessCriteriaMet") => "SuccessCriteriaMet",
                () => "Running",
            })
        }),
        ("Completions", "string", 0, |o, _| {
            let done = o["status"]["succeeded"].as_i64().unwrap_or(0);
            let at_once = o["spec"]["parallelism"].as_i64().filter(|number| *number > 1);
            json!(match (o["spec"]["completions"].as_i64(), at_once) {
                (Some(wanted), _) => format!("{done}/{wanted}"),
                (None, Some(at_once)) => format!("{done}/1 of {at_once}"),
                (None, None) => format!("{done}/1"),
            })
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
        ("Internal-IP", "string", 1, |o, _| node_address(o, "InternalIP")),
        ("External-IP", "string", 1, |o, _| node_address(o, "ExternalIP")),
        ("OS-Image", "string", 1, |o, _| node_fact(o, "osImage")),
        ("Kernel-Version", "string", 1, |o, _| node_fact(o, "kernelVersion")),
        ("Container-Runtime", "string", 1, |o, _| node_fact(o, "containerRuntimeVersion")),
    ]
}

fn event() -> Vec<BuiltIn> {
    vec![
        ("Last Seen", "string", 0, |o, now| {
            let series = &o["series"]["lastObservedTime"];
            let last = [series, &o["lastTimestamp"], &o["firstTimestamp"], &o["eventTime"]];
            json!(age::of(first_there(last), now))
        }),
        ("Type", "string", 0, |o, _| text(&o["type"])),
        ("Reason", "string", 0, |o, _| text(&o["reason"])),
        ("Object", "string", 0, |o, _| {
            let about = &o["involvedObject"];
            let kind = about["kind"].as_str().unwrap_or_default().to_lowercase();
            json!(match about["name"].as_str().unwrap_or_default() {
                "" => kind,
                name => format!("{kind}/{name}"),
            })
        }),
        ("Subobject", "string", 1, |o, _| text(&o["involvedObject"]["fieldPath"])),
        ("Source", "string", 1, |o, _| {
            let either = |one: &Value, other: &Value| {
                let one = one.as_str().filter(|text| !text.is_empty());
                one.or(other.as_str()).unwrap_or_default().to_owned()
            };
            let component = either(&o["source"]["component"], &o["reportingComponent"]);
            json!(match either(&o["source"]["host"], &o["reportingInstance"]) {
                host if host.is_empty() => component,
                host => format!("{component}, {host}"),
            })
        }),
        ("Message", "string", 0, |o, _| json!(o["message"].as_str().unwrap_or_default().trim())),
        ("First Seen", "string", 1, |o, now| {
            json!(age::of(first_there([&o["firstTimestamp"], &o["eventTime"]]), now))
        }),
        ("Count", "string", 1, |o, _| {
            let count = first_there([&o["series"]["count"], &o["count"]]).as_i64();
            json!(count.filter(|count| *count != 0).unwrap_or(1))
        }),
        ("Name", "string", 1, |o, _| o["metadata"]["name"].clone()),
    ]
}

fn first_there<const N: usize>(values: [&Value; N]) -> &Value {
    values.into_iter().find(|value| !value.is_null()).unwrap_or(&Value::Null)
}

fn pod_template() -> Vec<BuiltIn> {
    vec![
        NAME,
        ("Containers", "string", 0, |o, _| containers(&o["template"], "name")),
        ("Images", "string", 0, |o, _| containers(&o["template"], "image")),
        ("Pod Labels", "string", 0, |o, _| labels(&o["template"]["metadata"]["labels"])),
    ]
}

fn claim() -> Vec<BuiltIn> {
    vec![
        NAME,
        ("Status", "string", 0, |o, _| match &o["metadata"]["deletionTimestamp"] {
            Value::Null => text(&o["status"]["phase"]),
            _ => json!("Terminating"),
        }),
        ("Volume", "string", 0, |o, _| text(&o["spec"]["volumeName"])),
        ("Capacity", "string", 0, |o, _| {
            let has_volume = !o["spec"]["volumeName"].is_null();
            let size = if has_volume { &o["status"]["capacity"]["storage"] } else { &Value::Null };
            text(size)
        }),
        ("Access Modes", "string", 0, |o, _| {
            let has_volume = !o["spec"]["volumeName"].is_null();
            let modes = if has_volume { list(&o["status"]["accessModes"]) } else { &[] };
            let short = [
                ("ReadWriteOnce", "RWO"),
                ("ReadOnlyMany", "ROX"),
                ("ReadWriteMany", "RWX"),
                ("ReadWriteOncePod", "RWOP"),
            ];
            let short = short.into_iter().filter(|(name, _)| modes.iter().any(|mode| mode == name));
            json!(short.map(|(_, short)| short).collect::<Vec<_>>().join(","))
        }),
        ("StorageClass", "string", 0, |o, _| text(&o["spec"]["storageClassName"])),
        ("VolumeAttributesClass", "string", 0, |o, _| {
            or_unset(&o["spec"]["volumeAttributesClassName"])
        }),
        AGE,
        ("VolumeMode", "string", 1, |o, _| or_unset(&o["spec"]["volumeMode"])),
    ]
}

/// What of a quota is used, of requests or of limits.
fn quota(object: &Value, of_limits: bool) -> String {
    let status = &object["status"];
    let hard = status["hard"].as_object().into_iter().flatten();
    let shown = hard.filter(|(name, _)| name.starts_with("limits.") == of_limits);
    let shown = shown.map(|(name, most)| {
        let used = status["used"][name].as_str().unwrap_or("0");
        format!("{name}: {used}/{}", most.as_str().unwrap_or_default())
    });
    shown.collect::<Vec<_>>().join(", ")
}

fn binding() -> Vec<BuiltIn> {
    vec![
        NAME,
        ("Role", "string", 0, |o, _| {
            let part = |field: &str| o["roleRef"][field].as_str().unwrap_or_default().to_owned();
            json!(format!("{}/{}", part("kind"), part("name")))
        }),
        AGE,
        ("Users", "string", 1, |o, _| json!(subjects(o, "User"))),
        ("Groups", "string", 1, |o, _| json!(subjects(o, "Group"))),
        ("ServiceAccounts", "string", 1, |o, _| json!(subjects(o, "ServiceAccount"))),
    ]
}

fn subjects(binding: &Value, kind: &str) -> String {
    let subjects = list(&binding["subjects"]).iter().filter(|one| one["kind"] == kind);
    let names = subjects.map(|one| {
        let name = one["name"].as_str().unwrap_or_default();
        match one["namespace"].as_str() {
            Some(namespace) if kind == "ServiceAccount" => format!("{namespace}/{name}"),
            _ => name.to_owned(),
        }
    });
    names.collect::<Vec<_>>().join(", ")
}

fn node_address(node: &Value, kind: &str) -> Value {
    let addresses = list(&node["status"]["addresses"]);
    let found = addresses.iter().find(|one| one["type"] == kind);
    found.map_or_else(|| json!("<none>"), |found| text(&found["address"]))
}

fn node_fact(node: &Value, field: &str) -> Value {
    let fact = node["status"]["nodeInfo"][field].as_str().filter(|text| !text.is_empty());
    json!(fact.unwrap_or("<unknown>"))
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

fn containers(template: &Value, field: &str) -> Value {
    let containers = list(&template["spec"]["containers"]);
    let names: Vec<&str> = containers.iter().filter_map(|one| one[field].as_str()).collect();
    json!(names.join(","))
}

fn selector(selector: &Value) -> Value {
    match LabelSelector::from_json(selector) {
        Ok(selector) => none_if_empty(&selector.to_string()),
        Err(error) => json!(error.to_string()),
    }
}

pub fn labels(labels: &Value) -> Value {
    let pairs = labels.as_object().into_iter().flatten();
    let pairs = pairs.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    none_if_empty(&pairs.collect::<Vec<_>>().join(","))
}

pub fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn number(value: &Value) -> Value {
    json!(value.as_i64().unwrap_or(0))
}

fn text(value: &Value) -> Value {
    json!(value.as_str().unwrap_or_default())
}

pub fn or_none(value: &Value) -> Value {
    none_if_empty(value.as_str().unwrap_or_default())
}

fn or_unset(value: &Value) -> Value {
    json!(value.as_str().unwrap_or("<unset>"))
}

fn or_not_available(value: &Value) -> Value {
    match value {
        Value::Null => json!("N/A"),
        Value::String(text) => json!(text),
        other => json!(other.to_string()),
    }
}

pub fn none_if_empty(text: &str) -> Value {
    json!(if text.is_empty() { "<none>" } else { text })
}
