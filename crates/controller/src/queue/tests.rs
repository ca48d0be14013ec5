//! Does the queue keep every add, its order and its back-off, whatever is done to it?

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use proptest::collection::vec;
use proptest::prelude::*;

use super::{FIRST_DELAY, Grouped, LONGEST_DELAY, Queue};

impl Grouped for u8 {
    type Group = ();

    fn group(&self) {}
}

/// A text is in the group of its first letter.
impl Grouped for &str {
    type Group = Option<char>;

    fn group(&self) -> Option<char> {
        self.chars().next()
    }
}

/// There is room for all.
fn room<G>(_: &G) -> bool {
    true
}

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
    /// When each key is due, and the number of the addition that said so.
    waiting: BTreeMap<u8, (Timestamp, usize)>,
    additions: usize,
    in_flight: BTreeSet<u8>,
    failures: BTreeMap<u8, u32>,
}

impl Model {
    fn add(&mut self, key: u8, due: Timestamp) {
        self.additions += 1;
        let place = (due, self.additions);
        let entry = self.waiting.entry(key).or_insert(place);
        *entry = place.min(*entry);
    }

    fn next(&self) -> Option<(Timestamp, u8)> {
        let free = self.waiting.iter().filter(|(key, _)| !self.in_flight.contains(key));
        let first = free.min_by_key(|(_, place)| **place);
        first.map(|(key, (due, _))| (*due, *key))
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
        Step::Pop(now) => assert_eq!(queue.pop_due(at(now), room), model.pop(at(now))),
        Step::Finish(key) => {
            queue.finish(&key, at(0));
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
            prop_assert_eq!(queue.next_due(room), model.next().map(|(due, _)| due));
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
                    queue.pop_due(at(now), room).map(|key| owed.remove(&key));
                }
                Step::Finish(key) => queue.finish(&key, at(0)),
                Step::Succeed(key) => queue.succeeded(&key),
                Step::Remove(key) => {
                    queue.remove(&key);
                    owed.remove(&key);
                }
            }
        }
        for key in 0..5 {
            queue.finish(&key, at(0));
        }
        let mut paid = BTreeSet::new();
        while let Some(key) = queue.pop_due(Timestamp::MAX, room) {
            prop_assert!(paid.insert(key), "key {} came twice", key);
        }
        prop_assert_eq!(paid, owed);
    }

    #[test]
    fn keys_come_in_the_order_of_their_times_then_of_their_arrival(
        adds in vec((0u8..20, 0i64..50), 0..60),
    ) {
        let mut queue = Queue::new();
        let mut earliest = BTreeMap::new();
        for (number, (key, due)) in adds.into_iter().enumerate() {
            queue.add(key, at(due));
            let entry = earliest.entry(key).or_insert((due, number));
            *entry = (due, number).min(*entry);
        }
        let mut expected: Vec<_> = earliest.into_iter().map(|(key, place)| (place, key)).collect();
        expected.sort_unstable();
        let seen: Vec<_> = std::iter::from_fn(|| queue.pop_due(at(50), room)).collect();
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
    assert_eq!(queue.pop_due(at(0), room), Some("web"));
    queue.add("web", at(5));
    assert_eq!(queue.next_due(room), None, "in flight: nothing to wait for");
    assert_eq!(queue.pop_due(at(9), room), None, "in flight: not handed out twice");
    queue.finish(&"web", at(0));
    assert_eq!(queue.next_due(room), Some(at(5)));
    assert_eq!(queue.pop_due(at(4), room), None, "not yet due");
    assert_eq!(queue.pop_due(at(5), room), Some("web"), "due at its instant");
}

#[test]
fn an_event_overtakes_the_back_off() {
    let mut queue = Queue::new();
    for _ in 0..14 {
        queue.failed("web", at(0));
        queue.pop_due(Timestamp::MAX, room);
        queue.finish(&"web", at(0));
    }
    assert_eq!(queue.failed("web", at(0)), at(10_000));
    queue.add("web", at(3));
    assert_eq!(queue.next_due(room), Some(at(3)));
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

#[test]
fn groups_take_turns_and_within_one_the_first_come_is_first() {
    let mut queue = Queue::new();
    for key in ["z1", "z3", "z2", "z4", "a1", "m1", "a2"] {
        queue.add(key, at(0));
    }
    let all: Vec<_> = std::iter::from_fn(|| queue.pop_due(at(0), room)).collect();
    assert_eq!(all, ["z1", "a1", "m1", "z3", "a2", "z2", "z4"]);
}

#[test]
fn a_group_without_room_keeps_its_turn_and_wakes_nobody() {
    let mut queue = Queue::new();
    for key in ["z1", "z2", "a1", "a2"] {
        queue.add(key, at(0));
    }
    queue.add("z9", at(7));
    let others = |group: &Option<char>| *group != Some('z');
    assert_eq!(queue.pop_due(at(1), others), Some("a1"));
    assert_eq!(queue.pop_due(at(1), others), Some("a2"));
    assert_eq!(queue.pop_due(at(1), others), None);
    assert_eq!(queue.next_due(others), Some(at(7)), "what is due and has no room does not count");
    assert_eq!(queue.next_due(room), Some(at(0)));
    assert_eq!(queue.pop_due(at(1), room), Some("z1"));
}

#[test]
fn an_urgent_key_needs_neither_a_turn_nor_room() {
    for is_late in [false, true] {
        let mut queue = Queue::new();
        for key in ["z1", "z2", "z3"] {
            queue.add(key, at(0));
        }
        if is_late {
            assert_eq!(queue.pop_due(at(0), |_| false), None, "all of them wait for room");
        }
        queue.set_urgent(&"z2", true);
        assert_eq!(queue.pop_due(at(0), |_| false), Some("z2"), "{is_late}");
        assert_eq!(queue.pop_due(at(0), |_| false), None, "{is_late}");
        queue.failed("z2", at(0));
        queue.finish(&"z2", at(0));
        assert_eq!(queue.pop_due(at(9), |_| false), Some("z2"), "it stays urgent");
        queue.add("z2", at(9));
        queue.finish(&"z2", at(0));
        queue.set_urgent(&"z2", false);
        assert_eq!(queue.pop_due(at(9), |_| false), None, "until it is said not to be");
        assert_eq!(queue.len(), 3);
    }
}

#[test]
fn metrics_show_what_the_queue_does() {
    let metrics = crate::telemetry::Metrics::new();
    let shown = metrics.queue("Rollouts");
    let mut queue = Queue::new();
    queue.show(shown.clone());
    queue.add("a1", at(1_000));
    queue.add("b1", at(1_000));
    queue.add("c1", at(9_000));
    assert_eq!(queue.pop_due(at(3_000), room), Some("a1"));
    assert_eq!((shown.depth.get(), shown.adds.get()), (1, 2), "c1 is not due yet");
    assert_eq!((shown.waited.get_sample_count(), shown.waited.get_sample_sum()), (1, 2.0));
    queue.show_in_flight(at(7_000));
    assert_eq!((shown.unfinished.get(), shown.longest.get()), (4.0, 4.0));
    queue.failed("a1", at(8_000));
    queue.finish(&"a1", at(8_000));
    assert_eq!((shown.worked.get_sample_sum(), shown.retries.get()), (5.0, 1));
    queue.show_in_flight(at(8_000));
    assert_eq!((shown.unfinished.get(), shown.longest.get()), (0.0, 0.0));
    queue.finish(&"a1", at(9_000));
    assert_eq!(shown.worked.get_sample_count(), 1, "it was finished already");
    let text = metrics.text(at(9_000));
    assert!(text.contains("workqueue_depth{name=\"Rollouts\"} 1\n"), "{text}");
}
