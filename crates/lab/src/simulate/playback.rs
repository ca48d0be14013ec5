//! How far has the scenario been told, and what must be seen on the way?

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::checks::Violation;
use crate::deeds::{self, differences, sight};
use crate::door::Bench;
use crate::ends::Ending;
use crate::scenario::{Scenario, Step};

/// Counts may be written a second late; what is not seen after this time is not coming.
const PATIENCE: SignedDuration = SignedDuration::from_secs(5);

/// A scenario being told.
pub(super) struct Playback {
    scenario: Arc<Scenario>,
    start: Timestamp,
    /// The step that comes next.
    next: usize,
    /// Faults move things: then only the order of the scenario counts, not what is seen on the way.
    is_free: bool,
    /// Since when the next step's condition has held without its expectation.
    held_since: Option<Timestamp>,
    /// The version of the cluster in which the next step's expectation was last met.
    seen: u64,
    /// The version of the Rollout that the last step has left.
    left: u64,
    /// The version of the Rollout that was last found not to stand as the next step wants.
    refused: u64,
}

impl Playback {
    pub(super) fn new(scenario: Arc<Scenario>, start: Timestamp, is_free: bool) -> Self {
        Playback {
            scenario,
            start,
            next: 0,
            is_free,
            held_since: None,
            seen: 0,
            left: 0,
            refused: 0,
        }
    }

    pub(super) fn is_told(&self) -> bool {
        self.step().is_none()
    }

    /// Has anything been done yet?
    pub(super) fn has_begun(&self) -> bool {
        self.next > 0
    }

    /// Nothing more is done: somebody else has taken over.
    pub(super) fn stop(&mut self) {
        self.next = self.scenario.steps.len();
    }

    /// When the next step can come although nothing happens.
    pub(super) fn next_due(&self, now: Timestamp) -> Option<Timestamp> {
        let at = self.step()?.at.map(|at| self.start + at);
        let patience = self.held_since.map(|since| since + PATIENCE);
        at.into_iter().chain(patience).filter(|due| now < *due).min()
    }

    /// Can the next step be taken now?
    pub(super) fn is_ready(&mut self, bench: &Bench, now: Timestamp) -> bool {
        let Some(step) = self.scenario.steps.get(self.next) else { return false };
        if step.at.is_some_and(|at| now < self.start + at) {
            return false;
        }
        let Some(rollout) = bench.rollout() else {
            return step.when.is_none() && step.expect.is_none();
        };
        if step.gone {
            return false;
        }
        let is_known = self.refused == rollout.version;
        if is_known && self.held_since.is_none() {
            return false;
        }
        if step.when.as_ref().is_some_and(|when| !when.holds(&sight(rollout))) {
            self.refused = rollout.version;
            self.held_since = None;
            return false;
        }
        if self.is_free {
            return true;
        }
        let since = *self.held_since.get_or_insert(now);
        if is_seen(step, bench) {
            self.seen = bench.cluster.version();
            return true;
        }
        // Out of patience: taking the step tells what was seen instead.
        since + PATIENCE <= now
    }

    /// Does the Rollout still stand as the last step has left it? Who acts on it again before
    /// anybody could answer acts on what is no longer so.
    pub(super) fn is_unanswered(&self, bench: &Bench) -> bool {
        bench.rollout().is_some_and(|rollout| rollout.version == self.left)
    }

    /// Takes the next step.
    pub(super) fn act(&mut self, bench: &Rc<RefCell<Bench>>) -> Result<(), Violation> {
        let scenario = Arc::clone(&self.scenario);
        let Some(step) = scenario.steps.get(self.next) else { return Ok(()) };
        let mut bench = bench.borrow_mut();
        let has_seen = self.is_free || self.seen == bench.cluster.version();
        if !has_seen && !is_seen(step, &bench) {
            let expected = step.expect.as_ref().unwrap_or(&Value::Null);
            return Err(self.unexpected("expect", differences(&projection(&bench), expected)));
        }
        if let Some(action) = &step.r#do {
            let done = bench.perform(action);
            done.map_err(|error| self.unexpected("do", format!("{action:?} is refused: {error}")))?;
        }
        self.next += 1;
        self.left = bench.rollout().map_or(0, |rollout| rollout.version);
        (self.held_since, self.seen, self.refused) = (None, 0, 0);
        Ok(())
    }

    /// What is wrong with the end, by the scenario's own words.
    pub(super) fn judge_end(&self, ending: &Ending) -> Option<Violation> {
        let end = &self.scenario.end;
        if end.expect.is_null() {
            return None; // Anything will do.
        }
        if ending.status != end.expect {
            return Some(self.unexpected("end", differences(&ending.status, &end.expect)));
        }
        ending.unlike(end).map(|numbers| self.unexpected("end", numbers))
    }

    /// What is wrong with the objects around, at the end of a run in which nobody else acted.
    pub(super) fn judge_around(&self, bench: &Bench) -> Option<Violation> {
        let unmet = self.scenario.end.unmet(|named| deeds::find(&bench.cluster, named))?;
        Some(self.unexpected("end", unmet))
    }

    /// Where the scenario stands, for somebody who wants to know why it does not go on.
    pub(super) fn standing(&self, bench: &Bench) -> String {
        let what = match self.step() {
            None => "the scenario is told".to_owned(),
            Some(step) => format!("step {} waits for {:?}", self.next + 1, step.when),
        };
        format!("{what}; the rollout stands at {}", projection(bench))
    }

    fn step(&self) -> Option<&Step> {
        self.scenario.steps.get(self.next)
    }

    fn unexpected(&self, what: &str, numbers: String) -> Violation {
        Violation {
            invariant: "the scenario",
            write: format!("step {} ({what})", self.next + 1),
            object: self.scenario.rollout_name().to_owned(),
            numbers,
        }
    }
}

fn is_seen(step: &Step, bench: &Bench) -> bool {
    let is_it = |expected| deeds::is_projection(expected, &bench.cluster, &bench.place);
    step.expect.as_ref().is_none_or(is_it)
}

fn projection(bench: &Bench) -> Value {
    deeds::projection(&bench.cluster, &bench.place)
}
