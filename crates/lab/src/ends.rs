//! How did a run end, and may it end so? I-12 and I-13 on the end itself, I-14 by comparing two.

mod around;
mod leftovers;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gradus_api::names::{self, phase};
use gradus_engine::projection::{Revisions, project};
use gradus_simkube::SimCluster;
use gradus_simkube::kinds::KindId;
use gradus_simkube::object::Object;
use serde_json::Value;

use crate::checks::{Counts, Violation};
use crate::deeds::{NAMESPACE, sight};
use crate::scenario::End;

/// How a run ended: what two runs of one scenario must agree on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ending {
    /// The projected status.
    pub status: Value,
    /// The ReplicaSets, by revision.
    pub sets: BTreeMap<i64, SetEnding>,
    /// Services, Ingresses, runs and Experiments, by kind and name, projected.
    pub around: BTreeMap<String, Value>,
    /// How often we created and deleted each object.
    pub counts: Counts,
}

/// How a ReplicaSet ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetEnding {
    /// Wanted pods.
    pub size: i64,
    /// Pods.
    pub replicas: i64,
    /// Available pods.
    pub available: i64,
    /// Labels and annotations of its pods, each text once.
    pub marks: BTreeSet<String>,
}

/// Labels and annotations as one text, without the hash: it is another in every scenario.
pub fn marks(labels: &BTreeMap<String, String>, annotations: &BTreeMap<String, String>) -> String {
    let labels = labels.iter().filter(|(key, _)| *key != names::label::POD_TEMPLATE_HASH);
    let all = labels.chain(annotations).map(|(key, value)| format!("{key}={value}"));
    all.collect::<Vec<_>>().join(",")
}

impl Ending {
    /// How things stand for the rollout of a cluster.
    pub fn of(cluster: &SimCluster, rollout: Option<&Arc<Object>>, counts: &Counts) -> Self {
        let sets = sets(cluster);
        let revisions = revisions(&sets);
        let status = rollout.map_or(Value::Null, |rollout| project(&rollout.status, &revisions));
        let ending = |set: &&Arc<Object>| {
            let count = |part: &Value, field: &str| part[field].as_i64().unwrap_or(0);
            let ending = SetEnding {
                size: count(&set.spec, "replicas"),
                replicas: count(&set.status, "replicas"),
                available: count(&set.status, "availableReplicas"),
                marks: cluster
                    .list(KindId::POD, NAMESPACE)
                    .filter(|pod| pod.controller().is_some_and(|o| o.uid == set.meta.uid))
                    .map(|pod| marks(&pod.meta.labels, &pod.meta.annotations))
                    .collect(),
            };
            (revision(set).unwrap_or(0), ending)
        };
        Ending {
            status,
            sets: sets.iter().map(ending).collect(),
            around: around::around(cluster, &revisions),
            counts: counts.clone(),
        }
    }

    /// What differs from the end that a scenario names, in its own words.
    pub(crate) fn unlike(&self, end: &End) -> Option<String> {
        let sizes: BTreeMap<i64, i64> =
            self.sets.iter().map(|(revision, set)| (*revision, set.size)).collect();
        if sizes != end.sizes {
            return Some(format!("sizes {sizes:?}, expected {:?}", end.sizes));
        }
        let differs = |(revision, expected): (&i64, &String)| {
            let seen = self.sets.get(revision).map(|set| &set.marks);
            let is_so = seen.is_some_and(|seen| seen.iter().all(|marks| marks == expected));
            (!is_so).then(|| format!("pods of {revision}: {seen:?}, expected {expected:?}"))
        };
        end.pods.iter().find_map(differs)
    }

    /// I-14: does this end like the undisturbed run?
    pub fn same_as(&self, undisturbed: &Ending) -> Result<(), Violation> {
        let differs = |what: &str, numbers: String| Violation {
            invariant: "I-14",
            write: "the whole run".to_owned(),
            object: what.to_owned(),
            numbers,
        };
        let (ours, theirs) = (&self.status, &undisturbed.status);
        if ours != theirs {
            return Err(differs("status", format!("{ours} instead of {theirs}")));
        }
        if self.sets != undisturbed.sets {
            let text = format!("{:?} instead of {:?}", self.sets, undisturbed.sets);
            return Err(differs("ReplicaSets", text));
        }
        for name in self.around.keys().chain(undisturbed.around.keys()) {
            let [ours, theirs] = [self, undisturbed].map(|ending| ending.around.get(name));
            if ours != theirs {
                let text = |one: Option<&Value>| one.map_or("nothing".to_owned(), Value::to_string);
                let numbers = format!("{} instead of {}", text(ours), text(theirs));
                return Err(differs(name, numbers));
            }
        }
        // Who has not seen yet that the object is gone may make a child of it once more.
        if self.counts != undisturbed.counts && !ours.is_null() {
            let text = format!("{:?} instead of {:?}", self.counts, undisturbed.counts);
            return Err(differs("creates and deletes", text));
        }
        Ok(())
    }
}

/// Revision numbers by hash, from a cluster's ReplicaSets.
pub(crate) fn revisions(sets: &[&Arc<Object>]) -> Revisions {
    let pairs = sets.iter().filter_map(|set| {
        let hash = set.meta.labels.get(names::label::POD_TEMPLATE_HASH)?;
        Some((hash.clone(), revision(set)?))
    });
    pairs.collect()
}

/// The ReplicaSets of the scenario's namespace that are a Rollout's; Deployments and Experiments have
/// theirs, too.
pub(crate) fn sets(cluster: &SimCluster) -> Vec<&Arc<Object>> {
    let all = cluster.list(KindId::REPLICA_SET, NAMESPACE);
    let all = all.filter(|set| set.meta.labels.contains_key(names::label::POD_TEMPLATE_HASH));
    all.filter(|set| !is_of_experiment(set)).collect()
}

/// Is it of an Experiment?
pub(crate) fn is_of_experiment(object: &Object) -> bool {
    object.meta.annotations.contains_key(names::annotation::EXPERIMENT_NAME)
}

/// I-12 and I-13: what is wrong with this end.
pub(crate) fn judge(
    cluster: &SimCluster,
    rollout: Option<&Arc<Object>>,
    counts: &Counts,
) -> Vec<Violation> {
    let unrest = rollout.and_then(|rollout| unrest(rollout));
    unrest.into_iter().chain(leftovers::judge(cluster, rollout, counts)).collect()
}

/// I-12: why this is no end, if it is none.
fn unrest(rollout: &Object) -> Option<Violation> {
    let status = &rollout.status;
    let is_at_rest = match status["phase"].as_str() {
        Some(phase::HEALTHY | phase::PAUSED) => true,
        Some(phase::DEGRADED) if status["abort"] == true => true,
        // Nobody measures in a scenario but whom it tells to; the deadline may pass meanwhile.
        Some(phase::PROGRESSING | phase::DEGRADED) => sight(rollout).awaits_verdict(),
        _ => false,
    };
    let text = || format!("ends {} ({})", status["phase"], status["message"]);
    (!is_at_rest).then(|| at_end("I-12", rollout, text()))
}

fn at_end(invariant: &'static str, object: &Object, numbers: String) -> Violation {
    let (write, object) = ("the end".to_owned(), object.meta.name.to_string());
    Violation { invariant, write, object, numbers }
}

pub(crate) fn revision(set: &Object) -> Option<i64> {
    set.meta.annotations.get(names::annotation::REVISION)?.parse().ok()
}
