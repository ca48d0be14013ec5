//! What may one decision about a Rollout look at? A snapshot: immutable, serializable, small.

mod digest;
mod pod;
mod replica_set;
mod rollout;
mod run;
mod service;
mod template;
mod workload;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use digest::Pair;
pub use pod::PodView;
pub use replica_set::{Deadline, Rare, ReplicaFailure, ReplicaSetView};
pub use rollout::{Origin, RolloutView, Spec};
pub use run::{ExperimentPods, ExperimentSet, RunPhase, RunView};
pub use service::ServiceView;
pub use template::TemplateView;
pub use workload::WorkloadView;

use crate::ask::{Answer, AskId, Recall};
use crate::decision::ObjectRef;
use crate::rollout::Memo;

/// Everything one decision about a Rollout may look at. A bug report is a World and a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct World {
    /// The Rollout.
    pub rollout: Arc<RolloutView>,
    /// Its ReplicaSets, by creation time, then name. Unknown while the watch is not synced.
    pub replica_sets: Known<Vec<Arc<ReplicaSetView>>>,
    /// ReplicaSets without a controller that match its selector.
    #[serde(default)]
    pub orphans: Vec<Arc<ReplicaSetView>>,
    /// The Services it names.
    #[serde(default)]
    pub services: BTreeMap<Arc<str>, Known<Arc<ServiceView>>>,
    /// The objects it names for the routing of its traffic.
    #[serde(default)]
    pub routes: Vec<Route>,
    /// AnalysisRuns it controls, by name.
    #[serde(default)]
    pub runs: Known<Vec<Arc<RunView>>>,
    /// Experiments it controls, by name.
    #[serde(default)]
    pub experiments: Known<Vec<Arc<RunView>>>,
    /// The ReplicaSets of these Experiments.
    #[serde(default)]
    pub experiment_sets: Vec<Arc<ExperimentSet>>,
    /// The AnalysisTemplates it names, and those that these name.
    #[serde(default)]
    pub templates: Templates,
    /// The workload it refers to, if it refers to one.
    #[serde(default)]
    pub workload: Option<Known<WorkloadView>>,
    /// Are load balancers asked whether they split the traffic as they were told?
    #[serde(default)]
    pub verifies: bool,
    /// What the outside has answered so far.
    pub answers: BTreeMap<AskId, Answer>,
    /// What the shell remembers of this Rollout.
    pub recall: Recall<Memo>,
}

/// An object that routes traffic, whole: routers know their own kinds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Route {
    /// Which object.
    pub object: ObjectRef,
    /// It, if it is there.
    pub known: Known<Arc<Value>>,
}

/// The templates of an analysis, there or not, by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Templates {
    /// AnalysisTemplates of the namespace.
    pub namespaced: BTreeMap<Arc<str>, Known<Arc<TemplateView>>>,
    /// ClusterAnalysisTemplates.
    pub cluster: BTreeMap<Arc<str>, Known<Arc<TemplateView>>>,
}

/// What is known of something: it is there, it is not there, or nobody can tell now.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Known<T> {
    /// It is there.
    Present(T),
    /// It is not there.
    #[default]
    Absent,
    /// Not synced, forbidden or away, in the server's words, empty while it has said nothing yet.
    /// Never treated as absent.
    Unknown(String),
}

impl<T> Known<T> {
    /// The thing, if it is there.
    pub fn present(&self) -> Option<&T> {
        match self {
            Known::Present(thing) => Some(thing),
            Known::Absent | Known::Unknown(_) => None,
        }
    }
}

/// What keeps a Rollout from using an object it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// The spec or the object is at fault: the field error.
    Invalid(String),
    /// It cannot be read now, in the server's words.
    Unreadable(String),
}
