//! What must hold for a service? The mistakes people make, in the words of the API server.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::containers::port_name;
use super::metadata::{dns_label, label_value, qualified_name};
use crate::error::Cause;

const KINDS: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const PORT_RANGE: &str = "must be between 1 and 65535, inclusive";

/// What is wrong with the spec of a service, or with its new state.
pub(super) fn check(spec: &Value, old: Option<&Value>, causes: &mut Vec<Cause>) {
    let kind = &spec["type"];
    if kind.as_str().is_none_or(|kind| !KINDS.contains(&kind)) {
        causes.push(Cause::unsupported("spec.type", kind, &KINDS));
    }
    let ports = spec["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
    if ports.is_empty() && *kind != "ExternalName" && spec["clusterIP"] != "None" {
        causes.push(Cause::required("spec.ports", ""));
    }
    if *kind == "ExternalName" && text(spec, "externalName").is_empty() {
        causes.push(Cause::required("spec.externalName", ""));
    }
    for (index, _) in ports.iter().enumerate() {
        check_port(ports, index, kind, causes);
    }
    let affinity = &spec["sessionAffinity"];
    let affinities = ["ClientIP", "None"];
    if affinity.as_str().is_some_and(|affinity| !affinities.contains(&affinity)) {
        causes.push(Cause::unsupported("spec.sessionAffinity", affinity, &affinities));
    }
    for (key, value) in spec["selector"].as_object().into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        for why in qualified_name(key) {
            causes.push(Cause::invalid("spec.selector", &json!(key), &why));
        }
        for why in label_value(value) {
            causes.push(Cause::invalid("spec.selector", &json!(value), &why));
        }
    }
    let address = text(spec, "clusterIP");
    if !matches!(address, "" | "None") && address.parse::<IpAddr>().is_err() {
        let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        causes.push(Cause::invalid("spec.clusterIPs[0]", &json!(address), why));
    }
    let Some(old) = old else { return };
    let was_given = old["clusterIP"].as_str().is_some_and(|address| !address.is_empty());
    if was_given && *kind != "ExternalName" && old["clusterIP"] != spec["clusterIP"] {
        let address = &spec["clusterIPs"];
        causes.push(Cause::invalid("spec.clusterIPs[0]", &address[0], "may not change once set"));
    }
}

fn check_port(ports: &[Value], index: usize, kind: &Value, causes: &mut Vec<Cause>) {
    let at = |field: &str| format!("spec.ports[{index}].{field}");
    let (port, earlier) = (&ports[index], &ports[..index]);
    let name = text(port, "name");
    if name.is_empty() {
        if ports.len() > 1 {
            causes.push(Cause::required(at("name"), ""));
        }
    } else {
        for why in dns_label(name) {
            causes.push(Cause::invalid(at("name"), &json!(name), &why));
        }
        if earlier.iter().any(|one| one["name"] == *name) {
            causes.push(Cause::duplicate(at("name"), &json!(name)));
        }
    }
    let number = port["port"].as_i64().unwrap_or_default();
    if !(1..=65_535).contains(&number) {
        causes.push(Cause::invalid(at("port"), &json!(number), PORT_RANGE));
    }
    let protocol = text(port, "protocol");
    if !protocol.is_empty() && !PROTOCOLS.contains(&protocol) {
        causes.push(Cause::unsupported(at("protocol"), &json!(protocol), &PROTOCOLS));
    }
    if let Some(target) = port["targetPort"].as_str() {
        for why in port_name(target) {
            causes.push(Cause::invalid(at("targetPort"), &json!(target), why));
        }
    }
    if *kind == "ClusterIP" && port["nodePort"].as_i64().is_some_and(|number| number != 0) {
        let why = "may not be used when `type` is 'ClusterIP'";
        causes.push(Cause::forbidden(at("nodePort"), why));
    }
    let is_same = |one: &&Value| one["port"] == port["port"] && one["protocol"] == port["protocol"];
    if earlier.iter().any(|one| is_same(&one)) {
        // The server shows what it compares by, in its own words.
        let same = format!(
            "{{\"Name\":\"\",\"Protocol\":{},\"AppProtocol\":null,\"Port\":{number},\
             \"TargetPort\":0,\"NodePort\":0}}",
            json!(protocol)
        );
        let message = format!("Duplicate value: {same}");
        causes.push(Cause::new("FieldValueDuplicate", format!("spec.ports[{index}]"), message));
    }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}
