//! Does the queue keep every add, its order and its back-off, whatever is done to it?

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use proptest::collection::vec;
use proptest::prelude::*;

use super::{FIRST_DELAY, LONGEST_DELAY, Queue};

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(millis).unwrap()
}

#[derive(Clone, Debug)]
enum Step {
    Add(u8, i64),
    Pop(i64),
    Finish(u8),
    Fail(u8, i64),
    Succeed(u8),
    Remove(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let key = 0u8..5;
    let time = 0i64..100;
    prop_oneof![
        4 => (key.clone(), time.clone()).prop_map(|(key, due)| Step::Add(key, due)),
        4 => time.clone().prop_map(Step::Pop),
        3 => key.clone().prop_map(Step::Finish),
        2 => (key.clone(), time).prop_map(|(key, now)| Step::Fail(key, now)),
        1 => key.clone().prop_map(Step::Succeed),
        1 => key.prop_map(Step::Remove),
    ]
}

/// The same promises, kept in the most obvious way.
#[derive(Default)]
struct Model {
    waiting: BTreeMap<u8, Timestamp>,
    in_flight: BTreeSet<u8>,
    failures: BTreeMap<u8, u32>,
}

impl Model {
    fn add(&mut self, key: u8, due: Timestamp) {
        let entry = self.waiting.entry(key).or_insert(due);
        *entry = due.min(*entry);
    }

    fn next(&self) -> Option<(Timestamp, u8)> {
        let free = self.waiting.iter().filter(|(key, _)| !self.in_flight.contains(key));
        free.map(|(key, due)| (*due, *key)).min()
    }

    fn pop(&mut self, now: Timestamp) -> Option<u8> {
        let (due, key) = self.next()?;
        if due > now {
            return None;
        }
        self.waiting.remove(&key);
        assert!(self.in_flight.insert(key), "key {key} is in flight already");
        Some(key)
    }
}

fn take(step: Step, queue: &mut Queue<u8>, model: &mut Model) {
    match step {
        Step::Add(key, due) => {
            queue.add(key, at(due));
            model.add(key, at(due));
        }
        Step::Pop(now) => assert_eq!(queue.pop_due(at(now)), model.pop(at(now))),
        Step::Finish(key) => {
            queue.finish(&key);
            model.in_flight.remove(&key);
        }
        Step::Fail(key, now) => {
            let due = queue.failed(key, at(now));
            let failures = model.failures.entry(key).or_default();
            let millis = (1i64 << (*failures).min(20)).min(10_000);
            *failures += 1;
            assert_eq!(due, at(now + millis), "failure number {failures}");
            model.add(key, due);
        }
        Step::Succeed(key) => {
            queue.succeeded(&key);
            model.failures.remove(&key);
        }
        Step::Remove(key) => {
            queue.remove(&key);
            model.waiting.remove(&key);
            model.failures.remove(&key);
        }
    }
}

proptest! {
    #[test]
    fn the_queue_does_what_its_model_does(steps in vec(step(), 0..200)) {
        let mut queue = Queue::new();
        let mut model = Model::default();
        for step in steps {
            take(step, &mut queue, &mut model);
            prop_assert_eq!(queue.next_due(), model.next().map(|(due, _)| due));
            prop_assert_eq!(queue.len(), model.waiting.len());
            prop_assert_eq!(queue.is_empty(), model.waiting.is_empty());
            prop_assert_eq!(queue.in_flight(), model.in_flight.len());
        }
    }

    #[test]
    fn no_add_is_lost(steps in vec(step(), 0..200)) {
        let mut queue = Queue::new();
        let mut owed = BTreeSet::new();
        for step in steps {
            match step {
                Step::Add(key, due) => {
                    queue.add(key, at(due));
                    owed.insert(key);
                }
                Step::Fail(key, now) => {
                    queue.failed(key, at(now));
                    owed.insert(key);
                }
                Step::Pop(now) => {
                    queue.pop_due(at(now)).map(|key| owed.remove(&key));
                }
                Step::Finish(key) => queue.finish(&key),
                Step::Succeed(key) => queue.succeeded(&key),
                Step::Remove(key) => {
                    queue.remove(&key);
                    owed.remove(&key);
                }
            }
        }
        for key in 0..5 {
            queue.finish(&key);
        }
        let mut paid = BTreeSet::new();
        while let Some(key) = queue.pop_due(Timestamp::MAX) {
            prop_assert!(paid.insert(key), "key {} came twice", key);
        }
        prop_assert_eq!(paid, owed);
    }

    #[test]
    fn keys_come_in_the_order_of_their_times_then_of_their_names(
        adds in vec((0u8..20, 0i64..50), 0..60),
    ) {
        let mut queue = Queue::new();
        let mut earliest = BTreeMap::new();
        for (key, due) in adds {
            queue.add(key, at(due));
            let entry = earliest.entry(key).or_insert(due);
            *entry = due.min(*entry);
        }
        let mut expected: Vec<_> = earliest.into_iter().map(|(key, due)| (due, key)).collect();
        expected.sort_unstable();
        let seen: Vec<_> = std::iter::from_fn(|| queue.pop_due(at(50))).collect();
        prop_assert_eq!(seen, expected.into_iter().map(|(_, key)| key).collect::<Vec<_>>());
    }

    #[test]
    fn back_off_never_shrinks_and_stays_in_its_bounds(failures in 1usize..200) {
        let mut queue = Queue::new();
        let mut last = SignedDuration::ZERO;
        for _ in 0..failures {
            let delay = queue.failed("key", at(0)).duration_since(at(0));
            prop_assert!(FIRST_DELAY <= delay && delay <= LONGEST_DELAY);
            prop_assert!(last < delay || delay == LONGEST_DELAY);
            last = delay;
        }
        queue.succeeded(&"key");
        prop_assert_eq!(queue.failed("key", at(0)), at(1));
    }
}

#[test]
fn a_key_added_in_flight_waits_for_its_finish() {
    let mut queue = Queue::new();
    queue.add("web", at(0));
    assert_eq!(queue.pop_due(at(0)), Some("web"));
    queue.add("web", at(5));
    assert_eq!(queue.next_due(), None, "in flight: nothing to wait for");
    assert_eq!(queue.pop_due(at(9)), None, "in flight: not handed out twice");
    queue.finish(&"web");
    assert_eq!(queue.next_due(), Some(at(5)));
    assert_eq!(queue.pop_due(at(4)), None, "not yet due");
    assert_eq!(queue.pop_due(at(5)), Some("web"), "due at its instant");
}

#[test]
fn an_event_overtakes_the_back_off() {
    let mut queue = Queue::new();
    for _ in 0..14 {
        queue.failed("web", at(0));
        queue.pop_due(Timestamp::MAX);
        queue.finish(&"web");
    }
    assert_eq!(queue.failed("web", at(0)), at(10_000));
    queue.add("web", at(3));
    assert_eq!(queue.next_due(), Some(at(3)));
}

#[test]
fn a_removed_key_starts_afresh() {
    let mut queue = Queue::new();
    queue.failed("web", at(0));
    queue.failed("web", at(0));
    queue.remove(&"web");
    assert!(queue.is_empty());
    assert_eq!(queue.failed("web", at(0)), at(1));
}
