//! What should happen next to a Rollout? Validate, fold the contract's passes, say what holds it.

mod affinity;
pub mod analyses;
mod blue_green;
mod canary;
pub mod claim;
pub(crate) mod conditions;
mod delay;
mod draft;
mod duration;
mod experiments;
mod fold;
mod history;
mod lifecycle;
mod look;
mod metadata;
mod objects;
mod pass;
mod plan;
mod plugin;
mod pods;
mod probe;
mod progress;
pub mod references;
mod refused;
mod replica_sets;
mod restart;
mod rollback;
mod routed;
mod runs;
pub mod scale;
pub(crate) mod selector;
pub mod services;
mod status;
mod step;
mod step_routes;
mod subsets;
pub mod supported;
mod targets;
#[cfg(test)]
mod tests;
mod told;
mod unread;
mod urgency;
mod verify;
mod weights;
mod why;
pub mod workload;

use gradus_api::names::{condition, condition_status, event, reason};
use gradus_api::rollout::RolloutStatus;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::decision::{After, Decision, Event, EventKind, Frees, Guard, Kind, Urgency, Why};
use crate::interlock::{self, Harm};
use crate::world::{Known, RolloutView, Unusable, World};
use crate::{Engine, Head, StatusPlace, kinds};
use draft::Draft;
use objects::Objects;
pub(crate) use plugin::next_plugin_call;
pub use progress::Peak;
pub use status::phase_of;

/// What the engine recalls of a Rollout between two passes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memo {
    /// Best counts of the current attempt.
    peak: Option<Peak>,
    /// The revision that skips pause and analysis in this attempt.
    fast_track: Option<String>,
    /// What was told last of target groups.
    #[serde(default)]
    targets: Option<String>,
}

/// The engine of Rollouts.
pub struct Rollouts;

impl Engine for Rollouts {
    type World = World;
    type Status = RolloutStatus;
    type Memo = Memo;

    const KIND: Kind = kinds::ROLLOUT;
    const STATUS: StatusPlace = StatusPlace::Subresource;

    fn head(world: &World) -> Head {
        let rollout = &world.rollout;
        Head { object: rollout.reference(), uid: rollout.uid, version: rollout.version }
    }

    fn decide(world: &World, now: Timestamp) -> Decision<RolloutStatus, Memo> {
        decide(world, now)
    }

    fn check(
        world: &World,
        decision: &Decision<RolloutStatus, Memo>,
        now: Timestamp,
    ) -> Option<Harm<Decision<RolloutStatus, Memo>>> {
        interlock::check(world, decision, now)
    }

    fn stored_status(world: &World) -> &RolloutStatus {
        &world.rollout.status
    }
}

/// The decision for one Rollout. The same World and now always give the same Decision.
pub fn decide(world: &World, now: Timestamp) -> Decision<RolloutStatus, Memo> {
    let mut decision = judge(world, now);
    let is_observed = |status: &RolloutStatus| !status.observed_generation.is_empty();
    if !is_observed(&world.rollout.status) && decision.status.as_ref().is_some_and(is_observed) {
        decision.events.insert(0, greeting(&world.rollout));
    }
    decision
}

/// Told once, with the first status that is stored, whatever that says.
fn greeting(rollout: &RolloutView) -> Event {
    let message =
        format!("Rollout resource added to informer: {}/{}", rollout.namespace, rollout.name);
    Event {
        about: rollout.reference(),
        uid: None,
        kind: EventKind::Normal,
        reason: event::ROLLOUT_ADDED.into(),
        message,
        after: After::Status,
    }
}

fn judge(world: &World, now: Timestamp) -> Decision<RolloutStatus, Memo> {
    let rollout = &world.rollout;
    if rollout.deleting {
        return Decision { memo: world.recall.memo.clone(), ..Decision::default() };
    }
    let none = Vec::new();
    let sets = match &world.replica_sets {
        Known::Present(sets) => sets,
        Known::Absent => &none,
        Known::Unknown(message) => return unreadable(world, message, now),
    };
    let draft = Draft::new(world, sets, now);
    match workload::check(world) {
        Some(Unusable::Invalid(error)) => return unresolved(&draft.objects, &error),
        Some(Unusable::Unreadable(message)) => return unreadable(world, &message, now),
        None => {}
    }
    let unsupported =
        || supported::first_unsupported(&rollout.spec.fields).map(|fault| fault.to_string());
    if let Some(error) = rollout.spec.errors.first().cloned().or_else(unsupported) {
        return invalid(&draft.objects, &error);
    }
    if let Some((error, again)) = refused::template_error(world, now) {
        return Decision { wake_at: Some(again), ..invalid(&draft.objects, &error) };
    }
    match references::check(world) {
        Some(Unusable::Invalid(error)) => return invalid(&draft.objects, &error),
        Some(Unusable::Unreadable(message)) => return unreadable(world, &message, now),
        None => {}
    }
    if let Some(decision) = claim::decide(&draft) {
        return decision;
    }
    let folded = match fold::fold(draft) {
        Ok(folded) => folded,
        Err(unsettled) => return interlock::held(world, &unsettled.to_string()),
    };
    match &folded.found.broken {
        Some(error) => invalid(&Objects::new(world, sets, now), error),
        None => refused::hold(folded),
    }
}

/// What is said of a kind while the server has said nothing.
const NOT_LISTED: &str = "not listed yet";

/// Nothing is planned on what cannot be read; the stored status stays, and says so where the server
/// has said why.
fn unreadable(world: &World, message: &str, now: Timestamp) -> Decision<RolloutStatus, Memo> {
    let mut next = (*world.rollout.status).clone();
    if !is_told(&world.rollout.status, message) {
        let words = format_args!("{message}");
        let statement = conditions::Statement::held(reason::UNREADABLE, words);
        conditions::refresh(&mut next.conditions, now, statement);
    }
    let (object, field) = unread::first(world);
    let said = next.condition(condition::HELD).filter(|known| known.message == message);
    let why = Why {
        guard: Guard::Unreadable {
            message: if message.is_empty() { NOT_LISTED } else { message }.to_owned(),
        },
        object,
        field: field.into(),
        since: said.map(|known| known.last_update_time.timestamp()),
        frees: Frees::Cluster,
    };
    Decision {
        status: (!is_told(&world.rollout.status, message)).then_some(next),
        memo: world.recall.memo.clone(),
        why: vec![why],
        ..Decision::default()
    }
}

/// Does the status already say that something cannot be read, in these words?
fn is_told(status: &RolloutStatus, message: &str) -> bool {
    let known = status.condition(condition::HELD);
    message.is_empty()
        || known.is_some_and(|known| known.reason == reason::UNREADABLE && known.message == message)
}

/// The workload it refers to cannot be used. It is looked at again in a while.
fn unresolved(objects: &Objects<'_>, error: &str) -> Decision<RolloutStatus, Memo> {
    let wake_at = Some(objects.now + workload::RETRY);
    let mut decision = Decision { wake_at, ..invalid(objects, error) };
    for why in &mut decision.why {
        why.field = "spec.workloadRef".into();
    }
    decision
}

/// The spec is refused: it is said, and everything stays as it is.
fn invalid(objects: &Objects<'_>, error: &str) -> Decision<RolloutStatus, Memo> {
    let rollout = objects.rollout();
    let message = format!("The Rollout \"{}\" is invalid: {error}", rollout.name);
    let known = objects.status.condition(condition::INVALID_SPEC);
    let mut next = RolloutStatus::clone(&objects.status);
    if known.is_none_or(|known| known.message != message) {
        let statement = conditions::Statement {
            r#type: condition::INVALID_SPEC,
            status: condition_status::TRUE,
            reason: reason::INVALID_SPEC,
            message: format_args!("{message}"),
        };
        conditions::refresh(&mut next.conditions, objects.now, statement);
    }
    next.observed_generation = objects.generation_text();
    (next.phase, next.message) = status::phase_of(objects.spec(), &next);
    let since = next.condition(condition::INVALID_SPEC).map(|c| c.last_transition_time.timestamp());
    let why = Why {
        guard: Guard::InvalidSpec { message },
        object: rollout.reference(),
        field: error.split(':').next().unwrap_or("spec").to_owned().into(),
        since,
        frees: Frees::Edit,
    };
    Decision {
        status: (next != *rollout.status).then_some(next),
        urgency: Urgency::Now,
        memo: objects.memo.clone(),
        why: vec![why],
        ..Decision::default()
    }
}
