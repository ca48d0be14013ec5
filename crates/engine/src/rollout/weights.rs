//! How should the traffic be split now, may it be, and what does the status say about it?

#[cfg(test)]
mod tests;

use std::fmt::Arguments;
use std::ops::ControlFlow;
use std::sync::Arc;

use gradus_api::names::{condition, event, pause, value};
use gradus_api::rollout::RolloutStatus;
use gradus_api::rollout::status::{TrafficWeights, WeightDestination};

use super::conditions::{self, Statement};
use super::draft::Draft;
use super::objects::{Edit, Objects};
use super::plan::{Plan, Proposal};
use super::replica_sets::{Roles, find_stable};
use super::scale::pods_for;
use super::step::{self, Missing};
use super::step_routes::StepRoutes;
use super::told::{self, Told};
use super::{canary, experiments, plugin, routed, runs, services, subsets, verify};
use crate::decision::{Change, EventKind};
use crate::kinds;
use crate::traffic::{
    self, Backends, Destination, Goal, RouteFault, RouteOp, RouteView, RouteWrite, Sides,
    TrafficSide,
};

/// Brings the routers to the wanted split. Breaks where one cannot be told what to do; the status
/// then says why.
pub(super) fn steer<'w>(draft: Draft<'w>, roles: Roles) -> ControlFlow<Draft<'w>, Draft<'w>> {
    if !routed::is_routed(draft.objects.spec()) {
        return ControlFlow::Continue(draft.then(unheld));
    }
    let Some(stable) = roles.stable else { return ControlFlow::Continue(draft) };
    let aim = aim(&draft.objects, roles);
    let draft = draft.then(|objects| match objects.is_aborted() && aim.weight == 0 {
        // Nobody is sent to the new revision any more; the Service follows, whatever stable has.
        true => {
            let name = &objects.canary().canary_service;
            services::switch(objects, name, &objects.sets[stable].hash)
        }
        false => Proposal::default(),
    });
    let routers = traffic::routers(draft.objects.rollout());
    if routers.is_empty() {
        return ControlFlow::Continue(draft.then(unheld).then(unrecorded));
    }
    if short_of(&draft.objects, roles, &aim).is_some() {
        return ControlFlow::Continue(draft.then(unheld));
    }
    let stable_hash = Arc::clone(&draft.objects.sets[stable].hash);
    let goal = goal(&draft.objects, roles, &aim, &stable_hash);
    let mut draft = draft;
    for router in &routers {
        let rollout = draft.objects.rollout();
        match traffic::planned(&**router, rollout, &goal, &draft.objects.routes) {
            Ok(writes) => {
                draft = writes
                    .into_iter()
                    .fold(draft, |draft, one| draft.then(|objects| write(objects, one)));
            }
            Err(fault) => {
                return ControlFlow::Break(draft.then(|objects| stuck(objects, fault)));
            }
        }
    }
    let (recorded, status) = record(&draft.objects, &goal);
    let (told, state) = told::apply(&draft.objects, &draft.plan, &goal, &status);
    let refused = match state {
        Told::All => None,
        Told::Waits(asked) => Some((asked, None)),
        Told::Refused(asked, why) => Some((asked, Some(why))),
    };
    if let Some((asked, why)) = refused {
        let held = untold(&draft.objects, status, why);
        return ControlFlow::Break(draft.with(recorded.and(told).and(asked).and(held)));
    }
    let recorded = recorded.and(told);
    let verified = verify::apply(&draft.objects, &draft.plan, roles, &goal, status);
    let draft = draft.with(recorded.and(verified.proposal));
    match verified.is_awaited {
        true => ControlFlow::Break(draft),
        false => ControlFlow::Continue(draft),
    }
}

/// A plugin does not know of the split yet: it is noted as not in force, and why it could not be told.
/// What was noted before stays while nothing else is wanted.
fn untold(objects: &Objects<'_>, status: RolloutStatus, why: Option<String>) -> Proposal {
    let mut status = status;
    let known = objects.status.canary.weights.clone();
    let bare = |weights: &TrafficWeights| TrafficWeights { verified: None, ..weights.clone() };
    let is_news = known.as_deref().map(bare) != status.canary.weights.as_deref().map(bare);
    if let Some(why) = why {
        let held = verify::hold(objects, &mut status, event::TRAFFIC_ROUTING_ERROR, why);
        set_unverified(&mut status);
        return held.note(status);
    }
    if !is_news {
        return Proposal::default();
    }
    unhold(&mut status);
    set_unverified(&mut status);
    Proposal::default().note(status)
}

fn set_unverified(status: &mut RolloutStatus) {
    if let Some(weights) = &mut status.canary.weights {
        weights.verified = Some(false);
    }
}

/// Where the traffic should go, and to whom.
struct Aim {
    weight: i32,
    canary_hash: Arc<str>,
    /// The revisions behind destinations of their own, where a router has such: the canary's, stable's.
    subsets: (Arc<str>, Arc<str>),
    /// What goes to the Experiment of the current step.
    additional: Vec<Destination>,
    /// May the steps' own routes be there?
    has_routes: bool,
}

fn aim(objects: &Objects<'_>, roles: Roles) -> Aim {
    let aim = by_state(objects, roles);
    let canary = subsets::hash(objects, roles, aim.weight, &aim.canary_hash);
    let stable = subsets::of_stable(objects, roles, aim.weight);
    Aim { subsets: (canary, stable), ..aim }
}

fn by_state(objects: &Objects<'_>, roles: Roles) -> Aim {
    let (new, carried) = (&objects.sets[roles.new], carried(objects).unwrap_or(0));
    let plain = |weight: i32| Aim {
        weight,
        canary_hash: Arc::clone(&new.hash),
        subsets: (Arc::clone(&new.hash), Arc::default()),
        additional: Vec::new(),
        has_routes: false,
    };
    if let Some(former) = rolling_back(objects, roles) {
        let is_empty =
            find_stable(&former, &objects.sets).is_none_or(|at| objects.sets[at].available() == 0);
        let weight = if is_empty { on_the_way_back(objects, roles, is_empty) } else { carried };
        return Aim { canary_hash: former.as_str().into(), ..plain(weight) };
    }
    if objects.is_promoted() {
        return plain(0);
    }
    if objects.is_aborted() {
        return plain(on_the_way_back(objects, roles, is_left_empty(objects, roles)));
    }
    let additional = experiments::destinations(objects);
    if new.available() == 0 {
        return Aim { additional, ..plain(0) };
    }
    let is_there = behind(objects, TrafficSide::Canary) == *new.hash;
    if objects.promotes_fully() {
        // It follows the pods, but what they were enough for by a threshold stays.
        let follows = objects.canary().dynamic_stable_scale;
        let wanted = match carried_by(objects, roles.new) {
            by_pods if follows && is_enough_for(objects, roles, roles.new, carried) => {
                by_pods.max(carried)
            }
            by_pods if follows => by_pods,
            _ => carried,
        };
        let weight = if is_there { wanted } else { wanted.min(carried) };
        return Aim { canary_hash: subsets::led_to(objects, roles, weight), ..plain(weight) };
    }
    let weight = by_steps(objects, roles, carried);
    Aim {
        weight: if is_there { weight } else { weight.min(carried) },
        additional,
        has_routes: is_there,
        ..plain(0)
    }
}

/// The weight the steps ask for: the current one once the pods are there, until then no more than
/// the one before. It rises only onto enough pods, and never while a verdict is missing.
fn by_steps(objects: &Objects<'_>, roles: Roles, carried: i32) -> i32 {
    if objects.steps().is_empty() {
        return 0;
    }
    let current = canary::set_weight(objects);
    if step::missing_counts(objects, roles).is_none() {
        return if is_inconclusive(objects) { current.min(carried) } else { current };
    }
    if routed::sizes(objects, roles).new == 0 {
        return 0;
    }
    let index = objects.current_step().map_or(objects.steps().len(), |(index, _)| index);
    let before =
        objects.steps()[..index].iter().rev().find_map(|step| step.set_weight).unwrap_or(0);
    // What the new revision has the pods for stays with it: a resize that nobody has observed yet, more
    // replicas, or a stable pod that is missing, is no reason to take it back.
    let is_enough = is_enough_for(objects, roles, roles.new, current.min(carried));
    let kept = if is_enough || step::has_new_pods(objects, roles) {
        current
    } else {
        kept_for(objects, roles, current)
    };
    let wanted = before.min(current).max(kept.min(carried));
    let may_rise = !is_inconclusive(objects) && is_enough_for(objects, roles, roles.new, wanted);
    if may_rise { wanted } else { wanted.min(carried) }
}

/// What stays with the new revision although less is wanted: a stable one that gives way is only as
/// large as this weight wants it, and cannot take back more.
fn kept_for(objects: &Objects<'_>, roles: Roles, weight: i32) -> i32 {
    let stable = roles.stable.filter(|_| objects.canary().dynamic_stable_scale);
    let beyond = |at: usize| objects.canary().max_weight() - carried_by(objects, at);
    stable.map_or(0, beyond).min(weight)
}

/// Does a verdict stand against the new revision, or does a person have to decide?
fn is_inconclusive(objects: &Objects<'_>) -> bool {
    [pause::INCONCLUSIVE_ANALYSIS_RUN, pause::INCONCLUSIVE_EXPERIMENT]
        .iter()
        .any(|reason| objects.status.pause_condition(reason).is_some())
        || runs::is_condemned(objects)
        || experiments::is_condemned(objects)
}

/// Has the revision that an abort takes the traffic from no pods? It is not the new one while the
/// canary side still leads to the one before.
fn is_left_empty(objects: &Objects<'_>, roles: Roles) -> bool {
    let selects = behind(objects, TrafficSide::Canary);
    let left = find_stable(&selects, &objects.sets).filter(|at| Some(*at) != roles.stable);
    objects.sets[left.unwrap_or(roles.new)].available() == 0
}

/// On the way back the weight falls to the least that stable cannot carry yet; at once to none where
/// the revision that is left has no pods. It never rises again.
fn on_the_way_back(objects: &Objects<'_>, roles: Roles, is_empty: bool) -> i32 {
    let carried = carried(objects).unwrap_or(0);
    let Some(stable) = roles.stable else { return carried };
    if is_empty && objects.sets[stable].available() > 0 {
        return 0;
    }
    (objects.canary().max_weight() - carried_by(objects, stable)).min(carried)
}

/// The most weight that the available pods of a ReplicaSet can carry.
fn carried_by(objects: &Objects<'_>, at: usize) -> i32 {
    let (replicas, max) = (objects.replicas(), objects.canary().max_weight());
    if replicas == 0 {
        return max;
    }
    let share = i64::from(max) * i64::from(objects.sets[at].available()) / i64::from(replicas);
    i32::try_from(share).unwrap_or(max).min(max)
}

/// Back on the stable revision while it has too few pods: the hash of the revision that keeps its
/// traffic meanwhile.
pub(super) fn rolling_back(objects: &Objects<'_>, roles: Roles) -> Option<String> {
    let new = &objects.sets[roles.new];
    let weights = objects.status.canary.weights.as_ref()?;
    let former = &weights.canary.pod_template_hash;
    let is_back = routed::is_routed(objects.spec())
        && objects.canary().dynamic_stable_scale
        && objects.is_promoted()
        && **former != *new.hash
        && new.available() < objects.replicas();
    is_back.then(|| former.clone())
}

/// What stable lacks to carry the rest. On the way back there is no such question: the weight is
/// already cut to what stable can carry.
fn short_of(objects: &Objects<'_>, roles: Roles, aim: &Aim) -> Option<Missing> {
    let stable = roles.stable?;
    if objects.is_aborted() {
        return None;
    }
    let max = objects.canary().max_weight();
    let rest = i64::from(max - aim.weight) * i64::from(objects.replicas()) / i64::from(max);
    // Whoever is sent there finds a pod, however few there are in all.
    let least = i32::from(aim.weight < max && objects.replicas() > 0);
    let wanted = i32::try_from(rest).unwrap_or(i32::MAX).max(least);
    let lacks = objects.sets[stable].available() < wanted
        && !step::is_by_threshold(objects, stable, wanted);
    // Traffic that returns must arrive at stable, not at what its Service still selects.
    let selects = objects.service(backends(objects).stable).map_or("", |it| it.hash_text());
    let is_elsewhere = !selects.is_empty() && *selects != *objects.sets[stable].hash;
    let falls = carried(objects).is_some_and(|carried| aim.weight < carried);
    (lacks || is_elsewhere && falls).then_some(Missing::Available { at: stable, wanted })
}

/// What keeps the traffic from being split as wanted, if anything.
pub(super) fn missing(objects: &Objects<'_>, roles: Roles) -> Option<Missing> {
    if !routed::is_routed(objects.spec()) {
        return None;
    }
    short_of(objects, roles, &aim(objects, roles))
}

/// Are all routers where the steps want them, the steps' own routes included?
pub(super) fn is_reached(objects: &Objects<'_>, roles: Roles) -> bool {
    // Without a stable side there is no choice, and without pods to come nobody to be led to: a route
    // of the steps comes with the canary's first pod.
    let Some(stable) = roles.stable.filter(|_| routed::sizes(objects, roles).new > 0) else {
        return true;
    };
    let aim = aim(objects, roles);
    if !aim.has_routes || short_of(objects, roles, &aim).is_some() {
        return false;
    }
    let hash = Arc::clone(&objects.sets[stable].hash);
    let goal = goal(objects, roles, &aim, &hash);
    // The same question that leads to the writes: what is reached has none left.
    let is_there = |router: &dyn traffic::Router| {
        let writes = traffic::planned(router, objects.rollout(), &goal, &objects.routes);
        writes.is_ok_and(|writes| writes.is_empty())
    };
    traffic::routers(objects.rollout()).iter().all(|router| is_there(&**router))
        && told::is_done(objects, &goal)
}

fn goal<'a>(objects: &Objects<'a>, roles: Roles, aim: &'a Aim, stable_hash: &'a str) -> Goal<'a> {
    let strategy = objects.canary();
    let done = objects.current_step().map_or(objects.steps().len(), |(index, _)| index + 1);
    let steps = if aim.has_routes { &objects.steps()[..done] } else { &[] };
    let StepRoutes { headers, mirrors } = StepRoutes::of(steps);
    Goal {
        weight: aim.weight,
        max_weight: strategy.max_weight(),
        canary_hash: &aim.canary_hash,
        subset_hash: &aim.subsets.0,
        stable_subset_hash: &aim.subsets.1,
        stable_hash,
        sides: sides(objects),
        additional: &aim.additional,
        header_routes: headers,
        mirror_routes: mirrors,
        route_steps: aim.has_routes.then_some(steps),
        managed_routes: strategy.traffic_routing.as_ref().map_or(&[], |it| &it.managed_routes),
        canary_empty: objects.sets[roles.new].available() == 0,
    }
}

/// The Services of both sides, with the roles that ping and pong have now.
fn sides<'w>(objects: &Objects<'w>) -> Sides<'w> {
    let strategy = objects.canary();
    let ping_pong = strategy.ping_pong.as_ref().map(|pair| {
        let (ping, pong) = (pair.ping_service.as_str(), pair.pong_service.as_str());
        match objects.status.canary.stable_ping_pong == value::PING {
            true => Backends { stable: ping, canary: pong },
            false => Backends { stable: pong, canary: ping },
        }
    });
    let fixed = Backends { stable: &strategy.stable_service, canary: &strategy.canary_service };
    Sides { fixed, ping_pong }
}

/// The Services that carry the traffic.
pub(super) fn backends<'w>(objects: &Objects<'w>) -> Backends<'w> {
    let sides = sides(objects);
    sides.ping_pong.unwrap_or(sides.fixed)
}

/// The weight that the canary side carries as the routing objects stand; `None` where no router is
/// named, so that nobody can tell.
pub(super) fn carried(objects: &Objects<'_>) -> Option<i32> {
    let (routers, sides) = (traffic::routers(objects.rollout()), sides(objects));
    let weights = routers.iter().map(|router| router.carried(&sides, &objects.routes));
    weights.max().map(|weight| weight.clamp(0, objects.canary().max_weight()))
}

/// The weight that goes to a Service as the routing objects stand, whichever side it is on.
fn carried_by_service(objects: &Objects<'_>, name: &str) -> i32 {
    let (routers, sides) = (traffic::routers(objects.rollout()), sides(objects));
    let splits = routers.iter().flat_map(|router| router.splits(&sides, &objects.routes));
    let most = splits.map(|split| split.service(name)).max().unwrap_or(0);
    most.clamp(0, objects.canary().max_weight())
}

/// The revision that a side leads to: as the objects of a router say, or as its Service selects.
fn behind(objects: &Objects<'_>, side: TrafficSide) -> String {
    by_router(objects, side).unwrap_or_else(|| {
        let Backends { stable, canary } = backends(objects);
        let name = if side == TrafficSide::Canary { canary } else { stable };
        objects.service(name).map_or_else(String::new, |service| service.hash_text().to_owned())
    })
}

/// The revision that a side leads to, where the objects of a router say it.
pub(super) fn by_router(objects: &Objects<'_>, side: TrafficSide) -> Option<String> {
    let routers = traffic::routers(objects.rollout());
    routers.iter().find_map(|router| router.revision(side, &objects.routes))
}

/// The weight that leads to a revision.
pub(super) fn share(objects: &Objects<'_>, hash: &str) -> i32 {
    let Some(carried) = carried(objects) else { return 0 };
    let leads_here = |side: TrafficSide| behind(objects, side) == hash;
    let canary = if leads_here(TrafficSide::Canary) { carried } else { 0 };
    let rest = objects.canary().max_weight() - carried;
    let stable = if leads_here(TrafficSide::Stable) { rest } else { 0 };
    canary + stable
}

/// May a Service leave its revision for this one? Not while that has too few pods for the traffic
/// that comes along, unless the revision that is left has none.
pub(super) fn may_move(objects: &Objects<'_>, roles: Roles, name: &str, to: usize) -> bool {
    let hash = &objects.sets[to].hash;
    let from = objects.service(name).map_or("", |service| service.hash_text());
    let left = find_stable(from, &objects.sets).map_or(0, |at| objects.sets[at].available());
    if !routed::is_routed(objects.spec()) || left == 0 {
        return true;
    }
    // Where no router is named somebody else sends what the steps say, or everything to stable.
    let max = objects.canary().max_weight();
    let (to_canary, to_stable) = match carried(objects) {
        Some(carried) => (carried, max - carried),
        None if objects.is_promoted() => (0, max),
        None => (canary::set_weight(objects), max),
    };
    let (sides, fixed) = (backends(objects), sides(objects).fixed);
    let brings = match name {
        name if name == sides.canary && is_led_by_routers(objects, TrafficSide::Canary) => 0,
        name if name == sides.stable && is_led_by_routers(objects, TrafficSide::Stable) => 0,
        name if name == sides.canary => to_canary,
        name if name == sides.stable => to_stable,
        // Until a router is told of two Services that take turns, the others carry the traffic.
        name if [fixed.canary, fixed.stable].contains(&name) => carried_by_service(objects, name),
        _ => 0,
    };
    brings == 0 || is_enough_for(objects, roles, to, brings + share(objects, hash))
}

/// Do the objects of every router say which revision a side leads to? Then its Service brings nothing.
fn is_led_by_routers(objects: &Objects<'_>, side: TrafficSide) -> bool {
    let routers = traffic::routers(objects.rollout());
    !routers.is_empty()
        && routers.iter().all(|router| router.revision(side, &objects.routes).is_some())
}

/// Has a ReplicaSet the pods for this weight?
pub(super) fn is_enough_for(objects: &Objects<'_>, roles: Roles, at: usize, weight: i32) -> bool {
    let (replicas, max) = (objects.replicas(), objects.canary().max_weight());
    let wanted = if Some(at) == roles.stable {
        let floor = i64::from(weight) * i64::from(replicas) / i64::from(max);
        i32::try_from(floor).unwrap_or(i32::MAX)
    } else {
        pods_for(replicas, weight, max)
    };
    objects.sets[at].available() >= wanted || step::is_by_threshold(objects, at, wanted)
}

/// Plans one write of a routing object.
fn write(objects: &Objects<'_>, write: RouteWrite) -> Proposal {
    let RouteWrite { target, op, told } = write;
    let none = Proposal::default();
    let written = match (op, objects.routes.get(&target)) {
        (RouteOp::Create(manifest), _) => {
            let view = RouteView(Arc::new(manifest.clone()));
            none.write(Change::create(target.clone(), manifest), Edit::Route(Some(view)))
        }
        (RouteOp::Merge(patch), Some(known)) => {
            let view = known.patched(&patch);
            none.patch(target.clone(), patch, known.version(), Edit::Route(Some(view)))
        }
        (RouteOp::Delete, Some(known)) => {
            none.write(Change::delete(target.clone(), known.uid()), Edit::Route(None))
        }
        // Nothing is there to be changed.
        (RouteOp::Merge(_) | RouteOp::Delete, None) => return none,
    };
    told.into_iter().fold(written, |written, (reason, message)| {
        written.tell_of(target.clone(), reason, message)
    })
}

/// Does this decision already send traffic elsewhere? Then nothing shrinks before that is stored.
pub(super) fn is_moving(plan: &Plan) -> bool {
    is_routing(plan) || plan.changes.iter().any(|change| change.target.kind == kinds::SERVICE)
}

/// Does this decision already write a routing object?
pub(super) fn is_routing(plan: &Plan) -> bool {
    plan.changes.iter().any(|change| traffic::routes(&change.target.kind))
}

/// Tells of the split if it is another one, and the status that notes it.
fn record(objects: &Objects<'_>, goal: &Goal<'_>) -> (Proposal, RolloutStatus) {
    let strategy = objects.canary();
    let part = |weight: i32, service: &str, hash: &str| WeightDestination {
        weight,
        service_name: service.to_owned(),
        pod_template_hash: hash.to_owned(),
    };
    let weights = TrafficWeights {
        canary: part(goal.weight, &strategy.canary_service, goal.canary_hash),
        stable: part(goal.rest(), &strategy.stable_service, goal.stable_hash),
        additional: goal
            .additional
            .iter()
            .map(|one| part(one.weight, &one.service, &one.hash))
            .collect(),
        verified: None,
    };
    let mut status = RolloutStatus::clone(&objects.status);
    let known = objects.status.canary.weights.as_deref();
    let is_told =
        known.is_none_or(|known| TrafficWeights { verified: None, ..known.clone() } != weights);
    let text = told(known, &weights);
    status.canary.weights = Some(Box::new(weights));
    let told = match is_told {
        true => Proposal::default().tell(EventKind::Normal, event::TRAFFIC_WEIGHT_UPDATED, text),
        false => Proposal::default(),
    };
    (told, status)
}

/// What has changed, in the words of the Event; where only revisions did, there are none.
fn told(known: Option<&TrafficWeights>, weights: &TrafficWeights) -> String {
    let weight = weights.canary.weight;
    let mut parts = match known {
        None => vec![format!("to {weight}")],
        Some(known) if known.canary.weight != weight => {
            vec![format!("from {} to {weight}", known.canary.weight)]
        }
        Some(_) => Vec::new(),
    };
    if known.is_some_and(|known| known.additional != weights.additional) {
        let each = weights.additional.iter().map(|one| {
            format!("{{{} {} {}}}", one.weight, one.service_name, one.pod_template_hash)
        });
        parts.push(format!("additional: [{}]", each.collect::<Vec<_>>().join(" ")));
    }
    format!("Traffic weight updated {}", parts.join(", "))
}

/// A router cannot be told what to do: it is said once, in a condition and an Event.
fn stuck(objects: &Objects<'_>, fault: RouteFault) -> Proposal {
    let RouteFault { message, reason, .. } = fault;
    let known = objects.status.condition(condition::HELD);
    if known.is_some_and(|known| known.message == message) {
        return Proposal::default();
    }
    let mut status = RolloutStatus::clone(&objects.status);
    conditions::refresh(&mut status.conditions, objects.now, error(format_args!("{message}")));
    let reasons = reason.into_iter().chain([event::TRAFFIC_ROUTING_ERROR]);
    reasons.fold(Proposal::default().note(status), |told, reason| {
        told.tell(EventKind::Warning, reason, message.clone())
    })
}

/// Without a router nobody knows how the traffic is split, and the status does not say.
fn unrecorded(objects: &Objects<'_>) -> Proposal {
    if objects.status.canary.weights.is_none() {
        return Proposal::default();
    }
    let mut status = RolloutStatus::clone(&objects.status);
    status.canary.weights = None;
    Proposal::default().note(status)
}

/// No router holds anything up any more.
fn unheld(objects: &Objects<'_>) -> Proposal {
    let held = objects.status.condition(condition::HELD);
    if held.is_none_or(|held| plugin::is_reason(&held.reason)) {
        return Proposal::default();
    }
    let mut status = RolloutStatus::clone(&objects.status);
    unhold(&mut status);
    Proposal::default().note(status)
}

/// Takes away the condition that something holds it up.
pub(super) fn unhold(status: &mut RolloutStatus) {
    let held = status.condition(condition::HELD);
    if held.is_some_and(|held| !plugin::is_reason(&held.reason)) {
        conditions::remove(&mut status.conditions, condition::HELD);
    }
}

/// The condition that a router is not where it should be.
pub(super) fn error(message: Arguments<'_>) -> Statement<'_> {
    Statement::held(event::TRAFFIC_ROUTING_ERROR, message)
}
