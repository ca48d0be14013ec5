//! What the shell promises, shown with the smallest engine: a lamp that is switched as asked.

mod acting;
mod lamp;
mod load;
mod pods;
mod told;
mod unreadable;

use gradus_engine::ask::{Class, Reply};
use gradus_engine::decision::ChangeId;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::*;
use crate::act::{Acknowledged, Acted};
use crate::ask::Answerer;
use crate::cluster::WriteError;
use crate::watch::{Failed, FailedCause};
use lamp::{Lamps, frame};

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(1_700_000_000_000 + millis).unwrap()
}

fn new() -> Shell<Lamps> {
    Shell::new(&Scope::default(), InterlockMode::default())
}

fn key() -> Key {
    Key { namespace: "home".into(), name: "desk".into() }
}

/// A shell that has listed one lamp.
fn shell(version: u64, spec: Value, status: Value) -> Shell<Lamps> {
    let mut shell = new();
    shell.observe(&(), &Seen::Init, at(0));
    shell.observe(&(), &Seen::InitApply(frame("desk", version, spec, status)), at(0));
    shell.observe(&(), &Seen::InitDone, at(0));
    shell
}

fn job(shell: &mut Shell<Lamps>, now: Timestamp) -> Option<Box<Job>> {
    match shell.next_work(now)? {
        Work::Act(job) => Some(job),
        Work::Settle(read) => panic!("unexpected read of {}", read.object),
        Work::Ask(inquiry) => panic!("unexpected {inquiry:?}"),
        Work::Survey(listing) => panic!("unexpected {listing:?}"),
    }
}

fn read(shell: &mut Shell<Lamps>, now: Timestamp) -> Option<SettlingRead> {
    match shell.next_work(now)? {
        Work::Act(job) => panic!("unexpected job of {}", job.key),
        Work::Settle(read) => Some(read),
        Work::Ask(inquiry) => panic!("unexpected {inquiry:?}"),
        Work::Survey(listing) => panic!("unexpected {listing:?}"),
    }
}

fn asked(shell: &mut Shell<Lamps>, now: Timestamp) -> Option<Inquiry> {
    match shell.next_work(now)? {
        Work::Act(job) => panic!("unexpected job of {}", job.key),
        Work::Settle(read) => panic!("unexpected read of {}", read.object),
        Work::Ask(inquiry) => Some(*inquiry),
        Work::Survey(listing) => panic!("unexpected {listing:?}"),
    }
}

fn done(job: Box<Job>, version: u64) -> Acted {
    let object = job.head.object.clone();
    let written = vec![Acknowledged { id: None, object, version: Some(version) }];
    let changes = job.changes.len();
    Acted { job, changes, written, failures: Vec::new(), pruned: Vec::new() }
}

fn error(class: Class) -> WriteError {
    WriteError { class, message: "no".into(), retry_after_secs: None }
}

fn refused(job: Box<Job>, class: Class) -> Acted {
    refused_with(job, error(class))
}

fn refused_with(job: Box<Job>, error: WriteError) -> Acted {
    let object = job.head.object.clone();
    let rested_on = Some(job.head.version);
    let failures = vec![Refusal { id: None, object, rested_on, error, again_after: None }];
    let (changes, written) = (job.changes.len(), Vec::new());
    Acted { job, changes, written, failures, pruned: Vec::new() }
}

#[test]
fn nothing_is_decided_before_the_list_is_complete() {
    let mut shell = new();
    shell.observe(&(), &Seen::Init, at(0));
    shell.observe(&(), &Seen::InitApply(frame("desk", 5, json!({ "on": true }), json!({}))), at(0));
    assert!(shell.next_work(at(0)).is_none());
    shell.observe(&(), &Seen::InitDone, at(0));
    assert!(shell.next_work(at(0)).is_some());
}

#[test]
fn nobody_is_woken_for_keys_that_may_not_be_decided() {
    let lit = |name: &str| frame(name, 5, json!({ "on": true, "urgent": true }), json!({}));
    let mut shell = new();
    shell.observe(&(), &Seen::Init, at(0));
    for namespace in ["one", "two", "three"] {
        for number in 0..30 {
            let mut lamp = lit(&format!("lamp-{number}"));
            lamp.meta.namespace = namespace.into();
            shell.observe(&(), &Seen::InitApply(lamp), at(0));
        }
    }
    assert_eq!(shell.next_due(), None, "the list is not complete");
    shell.observe(&(), &Seen::InitDone, at(0));
    let mut jobs = Vec::new();
    while let Some(job) = job(&mut shell, at(0)) {
        jobs.push(job);
    }
    assert_eq!(jobs.len(), IN_FLIGHT_LIMIT);
    assert_eq!(shell.next_due(), None, "all others wait for one of these to end");
    shell.learn(done(jobs.pop().unwrap(), 6), at(1));
    assert_eq!(shell.next_due(), Some(at(0)), "the next in the queue");
}

#[test]
fn a_settled_object_asks_for_nothing() {
    let mut shell = shell(5, json!({ "on": true }), json!({ "on": true }));
    assert!(shell.next_work(at(0)).is_none());
    assert_eq!(shell.next_due(), None);
}

#[test]
fn a_key_is_decided_whenever_it_wakes_and_never_else() {
    // One that glares is told of each time it is decided.
    let mut shell = shell(5, json!({ "on": true, "glaring": true }), json!({ "on": true }));
    for (what, wakes, expected) in
        [("listed", false, 1), ("at rest", false, 0), ("woken", true, 1), ("at rest", false, 0)]
    {
        if wakes {
            shell.wake(key(), at(0));
        }
        assert!(shell.next_work(at(0)).is_none(), "{what}");
        assert_eq!(shell.take_alarms().len(), expected, "{what}");
    }
}

#[test]
fn only_the_difference_is_written_with_the_version_that_was_seen() {
    let mut shell = shell(5, json!({ "on": true }), json!({ "on": false, "watts": 3 }));
    let job = job(&mut shell, at(0)).unwrap();
    assert_eq!(job.head.version, 5);
    assert_eq!(*job.status.unwrap().patch, json!({ "status": { "on": true } }));
}

#[test]
fn a_key_is_not_decided_before_its_own_write_is_seen() {
    let mut shell = shell(5, json!({ "on": true }), json!({}));
    let first = job(&mut shell, at(0)).unwrap();
    shell.learn(done(first, 9), at(10));
    assert!(shell.next_work(at(20)).is_none(), "the index still shows version 5");
    let old = frame("desk", 7, json!({ "on": true }), json!({}));
    shell.observe(&(), &Seen::Apply(old), at(30));
    assert!(shell.next_work(at(30)).is_none(), "an event in between is not enough");
    let own = frame("desk", 9, json!({ "on": true }), json!({ "on": true }));
    shell.observe(&(), &Seen::Apply(own), at(40));
    assert!(shell.next_work(at(40)).is_none(), "seen, and nothing is left to do");
}

#[test]
fn a_write_the_watch_does_not_show_within_a_second_is_read() {
    let mut shell = shell(5, json!({ "on": true }), json!({}));
    let first = job(&mut shell, at(0)).unwrap();
    shell.learn(done(first, 9), at(0));
    assert!(shell.next_work(at(999)).is_none());
    assert_eq!(shell.next_due(), Some(at(1_000)));
    let read = read(&mut shell, at(1_000)).expect("it is read");
    let own = frame("desk", 9, json!({ "on": true }), json!({ "on": true }));
    shell.learn_settling(read, Ok(Some(own)), at(1_001));
    assert!(shell.next_work(at(1_001)).is_none());
    assert_eq!(shell.next_due(), None);
}

#[test]
fn a_write_that_may_have_been_done_is_read_before_anything_else() {
    let mut shell = shell(5, json!({ "on": true }), json!({}));
    let first = job(&mut shell, at(0)).unwrap();
    shell.learn(refused(first, Class::Unknown), at(0));
    let seen = read(&mut shell, at(10)).expect("it is read first");
    shell.learn_settling(
        seen,
        Ok(Some(frame("desk", 9, json!({ "on": true }), json!({ "on": true })))),
        at(11),
    );
    assert!(shell.next_work(at(11)).is_none(), "it had been done");
}

#[test]
fn a_conflict_is_tried_again_as_soon_as_the_newer_object_is_shown() {
    let newer = |version| frame("desk", version, json!({ "on": true }), json!({ "watts": 7 }));
    let mut shell = shell(5, json!({ "on": true }), json!({}));
    let next = job(&mut shell, at(0)).unwrap();
    shell.learn(refused(next, Class::Stale), at(0));
    assert!(shell.next_work(at(20)).is_none(), "it would only be refused again");
    shell.observe(&(), &Seen::Apply(newer(6)), at(21));
    let next = job(&mut shell, at(21)).expect("tried again");
    assert_eq!(next.head.version, 6);

    shell.observe(&(), &Seen::Apply(newer(7)), at(22));
    shell.learn(refused(next, Class::Stale), at(23));
    let next = job(&mut shell, at(23)).expect("the newer object is shown already");
    assert_eq!(next.head.version, 7);
}

#[test]
fn a_conflict_is_tried_again_with_back_off_even_if_there_is_no_newer_object() {
    let lamp = |status| frame("desk", 5, json!({ "on": true }), status);
    let mut shell = shell(5, json!({ "on": true }), json!({}));
    let mut now = at(0);
    let mut delays = Vec::new();
    for _ in 0..12 {
        let next = job(&mut shell, now).expect("tried again");
        shell.learn(refused(next, Class::Stale), now);
        let refused_at = now;
        let seen = loop {
            now = shell.next_due().expect("it is not given up");
            if let Some(seen) = read(&mut shell, now) {
                break seen;
            }
        };
        shell.learn_settling(seen, Ok(Some(lamp(json!({})))), now);
        delays.push(now.duration_since(refused_at).as_millis());
    }
    assert_eq!(delays, [100, 100, 100, 100, 100, 100, 100, 128, 256, 512, 1_024, 2_048]);
    let last = job(&mut shell, now).unwrap();
    shell.learn(done(last, 6), now);
    let lit = frame("desk", 6, json!({ "on": true }), json!({ "on": true }));
    shell.observe(&(), &Seen::Apply(lit), now);
    assert!(shell.next_work(now).is_none());
}

#[test]
fn a_refusal_of_the_status_or_of_a_read_that_stays_is_counted() {
    let mut shell = shell(5, json!({ "on": true }), json!({}));
    let counted = |shell: &mut Shell<Lamps>| match &shell.take_alarms()[..] {
        [Alarm::Refused { change, times, .. }] => (change.clone(), *times),
        other => panic!("{other:?}"),
    };
    for times in 1..4 {
        let now = at(i64::from(times) * 1_000);
        let next = job(&mut shell, now).expect("tried again");
        shell.learn(refused(next, Class::Denied), now);
        assert_eq!(counted(&mut shell), ("status".to_owned(), times));
    }
    let next = job(&mut shell, at(5_000)).unwrap();
    shell.learn(refused(next, Class::Stale), at(5_000));
    assert_eq!(counted(&mut shell).1, 1, "somebody else wrote: nothing stays");
    let newer = frame("desk", 8, json!({ "on": true }), json!({}));
    shell.observe(&(), &Seen::Apply(newer), at(5_001));

    let next = job(&mut shell, at(6_000)).unwrap();
    shell.learn(done(next, 9), at(6_000));
    for times in 1..4 {
        let now = at(6_000 + i64::from(times) * 1_000);
        let settling = read(&mut shell, now).expect("its own write is not shown");
        shell.learn_settling(settling, Err(error(Class::Denied)), now);
        assert_eq!(counted(&mut shell), ("read Lamp home/desk".to_owned(), times));
    }
}

#[test]
fn a_server_that_asks_for_time_is_given_it() {
    let busy = |secs| WriteError { retry_after_secs: Some(secs), ..error(Class::Throttled) };
    let changed = |version| {
        Seen::Apply(frame("desk", version, json!({ "on": true, "watts": version }), json!({})))
    };
    let mut shell = shell(5, json!({ "on": true }), json!({}));
    let next = job(&mut shell, at(0)).unwrap();
    shell.learn(refused_with(next, busy(7)), at(0));
    shell.observe(&(), &changed(6), at(1_000));
    assert!(shell.next_work(at(6_999)).is_none(), "also when something happens meanwhile");
    assert_eq!(shell.next_due(), Some(at(7_000)));
    let next = job(&mut shell, at(7_000)).expect("its time has come");

    shell.learn(done(next, 9), at(7_000));
    let settling = read(&mut shell, at(8_000)).expect("its own write is not shown");
    shell.learn_settling(settling, Err(busy(5)), at(8_000));
    assert!(shell.next_work(at(12_999)).is_none(), "so is a read");
    assert!(read(&mut shell, at(13_000)).is_some());

    let mut shell = self::shell(5, json!({ "bulb": "spare" }), json!({}));
    let inquiry = asked(&mut shell, at(0)).unwrap();
    shell.learn_answer(inquiry, Err(busy(3)), at(0));
    assert!(shell.next_work(at(2_999)).is_none(), "and an ask");
    assert!(asked(&mut shell, at(3_000)).is_some());
}

#[test]
fn a_lost_answer_is_looked_into_though_the_write_before_it_is_shown() {
    let mut shell = shell(5, json!({ "on": true }), json!({}));
    let next = job(&mut shell, at(0)).unwrap();
    let (id, object) = (Some(ChangeId("patch".into())), next.head.object.clone());
    let patched = Acknowledged { id, object, version: Some(6) };
    let lost = refused(next, Class::Unknown);
    shell.learn(Acted { written: vec![patched], ..lost }, at(0));
    let lamp = |version, status| frame("desk", version, json!({ "on": true }), status);
    shell.observe(&(), &Seen::Apply(lamp(6, json!({}))), at(1));
    let seen = read(&mut shell, at(1)).expect("the status may have been written");
    shell.learn_settling(seen, Ok(Some(lamp(7, json!({ "on": true })))), at(2));
    assert!(shell.next_work(at(2)).is_none(), "it had been");
}

#[test]
fn a_newer_object_that_the_watch_does_not_show_is_read() {
    let mut shell = shell(5, json!({ "on": true }), json!({}));
    let next = job(&mut shell, at(0)).unwrap();
    shell.learn(refused(next, Class::Stale), at(0));
    assert!(shell.next_work(at(99)).is_none(), "the watch may still show it");
    let seen = read(&mut shell, at(100)).expect("an event is missing");
    let newer = frame("desk", 8, json!({ "on": true }), json!({ "watts": 7 }));
    shell.learn_settling(seen, Ok(Some(newer)), at(101));
    let next = job(&mut shell, at(101)).expect("decided anew");
    assert_eq!(next.head.version, 8, "on the version that was read");
}

#[test]
fn counts_alone_wait_a_second_and_ride_along_before_that() {
    let mut shell = shell(5, json!({ "watts": 3 }), json!({}));
    assert!(shell.next_work(at(0)).is_none(), "not yet");
    assert_eq!(shell.next_due(), Some(at(1_000)));
    let more = frame("desk", 6, json!({ "watts": 4 }), json!({}));
    shell.observe(&(), &Seen::Apply(more), at(600));
    assert!(shell.next_work(at(600)).is_none(), "a newer count does not start the second anew");
    let job = job(&mut shell, at(1_000)).expect("a second old");
    assert_eq!(*job.status.unwrap().patch, json!({ "status": { "watts": 4 } }));

    let mut shell = self::shell(5, json!({ "watts": 3 }), json!({}));
    assert!(shell.next_work(at(0)).is_none());
    let lit = frame("desk", 6, json!({ "watts": 3, "on": true }), json!({}));
    shell.observe(&(), &Seen::Apply(lit), at(10));
    let job = self::job(&mut shell, at(10)).expect("urgent");
    assert_eq!(*job.status.unwrap().patch, json!({ "status": { "watts": 3, "on": true } }));
}

#[test]
fn what_a_list_does_not_show_is_gone_and_an_old_event_does_not_bring_it_back() {
    let mut shell = shell(5, json!({ "on": true }), json!({ "on": true }));
    shell.observe(&(), &Seen::Init, at(1));
    shell.observe(&(), &Seen::InitDone, at(1));
    assert!(shell.inspect(&key(), at(1)).is_none());

    let mut shell = self::shell(5, json!({ "on": true }), json!({ "on": true }));
    let end = frame("desk", 8, json!({ "on": true }), json!({ "on": true }));
    shell.observe(&(), &Seen::Delete(end), at(2));
    let late = frame("desk", 6, json!({ "on": false }), json!({ "on": true }));
    shell.observe(&(), &Seen::Apply(late), at(3));
    assert!(shell.inspect(&key(), at(3)).is_none());
    let anew = frame("desk", 9, json!({ "on": true }), json!({}));
    shell.observe(&(), &Seen::Apply(anew), at(4));
    assert!(shell.next_work(at(4)).is_some(), "a new one of that name counts");
}

#[test]
fn a_read_that_failed_is_tried_again_though_nothing_happens() {
    let mut shell = shell(5, json!({ "bulb": "spare", "on": true }), json!({}));
    let mut now = at(0);
    let mut delays = Vec::new();
    for _ in 0..4 {
        let asked = asked(&mut shell, now).expect("asked");
        shell.learn_answer(asked, Err(error(Class::Unknown)), now);
        assert!(shell.next_work(now).is_none(), "not at once");
        let due = shell.next_due().expect("it is asked again");
        delays.push(due.duration_since(now).as_millis());
        now = due;
    }
    assert_eq!(delays, [2, 4, 8, 16]);
    let asked = asked(&mut shell, now).expect("asked");
    shell.learn_answer(asked, Ok(Reply::Object(None)), now);
    assert!(job(&mut shell, now).is_some(), "it is known now");
}

#[test]
fn not_all_questions_are_asked_at_once() {
    let mut shell = new();
    shell.observe(&(), &Seen::Init, at(0));
    for number in 0..40 {
        let asking = frame(&format!("lamp-{number}"), 5, json!({ "bulb": "spare" }), json!({}));
        shell.observe(&(), &Seen::InitApply(asking), at(0));
    }
    shell.observe(&(), &Seen::InitDone, at(0));
    let mut answered = 0;
    loop {
        let asked: Vec<_> = std::iter::from_fn(|| asked(&mut shell, at(0))).collect();
        assert!(asked.len() <= Answerer::Api.limit(), "{}", asked.len());
        if asked.is_empty() {
            break;
        }
        for one in asked {
            shell.learn_answer(one, Ok(Reply::Object(None)), at(0));
            answered += 1;
        }
    }
    assert_eq!(answered, 40, "but all of them in the end");
}

#[test]
fn versions_that_are_no_numbers_are_told_by_their_arrival() {
    use crate::tolerant::Tolerant;
    let lamp = |version: &str, on: bool| {
        let object = json!({ "metadata": { "namespace": "home", "name": "desk",
            "resourceVersion": version }, "spec": { "on": on }, "status": { "on": false } });
        let Tolerant(frame) = serde_json::from_value(object).unwrap();
        frame
    };
    for (what, first, second) in [
        ("two texts, whatever they sort as", "shell-z", "shell-a"),
        ("a text after a number", "5", "shell-b"),
        ("a number after a text", "shell-c", "5"),
    ] {
        let mut shell = new();
        shell.observe(&(), &Seen::Init, at(0));
        shell.observe(&(), &Seen::InitApply(lamp(first, false)), at(0));
        shell.observe(&(), &Seen::InitDone, at(0));
        assert!(shell.next_work(at(0)).is_none(), "{what}");
        shell.observe(&(), &Seen::Apply(lamp(second, true)), at(1));
        assert!(job(&mut shell, at(1)).is_some(), "{what}: the later one counts");
    }
}

#[test]
fn a_panic_is_contained_to_its_object() {
    let cases = [
        ("deciding", json!({ "broken": true }), true),
        ("deciding", json!({ "cracked": true }), true),
        // What was seen before stays; the next version is taken in, or not, by itself.
        ("taking in Lamp home/desk", json!({ "odd": true }), false),
    ];
    for (what, spec, is_retried) in cases {
        let mut shell = shell(5, spec, json!({}));
        shell.observe(
            &(),
            &Seen::Apply(frame("floor", 6, json!({ "on": true }), json!({}))),
            at(0),
        );
        let job = job(&mut shell, at(0)).expect("the other lamp is switched");
        assert_eq!(&*job.key.name, "floor", "{what}");
        let alarms = shell.take_alarms();
        let [Alarm::Panicked { key, doing, .. }] = &alarms[..] else { panic!("{alarms:?}") };
        assert_eq!((&*key.name, doing.as_str()), ("desk", what));
        let due = shell.next_due().map(|due| due.duration_since(at(0)));
        assert_eq!(due.is_some(), is_retried, "{what}");
        assert!(due.is_none_or(|due| due <= SignedDuration::from_secs(10)), "{what}");
    }
}

#[test]
fn a_panic_over_the_end_of_an_object_is_contained_to_it() {
    let mut shell = shell(5, json!({ "stuck": true }), json!({}));
    let desk = frame("desk", 5, json!({ "stuck": true }), json!({}));
    shell.observe(&(), &Seen::Delete(desk), at(0));
    let alarms = shell.take_alarms();
    let [Alarm::Panicked { key, doing, .. }] = &alarms[..] else { panic!("{alarms:?}") };
    assert_eq!((&*key.name, doing.as_str()), ("desk", "forgetting Lamp home/desk"));
    shell.observe(&(), &Seen::Apply(frame("floor", 6, json!({ "on": true }), json!({}))), at(0));
    assert!(job(&mut shell, at(0)).is_some(), "others are switched");
}

#[test]
fn a_guard_that_holds_for_five_minutes_is_news_once() {
    let mut shell = shell(5, json!({ "held": true }), json!({}));
    assert!(shell.next_work(at(0)).is_none());
    let news =
        |shell: &mut Shell<Lamps>, seconds: i64| shell.held(at(seconds * 1_000))[0].1.is_news;
    assert!(!news(&mut shell, 299));
    assert!(news(&mut shell, 300));
    assert!(!news(&mut shell, 900));
}

#[test]
fn a_held_key_is_counted_from_when_it_last_moved() {
    let held = |since: Value| json!({ "held": true, "since": since });
    let cases = [
        ("nobody knows since when: from when it is first seen", held(json!(null)), None, 1000),
        ("it was held before we came", held(json!(-100)), None, 1100),
        (
            "it has moved meanwhile and waits for the same",
            held(json!(0)),
            Some(held(json!(700))),
            300,
        ),
        ("it has moved, nobody knows when", held(json!(0)), Some(held(json!(null))), 200),
    ];
    for (what, spec, later, seconds) in cases {
        let mut shell = shell(5, spec, json!({}));
        shell.next_work(at(0));
        let is_news = shell.held(at(700_000))[0].1.is_news;
        assert!(is_news, "{what}: for more than five minutes");
        if let Some(later) = &later {
            shell.observe(
                &(),
                &Seen::Apply(frame("desk", 6, later.clone(), json!({}))),
                at(800_000),
            );
            shell.next_work(at(800_000));
        }
        let held = shell.held(at(1_000_000))[0].1.clone();
        assert_eq!((held.seconds, held.is_news), (seconds, seconds == 300), "{what}");
    }
}

#[test]
fn what_only_stays_for_a_while_is_not_held() {
    let mut shell = shell(5, json!({ "held": "for a while" }), json!({}));
    shell.next_work(at(0));
    assert_eq!(shell.held(at(1_000_000)), []);
}

#[test]
fn a_job_that_is_declined_is_not_offered_again_until_something_changes() {
    let mut shell = shell(5, json!({ "on": true }), json!({}));
    let job = job(&mut shell, at(0)).unwrap();
    shell.decline(&job.key, at(0));
    assert!(shell.next_work(at(60_000)).is_none());
    let changed = frame("desk", 6, json!({ "on": true, "watts": 9 }), json!({}));
    shell.observe(&(), &Seen::Apply(changed), at(60_001));
    assert!(shell.next_work(at(60_001)).is_some());
}

#[test]
fn who_may_not_read_its_own_kind_is_not_ready() {
    let mut shell = new();
    let (cause, message) = (FailedCause::Forbidden, "no permission".to_owned());
    let refused = Failed { cause, message };
    shell.observe_failure(&(), &refused, at(0));
    assert!(!shell.is_synced());
    shell.observe(&(), &Seen::Init, at(1));
    shell.observe(&(), &Seen::InitDone, at(1));
    assert!(shell.is_synced(), "the others are known to be unreadable");
}
