//! Traffic plugins: processes that split the traffic by means of their own. What they were told
//! stands in the status of the Rollout, before they hear of it: that is all that is known of the
//! split.

use gradus_api::rollout::CanaryStep;
use gradus_api::rollout::canary::{SetHeaderRoute, SetMirrorRoute};
use gradus_api::rollout::status::WeightDestination;
use gradus_api::traffic::TrafficRouting;

use super::registry::is_served;
use super::{
    Goal, Need, RouteFault, RouteWrite, Router, RoutingObjects, Sides, TrafficSide, WeightPart,
    WeightSplit,
};
use crate::ask::{RouterCall, RouterGoal, RouterOperation, RouterRoutes};
use crate::world::RolloutView;

/// The routers of the plugins that a Rollout names.
pub(super) fn of<'r>(
    rollout: &'r RolloutView,
    routing: &'r TrafficRouting,
) -> impl Iterator<Item = Box<dyn Router + 'r>> {
    let names = routing.plugins.keys().filter(|name| !is_served(name));
    names.map(move |name| Box::new(PluginRouter { rollout, name }) as Box<dyn Router + 'r>)
}

/// The router of one plugin.
struct PluginRouter<'r> {
    rollout: &'r RolloutView,
    name: &'r str,
}

impl Router for PluginRouter<'_> {
    fn needs(&self) -> Vec<Need> {
        Vec::new()
    }

    fn unfit(&self, _: &RoutingObjects) -> Option<RouteFault> {
        None
    }

    fn splits(&self, sides: &Sides<'_>, _: &RoutingObjects) -> Vec<WeightSplit> {
        let Some(weights) = &self.rollout.status.canary.weights else { return Vec::new() };
        let backends = sides.preferring_fixed();
        let additional = weights.additional.iter();
        let additional = additional
            .map(|one| WeightPart::service(TrafficSide::Other, &one.service_name, one.weight));
        let own = [
            WeightPart::service(TrafficSide::Canary, backends.canary, weights.canary.weight),
            WeightPart::service(TrafficSide::Stable, backends.stable, weights.stable.weight),
        ];
        let parts = own.into_iter().chain(additional).collect();
        vec![WeightSplit { object: self.rollout.reference(), parts }]
    }

    fn plan(&self, _: &Goal<'_>, _: &RoutingObjects) -> Result<Vec<RouteWrite>, RouteFault> {
        Ok(Vec::new())
    }

    fn tells(&self, goal: &Goal<'_>) -> Option<RouterCall> {
        let split = RouterGoal {
            canary_hash: goal.canary_hash.to_owned(),
            stable_hash: goal.stable_hash.to_owned(),
            weight_first: goal.canary_empty,
            routes: goal.route_steps.map(routes),
        };
        let part = |one: &super::Destination| WeightDestination {
            weight: one.weight,
            service_name: one.service.to_string(),
            pod_template_hash: one.hash.to_string(),
        };
        Some(RouterCall {
            name: self.name.to_owned(),
            operation: RouterOperation::Split(Box::new(split)),
            weight: goal.weight,
            additional: goal.additional.iter().map(part).collect(),
        })
    }
}

/// The routes as the steps leave them. Those that are to go come first: a plugin may clear all with
/// one of them.
fn routes(steps: &[CanaryStep]) -> RouterRoutes {
    let mut headers: Vec<SetHeaderRoute> = Vec::new();
    for route in steps.iter().filter_map(|step| step.set_header_route.as_deref()) {
        headers.retain(|known| known.name != route.name);
        headers.push(route.clone());
    }
    let mut mirrors: Vec<SetMirrorRoute> = Vec::new();
    for route in steps.iter().filter_map(|step| step.set_mirror_route.as_deref()) {
        mirrors.retain(|known| known.name != route.name);
        mirrors.push(route.clone());
    }
    headers.sort_by_key(|route| !route.r#match.is_empty());
    mirrors.sort_by_key(|route| !route.r#match.is_empty());
    RouterRoutes { headers, mirrors }
}
