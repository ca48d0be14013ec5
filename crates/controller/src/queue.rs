//! Which key is due when, and whose turn is it? A data structure, no timers: the caller brings the time.

mod turns;

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use turns::GroupTurns;

use crate::telemetry::QueueMetrics;

#[cfg(test)]
mod tests;

/// Delay after the first failure of a key; it doubles with each further one.
pub const FIRST_DELAY: SignedDuration = SignedDuration::from_millis(1);

/// The delay after a write that the server denies. Missing rights, a quota or an admission policy do
/// not mend within milliseconds, and every try costs the server and its webhooks a request.
pub const FIRST_DELAY_OF_DENIED: SignedDuration = SignedDuration::from_millis(250);

/// The longest delay after a failure.
pub const LONGEST_DELAY: SignedDuration = SignedDuration::from_secs(10);

/// A key of a group. Groups take turns, so that a group with many keys does not delay the others.
pub trait Grouped: Ord + Clone {
    /// What keys are grouped by.
    type Group: Ord + Clone + std::fmt::Debug;

    /// The group of this key.
    fn group(&self) -> Self::Group;
}

/// Keys waiting for their time. A key waits at most once, for the earliest of the times it was
/// added with, and is never handed out again before it is finished. Urgent keys come first, then
/// groups take turns; within a group the key that has been due for longest comes first, and of two
/// that are due at the same time the one that was added first.
#[derive(Clone, Debug)]
pub struct Queue<K: Grouped> {
    /// Every waiting key and its place; also of keys in flight, which were added meanwhile.
    waiting: BTreeMap<K, QueuePlace>,
    /// The waiting keys that are not in flight and whose time had not come when last looked at.
    later: BTreeSet<(QueuePlace, K)>,
    /// Those whose time has come.
    urgent_now: GroupTurns<K>,
    now: GroupTurns<K>,
    /// Keys that go before all others.
    urgent: BTreeSet<K>,
    /// Keys handed out and not yet finished, and since when.
    in_flight: BTreeMap<K, Timestamp>,
    /// How often in a row a key failed.
    failures: BTreeMap<K, u32>,
    /// Keys that are not handed out before a time, whatever they are added with.
    held: BTreeMap<K, Timestamp>,
    /// How many places were given out.
    places: u64,
    /// Where it is shown, if anywhere.
    metrics: Option<QueueMetrics>,
}

/// Where a key stands in the queue: by its time, then by when it was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct QueuePlace {
    due: Timestamp,
    number: u64,
}

impl<K: Grouped> Default for Queue<K> {
    fn default() -> Self {
        Queue {
            waiting: BTreeMap::new(),
            later: BTreeSet::new(),
            urgent_now: GroupTurns::default(),
            now: GroupTurns::default(),
            urgent: BTreeSet::new(),
            in_flight: BTreeMap::new(),
            failures: BTreeMap::new(),
            held: BTreeMap::new(),
            places: 0,
            metrics: None,
        }
    }
}

impl<K: Grouped> Queue<K> {
    /// A queue with nothing in it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the key due at that time, unless it is due earlier already.
    pub fn add(&mut self, key: K, due: Timestamp) {
        let due = self.held.get(&key).map_or(due, |until| due.max(*until));
        let earlier = self.waiting.get(&key).copied();
        if earlier.is_some_and(|earlier| earlier.due <= due) {
            return;
        }
        if let Some(earlier) = earlier {
            self.take_out(&key, earlier);
        }
        self.places += 1;
        let place = QueuePlace { due, number: self.places };
        if !self.in_flight.contains_key(&key) {
            self.later.insert((place, key.clone()));
        }
        self.waiting.insert(key, place);
    }

    /// Says whether a key goes before those that are not urgent, from now on.
    pub fn set_urgent(&mut self, key: &K, is_urgent: bool) {
        if self.urgent.contains(key) == is_urgent {
            return;
        }
        // It finds its new place when the queue is next looked at.
        if let Some(place) = self.waiting.get(key).copied()
            && self.take_out(key, place)
        {
            self.later.insert((place, key.clone()));
        }
        if is_urgent {
            self.urgent.insert(key.clone());
        } else {
            self.urgent.remove(key);
        }
    }

    /// Does this key go before those that are not urgent?
    pub fn is_urgent(&self, key: &K) -> bool {
        self.urgent.contains(key)
    }

    /// Hands out the key whose turn it is; it is in flight until [`Queue::finish`]. A key that is not
    /// urgent waits for as long as its group has no room.
    pub fn pop_due(&mut self, now: Timestamp, has_room: impl Fn(&K::Group) -> bool) -> Option<K> {
        while self.later.first().is_some_and(|(place, _)| place.due <= now) {
            let Some((place, key)) = self.later.pop_first() else { break };
            let is_urgent = self.urgent.contains(&key);
            self.count(|metrics| metrics.adds.inc());
            let turns = if is_urgent { &mut self.urgent_now } else { &mut self.now };
            turns.insert(place, key);
        }
        let key = self.urgent_now.pop(now, |_| true).or_else(|| self.now.pop(now, has_room));
        let depth = self.urgent_now.len() + self.now.len();
        self.count(|metrics| metrics.depth.set(i64::try_from(depth).unwrap_or(i64::MAX)));
        let key = key?;
        if let Some(place) = self.waiting.remove(&key) {
            self.count(|metrics| metrics.waited.observe(seconds(place.due, now)));
        }
        self.held.remove(&key);
        self.in_flight.insert(key.clone(), now);
        Some(key)
    }

    /// When the next key can be handed out; those in flight, and those that are due and whose group
    /// has no room, do not count.
    pub fn next_due(&self, has_room: impl Fn(&K::Group) -> bool) -> Option<Timestamp> {
        let now = self.urgent_now.next(|_| true).or_else(|| self.now.next(has_room));
        let later = self.later.first().map(|(place, _)| *place);
        now.into_iter().chain(later).min().map(|place| place.due)
    }

    /// Ends the flight of a key. What was added meanwhile can be handed out from now on.
    pub fn finish(&mut self, key: &K, now: Timestamp) {
        let Some(since) = self.in_flight.remove(key) else { return };
        self.count(|metrics| metrics.worked.observe(seconds(since, now)));
        if let Some(place) = self.waiting.get(key) {
            self.later.insert((*place, key.clone()));
        }
    }

    /// Notes a failure and makes the key due again after its back-off. Returns that time.
    pub fn failed(&mut self, key: K, now: Timestamp) -> Timestamp {
        let failures = self.failures.entry(key.clone()).or_default();
        let due = now.checked_add(back_off(*failures)).unwrap_or(Timestamp::MAX);
        *failures = failures.saturating_add(1);
        self.count(|metrics| metrics.retries.inc());
        self.add(key, due);
        due
    }

    /// Makes the key due at that time and not before, whatever it is or will be added with.
    pub fn hold(&mut self, key: K, until: Timestamp) {
        if let Some(earlier) = self.waiting.remove(&key) {
            self.take_out(&key, earlier);
        }
        let held = self.held.entry(key.clone()).or_insert(until);
        *held = until.max(*held);
        self.add(key, until);
    }

    /// Forgets the failures of a key: its next back-off starts small again.
    pub fn succeeded(&mut self, key: &K) {
        self.failures.remove(key);
    }

    /// Forgets the key: its time, its failures and its urgency. A flight still has to be finished.
    pub fn remove(&mut self, key: &K) {
        if let Some(place) = self.waiting.remove(key) {
            self.take_out(key, place);
        }
        self.failures.remove(key);
        self.held.remove(key);
        self.urgent.remove(key);
    }

    /// How many keys wait, those in flight that were added again included.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Does no key wait?
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// How many keys are handed out and not yet finished.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// From now on it is shown there.
    pub fn show(&mut self, metrics: QueueMetrics) {
        self.metrics = Some(metrics);
    }

    /// Shows for how long the keys in flight have been so.
    pub fn show_in_flight(&self, now: Timestamp) {
        let taken = self.in_flight.values().map(|since| seconds(*since, now));
        let (sum, longest) = taken
            .fold((0.0, 0.0_f64), |(sum, longest), seconds| (sum + seconds, longest.max(seconds)));
        self.count(|metrics| {
            metrics.unfinished.set(sum);
            metrics.longest.set(longest);
        });
    }

    fn count(&self, what: impl FnOnce(&QueueMetrics)) {
        if let Some(metrics) = &self.metrics {
            what(metrics);
        }
    }

    /// Takes a key out of the order it stands in; a key in flight stands in none.
    fn take_out(&mut self, key: &K, place: QueuePlace) -> bool {
        self.later.remove(&(place, key.clone()))
            || self.now.remove(place, key)
            || self.urgent_now.remove(place, key)
    }
}

/// The seconds between two times; a clock that was set back does not make them negative.
fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64().max(0.0)
}

/// The delay after one more failure than so many before: 1 ms, 2 ms, 4 ms, … 10 s.
pub fn back_off(failures_before: u32) -> SignedDuration {
    growing(FIRST_DELAY, failures_before)
}

/// The same for a write that the server denies: 250 ms, 500 ms, 1 s, … 10 s.
pub fn back_off_of_denied(failures_before: u32) -> SignedDuration {
    growing(FIRST_DELAY_OF_DENIED, failures_before)
}

fn growing(first: SignedDuration, failures_before: u32) -> SignedDuration {
    let factor = 1i32.checked_shl(failures_before).filter(|factor| *factor > 0);
    let delay = factor.and_then(|factor| first.checked_mul(factor));
    delay.map_or(LONGEST_DELAY, |delay| delay.min(LONGEST_DELAY))
}
