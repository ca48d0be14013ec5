//! What an engine tells the loop: what it watches, which keys that wakes, and how its World is
//! gathered.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use gradus_api::names::label;
use gradus_engine::Engine;
use gradus_engine::ask::{Answer, AskId, Recall};
use gradus_engine::decision::{Event, Kind, ObjectRef};
use gradus_engine::frame::Frame;
use jiff::Timestamp;

use crate::queue::Grouped;
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

    /// The key of an object.
    pub fn of(object: &ObjectRef) -> Self {
        Key::new(&object.namespace, &object.name)
    }
}

/// Namespaces take turns: one with many objects does not delay the others.
impl Grouped for Key {
    type Group = Arc<str>;

    fn group(&self) -> Arc<str> {
        Arc::clone(&self.namespace)
    }
}

/// The objects of a kind that have these keys.
pub fn references_to<'k>(kind: &Kind, keys: impl Iterator<Item = &'k Key>) -> Vec<ObjectRef> {
    keys.map(|key| ObjectRef::new(kind.clone(), &key.namespace, &key.name)).collect()
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Which objects a watch shows. In one process there is one watch per selection, whoever wants it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Selection {
    /// Of this kind.
    pub kind: Kind,
    /// In this namespace, or in all.
    pub namespace: Option<String>,
    /// With these labels, as the API server reads selectors, or any.
    pub labels: Option<String>,
    /// Of each nothing but its metadata.
    pub metadata_alone: bool,
}

/// What a controller manages of the cluster, which narrows every selection, and whom it asks beyond it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Only these namespaces; none for all.
    pub namespaces: Vec<String>,
    /// Only objects of this instance; empty for those of none.
    pub instance_id: String,
    /// Are load balancers asked whether they split the traffic as they were told?
    pub verifies: bool,
    /// Where Jobs measure; none for the namespace of their run.
    pub job_namespace: Option<String>,
}

impl Scope {
    /// All objects of a kind.
    pub fn all(&self, kind: Kind) -> Selection {
        Selection { kind, namespace: None, labels: None, metadata_alone: false }
    }

    /// The objects of a kind with certain labels.
    pub fn labelled(&self, kind: Kind, labels: impl Into<String>) -> Selection {
        Selection { labels: Some(labels.into()), ..self.all(kind) }
    }

    /// The objects of a kind that are this instance's; of none where the id is empty.
    pub fn of_instance(&self, kind: Kind) -> Selection {
        let id = &self.instance_id;
        let ours = if id.is_empty() {
            format!("!{}", label::INSTANCE_ID)
        } else {
            format!("{}={id}", label::INSTANCE_ID)
        };
        self.labelled(kind, ours)
    }

    /// The same of a kind without namespaces, which a controller of some namespaces does not read.
    pub fn of_instance_in_cluster(&self, kind: Kind) -> Option<Selection> {
        self.namespaces.is_empty().then(|| self.of_instance(kind))
    }

    /// A selection as it is watched: once per namespace, or once for all of them.
    pub fn by_namespace(&self, selection: Selection) -> Vec<Selection> {
        if self.namespaces.is_empty() {
            return vec![selection];
        }
        let of = |namespace: &String| Selection {
            namespace: Some(namespace.clone()),
            ..selection.clone()
        };
        self.namespaces.iter().map(of).collect()
    }
}

/// What became of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach<'m> {
    /// A list is complete: what it did not show is not there.
    Listed,
    /// It cannot be read, in the server's words.
    Unreadable(&'m str),
}

/// What the index of an engine does with the objects of one source.
pub struct Shelf<I> {
    /// Takes in a new or changed object; returns the keys it wakes.
    pub apply: fn(&mut I, &Kind, &Frame) -> Vec<Key>,
    /// Forgets an object; returns the keys that wakes.
    pub remove: fn(&mut I, &ObjectRef) -> Vec<Key>,
    /// The version of an object that the index holds.
    pub version: fn(&I, &ObjectRef) -> Option<u64>,
    /// All objects of the kind that the index holds.
    pub objects: fn(&I, &Kind) -> Vec<ObjectRef>,
}

/// Something the metrics may show of one object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Measured<'m> {
    /// A reconcile took so long.
    Reconciled(Duration),
    /// A reconcile failed.
    Failed,
    /// A guard, by name, has held it for so many seconds; `None` once it is free.
    Held(Option<(&'m str, f64)>),
    /// An Event of this type and reason was made.
    Event(&'m str, &'m str),
}

/// How far the update of an object is, as log lines say it beside its name; nothing where there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// The Rollout it is, where it is one: people filter log lines by this field.
    pub rollout: Option<Arc<str>>,
    /// Its revision.
    pub revision: Option<String>,
    /// Its step, of how many.
    pub step: Option<String>,
    /// The part of the traffic that its new revision gets.
    pub weight: Option<i32>,
}

/// Shows what happens to the objects of one engine in the metrics.
pub type Meter = fn(&Metrics, &Key, Measured<'_>);

/// An engine that the loop can run: what it watches, and how its World comes out of an index.
pub trait Watched: Engine {
    /// What it remembers of the cluster, as slim views.
    type Index: Default;
    /// What it watches: an enum, so that [`Watched::shelf`] forgets none.
    type Source: Clone + Ord + fmt::Debug + 'static;

    /// An index that has seen nothing yet.
    fn index(_scope: &Scope) -> Self::Index {
        Self::Index::default()
    }

    /// What it always watches; nothing is decided before all of them are synced once.
    fn sources() -> Vec<Self::Source>;

    /// The kind of a source's objects.
    fn kind_of(source: &Self::Source) -> Kind;

    /// Which objects a source shows, in all namespaces; `None` where a controller of this scope does
    /// not read them. Then there are none.
    fn selection(source: &Self::Source, scope: &Scope) -> Option<Selection>;

    /// Where the objects of a source are kept.
    fn shelf(source: &Self::Source) -> Shelf<Self::Index>;

    /// Takes in an object whose spec could not be read, with what went wrong: an object of the engine's
    /// own kind whose status shall say so. Returns the keys that wakes.
    fn refuse(
        _index: &mut Self::Index,
        _source: &Self::Source,
        _frame: &Frame,
        _message: &str,
    ) -> Vec<Key> {
        Vec::new()
    }

    /// Further sources, which are watched once something in the index names an object of them.
    fn demands(_index: &Self::Index) -> Vec<Self::Source> {
        Vec::new()
    }

    /// Sources that are not watched always, and of which one list at the start says whether they must be:
    /// something of before this process may be left there that nobody names any more.
    fn surveys() -> Vec<Self::Source> {
        Vec::new()
    }

    /// Takes in what such a list has shown.
    fn survey(_index: &mut Self::Index, _source: &Self::Source, _objects: &[Frame]) {}

    /// Takes in that a source is listed, or cannot be read; returns the keys that wakes.
    fn reach(_index: &mut Self::Index, _source: &Self::Source, _reach: Reach<'_>) -> Vec<Key> {
        Vec::new()
    }

    /// An object that this key's World needs and that was shown before anybody named it: it is
    /// read first.
    fn unseen(_index: &Self::Index, _key: &Key) -> Option<(Self::Source, ObjectRef)> {
        None
    }

    /// The World of a key; `None` when its object is gone.
    fn gather(
        index: &Self::Index,
        key: &Key,
        answers: &BTreeMap<AskId, Answer>,
        recall: &Recall<Self::Memo>,
    ) -> Option<Self::World>;

    /// Must this object be acted on before others? (An abort.) Looked up, not gathered: it is asked of
    /// every key that something wakes.
    fn is_urgent(_index: &Self::Index, _key: &Key) -> bool {
        false
    }

    /// Shows an object of the engine's kind, or its end, in the metrics.
    fn publish(_index: &Self::Index, _key: &Key, _metrics: &Metrics, _now: Timestamp) {}

    /// Shows what happens to an object of the engine's kind in the metrics.
    fn measure(_metrics: &Metrics, _key: &Key, _measured: Measured<'_>) {}

    /// The line a person types to give an object a command that frees it.
    fn command_line(command: &str, key: &Key) -> String {
        format!("{command} {key}")
    }

    /// What log lines say beside an object, once its status is as decided.
    fn standing(_world: &Self::World, _decided: Option<&Self::Status>) -> Standing {
        Standing::default()
    }

    /// The Event that tells of an object's end.
    fn farewell(_object: &ObjectRef) -> Option<Event> {
        None
    }
}
