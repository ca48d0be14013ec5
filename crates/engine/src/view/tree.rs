//! Which objects belong to a Rollout or an Experiment, below what, and in which order?

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use gradus_api::analysis::AnalysisRunStatus;
use gradus_api::decode::decode;
use gradus_api::names::{annotation, condition, value};
use gradus_api::rollout::{RolloutSpec, RolloutStatus};

use super::object::{Object, text};
use super::{Fact, NamespaceObjects, Node, NodeKind, Outcome, Tag, pod};

/// Metadata of a measurement that names the Job behind it.
const JOB_NAME: &str = "job-name";

/// The objects of one namespace, by the identity of their owner.
pub(super) struct Relatives<'o> {
    sets: BTreeMap<&'o str, Vec<Object<'o>>>,
    pods: BTreeMap<&'o str, Vec<Object<'o>>>,
    experiments: BTreeMap<&'o str, Vec<Object<'o>>>,
    runs: BTreeMap<&'o str, Vec<Object<'o>>>,
}

impl<'o> Relatives<'o> {
    pub fn of(head: &Object<'_>, objects: &'o NamespaceObjects) -> Self {
        let by_owner = |list: &'o [serde_json::Value]| {
            let mut found: BTreeMap<&str, Vec<Object<'_>>> = BTreeMap::new();
            for object in list.iter().map(Object::new) {
                let is_near = object.namespace() == head.namespace();
                if let Some(owner) = object.owner().filter(|_| is_near) {
                    found.entry(owner).or_default().push(object);
                }
            }
            found
        };
        Relatives {
            sets: by_owner(&objects.replica_sets),
            pods: by_owner(&objects.pods),
            experiments: by_owner(&objects.experiments),
            runs: by_owner(&objects.analysis_runs),
        }
    }

    /// An owner's ReplicaSets, by name.
    pub fn replica_sets(&self, owner: &str) -> Vec<Object<'o>> {
        sorted(&self.sets, owner, |set| set.name())
    }

    /// An owner's Experiments, the oldest first.
    pub fn experiments(&self, owner: &str) -> Vec<Object<'o>> {
        sorted(&self.experiments, owner, |experiment| (experiment.created(), experiment.name()))
    }

    /// An owner's AnalysisRuns, the oldest first.
    fn runs(&self, owner: &str) -> Vec<Object<'o>> {
        sorted(&self.runs, owner, |run| (run.created(), Reverse(run.name())))
    }

    fn pods(&self, owner: &str) -> Vec<Object<'o>> {
        sorted(&self.pods, owner, |pod| (pod.created(), pod.name()))
    }
}

fn sorted<'o, K: Ord>(
    all: &BTreeMap<&'o str, Vec<Object<'o>>>,
    owner: &str,
    key: impl Fn(&Object<'o>) -> K,
) -> Vec<Object<'o>> {
    let mut found = all.get(owner).cloned().unwrap_or_default();
    found.sort_by_key(key);
    found
}

/// What decides which part a ReplicaSet plays.
#[derive(Clone, Copy)]
pub(super) struct Described<'r> {
    pub spec: &'r RolloutSpec,
    pub status: &'r RolloutStatus,
}

impl Described<'_> {
    /// The parts of one of the Rollout's own ReplicaSets, in the order in which they are shown.
    pub fn tags(self, set: &Object<'_>) -> Vec<Tag> {
        let (hash, status) = (set.hash(), self.status);
        let mut tags = Vec::new();
        if hash.is_empty() {
            return tags;
        }
        let is_stable = hash == status.stable_rs;
        tags.extend(is_stable.then_some(Tag::Stable));
        let Some(canary) = &self.spec.strategy.canary else {
            if hash == status.blue_green.active_selector {
                tags.push(Tag::Active);
            } else if hash == status.blue_green.preview_selector {
                tags.push(Tag::Preview);
            }
            return tags;
        };
        let is_canary = !is_stable && hash == status.current_pod_hash;
        tags.extend(is_canary.then_some(Tag::Canary));
        if canary.ping_pong.is_some() && (is_stable || is_canary) {
            let stable_is_ping = status.canary.stable_ping_pong == value::PING;
            tags.push(if is_stable == stable_is_ping { Tag::Ping } else { Tag::Pong });
        }
        tags
    }
}

/// A Rollout, its revisions from the newest, and what belongs to each.
pub(super) fn rollout(
    family: &Relatives<'_>,
    head: &Object<'_>,
    roles: Described<'_>,
    phase: &str,
) -> Node {
    let sets = family.replica_sets(head.uid());
    let experiments = family.experiments(head.uid());
    let runs = family.runs(head.uid());
    let all = sets.iter().chain(&experiments).chain(&runs);
    let revisions: BTreeSet<i64> = all.map(Object::revision).collect();
    let revisions = revisions.into_iter().rev().map(|number| {
        let is_here = |object: &&Object<'_>| object.revision() == number;
        let sets = sets.iter().filter(is_here);
        let sets = sets.map(|set| replica_set(family, set, roles.tags(set)));
        let experiments = experiments.iter().filter(is_here);
        let experiments = experiments.map(|object| experiment(family, object));
        let runs = runs.iter().filter(is_here).map(analysis_run);
        Node {
            kind: NodeKind::Revision,
            name: format!("revision:{number}"),
            status: String::new(),
            created: None,
            facts: Vec::new(),
            children: sets.chain(experiments).chain(runs).collect(),
        }
    });
    node(NodeKind::Rollout, head, phase, revisions.collect())
}

/// An Experiment, its ReplicaSets and its runs.
pub(super) fn experiment(family: &Relatives<'_>, head: &Object<'_>) -> Node {
    let mut sets = family.replica_sets(head.uid());
    sets.sort_by_key(|set| Reverse(set.revision()));
    let sets = sets.iter().map(|set| replica_set(family, set, Vec::new()));
    let runs = family.runs(head.uid());
    let children = sets.chain(runs.iter().map(analysis_run)).collect();
    node(NodeKind::Experiment, head, text(&head.part("status")["phase"]), children)
}

fn replica_set(family: &Relatives<'_>, set: &Object<'_>, tags: Vec<Tag>) -> Node {
    let pods = family.pods(set.uid()).iter().map(pod::node).collect();
    let deadline = set.annotation(annotation::SCALE_DOWN_DEADLINE);
    let deadline = deadline.and_then(|text| text.parse().ok()).map(Fact::ScaleDownAt);
    let facts = tags.into_iter().map(Fact::Tag).chain(deadline).collect();
    Node { facts, ..node(NodeKind::ReplicaSet, set, replica_set_status(set), pods) }
}

fn replica_set_status(set: &Object<'_>) -> &'static str {
    let size = set.part("spec")["replicas"].as_i64().unwrap_or(1);
    let conditions = set.part("status")["conditions"].as_array();
    let has_failed = conditions
        .into_iter()
        .flatten()
        .any(|known| known["type"] == condition::REPLICA_FAILURE && known["status"] == "True");
    if set.generation() > set.number("status", "observedGeneration") {
        "Progressing"
    } else if has_failed {
        "ReplicaFailure"
    } else if set.number("status", "availableReplicas") < size {
        "Progressing"
    } else if size == 0 {
        "ScaledDown"
    } else {
        "Healthy"
    }
}

fn analysis_run(run: &Object<'_>) -> Node {
    let status: AnalysisRunStatus = decode(run.part("status")).0;
    let sum = |outcome: Outcome| {
        let results = status.metric_results.iter().map(|result| match outcome {
            Outcome::Successful => result.successful,
            Outcome::Failed => result.failed,
            Outcome::Inconclusive => result.inconclusive,
            Outcome::Error => result.error,
        });
        let count = results.sum();
        (count > 0).then_some(Fact::Measured { outcome, count })
    };
    let outcomes = [Outcome::Successful, Outcome::Failed, Outcome::Inconclusive, Outcome::Error];
    let measurements = status.metric_results.iter().flat_map(|result| &result.measurements);
    let jobs = measurements.filter_map(|measurement| {
        let name = measurement.metadata.get(JOB_NAME)?;
        Some(Node {
            kind: NodeKind::Job,
            name: name.clone(),
            status: measurement.phase.clone(),
            created: measurement.started_at.map(|time| time.timestamp()),
            facts: Vec::new(),
            children: Vec::new(),
        })
    });
    let facts = outcomes.into_iter().filter_map(sum).collect();
    Node { facts, ..node(NodeKind::AnalysisRun, run, &status.phase, jobs.collect()) }
}

fn node(kind: NodeKind, object: &Object<'_>, status: &str, children: Vec<Node>) -> Node {
    Node {
        kind,
        name: object.name().to_owned(),
        status: status.to_owned(),
        created: object.created(),
        facts: Vec::new(),
        children,
    }
}
