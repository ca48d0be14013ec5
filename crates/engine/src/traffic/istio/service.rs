//! The routes of a VirtualService: which of them carry the weights, and what these are.

use std::collections::BTreeSet;

use gradus_api::traffic::IstioVirtualService;
use serde_json::{Value, json};

use super::{Backends, Goal, TrafficSide, WHOLE};

/// The lists of routes that a VirtualService may have.
pub const SECTIONS: [&str; 3] = ["http", "tls", "tcp"];
/// Where the field of the Rollout stands that may be left out if there is one route.
const FIELD: &str = "spec.strategy.canary.trafficRouting.istio.virtualService";

/// How the destinations of both revisions are told apart.
pub enum Lanes<'a> {
    /// By host: each revision has a Service.
    Hosts(Backends<'a>),
    /// By subset of one host.
    Subsets {
        /// The new revision's.
        canary: &'a str,
        /// The stable revision's.
        stable: &'a str,
        /// Subsets of others, which keep their weights.
        kept: &'a [String],
    },
}

impl Lanes<'_> {
    /// The side of a destination.
    pub fn side(&self, host: &str, subset: &str) -> TrafficSide {
        match self {
            Lanes::Hosts(backends) => backends.side(short(host)),
            Lanes::Subsets { canary, .. } if *canary == subset => TrafficSide::Canary,
            Lanes::Subsets { stable, .. } if *stable == subset => TrafficSide::Stable,
            Lanes::Subsets { .. } => TrafficSide::Other,
        }
    }

    /// Does a destination keep whatever weight it has?
    fn keeps(&self, subset: &str) -> bool {
        matches!(self, Lanes::Subsets { kept, .. } if kept.iter().any(|known| known == subset))
    }

    /// What a route lacks to lead to both revisions.
    fn lacks(&self, route: &Value) -> Option<String> {
        let sides: Vec<TrafficSide> =
            weights(route).into_iter().map(|(host, subset, _)| self.side(host, subset)).collect();
        let (what, canary, stable) = match self {
            Lanes::Hosts(Backends { stable, canary }) => ("Service", canary, stable),
            Lanes::Subsets { canary, stable, .. } => ("DestinationRule subset", canary, stable),
        };
        if !sides.contains(&TrafficSide::Canary) {
            return Some(format!("Canary {what} '{canary}' not found in route"));
        }
        let is_there = sides.contains(&TrafficSide::Stable);
        (!is_there).then(|| format!("Stable {what} '{stable}' not found in route"))
    }
}

/// A host up to its first dot.
pub fn short(host: &str) -> &str {
    host.split('.').next().unwrap_or(host)
}

/// Host, subset and weight of each destination. One that is alone gets everything.
pub fn weights(route: &Value) -> Vec<(&str, &str, i32)> {
    let all = list(&route["route"]);
    let one = |one: &'_ Value| {
        let weight = one["weight"].as_i64().and_then(|weight| i32::try_from(weight).ok());
        weight.unwrap_or(if all.len() == 1 { WHOLE } else { 0 })
    };
    all.iter()
        .map(|it| {
            let destination = &it["destination"];
            let host = destination["host"].as_str().unwrap_or_default();
            (host, destination["subset"].as_str().unwrap_or_default(), one(it))
        })
        .collect()
}

/// The routes that carry the weights, by section and place; what is wrong where one cannot.
pub fn selected(
    spec: &Value,
    named: &IstioVirtualService,
    managed: &[&str],
    lanes: &Lanes<'_>,
) -> Result<Vec<(&'static str, usize)>, String> {
    if SECTIONS.iter().all(|section| !spec[section].is_array()) {
        let message =
            "Unable to get any of the HTTP, TCP or TLS routes for the Istio VirtualService";
        return Err(message.to_owned());
    }
    let mut found = Vec::new();
    for section in SECTIONS {
        // A section that is not there is skipped, also where the Rollout names routes of it.
        let Value::Array(routes) = &spec[section] else { continue };
        let places = match section {
            "http" => http(routes, named, managed),
            "tls" => tls(routes, named),
            _ => tcp(routes, named),
        };
        let checked = places.and_then(|places| {
            let wrong = places.iter().find_map(|at| lanes.lacks(&routes[*at]));
            wrong.map_or(Ok(places), Err)
        });
        let places = checked.map_err(|error| {
            let section = section.to_uppercase();
            format!("Istio VirtualService has invalid {section} routes. Error: {error}")
        })?;
        found.extend(places.into_iter().map(|at| (section, at)));
    }
    Ok(found)
}

fn http(
    routes: &[Value],
    named: &IstioVirtualService,
    managed: &[&str],
) -> Result<Vec<usize>, String> {
    if named.routes.is_empty() {
        let is_ours = |route: &Value| managed.iter().any(|name| route["name"] == **name);
        let own: Vec<usize> = (0..routes.len()).filter(|at| !is_ours(&routes[*at])).collect();
        return match own.len() {
            1 => Ok(own),
            _ => Err(alone("http", "routes")),
        };
    }
    let place = |name: &String| {
        let at = routes.iter().position(|route| route["name"] == **name);
        at.ok_or_else(|| {
            format!("HTTP Route '{name}' is not found in the defined Virtual Service.")
        })
    };
    named.routes.iter().map(place).collect()
}

fn tls(routes: &[Value], named: &IstioVirtualService) -> Result<Vec<usize>, String> {
    if named.tls_routes.is_empty() {
        return sole(routes, "tls", "tlsRoutes");
    }
    let mut found = BTreeSet::new();
    for wanted in &named.tls_routes {
        let hosts: BTreeSet<&str> = wanted.sni_hosts.iter().map(String::as_str).collect();
        let is_wanted = |route: &Value| {
            let matches = list(&route["match"]);
            let sni = matches.iter().flat_map(|one| list(&one["sniHosts"]));
            let sni: BTreeSet<&str> = sni.filter_map(Value::as_str).collect();
            is_on(route, wanted.port) && sni == hosts
        };
        found.extend((0..routes.len()).filter(|at| is_wanted(&routes[*at])));
    }
    some(found, "TLS")
}

fn tcp(routes: &[Value], named: &IstioVirtualService) -> Result<Vec<usize>, String> {
    if named.tcp_routes.is_empty() {
        return sole(routes, "tcp", "tcpRoutes");
    }
    let mut found = BTreeSet::new();
    for wanted in &named.tcp_routes {
        found.extend((0..routes.len()).filter(|at| is_on(&routes[*at], wanted.port)));
    }
    some(found, "TCP")
}

fn sole(routes: &[Value], section: &str, field: &str) -> Result<Vec<usize>, String> {
    if routes.len() == 1 { Ok(vec![0]) } else { Err(alone(section, field)) }
}

fn some(found: BTreeSet<usize>, what: &str) -> Result<Vec<usize>, String> {
    match found.is_empty() {
        true => Err(format!("No matching {what} routes found in the defined Virtual Service.")),
        false => Ok(found.into_iter().collect()),
    }
}

fn alone(section: &str, field: &str) -> String {
    format!(
        "spec.{section}[] should be set in VirtualService and it must have exactly one route when \
         omitting {FIELD}.{field}"
    )
}

/// Do the matches of a route name at most one port, this one? No port counts as 0.
fn is_on(route: &Value, port: i64) -> bool {
    let ports = list(&route["match"]).iter().map(|one| one["port"].as_i64().unwrap_or(0));
    let ports: BTreeSet<i64> = ports.collect();
    if ports.is_empty() { port == 0 } else { ports == BTreeSet::from([port]) }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Gives the destinations of a route their weights. What belongs to nobody any more goes.
pub fn set_weights(route: &mut Value, goal: &Goal<'_>, lanes: &Lanes<'_>) {
    let Some(all) = route["route"].as_array_mut() else { return };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let place = |one: &Value| {
        let destination = &one["destination"];
        (text(&destination["host"]), text(&destination["subset"]))
    };
    let kept = all.iter().filter(|one| lanes.keeps(&place(one).1));
    let kept: i64 = kept.filter_map(|one| one["weight"].as_i64()).sum();
    let rest = (i64::from(WHOLE) - i64::from(goal.weight) - further(goal) - kept).max(0);
    all.retain_mut(|one| {
        let (host, subset) = place(one);
        let additional = goal.additional.iter().find(|it| *it.service == *short(&host));
        let weight = match (lanes.side(&host, &subset), additional) {
            (TrafficSide::Canary, _) => i64::from(goal.weight),
            (TrafficSide::Stable, _) => rest,
            (TrafficSide::Other, _) if lanes.keeps(&subset) => return true,
            (TrafficSide::Other, Some(known)) => i64::from(known.weight),
            (TrafficSide::Other, None) => return one["weight"].as_i64().unwrap_or(0) == 0,
        };
        if one["weight"].as_i64() != Some(weight) {
            one["weight"] = json!(weight);
        }
        true
    });
    let is_there =
        |all: &[Value], service: &str| all.iter().any(|one| *short(&place(one).0) == *service);
    let mut missing: Vec<_> = goal.additional.iter().filter(|it| it.weight != 0).collect();
    missing.sort_by(|one, other| one.service.cmp(&other.service));
    for one in missing {
        if !is_there(all, &one.service) {
            all.push(json!({ "destination": { "host": &*one.service }, "weight": one.weight }));
        }
    }
}

fn further(goal: &Goal<'_>) -> i64 {
    goal.additional.iter().map(|one| i64::from(one.weight)).sum()
}
