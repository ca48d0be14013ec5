//! What does the server make of a pod template? Templates are compared and hashed, so what is
//! filled in here must be what a real server fills in.

use std::sync::Arc;

use serde_json::map::Entry;
use serde_json::{Map, Value, json};

use super::quantity;

/// Maps that are left out when they are empty.
const PLAIN_MAPS: [&str; 6] =
    ["annotations", "labels", "limits", "matchLabels", "nodeSelector", "requests"];
/// Flags that are left out when they are false.
const PLAIN_FLAGS: [&str; 9] = [
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "paused",
    "publishNotReadyAddresses",
    "readOnly",
    "stdin",
    "stdinOnce",
    "tty",
];
/// Numbers that are left out when they are 0.
const PLAIN_NUMBERS: [&str; 7] = [
    "failureThreshold",
    "hostPort",
    "initialDelaySeconds",
    "minReadySeconds",
    "periodSeconds",
    "successThreshold",
    "timeoutSeconds",
];
/// Texts that are left out when they are empty.
const PLAIN_TEXTS: [&str; 9] = [
    "hostname",
    "imagePullPolicy",
    "nodeName",
    "serviceAccountName",
    "subPath",
    "subPathExpr",
    "subdomain",
    "value",
    "workingDir",
];
/// The mode of files made from secrets and the like: 0644.
const FILE_MODE: i64 = 420;

/// The spec all pods of a template share: the template's own, completed as for a pod.
pub(crate) fn pod_spec(template: &Value) -> Arc<Value> {
    debug_assert!(is_complete(template), "it was completed when it was stored");
    let mut spec = template["spec"].clone();
    if let Some(spec) = spec.as_object_mut() {
        complete_running(spec);
    }
    Arc::new(spec)
}

/// Removes what an empty value means anyway: nulls, empty lists, maps and texts, false, 0.
pub(super) fn drop_empty(value: &mut Value) {
    match value {
        Value::Object(map) => drop_empty_fields(map),
        Value::Array(list) => list.iter_mut().for_each(drop_empty),
        _ => {}
    }
}

/// The same for the fields of an object.
pub(super) fn drop_empty_fields(map: &mut Map<String, Value>) {
    map.retain(|key, value| {
        let key = key.as_str();
        match value {
            Value::Null => false,
            Value::Array(list) if PLAIN_MAPS.contains(&key) => !list.is_empty(),
            Value::Array(list) => {
                list.iter_mut().for_each(drop_empty);
                !list.is_empty()
            }
            Value::Object(inner) if PLAIN_MAPS.contains(&key) => !inner.is_empty(),
            Value::Object(inner) => {
                drop_empty_fields(inner);
                true
            }
            Value::Bool(flag) => *flag || !PLAIN_FLAGS.contains(&key),
            Value::Number(number) => *number != 0.into() || !PLAIN_NUMBERS.contains(&key),
            Value::String(text) => !text.is_empty() || !PLAIN_TEXTS.contains(&key),
        }
    });
}

/// Is there nothing to fill in or to leave out in a pod template?
pub(super) fn is_complete(template: &Value) -> bool {
    let mut completed = template.clone();
    drop_empty(&mut completed);
    complete_template(&mut completed);
    completed == *template
}

/// Completes the spec of a pod template.
pub(super) fn complete_template(template: &mut Value) {
    if let Some(spec) = template.get_mut("spec").and_then(Value::as_object_mut) {
        complete_spec(spec);
    }
}

/// Completes the spec of a pod.
pub(super) fn complete_pod(spec: &mut Map<String, Value>) {
    complete_spec(spec);
    complete_running(spec);
}

/// What a pod has beyond the template it could be made from.
fn complete_running(spec: &mut Map<String, Value>) {
    put(spec, "enableServiceLinks", true);
    put(spec, "priority", 0);
    put(spec, "preemptionPolicy", "PreemptLowerPriority");
    let on_host = spec.get("hostNetwork") == Some(&Value::Bool(true));
    for list in ["containers", "initContainers"] {
        for container in entries(spec, list) {
            request_what_is_limited(container);
            if on_host {
                take_ports_of_the_host(container);
            }
        }
    }
    let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
    if let Value::Array(list) = tolerations {
        for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
            if !list.iter().any(|one| one["key"] == key) {
                list.push(json!({
                    "key": key, "operator": "Exists", "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }));
            }
        }
    }
}

fn complete_spec(spec: &mut Map<String, Value>) {
    put(spec, "restartPolicy", "Always");
    put(spec, "terminationGracePeriodSeconds", 30);
    put(spec, "dnsPolicy", "ClusterFirst");
    put(spec, "securityContext", json!({}));
    put(spec, "schedulerName", "default-scheduler");
    if let Some(account) = spec.get("serviceAccountName").cloned() {
        put(spec, "serviceAccount", account);
    } else if let Some(account) = spec.get("serviceAccount").cloned() {
        put(spec, "serviceAccountName", account);
    }
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for container in entries(spec, list) {
            complete_container(container);
        }
    }
    for volume in entries(spec, "volumes") {
        complete_volume(volume);
    }
}

fn complete_container(container: &mut Map<String, Value>) {
    put(container, "terminationMessagePath", "/dev/termination-log");
    put(container, "terminationMessagePolicy", "File");
    put(container, "resources", json!({}));
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let policy = if is_moving(image) { "Always" } else { "IfNotPresent" };
    put(container, "imagePullPolicy", policy);
    for port in entries(container, "ports") {
        put(port, "protocol", "TCP");
    }
    for variable in entries(container, "env") {
        if let Some(from) = variable.get_mut("valueFrom").and_then(Value::as_object_mut) {
            complete_references(from);
        }
    }
    if let Some(resources) = container.get_mut("resources") {
        rewrite_quantities(resources);
    }
    for probe in ["readinessProbe", "livenessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(probe).and_then(Value::as_object_mut) {
            complete_probe(probe);
        }
    }
    if let Some(hooks) = container.get_mut("lifecycle").and_then(Value::as_object_mut) {
        for hook in hooks.values_mut().filter_map(Value::as_object_mut) {
            complete_call(hook);
        }
    }
}

fn complete_probe(probe: &mut Map<String, Value>) {
    put(probe, "timeoutSeconds", 1);
    put(probe, "periodSeconds", 10);
    put(probe, "successThreshold", 1);
    put(probe, "failureThreshold", 3);
    if let Some(call) = probe.get_mut("grpc") {
        put_in(call, "service", "");
    }
    complete_call(probe);
}

fn complete_call(parent: &mut Map<String, Value>) {
    if let Some(call) = parent.get_mut("httpGet") {
        put_in(call, "path", "/");
        put_in(call, "scheme", "HTTP");
    }
}

fn complete_volume(volume: &mut Map<String, Value>) {
    if volume.keys().all(|key| key == "name") {
        put(volume, "emptyDir", json!({}));
    }
    for source in ["secret", "configMap", "projected", "downwardAPI"] {
        if let Some(source) = volume.get_mut(source) {
            put_in(source, "defaultMode", FILE_MODE);
        }
    }
    if let Some(Value::Object(claim)) =
        volume.get_mut("ephemeral").and_then(|volume| volume.get_mut("volumeClaimTemplate"))
    {
        put(claim, "metadata", json!({}));
        if let Some(spec) = claim.get_mut("spec") {
            put_in(spec, "volumeMode", "Filesystem");
            spec.get_mut("resources").into_iter().for_each(rewrite_quantities);
        }
    }
    if let Some(size) = volume.get_mut("emptyDir").and_then(|volume| volume.get_mut("sizeLimit")) {
        quantity::canonical(size);
    }
    if let Some(path) = volume.get_mut("hostPath") {
        put_in(path, "type", "");
    }
    if let Some(projected) = volume.get_mut("projected").and_then(Value::as_object_mut) {
        for source in entries(projected, "sources") {
            if let Some(token) = source.get_mut("serviceAccountToken") {
                put_in(token, "expirationSeconds", 3_600);
            }
            if let Some(items) = source.get_mut("downwardAPI").and_then(Value::as_object_mut) {
                complete_items(items);
            }
        }
    }
    if let Some(items) = volume.get_mut("downwardAPI").and_then(Value::as_object_mut) {
        complete_items(items);
    }
}

fn complete_items(parent: &mut Map<String, Value>) {
    for item in entries(parent, "items") {
        complete_references(item);
    }
}

fn complete_references(parent: &mut Map<String, Value>) {
    if let Some(field) = parent.get_mut("fieldRef") {
        put_in(field, "apiVersion", "v1");
    }
    if let Some(Value::Object(resource)) = parent.get_mut("resourceFieldRef") {
        put(resource, "divisor", "0");
        resource.get_mut("divisor").into_iter().for_each(quantity::canonical);
    }
}

fn rewrite_quantities(resources: &mut Value) {
    for list in ["limits", "requests"] {
        let amounts = resources.get_mut(list).and_then(Value::as_object_mut);
        amounts.into_iter().flat_map(Map::values_mut).for_each(quantity::canonical);
    }
}

fn take_ports_of_the_host(container: &mut Map<String, Value>) {
    for port in entries(container, "ports") {
        if let Some(number) = port.get("containerPort").cloned() {
            put(port, "hostPort", number);
        }
    }
}

fn request_what_is_limited(container: &mut Map<String, Value>) {
    let Some(resources) = container.get_mut("resources").and_then(Value::as_object_mut) else {
        return;
    };
    let Some(Value::Object(limits)) = resources.get("limits").cloned() else { return };
    let requests = resources.entry("requests").or_insert_with(|| json!({}));
    for (resource, amount) in limits {
        put_in(requests, &resource, amount);
    }
}

/// Whether an image may be another one tomorrow: no tag, or `latest`.
fn is_moving(image: &str) -> bool {
    if image.contains('@') {
        return false;
    }
    let last = image.rsplit('/').next().unwrap_or_default();
    last.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

/// Fills in a field that is absent.
pub(super) fn put(map: &mut Map<String, Value>, key: &str, value: impl Into<Value>) {
    if let Entry::Vacant(absent) = map.entry(key) {
        absent.insert(value.into());
    }
}

fn put_in(parent: &mut Value, key: &str, value: impl Into<Value>) {
    if let Some(map) = parent.as_object_mut() {
        put(map, key, value);
    }
}

/// The objects in a list.
pub(super) fn entries<'a>(
    parent: &'a mut Map<String, Value>,
    list: &str,
) -> impl Iterator<Item = &'a mut Map<String, Value>> {
    let list = parent.get_mut(list).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter_map(Value::as_object_mut)
}
