//! What must hold for the rules of an Ingress? The mistakes people make, in the words of the API
//! server.

use serde_json::{Value, json};

use super::containers::port_name;
use super::metadata::{dns_1035, subdomain};
use crate::error::Cause;

const PORT_RANGE: &str = "must be between 1 and 65535, inclusive";

/// What is wrong with the spec of an Ingress.
pub(super) fn check(spec: &Value, causes: &mut Vec<Cause>) {
    if spec["rules"].as_array().is_none_or(Vec::is_empty) && spec["defaultBackend"].is_null() {
        let why = "either `defaultBackend` or `rules` must be specified";
        causes.push(Cause::invalid("spec", &json!([]), why));
    }
    for (index, rule) in spec["rules"].as_array().into_iter().flatten().enumerate() {
        let place = format!("spec.rules[{index}]");
        check_host(&format!("{place}.host"), &rule["host"], causes);
        let paths = rule["http"]["paths"].as_array().into_iter().flatten().enumerate();
        for (at, path) in paths {
            check_path(&format!("{place}.http.paths[{at}]"), path, causes);
        }
    }
}

fn check_host(field: &str, host: &Value, causes: &mut Vec<Cause>) {
    let Some(name) = host.as_str().filter(|name| !name.is_empty()) else { return };
    if name.parse::<std::net::IpAddr>().is_ok() {
        causes.push(Cause::invalid(field, host, "must be a DNS name, not an IP address"));
    } else if !name.contains('*') {
        for why in subdomain(name) {
            causes.push(Cause::invalid(field, host, &why));
        }
    }
}

fn check_path(place: &str, path: &Value, causes: &mut Vec<Cause>) {
    let text = path["path"].as_str().unwrap_or_default();
    let is_free = path["pathType"] == "ImplementationSpecific";
    if !(text.starts_with('/') || is_free && text.is_empty()) {
        let field = format!("{place}.path");
        causes.push(Cause::invalid(field, &json!(text), "must be an absolute path"));
    }
    if !is_free && text.contains("//") {
        let field = format!("{place}.path");
        causes.push(Cause::invalid(field, &json!(text), "must not contain '//'"));
    }
    let backend = &path["backend"];
    let at = format!("{place}.backend");
    if backend["service"].is_object() {
        check_service(&at, &backend["service"], causes);
    } else if backend["resource"].is_null() {
        let why = "resource or service backend is required";
        causes.push(Cause::invalid(at, &json!(""), why));
    }
}

fn check_service(place: &str, service: &Value, causes: &mut Vec<Cause>) {
    let at = |field: &str| format!("{place}.service.{field}");
    let name = service["name"].as_str().unwrap_or_default();
    if name.is_empty() {
        causes.push(Cause::required(at("name"), ""));
    } else {
        for why in dns_1035(name) {
            causes.push(Cause::invalid(at("name"), &json!(name), &why));
        }
    }
    let (named, number) = (&service["port"]["name"], &service["port"]["number"]);
    match (named.as_str().filter(|name| !name.is_empty()), number.as_i64().unwrap_or_default()) {
        (None, 0) => causes.push(Cause::required(place, "port name or number is required")),
        (Some(_), number) if number != 0 => {
            let why = "cannot set both port name & port number";
            causes.push(Cause::invalid(place, &json!(""), why));
        }
        (Some(name), _) => {
            for why in port_name(name) {
                causes.push(Cause::invalid(at("port.name"), named, why));
            }
        }
        (None, port) if !(1..=65_535).contains(&port) => {
            causes.push(Cause::invalid(at("port.number"), number, PORT_RANGE));
        }
        (None, _) => {}
    }
}
