//! Which key is decided next, and on what? Index, queue and memory of one engine; no I/O, no clock.

mod asking;
mod learning;
mod memory;
mod notes;
mod shown;
mod surveying;
#[cfg(test)]
mod tests;
mod watching;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use gradus_api::names::annotation;
use gradus_api::patch::Difference;
use gradus_engine::Head;
use gradus_engine::ask::Class;
use gradus_engine::decision::{Change, Decision, Event, Kind, Op, Urgency};
use gradus_engine::interlock::{Harm, Invariant};
use gradus_engine::uid::Uid;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use crate::act::{Job, StatusWrite};
use crate::cluster::{Lane, Listing};
use crate::queue::Queue;
use crate::watched::{Key, Reach, Scope, Selection, Standing, Watched};
use asking::{Askable, Asking};
pub use asking::{Inquiry, SettlingRead};
pub use learning::Refusal;
use memory::KeyState;
pub use memory::{Held, HoldChange};
use notes::Notes;
use shown::shown;
use surveying::Surveying;
pub use watching::Seen;
use watching::{Part, Place, Watching};

/// Writes under way at once, over all keys.
const IN_FLIGHT_LIMIT: usize = 64;
/// Of these, kept free for what is urgent.
const URGENT_RESERVE: usize = 8;
/// Of these, for one namespace. More would wait in the API server, before those of others, instead of here:
/// a server with few cores carries out a handful of writes at a time.
const NAMESPACE_LIMIT: usize = IN_FLIGHT_LIMIT / 4;
/// With so many under way a namespace is crowded.
const CROWD: usize = NAMESPACE_LIMIT * 3 / 4;
/// How long counts alone may wait to be written: while an update moves, where many do, and at rest.
const DEFERRED_LIMIT: SignedDuration = SignedDuration::from_secs(1);
const DEFERRED_IN_CROWD: SignedDuration = SignedDuration::from_secs(5);
const DEFERRED_AT_REST: SignedDuration = SignedDuration::from_millis(250);

/// The synchronous heart of a controller: events in, work out, outcomes in.
pub struct Shell<W: Watched> {
    scope: Scope,
    /// What is watched: the constant sources, and those that the index has wanted since.
    watches: BTreeMap<Selection, W::Source>,
    /// What the index wanted beside the constant sources when it was last asked.
    demanded: Vec<W::Source>,
    /// Constant sources that a controller of this scope does not read.
    unread: BTreeSet<W::Source>,
    index: W::Index,
    queue: Queue<Key>,
    keys: BTreeMap<Key, KeyState<W>>,
    watching: Watching<W::Source>,
    notes: Notes<W::Source>,
    asking: Asking,
    surveying: Surveying,
    busy: BTreeMap<Arc<str>, usize>,
    outbox: Vec<(Outgoing, Standing)>,
    alarms: Vec<Alarm>,
    interlock: InterlockMode,
}

/// An Event on its way to the poster.
#[derive(Clone, Debug, PartialEq)]
pub struct Outgoing {
    /// The Event.
    pub event: Event,
    /// Identity of the object it is about.
    pub uid: Uid,
    /// Version of that object when it was decided.
    pub version: u64,
    /// When it happened.
    pub at: Timestamp,
}

/// What happens to a decision that would break an invariant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InterlockMode {
    /// What would do harm is not done.
    #[default]
    Enforce,
    /// It is done, and told.
    Warn,
}

/// Something the operator should hear of.
#[derive(Clone, Debug, PartialEq)]
pub enum Alarm {
    /// Something panicked over one object; all others go on.
    Panicked {
        /// Which object.
        key: Key,
        /// What was being done.
        doing: String,
        /// What the panic said.
        message: String,
    },
    /// A write was refused; it is tried again.
    Refused {
        /// Whose write.
        key: Key,
        /// Which one.
        change: String,
        /// What it means.
        class: Class,
        /// The server's words.
        message: String,
        /// How often in a row.
        times: u32,
    },
    /// A decision would have broken an invariant.
    Interlock {
        /// Whose decision.
        key: Key,
        /// Which invariant.
        invariant: Invariant,
        /// What would have happened.
        message: String,
        /// Was it cut?
        mode: InterlockMode,
    },
    /// A guard holds an object up, or no longer does.
    Hold {
        /// Which object.
        key: Key,
        /// How far its update is.
        standing: Standing,
        /// What is new.
        change: HoldChange,
    },
    /// Status fields the server dropped: its CRD is older than ours.
    Pruned {
        /// Whose status.
        key: Key,
        /// The fields.
        fields: Vec<String>,
    },
}

/// One thing to do outside.
pub enum Work {
    /// Carry a decision out.
    Act(Box<Job>),
    /// Read an object before its key is decided.
    Settle(SettlingRead),
    /// Answer a question.
    Ask(Box<Inquiry>),
    /// List a kind once.
    Survey(Listing),
}

impl<W: Watched> Shell<W> {
    /// A shell that has seen nothing yet.
    pub fn new(scope: &Scope, interlock: InterlockMode) -> Self {
        let mut shell = Shell {
            scope: scope.clone(),
            watches: BTreeMap::new(),
            demanded: Vec::new(),
            unread: BTreeSet::new(),
            index: W::index(scope),
            queue: Queue::new(),
            keys: BTreeMap::new(),
            watching: Watching::new(Vec::new()),
            notes: Notes::default(),
            asking: Asking::default(),
            surveying: Surveying::of::<W>(scope),
            busy: BTreeMap::new(),
            outbox: Vec::new(),
            alarms: Vec::new(),
            interlock,
        };
        for source in W::sources() {
            match W::selection(&source, scope) {
                Some(selection) => {
                    for watch in scope.by_namespace(selection) {
                        shell.watching.add((source.clone(), shell.place(&watch)));
                        shell.watches.insert(watch, source.clone());
                    }
                }
                None => {
                    // Nobody is in the index yet whom that could wake.
                    W::reach(&mut shell.index, &source, Reach::Listed);
                    shell.unread.insert(source);
                }
            }
        }
        shell
    }

    /// The place of a watch among those of its source: its namespace, where there are several.
    fn place(&self, watch: &Selection) -> Place {
        watch.namespace.clone().filter(|_| self.scope.namespaces.len() > 1)
    }

    /// The source that a watch shows, and which part of it.
    pub(crate) fn part(&self, watch: &Selection) -> Option<Part<W::Source>> {
        Some((self.source(watch)?.clone(), self.place(watch)))
    }

    /// Which key is due when.
    pub(crate) fn queue(&self) -> &Queue<Key> {
        &self.queue
    }

    pub(crate) fn queue_mut(&mut self) -> &mut Queue<Key> {
        &mut self.queue
    }

    /// What it remembers of the cluster.
    pub fn index(&self) -> &W::Index {
        &self.index
    }

    /// Are all watched kinds synced?
    pub fn is_synced(&self) -> bool {
        self.watching.has_reached_all(|source| W::kind_of(source) == W::KIND)
    }

    /// What is watched now, in order.
    pub fn selections(&self) -> Vec<Selection> {
        self.watches.keys().cloned().collect()
    }

    /// The source that a watch shows, if it is one of ours.
    pub fn source(&self, watch: &Selection) -> Option<&W::Source> {
        self.watches.get(watch)
    }

    /// Kinds that a controller of this scope does not read.
    pub fn unread_kinds(&self) -> Vec<Kind> {
        self.unread.iter().map(W::kind_of).collect()
    }

    /// What is to be watched from now on, because something in the index names an object of it.
    pub fn take_demands(&mut self) -> Vec<Selection> {
        let mut wanted = Vec::new();
        let demands = W::demands(&self.index);
        if demands == self.demanded {
            return wanted;
        }
        for source in &demands {
            let selection = W::selection(source, &self.scope);
            let watches = selection.map(|one| self.scope.by_namespace(one)).unwrap_or_default();
            for watch in watches {
                if !self.watches.contains_key(&watch) {
                    self.watches.insert(watch.clone(), source.clone());
                    wanted.push(watch);
                }
            }
        }
        self.demanded = demands;
        wanted
    }

    /// When there is something to do even if nothing happens. While no key may be decided, only what
    /// happens can change that.
    pub fn next_due(&self) -> Option<Timestamp> {
        if !self.is_synced() || !self.has_place() {
            return None;
        }
        let queued = self.queue.next_due(room(&self.busy));
        queued.into_iter().chain(self.surveying.next_due()).min()
    }

    /// Events to be posted, in order, and how far their objects were.
    pub fn take_events(&mut self) -> Vec<(Outgoing, Standing)> {
        std::mem::take(&mut self.outbox)
    }

    /// What the operator should hear of.
    pub fn take_alarms(&mut self) -> Vec<Alarm> {
        std::mem::take(&mut self.alarms)
    }

    /// Every held key: which guard, since when we know, and whether that is newly worth a word.
    pub fn held(&mut self, now: Timestamp) -> Vec<(Key, Held)> {
        let held = self
            .keys
            .iter_mut()
            .filter_map(|(key, state)| Some((key.clone(), state.held_for(now)?)));
        held.collect()
    }

    /// World and Decision of a key, as they would be now; for people and bug reports.
    pub fn inspect(&self, key: &Key, now: Timestamp) -> Option<Value> {
        let fresh = KeyState::<W>::default();
        let state = self.keys.get(key).unwrap_or(&fresh);
        let gather = || W::gather(&self.index, key, &state.answers, &state.recall);
        let world = match contained(gather) {
            Ok(world) => world?,
            Err(message) => return Some(json!({ "now": now, "panicked": message })),
        };
        let decision = match contained(|| W::decide(&world, now)) {
            Ok(decision) => shown(&decision),
            Err(message) => json!({ "panicked": message }),
        };
        Some(json!({ "now": now, "kind": W::KIND.name, "world": world, "decision": decision }))
    }

    /// Makes a key due now, as an event would.
    pub fn wake(&mut self, key: Key, now: Timestamp) {
        self.queue.add(key, now);
    }

    /// Forgets what it recalls of earlier decisions: from now on somebody else decides.
    pub fn stand_by(&mut self) {
        self.keys.values_mut().for_each(KeyState::forget);
        self.outbox.clear();
    }

    /// Decides every key again: must change nothing.
    pub fn wake_all(&mut self, now: Timestamp) {
        for key in self.own_keys() {
            self.queue.add(key, now);
        }
    }

    /// Every object of the engine's own kind that the index holds.
    pub fn own_keys(&self) -> Vec<Key> {
        let own = self.watches.values().find(|source| W::kind_of(source) == W::KIND);
        let all = own.map(|source| (W::shelf(source).objects)(&self.index, &W::KIND));
        let keys = all.into_iter().flatten();
        keys.map(|object| Key::new(&object.namespace, &object.name)).collect()
    }

    /// The next thing to do outside; `None` when nothing is due now.
    pub fn next_work(&mut self, now: Timestamp) -> Option<Work> {
        if let Some(asked) = self.next_asked() {
            return Some(asked);
        }
        if !self.is_synced() {
            return None;
        }
        if let Some(listing) = self.next_survey(now) {
            return Some(Work::Survey(listing));
        }
        while self.has_place() {
            let Shell { queue, busy, .. } = self;
            let key = queue.pop_due(now, room(busy))?;
            match contained(|| self.work_on(&key, now)) {
                Ok(None) => {}
                Ok(work) => return work,
                Err(message) => {
                    self.panicked(key.clone(), "deciding".to_owned(), message);
                    self.queue.failed(key.clone(), now);
                    self.queue.finish(&key, now);
                }
            }
            if let Some(asked) = self.next_asked() {
                return Some(asked);
            }
        }
        None
    }

    fn work_on(&mut self, key: &Key, now: Timestamp) -> Option<Work> {
        if let Some(note) = self.notes.first(key) {
            let (due, shown) = (note.due, note.shown.clone());
            if now < due {
                self.queue.finish(key, now);
                self.queue.add(key.clone(), due);
                return None;
            }
            self.settle_first(key, shown);
            return None;
        }
        if let Some(shown) = W::unseen(&self.index, key) {
            self.settle_first(key, shown);
            return None;
        }
        let state = self.keys.entry(key.clone()).or_default();
        let Some(world) = W::gather(&self.index, key, &state.answers, &state.recall) else {
            self.keys.remove(key);
            self.queue.finish(key, now);
            self.queue.succeeded(key);
            return None; // Deleted: owner references do the rest.
        };
        let decision = W::decide(&world, now);
        let harm = W::check(&world, &decision, now);
        let is_cut = harm.is_some() && self.interlock == InterlockMode::Enforce;
        let askable = if is_cut { Askable::Reads } else { Askable::All };
        let decision = self.checked(key, decision, harm);
        self.carry(key, &world, decision, askable, now)
    }

    fn panicked(&mut self, key: Key, doing: String, message: String) {
        self.alarms.push(Alarm::Panicked { key, doing, message });
    }

    /// What may be acted on of a decision that would break something.
    fn checked<D>(&mut self, key: &Key, decision: D, harm: Option<Harm<D>>) -> D {
        let Some(Harm { invariant, message, cut }) = harm else { return decision };
        let (key, mode) = (key.clone(), self.interlock);
        self.alarms.push(Alarm::Interlock { key, invariant, message, mode });
        match mode {
            InterlockMode::Enforce => cut,
            InterlockMode::Warn => decision,
        }
    }

    /// Puts a key that has nothing to do back, until its time comes. Whatever wakes it before that is
    /// decided: nothing is compared with the World it rested on.
    fn rest(&mut self, key: &Key, wake_at: Option<Timestamp>, now: Timestamp) {
        self.queue.finish(key, now);
        if let Some(due) = wake_at {
            self.queue.add(key.clone(), due);
        }
    }

    /// May one more job be under way?
    fn has_place(&self) -> bool {
        self.busy.values().sum::<usize>() < IN_FLIGHT_LIMIT
    }

    /// How long a status may wait for another write that it can ride on. Where many objects move at
    /// once, the server has more to do than to be told of every pod.
    fn patience(&self, namespace: &Arc<str>, urgency: Urgency) -> SignedDuration {
        let is_crowded = self.busy.get(namespace).is_some_and(|jobs| *jobs >= CROWD);
        match urgency {
            Urgency::Now => SignedDuration::ZERO,
            Urgency::Shortly => DEFERRED_AT_REST,
            Urgency::Within1s if is_crowded => DEFERRED_IN_CROWD,
            Urgency::Within1s => DEFERRED_LIMIT,
        }
    }

    /// Turns a decision into a job, or lets the key rest when there is nothing to write now.
    fn carry(
        &mut self,
        key: &Key,
        world: &W::World,
        decision: Decision<W::Status, W::Memo>,
        askable: Askable,
        now: Timestamp,
    ) -> Option<Work> {
        let head = W::head(world);
        let limit = self.patience(&key.namespace, decision.urgency);
        let state = self.keys.entry(key.clone()).or_default();
        if let Some(change) = state.watch_guard(&decision.why, now) {
            let standing = standing::<W>(world, &head, &decision);
            self.alarms.push(Alarm::Hold { key: key.clone(), standing, change });
        }
        state.forget_failed(&decision, now);
        let differs = decision.status.as_ref().is_some_and(|new| new != W::stored_status(world));
        let due = *state.deferred.get_or_insert(now) + limit;
        let wake_at = decision.wake_at.into_iter().chain(state.next_retry(now)).min();
        let (patch, wake_at) = if differs && now < due {
            (None, Some(wake_at.map_or(due, |wake| wake.min(due))))
        } else {
            state.deferred = None;
            (status_patch::<W>(world, &decision, &state.pruned), wake_at)
        };
        let is_deferred = state.deferred.is_some();
        if decision.changes.is_empty() && patch.is_none() {
            if !is_deferred {
                state.recall.memo = decision.memo;
            }
            // Nothing is left to be stored: what acts outside is justified by what is.
            let askable = if is_deferred { Askable::Reads } else { askable };
            self.start_asks(key, &decision.asks, askable, now);
            self.queue.succeeded(key);
            self.rest(key, wake_at, now);
            return None;
        }
        self.start_asks(key, &decision.asks, Askable::Reads, now);
        let state = self.keys.entry(key.clone()).or_default();
        *self.busy.entry(Arc::clone(&key.namespace)).or_default() += 1;
        let status = patch.map(|patch| StatusWrite { patch: Arc::new(patch), place: W::STATUS });
        let standing = standing::<W>(world, &head, &decision);
        state.pending_memo = (!is_deferred).then_some(decision.memo);
        let Decision { changes, events, .. } = decision;
        Some(Work::Act(Box::new(Job {
            key: key.clone(),
            standing,
            head,
            changes,
            status,
            events,
            wake_at,
            decided_at: now,
            lane: if self.queue.is_urgent(key) { Lane::Urgent } else { Lane::Ordinary },
        })))
    }
}

/// How far the update of an object is once a decision is carried out.
fn standing<W: Watched>(
    world: &W::World,
    head: &Head,
    decision: &Decision<W::Status, W::Memo>,
) -> Standing {
    let standing = W::standing(world, decision.status.as_ref());
    let revision = noted_revision(head, &decision.changes).or(standing.revision);
    Standing { revision, ..standing }
}

/// The revision that a change of the object itself gives it.
fn noted_revision(head: &Head, changes: &[Change]) -> Option<String> {
    let own = changes.iter().filter(|change| change.target == head.object);
    own.filter_map(|change| match &change.op {
        Op::Merge(patch) => patch["metadata"]["annotations"][annotation::REVISION].as_str(),
        _ => None,
    })
    .map(str::to_owned)
    .next()
}

/// May one more job that is not urgent be under way in a namespace?
fn room(busy: &BTreeMap<Arc<str>, usize>) -> impl Fn(&Arc<str>) -> bool {
    let has_place = busy.values().sum::<usize>() < IN_FLIGHT_LIMIT - URGENT_RESERVE;
    move |namespace| has_place && busy.get(namespace).copied().unwrap_or(0) < NAMESPACE_LIMIT
}

/// The patch from the stored to the wanted status, without fields the server drops.
fn status_patch<W: Watched>(
    world: &W::World,
    decision: &Decision<W::Status, W::Memo>,
    pruned: &std::collections::BTreeSet<String>,
) -> Option<Value> {
    let wanted = decision.status.as_ref()?;
    let mut difference = W::stored_status(world).difference(wanted)?;
    if let Value::Object(fields) = &mut difference {
        fields.retain(|field, _| !pruned.contains(field));
        if fields.is_empty() {
            return None;
        }
    }
    Some(Map::from_iter([("status".to_owned(), difference)]).into())
}

/// What comes of work on one object, or what its panic said: no object may end the program.
fn contained<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        text.or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "a panic without a message".to_owned())
    })
}
