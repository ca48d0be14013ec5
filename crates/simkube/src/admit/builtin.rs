//! What must hold for the kinds every cluster has, as far as callers can run into it?

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{containers, ingress, service};
use crate::error::Cause;
use crate::kinds::{self, KindId, stored_versions};
use crate::object::{Object, Texts};
use crate::selector::LabelSelector;

const NOT_NEGATIVE: &str = "must be greater than or equal to 0";
const IMMUTABLE: &str = "field is immutable";
const NO_MATCH: &str = "`selector` does not match template `labels`";

/// What is wrong with an object, or with its new state.
pub(super) fn check(object: &Object, before: Option<&Object>) -> Vec<Cause> {
    let mut causes = Vec::new();
    if object.kind == KindId::EVENT {
        check_event(object, &mut causes);
    }
    if object.kind == KindId::CONFIG_MAP || object.kind == KindId::SECRET {
        check_keys(object, &mut causes);
    }
    if let Some(before) = before {
        if object.kind == KindId::SECRET && before.rest.get("type") != object.rest.get("type") {
            let new = object.rest.get("type").unwrap_or(&Value::Null);
            causes.push(Cause::invalid("type", new, IMMUTABLE));
        }
        if is_frozen(object.kind, before) && !Arc::ptr_eq(&before.rest, &object.rest) {
            let why = "field is immutable when `immutable` is set";
            causes.push(Cause::forbidden("data", why));
        }
        if Arc::ptr_eq(&before.spec, &object.spec) && before.shares_template(object) {
            return causes;
        }
    }
    let old = before.map(|before| &*before.spec);
    match object.kind {
        KindId::POD => check_pod(&object.spec, old, &mut causes),
        KindId::REPLICA_SET | KindId::DEPLOYMENT | KindId::STATEFUL_SET => {
            check_workload(object, before, &mut causes);
        }
        KindId::CUSTOM_RESOURCE_DEFINITION => causes.extend(check_definition(object, before)),
        KindId::INGRESS => ingress::check(&object.spec, &mut causes),
        KindId::JOB => {
            check_job_numbers(&object.spec, &mut causes);
            check_template(object, &["Never", "OnFailure"], &mut causes);
            if object.template().is_null() {
                let why = "valid values: \"OnFailure\", \"Never\"";
                causes.push(Cause::required("spec.template.spec.restartPolicy", why));
            }
        }
        KindId::SERVICE => service::check(&object.spec, old, &mut causes),
        KindId::PERSISTENT_VOLUME_CLAIM => check_claim(&object.spec, old, &mut causes),
        _ => {}
    }
    causes
}

/// An event stands beside what it is about; what has no namespace is told of in `default`.
fn check_event(object: &Object, causes: &mut Vec<Cause>) {
    let about = object.rest.get("involvedObject").unwrap_or(&Value::Null);
    let namespace = about["namespace"].as_str().unwrap_or_default();
    let own = &*object.meta.namespace;
    let is_beside = namespace == own || (namespace.is_empty() && own == "default");
    if !is_beside {
        let why = "does not match event.namespace";
        causes.push(Cause::invalid("involvedObject.namespace", &json!(namespace), why));
    }
}

/// Data can be mounted as files: its keys are names of files.
fn check_keys(object: &Object, causes: &mut Vec<Cause>) {
    let is_name = |key: &str| {
        let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        !key.is_empty() && key.bytes().all(is_known)
    };
    for part in ["data", "binaryData"] {
        let all = object.rest.get(part).and_then(Value::as_object).into_iter().flatten();
        for (key, _) in all.filter(|(key, _)| !is_name(key)) {
            let why = "a valid config key must consist of alphanumeric characters, '-', '_' or \
                       '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for \
                       validation is '[-._a-zA-Z0-9]+')";
            causes.push(Cause::invalid(format!("{part}[{key}]"), &json!(key), why));
        }
    }
}

fn is_frozen(kind: KindId, before: &Object) -> bool {
    let can_be = kind == KindId::CONFIG_MAP || kind == KindId::SECRET;
    can_be && before.rest.get("immutable") == Some(&Value::Bool(true))
}

fn check_workload(object: &Object, before: Option<&Object>, causes: &mut Vec<Cause>) {
    let spec = &*object.spec;
    check_sizes(spec, causes);
    if object.kind == KindId::DEPLOYMENT {
        check_strategy(&spec["strategy"], causes);
    }
    let selector = &spec["selector"];
    let keeps_selector = before.is_some_and(|before| before.spec["selector"] == *selector);
    let keeps_template = before.is_some_and(|before| before.shares_template(object));
    if !(keeps_selector && keeps_template) {
        check_selector(selector, object.template(), causes);
        check_template(object, &["Always"], causes);
    }
    let Some(old) = before.map(|before| &*before.spec) else { return };
    if !keeps_selector {
        causes.push(Cause::invalid("spec.selector", selector, IMMUTABLE));
    }
    let is_fixed = |field: &str| old[field] == spec[field];
    let fixed = ["serviceName", "podManagementPolicy", "volumeClaimTemplates"];
    if object.kind == KindId::STATEFUL_SET && !fixed.into_iter().all(is_fixed) {
        let why = "updates to statefulset spec for fields other than 'replicas', 'ordinals', \
                   'template', 'updateStrategy', 'revisionHistoryLimit', \
                   'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
        causes.push(Cause::forbidden("spec", why));
    }
}

fn check_strategy(strategy: &Value, causes: &mut Vec<Cause>) {
    let limits = &strategy["rollingUpdate"];
    let is_none = |limit: &Value| *limit == 0 || limit == "0%";
    match strategy["type"].as_str() {
        Some("Recreate") if !limits.is_null() => {
            let why = "may not be specified when strategy `type` is 'Recreate'";
            causes.push(Cause::forbidden("spec.strategy.rollingUpdate", why));
        }
        Some("RollingUpdate") if is_none(&limits["maxSurge"]) => {
            let unavailable = &limits["maxUnavailable"];
            if is_none(unavailable) {
                let field = "spec.strategy.rollingUpdate.maxUnavailable";
                let why = "may not be 0 when `maxSurge` is 0";
                causes.push(Cause::invalid(field, unavailable, why));
            }
        }
        None | Some("Recreate" | "RollingUpdate") => {}
        Some(_) => {
            let known = ["Recreate", "RollingUpdate"];
            causes.push(Cause::unsupported("spec.strategy", strategy, &known));
        }
    }
}

fn check_definition(object: &Object, before: Option<&Object>) -> Vec<Cause> {
    let status = before.map_or(&Value::Null, |before| &before.status);
    let stored = stored_versions(&object.spec, status);
    kinds::check(&object.meta, &object.spec, before.map(|before| &*before.spec), &stored)
}

fn check_sizes(spec: &Value, causes: &mut Vec<Cause>) {
    for field in ["replicas", "minReadySeconds", "revisionHistoryLimit"] {
        let Some(number) = spec.get(field) else { continue };
        let why = match number {
            Value::Null => continue,
            number if number.as_i64().is_some_and(|number| number >= 0) => continue,
            number if number.is_i64() => NOT_NEGATIVE,
            _ => "must be a whole number",
        };
        causes.push(Cause::invalid(format!("spec.{field}"), number, why));
    }
}

fn check_job_numbers(spec: &Value, causes: &mut Vec<Cause>) {
    let numbers = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
    ];
    for field in numbers {
        if spec[field].as_i64().is_some_and(|number| number < 0) {
            causes.push(Cause::invalid(format!("spec.{field}"), &spec[field], NOT_NEGATIVE));
        }
    }
}

fn check_selector(selector: &Value, template: &Value, causes: &mut Vec<Cause>) {
    let labels = labels_of(template);
    match LabelSelector::from_json(selector) {
        _ if selector.is_null() => {
            causes.push(Cause::required("spec.selector", ""));
            causes.push(Cause::invalid("spec.template.metadata.labels", &json!(labels), NO_MATCH));
        }
        Err(error) => {
            let field = "spec.selector.matchExpressions[0].operator";
            causes.push(Cause::invalid(field, selector, &error.to_string()));
        }
        Ok(parsed) if parsed.is_empty() => {
            let why = "empty selector is invalid for deployment";
            causes.push(Cause::invalid("spec.selector", selector, why));
        }
        Ok(parsed) if !parsed.matches(&labels) => {
            causes.push(Cause::invalid("spec.template.metadata.labels", &json!(labels), NO_MATCH));
        }
        Ok(_) => {}
    }
}

fn labels_of(template: &Value) -> Texts {
    let labels = template["metadata"]["labels"].as_object().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    labels.map(|(key, value)| (key.clone(), text(value))).collect::<BTreeMap<_, _>>()
}

fn check_template(object: &Object, policies: &[&str], causes: &mut Vec<Cause>) {
    let template = object.template();
    let claims = &object.spec["volumeClaimTemplates"];
    containers::check("spec.template.spec", &template["spec"], claims, causes);
    let policy = &template["spec"]["restartPolicy"];
    if policy.as_str().is_some_and(|policy| !policies.contains(&policy)) {
        let field = "spec.template.spec.restartPolicy";
        causes.push(Cause::unsupported(field, policy, policies));
    }
}

/// Of a pod that is there, images and a few deadlines may change, nothing else.
fn check_pod(spec: &Value, old: Option<&Value>, causes: &mut Vec<Cause>) {
    containers::check("spec", spec, &Value::Null, causes);
    let policy = &spec["restartPolicy"];
    let policies = ["Always", "OnFailure", "Never"];
    if policy.as_str().is_some_and(|policy| !policies.contains(&policy)) {
        causes.push(Cause::unsupported("spec.restartPolicy", policy, &policies));
    }
    let Some(old) = old else { return };
    if without_what_may_change(spec) != without_what_may_change(old) {
        let why = "pod updates may not change fields other than `spec.containers[*].image`,\
                   `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
                   `spec.tolerations` (only additions to existing tolerations),\
                   `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was \
                   previously negative)";
        causes.push(Cause::forbidden("spec", why));
    }
}

fn without_what_may_change(spec: &Value) -> Value {
    let mut spec = spec.clone();
    let Some(map) = spec.as_object_mut() else { return spec };
    map.remove("activeDeadlineSeconds");
    map.remove("tolerations");
    for list in ["containers", "initContainers"] {
        let containers = map.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
            container.remove("image");
        }
    }
    spec
}

/// Of a claim that is there, the size alone may change.
fn check_claim(spec: &Value, old: Option<&Value>, causes: &mut Vec<Cause>) {
    let Some(old) = old else { return };
    let without_size = |spec: &Value| {
        let mut spec = spec.clone();
        spec["resources"].take();
        spec
    };
    if without_size(spec) != without_size(old) {
        let why = "spec is immutable after creation except resources.requests and \
                   volumeAttributesClassName for bound claims";
        causes.push(Cause::forbidden("spec", why));
    }
}
