//! What should happen next to one Experiment: which ReplicaSets, Services and AnalysisRuns it needs,
//! how they stand, and when it ends. Experiments of Rollouts and of nobody are the same here.

mod analyses;
mod arguments;
mod phase;
mod pods;
mod service;
mod validate;
mod view;

use std::collections::BTreeMap;
use std::sync::Arc;

use gradus_api::experiment::ExperimentStatus;
use gradus_api::names::{condition, condition_status};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::ask::{Answer, Ask, AskId, Class, Failure, Recall};
use crate::decision::{
    After, Change, Decision, Event, EventKind, Frees, Guard, Kind, ObjectRef, Urgency, Why,
};
use crate::rollout::conditions::{self, Statement};
use crate::world::{Known, ReplicaSetView, RunPhase, RunView, Templates};
use crate::{Engine, Head, StatusPlace, kinds};
pub use view::{ExperimentService, ExperimentView};

/// The engine of Experiments.
pub struct Experiments;

/// Everything one decision about an Experiment may look at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExperimentWorld {
    /// The Experiment.
    pub experiment: Arc<ExperimentView>,
    /// The ReplicaSets it controls, by name.
    pub replica_sets: Known<Vec<Arc<ReplicaSetView>>>,
    /// The Services it controls, by name.
    pub services: Known<Vec<Arc<ExperimentService>>>,
    /// The AnalysisRuns it controls, by name.
    pub runs: Known<Vec<Arc<RunView>>>,
    /// The templates of its analyses, and those that these name.
    #[serde(default)]
    pub templates: Templates,
    /// What the outside has answered so far.
    #[serde(default)]
    pub answers: BTreeMap<AskId, Answer>,
    /// What the shell remembers of this Experiment.
    #[serde(default)]
    pub recall: Recall<()>,
}

impl Engine for Experiments {
    type World = ExperimentWorld;
    type Status = ExperimentStatus;
    type Memo = ();

    const KIND: Kind = kinds::EXPERIMENT;
    const STATUS: StatusPlace = StatusPlace::Main;

    fn head(world: &ExperimentWorld) -> Head {
        let experiment = &world.experiment;
        Head { object: experiment.reference(), uid: experiment.uid, version: experiment.version }
    }

    fn decide(world: &ExperimentWorld, now: Timestamp) -> Decision<ExperimentStatus> {
        decide(world, now)
    }

    fn stored_status(world: &ExperimentWorld) -> &ExperimentStatus {
        &world.experiment.status
    }
}

fn decide(world: &ExperimentWorld, now: Timestamp) -> Decision<ExperimentStatus> {
    let experiment = &world.experiment;
    if experiment.is_deleting {
        return Decision::default();
    }
    if let Some(message) = validate::problem(experiment) {
        return refused(experiment, message, now);
    }
    let owned = match Owned::of(world) {
        Ok(owned) => owned,
        Err(why) => return Decision { why: vec![*why], ..Decision::default() },
    };
    let is_terminating = phase::is_terminating(experiment);
    let pass = Pass { world, experiment, owned, now, is_terminating };
    let mut plan = Plan::default();
    let mut status = ExperimentStatus::clone(&experiment.status);
    conditions::remove(&mut status.conditions, condition::INVALID_SPEC);
    status.template_statuses = Vec::new();
    for template in &experiment.spec.templates {
        let (next, planned) = pods::next(&pass, template);
        status.template_statuses.push(next);
        plan = plan.and(planned);
    }
    status.analysis_runs = Vec::new();
    for analysis in &experiment.spec.analyses {
        let (next, planned) = analyses::next(&pass, analysis);
        status.analysis_runs.push(next);
        plan = plan.and(planned);
    }
    let (status, told) = phase::settle(&pass, status);
    plan.and(told).decision(&experiment.status, status)
}

/// A spec that cannot be carried out: the status says so, everything else stays as it is.
fn refused(
    experiment: &ExperimentView,
    message: String,
    now: Timestamp,
) -> Decision<ExperimentStatus> {
    let stored = &experiment.status;
    let is_told = |known: &gradus_api::rollout::status::Condition| {
        known.r#type == condition::INVALID_SPEC && known.message == message
    };
    let status = (!stored.conditions.iter().any(is_told)).then(|| {
        let mut status = ExperimentStatus::clone(stored);
        let statement = Statement {
            r#type: condition::INVALID_SPEC,
            status: condition_status::TRUE,
            reason: condition::INVALID_SPEC,
            message: format_args!("{message}"),
        };
        conditions::refresh(&mut status.conditions, now, statement);
        status
    });
    let why = experiment.why(Guard::InvalidSpec { message: message.clone() }, "spec", Frees::Edit);
    Decision { status, why: vec![why], ..Decision::default() }
}

/// What one decision looks at.
#[derive(Clone, Copy)]
struct Pass<'w> {
    world: &'w ExperimentWorld,
    experiment: &'w ExperimentView,
    owned: Owned<'w>,
    now: Timestamp,
    /// Is it to end, or has it ended, as far as that is stored?
    is_terminating: bool,
}

/// What the Experiment controls.
#[derive(Clone, Copy)]
struct Owned<'w> {
    sets: &'w [Arc<ReplicaSetView>],
    services: &'w [Arc<ExperimentService>],
    runs: &'w [Arc<RunView>],
}

impl<'w> Owned<'w> {
    /// All of it; else why it is not known.
    fn of(world: &'w ExperimentWorld) -> Result<Self, Box<Why>> {
        fn list<'w, T>(
            experiment: &ExperimentView,
            known: &'w Known<Vec<T>>,
        ) -> Result<&'w [T], Box<Why>> {
            match known {
                Known::Present(all) => Ok(all),
                Known::Absent => Ok(&[]),
                Known::Unknown(message) => {
                    let guard = Guard::Unreadable { message: message.clone() };
                    Err(Box::new(experiment.why(guard, "spec", Frees::Cluster)))
                }
            }
        }
        let experiment = &world.experiment;
        Ok(Owned {
            sets: list(experiment, &world.replica_sets)?,
            services: list(experiment, &world.services)?,
            runs: list(experiment, &world.runs)?,
        })
    }
}

impl Pass<'_> {
    /// What became of a change the last time it was tried.
    fn tried(&self, change: &Change) -> Tried<'_> {
        match self.world.recall.failed.get(&change.id) {
            None => Tried::Never,
            Some(failure) if failure.class == Class::Denied => Tried::Denied(failure),
            Some(failure) if self.now < failure.retry_at => Tried::Held(failure),
            Some(failure) => Tried::Due(failure),
        }
    }

    /// Is the time over that the Experiment runs for?
    fn has_passed_duration(&self) -> bool {
        self.ends_at().is_some_and(|end| end <= self.now)
    }

    /// When the time is over that it runs for, if it runs and has such a time.
    fn ends_at(&self) -> Option<Timestamp> {
        let begun = self.experiment.status.available_at?;
        Some(later(begun.timestamp(), self.experiment.duration()?))
    }
}

/// What became of a change the last time it was tried.
enum Tried<'w> {
    /// It was not, or it was done.
    Never,
    /// It failed, and its time to be tried again has come.
    Due(&'w Failure),
    /// It failed, and its time to be tried again has not come.
    Held(&'w Failure),
    /// It was refused for what it is: trying again is of no use.
    Denied(&'w Failure),
}

/// What one part of an Experiment wants done.
#[derive(Default)]
struct Plan {
    changes: Vec<Change>,
    events: Vec<Event>,
    asks: Vec<Ask>,
    why: Vec<Why>,
    wake_at: Option<Timestamp>,
}

impl Plan {
    /// This, and then that.
    fn and(mut self, next: Plan) -> Self {
        self.changes.extend(next.changes);
        self.events.extend(next.events);
        for ask in next.asks {
            if !self.asks.iter().any(|known| known.id == ask.id) {
                self.asks.push(ask);
            }
        }
        self.why.extend(next.why);
        self.wake_at = self.wake_at.into_iter().chain(next.wake_at).min();
        self
    }

    fn waking(self, at: Option<Timestamp>) -> Self {
        let wake_at = self.wake_at.into_iter().chain(at).min();
        Plan { wake_at, ..self }
    }

    fn change(change: Change) -> Self {
        Plan { changes: vec![change], ..Plan::default() }
    }

    fn event(event: Event) -> Self {
        Plan { events: vec![event], ..Plan::default() }
    }

    fn waits(why: Why) -> Self {
        Plan { why: vec![why], ..Plan::default() }
    }

    /// Nothing is done before this object is read.
    fn read(experiment: &ExperimentView, target: ObjectRef) -> Self {
        let guard = Guard::Unanswered { question: format!("read {target}") };
        let why = experiment.why(guard, "metadata.name", Frees::Cluster);
        Plan { asks: vec![Ask::read(target)], why: vec![why], ..Plan::default() }
    }

    /// A change that failed is put off.
    fn held(change: &Change, failure: &Failure) -> Self {
        let why = Why {
            guard: Guard::Refused { message: failure.message.clone(), times: failure.times },
            object: change.target.clone(),
            field: "spec".into(),
            since: None,
            frees: Frees::At(failure.retry_at),
        };
        Plan { why: vec![why], wake_at: Some(failure.retry_at), ..Plan::default() }
    }

    fn decision(
        self,
        stored: &ExperimentStatus,
        status: ExperimentStatus,
    ) -> Decision<ExperimentStatus> {
        let Plan { changes, events, asks, why, wake_at } = self;
        let urgency = urgency(stored, &status);
        let status = (status != *stored).then_some(status);
        Decision { changes, status, urgency, events, asks, memo: (), wake_at, why }
    }
}

/// Counts alone may wait for more of them.
fn urgency(stored: &ExperimentStatus, next: &ExperimentStatus) -> Urgency {
    let without_counts = |status: &ExperimentStatus| {
        let mut status = status.clone();
        status.conditions = Vec::new();
        for one in &mut status.template_statuses {
            one.replicas = 0;
            one.updated_replicas = 0;
            one.ready_replicas = 0;
            one.available_replicas = 0;
            one.last_transition_time = None;
        }
        status
    };
    let is_same = without_counts(stored) == without_counts(next);
    if is_same { Urgency::Within1s } else { Urgency::Now }
}

/// An Event about an object, posted with the status.
fn event(about: ObjectRef, kind: EventKind, reason: String, message: String) -> Event {
    Event { about, uid: None, kind, reason: reason.into(), message, after: After::Status }
}

/// Warning for what is bad.
fn event_kind(is_bad: bool) -> EventKind {
    if is_bad { EventKind::Warning } else { EventKind::Normal }
}

/// `WHAT 'NAME' transitioned from A -> B: MESSAGE`.
fn transition(what: &str, from: &str, to: &str, message: &str) -> String {
    match message {
        "" => format!("{what} transitioned from {from} -> {to}"),
        message => format!("{what} transitioned from {from} -> {to}: {message}"),
    }
}

/// Has something ended that has this phase or status?
fn is_completed(phase: &str) -> bool {
    RunPhase::of(phase).is_completed()
}

/// A moment after another one; the end of time where there is none.
fn later(moment: Timestamp, by: SignedDuration) -> Timestamp {
    moment.checked_add(by).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests;
