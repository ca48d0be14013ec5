//! The rows of what lets requests in: services, ingresses, endpoint slices.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::built_in::{AGE, BuiltIn, NAME, labels, list, none_if_empty, or_none};

/// How many entries of a list fit into a cell.
const MOST_SHOWN: usize = 3;

/// The columns of services.
pub fn service() -> Vec<BuiltIn> {
    vec![
        NAME,
        ("Type", "string", 0, |o, _| o["spec"]["type"].clone()),
        ("Cluster-IP", "string", 0, |o, _| or_none(&o["spec"]["clusterIPs"][0])),
        ("External-IP", "string", 0, |o, _| json!(external_address(o))),
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

/// The columns of ingresses.
pub fn ingress() -> Vec<BuiltIn> {
    vec![
        NAME,
        ("Class", "string", 0, |o, _| or_none(&o["spec"]["ingressClassName"])),
        ("Hosts", "string", 0, |o, _| json!(hosts(list(&o["spec"]["rules"])))),
        ("Address", "string", 0, |o, _| {
            let addresses = balancer_addresses(&o["status"]);
            json!(addresses.into_iter().collect::<Vec<_>>().join(","))
        }),
        ("Ports", "string", 0, |o, _| {
            json!(if list(&o["spec"]["tls"]).is_empty() { "80" } else { "80, 443" })
        }),
        AGE,
    ]
}

/// The columns of endpoint slices.
pub fn endpoint_slice() -> Vec<BuiltIn> {
    vec![
        NAME,
        ("AddressType", "string", 0, |o, _| o["addressType"].clone()),
        ("Ports", "string", 0, |o, _| {
            let ports = list(&o["ports"]).iter().map(|port| match &port["port"] {
                Value::Null => port["name"].as_str().unwrap_or("*").to_owned(),
                number => number.to_string(),
            });
            json!(some_of(&ports.collect::<Vec<_>>()))
        }),
        ("Endpoints", "string", 0, |o, _| {
            let addresses = list(&o["endpoints"]).iter().flat_map(|one| list(&one["addresses"]));
            let addresses = addresses.filter_map(Value::as_str).map(str::to_owned);
            json!(some_of(&addresses.collect::<Vec<_>>()))
        }),
        AGE,
    ]
}

/// Where a service is reached from outside.
fn external_address(service: &Value) -> String {
    let spec = &service["spec"];
    let own = list(&spec["externalIPs"]).iter().filter_map(Value::as_str);
    let (given, nothing) = match spec["type"].as_str() {
        Some("ExternalName") => {
            return spec["externalName"].as_str().unwrap_or_default().to_owned();
        }
        Some("LoadBalancer") => (balancer_addresses(&service["status"]), "<pending>"),
        _ => (BTreeSet::new(), "<none>"),
    };
    let all: Vec<&str> = given.into_iter().chain(own).collect();
    if all.is_empty() { nothing.to_owned() } else { all.join(",") }
}

/// What a load balancer says it listens on.
fn balancer_addresses(status: &Value) -> BTreeSet<&str> {
    let points = list(&status["loadBalancer"]["ingress"]).iter();
    points
        .filter_map(|point| {
            let text = |field: &str| point[field].as_str().filter(|text| !text.is_empty());
            text("ip").or(text("hostname"))
        })
        .collect()
}

fn hosts(rules: &[Value]) -> String {
    let named = rules.iter().filter_map(|rule| rule["host"].as_str());
    let shown: Vec<&str> = named.filter(|host| !host.is_empty()).take(MOST_SHOWN).collect();
    if shown.is_empty() {
        return "*".to_owned();
    }
    // Rules without a host are counted too, once the cell is full.
    let is_full = shown.len() == MOST_SHOWN && rules.len() > MOST_SHOWN;
    let more = if is_full { more(rules.len()) } else { String::new() };
    format!("{}{more}", shown.join(","))
}

fn some_of(entries: &[String]) -> String {
    match entries.len() {
        0 => "<unset>".to_owned(),
        all if all > MOST_SHOWN => format!("{}{}", entries[..MOST_SHOWN].join(","), more(all)),
        _ => entries.join(","),
    }
}

fn more(all: usize) -> String {
    format!(" + {} more...", all - MOST_SHOWN)
}
