//! Who acts beside the scenario? Deeds that wait for nothing but their time, and whoever ends
//! AnalysisRuns as a simulation declares.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use gradus_api::analysis::AnalysisRunSpec;
use gradus_api::decode::decode;
use gradus_api::names::{self, analysis_phase as phase};
use gradus_api::values::Time;
use gradus_simkube::SimCluster;
use gradus_simkube::object::Object;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::checks::Violation;
use crate::deeds::NAMESPACE;
use crate::door::Bench;
use crate::outlook::{Outlook, RunEnd};
use crate::outside::images;
use crate::person::Action;
use crate::scenario::Scenario;

/// Somebody with a clock.
pub(super) struct Bystander {
    scenario: Arc<Scenario>,
    start: Timestamp,
    /// The deed that comes next.
    next: usize,
}

/// What is measured.
#[derive(Clone, Copy)]
struct RunKind {
    kind: &'static str,
    /// The field of its status that says when it began.
    began: &'static str,
}

const RUN: RunKind = RunKind { kind: names::kind::ANALYSIS_RUN, began: "startedAt" };

/// The next status of an AnalysisRun, and when it is due.
struct Due {
    at: Timestamp,
    write: Value,
}

impl Bystander {
    pub(super) fn new(scenario: Arc<Scenario>, start: Timestamp) -> Self {
        Bystander { scenario, start, next: 0 }
    }

    /// Are all deeds done? AnalysisRuns end in their own time.
    pub(super) fn is_done(&self) -> bool {
        self.deed().is_none()
    }

    pub(super) fn is_ready(&self, bench: &Bench, now: Timestamp) -> bool {
        self.deed().is_some_and(|(at, _)| at <= now)
            || self.unfinished(bench, now).any(|due| due.at <= now)
    }

    /// When there is something to do although nothing happens.
    pub(super) fn next_due(&self, bench: &Bench, now: Timestamp) -> Option<Timestamp> {
        let deed = self.deed().map(|(at, _)| at);
        self.unfinished(bench, now).map(|due| due.at).chain(deed).min()
    }

    /// Does what is due first.
    pub(super) fn act(&mut self, bench: &Rc<RefCell<Bench>>) -> Result<(), Violation> {
        let mut bench = bench.borrow_mut();
        let now = bench.now;
        let deed = self.deed().filter(|(at, _)| *at <= now).map(|(_, action)| action.clone());
        let action = match deed {
            Some(action) => {
                self.next += 1;
                action
            }
            None => match self.unfinished(&bench, now).find(|due| due.at <= now) {
                Some(due) => Action::Patch(due.write),
                None => return Ok(()),
            },
        };
        bench.perform(&action).map_err(|error| Violation {
            invariant: "the scenario",
            write: "a deed beside it".to_owned(),
            object: self.scenario.rollout_name().to_owned(),
            numbers: format!("{action:?} is refused: {error}"),
        })
    }

    fn deed(&self) -> Option<(Timestamp, &Action)> {
        let beside = &self.scenario.beside;
        let (after, action) = beside.deeds.get(self.next)?;
        Some((self.start + beside.update + *after, action))
    }

    /// What comes next of every AnalysisRun that has not ended.
    fn unfinished(&self, bench: &Bench, now: Timestamp) -> impl Iterator<Item = Due> {
        let beside = &self.scenario.beside;
        let cluster = &bench.cluster;
        let found = beside.outlook.iter().flat_map(move |outlook| {
            let runs = RUN.all(cluster);
            runs.filter_map(move |run| of_run(cluster, run, outlook, now))
        });
        found.collect::<Vec<_>>().into_iter()
    }
}

impl RunKind {
    /// All that have not ended.
    fn all(self, cluster: &SimCluster) -> impl Iterator<Item = &Arc<Object>> {
        let kind = cluster.kinds().by_name(names::API_VERSION, self.kind);
        let all = kind.into_iter().flat_map(|kind| cluster.list(kind, NAMESPACE));
        all.filter(|run| {
            let phase = run.status["phase"].as_str().unwrap_or_default();
            ["", phase::PENDING, phase::RUNNING].contains(&phase)
        })
    }

    fn began(self, object: &Object) -> Option<Timestamp> {
        object.status[self.began].as_str()?.parse().ok()
    }

    /// It runs until its verdict; where that is due at once, it does not say so before.
    fn next(self, object: &Object, verdict: Option<RunEnd>, now: Timestamp) -> Option<Due> {
        let verdict = match (self.began(object), verdict) {
            (Some(_), verdict) => verdict?,
            (None, Some(verdict)) if verdict.at <= now => verdict,
            (None, _) => {
                let mut status = json!({ "phase": phase::RUNNING });
                status[self.began] = json!(Time::new(now));
                return Some(Due { at: now, write: self.named(object, &status) });
            }
        };
        let mut status = json!({ "phase": verdict.phase, "message": verdict.message });
        if !verdict.results.is_empty() {
            status["metricResults"] = json!(verdict.results);
        }
        Some(Due { at: verdict.at, write: self.named(object, &status) })
    }

    fn named(self, object: &Object, status: &Value) -> Value {
        json!({ "apiVersion": names::API_VERSION, "kind": self.kind,
                "metadata": { "name": object.meta.name }, "status": status })
    }
}

/// The end that is given to a run. Everything else the controller measures itself.
fn of_run(cluster: &SimCluster, object: &Object, outlook: &Outlook, now: Timestamp) -> Option<Due> {
    let (spec, _) = decode::<AnalysisRunSpec>(&object.spec);
    if spec.metrics.iter().all(|metric| metric.provider.job.is_some()) || spec.terminate {
        return None;
    }
    let began = RUN.began(object).unwrap_or(now);
    let given = outlook.given_end(&images(cluster, object), began)?;
    RUN.next(object, Some(given), now)
}
