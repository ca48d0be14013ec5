//! Istio: weights stand on the routes of the user's VirtualServices, and a DestinationRule, where one is
//! named, has a subset per revision.

mod managed;
mod rule;
mod service;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use gradus_api::names::router_event;
use gradus_api::traffic::{IstioDestinationRule, IstioRouting, IstioVirtualService};
use serde_json::{Map, Value, json};

use super::mark::{self, Moved};
use super::registry::{self, names, routing_in};
use super::{
    Access, Backends, ConfigField, Goal, Need, Receiver, Release, Report, RouteFault, RouteOp,
    RouteView, RouteWrite, Router, RouterEntry, RoutingObjects, Sides, TrafficSide, Undo, WHOLE,
    WeightPart, WeightSplit, managed_routes, named_sides,
};
use super::{own, report};
use crate::decision::{Kind, ObjectRef};
use crate::world::RolloutView;
use service::Lanes;

const GROUP: &str = "networking.istio.io";
pub(super) const VIRTUAL_SERVICE: Kind =
    Kind::new(GROUP, "v1alpha3", "VirtualService", "virtualservices");
pub(super) const DESTINATION_RULE: Kind =
    Kind::new(GROUP, "v1alpha3", "DestinationRule", "destinationrules");
const VERBS: &[&str] = &["get", "list", "watch", "patch"];

/// This router, for the list.
pub(super) static ENTRY: RouterEntry = RouterEntry {
    config: ConfigField::Field("istio"),
    label: Some((2, "Istio")),
    access: &[
        Access { kind: VIRTUAL_SERVICE, verbs: VERBS, weights: "spec" },
        Access { kind: DESTINATION_RULE, verbs: VERBS, weights: "spec.subsets" },
    ],
    has_header_routes: true,
    has_mirror_routes: true,
    has_experiments: true,
    has_max_weight: false,
    of: |rollout, routing| {
        let config = routing.istio.as_deref()?;
        Some(Box::new(Istio { rollout, config }))
    },
    releases: &[
        Release {
            kind: DESTINATION_RULE,
            managers: own::users,
            released: |rule, _| Undo::Patch(rule::released(rule)),
            named_in: |_, spec| {
                let name = &routing_in(spec)["istio"]["destinationRule"]["name"];
                name.as_str().map(str::to_owned).into_iter().collect()
            },
        },
        mark::release(VIRTUAL_SERVICE, |_, spec| {
            let istio = &routing_in(spec)["istio"];
            let one = istio["virtualService"]["name"].as_str().map(str::to_owned);
            let all = one.into_iter().chain(names(&istio["virtualServices"]));
            let own = Arc::from("");
            all.map(|name| placed(&name, &own).0.to_owned()).collect()
        }),
    ],
    refused: registry::untold,
};

/// The router of a Rollout.
struct Istio<'r> {
    rollout: &'r RolloutView,
    config: &'r IstioRouting,
}

impl Router for Istio<'_> {
    fn needs(&self) -> Vec<Need> {
        let services = self.services().into_iter().map(|(_, need)| need);
        services.chain(self.rule().map(|(_, need)| need)).collect()
    }

    fn misconfigured(&self) -> Option<RouteFault> {
        let has_one = self.config.virtual_service.is_some();
        let has_several = !self.config.virtual_services.is_empty();
        let message = "Internal error: either VirtualService or VirtualServices must be configured";
        (has_one == has_several).then(|| RouteFault::configuration(ENTRY.config.path(), message))
    }

    fn unfit(&self, seen: &RoutingObjects) -> Option<RouteFault> {
        let sides = named_sides(self.rollout);
        self.services().into_iter().find_map(|(named, need)| {
            let known = seen.get(&need.object)?;
            let message = match self.routes(named, known, &sides) {
                Ok(_) => return self.cannot(&need, known),
                Err(message) => message,
            };
            let name = &*need.object.name;
            Some(RouteFault::unfit(&need, format!("Invalid value: {name:?}: {message}")))
        })
    }

    fn splits(&self, sides: &Sides<'_>, seen: &RoutingObjects) -> Vec<WeightSplit> {
        let lanes = self.lanes(sides);
        let revisions =
            [TrafficSide::Canary, TrafficSide::Stable].map(|side| self.revision(side, seen));
        let receiver = |side: TrafficSide, host: &str| match (side, &revisions) {
            (TrafficSide::Canary, [Some(hash), _]) | (TrafficSide::Stable, [_, Some(hash)]) => {
                Receiver::Revision(hash.clone())
            }
            _ => Receiver::Service(service::short(host).to_owned()),
        };
        let of_service = |(named, need): (&IstioVirtualService, Need)| {
            let object = need.object;
            let known = seen.get(&object);
            let routes = known.map(|known| self.routes(named, known, sides).unwrap_or_default());
            let split = |route: &&Value| {
                let part = |(host, subset, weight): (&str, &str, i32)| {
                    let side = lanes.side(host, subset);
                    WeightPart { side, receiver: receiver(side, host), weight }
                };
                let parts = service::weights(route).into_iter().map(part).collect();
                WeightSplit { object: object.clone(), parts }
            };
            routes.unwrap_or_default().iter().map(split).collect::<Vec<_>>()
        };
        self.services().into_iter().flat_map(of_service).collect()
    }

    fn revision(&self, side: TrafficSide, seen: &RoutingObjects) -> Option<String> {
        let (config, need) = self.rule()?;
        let name = match side {
            TrafficSide::Canary => &config.canary_subset_name,
            TrafficSide::Stable => &config.stable_subset_name,
            TrafficSide::Other => return None,
        };
        let known = seen.get(&need.object);
        Some(known.and_then(|known| rule::hash(known, name)).unwrap_or_default().to_owned())
    }

    fn reported(&self, seen: &RoutingObjects) -> Option<Report> {
        let of_service = |(_, need): (&IstioVirtualService, Need)| {
            report::of_generation(seen.get(&need.object)?, &need.object.to_string())
        };
        self.services().into_iter().filter_map(of_service).max()
    }

    fn moved(&self, object: &ObjectRef, goal: &Goal<'_>) -> Option<Moved> {
        let backends = match self.lanes(&goal.sides) {
            Lanes::Hosts(backends) => backends,
            Lanes::Subsets { canary, stable, .. } => Backends { stable, canary },
        };
        let moved = || Moved::between(backends, goal).and_routes(&self.managed());
        (object.kind == VIRTUAL_SERVICE).then(moved)
    }

    fn plan(&self, goal: &Goal<'_>, seen: &RoutingObjects) -> Result<Vec<RouteWrite>, RouteFault> {
        let mut services = Vec::new();
        for (named, need) in self.services() {
            services.extend(self.plan_service(named, &need, goal, seen)?);
        }
        let Some((config, need)) = self.rule() else { return Ok(services) };
        let known = seen.get(&need.object).ok_or_else(|| {
            let message = format!("DestinationRule `{}` not found", need.object.name);
            RouteFault::missing(&need).told(router_event::DESTINATION_RULE_NOT_FOUND, message)
        })?;
        // Traffic leaves a revision before its subset does; it comes to one after its subset.
        let falls = goal.weight < self.carried(&goal.sides, seen);
        let leaves = rule::hash(known, &config.canary_subset_name) != Some(goal.subset_hash);
        if !(falls && leaves) {
            let write = self.plan_rule(config, &need, goal, known);
            return Ok(write.into_iter().chain(services).collect());
        }
        let kept = rule::hash(known, &config.canary_subset_name).unwrap_or_default();
        let first = Goal { subset_hash: kept, ..goal.clone() };
        match self.plan_rule(config, &need, &first, known) {
            // An object is written once in a decision: the canary's subset follows in the next.
            Some(write) => Ok(std::iter::once(write).chain(services).collect()),
            None => {
                let last = self.plan_rule(config, &need, goal, known);
                Ok(services.into_iter().chain(last).collect())
            }
        }
    }
}

impl<'r> Istio<'r> {
    /// The VirtualServices that are named, and where.
    fn services(&self) -> Vec<(&'r IstioVirtualService, Need)> {
        let one = self.config.virtual_service.iter().map(|named| (named, "virtualService"));
        let several = self.config.virtual_services.iter().map(|named| (named, "virtualServices"));
        let need = |(named, field): (&'r IstioVirtualService, &str)| {
            let (name, namespace) = placed(&named.name, &self.rollout.namespace);
            let object = ObjectRef::new(VIRTUAL_SERVICE, &namespace, &name.into());
            (named, Need::required(object, format!("{}.{field}.name", ENTRY.config.path())))
        };
        one.chain(several).map(need).collect()
    }

    /// The DestinationRule, if one is named. The contract does not look for it before it is written.
    fn rule(&self) -> Option<(&'r IstioDestinationRule, Need)> {
        let config = self.config.destination_rule.as_ref()?;
        let namespace = &self.rollout.namespace;
        let object = ObjectRef::new(DESTINATION_RULE, namespace, &config.name.as_str().into());
        let field = format!("{}.destinationRule.name", ENTRY.config.path());
        Some((config, Need::optional(object, field)))
    }

    fn lanes<'a>(&'a self, sides: &Sides<'a>) -> Lanes<'a> {
        match &self.config.destination_rule {
            Some(rule) => Lanes::Subsets {
                canary: &rule.canary_subset_name,
                stable: &rule.stable_subset_name,
                kept: &rule.additional_subset_names,
            },
            None => Lanes::Hosts(sides.preferring_fixed()),
        }
    }

    /// Names of the routes that steps make.
    fn managed(&self) -> Vec<&'r str> {
        managed_routes(self.rollout).iter().map(|route| &*route.name).collect()
    }

    /// The routes of a VirtualService that carry the weights.
    fn routes<'v>(
        &self,
        named: &IstioVirtualService,
        known: &'v RouteView,
        sides: &Sides<'_>,
    ) -> Result<Vec<&'v Value>, String> {
        let places = service::selected(known.spec(), named, &self.managed(), &self.lanes(sides))?;
        Ok(places.into_iter().map(|(section, at)| &known.spec()[section][at]).collect())
    }

    /// The first step that a VirtualService cannot do: without HTTP routes nobody sees a header.
    fn cannot(&self, need: &Need, known: &RouteView) -> Option<RouteFault> {
        if known.spec()["http"].is_array() {
            return None;
        }
        let canary = self.rollout.spec.fields.strategy.canary.as_ref()?;
        let mut steps = canary.steps.iter().enumerate();
        let (at, field) = steps.find_map(|(at, step)| {
            let header = step.set_header_route.as_ref().map(|_| "setHeaderRoute");
            let mirror = step.set_mirror_route.as_ref().map(|_| "setMirrorRoute");
            Some((at, header.or(mirror)?))
        })?;
        let field_path = format!("{}.steps[{at}].{field}", super::PATH);
        let message = format!(
            "Forbidden: router istio cannot do {field}: VirtualService `{}` has no spec.http",
            need.object.name
        );
        Some(RouteFault::unfit(&Need { field: field_path, ..need.clone() }, message))
    }

    fn plan_service(
        &self,
        named: &IstioVirtualService,
        need: &Need,
        goal: &Goal<'_>,
        seen: &RoutingObjects,
    ) -> Result<Option<RouteWrite>, RouteFault> {
        let name = &need.object.name;
        let known = seen.get(&need.object).ok_or_else(|| {
            let message = format!("VirtualService `{name}` not found");
            RouteFault::missing(need).told(router_event::VIRTUAL_SERVICE_NOT_FOUND, message)
        })?;
        let unfit = |message: String| RouteFault::unfit(need, message);
        let (managed, lanes) = (self.managed(), self.lanes(&goal.sides));
        let places = service::selected(known.spec(), named, &managed, &lanes).map_err(unfit)?;
        let mut spec = known.spec().clone();
        for (section, at) in &places {
            service::set_weights(&mut spec[*section][*at], goal, &lanes);
        }
        let is_split = spec != *known.spec();
        let mut told = Vec::new();
        let mut tell = |what: String| {
            let text = format!("VirtualService `{name}` {what}");
            told.push((router_event::UPDATED_VIRTUAL_SERVICE, text));
        };
        let host = self.rule_host(seen);
        let source = places.iter().find(|(section, _)| *section == "http");
        let source = source.map(|(section, at)| spec[*section][*at].clone());
        let maker =
            managed::Maker { goal, managed: &managed, lanes: &lanes, host: host.as_deref() };
        if let Some(http) = maker.planned(&spec["http"], source.as_ref()).map_err(unfit)? {
            for what in managed::told(&spec["http"], &http, goal, &managed) {
                tell(what);
            }
            spec["http"] = http;
        }
        // The contract takes routes back, or makes them, before it sets weights.
        if is_split {
            tell(format!("set to desiredWeight '{}'", goal.weight));
        }
        let mut patch = Map::new();
        for section in service::SECTIONS {
            if spec[section] != known.spec()[section] {
                patch.insert(section.to_owned(), spec[section].clone());
            }
        }
        if patch.is_empty() {
            return Ok(None);
        }
        let op = RouteOp::Merge(json!({ "spec": patch }));
        Ok(Some(RouteWrite { target: need.object.clone(), op, told }))
    }

    /// The host of the DestinationRule, where one is named and there.
    fn rule_host(&self, seen: &RoutingObjects) -> Option<String> {
        let (_, need) = self.rule()?;
        seen.get(&need.object)?.spec()["host"].as_str().map(str::to_owned)
    }

    fn plan_rule(
        &self,
        config: &IstioDestinationRule,
        need: &Need,
        goal: &Goal<'_>,
        known: &RouteView,
    ) -> Option<RouteWrite> {
        let patch = rule::planned(known, config, goal, &self.rollout.name)?;
        let told = format!(
            "DestinationRule {} subset updated ({}: {}, {}: {})",
            need.object.name,
            config.canary_subset_name,
            goal.subset_hash,
            config.stable_subset_name,
            goal.stable_subset_hash
        );
        let told = vec![(router_event::UPDATED_DESTINATION_RULE, told)];
        Some(RouteWrite { target: need.object.clone(), op: RouteOp::Merge(patch), told })
    }
}

/// Name and namespace of `name`, `name.namespace` or `name.namespace.cluster.local`.
fn placed<'n>(name: &'n str, own: &Arc<str>) -> (&'n str, Arc<str>) {
    let short = name.strip_suffix(".cluster.local").unwrap_or(name);
    match short.rsplit_once('.') {
        Some((name, namespace)) => (name, namespace.into()),
        None => (short, Arc::clone(own)),
    }
}
