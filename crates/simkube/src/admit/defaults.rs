//! What does the server fill in for the kinds every cluster has?

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::template::{
    complete_pod, complete_template, drop_empty, drop_empty_fields, entries, is_complete, put,
};
use crate::SimCluster;
use crate::error::ApiError;
use crate::kinds::KindId;
use crate::object::{Object, Texts};
use crate::patch::merged;

/// Kinds whose spec is stored without what empty values mean anyway.
const COMPACTED: [KindId; 6] = [
    KindId::POD,
    KindId::SERVICE,
    KindId::REPLICA_SET,
    KindId::DEPLOYMENT,
    KindId::STATEFUL_SET,
    KindId::JOB,
];

/// Fills in the parts that differ from the old state.
pub(super) fn complete(object: &mut Object, before: Option<&Object>) {
    if object.kind == KindId::SECRET || object.kind == KindId::CONFIG_MAP {
        complete_data(object);
    }
    if object.kind == KindId::POD_TEMPLATE
        && let Some(template) = Arc::make_mut(&mut object.rest).get_mut("template")
    {
        drop_empty(template);
        complete_template(template);
    }
    if object.kind == KindId::NAMESPACE && before.is_none() {
        let meta = Arc::make_mut(&mut object.meta);
        let name = meta.name.to_string();
        Arc::make_mut(&mut meta.labels).insert("kubernetes.io/metadata.name".to_owned(), name);
        object.spec = Arc::new(json!({ "finalizers": ["kubernetes"] }));
    }
    let keeps_template = before.is_some_and(|before| before.shares_template(object));
    if let Some(template) = object.template.as_mut().filter(|_| !keeps_template) {
        let template = Arc::make_mut(template);
        drop_empty(template);
        complete_template(template);
    }
    debug_assert!(object.template.as_deref().is_none_or(is_complete), "once it is stored");
    if before.is_some_and(|before| Arc::ptr_eq(&before.spec, &object.spec)) || object.spec.is_null()
    {
        return;
    }
    let Some(spec) = Arc::make_mut(&mut object.spec).as_object_mut() else { return };
    if COMPACTED.contains(&object.kind) {
        drop_empty_fields(spec);
    }
    match object.kind {
        KindId::POD => complete_pod(spec),
        KindId::REPLICA_SET => put(spec, "replicas", 1),
        KindId::DEPLOYMENT => complete_deployment(spec),
        KindId::STATEFUL_SET => complete_stateful_set(spec),
        KindId::JOB => complete_job(spec),
        KindId::SERVICE => complete_service(spec, before),
        KindId::PERSISTENT_VOLUME_CLAIM => put(spec, "volumeMode", "Filesystem"),
        KindId::CUSTOM_RESOURCE_DEFINITION => complete_definition(spec),
        _ => {}
    }
}

impl SimCluster {
    /// Gives a new Service its address and a new Job its labels.
    pub(crate) fn allocate(&mut self, object: &mut Object) {
        match object.kind {
            KindId::SERVICE => self.allocate_address(object),
            KindId::JOB => label_job(object),
            _ => {}
        }
    }

    fn allocate_address(&mut self, object: &mut Object) {
        if object.spec["type"] == "ExternalName" {
            return;
        }
        let number = self.count();
        let Some(spec) = Arc::make_mut(&mut object.spec).as_object_mut() else { return };
        let [.., third, fourth] = number.to_be_bytes();
        put(spec, "clusterIP", json!(format!("10.96.{third}.{fourth}")));
        let address = spec["clusterIP"].clone();
        put(spec, "clusterIPs", json!([address]));
        let has_own_ports =
            spec["type"] == "LoadBalancer" && spec["allocateLoadBalancerNodePorts"] != false;
        if spec["type"] == "NodePort" || has_own_ports {
            for (index, port) in (number..).zip(entries(spec, "ports")) {
                put(port, "nodePort", json!(30_000 + index % 2_768));
            }
        }
    }
}

fn complete_deployment(spec: &mut Map<String, Value>) {
    put(spec, "replicas", 1);
    put(spec, "revisionHistoryLimit", 10);
    put(spec, "progressDeadlineSeconds", 600);
    put(spec, "strategy", json!({}));
    let Some(strategy) = inner(spec, "strategy") else { return };
    put(strategy, "type", "RollingUpdate");
    if strategy["type"] != "RollingUpdate" {
        return;
    }
    put(strategy, "rollingUpdate", json!({}));
    if let Some(limits) = inner(strategy, "rollingUpdate") {
        put(limits, "maxSurge", "25%");
        put(limits, "maxUnavailable", "25%");
    }
}

fn complete_stateful_set(spec: &mut Map<String, Value>) {
    put(spec, "replicas", 1);
    put(spec, "revisionHistoryLimit", 10);
    put(spec, "podManagementPolicy", "OrderedReady");
    put(spec, "serviceName", "");
    let strategy = json!({ "type": "RollingUpdate", "rollingUpdate": { "partition": 0 } });
    put(spec, "updateStrategy", strategy);
    let retention = json!({ "whenDeleted": "Retain", "whenScaled": "Retain" });
    put(spec, "persistentVolumeClaimRetentionPolicy", retention);
}

fn complete_job(spec: &mut Map<String, Value>) {
    if !spec.contains_key("parallelism") {
        put(spec, "completions", 1);
    }
    put(spec, "parallelism", 1);
    put(spec, "backoffLimit", 6);
    put(spec, "completionMode", "NonIndexed");
    put(spec, "suspend", false);
    put(spec, "manualSelector", false);
    put(spec, "podReplacementPolicy", "TerminatingOrFailed");
}

/// A Job's pods are told apart by its uid.
fn label_job(object: &mut Object) {
    if object.spec["manualSelector"] == true {
        return;
    }
    let (uid, name) = (object.meta.uid.clone(), object.meta.name.clone());
    let Some(spec) = Arc::make_mut(&mut object.spec).as_object_mut() else { return };
    let selector = json!({ "matchLabels": { "batch.kubernetes.io/controller-uid": uid } });
    spec.insert("selector".to_owned(), selector);
    let texts = [
        ("batch.kubernetes.io/controller-uid", &uid),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        ("job-name", &name),
    ];
    let texts: Texts =
        texts.into_iter().map(|(key, value)| (key.to_owned(), value.to_string())).collect();
    let labels = json!(texts);
    if object.template.is_some() {
        object.merge_spec(json!({ "template": { "metadata": { "labels": labels } } }));
    }
    let own = &mut Arc::make_mut(&mut object.meta).labels;
    Arc::make_mut(own).extend(texts);
}

fn complete_service(spec: &mut Map<String, Value>, before: Option<&Object>) {
    put(spec, "type", "ClusterIP");
    put(spec, "sessionAffinity", "None");
    for port in entries(spec, "ports") {
        put(port, "protocol", "TCP");
        if let Some(number) = port.get("port").cloned() {
            put(port, "targetPort", number);
        }
    }
    if spec["type"] == "ExternalName" {
        return;
    }
    put(spec, "internalTrafficPolicy", "Cluster");
    let (families, policy) = match (spec.get("clusterIP"), spec.get("selector")) {
        (Some(address), None) if address == "None" => {
            (json!(["IPv4", "IPv6"]), json!("RequireDualStack"))
        }
        _ => (json!(["IPv4"]), json!("SingleStack")),
    };
    put(spec, "ipFamilies", families);
    put(spec, "ipFamilyPolicy", policy);
    let is_outside = spec["type"] == "NodePort" || spec["type"] == "LoadBalancer";
    if is_outside {
        put(spec, "externalTrafficPolicy", "Cluster");
    }
    if spec["type"] == "LoadBalancer" {
        put(spec, "allocateLoadBalancerNodePorts", true);
    }
    if spec.get("clusterIP") == Some(&json!("")) {
        spec.remove("clusterIP");
    }
    // What was given at creation stays when an update leaves it out.
    for field in ["clusterIP", "clusterIPs"] {
        if let Some(given) = before.and_then(|before| before.spec.get(field)) {
            put(spec, field, given.clone());
        }
    }
}

fn complete_definition(spec: &mut Map<String, Value>) {
    put(spec, "conversion", json!({ "strategy": "None" }));
    let Some(names) = inner(spec, "names") else { return };
    let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    if !kind.is_empty() {
        put(names, "singular", json!(kind.to_lowercase()));
        put(names, "listKind", json!(format!("{kind}List")));
    }
    for version in entries(spec, "versions") {
        put(version, "served", false);
        put(version, "storage", false);
    }
}

fn inner<'a>(map: &'a mut Map<String, Value>, field: &str) -> Option<&'a mut Map<String, Value>> {
    map.get_mut(field).and_then(Value::as_object_mut)
}

/// `stringData` is a way to write, not a way to store; data that is empty is not stored at all.
fn complete_data(object: &mut Object) {
    let is_secret = object.kind == KindId::SECRET;
    let is_empty = |value: &Value| value.is_null() || value.as_object().is_some_and(Map::is_empty);
    let has_texts = object.rest.contains_key("stringData");
    let has_type = object.rest.contains_key("type") || !is_secret;
    if has_type && !has_texts && !object.rest.values().any(is_empty) {
        return;
    }
    let rest = Arc::make_mut(&mut object.rest);
    if let Some(Value::Object(texts)) = rest.remove("stringData") {
        let coded = |text: Value| json!(base64(text.as_str().unwrap_or_default().as_bytes()));
        let coded = texts.into_iter().map(|(key, text)| (key, coded(text))).collect();
        let data = rest.entry("data").or_insert(Value::Null);
        *data = merged(data, Value::Object(coded));
    }
    rest.retain(|_, value| !is_empty(value));
    if is_secret {
        put(rest, "type", "Opaque");
    }
}

/// What a Secret stores must be coded.
pub(super) fn check_data(object: &Object) -> Result<(), ApiError> {
    let data = object.rest.get("data").and_then(Value::as_object);
    for (key, value) in data.into_iter().flatten() {
        if !value.is_null() && value.as_str().is_none_or(|text| !is_base64(text)) {
            return Err(ApiError::bad_request(format!(
                "Secret in version \"v1\" cannot be handled as a Secret: data.{key}: expected \
                 base64, found {value}"
            )));
        }
    }
    Ok(())
}

fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    text.len().is_multiple_of(4) && text.len() - digits.len() <= 2 && digits.bytes().all(is_digit)
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let index = usize::try_from(bits >> (18 - 6 * place) & 63).expect("six bits");
            let letter = char::from(LETTERS[index]);
            text.push(if place <= chunk.len() { letter } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base64_pads_to_groups_of_four() {
        for (plain, coded) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v")] {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }
}
