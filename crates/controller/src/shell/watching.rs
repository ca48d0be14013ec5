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
use crate::version;
use crate::watch::{Failed, FailedCause};
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

/// Which part of a source a watch shows: one of several namespaces, or `None` for the whole.
pub(crate) type Place = Option<String>;

/// A source, and which part of it.
pub(crate) type Part<S> = (S, Place);

/// How far each watch has come.
pub(super) struct Watching<S> {
    /// What is always watched: all of it must be synced before anything is decided.
    constant: Vec<Part<S>>,
    /// The source that shows our writes to objects of a kind.
    by_kind: BTreeMap<Kind, S>,
    listing: BTreeMap<Part<S>, BTreeSet<ObjectRef>>,
    synced: BTreeSet<Part<S>>,
    /// All constant sources are synced: once so, for ever.
    is_complete: bool,
    /// Sources that cannot be read, and since when.
    troubles: BTreeMap<Part<S>, Trouble>,
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
    pub fn new(constant: Vec<Part<S>>) -> Self {
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

    /// One more that is always watched.
    pub fn add(&mut self, part: Part<S>) {
        self.constant.push(part);
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
        let is_told = |part| self.troubles.get(part).is_some_and(|trouble| trouble.is_told);
        let mut parts = self.constant.iter();
        parts.all(|part| self.synced.contains(part) || !is_own(&part.0) && is_told(part))
    }

    /// A list of a part begins. Of two sources of one kind, the constant one shows our writes.
    fn begin(&mut self, part: &Part<S>, kind: Kind) {
        self.listing.insert(part.clone(), BTreeSet::new());
        if self.constant.contains(part) {
            self.by_kind.insert(kind, part.0.clone());
        } else {
            self.by_kind.entry(kind).or_insert_with(|| part.0.clone());
        }
    }

    /// A list of a part is complete.
    fn sync(&mut self, part: &Part<S>) {
        self.listing.remove(part);
        self.synced.insert(part.clone());
        self.is_complete = self.synced.len() >= self.constant.len()
            && self.constant.iter().all(|part| self.synced.contains(part));
    }

    /// Is a part listed, and nothing known to keep it from being seen?
    fn is_seen(&self, part: &Part<S>) -> bool {
        let is_told = self.troubles.get(part).is_some_and(|trouble| trouble.is_told);
        self.synced.contains(part) && !is_told
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
        self.observe_part(&(source.clone(), None), seen, now)
    }

    /// The same of a watch that shows a part of its source.
    pub(crate) fn observe_part(
        &mut self,
        part: &Part<W::Source>,
        seen: &Seen,
        now: Timestamp,
    ) -> Vec<Key> {
        let source = &part.0;
        if !matches!(seen, Seen::Init) {
            self.readable_again(part, now);
        }
        let is_own = W::kind_of(source) == W::KIND;
        let concerned = if is_own { self.concerned(part, seen) } else { Vec::new() };
        match seen {
            Seen::Init => self.watching.begin(part, W::kind_of(source)),
            Seen::InitApply(frame) => {
                let object = reference::<W>(source, frame);
                self.watching.listing.entry(part.clone()).or_default().insert(object);
                self.take_in(source, frame, now);
            }
            Seen::InitDone => self.end_of_list(part, now),
            Seen::Apply(frame) => self.take_in(source, frame, now),
            Seen::Delete(frame) => {
                let shown = (source.clone(), reference::<W>(source, frame));
                let known = (W::shelf(source).version)(&self.index, &shown.1);
                // An older life of that name; a newer one is there.
                let last = frame.meta.version;
                if known.is_none_or(|known| known == last || version::is_newer(last, known)) {
                    self.watching.end(&shown, frame.meta.version);
                    self.forget(&shown, now);
                }
            }
            Seen::Resumed => {}
        }
        concerned
    }

    /// The objects of the engine's own kind that a message is about.
    fn concerned(&self, part: &Part<W::Source>, seen: &Seen) -> Vec<Key> {
        match seen {
            Seen::Init | Seen::Resumed => Vec::new(),
            Seen::InitApply(frame) | Seen::Apply(frame) | Seen::Delete(frame) => {
                vec![Key::new(&frame.meta.namespace, &frame.meta.name)]
            }
            Seen::InitDone => {
                let gone = self.unlisted(part).into_iter();
                gone.map(|object| Key::new(&object.namespace, &object.name)).collect()
            }
        }
    }

    /// What the index holds of a part and its list has not shown.
    fn unlisted(&self, part: &Part<W::Source>) -> Vec<ObjectRef> {
        let (source, place) = part;
        let listed = self.watching.listing.get(part);
        let is_listed = |object: &ObjectRef| listed.is_some_and(|listed| listed.contains(object));
        let all = (W::shelf(source).objects)(&self.index, &W::kind_of(source));
        let is_gone = |object: &ObjectRef| is_in(place, object) && !is_listed(object);
        all.into_iter().filter(is_gone).collect()
    }

    fn end_of_list(&mut self, part: &Part<W::Source>, now: Timestamp) {
        let (source, place) = part;
        for object in self.unlisted(part) {
            self.forget(&(source.clone(), object), now);
        }
        self.watching.sync(part);
        self.reach_if_whole(source, now);
        for key in self.notes.listed(source, |object| is_in(place, object)) {
            self.queue.add(key, now);
        }
    }

    /// Tells the index that a source is listed, once every part of it is.
    fn reach_if_whole(&mut self, source: &W::Source, now: Timestamp) {
        let mut parts = self.watches.iter().filter(|(_, shown)| *shown == source);
        if !parts.all(|(watch, _)| self.watching.is_seen(&(source.clone(), self.place(watch)))) {
            return;
        }
        for key in W::reach(&mut self.index, source, Reach::Listed) {
            self.queue.add(key, now);
        }
    }

    /// Takes in that a watch sees nothing now. A kind the server does not have is empty; one that
    /// we may not read, or that stays away, is unknown, and the keys that need it say so.
    pub fn observe_failure(&mut self, source: &W::Source, failed: &Failed, now: Timestamp) {
        self.observe_failed_part(&(source.clone(), None), failed, now);
    }

    /// The same of a watch that shows a part of its source.
    pub(crate) fn observe_failed_part(
        &mut self,
        part: &Part<W::Source>,
        failed: &Failed,
        now: Timestamp,
    ) {
        let source = &part.0;
        match failed.cause {
            // Without the engine's own kind there is nothing to decide.
            FailedCause::NoSuchKind if W::kind_of(source) == W::KIND => {}
            FailedCause::NoSuchKind if self.watching.synced.contains(part) => {}
            FailedCause::NoSuchKind => {
                self.watching.begin(part, W::kind_of(source));
                self.end_of_list(part, now);
            }
            FailedCause::Forbidden | FailedCause::Away => {
                let fresh = Trouble { since: now, is_told: false };
                self.watching.troubles.entry(part.clone()).or_insert(fresh);
                self.excuse_absent_server(now);
                let Some(trouble) = self.watching.troubles.get_mut(part) else { return };
                let is_lasting = trouble.since + PATIENCE <= now;
                if failed.cause == FailedCause::Forbidden || is_lasting {
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
        let Watching { troubles, constant, .. } = &mut self.watching;
        if constant.iter().all(|part| troubles.contains_key(part)) {
            troubles.values_mut().for_each(|trouble| trouble.since = now);
        }
    }

    /// A watch that saw nothing sees again.
    fn readable_again(&mut self, part: &Part<W::Source>, now: Timestamp) {
        let Some(trouble) = self.watching.troubles.remove(part) else { return };
        if trouble.is_told && self.watching.synced.contains(part) {
            self.reach_if_whole(&part.0, now);
        }
    }

    /// A version of an object that may be new.
    pub(super) fn take_in(&mut self, source: &W::Source, frame: &Frame, now: Timestamp) {
        let shown = (source.clone(), reference::<W>(source, frame));
        let (shelf, object, arriving) = (W::shelf(source), &shown.1, frame.meta.version);
        let ended = self.watching.ends.get(&shown).copied();
        let known = (shelf.version)(&self.index, object);
        if ended.into_iter().chain(known).any(|seen| !version::is_newer(arriving, seen)) {
            return; // Seen already, or of before what was seen.
        }
        self.watching.ends.remove(&shown);
        let woken = match contained(|| (shelf.apply)(&mut self.index, &object.kind, frame)) {
            Ok(woken) => woken,
            Err(message) => {
                let key = Key::new(&object.namespace, &object.name);
                self.panicked(key, format!("taking in {object}"), message.clone());
                // Its owner shall read of it, too.
                let refuse = || W::refuse(&mut self.index, source, frame, &message);
                contained(refuse).unwrap_or_default()
            }
        };
        for key in woken {
            self.queue.set_urgent(&key, W::is_urgent(&self.index, &key));
            self.queue.add(key, now);
        }
        for key in self.notes.shown(&shown, arriving) {
            self.queue.add(key, now);
        }
    }

    /// An object is gone.
    pub(super) fn forget(&mut self, shown: &Shown<W::Source>, now: Timestamp) {
        let (source, object) = shown;
        self.say_farewell(object, now);
        let woken = contained(|| (W::shelf(source).remove)(&mut self.index, object));
        let woken = woken.unwrap_or_else(|message| {
            let key = Key::new(&object.namespace, &object.name);
            self.panicked(key, format!("forgetting {object}"), message);
            Vec::new()
        });
        for key in woken {
            self.queue.set_urgent(&key, W::is_urgent(&self.index, &key));
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
            world.as_ref().map(|world| (W::head(world), W::standing(world, None)))
        });
        if let Ok(Some((Head { uid, version, .. }, standing))) = last {
            self.outbox.push((Outgoing { event, uid, version, at: now }, standing));
        }
    }
}

/// Does a part show this object?
fn is_in(place: &Place, object: &ObjectRef) -> bool {
    place.as_deref().is_none_or(|namespace| *object.namespace == *namespace)
}

fn reference<W: Watched>(source: &W::Source, frame: &Frame) -> ObjectRef {
    ObjectRef {
        kind: W::kind_of(source),
        namespace: Arc::clone(&frame.meta.namespace),
        name: Arc::clone(&frame.meta.name),
    }
}
