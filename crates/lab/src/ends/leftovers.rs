//! I-13: what is left over at the end that should be gone?

use std::sync::Arc;

use gradus_api::names;
use gradus_engine::world::RunPhase;
use gradus_simkube::SimCluster;
use gradus_simkube::object::Object;
use serde_json::Value;

use super::{around, at_end, sets};
use crate::checks::{Counts, Violation, runs_of};
use crate::deeds::NAMESPACE;

/// How many old ReplicaSets, and how many finished runs of each kind, are kept where the spec does
/// not say.
const SETS_KEPT: i64 = 10;
const RUNS_KEPT: i64 = 5;

/// Everything that is left over beside this Rollout.
pub(super) fn judge(
    cluster: &SimCluster,
    rollout: Option<&Arc<Object>>,
    counts: &Counts,
) -> Vec<Violation> {
    let rollout = rollout.map(|rollout| &**rollout);
    let is_kept = |set: &&Arc<Object>| rollout.is_none_or(|rollout| !is_let_go(rollout, set));
    let sets: Vec<_> = sets(cluster).into_iter().filter(is_kept).collect();
    let routes = around::all_routes(cluster);
    let runs: Vec<_> = around::runs(cluster).collect();
    let of_experiments: Vec<_> = around::experiment_sets(cluster)
        .into_iter()
        .chain(around::experiment_services(cluster))
        .collect();
    let all = sets.iter().chain(&routes).chain(runs.iter().flatten()).chain(&of_experiments);
    let orphans = all.filter(|object| is_orphan(cluster, object, counts));
    let mut found: Vec<Violation> = orphans
        .map(|orphan| at_end("I-13", orphan, "an orphan is left behind".to_owned()))
        .collect();
    found.extend(runs.iter().flatten().flat_map(|run| after_experiment(cluster, run)));
    found.extend(old_sets(rollout, &sets));
    found.extend(deadlines(rollout, &sets));
    if let Some(rollout) = rollout {
        found.extend(runs.iter().flat_map(|runs| old_runs(rollout, &sets, runs)));
    }
    found
}

/// Has something that we made lost its owner?
fn is_orphan(cluster: &SimCluster, object: &Object, counts: &Counts) -> bool {
    let owner = object.controller().and_then(|owner| cluster.by_uid(&owner.uid));
    owner.is_none() && counts.contains_key(&format!("{NAMESPACE}/{}", object.meta.name))
}

/// What an Experiment that has ended has left behind: pods, Services and AnalysisRuns that go on.
fn after_experiment(cluster: &SimCluster, experiment: &Object) -> Vec<Violation> {
    let has_ended = |run: &Object| {
        RunPhase::of(run.status["phase"].as_str().unwrap_or_default()).is_completed()
    };
    if !experiment.spec["templates"].is_array() || !has_ended(experiment) {
        return Vec::new();
    }
    let owned = |object: &&&Arc<Object>| {
        object.controller().is_some_and(|owner| owner.uid == experiment.meta.uid)
    };
    let left = |object: &Object, what: &str| {
        at_end("I-13", object, format!("{what} of an Experiment that has ended"))
    };
    let (sets, services) = (around::experiment_sets(cluster), around::experiment_services(cluster));
    let sized = sets.iter().filter(owned).filter(|set| set.spec["replicas"] != 0);
    let mut found: Vec<Violation> = sized.map(|set| left(set, "pods are left")).collect();
    found.extend(services.iter().filter(owned).map(|service| left(service, "a Service is left")));
    let runs: Vec<_> = around::runs(cluster).flatten().collect();
    let going = |run: &&&Arc<Object>| !has_ended(run) && run.spec["terminate"] != true;
    found.extend(runs.iter().filter(owned).filter(going).map(|run| left(run, "a run goes on")));
    found
}

/// Old ReplicaSets that still have pods, or are too many.
fn old_sets(rollout: Option<&Object>, sets: &[&Arc<Object>]) -> Vec<Violation> {
    // What users reach is never taken away (contract 11.3): an update that is overtaken after the
    // active Service was switched, and before it was promoted, serves until the next one does.
    let is_live = |set: &Object| {
        let hash = set.meta.labels.get(names::label::POD_TEMPLATE_HASH);
        rollout.zip(hash).is_some_and(|(rollout, hash)| {
            let status = &rollout.status;
            let is = |field: &Value| *field == hash.as_str();
            is(&status["currentPodHash"])
                || is(&status["stableRS"])
                || is(&status["blueGreen"]["activeSelector"])
        })
    };
    let old: Vec<_> = sets.iter().filter(|set| !is_live(set)).collect();
    let size = |set: &Object| set.spec["replicas"].as_i64().unwrap_or(0);
    let sized = old.iter().filter(|set| size(set) != 0);
    let left = |set: &&&&Arc<Object>| {
        at_end("I-13", set, format!("an old ReplicaSet is left at {}", size(set)))
    };
    let mut found: Vec<Violation> = sized.map(|set| left(&set)).collect();
    if let Some(rollout) = rollout {
        let limit = rollout.spec["revisionHistoryLimit"].as_i64().unwrap_or(SETS_KEPT);
        found.extend(beyond(rollout, "old ReplicaSets", old.len(), limit));
    }
    found
}

/// Deadlines of ReplicaSets that wait for no end: one is there already, or everybody is sent there.
fn deadlines(rollout: Option<&Object>, sets: &[&Arc<Object>]) -> Vec<Violation> {
    let is_waiting = |set: &Object| {
        let hash = set.meta.labels.get(names::label::POD_TEMPLATE_HASH);
        let stable = rollout.map(|rollout| &rollout.status["stableRS"]);
        set.spec["replicas"] != 0 && stable.is_none_or(|it| it.as_str() != hash.map(|it| &**it))
    };
    let has_one =
        |set: &Object| set.meta.annotations.contains_key(names::annotation::SCALE_DOWN_DEADLINE);
    let left = sets.iter().filter(|set| has_one(set) && !is_waiting(set));
    left.map(|set| at_end("I-13", set, "a deadline is left that means nothing".to_owned()))
        .collect()
}

/// Runs or Experiments that nobody waits for: they must have been told to end, the revision they
/// judged must be there, and of those that have ended there must not be too many.
fn old_runs(rollout: &Object, sets: &[&Arc<Object>], runs: &[&Arc<Object>]) -> Vec<Violation> {
    let current = runs_of(&rollout.status);
    let is_old = |run: &&&Arc<Object>| {
        let owner = run.controller().map(|owner| &owner.uid);
        owner == Some(&rollout.meta.uid) && !current.iter().any(|name| **name == *run.meta.name)
    };
    let hash = |object: &Object| object.meta.labels.get(names::label::POD_TEMPLATE_HASH).cloned();
    let (mut successful, mut unsuccessful) = (0, 0);
    let mut found = Vec::new();
    for run in runs.iter().filter(is_old) {
        match RunPhase::of(run.status["phase"].as_str().unwrap_or_default()) {
            RunPhase::Successful => successful += 1,
            phase if phase.is_completed() => unsuccessful += 1,
            _ if run.spec["terminate"] == true => {}
            _ => found.push(at_end("I-13", run, "still runs, and nobody waits".to_owned())),
        }
        if !sets.iter().any(|set| hash(set) == hash(run)) {
            found.push(at_end("I-13", run, "the revision it has judged is gone".to_owned()));
        }
    }
    let limit = |field: &str| rollout.spec["analysis"][field].as_i64().unwrap_or(RUNS_KEPT);
    let kept = limit("successfulRunHistoryLimit");
    found.extend(beyond(rollout, "successful runs", successful, kept));
    let kept = limit("unsuccessfulRunHistoryLimit");
    found.extend(beyond(rollout, "unsuccessful runs", unsuccessful, kept));
    found
}

fn beyond(rollout: &Object, what: &str, count: usize, limit: i64) -> Option<Violation> {
    let is_beyond = i64::try_from(count).is_ok_and(|count| limit < count);
    is_beyond.then(|| at_end("I-13", rollout, format!("{count} {what}, limit {limit}")))
}

/// Was a ReplicaSet let go because the Rollout selects other pods now? Then it is nobody's.
fn is_let_go(rollout: &Object, set: &Object) -> bool {
    let selector = rollout.status["selector"].as_str().unwrap_or_default();
    let mut pairs = selector.split(',').filter_map(|pair| pair.split_once('='));
    let differs = |(key, value): (&str, &str)| {
        key != names::label::POD_TEMPLATE_HASH
            && set.meta.labels.get(key).is_none_or(|found| found != value)
    };
    set.controller().is_none() && pairs.any(differs)
}
