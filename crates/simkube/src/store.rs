//! Where do the objects live, and what has happened to them? Objects by kind and key, the log
//! watches are served from, the log of writes, and who owns whom.

use std::collections::{BTreeMap, BTreeSet, VecDeque, btree_map};
use std::sync::Arc;

use crate::kinds::KindId;
use crate::object::{Key, Object};
use crate::request::Verb;

/// How many events of one kind a watch can go back. A client that is further behind lists again.
const EVENTS_KEPT: usize = 10_000;
/// How many writes the log of writes remembers.
const WRITES_KEPT: usize = 10_000;

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It was made.
    Added,
    /// It was changed.
    Modified,
    /// It is gone.
    Deleted,
}

/// One entry of the log watches are served from.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// What happened.
    pub change: Change,
    /// The object afterwards; of a deleted one the last state, with the version of its deletion.
    pub object: Arc<Object>,
    /// The object before, if there was one.
    pub before: Option<Arc<Object>>,
}

/// One accepted write, with what it replaced.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// The cluster's version it made.
    pub version: u64,
    /// How it was asked for.
    pub verb: Verb,
    /// By whom.
    pub user: Arc<str>,
    /// What happened.
    pub change: Change,
    /// The object before, if there was one.
    pub before: Option<Arc<Object>>,
    /// The object afterwards; of a deleted one the last state.
    pub after: Arc<Object>,
}

/// The version a watch asks for is no longer kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too old resource version: {asked} ({oldest})")]
pub struct Gone {
    /// What was asked for.
    pub asked: u64,
    /// The oldest version that can be asked for.
    pub oldest: u64,
}

/// An object's place among all kinds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The kind it is stored under.
    pub kind: KindId,
    /// Where in that kind.
    pub key: Key,
}

/// All objects of a cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Store {
    version: u64,
    /// Shared with the cluster this one was cloned from until they differ.
    shelves: Vec<Arc<Shelf>>,
    places: BTreeMap<Arc<str>, Place>,
    owned: BTreeMap<Arc<str>, BTreeSet<Place>>,
    writes: VecDeque<Write>,
}

/// The objects of one kind.
#[derive(Clone, Debug, Default)]
struct Shelf {
    objects: BTreeMap<Key, Arc<Object>>,
    log: VecDeque<Event>,
    horizon: u64,
}

impl Store {
    /// The version of the last write.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Makes room for so many kinds.
    pub(crate) fn widen(&mut self, kinds: usize) {
        let horizon = self.version;
        let empty = || Arc::new(Shelf { horizon, ..Shelf::default() });
        self.shelves.resize_with(kinds.max(self.shelves.len()), empty);
    }

    pub(crate) fn get(&self, kind: KindId, key: &Key) -> Option<&Arc<Object>> {
        self.shelf(kind).objects.get(key)
    }

    /// All objects of a kind in one namespace, or in all (`""`), sorted.
    pub(crate) fn list<'a>(
        &'a self,
        kind: KindId,
        namespace: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Object>> {
        let is_whole = namespace.is_empty() || self.is_bare(kind);
        let namespace_name = if is_whole { Arc::default() } else { namespace.into() };
        let first = Key { namespace: namespace_name, name: Arc::default() };
        let range = self.shelf(kind).objects.range(first..);
        range
            .take_while(move |(key, _)| namespace.is_empty() || *key.namespace == *namespace)
            .map(|(_, object)| object)
    }

    /// The same as they were at an earlier version, if the log goes back that far.
    pub(crate) fn list_at(
        &self,
        kind: KindId,
        namespace: &str,
        version: u64,
    ) -> Result<Vec<Arc<Object>>, Gone> {
        let now = self.list(kind, namespace).map(|object| (object.key(), object.clone()));
        let mut then: BTreeMap<Key, Arc<Object>> = now.collect();
        for event in self.events_after(kind, version)?.rev() {
            let key = event.object.key();
            match &event.before {
                _ if !namespace.is_empty() && *key.namespace != *namespace => continue,
                Some(before) => then.insert(key, before.clone()),
                None => then.remove(&key),
            };
        }
        Ok(then.into_values().collect())
    }

    /// Whether nothing of a kind is there at all.
    pub(crate) fn is_bare(&self, kind: KindId) -> bool {
        self.shelf(kind).objects.is_empty()
    }

    /// Where the object with this uid is.
    pub(crate) fn place(&self, uid: &str) -> Option<&Place> {
        self.places.get(uid)
    }

    /// What names the object with this uid as an owner.
    pub(crate) fn owned_by(&self, uid: &str) -> impl Iterator<Item = &Place> {
        self.owned.get(uid).into_iter().flatten()
    }

    /// The same as objects. Most owners have made all that is theirs, side by side under names that
    /// begin alike: the next is searched for only where it is not the neighbour of the last.
    pub(crate) fn dependents(&self, uid: &str) -> impl Iterator<Item = &Arc<Object>> {
        let mut ahead = btree_map::Range::default();
        self.owned_by(uid).filter_map(move |place| {
            let is_it = |(key, object): &(&Key, &Arc<Object>)| {
                object.kind == place.kind && (*key).cmp(&place.key).is_eq()
            };
            let found = ahead.next().filter(is_it).or_else(|| {
                ahead = self.shelf(place.kind).objects.range(&place.key..);
                ahead.next().filter(is_it)
            });
            found.map(|(_, object)| object)
        })
    }

    /// Whether anything of a kind is in a namespace.
    pub(crate) fn has_any(&self, kind: KindId, namespace: &str) -> bool {
        self.list(kind, namespace).next().is_some()
    }

    /// What happened to a kind after a version.
    pub(crate) fn events_after(
        &self,
        kind: KindId,
        version: u64,
    ) -> Result<impl DoubleEndedIterator<Item = &Event>, Gone> {
        let shelf = self.shelf(kind);
        if version < shelf.horizon {
            return Err(Gone { asked: version, oldest: shelf.horizon });
        }
        let start = shelf.log.partition_point(|event| event.object.version <= version);
        Ok(shelf.log.range(start..))
    }

    /// Has anything happened to a kind after a version that is still kept?
    #[inline]
    pub(crate) fn has_events_after(&self, kind: KindId, version: u64) -> bool {
        let shelf = self.shelf(kind);
        let is_newer = |event: &Event| version < event.object.version;
        shelf.horizon <= version && shelf.log.back().is_some_and(is_newer)
    }

    /// The remembered writes after a version.
    pub(crate) fn writes_after(&self, version: u64) -> impl Iterator<Item = &Write> {
        // Every version is one write.
        let first = self.writes.front().map_or(0, |write| write.version);
        let start = usize::try_from((version + 1).saturating_sub(first)).unwrap_or(usize::MAX);
        self.writes.range(start.min(self.writes.len())..)
    }

    pub(crate) fn last_write(&self) -> Option<&Write> {
        self.writes.back()
    }

    /// Forgets all events, as a server that was just compacted.
    pub(crate) fn compact(&mut self) {
        for shelf in &mut self.shelves {
            let shelf = Arc::make_mut(shelf);
            shelf.log.clear();
            shelf.horizon = self.version;
        }
    }

    /// Forgets the writes up to a version, and their events where nobody shares them. A watch that
    /// has seen them all does not notice.
    pub(crate) fn forget_until(&mut self, version: u64) {
        let is_past = |write: &mut Write| write.version <= version;
        while let Some(write) = self.writes.pop_front_if(is_past) {
            let shelf = Arc::get_mut(&mut self.shelves[usize::from(write.after.kind.0)]);
            let Some(shelf) = shelf else { continue };
            while shelf.log.pop_front_if(|event| event.object.version <= version).is_some() {}
            shelf.horizon = shelf.horizon.max(write.version);
        }
    }

    /// The same of all kinds, whoever may still want to know.
    pub(crate) fn forget_all_until(&mut self, version: u64) {
        for shelf in &mut self.shelves {
            let is_past = |event: &Event| event.object.version <= version;
            if !shelf.log.front().is_some_and(is_past) {
                continue;
            }
            let shelf = Arc::make_mut(shelf);
            while let Some(event) = shelf.log.pop_front_if(|event| is_past(event)) {
                shelf.horizon = event.object.version;
            }
        }
        while self.writes.pop_front_if(|write| write.version <= version).is_some() {}
    }

    /// Stores a new object or a new state of one. Returns what it replaced, and the new state.
    pub(crate) fn put(
        &mut self,
        mut object: Object,
        verb: Verb,
        user: &Arc<str>,
    ) -> (Option<Arc<Object>>, Arc<Object>) {
        self.version += 1;
        object.version = self.version;
        let object = Arc::new(object);
        let shelf = self.shelf_mut(object.kind);
        let before = shelf.objects.insert(object.key(), object.clone());
        let change = if before.is_some() { Change::Modified } else { Change::Added };
        shelf.note(change, before.clone(), object.clone());
        self.index_owners(before.as_ref(), Some(&object));
        self.record(change, verb, user, before.clone(), object.clone());
        (before, object)
    }

    /// Takes an object out.
    pub(crate) fn take(
        &mut self,
        before: &Arc<Object>,
        verb: Verb,
        user: &Arc<str>,
    ) -> Arc<Object> {
        self.version += 1;
        let last = Arc::new(Object { version: self.version, ..Object::clone(before) });
        let shelf = self.shelf_mut(before.kind);
        shelf.objects.remove(&before.key());
        shelf.note(Change::Deleted, Some(before.clone()), last.clone());
        self.index_owners(Some(before), None);
        self.record(Change::Deleted, verb, user, Some(before.clone()), last.clone());
        last
    }

    fn record(
        &mut self,
        change: Change,
        verb: Verb,
        user: &Arc<str>,
        before: Option<Arc<Object>>,
        after: Arc<Object>,
    ) {
        let version = self.version;
        self.writes.push_back(Write { version, verb, user: user.clone(), change, before, after });
        if self.writes.len() > WRITES_KEPT {
            self.writes.pop_front();
        }
    }

    fn index_owners(&mut self, before: Option<&Arc<Object>>, after: Option<&Arc<Object>>) {
        match (before, after) {
            (Some(before), Some(after))
                if Arc::ptr_eq(&before.meta, &after.meta)
                    || before.meta.owners == after.meta.owners =>
            {
                return;
            }
            _ => {}
        }
        if let Some(before) = before {
            let place = before.place();
            for owner in &before.meta.owners {
                if let Some(dependents) = self.owned.get_mut(&owner.uid) {
                    dependents.remove(&place);
                    if dependents.is_empty() {
                        self.owned.remove(&owner.uid);
                    }
                }
            }
            if after.is_none() {
                self.places.remove(&before.meta.uid);
            }
        }
        if let Some(after) = after {
            let place = after.place();
            for owner in &after.meta.owners {
                self.owned.entry(owner.uid.clone()).or_default().insert(place.clone());
            }
            if before.is_none() {
                self.places.insert(after.meta.uid.clone(), place);
            }
        }
    }

    #[inline]
    fn shelf(&self, kind: KindId) -> &Shelf {
        &self.shelves[usize::from(kind.0)]
    }

    fn shelf_mut(&mut self, kind: KindId) -> &mut Shelf {
        Arc::make_mut(&mut self.shelves[usize::from(kind.0)])
    }
}

impl Shelf {
    /// Remembers for watches what happened.
    fn note(&mut self, change: Change, before: Option<Arc<Object>>, object: Arc<Object>) {
        self.log.push_back(Event { change, object, before });
        if self.log.len() > EVENTS_KEPT
            && let Some(oldest) = self.log.pop_front()
        {
            self.horizon = oldest.object.version;
        }
    }
}

impl Object {
    /// Its place among all kinds.
    pub fn place(&self) -> Place {
        Place { kind: self.kind, key: self.key() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn store_with(count: usize) -> Store {
        let mut store = Store::default();
        store.widen(8);
        for index in 0..count {
            store.put(config_map(&format!("n{index}")), Verb::Create, &"test".into());
        }
        store
    }

    fn config_map(name: &str) -> Object {
        let wire = json!({"metadata": {"name": name, "namespace": "a", "uid": name}});
        Object::from_json(KindId::CONFIG_MAP, wire).unwrap()
    }

    #[test]
    fn a_watch_goes_on_where_it_stopped() {
        let store = store_with(3);
        let after = |version| {
            let events = store.events_after(KindId::CONFIG_MAP, version).unwrap();
            events.map(|event| event.object.version).collect::<Vec<_>>()
        };
        assert_eq!(after(0), [1, 2, 3]);
        assert_eq!(after(2), [3]);
        assert!(after(9).is_empty());
        let has_news = |version| store.has_events_after(KindId::CONFIG_MAP, version);
        assert_eq!([0, 2, 3, 9].map(has_news), [true, true, false, false]);
    }

    #[test]
    fn what_is_too_long_ago_is_gone() {
        let mut store = store_with(EVENTS_KEPT + 5);
        assert_eq!(
            store.events_after(KindId::CONFIG_MAP, 4).err(),
            Some(Gone { asked: 4, oldest: 5 })
        );
        assert!(store.events_after(KindId::CONFIG_MAP, 5).is_ok());
        store.compact();
        let now = store.version();
        assert!(store.events_after(KindId::CONFIG_MAP, now - 1).is_err());
        assert!(store.events_after(KindId::CONFIG_MAP, now).is_ok());
    }

    #[test]
    fn what_is_forgotten_is_missed_only_by_who_has_not_seen_it() {
        let mut store = store_with(5);
        store.forget_until(3);
        let after = |version| {
            let events = store.events_after(KindId::CONFIG_MAP, version);
            events.map(|events| events.map(|event| event.object.version).collect::<Vec<_>>())
        };
        assert_eq!(after(2), Err(Gone { asked: 2, oldest: 3 }));
        assert_eq!(after(3), Ok(vec![4, 5]));
        let writes = |version| store.writes_after(version).map(|write| write.version);
        assert_eq!(writes(0).collect::<Vec<_>>(), [4, 5]);
        assert_eq!(writes(4).collect::<Vec<_>>(), [5]);

        let copy = store.clone();
        store.forget_until(5);
        assert_eq!(store.writes_after(0).count(), 0);
        assert!(store.has_events_after(KindId::CONFIG_MAP, 4), "they are shared with the copy");
        assert_eq!(copy.writes_after(0).count(), 2);
    }

    #[test]
    fn dependents_are_found_wherever_they_lie() {
        let mut store = store_with(5);
        let owned = |name: &str, kind| {
            let meta = json!({"name": name, "namespace": "a", "uid": format!("{name} {kind:?}"),
                "ownerReferences": [{"uid": "owner"}]});
            Object::from_json(kind, json!({ "metadata": meta })).unwrap()
        };
        // n0 and n2 are others': before the first, and between two.
        for name in ["n1", "n3", "n4", "z"] {
            store.put(owned(name, KindId::CONFIG_MAP), Verb::Update, &"test".into());
        }
        for name in ["a", "n4"] {
            store.put(owned(name, KindId::SECRET), Verb::Create, &"test".into());
        }
        let found = |store: &Store| {
            let name = |one: &Arc<Object>| (one.kind, one.meta.name.to_string());
            store.dependents("owner").map(name).collect::<Vec<_>>()
        };
        let slow = store.owned_by("owner").map(|one| (one.kind, one.key.name.to_string()));
        assert_eq!(found(&store), slow.collect::<Vec<_>>());
        assert_eq!(found(&store).len(), 6);
        let gone = store.get(KindId::CONFIG_MAP, &Key::new("a", "n3")).unwrap().clone();
        store.take(&gone, Verb::Delete, &"test".into());
        assert!(!found(&store).contains(&(KindId::CONFIG_MAP, "n3".to_owned())));
        assert_eq!(store.dependents("nobody").count(), 0);
    }

    #[test]
    fn lists_are_cut_at_the_namespace() {
        let mut store = store_with(2);
        let other = json!({"metadata": {"name": "x", "namespace": "b", "uid": "x"}});
        let other = Object::from_json(KindId::CONFIG_MAP, other).unwrap();
        store.put(other, Verb::Create, &"test".into());
        assert_eq!(store.list(KindId::CONFIG_MAP, "a").count(), 2);
        assert_eq!(store.list(KindId::CONFIG_MAP, "b").count(), 1);
        assert_eq!(store.list(KindId::CONFIG_MAP, "").count(), 3);
    }

    #[test]
    fn what_is_forgotten_by_all_is_so_in_every_kind() {
        let mut store = store_with(1);
        for index in 0..=WRITES_KEPT {
            let mut secret = config_map(&format!("s{index}"));
            secret.kind = KindId::SECRET;
            store.put(secret, Verb::Create, &"test".into());
        }
        assert_eq!(store.writes_after(0).next().unwrap().version, 3, "the first is not remembered");
        store.forget_all_until(5);
        assert!(
            store.events_after(KindId::CONFIG_MAP, 0).is_err(),
            "its event is gone all the same"
        );
        assert!(store.events_after(KindId::SECRET, 4).is_err());
        assert!(store.events_after(KindId::SECRET, 5).is_ok());
        assert_eq!(store.writes_after(0).next().unwrap().version, 6);
    }

    #[test]
    fn the_past_can_be_listed_as_far_as_the_log_goes_back() {
        let mut store = store_with(2);
        let key = Key::new("a", "n0");
        let before = store.get(KindId::CONFIG_MAP, &key).unwrap().clone();
        store.put(config_map("n1"), Verb::Update, &"test".into());
        store.take(&before, Verb::Delete, &"test".into());
        store.put(config_map("n2"), Verb::Create, &"test".into());
        let at = |version| {
            let list = store.list_at(KindId::CONFIG_MAP, "a", version).unwrap();
            let name = |one: &Arc<Object>| format!("{} {}", one.meta.name, one.version);
            list.iter().map(name).collect::<Vec<_>>()
        };
        assert_eq!(at(0), Vec::<String>::new());
        assert_eq!(at(2), ["n0 1", "n1 2"]);
        assert_eq!(at(3), ["n0 1", "n1 3"]);
        assert_eq!(at(4), ["n1 3"]);
        assert_eq!(at(5), ["n1 3", "n2 5"]);
        assert!(store.list_at(KindId::CONFIG_MAP, "b", 3).unwrap().is_empty());
        store.compact();
        let gone = store.list_at(KindId::CONFIG_MAP, "a", 4);
        assert_eq!(gone, Err(Gone { asked: 4, oldest: 5 }));
    }

    #[test]
    fn every_write_is_remembered_with_what_it_replaced() {
        let mut store = store_with(1);
        let key = Key::new("a", "n0");
        let before = store.get(KindId::CONFIG_MAP, &key).unwrap().clone();
        store.take(&before, Verb::Delete, &"me".into());
        let write = store.last_write().unwrap();
        assert_eq!((write.version, write.change, &*write.user), (2, Change::Deleted, "me"));
        assert_eq!(write.before, Some(before));
        assert_eq!(store.writes_after(1).count(), 1);
    }
}
