//! What everybody else must know of a router: its name, its kinds, its rights, what it cannot do.

use std::sync::Arc;

use gradus_api::rollout::{CanaryStep, RolloutSpec};
use gradus_api::traffic::TrafficRouting;
use serde_json::Value;

use super::{ROUTERS, RouteFault, RouteView, Router, WHOLE, gateway};
use crate::decision::{EventKind, Kind, ObjectRef, Op};
use crate::frame::Meta;
use crate::world::RolloutView;

/// One router, as [`ROUTERS`] names it.
pub struct RouterEntry {
    /// Where a Rollout asks for it.
    pub config: ConfigField,
    /// What the metrics call it, with its precedence where a Rollout has several; `None` where Argo
    /// Rollouts has no name for it.
    pub label: Option<(u8, &'static str)>,
    /// The kinds of its objects, and what it does to them.
    pub access: &'static [Access],
    /// Can it send requests with a header to the new revision?
    pub has_header_routes: bool,
    /// Can it send copies of requests to the new revision?
    pub has_mirror_routes: bool,
    /// Can it send a part of the traffic to the pods of an Experiment?
    pub has_experiments: bool,
    /// Can the whole of the traffic be another number than 100?
    pub has_max_weight: bool,
    /// The router of a Rollout that asks for it.
    pub of: for<'r> fn(&'r RolloutView, &'r TrafficRouting) -> Option<Box<dyn Router + 'r>>,
    /// What it leaves behind: marks on objects of users, and objects of its own.
    pub releases: &'static [Release],
    /// The Event that the contract has for a write of such an object that is refused, in the server's
    /// words.
    pub refused: fn(&ObjectRef, &Op, &str) -> Option<RefusalEvent>,
}

/// An Event about a write that is refused: its type, reason and message.
pub type RefusalEvent = (EventKind, &'static str, String);

/// No write of a router's objects has an Event of its own when it is refused.
pub(super) fn untold(_: &ObjectRef, _: &Op, _: &str) -> Option<RefusalEvent> {
    None
}

/// The Event for a write of a routing object that is refused.
pub(crate) fn refused(target: &ObjectRef, op: &Op, said: &str) -> Option<RefusalEvent> {
    ROUTERS.iter().find_map(|entry| (entry.refused)(target, op, said))
}

/// Where a Rollout asks for a router, below `spec.strategy.canary.trafficRouting`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigField {
    /// A field of its own.
    Field(&'static str),
    /// An entry of `plugins`.
    Plugin(&'static str),
}

/// What a router does to objects of a kind.
pub struct Access {
    /// The kind.
    pub kind: Kind,
    /// The verbs it needs.
    pub verbs: &'static [&'static str],
    /// The field that carries the weights.
    pub weights: &'static str,
}

/// What a router leaves on objects of a kind, and how that goes when no Rollout wants it any more.
pub struct Release {
    /// The kind of the objects, all of them in the namespace of their Rollout.
    pub kind: Kind,
    /// The Rollouts that an object says it is used by, or belongs to.
    pub managers: fn(&Meta) -> Vec<Arc<str>>,
    /// What must be done when these Rollouts let go of it.
    pub released: fn(&RouteView, &[Arc<str>]) -> Undo,
    /// The objects that this router uses for a Rollout, by the Rollout's name and the JSON of its spec.
    pub named_in: fn(&str, &Value) -> Vec<String>,
}

/// How what a router left is undone.
#[derive(Clone, Debug, PartialEq)]
pub enum Undo {
    /// This patch takes our marks off.
    Patch(Value),
    /// The object was ours alone.
    Delete,
}

impl ConfigField {
    /// The path of the configuration.
    pub fn path(self) -> String {
        match self {
            ConfigField::Field(name) => format!("{PATH}.trafficRouting.{name}"),
            ConfigField::Plugin(name) => format!("{PATH}.trafficRouting.plugins.{name}"),
        }
    }

    /// Its name, as messages have it.
    pub fn name(self) -> &'static str {
        match self {
            ConfigField::Field(name) | ConfigField::Plugin(name) => name,
        }
    }

    fn is_used(self, routing: &TrafficRouting) -> bool {
        match self {
            ConfigField::Field(name) => routing.asked_for().contains(&name),
            ConfigField::Plugin(name) => routing.plugins.contains_key(name),
        }
    }
}

/// Where the canary strategy stands.
pub(crate) const PATH: &str = "spec.strategy.canary";
/// What is said of a field that this version does not carry out.
pub(crate) const NOT_YET: &str = "Forbidden: this version of Gradus does not support it yet";

/// Is a kind one that routers work on?
pub fn routes(kind: &Kind) -> bool {
    accesses().any(|access| access.kind == *kind)
}

/// The field of a routing object that carries the weights.
pub(crate) fn weights_field(kind: &Kind) -> Option<&'static str> {
    accesses().find(|access| access.kind == *kind).map(|access| access.weights)
}

/// What every router does to objects.
pub fn accesses() -> impl Iterator<Item = &'static Access> {
    ROUTERS.iter().flat_map(|entry| entry.access)
}

/// What routers leave on objects of a kind.
pub(crate) fn releases_of(kind: Kind) -> impl Iterator<Item = &'static Release> {
    let all = ROUTERS.iter().flat_map(|entry| entry.releases);
    all.filter(move |release| release.kind == kind)
}

/// The names that stand in a list of texts, or of objects with a name.
pub(super) fn names(list: &Value) -> Vec<String> {
    let name = |one: &Value| one.as_str().or_else(|| one["name"].as_str()).map(str::to_owned);
    list.as_array().into_iter().flatten().filter_map(name).collect()
}

/// What a Rollout's spec says about its routing, read from its JSON.
pub(super) fn routing_in(spec: &Value) -> &Value {
    &spec["strategy"]["canary"]["trafficRouting"]
}

/// The traffic router of a Rollout as the metrics name it: of several the last by precedence.
pub fn metric_label(spec: &RolloutSpec) -> &'static str {
    let Some(routing) = routing_of(spec) else { return "" };
    used(routing).filter_map(|entry| entry.label).max().map_or("", |(_, name)| name)
}

/// The first router that is asked for and not there, or step that a router cannot do.
pub fn unsupported(spec: &RolloutSpec) -> Option<RouteFault> {
    let routing = routing_of(spec)?;
    let canary = spec.strategy.canary.as_ref()?;
    let steps = || canary.steps.iter().enumerate();
    let impossible =
        || used(routing).find_map(|entry| steps().find_map(|(at, step)| cannot(entry, at, step)));
    unknown(routing).or_else(|| too_fine(routing)).or_else(impossible)
}

/// The first router that knows no other whole than 100, where another one is asked for.
fn too_fine(routing: &TrafficRouting) -> Option<RouteFault> {
    routing.max_traffic_weight.filter(|max| *max != WHOLE)?;
    let name = used(routing).find(|entry| !entry.has_max_weight)?.config.name();
    let message = format!("Forbidden: router {name} cannot do another maxTrafficWeight than 100");
    Some(RouteFault::configuration(format!("{PATH}.trafficRouting.maxTrafficWeight"), message))
}

fn routing_of(spec: &RolloutSpec) -> Option<&TrafficRouting> {
    spec.strategy.canary.as_ref()?.traffic_routing.as_deref()
}

fn used(routing: &TrafficRouting) -> impl Iterator<Item = &'static RouterEntry> + '_ {
    ROUTERS.iter().copied().filter(|entry| entry.config.is_used(routing))
}

/// The first router that is asked for and not in the list.
fn unknown(routing: &TrafficRouting) -> Option<RouteFault> {
    let is_known = |config: ConfigField| ROUTERS.iter().any(|entry| entry.config == config);
    let mut fields = routing.asked_for().into_iter();
    let field = fields.find(|field| !is_known(ConfigField::Field(field)))?;
    Some(RouteFault::configuration(ConfigField::Field(field).path(), NOT_YET))
}

/// Does a Rollout's spec name plugins that split the traffic?
pub fn plugins_in(spec: &Value) -> bool {
    let plugins = routing_in(spec)["plugins"].as_object();
    plugins.is_some_and(|plugins| plugins.keys().any(|name| !is_served(name)))
}

/// Does a Rollout's spec select objects of a kind instead of naming them?
pub fn selects_in(kind: &Kind, spec: &Value) -> bool {
    gateway::selects_in(kind, spec)
}

/// Is this entry of `plugins` served without a plugin?
pub fn is_served(plugin: &str) -> bool {
    let is_it = |config: ConfigField| matches!(config, ConfigField::Plugin(name) if name == plugin);
    ROUTERS.iter().any(|entry| is_it(entry.config))
}

/// Why a router cannot do a step, if it cannot.
fn cannot(entry: &RouterEntry, at: usize, step: &CanaryStep) -> Option<RouteFault> {
    let header = step.set_header_route.is_some() && !entry.has_header_routes;
    let mirror = step.set_mirror_route.is_some() && !entry.has_mirror_routes;
    let field = match (header, mirror) {
        (true, _) => "setHeaderRoute".to_owned(),
        (_, true) => "setMirrorRoute".to_owned(),
        (false, false) => weighted_template(step).filter(|_| !entry.has_experiments)?,
    };
    let message = format!("Forbidden: router {} cannot do {field}", entry.config.name());
    Some(RouteFault::configuration(format!("{PATH}.steps[{at}].{field}"), message))
}

/// The first template of an Experiment that shall get a part of the traffic.
pub(super) fn weighted_template(step: &CanaryStep) -> Option<String> {
    let templates = &step.experiment.as_ref()?.templates;
    let at = templates.iter().position(|template| template.weight.is_some())?;
    Some(format!("experiment.templates[{at}].weight"))
}
