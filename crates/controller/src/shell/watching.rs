//! What does a watch tell the index? New, changed and vanished objects, once each, never backwards.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use gradus_engine::decision::{Kind, ObjectRef};
use gradus_engine::frame::Frame;
use jiff::Timestamp;

use super::{Outgoing, Shell};
use crate::watched::Watched;

/// Ends of objects that are remembered, so that a late event does not bring one back.
const ENDS_LIMIT: usize = 4096;

/// One message of a watch.
#[derive(Clone, Debug)]
pub enum Seen {
    /// A list begins.
    Init,
    /// An object of the list.
    InitApply(Frame),
    /// The list is complete: what it did not show is gone.
    InitDone,
    /// A new or changed object.
    Apply(Frame),
    /// An object's end.
    Delete(Frame),
}

/// How far each watch has come.
#[derive(Default)]
pub(super) struct Watching {
    listing: BTreeMap<Kind, BTreeSet<ObjectRef>>,
    synced: BTreeSet<Kind>,
    ends: BTreeMap<ObjectRef, u64>,
    ends_in_order: VecDeque<ObjectRef>,
}

impl Watching {
    /// Is this kind watched at all?
    pub fn knows(&self, kind: &Kind) -> bool {
        self.synced.contains(kind) || self.listing.contains_key(kind)
    }

    /// Has every one of these kinds been listed once?
    pub fn has_synced_all(&self, kinds: &[Kind]) -> bool {
        kinds.iter().all(|kind| self.synced.contains(kind))
    }

    fn end(&mut self, object: &ObjectRef, version: u64) {
        if self.ends.insert(object.clone(), version).is_none() {
            self.ends_in_order.push_back(object.clone());
        }
        if self.ends_in_order.len() > ENDS_LIMIT
            && let Some(oldest) = self.ends_in_order.pop_front()
        {
            self.ends.remove(&oldest);
        }
    }
}

impl<W: Watched> Shell<W> {
    /// Takes in one message of the watch of a kind.
    pub fn observe(&mut self, kind: &Kind, seen: Seen, now: Timestamp) {
        match seen {
            Seen::Init => {
                self.watching.listing.insert(kind.clone(), BTreeSet::new());
            }
            Seen::InitApply(frame) => {
                let object = reference(kind, &frame);
                self.watching.listing.entry(kind.clone()).or_default().insert(object);
                self.take_in(kind, &frame, now);
            }
            Seen::InitDone => self.end_of_list(kind, now),
            Seen::Apply(frame) => self.take_in(kind, &frame, now),
            Seen::Delete(frame) => {
                let object = reference(kind, &frame);
                let known = W::version(&self.index, &object);
                if known.is_some_and(|known| frame.meta.version < known) {
                    return; // An older life of that name; a newer one is there.
                }
                self.watching.end(&object, frame.meta.version);
                self.say_farewell(&object, &frame, now);
                self.forget(&object, now);
            }
        }
    }

    fn end_of_list(&mut self, kind: &Kind, now: Timestamp) {
        let listed = self.watching.listing.remove(kind).unwrap_or_default();
        for object in W::objects(&self.index, kind) {
            if !listed.contains(&object) {
                self.forget(&object, now);
            }
        }
        self.watching.synced.insert(kind.clone());
        for key in self.notes.listed(kind) {
            self.queue.add(key, now);
        }
    }

    /// A version of an object that may be new.
    pub(super) fn take_in(&mut self, kind: &Kind, frame: &Frame, now: Timestamp) {
        let object = reference(kind, frame);
        let version = frame.meta.version;
        let ended = self.watching.ends.get(&object).copied();
        let known = W::version(&self.index, &object);
        if ended.is_some_and(|ended| version <= ended)
            || known.is_some_and(|known| version <= known)
        {
            return; // Seen already, or of before what was seen.
        }
        self.watching.ends.remove(&object);
        for key in W::apply(&mut self.index, kind, frame) {
            self.queue.add(key, now);
        }
        for key in self.notes.shown(&object, version) {
            self.queue.add(key, now);
        }
    }

    /// An object is gone.
    pub(super) fn forget(&mut self, object: &ObjectRef, now: Timestamp) {
        for key in W::remove(&mut self.index, object) {
            self.queue.add(key, now);
        }
        for key in self.notes.dropped(object) {
            self.queue.add(key, now);
        }
    }

    fn say_farewell(&mut self, object: &ObjectRef, frame: &Frame, now: Timestamp) {
        if object.kind != W::KIND {
            return;
        }
        if let Some(event) = W::farewell(object) {
            let (uid, version) = (frame.meta.uid, frame.meta.version);
            self.outbox.push(Outgoing { event, uid, version, at: now });
        }
    }
}

fn reference(kind: &Kind, frame: &Frame) -> ObjectRef {
    ObjectRef {
        kind: kind.clone(),
        namespace: Arc::clone(&frame.meta.namespace),
        name: Arc::clone(&frame.meta.name),
    }
}
