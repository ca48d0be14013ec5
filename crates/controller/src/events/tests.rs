//! Are Events posted in order, once each, within their limits?

use std::sync::{Arc, Mutex};

use gradus_engine::ask::Class;
use gradus_engine::decision::{After, Event, EventKind, Kind, ObjectRef};
use gradus_engine::frame::Frame;
use gradus_engine::uid::Uid;
use jiff::Timestamp;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::clock::Clock;
use crate::cluster::{Cluster, Listing, Write, Written};
use crate::telemetry::Metrics;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn outgoing(object: &str, message: &str, second: i64) -> Outgoing {
    let kind = Kind::new("argoproj.io", "v1alpha1", "Rollout", "rollouts");
    let event = Event {
        about: ObjectRef::new(kind, &"shop".into(), &object.into()),
        uid: None,
        kind: EventKind::Normal,
        reason: "ScalingReplicaSet".into(),
        message: message.to_owned(),
        after: After::Status,
    };
    Outgoing { event, uid: Uid::parse(object), version: 7, at: at(second) }
}

fn failure(class: Class) -> WriteError {
    WriteError { class, message: "no".into(), retry_after_secs: None }
}

/// Posts all that may be posted now, each successfully.
fn drain(outbox: &mut Outbox, now: Timestamp) -> Vec<PostedEvent> {
    let mut posted = Vec::new();
    while let Some(posting) = outbox.next(now) {
        posted.push(posting.event.clone());
        outbox.done(posting, Ok(()), now).unwrap();
    }
    posted
}

#[test]
fn one_at_a_time_per_object_and_others_beside_it() {
    let mut outbox = Outbox::default();
    for (object, message) in [("web", "1"), ("web", "2"), ("api", "1")] {
        assert_eq!(outbox.push(outgoing(object, message, 0)), 0);
    }
    let web = outbox.next(at(0)).unwrap();
    let api = outbox.next(at(0)).unwrap();
    assert_eq!((&*web.event.message, &*web.event.about.name), ("1", "web"));
    assert_eq!(&*api.event.about.name, "api");
    assert!(outbox.next(at(0)).is_none(), "both objects are busy");
    outbox.done(web, Ok(()), at(0)).unwrap();
    let second = outbox.next(at(0)).unwrap();
    assert_eq!(second.event.message, "2");
    outbox.done(second, Ok(()), at(0)).unwrap();
    outbox.done(api, Ok(()), at(0)).unwrap();
    assert!(outbox.is_empty());
}

#[test]
fn names_rise_even_within_one_instant() {
    let mut outbox = Outbox::default();
    for message in ["1", "2", "3"] {
        outbox.push(outgoing("web", message, 5));
    }
    let names: Vec<_> = drain(&mut outbox, at(5)).into_iter().map(|event| event.name).collect();
    assert_eq!(names, ["web.12a05f200", "web.12a05f201", "web.12a05f202"]);
}

#[test]
fn a_name_fits_whatever_its_object_is_called() {
    let long = format!("{}.x", "a".repeat(251));
    let name = name(&long, 0x17a);
    assert_eq!(name.len(), 253);
    assert!(name.ends_with("a.17a"), "{name}");
    let dashes = super::name(&"-".repeat(253), 1);
    assert_eq!(dashes, ".1");
}

#[test]
fn the_same_words_again_raise_the_count() {
    let mut outbox = Outbox::default();
    let mut counts = Vec::new();
    for (message, second) in [("up", 1), ("up", 2), ("down", 3), ("up", 4)] {
        outbox.push(outgoing("web", message, second));
        let event = drain(&mut outbox, at(second)).remove(0);
        counts.push((event.message, event.count, event.first, event.last));
    }
    let expected = [("up", 1, 1, 1), ("up", 2, 1, 2), ("down", 1, 3, 3), ("up", 3, 1, 4)]
        .map(|(message, count, first, last)| (message.to_owned(), count, at(first), at(last)));
    assert_eq!(counts, expected);
    outbox.push(outgoing("api", "up", 9));
    assert_eq!(drain(&mut outbox, at(9))[0].count, 1, "another object counts for itself");
}

#[test]
fn a_failed_event_is_tried_again_before_those_behind_it() {
    let mut outbox = Outbox::default();
    outbox.push(outgoing("web", "1", 0));
    outbox.push(outgoing("web", "2", 0));
    let first = outbox.next(at(0)).unwrap();
    let name = first.event.name.clone();
    outbox.done(first, Err(failure(Class::Unknown)), at(0)).unwrap();
    assert!(outbox.next(at(0)).is_none(), "not at once");
    let due = outbox.next_due().unwrap();
    let again = outbox.next(due).unwrap();
    assert_eq!((&*again.event.message, &again.event.name), ("1", &name));
    // The first try had worked after all.
    outbox.done(again, Err(failure(Class::Exists)), due).unwrap();
    assert_eq!(drain(&mut outbox, due)[0].message, "2");
}

#[test]
fn an_event_is_given_up_when_it_cannot_be_posted() {
    let cases = [
        ("its namespace is gone", Class::Gone, 1),
        ("it is not permitted", Class::Denied, 1),
        ("the server is away for long", Class::Unreachable, TRIES),
    ];
    for (what, class, tries) in cases {
        let mut outbox = Outbox::default();
        outbox.push(outgoing("web", "1", 0));
        let mut now = at(0);
        let mut made = 0;
        let given_up = loop {
            now = outbox.next_due().unwrap_or(now);
            let posting = outbox.next(now).unwrap();
            made += 1;
            if let Err(error) = outbox.done(posting, Err(failure(class)), now) {
                break error;
            }
        };
        assert_eq!((given_up.class, made), (class, tries), "{what}");
        assert!(outbox.is_empty(), "{what}");
        if tries > 1 {
            assert!(at(60) < now, "{what}: {now}: but a minute is survived");
        }
    }
}

#[test]
fn the_wait_the_server_asks_for_is_kept() {
    let mut error = failure(Class::Throttled);
    error.retry_after_secs = Some(3);
    assert_eq!(delay(&error, 0), SignedDuration::from_secs(3));
    error.retry_after_secs = Some(86_400);
    assert_eq!(delay(&error, 0), TRY_AGAIN.1, "within reason");
}

#[test]
fn a_flood_costs_repeated_events_first() {
    let mut outbox = Outbox { limits: OutboxLimits { object: 3, all: 4 }, ..Outbox::default() };
    let given_up: Vec<_> = ["new", "same", "same", "newer", "newest"]
        .map(|message| outbox.push(outgoing("web", message, 0)))
        .into();
    assert_eq!(given_up, [0, 0, 0, 1, 1]);
    assert_eq!(outbox.push(outgoing("api", "a", 0)), 0);
    assert_eq!(outbox.push(outgoing("api", "b", 0)), 1, "the oldest of all goes: same");
    let left: Vec<_> = drain(&mut outbox, at(0)).into_iter().map(|event| event.message).collect();
    assert_eq!(left, ["newer", "a", "newest", "b"]);
}

#[test]
fn an_object_whose_events_were_given_up_leaves_nothing() {
    let mut outbox = Outbox { limits: OutboxLimits { object: 3, all: 1 }, ..Outbox::default() };
    outbox.push(outgoing("web", "1", 0));
    assert_eq!(outbox.push(outgoing("api", "1", 0)), 1);
    assert_eq!(drain(&mut outbox, at(0)).len(), 1);
    assert!(outbox.is_empty());
}

proptest! {
    #[test]
    fn order_is_kept_per_object_whatever_fails(
        pushes in vec((0u8..3, 0u8..4), 1..40),
        outcomes in vec(0u8..3, 200),
    ) {
        let mut outbox = Outbox::default();
        for (number, (object, message)) in pushes.iter().enumerate() {
            outbox.push(outgoing(&format!("o{object}"), &format!("m{message}"), number as i64));
        }
        let mut now = at(1_000);
        let mut flying: Vec<Posting> = Vec::new();
        let mut done: Vec<Vec<u8>> = vec![Vec::new(); 3];
        let mut names: Vec<String> = Vec::new();
        let mut outcomes = outcomes.into_iter();
        while !outbox.is_empty() {
            while let Some(posting) = outbox.next(now) {
                let about = &posting.event.about;
                prop_assert!(flying.iter().all(|other| other.event.about != *about));
                flying.push(posting);
            }
            let Some(posting) = flying.pop() else {
                now = outbox.next_due().expect("something is left to post");
                continue;
            };
            let event = posting.event.clone();
            // Who fails to the last try is given up, and that is right.
            let may_fail = posting.tries + 1 < TRIES;
            let outcome = match outcomes.next() {
                Some(0) if may_fail => Err(failure(Class::Unknown)),
                _ => Ok(()),
            };
            let is_posted = outcome.is_ok();
            prop_assert!(outbox.done(posting, outcome, now).is_ok(), "given up too early");
            if is_posted {
                let object: usize = event.about.name[1..].parse().unwrap();
                done[object].push(event.message[1..].parse().unwrap());
                if event.count == 1 {
                    names.push(event.name);
                }
            }
        }
        for object in 0..3u8 {
            let of_this = pushes.iter().filter(|(of, _)| *of == object);
            let expected: Vec<u8> = of_this.map(|(_, message)| *message).collect();
            prop_assert_eq!(&done[usize::from(object)], &expected);
        }
        let distinct: std::collections::BTreeSet<_> = names.iter().collect();
        prop_assert_eq!(distinct.len(), names.len());
    }
}

#[derive(Clone, Debug)]
enum Step {
    Push(u8, u8),
    Next,
    Done(usize, bool),
    Pass,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0u8..3, 0u8..3).prop_map(|(object, message)| Step::Push(object, message)),
        2 => Just(Step::Next),
        2 => (0usize..3, any::<bool>()).prop_map(|(which, works)| Step::Done(which, works)),
        1 => Just(Step::Pass),
    ]
}

proptest! {
    #[test]
    fn under_pressure_every_event_is_posted_or_given_up_once(steps in vec(step(), 0..120)) {
        let mut outbox = Outbox { limits: OutboxLimits { object: 2, all: 4 }, ..Outbox::default() };
        let (mut pushed, mut given_up, mut posted) = (0, 0, 0);
        let mut flying: Vec<Posting> = Vec::new();
        let mut now = at(0);
        for step in steps {
            match step {
                Step::Push(object, message) => {
                    pushed += 1;
                    let (object, message) = (format!("o{object}"), format!("m{message}"));
                    given_up += outbox.push(outgoing(&object, &message, 0));
                }
                Step::Next => flying.extend(outbox.next(now)),
                Step::Done(which, works) if which < flying.len() => {
                    let posting = flying.remove(which);
                    let outcome = if works { Ok(()) } else { Err(failure(Class::Throttled)) };
                    posted += u64::from(works);
                    given_up += u64::from(outbox.done(posting, outcome, now).is_err());
                }
                Step::Done(..) => {}
                Step::Pass => now += SignedDuration::from_secs(1),
            }
            for (place, posting) in flying.iter().enumerate() {
                let others = &flying[place + 1..];
                prop_assert!(others.iter().all(|o| o.event.about != posting.event.about));
            }
        }
        for posting in flying {
            posted += 1;
            outbox.done(posting, Ok(()), now).unwrap();
        }
        posted += drain(&mut outbox, Timestamp::from_second(100_000).unwrap()).len() as u64;
        prop_assert_eq!(posted + given_up, pushed);
        prop_assert!(outbox.is_empty());
    }
}

/// A cluster that fails so often before it takes an Event.
#[derive(Clone, Default)]
struct Moody {
    failures: Arc<Mutex<Vec<Class>>>,
    posted: Arc<Mutex<Vec<String>>>,
}

impl Cluster for Moody {
    async fn write(&self, _: Write) -> Result<Written, WriteError> {
        Err(failure(Class::Denied))
    }

    async fn read(&self, _: &ObjectRef) -> Result<Option<Frame>, WriteError> {
        Ok(None)
    }

    async fn read_whole(&self, _: &ObjectRef) -> Result<Option<serde_json::Value>, WriteError> {
        unreachable!("nobody reads here")
    }

    async fn permit(&self) -> Result<(), WriteError> {
        Ok(())
    }

    async fn list(&self, _: &Listing) -> Result<Vec<Frame>, WriteError> {
        Ok(Vec::new())
    }

    async fn post(&self, event: &PostedEvent) -> Result<(), WriteError> {
        tokio::task::yield_now().await;
        if let Some(class) = self.failures.lock().unwrap().pop() {
            return Err(failure(class));
        }
        self.posted.lock().unwrap().push(event.message.clone());
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn the_poster_ends_when_all_is_posted() {
    let cluster = Moody::default();
    *cluster.failures.lock().unwrap() = vec![Class::Unreachable, Class::Throttled];
    let metrics = Metrics::new();
    let (sender, inbox) = tokio::sync::mpsc::unbounded_channel();
    for message in ["1", "2", "3"] {
        sender.send(outgoing("web", message, 0)).unwrap();
    }
    drop(sender);
    post_events(cluster.clone(), Clock::starting_at(at(0)), inbox, metrics.clone()).await;
    assert_eq!(*cluster.posted.lock().unwrap(), ["1", "2", "3"]);
    assert!(metrics.text(at(0)).contains("gradus_events_dropped_total 0"));
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_refused_is_counted_and_the_next_is_posted() {
    let cluster = Moody::default();
    *cluster.failures.lock().unwrap() = vec![Class::Gone];
    let metrics = Metrics::new();
    let (sender, inbox) = tokio::sync::mpsc::unbounded_channel();
    for message in ["1", "2"] {
        sender.send(outgoing("web", message, 0)).unwrap();
    }
    drop(sender);
    post_events(cluster.clone(), Clock::starting_at(at(0)), inbox, metrics.clone()).await;
    assert_eq!(*cluster.posted.lock().unwrap(), ["2"]);
    assert!(metrics.text(at(0)).contains("gradus_events_dropped_total 1"));
}
