//! Service Mesh Interface: a TrafficSplit of our own carries the weights.

#[cfg(test)]
mod tests;

use gradus_api::names::router_event;
use gradus_api::traffic::SmiRouting;
use serde_json::{Value, json};

use super::own::{self, covers, is_owned, manifest};
use super::registry::routing_in;
use super::split::relative;
use super::{
    Access, ConfigField, Goal, Need, Release, RouteFault, RouteOp, RouteView, RouteWrite, Router,
    RouterEntry, RoutingObjects, Sides, WeightSplit,
};
use crate::decision::{EventKind, Kind, ObjectRef, Op};
use crate::world::RolloutView;

pub(super) const TRAFFIC_SPLIT: Kind =
    Kind::new("split.smi-spec.io", "v1alpha1", "TrafficSplit", "trafficsplits");

/// This router, for the list.
pub(super) static ENTRY: RouterEntry = RouterEntry {
    config: ConfigField::Field("smi"),
    label: Some((4, "SMI")),
    access: &[Access {
        kind: TRAFFIC_SPLIT,
        verbs: &["get", "list", "watch", "create", "patch", "delete"],
        weights: "spec.backends",
    }],
    has_header_routes: false,
    has_mirror_routes: false,
    has_experiments: true,
    has_max_weight: false,
    of: |rollout, routing| {
        let config = routing.smi.as_deref()?;
        Some(Box::new(Smi { rollout, config }))
    },
    releases: &[Release {
        kind: TRAFFIC_SPLIT,
        managers: own::managers,
        released: own::released,
        named_in: |rollout, spec| {
            let smi = &routing_in(spec)["smi"];
            let name = smi["trafficSplitName"].as_str().filter(|name| !name.is_empty());
            let name = smi.is_object().then(|| name.unwrap_or(rollout).to_owned());
            name.into_iter().collect()
        },
    }],
    refused: |split, op, said| {
        let is_made = split.kind == TRAFFIC_SPLIT && matches!(op, Op::Create(_));
        let text = || format!("TrafficSplit `{}` failed creation: {said}", split.name);
        is_made.then(|| (EventKind::Normal, router_event::TRAFFIC_SPLIT_NOT_CREATED, text()))
    },
};

/// The router of a Rollout.
struct Smi<'r> {
    rollout: &'r RolloutView,
    config: &'r SmiRouting,
}

impl Router for Smi<'_> {
    fn needs(&self) -> Vec<Need> {
        vec![self.need()]
    }

    fn unfit(&self, _seen: &RoutingObjects) -> Option<RouteFault> {
        None // Whose it is matters only when it is written.
    }

    fn splits(&self, sides: &Sides<'_>, seen: &RoutingObjects) -> Vec<WeightSplit> {
        let object = self.need().object;
        let Some(known) = seen.get(&object) else { return Vec::new() };
        let backends = known.spec()["backends"].as_array().map_or(&[][..], Vec::as_slice);
        let weights: Vec<_> = backends.iter().filter_map(weight).collect();
        let parts = relative(&weights, sides.fixed, super::WHOLE);
        if parts.is_empty() { Vec::new() } else { vec![WeightSplit { object, parts }] }
    }

    fn plan(&self, goal: &Goal<'_>, seen: &RoutingObjects) -> Result<Vec<RouteWrite>, RouteFault> {
        let need = self.need();
        let (target, spec) = (need.object.clone(), self.spec(goal));
        let Some(known) = seen.get(&target) else {
            let text = format!("TrafficSplit `{}` created", target.name);
            let op = RouteOp::Create(manifest(self.rollout, &target, spec));
            let told = vec![(router_event::TRAFFIC_SPLIT_CREATED, text)];
            return Ok(vec![RouteWrite { target, op, told }]);
        };
        if !is_owned(known, self.rollout) {
            let message = format!("Rollout does not own TrafficSplit `{}`", target.name);
            return Err(RouteFault::unfit(&need, message));
        }
        if is_split(known, &spec) {
            return Ok(Vec::new());
        }
        let op = RouteOp::Merge(json!({ "spec": spec }));
        Ok(vec![RouteWrite { target, op, told: Vec::new() }])
    }
}

impl Smi<'_> {
    fn need(&self) -> Need {
        let name = match self.config.traffic_split_name.as_str() {
            "" => &*self.rollout.name,
            name => name,
        };
        let object = ObjectRef::new(TRAFFIC_SPLIT, &self.rollout.namespace, &name.into());
        Need::optional(object, format!("{}.trafficSplitName", ENTRY.config.path()))
    }

    /// Canary first, stable last, Experiments between them. Weights of this version are quantities.
    fn spec(&self, goal: &Goal<'_>) -> Value {
        let sides = goal.sides.fixed;
        let root = match self.config.root_service.as_str() {
            "" => sides.stable,
            root => root,
        };
        let backend = |service: &str, weight: i32| json!({ "service": service, "weight": weight.to_string() });
        let mut backends = vec![backend(sides.canary, goal.weight)];
        backends.extend(goal.additional.iter().map(|one| backend(&one.service, one.weight)));
        backends.push(backend(sides.stable, goal.rest()));
        json!({ "service": root, "backends": backends })
    }
}

/// Service and weight of a backend. A quantity may be a number or a text.
fn weight(backend: &Value) -> Option<(String, i64)> {
    let text = |weight: &Value| weight.as_str().and_then(|weight| weight.parse().ok());
    let weight = &backend["weight"];
    let weight = weight.as_i64().or_else(|| text(weight)).unwrap_or(0);
    Some((backend["service"].as_str()?.to_owned(), weight))
}

/// Does a TrafficSplit say what is wanted? A server may have written its quantities otherwise.
fn is_split(known: &RouteView, spec: &Value) -> bool {
    let weights = |spec: &Value| {
        let all = spec["backends"].as_array().map_or(&[][..], Vec::as_slice);
        all.iter().map(weight).collect::<Vec<_>>()
    };
    weights(known.spec()) == weights(spec) && covers(&known.spec()["service"], &spec["service"])
}
