//! What does the API server fill into a pod template?
//!
//! Templates are compared with their defaults, because a ReplicaSet has them and a Rollout does
//! not. Not here, since the API server does not do it for templates: `enableServiceLinks`,
//! requests from limits, and host ports. Rounding of resources is left to the encoder.

use serde_json::{Map, Value, json};

use super::encode::is_zero;
use super::image::is_latest;

type Object = Map<String, Value>;

/// Adds every default that is missing. Doing it twice changes nothing.
pub(super) fn apply(template: &mut Object) {
    let spec = template.entry("spec").or_insert_with(|| json!({}));
    let Some(spec) = spec.as_object_mut() else { return };
    unless_zero(spec, "dnsPolicy", "ClusterFirst");
    unless_zero(spec, "restartPolicy", "Always");
    unless_zero(spec, "schedulerName", "default-scheduler");
    unless_given(spec, "securityContext", json!({}));
    unless_given(spec, "terminationGracePeriodSeconds", 30);
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        each(spec, list, container);
    }
    each(spec, "volumes", volume);
}

fn container(container: &mut Object) {
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let policy = pull_policy(image);
    unless_zero(container, "imagePullPolicy", policy);
    unless_zero(container, "terminationMessagePath", "/dev/termination-log");
    unless_zero(container, "terminationMessagePolicy", "File");
    each(container, "ports", |port| unless_zero(port, "protocol", "TCP"));
    each(container, "env", |variable| {
        within(variable, "valueFrom", |source| {
            field_reference(source);
            within(source, "fileKeyRef", |file| unless_given(file, "optional", false));
        });
    });
    for key in ["livenessProbe", "readinessProbe", "startupProbe"] {
        within(container, key, probe);
    }
    within(container, "lifecycle", |lifecycle| {
        within(lifecycle, "postStart", http_get);
        within(lifecycle, "preStop", http_get);
    });
}

fn probe(probe: &mut Object) {
    unless_zero(probe, "timeoutSeconds", 1);
    unless_zero(probe, "periodSeconds", 10);
    unless_zero(probe, "successThreshold", 1);
    unless_zero(probe, "failureThreshold", 3);
    within(probe, "grpc", |grpc| unless_given(grpc, "service", ""));
    http_get(probe);
}

fn http_get(handler: &mut Object) {
    within(handler, "httpGet", |request| {
        unless_zero(request, "path", "/");
        unless_zero(request, "scheme", "HTTP");
    });
}

fn field_reference(source: &mut Object) {
    within(source, "fieldRef", |reference| unless_zero(reference, "apiVersion", "v1"));
}

fn volume(volume: &mut Object) {
    if volume.iter().all(|(key, value)| key == "name" || value.is_null()) {
        volume.insert("emptyDir".into(), json!({}));
    }
    for key in ["secret", "configMap", "downwardAPI", "projected"] {
        within(volume, key, |source| unless_given(source, "defaultMode", FILE_MODE));
    }
    within(volume, "downwardAPI", |source| each(source, "items", field_reference));
    within(volume, "projected", |source| each(source, "sources", projection));
    within(volume, "hostPath", |source| unless_given(source, "type", ""));
    within(volume, "iscsi", |source| unless_zero(source, "iscsiInterface", "default"));
    within(volume, "rbd", |source| {
        unless_zero(source, "pool", "rbd");
        unless_zero(source, "user", "admin");
        unless_zero(source, "keyring", "/etc/ceph/keyring");
    });
    within(volume, "azureDisk", |source| {
        unless_given(source, "cachingMode", "ReadWrite");
        unless_given(source, "fsType", "ext4");
        unless_given(source, "readOnly", false);
        unless_given(source, "kind", "Shared");
    });
    within(volume, "scaleIO", |source| {
        unless_zero(source, "storageMode", "ThinProvisioned");
        unless_zero(source, "fsType", "xfs");
    });
    within(volume, "ephemeral", |source| within(source, "volumeClaimTemplate", claim));
    // Servers disagree about this one: filled in from Kubernetes 1.35 on.
    within(volume, "image", |source| {
        let image = source.get("reference").and_then(Value::as_str).unwrap_or_default();
        let policy = pull_policy(image);
        unless_zero(source, "pullPolicy", policy);
    });
}

/// Mode of files made from objects: 0644.
const FILE_MODE: i32 = 420;

fn projection(source: &mut Object) {
    within(source, "downwardAPI", |files| each(files, "items", field_reference));
    within(source, "serviceAccountToken", |token| unless_given(token, "expirationSeconds", 3600));
}

fn claim(template: &mut Object) {
    let spec = template.entry("spec").or_insert_with(|| json!({}));
    if let Some(spec) = spec.as_object_mut() {
        unless_given(spec, "volumeMode", "Filesystem");
    }
}

fn pull_policy(image: &str) -> &'static str {
    if is_latest(image) { "Always" } else { "IfNotPresent" }
}

/// Sets a field in which Go cannot tell zero from missing.
fn unless_zero(object: &mut Object, key: &str, default: impl Into<Value>) {
    if object.get(key).is_none_or(is_zero) {
        object.insert(key.into(), default.into());
    }
}

/// Sets a field in which zero is an answer.
fn unless_given(object: &mut Object, key: &str, default: impl Into<Value>) {
    if object.get(key).is_none_or(Value::is_null) {
        object.insert(key.into(), default.into());
    }
}

fn within(object: &mut Object, key: &str, change: impl FnOnce(&mut Object)) {
    if let Some(Value::Object(inner)) = object.get_mut(key) {
        change(inner);
    }
}

fn each(object: &mut Object, key: &str, change: impl Fn(&mut Object)) {
    if let Some(Value::Array(items)) = object.get_mut(key) {
        items.iter_mut().filter_map(Value::as_object_mut).for_each(change);
    }
}

#[cfg(test)]
mod tests;
