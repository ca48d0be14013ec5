//! Which of our own writes has the index not shown yet? A key is not decided before it has.

use std::collections::{BTreeMap, BTreeSet};

use gradus_engine::decision::{Kind, ObjectRef};
use jiff::{SignedDuration, Timestamp};

use crate::act::Acknowledged;
use crate::watched::Key;

/// How long a watch may take to show a version that is known to be there before it is read.
const PATIENCE: SignedDuration = SignedDuration::from_secs(1);

/// The same where a write was refused for it. Until then to try again would only be refused again, and
/// the user may be waiting; a read of one object costs less than such a try.
const REFUSED_PATIENCE: SignedDuration = SignedDuration::from_millis(100);

/// Writes the index has yet to show, by key.
#[derive(Default)]
pub(super) struct Notes {
    by_key: BTreeMap<Key, Vec<Note>>,
    by_object: BTreeMap<ObjectRef, BTreeSet<Key>>,
}

/// One write the index has yet to show.
pub(super) struct Note {
    pub object: ObjectRef,
    /// When it is read if the watch has not shown it.
    pub due: Timestamp,
    needs: Needs,
}

enum Needs {
    /// This version or a later one, or the object's end.
    Version(u64),
    /// Its end, or anything later than what was seen.
    LaterThan(u64),
    /// A read, whatever the watch shows.
    Read,
}

impl Notes {
    /// The note that blocks a key, the earliest due first.
    pub fn first(&self, key: &Key) -> Option<&Note> {
        self.by_key.get(key)?.iter().min_by_key(|note| note.due)
    }

    /// A write was acknowledged; `seen` is what the index holds of the object now.
    pub fn expect(&mut self, key: &Key, write: &Acknowledged, seen: Option<u64>, now: Timestamp) {
        let needs = match write.version {
            Some(version) if seen.is_some_and(|seen| version <= seen) => return,
            Some(version) => Needs::Version(version),
            None => match seen {
                None => return, // Deleted, and the index holds nothing of it.
                Some(seen) => Needs::LaterThan(seen),
            },
        };
        self.add(key, Note { object: write.object.clone(), due: now + PATIENCE, needs });
    }

    /// The server has refused a write onto this version: it has a later one, or none.
    pub fn refused(&mut self, key: &Key, object: ObjectRef, version: u64, now: Timestamp) {
        let (due, needs) = (now + REFUSED_PATIENCE, Needs::LaterThan(version));
        self.add(key, Note { object, due, needs });
    }

    /// A write may have been done: the object is read before anything else.
    pub fn read_first(&mut self, key: &Key, object: ObjectRef, now: Timestamp) {
        self.add(key, Note { object, due: now, needs: Needs::Read });
    }

    fn add(&mut self, key: &Key, note: Note) {
        self.by_object.entry(note.object.clone()).or_default().insert(key.clone());
        let notes = self.by_key.entry(key.clone()).or_default();
        notes.retain(|known| known.object != note.object);
        notes.push(note);
    }

    /// The index shows this version of an object now: the keys that waited for it.
    pub fn shown(&mut self, object: &ObjectRef, version: u64) -> Vec<Key> {
        self.release(object, |needs| match needs {
            Needs::Version(wanted) => *wanted <= version,
            Needs::LaterThan(seen) => *seen < version,
            Needs::Read => false,
        })
    }

    /// The index has dropped an object: the keys that waited for it.
    pub fn dropped(&mut self, object: &ObjectRef) -> Vec<Key> {
        self.release(object, |needs| !matches!(needs, Needs::Read))
    }

    /// A list has shown all of a kind: the keys that waited for any of it.
    pub fn listed(&mut self, kind: &Kind) -> Vec<Key> {
        let objects: Vec<ObjectRef> =
            self.by_object.keys().filter(|object| object.kind == *kind).cloned().collect();
        objects.iter().flat_map(|object| self.dropped(object)).collect()
    }

    /// The object was read for this key.
    pub fn settle(&mut self, key: &Key, object: &ObjectRef) {
        if let Some(notes) = self.by_key.get_mut(key) {
            notes.retain(|note| note.object != *object);
        }
        self.by_key.retain(|_, notes| !notes.is_empty());
        if let Some(keys) = self.by_object.get_mut(object) {
            keys.remove(key);
        }
        self.by_object.retain(|_, keys| !keys.is_empty());
    }

    fn release(&mut self, object: &ObjectRef, is_met: impl Fn(&Needs) -> bool) -> Vec<Key> {
        let Some(keys) = self.by_object.get(object).cloned() else { return Vec::new() };
        let met = keys.into_iter().filter(|key| {
            let notes = self.by_key.get(key).map_or(&[][..], Vec::as_slice);
            notes.iter().any(|note| note.object == *object && is_met(&note.needs))
        });
        let met: Vec<Key> = met.collect();
        for key in &met {
            self.settle(key, object);
        }
        met
    }
}
