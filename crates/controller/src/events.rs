//! Which Event is posted next? One at a time per object, in order, repeated ones counted up.

mod known;
mod poster;
mod ready;
mod told;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use gradus_api::names::event_type;
use gradus_engine::ask::Class;
use gradus_engine::decision::{EventKind, ObjectRef};
use jiff::{SignedDuration, Timestamp};

use crate::cluster::{PostedEvent, WriteError};
use crate::shell::Outgoing;
use known::KnownEvents;
pub use poster::post_events;
use ready::ReadyObjects;

#[cfg(test)]
mod tests;

/// Events that may wait per object: more are a flood, not news.
pub const OBJECT_LIMIT: usize = 256;

/// Events that may wait in all.
pub const LIMIT: usize = 100_000;

/// Tries of one Event: enough to outlive an API server that is away for a minute.
const TRIES: u32 = 12;

/// How long to wait after a failed try, at first and at most.
const TRY_AGAIN: (SignedDuration, SignedDuration) =
    (SignedDuration::from_millis(500), SignedDuration::from_secs(10));

/// Longest name of an Event, as of any object.
const NAME_LIMIT: usize = 253;

/// Events on their way to the API server. A data structure: the caller brings time and posts.
#[derive(Debug, Default)]
pub struct Outbox {
    lanes: BTreeMap<ObjectRef, Lane>,
    /// Objects with something to post.
    ready: ReadyObjects,
    /// Objects whose next try is later.
    resting: BTreeSet<(Timestamp, ObjectRef)>,
    /// Every waiting Event by its number, the oldest first.
    waiting: BTreeMap<u64, ObjectRef>,
    /// Those of them that repeat an earlier one of the same object.
    repeated: BTreeSet<u64>,
    known: KnownEvents,
    next_number: u64,
    last_stamp: i128,
    limits: OutboxLimits,
}

/// Limits of an outbox; others than the constants only in tests.
#[derive(Clone, Copy, Debug)]
struct OutboxLimits {
    object: usize,
    all: usize,
}

impl Default for OutboxLimits {
    fn default() -> Self {
        OutboxLimits { object: OBJECT_LIMIT, all: LIMIT }
    }
}

/// The Events of one object.
#[derive(Debug, Default)]
struct Lane {
    entries: VecDeque<Entry>,
    is_posting: bool,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    outgoing: Outgoing,
    /// An earlier try: it keeps its name and count.
    tried: Option<(PostedEvent, u32)>,
}

/// One Event to be posted now. Its outcome must be told with [`Outbox::done`].
#[derive(Debug)]
pub struct Posting {
    /// What is posted.
    pub event: PostedEvent,
    number: u64,
    outgoing: Outgoing,
    tries: u32,
}

impl Outbox {
    /// Takes an Event in. Returns how many had to be given up for it.
    pub fn push(&mut self, outgoing: Outgoing) -> u64 {
        let object = outgoing.event.about.clone();
        let number = self.next_number;
        self.next_number += 1;
        let lane = self.lanes.entry(object.clone()).or_default();
        let is_repeated = self.known.get(&outgoing).is_some()
            || lane.entries.iter().any(|entry| is_same(&entry.outgoing, &outgoing));
        let is_first = lane.entries.is_empty();
        lane.entries.push_back(Entry { number, outgoing, tried: None });
        let (is_posting, length) = (lane.is_posting, lane.entries.len());
        self.waiting.insert(number, object.clone());
        if is_repeated {
            self.repeated.insert(number);
        }
        if is_first && !is_posting {
            self.ready.push(object.clone());
        }
        if length > self.limits.object {
            self.give_up_one_of(&object);
            return 1;
        }
        if self.waiting.len() > self.limits.all {
            self.give_up_oldest();
            return 1;
        }
        0
    }

    /// The next Event to post, if one may be posted now.
    pub fn next(&mut self, now: Timestamp) -> Option<Posting> {
        while self.resting.first().is_some_and(|(due, _)| *due <= now) {
            let rested = self.resting.pop_first();
            rested.into_iter().for_each(|(_, object)| self.ready.push(object));
        }
        loop {
            let object = self.ready.pop()?;
            let Some(lane) = self.lanes.get_mut(&object) else { continue };
            if lane.is_posting {
                continue; // It was noted twice; its outcome makes it ready again.
            }
            let Some(entry) = lane.entries.pop_front() else {
                self.lanes.remove(&object); // Its Events were given up.
                continue;
            };
            lane.is_posting = true;
            self.waiting.remove(&entry.number);
            self.repeated.remove(&entry.number);
            let Entry { number, outgoing, tried } = entry;
            let (event, tries) = tried.unwrap_or_else(|| (self.draw(&outgoing), 0));
            return Some(Posting { event, number, outgoing, tries });
        }
    }

    /// When the next Event may be posted, if there is none now.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.resting.first().map(|(due, _)| *due)
    }

    /// Is there nothing to post, now or later?
    pub fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// Takes in the outcome of a posting. An error that comes back means: given up.
    pub fn done(
        &mut self,
        posting: Posting,
        outcome: Result<(), WriteError>,
        now: Timestamp,
    ) -> Result<(), WriteError> {
        let object = posting.outgoing.event.about.clone();
        let lane = self.lanes.entry(object.clone()).or_default();
        lane.is_posting = false;
        let outcome = match outcome {
            // Names are used once, so this is our own of a try whose answer was lost.
            Err(error) if error.class == Class::Exists => Ok(()),
            Err(error) if is_worth_another_try(&error, posting.tries) => {
                let due = now + delay(&error, posting.tries);
                self.retry(posting, due);
                return Ok(());
            }
            other => other,
        };
        if lane.entries.is_empty() {
            self.lanes.remove(&object);
        } else {
            self.ready.push(object);
        }
        if outcome.is_ok() {
            self.known.note(&posting.outgoing, &posting.event);
        }
        outcome
    }

    fn retry(&mut self, posting: Posting, due: Timestamp) {
        let Posting { event, number, outgoing, tries } = posting;
        let object = outgoing.event.about.clone();
        let lane = self.lanes.entry(object.clone()).or_default();
        lane.entries.push_front(Entry { number, outgoing, tried: Some((event, tries + 1)) });
        self.waiting.insert(number, object.clone());
        self.resting.insert((due, object));
    }

    /// The Event as it is sent: a new one, or an earlier one counted up.
    fn draw(&mut self, outgoing: &Outgoing) -> PostedEvent {
        let Outgoing { event, uid, version, at } = outgoing;
        let earlier = self.known.get(outgoing);
        let (name, first, count) = match earlier {
            Some(earlier) => (earlier.name.to_string(), earlier.first, earlier.count + 1),
            None => {
                self.last_stamp = at.as_nanosecond().max(self.last_stamp + 1);
                (name(&event.about.name, self.last_stamp), *at, 1)
            }
        };
        PostedEvent {
            about: event.about.clone(),
            uid: *uid,
            version: *version,
            name,
            kind: kind_name(event.kind),
            reason: event.reason.to_string(),
            message: event.message.clone(),
            first,
            last: *at,
            count,
        }
    }

    /// Gives up the oldest repeated Event of an object, or its oldest.
    fn give_up_one_of(&mut self, object: &ObjectRef) {
        let Some(lane) = self.lanes.get(object) else { return };
        let mut numbers = lane.entries.iter().map(|entry| entry.number);
        let oldest = lane.entries.front().map(|entry| entry.number);
        let victim = numbers.find(|number| self.repeated.contains(number)).or(oldest);
        if let Some(number) = victim {
            self.give_up(number);
        }
    }

    /// Gives up the oldest repeated Event of all, or the oldest.
    fn give_up_oldest(&mut self) {
        let oldest = self.waiting.keys().next().copied();
        if let Some(number) = self.repeated.first().copied().or(oldest) {
            self.give_up(number);
        }
    }

    fn give_up(&mut self, number: u64) {
        self.repeated.remove(&number);
        let Some(object) = self.waiting.remove(&number) else { return };
        if let Some(lane) = self.lanes.get_mut(&object) {
            lane.entries.retain(|entry| entry.number != number);
        }
    }
}

/// The type of an Event as the API writes it.
pub fn kind_name(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Normal => event_type::NORMAL,
        EventKind::Warning => event_type::WARNING,
    }
}

fn is_same(one: &Outgoing, other: &Outgoing) -> bool {
    one.uid == other.uid
        && one.event.reason == other.event.reason
        && one.event.message == other.event.message
}

/// The name of an Event: its object's, and a number that only rises.
fn name(object: &str, stamp: i128) -> String {
    let stamp = format!("{stamp:x}");
    let room = NAME_LIMIT - 1 - stamp.len();
    let object = object.get(..room).unwrap_or(object).trim_end_matches(['.', '-']);
    format!("{object}.{stamp}")
}

fn is_worth_another_try(error: &WriteError, tries: u32) -> bool {
    let may_pass = match error.class {
        Class::Throttled | Class::Unreachable | Class::Unknown | Class::Stale => true,
        // No such namespace, or not permitted: it will not be better next time.
        Class::Gone | Class::Denied | Class::Exists => false,
    };
    may_pass && tries + 1 < TRIES
}

fn delay(error: &WriteError, tries: u32) -> SignedDuration {
    let (first, longest) = TRY_AGAIN;
    let doubled = first.checked_mul(1 << tries.min(16)).unwrap_or(longest).min(longest);
    let asked = error.retry_after_secs.unwrap_or(0);
    doubled.max(SignedDuration::from_secs(asked.into()).min(longest))
}
