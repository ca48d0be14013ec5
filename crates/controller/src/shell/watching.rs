//! What does a watch tell the index? New, changed and vanished objects, once each, never backwards.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use gradus_engine::Head;
use gradus_engine::ask::Recall;
use gradus_engine::decision::{Kind, ObjectRef};
use gradus_engine::frame::Frame;
use jiff::{SignedDuration, Timestamp};

use super::notes::Shown;
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
pub(super) struct Watching<S> {
    /// What is always watched: all of it must be synced before anything is decided.
    constant: Vec<S>,
    /// The source that shows our writes to objects of a kind.
    by_kind: BTreeMap<Kind, S>,
    listing: BTreeMap<S, BTreeSet<ObjectRef>>,
    synced: BTreeSet<S>,
    /// All constant sources are synced: once so, for ever.
    is_complete: bool,
    /// Sources that cannot be read, and since when.
    troubles: BTreeMap<S, Trouble>,
    ends: BTreeMap<Shown<S>, u64>,
    ends_in_order: VecDeque<Shown<S>>,
}

/// A watch that sees nothing.
struct Trouble {
    since: Timestamp,
    is_told: bool,
}

impl<S: Clone + Ord> Watching<S> {
    /// Nothing has been listed yet.
    pub fn new(constant: Vec<S>) -> Self {
        Watching {
            constant,
            by_kind: BTreeMap::new(),
            listing: BTreeMap::new(),
            synced: BTreeSet::new(),
            is_complete: false,
            troubles: BTreeMap::new(),
            ends: BTreeMap::new(),
            ends_in_order: VecDeque::new(),
        }
    }

    /// The source that shows our writes to objects of this kind, if one has begun to.
    pub fn source_of(&self, kind: &Kind) -> Option<&S> {
        self.by_kind.get(kind)
    }

    /// Has every constant source been listed once, or is it known that it cannot be? Of the
    /// engine's own there is no excuse.
    pub fn has_reached_all(&self, is_own: impl Fn(&S) -> bool) -> bool {
        if self.is_complete {
            return true;
        }
        let is_told = |source| self.troubles.get(source).is_some_and(|trouble| trouble.is_told);
        let mut sources = self.constant.iter();
        sources.all(|source| self.synced.contains(source) || !is_own(source) && is_told(source))
    }

    /// A list of a source begins. Of two sources of one kind, the constant one shows our writes.
    fn begin(&mut self, source: &S, kind: Kind) {
        self.listing.insert(source.clone(), BTreeSet::new());
        if self.constant.contains(source) {
            self.by_kind.insert(kind, source.clone());
        } else {
            self.by_kind.entry(kind).or_insert_with(|| source.clone());
        }
    }

    /// A list of a source is complete.
    pub fn sync(&mut self, source: &S) {
        self.listing.remove(source);
        self.synced.insert(source.clone());
        self.is_complete = self.synced.len() >= self.constant.len()
            && self.constant.iter().all(|source| self.synced.contains(source));
    }

    fn end(&mut self, shown: &Shown<S>, version: u64) {
        if self.ends.insert(shown.clone(), version).is_none() {
            self.ends_in_order.push_back(shown.clone());
        }
        if self.ends_in_order.len() > ENDS_LIMIT
            && let Some(oldest) = self.ends_in_order.pop_front()
        {
            self.ends.remove(&oldest);
        }
    }
}

impl<W: Watched> Shell<W> {
    /// Takes in one message of a watch; returns the objects of the engine's own kind that are
    /// others now, or gone.
    pub fn observe(&mut self, source: &W::Source, seen: &Seen, now: Timestamp) -> Vec<Key> {
        if !matches!(seen, Seen::Init) {
            self.readable_again(source, now);
        }
        let is_own = W::kind_of(source) == W::KIND;
        let concerned = if is_own { self.concerned(source, seen) } else { Vec::new() };
        match seen {
            Seen::Init => self.watching.begin(source, W::kind_of(source)),
            Seen::InitApply(frame) => {
                let object = reference::<W>(source, frame);
                self.watching.listing.entry(source.clone()).or_default().insert(object);
                self.take_in(source, frame, now);
            }
            Seen::InitDone => self.end_of_list(source, now),
            Seen::Apply(frame) => self.take_in(source, frame, now),
            Seen::Delete(frame) => {
                let shown = (source.clone(), reference::<W>(source, frame));
                let known = (W::shelf(source).version)(&self.index, &shown.1);
                // An older life of that name; a newer one is there.
                if known.is_none_or(|known| known <= frame.meta.version) {
                    self.watching.end(&shown, frame.meta.version);
                    self.forget(&shown, now);
                }
            }
            Seen::Resumed => {}
        }
        concerned
    }

    /// The objects of the engine's own kind that a message is about.
    fn concerned(&self, source: &W::Source, seen: &Seen) -> Vec<Key> {
        match seen {
            Seen::Init | Seen::Resumed => Vec::new(),
            Seen::InitApply(frame) | Seen::Apply(frame) | Seen::Delete(frame) => {
                vec![Key::new(&frame.meta.namespace, &frame.meta.name)]
            }
            Seen::InitDone => {
                let gone = self.unlisted(source).into_iter();
                gone.map(|object| Key::new(&object.namespace, &object.name)).collect()
            }
        }
    }

    /// What the index holds of a source and its list has not shown.
    fn unlisted(&self, source: &W::Source) -> Vec<ObjectRef> {
        let listed = self.watching.listing.get(source);
        let is_listed = |object: &ObjectRef| listed.is_some_and(|listed| listed.contains(object));
        let all = (W::shelf(source).objects)(&self.index, &W::kind_of(source));
        all.into_iter().filter(|object| !is_listed(object)).collect()
    }

    fn end_of_list(&mut self, source: &W::Source, now: Timestamp) {
        for object in self.unlisted(source) {
            self.forget(&(source.clone(), object), now);
        }
        self.watching.sync(source);
        for key in W::reach(&mut self.index, source, Reach::Listed) {
            self.queue.add(key, now);
        }
        for key in self.notes.listed(source) {
            self.queue.add(key, now);
        }
    }

    /// Takes in that a watch sees nothing now. A kind the server does not have is empty; one that
    /// we may not read, or that stays away, is unknown, and the keys that need it say so.
    pub fn observe_failure(&mut self, source: &W::Source, failed: &Failed, now: Timestamp) {
        match failed.cause {
            // Without the engine's own kind there is nothing to decide.
            Cause::NoSuchKind if W::kind_of(source) == W::KIND => {}
            Cause::NoSuchKind if self.watching.synced.contains(source) => {}
            Cause::NoSuchKind => {
                self.watching.begin(source, W::kind_of(source));
                self.end_of_list(source, now);
            }
            Cause::Forbidden | Cause::Away => {
                let fresh = Trouble { since: now, is_told: false };
                self.watching.troubles.entry(source.clone()).or_insert(fresh);
                self.excuse_absent_server(now);
                let Some(trouble) = self.watching.troubles.get_mut(source) else { return };
                let is_lasting = trouble.since + PATIENCE <= now;
                if failed.cause == Cause::Forbidden || is_lasting {
                    trouble.is_told = true;
                    let reach = Reach::Unreadable(&failed.message);
                    for key in W::reach(&mut self.index, source, reach) {
                        self.queue.add(key, now);
                    }
                }
            }
        }
    }

    /// While nothing at all can be read, nothing can be written either, and no kind is to blame. Once
    /// the server is back, each kind has its minute from then on.
    fn excuse_absent_server(&mut self, now: Timestamp) {
        let unread = &self.unread;
        let Watching { troubles, constant, .. } = &mut self.watching;
        let mut watched = constant.iter().filter(|source| !unread.contains(source));
        if watched.all(|source| troubles.contains_key(source)) {
            troubles.values_mut().for_each(|trouble| trouble.since = now);
        }
    }

    /// A watch that saw nothing sees again.
    fn readable_again(&mut self, source: &W::Source, now: Timestamp) {
        let Some(trouble) = self.watching.troubles.remove(source) else { return };
        if trouble.is_told && self.watching.synced.contains(source) {
            for key in W::reach(&mut self.index, source, Reach::Listed) {
                self.queue.add(key, now);
            }
        }
    }

    /// A version of an object that may be new.
    pub(super) fn take_in(&mut self, source: &W::Source, frame: &Frame, now: Timestamp) {
        let shown = (source.clone(), reference::<W>(source, frame));
        let (shelf, object, version) = (W::shelf(source), &shown.1, frame.meta.version);
        let ended = self.watching.ends.get(&shown).copied();
        let known = (shelf.version)(&self.index, object);
        if ended.is_some_and(|ended| version <= ended)
            || known.is_some_and(|known| version <= known)
        {
            return; // Seen already, or of before what was seen.
        }
        self.watching.ends.remove(&shown);
        let woken = match contained(|| (shelf.apply)(&mut self.index, &object.kind, frame)) {
            Ok(woken) => woken,
            Err(message) => {
                let key = Key::new(&object.namespace, &object.name);
                return self.panicked(key, format!("taking in {object}"), message);
            }
        };
        for key in woken {
            self.queue.add(key, now);
        }
        for key in self.notes.shown(&shown, version) {
            self.queue.add(key, now);
        }
    }

    /// An object is gone.
    pub(super) fn forget(&mut self, shown: &Shown<W::Source>, now: Timestamp) {
        let (source, object) = shown;
        self.say_farewell(object, now);
        for key in (W::shelf(source).remove)(&mut self.index, object) {
            self.queue.add(key, now);
        }
        for key in self.notes.dropped(shown) {
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

fn reference<W: Watched>(source: &W::Source, frame: &Frame) -> ObjectRef {
    ObjectRef {
        kind: W::kind_of(source),
        namespace: Arc::clone(&frame.meta.namespace),
        name: Arc::clone(&frame.meta.name),
    }
}
