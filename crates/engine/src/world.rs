//! What may one decision about a Rollout look at? A snapshot: immutable, serializable, small.

mod digest;
mod replica_set;
mod rollout;
mod service;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use replica_set::{Deadline, Rare, ReplicaFailure, ReplicaSetView};
pub use rollout::{RolloutView, Spec};
pub use service::ServiceView;

use crate::ask::{Answer, AskId, Recall};
use crate::rollout::Memo;

/// Everything one decision about a Rollout may look at. A bug report is a World and a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct World {
    /// The Rollout.
    pub rollout: Arc<RolloutView>,
    /// Its ReplicaSets, by creation time, then name. Unknown while the watch is not synced.
    pub replica_sets: Known<Vec<Arc<ReplicaSetView>>>,
    /// The Services it names.
    #[serde(default)]
    pub services: BTreeMap<Arc<str>, Known<Arc<ServiceView>>>,
    /// What the outside has answered so far.
    pub answers: BTreeMap<AskId, Answer>,
    /// What the shell remembers of this Rollout.
    pub recall: Recall<Memo>,
}

/// What is known of something: it is there, it is not there, or nobody can tell now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Known<T> {
    /// It is there.
    Present(T),
    /// It is not there.
    Absent,
    /// Not synced, forbidden or away, in the server's words. Never treated as absent.
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
