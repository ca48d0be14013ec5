//! What must hold for the parts of a pod's spec that few pods have: where it may run, as whom, and
//! under which names it reaches others.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::metadata::qualified_name;
use crate::error::Cause;

const NOT_AN_ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
const USER_RANGE: &str = "must be between 0 and 2147483647, inclusive";
/// What a variable of the environment may be filled with.
const FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// What is wrong with a pod's spec beside its containers and volumes.
pub(super) fn check(path: &str, spec: &Value, causes: &mut Vec<Cause>) {
    check_user(&format!("{path}.securityContext"), &spec["securityContext"], causes);
    for (index, alias) in list(&spec["hostAliases"]).iter().enumerate() {
        let address = alias["ip"].as_str().unwrap_or_default();
        if address.parse::<IpAddr>().is_err() {
            let field = format!("{path}.hostAliases[{index}].ip");
            causes.push(Cause::invalid(field, &json!(address), NOT_AN_ADDRESS));
        }
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        check_neighbours(&format!("{path}.affinity.{kind}"), &spec["affinity"][kind], causes);
    }
    for (index, rule) in list(&spec["topologySpreadConstraints"]).iter().enumerate() {
        let field = format!("{path}.topologySpreadConstraints[{index}].maxSkew");
        if rule["maxSkew"].as_i64().is_some_and(|skew| skew < 1) {
            causes.push(Cause::invalid(field, &rule["maxSkew"], "must be greater than zero"));
        }
        let (way, ways) = (&rule["whenUnsatisfiable"], ["DoNotSchedule", "ScheduleAnyway"]);
        if way.as_str().is_some_and(|way| !ways.contains(&way)) {
            let field = format!("{path}.topologySpreadConstraints[{index}].whenUnsatisfiable");
            causes.push(Cause::unsupported(field, way, &ways));
        }
    }
    for (index, one) in list(&spec["tolerations"]).iter().enumerate() {
        let field = || format!("{path}.tolerations[{index}].operator");
        match one["operator"].as_str().unwrap_or_default() {
            "" | "Equal" => {}
            "Exists" if one["value"].as_str().is_some_and(|value| !value.is_empty()) => {
                let why = "value must be empty when `operator` is 'Exists'";
                causes.push(Cause::invalid(field(), &one["value"], why));
            }
            "Exists" => {}
            _ => causes.push(Cause::unsupported(field(), &one["operator"], &["Equal", "Exists"])),
        }
    }
}

/// The user and group that processes run as.
pub(super) fn check_user(path: &str, context: &Value, causes: &mut Vec<Cause>) {
    for field in ["runAsUser", "runAsGroup"] {
        let id = &context[field];
        if id.as_i64().is_some_and(|id| !(0..=i64::from(i32::MAX)).contains(&id)) {
            causes.push(Cause::invalid(format!("{path}.{field}"), id, USER_RANGE));
        }
    }
}

/// What fills a variable of the environment: one source, and a field that a pod has.
pub(super) fn check_source(path: &str, source: &Value, causes: &mut Vec<Cause>) {
    let sources = source.as_object().map_or(0, serde_json::Map::len);
    if sources == 0 {
        let why = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, \
                   `secretKeyRef` or `fileKeyRef`";
        causes.push(Cause::invalid(path, &json!(""), why));
    }
    let Some(field) = source["fieldRef"]["fieldPath"].as_str() else { return };
    let of_map = ["metadata.labels['", "metadata.annotations['"];
    let is_of_map = of_map.iter().any(|start| field.starts_with(start)) && field.ends_with("']");
    if ["metadata.labels", "metadata.annotations"].contains(&field) {
        let field = format!("{path}.fieldRef.fieldPath");
        causes.push(Cause::unsupported(field, &source["fieldRef"]["fieldPath"], &FIELDS));
    } else if !FIELDS.contains(&field) && !is_of_map {
        let why = format!("error converting fieldPath: field label not supported: {field}");
        causes.push(Cause::invalid(format!("{path}.fieldRef.fieldPath"), &json!(field), &why));
    }
}

/// What fills many variables of the environment: each time one object, by its name.
pub(super) fn check_sources(path: &str, sources: &[Value], causes: &mut Vec<Cause>) {
    for (index, source) in sources.iter().enumerate() {
        let kinds = ["configMapRef", "secretRef"];
        let mut given = kinds.into_iter().filter(|kind| source[*kind].is_object()).peekable();
        if given.peek().is_none() {
            let why = "must specify one of: `configMapRef` or `secretRef`";
            causes.push(Cause::invalid(path, &json!(""), why));
        }
        for kind in given {
            if source[kind]["name"].as_str().is_none_or(str::is_empty) {
                causes.push(Cause::required(format!("{path}[{index}].{kind}.name"), ""));
            }
        }
    }
}

/// Pods that are to run near these, or far away from them.
fn check_neighbours(path: &str, rules: &Value, causes: &mut Vec<Cause>) {
    let wished = "preferredDuringSchedulingIgnoredDuringExecution";
    let needed = "requiredDuringSchedulingIgnoredDuringExecution";
    for (index, term) in list(&rules[needed]).iter().enumerate() {
        check_topology(&format!("{path}.{needed}[{index}]"), term, causes);
    }
    for (index, one) in list(&rules[wished]).iter().enumerate() {
        let at = |field: &str| format!("{path}.{wished}[{index}].{field}");
        if one["weight"].as_i64().is_some_and(|weight| !(1..=100).contains(&weight)) {
            causes.push(Cause::invalid(at("weight"), &one["weight"], "must be in the range 1-100"));
        }
        check_topology(&at("podAffinityTerm"), &one["podAffinityTerm"], causes);
    }
}

fn check_topology(path: &str, term: &Value, causes: &mut Vec<Cause>) {
    let key = term["topologyKey"].as_str().unwrap_or_default();
    let field = || format!("{path}.topologyKey");
    if key.is_empty() {
        causes.push(Cause::required(field(), "can not be empty"));
    }
    for why in qualified_name(key) {
        causes.push(Cause::invalid(field(), &json!(key), &why));
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
