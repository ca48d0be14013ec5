//! Which ReplicaSets of ours does nobody control? Few, and each may match a Rollout.

use std::collections::BTreeMap;
use std::sync::Arc;

use gradus_api::names::label;
use gradus_api::rollout::LabelSelector;
use gradus_engine::frame::Frame;
use gradus_engine::rollout::claim;
use gradus_engine::world::ReplicaSetView;

use crate::watched::Key;

/// ReplicaSets with our label and without a controller.
#[derive(Default)]
pub(super) struct Orphans(BTreeMap<Key, Arc<ReplicaSetView>>);

impl Orphans {
    /// Takes in a ReplicaSet if it is one.
    pub fn apply(
        &mut self,
        frame: &Frame,
        read: impl FnOnce(&Frame, Option<&ReplicaSetView>) -> ReplicaSetView,
    ) -> Option<&Arc<ReplicaSetView>> {
        let is_orphan = frame.meta.controller().is_none()
            && frame.meta.labels.contains_key(label::POD_TEMPLATE_HASH);
        if !is_orphan && self.0.is_empty() {
            return None;
        }
        let key = Key::new(&frame.meta.namespace, &frame.meta.name);
        let earlier = self.0.remove(&key);
        if !is_orphan {
            return None;
        }
        let view = read(frame, earlier.as_deref());
        Some(self.0.entry(key).or_insert(Arc::new(view)))
    }

    /// Forgets one.
    pub fn remove(&mut self, key: &Key) {
        self.0.remove(key);
    }

    /// One of them.
    pub fn get(&self, key: &Key) -> Option<&Arc<ReplicaSetView>> {
        self.0.get(key)
    }

    /// Those of a namespace that match a selector.
    pub fn matching(
        &self,
        namespace: &Arc<str>,
        selector: Option<&LabelSelector>,
    ) -> Vec<Arc<ReplicaSetView>> {
        let Some(selector) = selector.filter(|_| !self.0.is_empty()) else { return Vec::new() };
        let first = Key { namespace: Arc::clone(namespace), name: "".into() };
        let here = self.0.range(first..).take_while(|(key, _)| key.namespace == *namespace);
        here.filter(|(_, set)| claim::matches(selector, set))
            .map(|(_, set)| Arc::clone(set))
            .collect()
    }

    /// The keys of all of them.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.0.keys()
    }
}
