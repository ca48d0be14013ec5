//! Ambassador: beside each of the user's Mappings stands one of our own while the canary has traffic.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use gradus_api::names::router_event;
use serde_json::{Value, json};

use super::own::{self, manifest};
use super::registry::{names, routing_in};
use super::{
    Access, ConfigField, Goal, Need, Release, RouteFault, RouteOp, RouteView, RouteWrite, Router,
    RouterEntry, RoutingObjects, Sides, TrafficSide, WHOLE, WeightPart, WeightSplit, named_sides,
};
use crate::decision::{EventKind, Kind, ObjectRef, Op};
use crate::world::RolloutView;

pub(super) const MAPPING: Kind = Kind::new("getambassador.io", "v2", "Mapping", "mappings");
/// What the canary Mapping's name ends with, and how long a name may be.
const ENDING: &str = "-canary";
const NAME_LIMIT: usize = 253;

/// This router, for the list.
pub(super) static ENTRY: RouterEntry = RouterEntry {
    config: ConfigField::Field("ambassador"),
    label: Some((1, "Ambassador")),
    access: &[Access {
        kind: MAPPING,
        verbs: &["get", "list", "watch", "create", "patch", "delete"],
        weights: "spec.weight",
    }],
    has_header_routes: false,
    has_mirror_routes: false,
    has_experiments: false,
    has_max_weight: false,
    of: |rollout, routing| {
        let mappings = &routing.ambassador.as_deref()?.mappings;
        Some(Box::new(Ambassador { rollout, mappings }))
    },
    releases: &[Release {
        kind: MAPPING,
        managers: own::managers,
        released: own::released,
        named_in: |_, spec| {
            let mappings = names(&routing_in(spec)["ambassador"]["mappings"]);
            mappings.iter().map(|base| canary_name(base)).collect()
        },
    }],
    refused: |mapping, op, said| {
        let name = &*mapping.name;
        let (reason, text) = match op {
            Op::Create(_) => (
                router_event::CANARY_MAPPING_CREATION_ERROR,
                format!("Error creating canary mapping: {said}"),
            ),
            Op::Merge(_) => (
                router_event::CANARY_MAPPING_UPDATE_ERROR,
                format!("Error updating canary mapping {name:?}: {said}"),
            ),
            Op::Delete | Op::Evict => (
                router_event::CANARY_MAPPING_CLEANUP_ERROR,
                format!("Error deleting canary mapping {name:?}: {said}"),
            ),
        };
        (mapping.kind == MAPPING).then_some((EventKind::Warning, reason, text))
    },
};

/// The router of a Rollout.
struct Ambassador<'r> {
    rollout: &'r RolloutView,
    mappings: &'r [String],
}

impl Router for Ambassador<'_> {
    fn needs(&self) -> Vec<Need> {
        let both = |name: &String| {
            let canary = Need::optional(self.canary_of(name), field());
            [self.base(name), canary]
        };
        self.mappings.iter().flat_map(both).collect()
    }

    fn misconfigured(&self) -> Option<RouteFault> {
        let message = "Required value: must provide at least one mapping";
        self.mappings.is_empty().then(|| RouteFault::configuration(field(), message))
    }

    fn unfit(&self, seen: &RoutingObjects) -> Option<RouteFault> {
        self.mappings.iter().find_map(|name| {
            let need = Need { field: "spec.weight".to_owned(), ..self.base(name) };
            let mapping = seen.get(&need.object)?;
            if let Some(message) = weighs(mapping, name) {
                let message = format!("Invalid value: {name:?}: {message}");
                return Some(RouteFault::unfit(&need, message));
            }
            let message = strays(mapping, name, named_sides(self.rollout).fixed.stable)?;
            let message = format!("Invalid value: {name:?}: {message}");
            Some(RouteFault::unfit(&self.base(name), message))
        })
    }

    fn splits(&self, sides: &Sides<'_>, seen: &RoutingObjects) -> Vec<WeightSplit> {
        let split = |name: &String| {
            let object = self.canary_of(name);
            let weight = i32::try_from(weight(seen.get(&object)?)).unwrap_or(WHOLE);
            let canary = WeightPart::service(TrafficSide::Canary, sides.fixed.canary, weight);
            let rest = WHOLE.saturating_sub(weight);
            let stable = WeightPart::service(TrafficSide::Stable, sides.fixed.stable, rest);
            Some(WeightSplit { object, parts: vec![canary, stable] })
        };
        self.mappings.iter().filter_map(split).collect()
    }

    fn plan(&self, goal: &Goal<'_>, seen: &RoutingObjects) -> Result<Vec<RouteWrite>, RouteFault> {
        let writes = self.mappings.iter().map(|name| self.plan_one(name, goal, seen));
        writes.filter_map(Result::transpose).collect()
    }
}

impl Ambassador<'_> {
    fn reference(&self, name: &str) -> ObjectRef {
        ObjectRef::new(MAPPING, &self.rollout.namespace, &Arc::from(name))
    }

    fn base(&self, name: &str) -> Need {
        Need::required(self.reference(name), field())
    }

    /// The canary Mapping beside one of the user's.
    fn canary_of(&self, base: &str) -> ObjectRef {
        self.reference(&canary_name(base))
    }

    fn plan_one(
        &self,
        name: &str,
        goal: &Goal<'_>,
        seen: &RoutingObjects,
    ) -> Result<Option<RouteWrite>, RouteFault> {
        let need = self.base(name);
        let base = seen.get(&need.object).ok_or_else(|| {
            let message = format!("Ambassador mapping {name:?} not found");
            RouteFault::missing(&need).told(router_event::AMBASSADOR_MAPPING_NOT_FOUND, message)
        })?;
        let strays = || strays(base, name, goal.sides.fixed.stable);
        if let Some(message) = weighs(base, name).or_else(strays) {
            let reason = router_event::AMBASSADOR_MAPPING_CONFIG_ERROR;
            return Err(RouteFault::unfit(&need, "").told(reason, message));
        }
        let target = self.canary_of(name);
        let Some(op) = self.op(base, &target, goal, seen)? else { return Ok(None) };
        let told = match &op {
            RouteOp::Delete => Vec::new(),
            _ => {
                let text = format!("Set canary mapping weight to {}", goal.weight);
                vec![(router_event::CANARY_MAPPING_WEIGHT_UPDATE, text)]
            }
        };
        Ok(Some(RouteWrite { target, op, told }))
    }

    /// What is missing on the canary Mapping. One that is to go loses its weight first.
    fn op(
        &self,
        base: &RouteView,
        target: &ObjectRef,
        goal: &Goal<'_>,
        seen: &RoutingObjects,
    ) -> Result<Option<RouteOp>, RouteFault> {
        let Some(known) = seen.get(target) else {
            let made = || RouteOp::Create(self.canary(base, target, goal));
            return Ok((goal.weight != 0).then(made));
        };
        // One that Argo Rollouts has made belongs to nobody.
        if known.owner().is_some_and(|owner| owner != self.rollout.uid) {
            let message =
                format!("canary mapping `{}` controlled by different object", target.name);
            return Err(RouteFault::unfit(&Need::optional(target.clone(), field()), message));
        }
        Ok(match weight(known) {
            0 if goal.weight == 0 => Some(RouteOp::Delete),
            weight if weight == i64::from(goal.weight) => None,
            _ => Some(RouteOp::Merge(json!({ "spec": { "weight": goal.weight } }))),
        })
    }

    /// The user's Mapping once more, to the canary and with a weight.
    fn canary(&self, base: &RouteView, target: &ObjectRef, goal: &Goal<'_>) -> Value {
        let mut spec = base.spec().clone();
        let service = spec["service"].as_str().unwrap_or_default();
        let sides = goal.sides.fixed;
        spec["service"] = json!(service.replacen(sides.stable, sides.canary, 1));
        spec["weight"] = json!(goal.weight);
        manifest(self.rollout, target, spec)
    }
}

/// The name of the canary Mapping beside one of the user's.
fn canary_name(base: &str) -> String {
    let mut name = base.to_owned();
    name.truncate(name.floor_char_boundary(NAME_LIMIT - ENDING.len()));
    name + ENDING
}

fn field() -> String {
    format!("{}.mappings", ENTRY.config.path())
}

fn weight(mapping: &RouteView) -> i64 {
    mapping.spec()["weight"].as_i64().unwrap_or(0)
}

/// Why a user's Mapping cannot be used: a weight of its own leaves no room for a canary's.
fn weighs(mapping: &RouteView, name: &str) -> Option<String> {
    let message = || format!("Ambassador mapping {name:?} can not define weight");
    (weight(mapping) != 0).then(message)
}

/// Why a user's Mapping cannot be copied for the canary: it does not lead to the stable Service.
fn strays(mapping: &RouteView, name: &str, stable: &str) -> Option<String> {
    let service = mapping.spec()["service"].as_str().unwrap_or_default();
    let message = || format!("Ambassador mapping {name:?} has no service {stable}");
    (!service.contains(stable)).then(message)
}
