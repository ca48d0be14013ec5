//! Who splits the traffic, and which writes bring a wanted split about?
//!
//! Routers are pure: a [`Goal`] and the routing objects as they are give the writes that are
//! missing, in order. No writes means that the goal is reached. [`ROUTERS`] names each router once:
//! what is watched, which rights are needed, what the metrics say and what is refused follow from it.

mod alb;
mod ambassador;
mod apisix;
mod appmesh;
mod fault;
mod gateway;
mod ingress;
mod istio;
mod mark;
mod nginx;
mod own;
mod plugin;
mod registry;
mod report;
mod selection;
mod smi;
mod split;
#[cfg(test)]
mod tests;
mod traefik;
mod view;

use std::collections::BTreeMap;
use std::sync::Arc;

use gradus_api::rollout::CanaryStep;
use gradus_api::rollout::canary::{SetHeaderRoute, SetMirrorRoute};
use gradus_api::traffic::ManagedRoute;
use serde_json::Value;

use crate::ask::http::HttpRequest;
use crate::ask::{RouterCall, WeightsOf};
use crate::decision::{Kind, ObjectRef};
use crate::kinds;
use crate::world::{Known, RolloutView, Route, Unusable, World};
pub use fault::{FaultCause, Need, RouteFault};
pub use mark::Moved;
pub(crate) use mark::planned;
pub use registry::{
    Access, ConfigField, RefusalEvent, Release, RouterEntry, Undo, accesses, is_served,
    metric_label, plugins_in, routes, selects_in, unsupported,
};
pub(crate) use registry::{NOT_YET, PATH, refused, releases_of, weights_field};
pub use report::Report;
pub use selection::RouteSelection;
pub use split::{Receiver, TrafficSide, WeightPart, WeightSplit};
pub use view::RouteView;

/// Every router, in the order in which a Rollout's routers are served.
pub static ROUTERS: &[&RouterEntry] = &[
    &istio::ENTRY,
    &nginx::ENTRY,
    &alb::ENTRY,
    &smi::ENTRY,
    &ambassador::ENTRY,
    &appmesh::ENTRY,
    &traefik::ENTRY,
    &apisix::ENTRY,
    &gateway::ENTRY,
    #[cfg(test)]
    &tests::notes::ENTRY,
];

/// Can objects of a kind be selected by their labels?
pub fn is_selectable(kind: &Kind) -> bool {
    gateway::RouteFamily::ALL.iter().any(|family| family.kind() == *kind)
}

/// The whole of the traffic for routers whose weights are per cent.
const WHOLE: i32 = 100;

/// The kinds of which routers leave something behind; each has an engine that clears it away.
pub const fn released_kind(at: usize) -> Kind {
    match at {
        0 => kinds::INGRESS,
        1 => istio::DESTINATION_RULE,
        2 => smi::TRAFFIC_SPLIT,
        3 => ambassador::MAPPING,
        4 => appmesh::VIRTUAL_NODE,
        5 => apisix::APISIX_ROUTE,
        6 => istio::VIRTUAL_SERVICE,
        7 => traefik::TRAEFIK_SERVICE,
        8 => gateway::RouteFamily::Http.kind(),
        9 => gateway::RouteFamily::Grpc.kind(),
        10 => gateway::RouteFamily::Tcp.kind(),
        _ => gateway::RouteFamily::Tls.kind(),
    }
}

/// The routing objects that are there, as the planned writes leave them.
pub type RoutingObjects = BTreeMap<ObjectRef, RouteView>;

/// How the traffic should be split.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal<'a> {
    /// The new revision's part.
    pub weight: i32,
    /// What the whole traffic counts as.
    pub max_weight: i32,
    /// Hash of the revision behind the canary side.
    pub canary_hash: &'a str,
    /// Hash of the revision that a destination of the canary's own leads to, where there is one.
    pub subset_hash: &'a str,
    /// The same of stable; empty while it leads to the pods of every revision and is to go on so.
    pub stable_subset_hash: &'a str,
    /// Hash of the revision behind the stable side.
    pub stable_hash: &'a str,
    /// The Services of both sides.
    pub sides: Sides<'a>,
    /// What goes to the Experiment of the current step; stable gets the rest.
    pub additional: &'a [Destination],
    /// Routes by header that shall be there, and no others of ours.
    pub header_routes: Vec<&'a SetHeaderRoute>,
    /// Routes that copy requests, likewise.
    pub mirror_routes: Vec<&'a SetMirrorRoute>,
    /// The steps whose routes these are, with those that take one back; `None` where no route of ours
    /// may be left.
    pub route_steps: Option<&'a [CanaryStep]>,
    /// Every route that may be ours, in order of precedence.
    pub managed_routes: &'a [ManagedRoute],
    /// The canary side has no pods: the weight must go before anything else moves.
    pub canary_empty: bool,
}

/// The Services between which traffic is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sides<'a> {
    /// Those with a fixed role.
    pub fixed: Backends<'a>,
    /// Those that take turns in being the stable one, where the rollout has such.
    pub ping_pong: Option<Backends<'a>>,
}

/// Names of the Services of both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backends<'a> {
    /// The stable side.
    pub stable: &'a str,
    /// The canary side.
    pub canary: &'a str,
}

/// A further Service that gets a part of the traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The Service.
    pub service: Arc<str>,
    /// The revision it selects.
    pub hash: Arc<str>,
    /// Its port for HTTP, where it is known.
    pub port: Option<i64>,
    /// Its part.
    pub weight: i32,
}

impl<'a> Sides<'a> {
    /// The Services of both sides for routers that let two take turns only where no others are named.
    fn preferring_fixed(&self) -> Backends<'a> {
        let has_fixed = !self.fixed.stable.is_empty() && !self.fixed.canary.is_empty();
        self.ping_pong.filter(|_| !has_fixed).unwrap_or(self.fixed)
    }
}

impl Backends<'_> {
    /// The side that a Service is on.
    fn side(&self, service: &str) -> TrafficSide {
        match service {
            name if name == self.canary => TrafficSide::Canary,
            name if name == self.stable => TrafficSide::Stable,
            _ => TrafficSide::Other,
        }
    }
}

impl Goal<'_> {
    /// The stable revision's part.
    pub fn rest(&self) -> i32 {
        let additional: i32 = self.additional.iter().map(|one| one.weight).sum();
        (self.max_weight - self.weight - additional).max(0)
    }

    /// Does everything go to the stable side, and nothing of ours is beside it?
    fn is_at_rest(&self) -> bool {
        let has_routes = !self.header_routes.is_empty() || !self.mirror_routes.is_empty();
        self.weight == 0 && self.additional.is_empty() && !has_routes
    }

    /// The part of a Service: that of its side, if it is on one.
    fn weight_of(&self, backends: Backends<'_>, service: &str) -> Option<i32> {
        match backends.side(service) {
            TrafficSide::Canary => Some(self.weight),
            TrafficSide::Stable => Some(self.rest()),
            TrafficSide::Other => None,
        }
    }
}

/// One missing write of a routing object, and what the user is told of it.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteWrite {
    /// Which object.
    pub target: ObjectRef,
    /// How it is written.
    pub op: RouteOp,
    /// Reasons and messages of the Events about it, in order.
    pub told: Vec<(&'static str, String)>,
}

/// How a routing object is written.
#[derive(Clone, Debug, PartialEq)]
pub enum RouteOp {
    /// Made anew from this manifest.
    Create(Value),
    /// Changed by this merge patch.
    Merge(Value),
    /// Removed.
    Delete,
}

/// One way to split traffic. Each is a file of its own.
pub trait Router {
    /// Every object it reads or writes that the Rollout names, or from which its name is made.
    fn needs(&self) -> Vec<Need>;

    /// Further objects that it reads or writes, which those that are there name.
    fn leads_to(&self, _seen: &RoutingObjects) -> Vec<Need> {
        Vec::new()
    }

    /// Objects that the Rollout does not name but selects. Those that are there are part of what is seen.
    fn selections(&self) -> Vec<RouteSelection> {
        Vec::new()
    }

    /// What is wrong with its configuration.
    fn misconfigured(&self) -> Option<RouteFault> {
        None
    }

    /// What is wrong with the objects that are there.
    fn unfit(&self, seen: &RoutingObjects) -> Option<RouteFault>;

    /// How the traffic is split as the objects stand, whoever wrote them. Objects that carry no
    /// weights yet are left out: they send everything to the stable side.
    fn splits(&self, sides: &Sides<'_>, seen: &RoutingObjects) -> Vec<WeightSplit>;

    /// The revision that a side leads to, where the router's objects say it; `None` where Services do.
    fn revision(&self, _side: TrafficSide, _seen: &RoutingObjects) -> Option<String> {
        None
    }

    /// What must be asked to know that the goal is in force; nothing where writing it is enough.
    fn asks(&self, _goal: &Goal<'_>) -> Option<WeightsOf> {
        None
    }

    /// What a plugin must be told for the goal to be reached; nothing where objects are written.
    fn tells(&self, _goal: &Goal<'_>) -> Option<RouterCall> {
        None
    }

    /// What the data plane says of its objects as they stand; `None` where it says nothing.
    fn reported(&self, _seen: &RoutingObjects) -> Option<Report> {
        None
    }

    /// A request whose answer shows what the data plane has taken in; nothing where none is served.
    fn looks(&self) -> Option<HttpRequest> {
        None
    }

    /// Is a goal in force, by the body of such an answer?
    fn shown(&self, _goal: &Goal<'_>, _seen: &RoutingObjects, _body: &str) -> Report {
        Report::InForce
    }

    /// What a goal moves on an object of the user's; `None` where the object is not one whose weights
    /// this router writes.
    fn moved(&self, _object: &ObjectRef, _goal: &Goal<'_>) -> Option<Moved> {
        None
    }

    /// The writes that are missing, in order; none when the goal is reached.
    fn plan(&self, goal: &Goal<'_>, seen: &RoutingObjects) -> Result<Vec<RouteWrite>, RouteFault>;

    /// The first object it needs that is not there.
    fn missing(&self, seen: &RoutingObjects) -> Option<RouteFault> {
        let needs = self.needs();
        let absent = |need: &&Need| need.is_required && !seen.contains_key(&need.object);
        needs.iter().find(absent).map(RouteFault::missing)
    }

    /// The first thing that keeps it from its work.
    fn fault(&self, seen: &RoutingObjects) -> Option<RouteFault> {
        let missing = || self.missing(seen);
        self.misconfigured().or_else(missing).or_else(|| self.unfit(seen))
    }

    /// The new revision's part as the objects stand: of several splits the largest.
    fn carried(&self, sides: &Sides<'_>, seen: &RoutingObjects) -> i32 {
        self.splits(sides, seen).iter().map(WeightSplit::canary).max().unwrap_or(0)
    }

    /// Is this one of its objects?
    fn works_on(&self, object: &ObjectRef, seen: &RoutingObjects) -> bool {
        let mut needs = self.needs().into_iter().chain(self.leads_to(seen));
        needs.any(|need| need.object == *object)
    }
}

/// The routers of a Rollout, in the order in which they are served.
pub fn routers(rollout: &RolloutView) -> Vec<Box<dyn Router + '_>> {
    let canary = rollout.spec.fields.strategy.canary.as_ref();
    let Some(routing) = canary.and_then(|canary| canary.traffic_routing.as_deref()) else {
        return Vec::new();
    };
    let own = ROUTERS.iter().filter_map(|entry| (entry.of)(rollout, routing));
    own.chain(plugin::of(rollout, routing)).collect()
}

/// What the routers of a Rollout select.
pub fn selections(rollout: &RolloutView) -> Vec<RouteSelection> {
    routers(rollout).iter().flat_map(|router| router.selections()).collect()
}

/// Do plugins split the traffic of a Rollout?
pub fn names_plugins(rollout: &RolloutView) -> bool {
    let canary = rollout.spec.fields.strategy.canary.as_ref();
    let routing = canary.and_then(|canary| canary.traffic_routing.as_deref());
    routing.is_some_and(|routing| plugin::of(rollout, routing).next().is_some())
}

/// What the data planes of a Rollout's routers say, the worst of it; `None` where none says anything.
pub(crate) fn reported(rollout: &RolloutView, seen: &RoutingObjects) -> Option<Report> {
    routers(rollout).iter().filter_map(|router| router.reported(seen)).max()
}

/// The Services of both sides as the spec names them; which of two that take turns is which is not
/// known here.
fn named_sides(rollout: &RolloutView) -> Sides<'_> {
    let canary = rollout.spec.fields.strategy.canary.as_ref();
    let none = Backends { stable: "", canary: "" };
    let fixed = canary.map_or(none, |canary| Backends {
        stable: &canary.stable_service,
        canary: &canary.canary_service,
    });
    let pair = canary.and_then(|canary| canary.ping_pong.as_ref());
    let ping_pong =
        pair.map(|pair| Backends { stable: &pair.ping_service, canary: &pair.pong_service });
    Sides { fixed, ping_pong }
}

/// The routes that steps may make, in order of precedence.
fn managed_routes(rollout: &RolloutView) -> &[ManagedRoute] {
    let canary = rollout.spec.fields.strategy.canary.as_ref();
    let routing = canary.and_then(|canary| canary.traffic_routing.as_ref());
    routing.map_or(&[], |routing| &routing.managed_routes)
}

/// What is there of the routing objects in a World.
pub fn seen(world: &World) -> RoutingObjects {
    let present = |route: &Route| {
        let object = Arc::clone(route.known.present()?);
        Some((route.object.clone(), RouteView(object)))
    };
    world.routes.iter().filter_map(present).collect()
}

/// The first router whose configuration is wrong.
pub(crate) fn misconfigured(world: &World) -> Option<Unusable> {
    let routers = routers(&world.rollout);
    let fault = routers.iter().find_map(|router| router.misconfigured());
    fault.map(|fault| Unusable::Invalid(fault.to_string()))
}

/// The first routing object that cannot be read, or is not there.
pub(crate) fn missing(world: &World) -> Option<Unusable> {
    let unreadable = world.routes.iter().find_map(|route| match &route.known {
        Known::Unknown(message) => Some(Unusable::Unreadable(message.clone())),
        Known::Present(_) | Known::Absent => None,
    });
    unreadable.or_else(|| fault(world, |router, seen| router.missing(seen)))
}

/// The first routing object that cannot be used.
pub(crate) fn unfit(world: &World) -> Option<Unusable> {
    fault(world, |router, seen| router.unfit(seen))
}

/// The first thing that a look at the routers finds.
fn fault(
    world: &World,
    look: impl Fn(&dyn Router, &RoutingObjects) -> Option<RouteFault>,
) -> Option<Unusable> {
    let routers = routers(&world.rollout);
    if routers.is_empty() {
        return None; // Most Rollouts have none: nothing is made ready for looking.
    }
    let seen = seen(world);
    let fault = routers.iter().find_map(|router| look(&**router, &seen));
    fault.map(|fault| Unusable::Invalid(fault.to_string()))
}
