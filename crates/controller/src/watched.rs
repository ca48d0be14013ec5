//! What does an engine need of the loop? Which kinds it watches, which keys they wake, its World.

use std::collections::BTreeMap;
use std::sync::Arc;

use gradus_api::names::label;
use gradus_engine::Engine;
use gradus_engine::ask::{Answer, AskId, Recall};
use gradus_engine::decision::{Event, Kind, ObjectRef};
use gradus_engine::frame::Frame;
use jiff::Timestamp;

use crate::telemetry::Metrics;

/// Which object of an engine's kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
}

impl Key {
    /// A key from its parts.
    pub fn new(namespace: &Arc<str>, name: &Arc<str>) -> Self {
        Key { namespace: Arc::clone(namespace), name: Arc::clone(name) }
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A kind to be watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    /// The kind.
    pub kind: Kind,
    /// Only objects with these labels, as the API server reads selectors.
    pub labels: Option<String>,
}

impl Watch {
    /// The objects of a kind that are one instance's; of none where the id is empty.
    pub fn of_instance(kind: Kind, instance_id: &str) -> Self {
        let ours = if instance_id.is_empty() {
            format!("!{}", label::INSTANCE_ID)
        } else {
            format!("{}={instance_id}", label::INSTANCE_ID)
        };
        Watch { kind, labels: Some(ours) }
    }
}

/// What became of the watch of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach<'m> {
    /// A list is complete: what it did not show is not there.
    Listed,
    /// It cannot be read, in the server's words.
    Unreadable(&'m str),
}

/// How a controller is named to the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reporter {
    /// Who reports Events: the name that users and tools filter by.
    pub component: &'static str,
    /// Who owns written fields, as `managedFields` shows it.
    pub manager: &'static str,
}

/// An engine that the loop can run: what it watches, and how its World comes out of an index.
pub trait Watched: Engine {
    /// What it remembers of the cluster, as slim views.
    type Index: Default;

    /// Who reports its Events and owns the fields it writes.
    const REPORTER: Reporter = Reporter { component: "rollouts-controller", manager: "gradus" };
    /// Are its passes, and what holds its objects, shown in the metrics of Rollouts?
    const IS_MEASURED: bool = false;

    /// The kinds it watches; nothing is decided before all of them are synced once.
    fn watches(instance_id: &str) -> Vec<Watch>;

    /// Has this kind no namespaces? Then a controller of one namespace does not see it.
    fn is_cluster_scoped(_kind: &Kind) -> bool {
        false
    }

    /// Further kinds that are watched once something in the index names an object of them.
    fn demands(_index: &Self::Index) -> Vec<Kind> {
        Vec::new()
    }

    /// Takes in that a kind is listed, or cannot be read; says which keys that wakes.
    fn reach(_index: &mut Self::Index, _kind: &Kind, _reach: Reach<'_>) -> Vec<Key> {
        Vec::new()
    }

    /// An object that this key's World needs and that has passed by unkept: it is read first.
    fn unseen(_index: &Self::Index, _key: &Key) -> Option<ObjectRef> {
        None
    }

    /// Is nothing of this kind needed but metadata? Then nothing else is ever sent: what a Secret
    /// holds stays where it is.
    fn needs_metadata_alone(_kind: &Kind) -> bool {
        false
    }

    /// Takes in a new or changed object; says which keys it wakes.
    fn apply(index: &mut Self::Index, kind: &Kind, frame: &Frame) -> Vec<Key>;

    /// Forgets an object; says which keys that wakes.
    fn remove(index: &mut Self::Index, object: &ObjectRef) -> Vec<Key>;

    /// The version of an object that the index holds.
    fn version(index: &Self::Index, object: &ObjectRef) -> Option<u64>;

    /// All objects of a kind that the index holds.
    fn objects(index: &Self::Index, kind: &Kind) -> Vec<ObjectRef>;

    /// The World of a key; `None` when its object is gone.
    fn gather(
        index: &Self::Index,
        key: &Key,
        answers: &BTreeMap<AskId, Answer>,
        recall: &Recall<Self::Memo>,
    ) -> Option<Self::World>;

    /// Must this World be acted on before others? (An abort.)
    fn is_urgent(_world: &Self::World) -> bool {
        false
    }

    /// Shows an object of the engine's kind, or its end, in the metrics.
    fn publish(_index: &Self::Index, _key: &Key, _metrics: &Metrics, _now: Timestamp) {}

    /// The Event that tells of an object's end.
    fn farewell(_object: &ObjectRef) -> Option<Event> {
        None
    }
}
