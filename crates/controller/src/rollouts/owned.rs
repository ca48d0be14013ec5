//! Which objects of one kind does each Rollout, or each Experiment, control?

use std::collections::BTreeMap;
use std::sync::Arc;

use gradus_engine::frame::Frame;
use gradus_engine::uid::Uid;

use crate::watched::Key;

/// Slim views by owner, then by name: an owner finds its own without looking at others.
pub(crate) struct Owned<V> {
    views: BTreeMap<Uid, BTreeMap<Arc<str>, Arc<V>>>,
    /// Owner (uid and name) of each object that is held.
    owners: BTreeMap<Key, (Uid, Arc<str>)>,
}

impl<V> Default for Owned<V> {
    fn default() -> Self {
        Owned { views: BTreeMap::new(), owners: BTreeMap::new() }
    }
}

impl<V> Owned<V> {
    /// One of them.
    pub fn get(&self, key: &Key) -> Option<&Arc<V>> {
        let (owner, _) = self.owners.get(key)?;
        self.views.get(owner)?.get(&key.name)
    }

    /// Takes in a new or changed object if one of this kind controls it; says which owners that
    /// wakes. `names` lends the text of an owner's name, so that it is held once.
    pub fn apply(
        &mut self,
        frame: &Frame,
        owner_kind: &str,
        read: impl FnOnce(&Frame, Option<&V>) -> V,
        names: impl FnOnce(&Key) -> Option<Arc<str>>,
    ) -> Vec<Key> {
        let key = Key::new(&frame.meta.namespace, &frame.meta.name);
        let owner = frame.meta.controller().filter(|owner| *owner.kind == *owner_kind);
        if let Some((uid, rollout)) = self.owners.get(&key)
            && owner.is_some_and(|owner| owner.uid == *uid && owner.name == *rollout)
            && let Some(view) = self.views.get_mut(uid).and_then(|views| views.get_mut(&key.name))
        {
            *view = Arc::new(read(frame, Some(view)));
            return vec![Key { namespace: key.namespace, name: Arc::clone(rollout) }];
        }
        let earlier = self.get(&key).cloned();
        let mut woken = self.remove(&key);
        let Some(owner) = owner else { return woken };
        let view = Arc::new(read(frame, earlier.as_deref()));
        let rollout = Key { namespace: Arc::clone(&key.namespace), name: Arc::clone(&owner.name) };
        self.views.entry(owner.uid).or_default().insert(Arc::clone(&key.name), view);
        let rollout_name = names(&rollout).unwrap_or_else(|| Arc::clone(&rollout.name));
        self.owners.insert(key, (owner.uid, rollout_name));
        if !woken.contains(&rollout) {
            woken.push(rollout);
        }
        woken
    }

    /// Forgets an object; says which Rollout that wakes.
    pub fn remove(&mut self, key: &Key) -> Vec<Key> {
        let Some((uid, rollout)) = self.owners.remove(key) else { return Vec::new() };
        if let Some(views) = self.views.get_mut(&uid) {
            views.remove(&key.name);
            if views.is_empty() {
                self.views.remove(&uid);
            }
        }
        vec![Key { namespace: Arc::clone(&key.namespace), name: rollout }]
    }

    /// Who controls one of them.
    pub fn owner(&self, key: &Key) -> Option<Key> {
        let (_, name) = self.owners.get(key)?;
        Some(Key { namespace: Arc::clone(&key.namespace), name: Arc::clone(name) })
    }

    /// All that one owner controls, by name.
    pub fn of(&self, owner: Uid) -> Vec<Arc<V>> {
        self.views.get(&owner).map_or_else(Vec::new, |views| views.values().cloned().collect())
    }

    /// The keys of all that are held.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.owners.keys()
    }
}
