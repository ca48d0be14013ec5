//! Who splits the traffic, and which writes bring a wanted split about?
//!
//! Routers are pure: a [`Goal`] and the routing objects as they are give the writes that are
//! missing, in order. No writes means that the goal is reached.

mod alb;
mod ingress;
mod nginx;
#[cfg(test)]
mod tests;
mod view;

use std::collections::BTreeMap;
use std::sync::Arc;

use gradus_api::rollout::canary::{SetHeaderRoute, SetMirrorRoute};
use gradus_api::traffic::ManagedRoute;
use serde_json::Value;

use crate::ask::WeightsOf;
use crate::decision::ObjectRef;
use crate::world::{Known, RolloutView, Route, Unusable, World};
pub use alb::release::{managed_in, managers, released};
pub use view::RouteView;

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
    /// Its part.
    pub weight: i32,
}

impl Goal<'_> {
    /// The stable revision's part.
    pub fn rest(&self) -> i32 {
        let additional: i32 = self.additional.iter().map(|one| one.weight).sum();
        (self.max_weight - self.weight - additional).max(0)
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
}

/// Why a router cannot do what is wanted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// An object it needs is gone.
    #[error(
        "error retrieving {field} `{name}` from cache: ingress.networking.k8s.io {name:?} not found"
    )]
    Missing {
        /// The field that names it.
        field: &'static str,
        /// Its name.
        name: String,
    },
    /// The object does not lead to the Service whose traffic is split.
    #[error("{0}")]
    NoSuchBackend(String),
    /// An object of the name ours would have belongs to somebody else.
    #[error("canary ingress `{0}` controlled by different object")]
    Foreign(String),
    /// The configuration cannot be carried out.
    #[error("{0}")]
    Unusable(String),
}

/// One way to split traffic. Each is a file of its own.
pub trait Router {
    /// Every object it looks at or writes.
    fn reads(&self) -> Vec<ObjectRef>;

    /// What is wrong with its configuration, as a field error.
    fn misconfigured(&self) -> Option<String>;

    /// The first object the user names that is not there, as a field error.
    fn missing(&self, seen: &RoutingObjects) -> Option<String>;

    /// What is wrong with those that are there, as a field error.
    fn unfit(&self, seen: &RoutingObjects) -> Option<String>;

    /// The first of all these.
    fn fault(&self, seen: &RoutingObjects) -> Option<String> {
        let missing = || self.missing(seen);
        self.misconfigured().or_else(missing).or_else(|| self.unfit(seen))
    }

    /// The new revision's part as the objects stand, whoever wrote it.
    fn carried(&self, sides: &Sides<'_>, seen: &RoutingObjects) -> i32;

    /// What must be asked to know that the goal is in force; nothing where writing it is enough.
    fn asks(&self, _goal: &Goal<'_>) -> Option<WeightsOf> {
        None
    }

    /// The writes that are missing, in order; none when the goal is reached.
    fn plan(&self, goal: &Goal<'_>, seen: &RoutingObjects) -> Result<Vec<RouteWrite>, RouteError>;
}

/// The routers of a Rollout, in the order in which they are served.
pub fn routers(rollout: &RolloutView) -> Vec<Box<dyn Router + '_>> {
    let canary = rollout.spec.fields.strategy.canary.as_ref();
    let Some(routing) = canary.and_then(|canary| canary.traffic_routing.as_deref()) else {
        return Vec::new();
    };
    let mut found: Vec<Box<dyn Router + '_>> = Vec::new();
    if let Some(config) = &routing.nginx {
        found.push(Box::new(nginx::Nginx { rollout, config }));
    }
    if let Some(config) = &routing.alb {
        found.push(Box::new(alb::Alb { rollout, config }));
    }
    found
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
    routers.iter().find_map(|router| router.misconfigured()).map(Unusable::Invalid)
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
    look: impl Fn(&dyn Router, &RoutingObjects) -> Option<String>,
) -> Option<Unusable> {
    let routers = routers(&world.rollout);
    if routers.is_empty() {
        return None; // Most Rollouts have none: nothing is made ready for looking.
    }
    let seen = seen(world);
    routers.iter().find_map(|router| look(&**router, &seen)).map(Unusable::Invalid)
}
