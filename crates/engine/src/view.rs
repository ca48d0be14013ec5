//! What does a person see of a Rollout or an Experiment? Its summary and the tree of its objects,
//! without a word on how they are printed.

mod images;
mod object;
mod plugins;
mod pod;
mod standing;
mod tree;

#[cfg(test)]
mod tests;

use gradus_api::decode::decode;
use gradus_api::experiment::ExperimentStatus;
use gradus_api::rollout::{RolloutSpec, RolloutStatus};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

pub use images::{Image, ImageTag};
use object::Object;
pub use standing::{phase, set_weight, step};

/// The objects of one namespace that a view is made of, as the API server shows them.
#[derive(Clone, Debug, Default)]
pub struct NamespaceObjects {
    /// ReplicaSets of anybody.
    pub replica_sets: Vec<Value>,
    /// Pods of anybody.
    pub pods: Vec<Value>,
    /// Experiments of anybody.
    pub experiments: Vec<Value>,
    /// AnalysisRuns of anybody.
    pub analysis_runs: Vec<Value>,
}

/// A Rollout at a glance.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RolloutSummary {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// How it stands.
    pub phase: String,
    /// Why.
    pub message: String,
    /// How it changes.
    pub strategy: Option<StrategyName>,
    /// What only a canary has.
    pub canary: Option<CanarySummary>,
    /// What runs, sorted by image.
    pub images: Vec<Image>,
    /// Pods wanted.
    pub desired: i32,
    /// Pods there are.
    pub current: i32,
    /// Pods of the new revision.
    pub updated: i32,
    /// Ready pods.
    pub ready: i32,
    /// Available pods.
    pub available: i32,
    /// The Rollout and everything below it.
    pub tree: Node,
}

/// What only a canary has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CanarySummary {
    /// `2/5`; empty where no step has begun.
    pub step: String,
    /// The weight that the steps ask for.
    pub set_weight: i32,
    /// The weight that is reached.
    pub actual_weight: i32,
    /// Plugins of steps, while the update that they are called for is not through.
    pub plugins: Vec<PluginSummary>,
}

/// What is known of one call of a step's plugin.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PluginSummary {
    /// The plugin.
    pub name: String,
    /// Its step, from 1.
    pub step: i32,
    /// `Run`, `Terminate` or `Abort`.
    pub operation: String,
    /// What it said it is; empty where it has not answered.
    pub phase: String,
    /// What it said.
    pub message: String,
    /// When it was called first.
    pub since: Option<Timestamp>,
    /// When it is called next, if it is to be.
    pub next: Option<Timestamp>,
}

/// An Experiment at a glance.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExperimentSummary {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// How it stands; empty before a controller has seen it.
    pub phase: String,
    /// Why.
    pub message: String,
    /// What runs, sorted by image.
    pub images: Vec<Image>,
    /// The Experiment and everything below it.
    pub tree: Node,
}

/// A strategy by the name people see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum StrategyName {
    /// Step by step.
    Canary,
    /// Two full sets of pods and a switch.
    BlueGreen,
}

/// One object of a tree.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Node {
    /// What it is.
    pub kind: NodeKind,
    /// Its name.
    pub name: String,
    /// How it stands; empty where that cannot be said.
    pub status: String,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// What else there is to know, in the order in which it is shown.
    pub facts: Vec<Fact>,
    /// What belongs to it.
    pub children: Vec<Node>,
}

/// What a node of a tree stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum NodeKind {
    /// A Rollout.
    Rollout,
    /// Everything of one revision.
    Revision,
    /// A ReplicaSet.
    ReplicaSet,
    /// A Pod.
    Pod,
    /// A Job that measures.
    Job,
    /// An Experiment.
    Experiment,
    /// An AnalysisRun.
    AnalysisRun,
}

/// Something to know about a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Fact {
    /// The part it plays.
    Tag(Tag),
    /// It is scaled down at this moment.
    ScaleDownAt(Timestamp),
    /// So many of its containers are ready.
    Ready {
        /// Ready ones.
        ready: usize,
        /// All.
        all: usize,
    },
    /// Its containers were restarted so often.
    Restarts(i64),
    /// Measurements that ended so.
    Measured {
        /// How they ended.
        outcome: Outcome,
        /// How many.
        count: i32,
    },
}

/// The part a ReplicaSet plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Tag {
    /// The new revision of a canary.
    Canary,
    /// The revision that is returned to.
    Stable,
    /// The active Service selects it.
    Active,
    /// The preview Service selects it.
    Preview,
    /// The ping Service selects it.
    Ping,
    /// The pong Service selects it.
    Pong,
}

impl Tag {
    /// As people see it.
    pub fn name(self) -> &'static str {
        match self {
            Tag::Canary => "canary",
            Tag::Stable => "stable",
            Tag::Active => "active",
            Tag::Preview => "preview",
            Tag::Ping => "ping",
            Tag::Pong => "pong",
        }
    }
}

/// How measurements ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Outcome {
    /// Good.
    Successful,
    /// Bad.
    Failed,
    /// Undecided.
    Inconclusive,
    /// Not measured.
    Error,
}

/// A Rollout and what belongs to it.
pub fn rollout(rollout: &Value, objects: &NamespaceObjects) -> RolloutSummary {
    let head = Object::new(rollout);
    let spec: RolloutSpec = decode(&rollout["spec"]).0;
    let status: RolloutStatus = decode(&rollout["status"]).0;
    let family = tree::Relatives::of(&head, objects);
    let roles = tree::Described { spec: &spec, status: &status };
    let sets = family.replica_sets(head.uid());
    let (phase, message) = standing::phase(head.generation(), &spec, &status);
    RolloutSummary {
        name: head.name().to_owned(),
        namespace: head.namespace().to_owned(),
        strategy: strategy(&spec),
        canary: spec.strategy.canary.as_ref().map(|canary| CanarySummary {
            step: standing::step(&spec, &status).unwrap_or_default(),
            set_weight: standing::set_weight(canary, &status),
            actual_weight: standing::actual_weight(canary, &status, canary_available(roles, &sets)),
            plugins: plugins::of(&spec, &status),
        }),
        images: images::of_rollout(&family, &head, roles),
        desired: spec.replicas_or_default(),
        current: status.replicas,
        updated: status.updated_replicas,
        ready: status.ready_replicas,
        available: status.available_replicas,
        tree: tree::rollout(&family, &head, roles, &phase),
        phase,
        message,
    }
}

/// An Experiment and what belongs to it.
pub fn experiment(experiment: &Value, objects: &NamespaceObjects) -> ExperimentSummary {
    let head = Object::new(experiment);
    let status: ExperimentStatus = decode(&experiment["status"]).0;
    let family = tree::Relatives::of(&head, objects);
    ExperimentSummary {
        name: head.name().to_owned(),
        namespace: head.namespace().to_owned(),
        images: images::of_experiment(&family, &head),
        tree: tree::experiment(&family, &head),
        phase: status.phase,
        message: status.message,
    }
}

/// The strategy of a spec; none where it names neither.
pub fn strategy(spec: &RolloutSpec) -> Option<StrategyName> {
    match (&spec.strategy.canary, &spec.strategy.blue_green) {
        (Some(_), _) => Some(StrategyName::Canary),
        (None, Some(_)) => Some(StrategyName::BlueGreen),
        (None, None) => None,
    }
}

fn canary_available(roles: tree::Described<'_>, sets: &[Object<'_>]) -> i64 {
    let canary = sets.iter().find(|set| roles.tags(set).contains(&Tag::Canary));
    canary.map_or(0, |set| set.number("status", "availableReplicas"))
}
