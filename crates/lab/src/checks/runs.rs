//! I-8: does anything move towards a revision that a run has not found good?
//!
//! AnalysisRuns and Experiments are told by the owner and the labels they have, so this needs not
//! know their kinds.

use std::collections::BTreeMap;
use std::sync::Arc;

use gradus_api::names::label::{POD_TEMPLATE_HASH, RUN_TYPE};
use gradus_engine::world::RunPhase;
use gradus_simkube::Write;
use gradus_simkube::kinds::KindId;
use gradus_simkube::object::Object;
use serde_json::Value;

use super::is_same;
use super::sizes::hash_of;

/// The verdicts of runs and Experiments: as they are, as the watch has shown them, and as they were
/// shown when the decision was made that is being carried out.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    by_name: BTreeMap<Arc<str>, Run>,
    /// The status of the Rollout.
    status: Option<Arc<Value>>,
    /// Names of the runs that the status has.
    current: Vec<String>,
    /// A person has decided since the last verdict: what happens now is wanted.
    is_excused: bool,
    /// Somebody has changed the number of replicas since: as many more pods are no larger share.
    is_scaled: bool,
    /// A person wants the rest skipped, whatever anybody finds.
    is_overruled: bool,
}

#[derive(Clone, Debug)]
struct Run {
    hash: String,
    phase: RunPhase,
    shown: RunPhase,
    decided: RunPhase,
}

impl Runs {
    /// Takes in one write, whoever made it.
    pub(super) fn take_in(&mut self, write: &Write, is_ours: bool, is_rollout: bool) {
        let object = &write.after;
        if is_rollout {
            let others = write.before.as_ref().filter(|_| !is_ours);
            self.is_excused |= others.is_some_and(|before| decides(before, object));
            self.is_scaled |=
                others.is_some_and(|before| before.spec["replicas"] != object.spec["replicas"]);
            if !is_same(self.status.as_ref(), &object.status) {
                self.current = named(&object.status);
                self.is_overruled = object.status["promoteFull"] == true;
                self.status = Some(Arc::clone(&object.status));
            }
        } else if is_run(object) {
            let fresh = RunPhase::Unstarted;
            let hash = hash_of(&object.meta.labels).to_owned();
            let new = Run { hash, phase: fresh, shown: fresh, decided: fresh };
            let run = self.by_name.entry(Arc::clone(&object.meta.name)).or_insert(new);
            let phase = phase_of(object);
            // A new verdict calls for a new decision of a person.
            let is_verdict = run.phase != phase && phase.is_completed();
            self.is_excused &= !is_verdict;
            self.is_scaled &= !is_verdict;
            run.phase = phase;
        }
    }

    /// Has the AnalysisRun or Experiment of this name ended well?
    pub(super) fn has_succeeded(&self, name: &Value) -> bool {
        let run = name.as_str().and_then(|name| self.by_name.get(name));
        run.is_some_and(|run| run.phase == RunPhase::Successful)
    }

    /// What is wrong with a resize of ours, if anything: a revision under a bad verdict must not
    /// grow.
    pub(super) fn judge_size(&self, write: &Write, is_ours: bool) -> Option<String> {
        if !is_ours || self.current.is_empty() || self.is_scaled {
            return None;
        }
        let name = self.condemned(hash_of(&write.after.meta.labels))?;
        let size = |object: &Object| object.spec["replicas"].as_i64().unwrap_or(1);
        let (from, to) = (write.before.as_ref().map_or(0, |set| size(set)), size(&write.after));
        (from < to).then(|| format!("{from} → {to} pods of a revision that {name} did not pass"))
    }

    /// What is wrong with a switch of ours of one of these Services, if anything.
    pub(super) fn judge_switch(&self, write: &Write, serving: &[String]) -> Option<String> {
        let hash = |object: &Object| {
            object.spec["selector"][POD_TEMPLATE_HASH].as_str().unwrap_or_default().to_owned()
        };
        let (from, to) = (write.before.as_ref().map(|before| hash(before)), hash(&write.after));
        let is_serving = serving.iter().any(|name| **name == *write.after.meta.name);
        if !is_serving || from.as_ref() == Some(&to) {
            return None;
        }
        let name = self.condemned(&to)?;
        Some(format!("now selects {to:?}, a revision that {name} did not pass"))
    }

    /// The run that the status names and that has found this revision bad, or nothing.
    pub(super) fn condemned(&self, hash: &str) -> Option<&str> {
        if self.is_excused || self.is_overruled {
            return None;
        }
        let is_bad = |run: &Run| run.decided.is_bad() || run.decided == RunPhase::Inconclusive;
        let named = self.current.iter().map(String::as_str);
        let mut runs = named.filter_map(|name| Some((name, self.by_name.get(name)?)));
        runs.find(|(_, run)| run.hash == hash && is_bad(run)).map(|(name, _)| name)
    }

    pub(super) fn shown(&mut self, object: &Object) {
        if let Some(run) = self.by_name.get_mut(&object.meta.name).filter(|_| is_run(object)) {
            run.shown = phase_of(object);
        }
    }

    pub(super) fn decided(&mut self) {
        self.by_name.values_mut().for_each(|run| run.decided = run.shown);
    }

    pub(super) fn restarted(&mut self) {
        for run in self.by_name.values_mut() {
            (run.shown, run.decided) = (RunPhase::Unstarted, RunPhase::Unstarted);
        }
    }
}

/// Does somebody who writes this decide about the update? With a command (a pause ends, a step is
/// skipped, an abort is taken back), or by asking for something else.
fn decides(before: &Object, after: &Object) -> bool {
    let asks = ["template", "workloadRef", "strategy"];
    let commands = ["pauseConditions", "currentStepIndex", "abort", "promoteFull"];
    let differs = |one: &Value, other: &Value, field: &str| one[field] != other[field];
    asks.into_iter().any(|field| differs(&before.spec, &after.spec, field))
        || commands.into_iter().any(|field| differs(&before.status, &after.status, field))
}

/// The names of the runs and the Experiment in a Rollout's status.
pub(crate) fn named(status: &Value) -> Vec<String> {
    let (canary, blue_green) = (&status["canary"], &status["blueGreen"]);
    let names = [
        &canary["currentStepAnalysisRunStatus"]["name"],
        &canary["currentBackgroundAnalysisRunStatus"]["name"],
        &canary["currentExperiment"],
        &blue_green["prePromotionAnalysisRunStatus"]["name"],
        &blue_green["postPromotionAnalysisRunStatus"]["name"],
    ];
    names.into_iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Runs have a purpose; Experiments have sets of pods.
fn is_run(object: &Object) -> bool {
    !matches!(object.kind, KindId::REPLICA_SET | KindId::POD)
        && object.controller().is_some()
        && (object.meta.labels.contains_key(RUN_TYPE) || object.spec["templates"].is_array())
}

fn phase_of(object: &Object) -> RunPhase {
    RunPhase::of(object.status["phase"].as_str().unwrap_or_default())
}
