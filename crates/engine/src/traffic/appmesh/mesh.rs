//! The routes of a VirtualRouter and the pod selector of a VirtualNode: what they say, and what they
//! should say.

use std::sync::Arc;

use gradus_api::names::{annotation, label};
use serde_json::{Map, Value, json};

use super::{Goal, TrafficSide};
use crate::traffic::RouteView;

/// What the canary's node selects while there is no canary: no pod has it.
pub const NO_CANARY: &str = "canary-hash";
/// The fields that a route of each protocol has.
const PROTOCOLS: [&str; 4] = ["httpRoute", "tcpRoute", "http2Route", "grpcRoute"];
/// Every route splits between both revisions and nobody else.
const TARGETS: usize = 2;

/// The VirtualNodes of both revisions.
pub struct Nodes {
    /// The new revision's.
    pub canary: Arc<str>,
    /// The stable revision's.
    pub stable: Arc<str>,
    /// Their namespace.
    pub namespace: Arc<str>,
}

impl Nodes {
    /// The side of a target.
    fn side(&self, target: &Value) -> TrafficSide {
        let node = &target["virtualNodeRef"];
        let namespace = node["namespace"].as_str().filter(|name| !name.is_empty());
        let name = node["name"].as_str().unwrap_or_default();
        match name {
            _ if namespace.is_some_and(|namespace| *namespace != *self.namespace) => {
                TrafficSide::Other
            }
            name if *name == *self.canary => TrafficSide::Canary,
            name if *name == *self.stable => TrafficSide::Stable,
            _ => TrafficSide::Other,
        }
    }
}

/// The hash that a VirtualNode selects.
pub fn hash(node: &RouteView) -> Option<&str> {
    node.spec()["podSelector"]["matchLabels"][label::POD_TEMPLATE_HASH].as_str()
}

/// The patch that makes a VirtualNode select a hash, or without one the pods of every revision, and notes
/// for whom; `None` where all is so.
pub fn selecting(node: &RouteView, wanted: &str, rollout: &str) -> Option<Value> {
    let mut patch = Map::new();
    if hash(node).unwrap_or_default() != wanted {
        let wanted = Some(wanted).filter(|wanted| !wanted.is_empty());
        let labels = json!({ label::POD_TEMPLATE_HASH: wanted });
        patch.insert("spec".to_owned(), json!({ "podSelector": { "matchLabels": labels } }));
    }
    if node.annotation(annotation::MANAGED_BY) != Some(rollout) {
        let notes = json!({ annotation::MANAGED_BY: rollout });
        patch.insert("metadata".to_owned(), json!({ "annotations": notes }));
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// The patch that takes off what we have written on a VirtualNode.
pub fn released() -> Value {
    let labels = json!({ label::POD_TEMPLATE_HASH: null });
    json!({
        "metadata": { "annotations": { annotation::MANAGED_BY: null } },
        "spec": { "podSelector": { "matchLabels": labels } },
    })
}

/// What a VirtualRouter lacks, by field: it has routes, each with two targets.
pub fn lacks(router: &RouteView) -> Option<(String, String)> {
    let name = router.name();
    if routes(router).is_empty() {
        let message = format!("No routes defined for AppMesh virtual-router {name}");
        return Some(("spec.routes".to_owned(), message));
    }
    routes(router).iter().enumerate().find_map(|(at, route)| {
        let Some(protocol) = protocol(route) else {
            return Some((format!("spec.routes[{at}]"), malformed(route)));
        };
        let field = format!("spec.routes[{at}].{protocol}.action.weightedTargets");
        let targets = targets(route);
        if targets.len() != TARGETS {
            let message = format!(
                "Invalid number of weightedTargets ({}) for AppMesh virtual-router {name} and \
                 route {}, expected {TARGETS}",
                targets.len(),
                name_of(route)
            );
            return Some((field, message));
        }
        let is_weighted = targets.iter().all(|target| target["weight"].is_i64());
        (!is_weighted).then(|| (field, malformed(route)))
    })
}

/// Places of the routes with these names; of all where none are named.
pub fn selected(router: &RouteView, names: &[String]) -> Vec<usize> {
    let is_named = |route: &Value| names.is_empty() || names.iter().any(|it| *it == name_of(route));
    let all = routes(router).iter().enumerate();
    all.filter(|(_, route)| is_named(route)).map(|(at, _)| at).collect()
}

/// Side, node and weight of each target of a route.
pub fn weights<'v>(
    router: &'v RouteView,
    at: usize,
    nodes: &Nodes,
) -> Vec<(TrafficSide, &'v str, i32)> {
    let one = |target: &'v Value| {
        let weight = target["weight"].as_i64().and_then(|weight| i32::try_from(weight).ok());
        let name = target["virtualNodeRef"]["name"].as_str().unwrap_or_default();
        (nodes.side(target), name, weight.unwrap_or(0))
    };
    targets(&routes(router)[at]).iter().map(one).collect()
}

/// The routes with the wanted weights; `None` where they have them.
pub fn weighted(
    router: &RouteView,
    names: &[String],
    nodes: &Nodes,
    goal: &Goal<'_>,
) -> Result<Option<Vec<Value>>, String> {
    if let Some((field, message)) = lacks(router) {
        return Err(format!("{field}: {message}"));
    }
    let absent = names.iter().find(|name| !routes(router).iter().any(|it| *name_of(it) == ***name));
    if let Some(name) = absent {
        return Err(format!("route {name} not found in virtual-router {}", router.name()));
    }
    let mut after = routes(router).to_vec();
    for at in selected(router, names) {
        let route = &mut after[at];
        let Some(protocol) = protocol(route) else { continue };
        let targets = route[protocol]["action"]["weightedTargets"].as_array_mut();
        for target in targets.into_iter().flatten() {
            match nodes.side(target) {
                TrafficSide::Canary => target["weight"] = json!(goal.weight),
                TrafficSide::Stable => target["weight"] = json!(goal.rest()),
                TrafficSide::Other => {}
            }
        }
    }
    Ok((after != routes(router)).then_some(after))
}

fn routes(router: &RouteView) -> &[Value] {
    router.spec()["routes"].as_array().map_or(&[], Vec::as_slice)
}

fn protocol(route: &Value) -> Option<&'static str> {
    PROTOCOLS.into_iter().find(|protocol| route[protocol].is_object())
}

fn targets(route: &Value) -> &[Value] {
    let action = protocol(route).map(|protocol| &route[protocol]["action"]["weightedTargets"]);
    action.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn name_of(route: &Value) -> &str {
    route["name"].as_str().unwrap_or_default()
}

fn malformed(route: &Value) -> String {
    format!("route {} is not well-formed", name_of(route))
}
