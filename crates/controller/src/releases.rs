//! What does the controller remember of Services that carry our marks, and of who names them?

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gradus_engine::ask::{Answer, AskId, Recall};
use gradus_engine::decision::{Event, Kind, ObjectRef};
use gradus_engine::frame::Frame;
use gradus_engine::kinds;
use gradus_engine::release::{Marked, Releases, is_marked};
use gradus_engine::rollout::services;
use gradus_engine::world::ServiceView;

use crate::watched::{Key, Watch, Watched};

/// Services with our marks, and which Services each Rollout names.
#[derive(Default)]
pub struct ReleaseIndex {
    /// Those that carry a mark, or did once: a late event must not bring a mark back.
    services: BTreeMap<Key, Arc<ServiceView>>,
    rollouts: BTreeMap<Key, Names>,
    /// Which Rollouts name a Service.
    users: BTreeMap<Key, BTreeSet<Arc<str>>>,
}

/// What a Rollout names.
struct Names {
    version: u64,
    services: Vec<Key>,
}

impl ReleaseIndex {
    fn apply_rollout(&mut self, frame: &Frame) -> Vec<Key> {
        let key = Key::new(&frame.meta.namespace, &frame.meta.name);
        let named = services::names_in(&frame.spec).into_iter();
        let services: Vec<Key> = named
            .map(|name| Key { namespace: Arc::clone(&key.namespace), name: name.into() })
            .collect();
        let is_same = self.rollouts.get(&key).is_some_and(|known| known.services == services);
        let version = frame.meta.version;
        if is_same {
            self.rollouts.insert(key, Names { version, services });
            return Vec::new();
        }
        let mut woken = self.remove_rollout(&key);
        for service in &services {
            self.users.entry(service.clone()).or_default().insert(Arc::clone(&key.name));
        }
        woken.extend(services.iter().cloned());
        self.rollouts.insert(key, Names { version, services });
        woken
    }

    /// Forgets a Rollout; wakes the Services it named.
    fn remove_rollout(&mut self, key: &Key) -> Vec<Key> {
        let Some(Names { services, .. }) = self.rollouts.remove(key) else { return Vec::new() };
        for service in &services {
            if let Some(users) = self.users.get_mut(service) {
                users.remove(&key.name);
                if users.is_empty() {
                    self.users.remove(service);
                }
            }
        }
        services
    }

    fn apply_service(&mut self, frame: &Frame) -> Vec<Key> {
        let key = Key::new(&frame.meta.namespace, &frame.meta.name);
        let view = ServiceView::read(frame);
        if !is_marked(&view) && !self.services.contains_key(&key) {
            return Vec::new();
        }
        self.services.insert(key.clone(), Arc::new(view));
        vec![key]
    }
}

impl Watched for Releases {
    type Index = ReleaseIndex;

    fn watches(instance_id: &str) -> Vec<Watch> {
        vec![
            Watch::of_instance(kinds::ROLLOUT, instance_id),
            Watch { kind: kinds::SERVICE, labels: None },
        ]
    }

    fn apply(index: &mut ReleaseIndex, kind: &Kind, frame: &Frame) -> Vec<Key> {
        if *kind == kinds::SERVICE {
            return index.apply_service(frame);
        }
        index.apply_rollout(frame)
    }

    fn remove(index: &mut ReleaseIndex, object: &ObjectRef) -> Vec<Key> {
        let key = Key::new(&object.namespace, &object.name);
        if object.kind == kinds::SERVICE {
            return index.services.remove(&key).map(|_| key).into_iter().collect();
        }
        index.remove_rollout(&key)
    }

    fn version(index: &ReleaseIndex, object: &ObjectRef) -> Option<u64> {
        let key = Key::new(&object.namespace, &object.name);
        if object.kind == kinds::SERVICE {
            return index.services.get(&key).map(|view| view.version);
        }
        index.rollouts.get(&key).map(|names| names.version)
    }

    fn objects(index: &ReleaseIndex, kind: &Kind) -> Vec<ObjectRef> {
        let of = |key: &Key| ObjectRef::new(kind.clone(), &key.namespace, &key.name);
        if *kind == kinds::SERVICE {
            index.services.keys().map(of).collect()
        } else {
            index.rollouts.keys().map(of).collect()
        }
    }

    fn gather(
        index: &ReleaseIndex,
        key: &Key,
        answers: &BTreeMap<AskId, Answer>,
        recall: &Recall<()>,
    ) -> Option<Marked> {
        let service = index.services.get(key).filter(|service| is_marked(service))?;
        let manager = service.managed_by.as_ref().and_then(|name| {
            let manager = Key { namespace: Arc::clone(&key.namespace), name: Arc::clone(name) };
            index.rollouts.get(&manager)
        });
        Some(Marked {
            namespace: Arc::clone(&key.namespace),
            service: Arc::clone(service),
            users: index.users.get(key).into_iter().flatten().cloned().collect(),
            manager: manager.map_or(0, |names| names.version),
            answers: answers.clone(),
            recall: recall.clone(),
        })
    }

    fn is_urgent(_: &Marked) -> bool {
        false
    }

    fn farewell(_: &ObjectRef) -> Option<Event> {
        None
    }
}

#[cfg(test)]
mod tests {
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
        let mut index = ReleaseIndex::default();
        let plain = frame("active", 1, json!({ "selector": { "app": "web" } }));
        assert_eq!(index.apply_service(&plain), [], "nothing of ours is on it");
        let uses =
            |service: &str| json!({ "strategy": { "blueGreen": { "activeService": service } } });
        assert_eq!(index.apply_rollout(&frame("web", 2, uses("active"))), [key("active")]);
        let hash = json!({ "selector": { "rollouts-pod-template-hash": "h" } });
        assert_eq!(index.apply_service(&frame("active", 3, hash)), [key("active")]);
        let users = |index: &ReleaseIndex| {
            let none = BTreeMap::new();
            Releases::gather(index, &key("active"), &none, &Recall::default()).unwrap().users
        };
        assert_eq!(users(&index).len(), 1);
        assert_eq!(index.apply_rollout(&frame("web", 4, uses("active"))), [], "as before");
        let woken = index.apply_rollout(&frame("web", 5, uses("other")));
        assert_eq!(woken, [key("active"), key("other")]);
        assert_eq!(users(&index).len(), 0);
        assert_eq!(index.remove_rollout(&key("web")), [key("other")]);
    }
}
