//! Which key is due when? A data structure, no timers: the caller brings the time.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

#[cfg(test)]
mod tests;

/// Delay after the first failure of a key; it doubles with each further one.
pub const FIRST_DELAY: SignedDuration = SignedDuration::from_millis(1);

/// The longest delay after a failure.
pub const LONGEST_DELAY: SignedDuration = SignedDuration::from_secs(10);

/// Keys waiting for their time. A key waits at most once, for the earliest of the times it was
/// added with, and is never handed out again before it is finished.
#[derive(Clone, Debug)]
pub struct Queue<K> {
    /// Every waiting key and its time; also of keys in flight, which were added meanwhile.
    due: BTreeMap<K, Timestamp>,
    /// The waiting keys that are not in flight, earliest first, ties by key.
    order: BTreeSet<(Timestamp, K)>,
    /// Keys handed out and not yet finished.
    in_flight: BTreeSet<K>,
    /// How often in a row a key failed.
    failures: BTreeMap<K, u32>,
    /// Keys that are not handed out before a time, whatever they are added with.
    held: BTreeMap<K, Timestamp>,
}

impl<K> Default for Queue<K> {
    fn default() -> Self {
        Queue {
            due: BTreeMap::new(),
            order: BTreeSet::new(),
            in_flight: BTreeSet::new(),
            failures: BTreeMap::new(),
            held: BTreeMap::new(),
        }
    }
}

impl<K: Ord + Clone> Queue<K> {
    /// A queue with nothing in it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the key due at that time, unless it is due earlier already.
    pub fn add(&mut self, key: K, due: Timestamp) {
        let due = self.held.get(&key).map_or(due, |until| due.max(*until));
        let earlier = self.due.get(&key).copied();
        if earlier.is_some_and(|earlier| earlier <= due) {
            return;
        }
        if let Some(earlier) = earlier {
            self.order.remove(&(earlier, key.clone()));
        }
        if !self.in_flight.contains(&key) {
            self.order.insert((due, key.clone()));
        }
        self.due.insert(key, due);
    }

    /// Hands out the key that has been due for longest; it is in flight until [`Queue::finish`].
    pub fn pop_due(&mut self, now: Timestamp) -> Option<K> {
        if self.next_due()? > now {
            return None;
        }
        let (_, key) = self.order.pop_first()?;
        self.due.remove(&key);
        self.held.remove(&key);
        self.in_flight.insert(key.clone());
        Some(key)
    }

    /// When the next key can be handed out; keys in flight do not count.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.order.first().map(|(due, _)| *due)
    }

    /// Ends the flight of a key. What was added meanwhile can be handed out from now on.
    pub fn finish(&mut self, key: &K) {
        if !self.in_flight.remove(key) {
            return;
        }
        if let Some(due) = self.due.get(key) {
            self.order.insert((*due, key.clone()));
        }
    }

    /// Notes a failure and makes the key due again after its back-off. Returns that time.
    pub fn failed(&mut self, key: K, now: Timestamp) -> Timestamp {
        let failures = self.failures.entry(key.clone()).or_default();
        let due = now.checked_add(back_off(*failures)).unwrap_or(Timestamp::MAX);
        *failures = failures.saturating_add(1);
        self.add(key, due);
        due
    }

    /// Makes the key due at that time and not before, whatever it is or will be added with.
    pub fn hold(&mut self, key: K, until: Timestamp) {
        if let Some(earlier) = self.due.remove(&key) {
            self.order.remove(&(earlier, key.clone()));
        }
        let held = self.held.entry(key.clone()).or_insert(until);
        *held = until.max(*held);
        self.add(key, until);
    }

    /// Forgets the failures of a key: its next back-off starts small again.
    pub fn succeeded(&mut self, key: &K) {
        self.failures.remove(key);
    }

    /// Forgets the key: its time and its failures. A flight still has to be finished.
    pub fn remove(&mut self, key: &K) {
        if let Some(due) = self.due.remove(key) {
            self.order.remove(&(due, key.clone()));
        }
        self.failures.remove(key);
        self.held.remove(key);
    }

    /// How many keys wait, those in flight that were added again included.
    pub fn len(&self) -> usize {
        self.due.len()
    }

    /// Does no key wait?
    pub fn is_empty(&self) -> bool {
        self.due.is_empty()
    }

    /// How many keys are handed out and not yet finished.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }
}

/// The delay after one more failure than so many before: 1 ms, 2 ms, 4 ms, … 10 s.
pub fn back_off(failures_before: u32) -> SignedDuration {
    let factor = 1i32.checked_shl(failures_before).filter(|factor| *factor > 0);
    let delay = factor.and_then(|factor| FIRST_DELAY.checked_mul(factor));
    delay.map_or(LONGEST_DELAY, |delay| delay.min(LONGEST_DELAY))
}
