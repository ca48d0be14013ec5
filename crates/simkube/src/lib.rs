//! A Kubernetes cluster in memory: API server, controllers and kubelet, single-threaded and
//! deterministic. It reads no clock (`now` is an argument), rolls no dice (names and uids come
//! from counters) and knows nothing about rollouts.

pub mod behave;
pub mod conformance;
pub mod error;
pub mod kinds;
pub mod object;
pub mod patch;
pub mod pod_status;
pub mod request;
pub mod review;
pub mod schema;
pub mod selector;
pub mod server;
pub mod service;
pub mod traffic;

mod admit;
mod collect;
mod discovery;
mod openapi;
mod path;
mod store;
mod table;
mod verbs;
mod workers;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;

use crate::behave::Behaviours;
use crate::kinds::{KindId, Kinds};
use crate::object::{Key, Object};
use crate::request::Verb;
use crate::store::Store;
use crate::workers::Work;

pub use crate::admit::Denial;
pub use crate::error::ApiError;
pub use crate::request::{
    Content, FieldValidation, List, Options, PatchKind, Propagation, Reply, Request, Subresource,
};
pub use crate::store::{Change, Event, Gone, Place, Write};
pub use crate::table::age;
pub use crate::workers::Actor;

/// The one node every pod runs on.
pub const NODE: &str = "node-1";

/// A cluster. Cloning is cheap: a prepared one is cloned for every run.
#[derive(Clone, Debug)]
pub struct SimCluster {
    kinds: Arc<Kinds>,
    store: Store,
    behaviours: Arc<Behaviours>,
    work: Work,
    /// What admission refuses.
    denials: Vec<Denial>,
    /// What uids, generated names and addresses are counted from.
    counter: u64,
}

impl SimCluster {
    /// A cluster with one node and the namespaces `default` and `kube-system`.
    pub fn new(behaviours: Behaviours, now: Timestamp) -> Self {
        let mut cluster = Self {
            kinds: Arc::new(Kinds::default()),
            store: Store::default(),
            behaviours: Arc::new(behaviours),
            work: Work::default(),
            denials: Vec::new(),
            counter: 0,
        };
        cluster.store.widen(cluster.kinds.count());
        for namespace in ["default", "kube-system"] {
            let body = json!({ "metadata": { "name": namespace } });
            cluster.found(KindId::NAMESPACE, body, now);
        }
        cluster.found(KindId::NODE, json!({ "metadata": { "name": NODE } }), now);
        cluster
    }

    /// The kinds it knows.
    pub fn kinds(&self) -> &Arc<Kinds> {
        &self.kinds
    }

    /// The version of the last write, `metadata.resourceVersion` of a list made now.
    pub fn version(&self) -> u64 {
        self.store.version()
    }

    /// One object as it is now.
    pub fn get(&self, kind: KindId, namespace: &str, name: &str) -> Option<&Arc<Object>> {
        self.store.get(self.kinds.get(kind).stored_as, &Key::new(namespace, name))
    }

    /// The object at this place as it is now.
    pub fn at(&self, place: &Place) -> Option<&Arc<Object>> {
        self.store.get(self.kinds.get(place.kind).stored_as, &place.key)
    }

    /// All objects of a kind in one namespace, or in all (`""`), sorted by namespace and name.
    pub fn list<'a>(
        &'a self,
        kind: KindId,
        namespace: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Object>> {
        self.store.list(self.kinds.get(kind).stored_as, namespace)
    }

    /// The object with this uid.
    pub fn by_uid(&self, uid: &str) -> Option<&Arc<Object>> {
        let place = self.store.place(uid)?;
        self.store.get(place.kind, &place.key)
    }

    /// What names the object with this uid as an owner.
    pub fn owned_by(&self, uid: &str) -> impl Iterator<Item = &Arc<Object>> {
        self.store.dependents(uid)
    }

    /// What happened to a kind after a version: what a watch sends. The events carry the stored
    /// version of the kind; see [`Object::as_kind`].
    pub fn events_after(
        &self,
        kind: KindId,
        version: u64,
    ) -> Result<impl Iterator<Item = &Event>, Gone> {
        self.store.events_after(self.kinds.get(kind).stored_as, version)
    }

    /// Would [`SimCluster::events_after`] have something to tell?
    #[inline]
    pub fn has_events_after(&self, kind: KindId, version: u64) -> bool {
        self.store.has_events_after(self.kinds.get(kind).stored_as, version)
    }

    /// The last accepted write.
    pub fn last_write(&self) -> Option<&Write> {
        self.store.last_write()
    }

    /// The accepted writes after a version, oldest first; the log of writes is bounded.
    pub fn writes_after(&self, version: u64) -> impl Iterator<Item = &Write> {
        self.store.writes_after(version)
    }

    /// Forgets the past: every watch that asks for it gets 410.
    pub fn compact(&mut self) {
        self.store.compact();
    }

    /// Forgets what has happened up to a version that everybody who watches has seen.
    pub fn forget_until(&mut self, version: u64) {
        self.store.forget_until(version);
    }

    /// Forgets what has happened up to a version: who asks for it gets 410.
    pub(crate) fn forget_all_until(&mut self, version: u64) {
        self.store.forget_all_until(version);
    }

    /// Takes out what was last written at a version or before it, without asking anybody: so
    /// Events end.
    pub(crate) fn expire(&mut self, kind: KindId, version: u64) {
        let is_old = |object: &&Arc<Object>| object.version <= version;
        let old: Vec<_> = self.list(kind, "").filter(is_old).cloned().collect();
        let nobody = Arc::default();
        for object in old {
            self.take(&object, Verb::Delete, &nobody);
        }
    }

    /// How images behave in pods made from now on; pods that run already stay as they are.
    pub fn set_behaviours(&mut self, behaviours: Behaviours) {
        self.behaviours = Arc::new(behaviours);
        self.work.timelines.forget_specs();
    }

    /// From now on admission refuses this, as a LimitRange or a webhook would.
    pub fn deny(&mut self, denial: Denial) {
        self.denials.push(denial);
    }

    /// How images behave.
    pub fn behaviours(&self) -> &Arc<Behaviours> {
        &self.behaviours
    }

    fn found(&mut self, kind: KindId, body: serde_json::Value, now: Timestamp) {
        let request = Request::create(kind, "", body);
        self.call(&request, now).expect("the first objects of a cluster are well formed");
    }

    fn count(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    /// Stores a new object, or a new state of one, and tells the workers.
    fn put(&mut self, object: Object, verb: Verb, user: &Arc<str>) -> Arc<Object> {
        let (before, after) = self.store.put(object, verb, user);
        self.notice(before.as_ref(), Some(&after));
        after
    }

    /// The same for a worker that writes what it looks after: it knows what it wrote.
    fn put_own(&mut self, object: Object, verb: Verb, user: &Arc<str>) -> Arc<Object> {
        let (before, after) = self.store.put(object, verb, user);
        self.notice_others(before.as_ref(), Some(&after));
        after
    }

    /// Takes an object out and tells the workers.
    fn take(&mut self, before: &Arc<Object>, verb: Verb, user: &Arc<str>) -> Arc<Object> {
        let last = self.store.take(before, verb, user);
        self.notice(Some(before), None);
        last
    }
}
