//! What should happen next to one AnalysisRun: which measurements are due, what their results mean,
//! and when it ends. Runs of Rollouts, of Experiments and of nobody are the same here.

mod assess;
mod measure;
mod prepare;
mod retain;
mod secrets;
mod substitute;
mod tasks;
mod told;
mod view;

use std::collections::BTreeMap;
use std::sync::Arc;

use gradus_api::analysis::AnalysisRunStatus;
use gradus_api::values::Time;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::ask::{Answer, Ask, AskId, Recall};
use crate::decision::{
    After, Change, Decision, Event, EventKind, Frees, Guard, Kind, ObjectRef, Urgency, Why,
};
use crate::metrics::JobView;
use crate::world::RunPhase;
use crate::{Engine, Head, StatusPlace, kinds};
use prepare::prepare;
pub use told::{ToldMetric, told};
pub use view::AnalysisRunView;

/// The metric that a question of an AnalysisRun is about.
pub fn metric_of(id: &AskId) -> Option<&str> {
    measure::metric_of(id)
}

/// The engine of AnalysisRuns.
pub struct AnalysisRuns;

/// Everything one decision about an AnalysisRun may look at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunWorld {
    /// The run.
    pub run: Arc<AnalysisRunView>,
    /// The Jobs of the run, by name.
    #[serde(default)]
    pub jobs: BTreeMap<Arc<str>, Arc<JobView>>,
    /// What the outside has answered so far.
    #[serde(default)]
    pub answers: BTreeMap<AskId, Answer>,
    /// What the shell remembers of this run.
    #[serde(default)]
    pub recall: Recall<()>,
    /// Where its Jobs are, if not in its own namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_namespace: Option<Arc<str>>,
}

impl Engine for AnalysisRuns {
    type World = RunWorld;
    type Status = AnalysisRunStatus;
    type Memo = ();

    const KIND: Kind = kinds::ANALYSIS_RUN;
    const STATUS: StatusPlace = StatusPlace::Main;

    fn head(world: &RunWorld) -> Head {
        let run = &world.run;
        Head { object: run.reference(), uid: run.uid, version: run.version }
    }

    fn decide(world: &RunWorld, now: Timestamp) -> Decision<AnalysisRunStatus> {
        decide(world, now)
    }

    fn stored_status(world: &RunWorld) -> &AnalysisRunStatus {
        &world.run.status
    }
}

/// Rounds of measuring and assessing in one decision. A failure ends the other metrics in a second
/// round, and the run in the same or a third one.
const ROUNDS: usize = 4;

fn decide(world: &RunWorld, now: Timestamp) -> Decision<AnalysisRunStatus> {
    let run = &world.run;
    if run.is_deleting {
        return Decision::default();
    }
    if RunPhase::of(&run.status.phase).is_completed() {
        return retain::after_completion(world, now);
    }
    let plan = match prepare(run) {
        Ok(plan) => plan,
        Err(error) => return ended(run, error.to_string()),
    };
    let mut draft = RunDraft::new(world, now);
    for _ in 0..ROUNDS {
        let before = draft.status.clone();
        let is_terminating = plan.is_terminating(&draft.status);
        if let Some(message) = measure::all(&mut draft, &plan, is_terminating) {
            return ended(run, message);
        }
        assess::all(&mut draft, &plan, is_terminating);
        // A Job is looked at, or ended, when it is there.
        let is_creating = !draft.changes.is_empty();
        if draft.status == before || draft.is_completed() || is_creating {
            break;
        }
    }
    retain::trim(&mut draft, &plan);
    tasks::wake(&mut draft, &plan);
    draft.decision()
}

/// A run that cannot be carried out as it is written.
fn ended(run: &AnalysisRunView, message: String) -> Decision<AnalysisRunStatus> {
    let mut status = AnalysisRunStatus::clone(&run.status);
    status.phase = RunPhase::Error.text().to_owned();
    status.message = message;
    let events = vec![assess::completion(run, RunPhase::Error)];
    Decision { status: Some(status), events, ..Decision::default() }
}

/// What is decided so far.
struct RunDraft<'w> {
    world: &'w RunWorld,
    now: Timestamp,
    status: AnalysisRunStatus,
    changes: Vec<Change>,
    events: Vec<Event>,
    asks: Vec<Ask>,
    why: Vec<Why>,
    wake_at: Option<Timestamp>,
    /// Is there an answer to wait for that needs nothing stored?
    is_reading: bool,
    /// Must the run be stored as begun before something outside may be changed?
    must_begin: bool,
}

impl<'w> RunDraft<'w> {
    fn new(world: &'w RunWorld, now: Timestamp) -> Self {
        RunDraft {
            world,
            now,
            status: AnalysisRunStatus::clone(&world.run.status),
            changes: Vec::new(),
            events: Vec::new(),
            asks: Vec::new(),
            why: Vec::new(),
            wake_at: None,
            is_reading: false,
            must_begin: false,
        }
    }

    fn run(&self) -> &'w AnalysisRunView {
        &self.world.run
    }

    fn is_completed(&self) -> bool {
        RunPhase::of(&self.status.phase).is_completed()
    }

    fn wake(&mut self, at: Timestamp) {
        self.wake_at = Some(self.wake_at.map_or(at, |known| known.min(at)));
    }

    /// Lists a question once.
    fn ask(&mut self, ask: Ask) {
        if !self.asks.iter().any(|known| known.id == ask.id) {
            self.asks.push(ask);
        }
    }

    fn waits(&mut self, guard: Guard, frees: Frees) {
        let why = Why {
            guard,
            object: self.run().reference(),
            field: "spec.metrics".into(),
            since: None,
            frees,
        };
        if !self.why.contains(&why) {
            self.why.push(why);
        }
    }

    /// The decision. A run that has only begun to ask is not written: the first measurement is.
    fn decision(self) -> Decision<AnalysisRunStatus> {
        let stored = &self.world.run.status;
        // Nothing is new but that it waits for an answer.
        let has_only_asked = self.is_reading
            && !self.must_begin
            && !self.is_completed()
            && self.status.metric_results == stored.metric_results
            && (stored.phase.is_empty() || stored.phase == self.status.phase);
        let is_same = has_only_asked || self.status == **stored;
        let events = if has_only_asked { Vec::new() } else { self.events };
        let mut asks = self.asks;
        let is_ending = !RunPhase::of(&stored.phase).is_completed();
        if is_ending && RunPhase::of(&self.status.phase).is_completed() {
            // What is not known by now is of no use any more.
            asks.retain(|ask| self.world.answers.contains_key(&ask.id));
        }
        Decision {
            changes: self.changes,
            status: (!is_same).then_some(self.status),
            urgency: Urgency::Now,
            events,
            asks,
            memo: (),
            wake_at: self.wake_at,
            why: self.why,
        }
    }
}

/// An Event about the run, posted with its status.
fn event(about: ObjectRef, phase: RunPhase, reason: String, message: String) -> Event {
    let kind = if phase.is_bad() { EventKind::Warning } else { EventKind::Normal };
    Event { about, uid: None, kind, reason: reason.into(), message, after: After::Status }
}

/// A moment after another one; the end of time where there is none.
fn later(moment: Timestamp, by: SignedDuration) -> Timestamp {
    moment.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// A moment as a status stores it.
fn stored(moment: Timestamp) -> Option<Time> {
    Some(Time::new(moment))
}

#[cfg(test)]
mod tests;
