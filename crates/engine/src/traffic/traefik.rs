//! Traefik: weights stand on the `weighted.services` of the user's TraefikService.

mod api;
#[cfg(test)]
mod tests;

use gradus_api::names::router_event;
use serde_json::{Value, json};

use super::mark::{self, Moved};
use super::registry::routing_in;
use super::split::relative;
use super::{
    Access, Backends, ConfigField, Goal, Need, Report, RouteFault, RouteOp, RouteView, RouteWrite,
    Router, RouterEntry, RoutingObjects, Sides, WeightSplit, named_sides,
};
use crate::ask::http::HttpRequest;
use crate::decision::{EventKind, Kind, ObjectRef};
use crate::world::RolloutView;

pub(super) const TRAEFIK_SERVICE: Kind =
    Kind::new("traefik.io", "v1alpha1", "TraefikService", "traefikservices");
/// What Traefik takes for a weight that is not there.
const DEFAULT_WEIGHT: i64 = 1;

/// This router, for the list.
pub(super) static ENTRY: RouterEntry = RouterEntry {
    config: ConfigField::Field("traefik"),
    label: None,
    access: &[Access {
        kind: TRAEFIK_SERVICE,
        verbs: &["get", "list", "watch", "patch"],
        weights: "spec.weighted.services",
    }],
    has_header_routes: false,
    has_mirror_routes: false,
    has_experiments: false,
    has_max_weight: false,
    of: |rollout, routing| {
        let name = &routing.traefik.as_deref()?.weighted_traefik_service_name;
        Some(Box::new(Traefik { rollout, name }))
    },
    releases: &[mark::release(TRAEFIK_SERVICE, |_, spec| {
        let name = &routing_in(spec)["traefik"]["weightedTraefikServiceName"];
        name.as_str().map(str::to_owned).into_iter().collect()
    })],
    refused: |service, _, said| {
        let text = || format!("Error updating traefik service {:?}: {said}", &*service.name);
        let reason = router_event::TRAEFIK_SERVICE_UPDATE_ERROR;
        (service.kind == TRAEFIK_SERVICE).then(|| (EventKind::Warning, reason, text()))
    },
};

/// The router of a Rollout.
struct Traefik<'r> {
    rollout: &'r RolloutView,
    /// The TraefikService.
    name: &'r str,
}

impl Router for Traefik<'_> {
    fn needs(&self) -> Vec<Need> {
        vec![self.need()]
    }

    fn misconfigured(&self) -> Option<RouteFault> {
        let message = "Required value: the name of a TraefikService";
        self.name.is_empty().then(|| RouteFault::configuration(self.need().field, message))
    }

    fn unfit(&self, seen: &RoutingObjects) -> Option<RouteFault> {
        let need = self.need();
        let message = lacks(seen.get(&need.object)?, named_sides(self.rollout).fixed)?;
        Some(RouteFault::unfit(&need, format!("Invalid value: {:?}: {message}", self.name)))
    }

    fn splits(&self, sides: &Sides<'_>, seen: &RoutingObjects) -> Vec<WeightSplit> {
        let object = self.need().object;
        let services = seen.get(&object).and_then(services).unwrap_or_default();
        let named = services.iter().filter_map(|one| {
            let weight = one["weight"].as_i64().unwrap_or(DEFAULT_WEIGHT);
            Some((one["name"].as_str()?.to_owned(), weight))
        });
        let parts = relative(&named.collect::<Vec<_>>(), sides.fixed, super::WHOLE);
        if parts.is_empty() { Vec::new() } else { vec![WeightSplit { object, parts }] }
    }

    fn looks(&self) -> Option<HttpRequest> {
        api::request(self.rollout, self.name)
    }

    fn shown(&self, goal: &Goal<'_>, seen: &RoutingObjects, body: &str) -> Report {
        let services = seen.get(&self.need().object).and_then(services).unwrap_or_default();
        api::shown(self.rollout, services, goal, body)
    }

    fn moved(&self, object: &ObjectRef, goal: &Goal<'_>) -> Option<Moved> {
        (*object == self.need().object).then(|| Moved::between(goal.sides.fixed, goal))
    }

    fn plan(&self, goal: &Goal<'_>, seen: &RoutingObjects) -> Result<Vec<RouteWrite>, RouteFault> {
        let need = self.need();
        let known = seen.get(&need.object).ok_or_else(|| RouteFault::missing(&need))?;
        if let Some(message) = lacks(known, goal.sides.fixed) {
            return Err(RouteFault::unfit(&need, message));
        }
        let before = services(known).unwrap_or_default();
        let weighted = |one: &Value| {
            let mut one = one.clone();
            let name = one["name"].as_str().unwrap_or_default();
            if let Some(weight) = goal.weight_of(goal.sides.fixed, name) {
                one["weight"] = json!(weight);
            }
            one
        };
        let after: Vec<Value> = before.iter().map(weighted).collect();
        if after == before {
            return Ok(Vec::new());
        }
        let op = RouteOp::Merge(json!({ "spec": { "weighted": { "services": after } } }));
        Ok(vec![RouteWrite { target: need.object, op, told: Vec::new() }])
    }
}

impl Traefik<'_> {
    fn need(&self) -> Need {
        let object = ObjectRef::new(TRAEFIK_SERVICE, &self.rollout.namespace, &self.name.into());
        Need::required(object, format!("{}.weightedTraefikServiceName", ENTRY.config.path()))
    }
}

fn services(known: &RouteView) -> Option<&[Value]> {
    known.spec()["weighted"]["services"].as_array().map(Vec::as_slice)
}

/// What a TraefikService lacks to split between both Services.
fn lacks(known: &RouteView, backends: Backends<'_>) -> Option<&'static str> {
    let Some(services) = services(known) else {
        return Some("spec.weighted.services was not found in traefik service manifest");
    };
    if services.iter().any(|one| !one["name"].is_string()) {
        return Some("name field was not found in service");
    }
    let has = |name: &str| services.iter().any(|one| one["name"] == name);
    match (has(backends.canary), has(backends.stable)) {
        (false, _) => Some("traefik canary service was not found"),
        (true, false) => Some("traefik stable service was not found"),
        (true, true) => None,
    }
}
