//! What must hold for the containers and volumes of a pod? The mistakes people make, in the words
//! of the API server.

use serde_json::{Value, json};

use super::metadata::{dns_label, label_value, qualified_name, subdomain};
use super::{pod, quantity};
use crate::error::Cause;

const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const DNS_POLICIES: [&str; 4] = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
const RESOURCES: [&str; 3] = ["cpu", "ephemeral-storage", "memory"];
/// What fills a volume, in the order in which the server looks for it.
const VOLUMES: [&str; 11] = [
    "emptyDir",
    "hostPath",
    "secret",
    "nfs",
    "configMap",
    "downwardAPI",
    "persistentVolumeClaim",
    "projected",
    "csi",
    "ephemeral",
    "image",
];
const LONGEST_PORT_NAME: usize = 15;
const NOT_NEGATIVE: &str = "must be greater than or equal to 0";
const PORT_RANGE: &str = "must be between 1 and 65535, inclusive";

/// What is wrong with a pod's spec, its containers and what they mount. `claims` are volumes that
/// a StatefulSet adds.
pub(super) fn check(path: &str, spec: &Value, claims: &Value, causes: &mut Vec<Cause>) {
    let [main, initial, volumes] =
        ["containers", "initContainers", "volumes"].map(|field| list(&spec[field]));
    if main.is_empty() {
        causes.push(Cause::required(format!("{path}.containers"), ""));
    }
    check_unique(volumes, &|index| format!("{path}.volumes[{index}]"), &[], causes);
    check_one_source(path, volumes, causes);
    let claims = list(claims).iter().map(|claim| &claim["metadata"]["name"]);
    let volumes: Vec<&Value> = volumes.iter().map(|volume| &volume["name"]).chain(claims).collect();
    for (name, containers, taken) in
        [("containers", main, &[] as &[Value]), ("initContainers", initial, main)]
    {
        let place = |index: usize| format!("{path}.{name}[{index}]");
        check_unique(containers, &place, taken, causes);
        for (index, container) in containers.iter().enumerate() {
            let at = |field: &str| format!("{}.{field}", place(index));
            check_container(&at, container, &volumes, causes);
        }
    }
    check_rest(path, spec, causes);
}

fn check_rest(path: &str, spec: &Value, causes: &mut Vec<Cause>) {
    let at = |field: &str| format!("{path}.{field}");
    let policy = text(spec, "dnsPolicy");
    if !policy.is_empty() && !DNS_POLICIES.contains(&policy) {
        causes.push(Cause::unsupported(at("dnsPolicy"), &json!(policy), &DNS_POLICIES));
    }
    for (key, value) in spec["nodeSelector"].as_object().into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        for why in qualified_name(key) {
            causes.push(Cause::invalid(at("nodeSelector"), &json!(key), &why));
        }
        for why in label_value(value) {
            causes.push(Cause::invalid(at("nodeSelector"), &json!(value), &why));
        }
    }
    for field in ["serviceAccountName", "priorityClassName"] {
        let name = text(spec, field);
        for why in subdomain(name).into_iter().filter(|_| !name.is_empty()) {
            causes.push(Cause::invalid(at(field), &json!(name), &why));
        }
    }
    pod::check(path, spec, causes);
    let deadline = &spec["activeDeadlineSeconds"];
    if deadline.as_i64().is_some_and(|seconds| !(1..=i64::from(i32::MAX)).contains(&seconds)) {
        let why = "must be between 1 and 2147483647, inclusive";
        causes.push(Cause::invalid(at("activeDeadlineSeconds"), deadline, why));
    }
}

/// Every entry has a name, and no other the same.
fn check_unique(
    entries: &[Value],
    place: &dyn Fn(usize) -> String,
    taken: &[Value],
    causes: &mut Vec<Cause>,
) {
    for (index, entry) in entries.iter().enumerate() {
        let field = || format!("{}.name", place(index));
        let name = text(entry, "name");
        let is_taken =
            |name: &Value| taken.iter().chain(&entries[..index]).any(|one| one["name"] == *name);
        if name.is_empty() {
            causes.push(Cause::required(field(), ""));
        } else if is_taken(&entry["name"]) {
            causes.push(Cause::duplicate(field(), &entry["name"]));
        } else {
            for why in dns_label(name) {
                causes.push(Cause::invalid(field(), &entry["name"], &why));
            }
        }
    }
}

/// A volume is filled by one source.
fn check_one_source(path: &str, volumes: &[Value], causes: &mut Vec<Cause>) {
    for (index, volume) in volumes.iter().enumerate() {
        let known = VOLUMES.into_iter().filter(|source| !volume[*source].is_null());
        for source in known.skip(1) {
            let field = format!("{path}.volumes[{index}].{source}");
            causes.push(Cause::forbidden(field, "may not specify more than 1 volume type"));
        }
    }
}

/// Most is absent in most containers, and right in all others: no path is written for nothing.
fn check_container(
    at: &dyn Fn(&str) -> String,
    container: &Value,
    volumes: &[&Value],
    causes: &mut Vec<Cause>,
) {
    match text(container, "image") {
        "" => causes.push(Cause::required(at("image"), "")),
        image if image.trim() != image => {
            let why = "must not have leading or trailing whitespace";
            causes.push(Cause::invalid(at("image"), &json!(image), why));
        }
        _ => {}
    }
    let policy = text(container, "imagePullPolicy");
    if !policy.is_empty() && !PULL_POLICIES.contains(&policy) {
        causes.push(Cause::unsupported(at("imagePullPolicy"), &json!(policy), &PULL_POLICIES));
    }
    let ports = list(&container["ports"]);
    if !ports.is_empty() {
        check_ports(&at("ports"), ports, causes);
    }
    for (index, variable) in list(&container["env"]).iter().enumerate() {
        let at = |field: &str| format!("{}[{index}].{field}", at("env"));
        let name = text(variable, "name");
        if name.is_empty() {
            causes.push(Cause::required(at("name"), ""));
        } else if !name.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=') {
            let why = "a valid environment variable name must consist only of printable ASCII \
                       characters other than '='";
            causes.push(Cause::invalid(at("name"), &json!(name), why));
        }
        if !text(variable, "value").is_empty() && !variable["valueFrom"].is_null() {
            let why = "may not be specified when `value` is not empty";
            causes.push(Cause::invalid(at("valueFrom"), &json!(""), why));
        }
        if variable["valueFrom"].is_object() {
            pod::check_source(&at("valueFrom"), &variable["valueFrom"], causes);
        }
    }
    pod::check_sources(&at("envFrom"), list(&container["envFrom"]), causes);
    let mounts = list(&container["volumeMounts"]);
    if !mounts.is_empty() {
        check_mounts(&at("volumeMounts"), mounts, volumes, causes);
    }
    if container["resources"].as_object().is_some_and(|resources| !resources.is_empty()) {
        check_resources(&at("resources"), &container["resources"], causes);
    }
    pod::check_user(&at("securityContext"), &container["securityContext"], causes);
    for name in ["postStart", "preStop"] {
        if container["lifecycle"][name].is_object() {
            let hook = &container["lifecycle"][name];
            check_handlers(&at(&format!("lifecycle.{name}")), hook, causes);
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if container[name].is_object() {
            let needs_one = name != "readinessProbe";
            check_probe(&at(name), &container[name], needs_one, causes);
        }
    }
}

fn check_ports(path: &str, ports: &[Value], causes: &mut Vec<Cause>) {
    for (index, port) in ports.iter().enumerate() {
        let at = |field: &str| format!("{path}[{index}].{field}");
        let name = text(port, "name");
        let is_taken = || ports[..index].iter().any(|one| one["name"] == port["name"]);
        if !name.is_empty() {
            let problems = port_name(name);
            if problems.is_empty() && is_taken() {
                causes.push(Cause::duplicate(at("name"), &json!(name)));
            }
            for why in problems {
                causes.push(Cause::invalid(at("name"), &json!(name), why));
            }
        }
        match port["containerPort"].as_i64().unwrap_or_default() {
            0 => causes.push(Cause::required(at("containerPort"), "")),
            1..=65_535 => {}
            other => causes.push(Cause::invalid(at("containerPort"), &json!(other), PORT_RANGE)),
        }
        let protocol = text(port, "protocol");
        if !protocol.is_empty() && !PROTOCOLS.contains(&protocol) {
            causes.push(Cause::unsupported(at("protocol"), &json!(protocol), &PROTOCOLS));
        }
    }
}

/// What is wrong with the name of a port.
pub(super) fn port_name(name: &str) -> Vec<&'static str> {
    let mut problems = Vec::new();
    let is_known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.len() > LONGEST_PORT_NAME {
        problems.push("must be no more than 15 bytes");
    }
    if !name.bytes().all(is_known) {
        problems.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    }
    if !name.bytes().any(|byte| byte.is_ascii_alphabetic()) {
        problems.push("must contain at least one letter (a-z)");
    }
    if name.contains("--") {
        problems.push("must not contain consecutive hyphens");
    }
    if name.starts_with('-') || name.ends_with('-') {
        problems.push("must not begin or end with a hyphen");
    }
    problems
}

fn check_mounts(path: &str, mounts: &[Value], volumes: &[&Value], causes: &mut Vec<Cause>) {
    for (index, mount) in mounts.iter().enumerate() {
        let at = |field: &str| format!("{path}[{index}].{field}");
        if text(mount, "name").is_empty() {
            causes.push(Cause::required(at("name"), ""));
        }
        if !volumes.contains(&&mount["name"]) {
            let message = format!("Not found: {}", json!(text(mount, "name")));
            causes.push(Cause::new("FieldValueNotFound", at("name"), message));
        }
        let place = &mount["mountPath"];
        if text(mount, "mountPath").is_empty() {
            causes.push(Cause::required(at("mountPath"), ""));
        }
        if mounts[..index].iter().any(|one| one["mountPath"] == *place) {
            causes.push(Cause::invalid(at("mountPath"), place, "must be unique"));
        }
    }
}

fn check_resources(path: &str, resources: &Value, causes: &mut Vec<Cause>) {
    let amount = |value: &Value| value.as_str().and_then(quantity::billionths);
    for kind in ["limits", "requests"] {
        for (name, value) in resources[kind].as_object().into_iter().flatten() {
            let field = format!("{path}.{kind}[{name}]");
            let is_known = RESOURCES.contains(&name.as_str()) || name.starts_with("hugepages-");
            if !is_known && !name.contains('/') {
                for why in [
                    "must be a standard resource type or fully qualified",
                    "must be a standard resource for containers",
                ] {
                    causes.push(Cause::invalid(&field, &json!(name), why));
                }
            }
            if amount(value).is_some_and(|amount| amount < 0) {
                causes.push(Cause::invalid(field, value, NOT_NEGATIVE));
            }
        }
    }
    let own = |name: &str| name.contains('/') && !name.contains("kubernetes.io/");
    for (name, wanted) in resources["requests"].as_object().into_iter().flatten() {
        let limit = &resources["limits"][name];
        if own(name) && limit.is_null() {
            let why = "Limit must be set for non overcommitable resources";
            causes.push(Cause::required(format!("{path}.limits"), why));
        } else if own(name) && limit != wanted {
            let why =
                format!("must be equal to {name} limit of {}", text(&resources["limits"], name));
            causes.push(Cause::invalid(format!("{path}.requests"), wanted, &why));
        }
    }
    for (name, wanted) in resources["requests"].as_object().into_iter().flatten() {
        let most = &resources["limits"][name];
        if let (Some(asked), Some(limit)) = (amount(wanted), amount(most))
            && asked > limit
        {
            let shown = most.as_str().unwrap_or_default();
            let why = format!("must be less than or equal to {name} limit of {shown}");
            causes.push(Cause::invalid(format!("{path}.requests"), wanted, &why));
        }
    }
}

fn check_probe(path: &str, probe: &Value, needs_one: bool, causes: &mut Vec<Cause>) {
    let at = |field: &str| format!("{path}.{field}");
    check_handlers(path, probe, causes);
    for handler in ["httpGet", "tcpSocket"] {
        let port = &probe[handler]["port"];
        let is_name = port.is_string();
        let number = port.as_i64().unwrap_or_default();
        if probe[handler].is_object() && !is_name && !(1..=65_535).contains(&number) {
            let field = format!("{path}.{handler}.port");
            causes.push(Cause::invalid(field, &json!(number), PORT_RANGE));
        }
    }
    for field in [
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ] {
        if probe[field].as_i64().is_some_and(|number| number < 0) {
            causes.push(Cause::invalid(at(field), &probe[field], NOT_NEGATIVE));
        }
    }
    if needs_one && probe["successThreshold"].as_i64().is_some_and(|number| number > 1) {
        let field = at("successThreshold");
        causes.push(Cause::invalid(field, &probe["successThreshold"], "must be 1"));
    }
}

/// What a probe or a hook does is one thing.
fn check_handlers(path: &str, parent: &Value, causes: &mut Vec<Cause>) {
    let known = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];
    let mut handlers = known.into_iter().filter(|handler| parent[*handler].is_object());
    if handlers.next().is_none() {
        causes.push(Cause::required(path, "must specify a handler type"));
    }
    for handler in handlers {
        let field = format!("{path}.{handler}");
        causes.push(Cause::forbidden(field, "may not specify more than 1 handler type"));
    }
    let exec = &parent["exec"];
    if exec.is_object() && list(&exec["command"]).is_empty() {
        causes.push(Cause::required(format!("{path}.exec.command"), ""));
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}
