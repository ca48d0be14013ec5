//! What does a watch tell the index? New, changed and vanished objects, once each, never backwards.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use gradus_engine::Head;
use gradus_engine::ask::Recall;
use gradus_engine::decision::{Kind, ObjectRef};
use gradus_engine::frame::Frame;
use jiff::{SignedDuration, Timestamp};

use super::{Outgoing, Shell, contained};
use crate::watch::{Cause, Failed};
use crate::watched::{Key, Reach, Watched};

/// Ends of objects that are remembered, so that a late event does not bring one back.
const ENDS_LIMIT: usize = 4096;

/// How long a server may be away before what it does not show counts as unknown.
const PATIENCE: SignedDuration = SignedDuration::from_mins(1);

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
    /// A watch that had failed goes on where it was: nothing was missed.
    Resumed,
}

/// How far each watch has come.
#[derive(Default)]
pub(super) struct Watching {
    listing: BTreeMap<Kind, BTreeSet<ObjectRef>>,
    synced: BTreeSet<Kind>,
    /// All constant kinds are synced: once so, for ever.
    is_complete: bool,
    /// Kinds that cannot be read, and since when.
    troubles: BTreeMap<Kind, Trouble>,
    ends: BTreeMap<ObjectRef, u64>,
    ends_in_order: VecDeque<ObjectRef>,
}

/// A watch that sees nothing.
struct Trouble {
    since: Timestamp,
    is_told: bool,
}

impl Watching {
    /// Is this kind watched at all?
    pub fn knows(&self, kind: &Kind) -> bool {
        self.synced.contains(kind) || self.listing.contains_key(kind)
    }

    /// Has every one of these kinds been listed once, or is it known that it cannot be? Of the
    /// engine's own there is no excuse.
    pub fn has_reached_all(&self, kinds: &[Kind], own: &Kind) -> bool {
        if self.is_complete {
            return true;
        }
        let is_told = |kind| self.troubles.get(kind).is_some_and(|trouble| trouble.is_told);
        kinds.iter().all(|kind| self.synced.contains(kind) || kind != own && is_told(kind))
    }

    fn sync(&mut self, kind: &Kind, constant: &[Kind]) {
        self.synced.insert(kind.clone());
        self.is_complete = self.synced.len() >= constant.len()
            && constant.iter().all(|kind| self.synced.contains(kind));
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
    /// Takes in one message of the watch of a kind; says which objects of the engine's own kind are
    /// others now, or gone.
    pub fn observe(&mut self, kind: &Kind, seen: Seen, now: Timestamp) -> Vec<Key> {
        if !matches!(seen, Seen::Init) {
            self.readable_again(kind, now);
        }
        let concerned = if *kind == W::KIND { self.concerned(&seen) } else { Vec::new() };
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
                // An older life of that name; a newer one is there.
                if known.is_none_or(|known| known <= frame.meta.version) {
                    self.watching.end(&object, frame.meta.version);
                    self.forget(&object, now);
                }
            }
            Seen::Resumed => {}
        }
        concerned
    }

    /// The objects of the engine's own kind that a message is about.
    fn concerned(&self, seen: &Seen) -> Vec<Key> {
        match seen {
            Seen::Init | Seen::Resumed => Vec::new(),
            Seen::InitApply(frame) | Seen::Apply(frame) | Seen::Delete(frame) => {
                vec![Key::new(&frame.meta.namespace, &frame.meta.name)]
            }
            Seen::InitDone => {
                let gone = self.unlisted(&W::KIND).into_iter();
                gone.map(|object| Key::new(&object.namespace, &object.name)).collect()
            }
        }
    }

    /// What the index holds of a kind and its list has not shown.
    fn unlisted(&self, kind: &Kind) -> Vec<ObjectRef> {
        let listed = self.watching.listing.get(kind);
        let is_listed = |object: &ObjectRef| listed.is_some_and(|listed| listed.contains(object));
        W::objects(&self.index, kind).into_iter().filter(|object| !is_listed(object)).collect()
    }

    fn end_of_list(&mut self, kind: &Kind, now: Timestamp) {
        for object in self.unlisted(kind) {
            self.forget(&object, now);
        }
        self.watching.listing.remove(kind);
        self.watching.sync(kind, &self.kinds);
        for key in W::reach(&mut self.index, kind, Reach::Listed) {
            self.queue.add(key, now);
        }
        for key in self.notes.listed(kind) {
            self.queue.add(key, now);
        }
    }

    /// Takes in that a watch sees nothing now. A kind the server does not have is empty; one that
    /// we may not read, or that stays away, is unknown, and the keys that need it say so.
    pub fn observe_failure(&mut self, kind: &Kind, failed: &Failed, now: Timestamp) {
        match failed.cause {
            // Without the engine's own kind there is nothing to decide.
            Cause::NoSuchKind if *kind == W::KIND => {}
            Cause::NoSuchKind if self.watching.synced.contains(kind) => {}
            Cause::NoSuchKind => {
                self.watching.listing.insert(kind.clone(), BTreeSet::new());
                self.end_of_list(kind, now);
            }
            Cause::Forbidden | Cause::Away => {
                let fresh = Trouble { since: now, is_told: false };
                self.watching.troubles.entry(kind.clone()).or_insert(fresh);
                self.excuse_absent_server(now);
                let Some(trouble) = self.watching.troubles.get_mut(kind) else { return };
                let is_lasting = trouble.since + PATIENCE <= now;
                if failed.cause == Cause::Forbidden || is_lasting {
                    trouble.is_told = true;
                    let reach = Reach::Unreadable(&failed.message);
                    for key in W::reach(&mut self.index, kind, reach) {
                        self.queue.add(key, now);
                    }
                }
            }
        }
    }

    /// While nothing at all can be read, nothing can be written either, and no kind is to blame. Once
    /// the server is back, each kind has its minute from then on.
    fn excuse_absent_server(&mut self, now: Timestamp) {
        let Watching { troubles, .. } = &mut self.watching;
        // Who looks after one namespace does not watch kinds that have none.
        let mut watched = self.kinds.iter().filter(|kind| !W::is_cluster_scoped(kind));
        if watched.all(|kind| troubles.contains_key(kind)) {
            troubles.values_mut().for_each(|trouble| trouble.since = now);
        }
    }

    /// A watch that saw nothing sees again.
    fn readable_again(&mut self, kind: &Kind, now: Timestamp) {
        let Some(trouble) = self.watching.troubles.remove(kind) else { return };
        if trouble.is_told && self.watching.synced.contains(kind) {
            for key in W::reach(&mut self.index, kind, Reach::Listed) {
                self.queue.add(key, now);
            }
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
        let woken = match contained(|| W::apply(&mut self.index, kind, frame)) {
            Ok(woken) => woken,
            Err(message) => {
                let key = Key::new(&object.namespace, &object.name);
                return self.panicked(key, format!("taking in {object}"), message);
            }
        };
        for key in woken {
            self.queue.add(key, now);
        }
        for key in self.notes.shown(&object, version) {
            self.queue.add(key, now);
        }
    }

    /// An object is gone.
    pub(super) fn forget(&mut self, object: &ObjectRef, now: Timestamp) {
        self.say_farewell(object, now);
        for key in W::remove(&mut self.index, object) {
            self.queue.add(key, now);
        }
        for key in self.notes.dropped(object) {
            self.queue.add(key, now);
        }
    }

    /// Tells of the end of an object of the engine's own kind that is still known.
    fn say_farewell(&mut self, object: &ObjectRef, now: Timestamp) {
        if object.kind != W::KIND {
            return;
        }
        let key = Key::new(&object.namespace, &object.name);
        let Some(event) = W::farewell(object) else { return };
        let last = contained(|| {
            let world = W::gather(&self.index, &key, &BTreeMap::new(), &Recall::default());
            world.as_ref().map(W::head)
        });
        if let Ok(Some(Head { uid, version, .. })) = last {
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
