//! What does the controller remember of Rollouts, their ReplicaSets and Services, and which keys do
//! these wake?

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gradus_api::names;
use gradus_engine::ask::{Answer, AskId, Recall};
use gradus_engine::decision::{After, Event, EventKind, Kind, ObjectRef};
use gradus_engine::frame::Frame;
use gradus_engine::kinds;
use gradus_engine::rollout::{Memo, Rollouts, services};
use gradus_engine::uid::Uid;
use gradus_engine::world::{Known, ReplicaSetView, RolloutView, ServiceView, World};
use jiff::Timestamp;

use crate::telemetry::{Metrics, RolloutFigures};
use crate::watched::{Key, Watch, Watched};

/// Slim views of Rollouts and of the ReplicaSets they control.
#[derive(Default)]
pub struct RolloutIndex {
    rollouts: BTreeMap<Key, Arc<RolloutView>>,
    /// By owner, then by name: a Rollout finds its own without looking at others.
    sets: BTreeMap<Uid, BTreeMap<Arc<str>, Arc<ReplicaSetView>>>,
    /// Owner (uid and name) of each ReplicaSet that is held.
    owners: BTreeMap<Key, (Uid, Arc<str>)>,
    services: BTreeMap<Key, Arc<ServiceView>>,
    /// Which Rollouts name a Service.
    users: BTreeMap<Key, BTreeSet<Arc<str>>>,
}

impl RolloutIndex {
    /// A Rollout.
    pub fn rollout(&self, key: &Key) -> Option<&Arc<RolloutView>> {
        self.rollouts.get(key)
    }

    /// All Rollouts, by namespace and name.
    pub fn rollouts(&self) -> impl Iterator<Item = (&Key, &Arc<RolloutView>)> {
        self.rollouts.iter()
    }

    fn set(&self, key: &Key) -> Option<&Arc<ReplicaSetView>> {
        let (owner, _) = self.owners.get(key)?;
        self.sets.get(owner)?.get(&key.name)
    }

    fn apply_set(&mut self, frame: &Frame) -> Vec<Key> {
        let key = Key::new(&frame.meta.namespace, &frame.meta.name);
        let earlier = self.set(&key).cloned();
        let mut woken = self.remove_set(&key);
        let owner = frame.meta.controller().filter(|owner| owner.kind == names::kind::ROLLOUT);
        let Some(owner) = owner else { return woken };
        let view = Arc::new(ReplicaSetView::read(frame, earlier.as_deref()));
        let rollout =
            Key { namespace: Arc::clone(&key.namespace), name: owner.name.as_str().into() };
        self.sets.entry(owner.uid).or_default().insert(Arc::clone(&view.name), view);
        let rollout_name = match self.rollouts.get_key_value(&rollout) {
            Some((known, _)) => Arc::clone(&known.name),
            None => Arc::clone(&rollout.name),
        };
        self.owners.insert(key, (owner.uid, rollout_name));
        if !woken.contains(&rollout) {
            woken.push(rollout);
        }
        woken
    }

    fn remove_set(&mut self, key: &Key) -> Vec<Key> {
        let Some((uid, rollout)) = self.owners.remove(key) else { return Vec::new() };
        if let Some(sets) = self.sets.get_mut(&uid) {
            sets.remove(&key.name);
            if sets.is_empty() {
                self.sets.remove(&uid);
            }
        }
        vec![Key { namespace: Arc::clone(&key.namespace), name: rollout }]
    }

    /// A Rollout, and which Services it names.
    fn apply_rollout(&mut self, frame: &Frame) -> Vec<Key> {
        let key = Key::new(&frame.meta.namespace, &frame.meta.name);
        let earlier = self.rollouts.get(&key).cloned();
        let view = Arc::new(RolloutView::read(frame, earlier.as_deref()));
        let is_same = earlier.as_ref().is_some_and(|known| Arc::ptr_eq(&known.spec, &view.spec));
        if !is_same {
            self.forget_user(&key);
            for named in services::references(&view.spec.fields) {
                let service =
                    Key { namespace: Arc::clone(&key.namespace), name: named.name.into() };
                self.users.entry(service).or_default().insert(Arc::clone(&key.name));
            }
        }
        self.rollouts.insert(key.clone(), view);
        vec![key]
    }

    fn remove_rollout(&mut self, key: &Key) -> Vec<Key> {
        self.forget_user(key);
        self.rollouts.remove(key).map(|_| key.clone()).into_iter().collect()
    }

    fn forget_user(&mut self, rollout: &Key) {
        let Some(view) = self.rollouts.get(rollout) else { return };
        for named in services::references(&view.spec.fields) {
            let service =
                Key { namespace: Arc::clone(&rollout.namespace), name: named.name.into() };
            if let Some(users) = self.users.get_mut(&service) {
                users.remove(&rollout.name);
            }
        }
        self.users.retain(|_, users| !users.is_empty());
    }

    fn users_of(&self, service: &Key) -> Vec<Key> {
        let users = self.users.get(service).into_iter().flatten();
        users.map(|name| Key::new(&service.namespace, name)).collect()
    }

    /// The Services a Rollout names, there or not.
    fn services_of(&self, rollout: &RolloutView) -> BTreeMap<Arc<str>, Known<Arc<ServiceView>>> {
        let named = services::references(&rollout.spec.fields).into_iter().map(|named| {
            let key = Key { namespace: Arc::clone(&rollout.namespace), name: named.name.into() };
            let found = self.services.get(&key).cloned();
            (key.name, found.map_or(Known::Absent, Known::Present))
        });
        named.collect()
    }

    /// A Rollout's ReplicaSets, by creation time, then name.
    fn sets_of(&self, owner: Uid) -> Vec<Arc<ReplicaSetView>> {
        let mut sets: Vec<Arc<ReplicaSetView>> =
            self.sets.get(&owner).map_or_else(Vec::new, |sets| sets.values().cloned().collect());
        sets.sort_by_key(|set| set.created);
        sets
    }
}

impl Watched for Rollouts {
    type Index = RolloutIndex;

    fn watches(instance_id: &str) -> Vec<Watch> {
        let ours = if instance_id.is_empty() {
            format!("!{}", names::label::INSTANCE_ID)
        } else {
            format!("{}={instance_id}", names::label::INSTANCE_ID)
        };
        vec![
            Watch { kind: kinds::ROLLOUT, labels: Some(ours) },
            Watch {
                kind: kinds::REPLICA_SET,
                labels: Some(names::label::POD_TEMPLATE_HASH.to_owned()),
            },
            Watch { kind: kinds::SERVICE, labels: None },
        ]
    }

    fn apply(index: &mut RolloutIndex, kind: &Kind, frame: &Frame) -> Vec<Key> {
        if *kind == kinds::REPLICA_SET {
            return index.apply_set(frame);
        }
        if *kind == kinds::SERVICE {
            let key = Key::new(&frame.meta.namespace, &frame.meta.name);
            let woken = index.users_of(&key);
            index.services.insert(key, Arc::new(ServiceView::read(frame)));
            return woken;
        }
        index.apply_rollout(frame)
    }

    fn remove(index: &mut RolloutIndex, object: &ObjectRef) -> Vec<Key> {
        let key = Key::new(&object.namespace, &object.name);
        if object.kind == kinds::REPLICA_SET {
            return index.remove_set(&key);
        }
        if object.kind == kinds::SERVICE {
            index.services.remove(&key);
            return index.users_of(&key);
        }
        index.remove_rollout(&key)
    }

    fn version(index: &RolloutIndex, object: &ObjectRef) -> Option<u64> {
        let key = Key::new(&object.namespace, &object.name);
        if object.kind == kinds::REPLICA_SET {
            return index.set(&key).map(|view| view.version);
        }
        if object.kind == kinds::SERVICE {
            return index.services.get(&key).map(|view| view.version);
        }
        index.rollouts.get(&key).map(|view| view.version)
    }

    fn objects(index: &RolloutIndex, kind: &Kind) -> Vec<ObjectRef> {
        let of = |key: &Key| ObjectRef::new(kind.clone(), &key.namespace, &key.name);
        if *kind == kinds::REPLICA_SET {
            index.owners.keys().map(of).collect()
        } else if *kind == kinds::SERVICE {
            index.services.keys().map(of).collect()
        } else {
            index.rollouts.keys().map(of).collect()
        }
    }

    fn gather(
        index: &RolloutIndex,
        key: &Key,
        answers: &BTreeMap<AskId, Answer>,
        recall: &Recall<Memo>,
    ) -> Option<World> {
        let rollout = index.rollouts.get(key)?;
        Some(World {
            rollout: Arc::clone(rollout),
            replica_sets: Known::Present(index.sets_of(rollout.uid)),
            services: index.services_of(rollout),
            answers: answers.clone(),
            recall: recall.clone(),
        })
    }

    fn is_urgent(world: &World) -> bool {
        world.rollout.status.abort
    }

    fn publish(index: &RolloutIndex, key: &Key, metrics: &Metrics, now: Timestamp) {
        match index.rollout(key) {
            Some(rollout) => metrics.rollout(&key.namespace, &key.name, figures(rollout)),
            None => metrics.deleted(&key.namespace, &key.name, now),
        }
    }

    fn farewell(object: &ObjectRef) -> Option<Event> {
        Some(Event {
            about: object.clone(),
            kind: EventKind::Normal,
            reason: names::event::ROLLOUT_DELETED.into(),
            message: format!("Rollout {}/{} is deleted.", object.name, object.namespace),
            after: After::Status,
        })
    }
}

fn figures(rollout: &RolloutView) -> RolloutFigures {
    let (spec, status) = (&rollout.spec.fields, &rollout.status);
    let strategy = match (&spec.strategy.canary, &spec.strategy.blue_green) {
        (Some(_), _) => "canary",
        (None, Some(_)) => "blueGreen",
        (None, None) => "none",
    };
    RolloutFigures {
        strategy,
        traffic_router: "",
        phase: status.phase.clone(),
        metric_phase: metric_phase(status),
        desired: spec.replicas_or_default(),
        replicas: status.replicas,
        available: status.available_replicas,
        updated: status.updated_replicas,
    }
}

/// The older phase: from the reason of the Progressing condition, unless the spec is refused.
fn metric_phase(status: &gradus_api::rollout::RolloutStatus) -> &'static str {
    use names::{condition, reason};
    if status.condition(condition::INVALID_SPEC).is_some() {
        return "InvalidSpec";
    }
    match status.condition(condition::PROGRESSING).map(|known| known.reason.as_str()) {
        Some(reason::NEW_REPLICA_SET_AVAILABLE) => "Completed",
        Some(reason::ROLLOUT_PAUSED) => "Paused",
        Some(reason::REPLICA_SET_CREATE_ERROR) => "Error",
        Some(reason::PROGRESS_DEADLINE_EXCEEDED) => "Timeout",
        Some(reason::ROLLOUT_ABORTED) => "Abort",
        _ => "Progressing",
    }
}
