//! Which of our own writes has the index not shown yet? A key is not decided before it has.

use std::collections::{BTreeMap, BTreeSet};

use gradus_engine::decision::ObjectRef;
use jiff::{SignedDuration, Timestamp};

use crate::version::is_newer;
use crate::watched::Key;

/// How long a watch may take to show a version that is known to be there before it is read.
const PATIENCE: SignedDuration = SignedDuration::from_secs(1);

/// The same where a write was refused for it. Until then to try again would only be refused again, and
/// the user may be waiting; a read of one object costs less than such a try.
const REFUSED_PATIENCE: SignedDuration = SignedDuration::from_millis(100);

/// Writes the index has yet to show, by key.
pub(super) struct Notes<S> {
    by_key: BTreeMap<Key, Vec<Note<S>>>,
    by_object: BTreeMap<Shown<S>, BTreeSet<Key>>,
}

/// An object as one source shows it.
pub(super) type Shown<S> = (S, ObjectRef);

/// One write the index has yet to show.
pub(super) struct Note<S> {
    /// The source that shows it, and the object.
    pub shown: Shown<S>,
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

impl<S> Default for Notes<S> {
    fn default() -> Self {
        Notes { by_key: BTreeMap::new(), by_object: BTreeMap::new() }
    }
}

impl<S: Clone + Ord> Notes<S> {
    /// The note that blocks a key, the earliest due first.
    pub fn first(&self, key: &Key) -> Option<&Note<S>> {
        self.by_key.get(key)?.iter().min_by_key(|note| note.due)
    }

    /// A write was acknowledged; `seen` is what the index holds of the object now.
    pub fn expect(
        &mut self,
        key: &Key,
        shown: Shown<S>,
        version: Option<u64>,
        seen: Option<u64>,
        now: Timestamp,
    ) {
        let needs = match version {
            Some(version) if seen.is_some_and(|seen| !is_newer(version, seen)) => return,
            Some(version) => Needs::Version(version),
            None => match seen {
                None => return, // Deleted, and the index holds nothing of it.
                Some(seen) => Needs::LaterThan(seen),
            },
        };
        self.add(key, Note { shown, due: now + PATIENCE, needs });
    }

    /// The server has refused a write onto this version: it has a later one, or none.
    pub fn refused(&mut self, key: &Key, shown: Shown<S>, version: u64, now: Timestamp) {
        let (due, needs) = (now + REFUSED_PATIENCE, Needs::LaterThan(version));
        self.add(key, Note { shown, due, needs });
    }

    /// A write may have been done: the object is read before anything else.
    pub fn read_first(&mut self, key: &Key, shown: Shown<S>, now: Timestamp) {
        self.add(key, Note { shown, due: now, needs: Needs::Read });
    }

    fn add(&mut self, key: &Key, note: Note<S>) {
        self.by_object.entry(note.shown.clone()).or_default().insert(key.clone());
        let notes = self.by_key.entry(key.clone()).or_default();
        notes.retain(|known| known.shown != note.shown);
        notes.push(note);
    }

    /// The index shows this version of an object now: the keys that waited for it.
    pub fn shown(&mut self, shown: &Shown<S>, version: u64) -> Vec<Key> {
        self.release(shown, |needs| match needs {
            Needs::Version(wanted) => *wanted == version || is_newer(version, *wanted),
            Needs::LaterThan(seen) => is_newer(version, *seen),
            Needs::Read => false,
        })
    }

    /// The index has dropped an object: the keys that waited for it.
    pub fn dropped(&mut self, shown: &Shown<S>) -> Vec<Key> {
        self.release(shown, |needs| !matches!(needs, Needs::Read))
    }

    /// A list has shown all of these objects of a source: the keys that waited for any of them.
    pub fn listed(&mut self, source: &S, is_listed: impl Fn(&ObjectRef) -> bool) -> Vec<Key> {
        let is_shown = |(of, object): &&Shown<S>| of == source && is_listed(object);
        let all = self.by_object.keys().filter(is_shown);
        let all: Vec<Shown<S>> = all.cloned().collect();
        all.iter().flat_map(|shown| self.dropped(shown)).collect()
    }

    /// The object was read for this key.
    pub fn settle(&mut self, key: &Key, shown: &Shown<S>) {
        if let Some(notes) = self.by_key.get_mut(key) {
            notes.retain(|note| note.shown != *shown);
            if notes.is_empty() {
                self.by_key.remove(key);
            }
        }
        if let Some(keys) = self.by_object.get_mut(shown) {
            keys.remove(key);
            if keys.is_empty() {
                self.by_object.remove(shown);
            }
        }
    }

    fn release(&mut self, shown: &Shown<S>, is_met: impl Fn(&Needs) -> bool) -> Vec<Key> {
        if self.by_object.is_empty() {
            return Vec::new();
        }
        let Some(keys) = self.by_object.get(shown).cloned() else { return Vec::new() };
        let met = keys.into_iter().filter(|key| {
            let notes = self.by_key.get(key).map_or(&[][..], Vec::as_slice);
            notes.iter().any(|note| note.shown == *shown && is_met(&note.needs))
        });
        let met: Vec<Key> = met.collect();
        for key in &met {
            self.settle(key, shown);
        }
        met
    }
}
