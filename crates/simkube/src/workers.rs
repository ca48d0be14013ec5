//! Who works in this cluster besides its users, and who has something to do? Workers are woken by
//! writes and by time, and handle one object per step, so that a scheduler can put anything
//! between two steps.

mod deployment;
mod job;
mod namespace;
mod pod;
mod queue;
mod replica_set;
mod stateful_set;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;

use crate::kinds::KindId;
use crate::object::{Key, Object, OwnerReference};
use crate::store::Place;
use crate::verbs::{FOREGROUND, ORPHAN};
use crate::{NODE, SimCluster};

use pod::Timelines;
use queue::Queue;
use replica_set::Replicas;

/// The longest chain of steps [`SimCluster::settle`] follows before it calls it a circle.
const MOST_STEPS: usize = 1_000_000;

/// One who works in the cluster by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Actor {
    /// Makes a ReplicaSet for each template of a Deployment, and moves its pods there.
    Deployments,
    /// Makes as many pods as each ReplicaSet wants, and counts them.
    ReplicaSets,
    /// Makes the pods of each StatefulSet in order, with names and claims of their own.
    StatefulSets,
    /// Makes the pods of each Job one after another, until it has ended.
    Jobs,
    /// The kubelet: starts and stops pods as their images behave.
    Pods,
    /// Deletes what has lost its owners.
    Garbage,
    /// Empties namespaces that are being deleted.
    Namespaces,
}

impl Actor {
    /// All of them, in the order in which an undisturbed cluster lets them work: who counts pods
    /// comes after the kubelet, and counts once what has happened to many.
    pub const ALL: [Self; 7] = [
        Self::Deployments,
        Self::Pods,
        Self::ReplicaSets,
        Self::StatefulSets,
        Self::Jobs,
        Self::Garbage,
        Self::Namespaces,
    ];
}

/// What the workers have still to look at.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    pub(crate) deployments: Queue,
    pub(crate) replica_sets: Queue,
    pub(crate) stateful_sets: Queue,
    pub(crate) jobs: Queue,
    pub(crate) pods: Queue,
    pub(crate) garbage: BTreeSet<Place>,
    pub(crate) namespaces: Queue,
    pub(crate) timelines: Timelines,
    pub(crate) replicas: Replicas,
    pub(crate) users: Users,
}

/// The names under which the workers write, and the node's.
#[derive(Clone, Debug)]
pub(crate) struct Users {
    pub(crate) deployments: Arc<str>,
    pub(crate) replica_sets: Arc<str>,
    pub(crate) stateful_sets: Arc<str>,
    pub(crate) jobs: Arc<str>,
    pub(crate) pods: Arc<str>,
    pub(crate) garbage: Arc<str>,
    pub(crate) namespaces: Arc<str>,
    pub(crate) node: Arc<str>,
}

impl Default for Work {
    fn default() -> Self {
        Self {
            deployments: Queue::default(),
            replica_sets: Queue::default(),
            stateful_sets: Queue::default(),
            jobs: Queue::default(),
            pods: Queue::default(),
            garbage: BTreeSet::new(),
            namespaces: Queue::default(),
            timelines: Timelines::default(),
            replicas: Replicas::default(),
            users: Users {
                deployments: "deployment-controller".into(),
                replica_sets: "replicaset-controller".into(),
                stateful_sets: "statefulset-controller".into(),
                jobs: "job-controller".into(),
                pods: "kubelet".into(),
                garbage: "garbage-collector".into(),
                namespaces: "namespace-controller".into(),
                node: NODE.into(),
            },
        }
    }
}

impl SimCluster {
    /// Who has something to do at `now`.
    pub fn runnable(&self, now: Timestamp) -> impl Iterator<Item = Actor> {
        Actor::ALL.into_iter().filter(move |actor| match actor {
            Actor::Deployments => self.work.deployments.has_work(now),
            Actor::ReplicaSets => self.work.replica_sets.has_work(now),
            Actor::StatefulSets => self.work.stateful_sets.has_work(now),
            Actor::Jobs => self.work.jobs.has_work(now),
            Actor::Pods => self.work.pods.has_work(now),
            Actor::Garbage => !self.work.garbage.is_empty(),
            Actor::Namespaces => self.work.namespaces.has_work(now),
        })
    }

    /// Lets an actor handle one object. False if it had nothing to do.
    pub fn step(&mut self, actor: Actor, now: Timestamp) -> bool {
        match actor {
            Actor::Deployments => match self.work.deployments.take(now) {
                Some(key) => self.sync_deployment(&key, now),
                None => return false,
            },
            Actor::ReplicaSets => match self.work.replica_sets.take(now) {
                Some(key) => self.sync_replica_set(&key, now),
                None => return false,
            },
            Actor::StatefulSets => match self.work.stateful_sets.take(now) {
                Some(key) => self.sync_stateful_set(&key, now),
                None => return false,
            },
            Actor::Jobs => match self.work.jobs.take(now) {
                Some(key) => self.sync_job(&key, now),
                None => return false,
            },
            Actor::Pods => match self.work.pods.take(now) {
                Some(key) => self.sync_pod(&key, now),
                None => return false,
            },
            Actor::Garbage => match self.work.garbage.pop_first() {
                Some(place) => self.collect(&place, now),
                None => return false,
            },
            Actor::Namespaces => match self.work.namespaces.take(now) {
                Some(key) => self.sync_namespace(&key, now),
                None => return false,
            },
        }
        true
    }

    /// Lets all actors work in fixed order until nothing is left to do at `now`.
    pub fn settle(&mut self, now: Timestamp) {
        let mut steps = 0;
        loop {
            let before = steps;
            for actor in Actor::ALL {
                while self.step(actor, now) {
                    steps += 1;
                    assert!(steps < MOST_STEPS, "{actor:?} and the others never come to rest");
                }
            }
            if steps == before {
                return;
            }
        }
    }

    /// The next moment at which something changes by itself.
    pub fn next_due(&self) -> Option<Timestamp> {
        let Work { deployments, replica_sets, stateful_sets, jobs, pods, .. } = &self.work;
        let due = [deployments, replica_sets, stateful_sets, jobs, pods].map(Queue::next_due);
        due.into_iter().flatten().min()
    }

    /// Tells the workers what was written.
    pub(crate) fn notice(&mut self, before: Option<&Arc<Object>>, after: Option<&Arc<Object>>) {
        let Some(object) = after.or(before) else { return };
        let is_there = after.is_some();
        let Work { deployments, replica_sets, stateful_sets, jobs, pods, namespaces, .. } =
            &mut self.work;
        match object.kind {
            KindId::DEPLOYMENT if is_there => deployments.mark(object.key()),
            KindId::DEPLOYMENT => deployments.forget(&object.key()),
            KindId::REPLICA_SET if is_there => replica_sets.mark(object.key()),
            KindId::REPLICA_SET => {
                replica_sets.forget(&object.key());
                self.work.replicas.forget(&object.meta.uid);
            }
            KindId::STATEFUL_SET if is_there => stateful_sets.mark(object.key()),
            KindId::STATEFUL_SET => stateful_sets.forget(&object.key()),
            KindId::JOB if is_there => jobs.mark(object.key()),
            KindId::JOB => jobs.forget(&object.key()),
            KindId::POD if is_there => pods.mark(object.key()),
            KindId::POD => {
                pods.forget(&object.key());
                self.work.timelines.forget_pod(&object.key());
            }
            KindId::NAMESPACE if is_there && object.meta.deleting.is_some() => {
                namespaces.mark(object.key());
            }
            _ => {}
        }
        self.notice_others(before, after);
    }

    /// Tells those who do not look after the object itself, but after what it belongs to, or what
    /// belongs to it.
    pub(crate) fn notice_others(
        &mut self,
        before: Option<&Arc<Object>>,
        after: Option<&Arc<Object>>,
    ) {
        let Some(object) = after.or(before) else { return };
        match object.kind {
            KindId::REPLICA_SET if !self.store.is_bare(KindId::DEPLOYMENT) => {
                self.notice_deployment(before);
                self.notice_deployment(after);
            }
            KindId::POD => self.notice_sets(before, after),
            _ => {}
        }
        self.notice_owners(before, after);
        if after.is_none() {
            self.notice_emptied(object);
        }
    }

    /// The Deployment of a ReplicaSet counts again.
    fn notice_deployment(&mut self, set: Option<&Arc<Object>>) {
        let Some(owner) = set.and_then(|set| set.controller()) else { return };
        if let Some(place) = self.store.place(&owner.uid)
            && place.kind == KindId::DEPLOYMENT
        {
            self.work.deployments.mark(place.key.clone());
        }
    }

    /// The sets a pod belonged to and belongs to count again.
    fn notice_sets(&mut self, before: Option<&Arc<Object>>, after: Option<&Arc<Object>>) {
        let Some(pod) = after.or(before) else { return };
        let owner = after.and_then(|pod| pod.controller());
        let has_moved =
            |old: &&Arc<Object>| after.is_none_or(|new| !Arc::ptr_eq(&old.meta, &new.meta));
        let old_owner = before.filter(has_moved).and_then(|pod| pod.controller());
        for owner in [owner, old_owner].into_iter().flatten() {
            if let Some(key) = self.replica_set_of(pod, owner) {
                self.work.replica_sets.mark(key);
            }
        }
        if !self.store.is_bare(KindId::JOB)
            && let Some(owner) = owner.or(old_owner)
            && let Some(place) = self.store.place(&owner.uid)
            && place.kind == KindId::JOB
        {
            self.work.jobs.mark(place.key.clone());
        }
        let key = pod.key();
        if !self.store.is_bare(KindId::STATEFUL_SET)
            && let Some(set) = stateful_set::set_of(&key)
            && self.store.get(KindId::STATEFUL_SET, &set).is_some()
        {
            self.work.stateful_sets.mark(set);
        }
        let is_orphan = owner.is_none() && after.is_some();
        self.work.replicas.note_orphan(key, is_orphan);
        if is_orphan {
            // Nobody manages it: every ReplicaSet around may want it.
            let around = self.store.list(KindId::REPLICA_SET, &pod.meta.namespace);
            let keys: Vec<_> = around.map(|one| one.key()).collect();
            keys.into_iter().for_each(|key| self.work.replica_sets.mark(key));
        }
    }

    /// The ReplicaSet that owns a pod: the one of that name, unless the reference is mistaken.
    fn replica_set_of(&self, pod: &Object, owner: &OwnerReference) -> Option<Key> {
        let named = Key { namespace: pod.meta.namespace.clone(), name: owner.name.clone() };
        let found = self.store.get(KindId::REPLICA_SET, &named);
        if found.is_some_and(|found| found.meta.uid == owner.uid) {
            return Some(named);
        }
        let place = self.store.place(&owner.uid);
        place.filter(|place| place.kind == KindId::REPLICA_SET).map(|place| place.key.clone())
    }

    fn notice_owners(&mut self, before: Option<&Arc<Object>>, after: Option<&Arc<Object>>) {
        match (before, after) {
            (Some(before), None) => {
                let dependents = self.store.owned_by(&before.meta.uid).cloned();
                self.work.garbage.extend(dependents);
                // Owners that go in the foreground wait for this one.
                for owner in &before.meta.owners {
                    self.work.garbage.extend(self.store.place(&owner.uid).cloned());
                }
            }
            (before, Some(after)) => {
                let meta = &after.meta;
                if before.is_some_and(|before| Arc::ptr_eq(&before.meta, meta)) {
                    return;
                }
                let is_waiting = meta.deleting.is_some()
                    && meta.finalizers.iter().any(|name| name == FOREGROUND || name == ORPHAN);
                // An owner elsewhere is as good as none; which it is, the collector finds out.
                let is_near = |owner: &OwnerReference| {
                    self.store.place(&owner.uid).is_some_and(|place| {
                        place.key.name == owner.name
                            && (place.key.namespace == meta.namespace
                                || place.key.namespace.is_empty())
                    })
                };
                let is_lost = !meta.owners.iter().all(is_near);
                if is_waiting || is_lost {
                    self.work.garbage.insert(after.place());
                }
            }
            (None, None) => {}
        }
    }

    fn notice_emptied(&mut self, gone: &Object) {
        let namespace = &gone.meta.namespace;
        if namespace.is_empty() {
            return;
        }
        if let Some(around) = self.get(KindId::NAMESPACE, "", namespace)
            && around.meta.deleting.is_some()
        {
            let key = around.key();
            self.work.namespaces.mark(key);
        }
    }
}
