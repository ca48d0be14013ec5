//! What does the controller remember of objects that carry our marks, and of who names them?

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gradus_engine::ask::{Answer, AskId, Recall};
use gradus_engine::decision::Kind;
use gradus_engine::frame::Frame;
use gradus_engine::kinds;
use gradus_engine::release::{Mark, Marked, Releases};

use crate::watched::{Key, Scope, Selection, Shelf, Watched, references_to};

/// Objects of one kind with our marks, and which of them each Rollout names.
pub struct ReleaseIndex<M> {
    /// Those that carry a mark, or did once: a late event must not bring a mark back.
    marked: BTreeMap<Key, Arc<M>>,
    rollouts: BTreeMap<Key, Names>,
    /// Which Rollouts name an object.
    users: BTreeMap<Key, BTreeSet<Arc<str>>>,
    /// Has a Rollout ever named an object of the kind?
    is_wanted: bool,
}

/// What is watched for marked objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Objects that may carry our marks.
    Marked,
    /// Rollouts, which name them.
    Rollouts,
}

/// What a Rollout names.
struct Names {
    version: u64,
    objects: Vec<Key>,
}

impl<M> Default for ReleaseIndex<M> {
    fn default() -> Self {
        ReleaseIndex {
            marked: BTreeMap::new(),
            rollouts: BTreeMap::new(),
            users: BTreeMap::new(),
            is_wanted: false,
        }
    }
}

impl<M: Mark> ReleaseIndex<M> {
    fn apply_rollout(&mut self, frame: &Frame) -> Vec<Key> {
        let key = Key::new(&frame.meta.namespace, &frame.meta.name);
        let named = M::named_in(&key.name, &frame.spec).into_iter();
        let objects: Vec<Key> = named
            .map(|name| Key { namespace: Arc::clone(&key.namespace), name: name.into() })
            .collect();
        self.is_wanted |= !objects.is_empty();
        let is_same = self.rollouts.get(&key).is_some_and(|known| known.objects == objects);
        let version = frame.meta.version;
        if is_same {
            self.rollouts.insert(key, Names { version, objects });
            return Vec::new();
        }
        let mut woken = self.remove_rollout(&key);
        for object in &objects {
            self.users.entry(object.clone()).or_default().insert(Arc::clone(&key.name));
        }
        woken.extend(objects.iter().cloned());
        self.rollouts.insert(key, Names { version, objects });
        woken
    }

    /// Forgets a Rollout; wakes the objects it named.
    fn remove_rollout(&mut self, key: &Key) -> Vec<Key> {
        let Some(Names { objects, .. }) = self.rollouts.remove(key) else { return Vec::new() };
        for object in &objects {
            if let Some(users) = self.users.get_mut(object) {
                users.remove(&key.name);
                if users.is_empty() {
                    self.users.remove(object);
                }
            }
        }
        objects
    }

    fn apply_object(&mut self, frame: &Frame) -> Vec<Key> {
        let key = Key::new(&frame.meta.namespace, &frame.meta.name);
        let object = M::read(frame);
        if !object.is_marked() && !self.marked.contains_key(&key) {
            return Vec::new();
        }
        self.marked.insert(key.clone(), Arc::new(object));
        vec![key]
    }
}

impl<M: Mark> Watched for Releases<M> {
    type Index = ReleaseIndex<M>;

    type Source = Source;

    fn sources() -> Vec<Source> {
        let always = M::IS_ALWAYS_THERE.then_some(Source::Marked);
        always.into_iter().chain([Source::Rollouts]).collect()
    }

    fn demands(index: &ReleaseIndex<M>) -> Vec<Source> {
        let is_demanded = index.is_wanted && !M::IS_ALWAYS_THERE;
        is_demanded.then_some(Source::Marked).into_iter().collect()
    }

    fn kind_of(source: &Source) -> Kind {
        match source {
            Source::Marked => M::KIND,
            Source::Rollouts => kinds::ROLLOUT,
        }
    }

    fn selection(source: &Source, scope: &Scope) -> Option<Selection> {
        match source {
            Source::Marked => Some(scope.all(M::KIND)),
            Source::Rollouts => Some(scope.of_instance(kinds::ROLLOUT)),
        }
    }

    fn shelf(source: &Source) -> Shelf<ReleaseIndex<M>> {
        match source {
            Source::Marked => Shelf {
                apply: |index, _, frame| index.apply_object(frame),
                remove: |index, object| {
                    let key = Key::of(object);
                    index.marked.remove(&key).map(|_| key).into_iter().collect()
                },
                version: |index, object| Some(index.marked.get(&Key::of(object))?.version()),
                objects: |index, kind| references_to(kind, index.marked.keys()),
            },
            Source::Rollouts => Shelf {
                apply: |index, _, frame| index.apply_rollout(frame),
                remove: |index, object| index.remove_rollout(&Key::of(object)),
                version: |index, object| Some(index.rollouts.get(&Key::of(object))?.version),
                objects: |index, kind| references_to(kind, index.rollouts.keys()),
            },
        }
    }

    fn gather(
        index: &ReleaseIndex<M>,
        key: &Key,
        answers: &BTreeMap<AskId, Answer>,
        recall: &Recall<()>,
    ) -> Option<Marked<M>> {
        let object = index.marked.get(key).filter(|object| object.is_marked())?;
        let version = |name: &Arc<str>| {
            let manager = Key { namespace: Arc::clone(&key.namespace), name: Arc::clone(name) };
            index.rollouts.get(&manager).map_or(0, |names| names.version)
        };
        let managers = object.managers().into_iter();
        Some(Marked {
            namespace: Arc::clone(&key.namespace),
            object: Arc::clone(object),
            users: index.users.get(key).into_iter().flatten().cloned().collect(),
            managers: managers.map(|name| (Arc::clone(&name), version(&name))).collect(),
            answers: answers.clone(),
            recall: recall.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use gradus_engine::world::ServiceView;
    use serde_json::{Value, json};

    use super::*;

    fn frame(name: &str, version: u64, spec: Value) -> Frame {
        let meta = json!({ "name": name, "namespace": "default",
            "resourceVersion": version.to_string() });
        serde_json::from_value(json!({ "metadata": meta, "spec": spec })).unwrap()
    }

    fn key(name: &str) -> Key {
        Key { namespace: "default".into(), name: name.into() }
    }

    #[test]
    fn a_service_is_looked_at_when_it_is_marked_and_when_a_rollout_lets_go_of_it() {
        let mut index = ReleaseIndex::<ServiceView>::default();
        let plain = frame("active", 1, json!({ "selector": { "app": "web" } }));
        assert_eq!(index.apply_object(&plain), [], "nothing of ours is on it");
        let uses =
            |service: &str| json!({ "strategy": { "blueGreen": { "activeService": service } } });
        assert_eq!(index.apply_rollout(&frame("web", 2, uses("active"))), [key("active")]);
        let hash = json!({ "selector": { "rollouts-pod-template-hash": "h" } });
        assert_eq!(index.apply_object(&frame("active", 3, hash)), [key("active")]);
        let users = |index: &ReleaseIndex<ServiceView>| {
            let none = BTreeMap::new();
            Releases::<ServiceView>::gather(index, &key("active"), &none, &Recall::default())
                .unwrap()
                .users
        };
        assert_eq!(users(&index).len(), 1);
        assert_eq!(index.apply_rollout(&frame("web", 4, uses("active"))), [], "as before");
        let woken = index.apply_rollout(&frame("web", 5, uses("other")));
        assert_eq!(woken, [key("active"), key("other")]);
        assert_eq!(users(&index).len(), 0);
        assert_eq!(index.remove_rollout(&key("web")), [key("other")]);
    }
}
