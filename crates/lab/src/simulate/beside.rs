//! Who acts beside the scenario? Deeds that wait for nothing but their time, and whoever measures:
//! AnalysisRuns come to the end that a simulation declares.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use gradus_api::analysis::AnalysisRunSpec;
use gradus_api::decode::decode;
use gradus_api::names::{self, analysis_phase as phase, label};
use gradus_api::values::Time;
use gradus_simkube::SimCluster;
use gradus_simkube::kinds::KindId;
use gradus_simkube::object::Object;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::checks::Violation;
use crate::deeds::NAMESPACE;
use crate::door::Bench;
use crate::outlook::{Outlook, Run, RunEnd, verdict};
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
        let update = self.start + beside.update;
        let cluster = &bench.cluster;
        let found = beside.outlook.iter().flat_map(move |outlook| {
            let runs = RUN.all(cluster);
            runs.filter_map(move |run| of_run(cluster, run, outlook, update, now))
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

fn of_run(
    cluster: &SimCluster,
    object: &Object,
    outlook: &Outlook,
    update: Timestamp,
    now: Timestamp,
) -> Option<Due> {
    let run = Run {
        spec: filled_in(&object.spec),
        images: images(cluster, object),
        began: RUN.began(object).unwrap_or(now),
        update,
    };
    // The controller measures Jobs itself, and ends what is told to end.
    if run.spec.metrics.iter().all(|metric| metric.provider.job.is_some()) {
        return None;
    }
    let is_ended = run.spec.terminate;
    let verdict = if is_ended { Some(terminated(now)) } else { verdict(&run, outlook) };
    RUN.next(object, verdict, now)
}

fn terminated(now: Timestamp) -> RunEnd {
    RunEnd { message: "Run Terminated".to_owned(), ..successful(now) }
}

fn successful(at: Timestamp) -> RunEnd {
    let phase = phase::SUCCESSFUL.to_owned();
    RunEnd { at, phase, message: String::new(), results: Vec::new() }
}

/// The spec with the values of its arguments in place.
fn filled_in(spec: &Value) -> AnalysisRunSpec {
    let mut text = spec["metrics"].to_string();
    for argument in spec["args"].as_array().into_iter().flatten() {
        let value = json!(argument["value"].as_str().unwrap_or_default()).to_string();
        let name = argument["name"].as_str().unwrap_or_default();
        for written in [format!("{{{{args.{name}}}}}"), format!("{{{{ args.{name} }}}}")] {
            text = text.replace(&written, value.trim_matches('"'));
        }
    }
    let mut spec = spec.clone();
    if let Ok(metrics) = serde_json::from_str(&text) {
        spec["metrics"] = metrics;
    }
    decode(&spec).0
}

/// Images of the revision that a run judges, or of all pods of its Experiment.
fn images<'c>(cluster: &'c SimCluster, run: &Object) -> Vec<&'c str> {
    let hash = run.meta.labels.get(label::POD_TEMPLATE_HASH);
    let owner = run.controller().map(|owner| owner.uid.clone());
    let judged = |set: &&Arc<Object>| match hash {
        Some(_) => set.meta.labels.get(label::POD_TEMPLATE_HASH) == hash,
        None => owner.is_some() && set.controller().map(|owner| owner.uid.clone()) == owner,
    };
    let sets = cluster.list(KindId::REPLICA_SET, NAMESPACE).filter(judged);
    let lists = sets.filter_map(|set| set.template()["spec"]["containers"].as_array());
    lists.flatten().filter_map(|one| one["image"].as_str()).collect()
}
