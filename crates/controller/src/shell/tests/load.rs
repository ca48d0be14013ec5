//! Many keys at once: each is gathered as often as it must be, and nobody waits for somebody's crowd.

use std::collections::VecDeque;

use serde_json::json;

use super::super::*;
use super::lamp::GATHERED;
use super::{Lamps, at, done, frame, job, new};

/// A shell that has listed lamps which are to be lit: so many in each namespace, by its name.
fn crowd(namespaces: &[(&str, usize)]) -> Shell<Lamps> {
    let mut shell = new();
    shell.observe(&(), &Seen::Init, at(0));
    for (namespace, count) in namespaces {
        for number in 0..*count {
            shell.observe(&(), &Seen::InitApply(lamp(namespace, number, json!({}))), at(0));
        }
    }
    shell.observe(&(), &Seen::InitDone, at(0));
    shell
}

fn lamp(namespace: &str, number: usize, status: Value) -> gradus_engine::frame::Frame {
    let version = if status == json!({}) { 5 } else { 6 };
    let mut lamp = frame(&format!("lamp-{number:04}"), version, json!({ "on": true }), status);
    lamp.meta.namespace = namespace.into();
    lamp
}

/// Carries all work out, a write at a time, and shows each; returns the keys in the order in which
/// their jobs were handed out.
fn work_off(shell: &mut Shell<Lamps>) -> Vec<Key> {
    let (mut under_way, mut order) = (VecDeque::new(), Vec::new());
    loop {
        while let Some(job) = job(shell, at(1)) {
            order.push(job.key.clone());
            under_way.push_back(job);
        }
        let Some(job) = under_way.pop_front() else { return order };
        let mut lit = frame(&job.key.name, 6, json!({ "on": true }), json!({ "on": true }));
        lit.meta.namespace = Arc::clone(&job.key.namespace);
        shell.learn(done(job, 6), at(1));
        shell.observe(&(), &Seen::Apply(lit), at(1));
    }
}

#[test]
fn each_key_is_gathered_twice_however_many_wait() {
    for count in [10, 100, 1_000, 4_000] {
        let mut shell = crowd(&[("big", count)]);
        GATHERED.set(0);
        assert_eq!(work_off(&mut shell).len(), count);
        // Once for its write, and once more when that is seen.
        assert_eq!(GATHERED.get(), 2 * count, "{count} lamps");
    }
}

#[test]
fn a_namespace_with_a_crowd_does_not_delay_another() {
    let mut shell = crowd(&[("a-crowd", 500), ("z-shop", 3)]);
    let order = work_off(&mut shell);
    let last = order.iter().rposition(|key| &*key.namespace == "z-shop").unwrap();
    assert!(last < 6, "the third of three came {last} places after the first");
    assert_eq!(order.len(), 503);
}

#[test]
fn one_namespace_takes_a_quarter_of_the_places_and_the_urgent_have_places_of_their_own() {
    let mut shell = crowd(&[("a", 100)]);
    let taken = |shell: &mut Shell<Lamps>| {
        std::iter::from_fn(|| job(shell, at(1))).map(|job| job.key).collect::<Vec<_>>()
    };
    assert_eq!(taken(&mut shell).len(), NAMESPACE_LIMIT);
    assert_eq!(shell.next_due(), None, "the others are not looked at until one has ended");
    let urgent = json!({ "on": true, "urgent": true });
    let mut aborted = frame("lamp-0077", 6, urgent, json!({}));
    aborted.meta.namespace = "a".into();
    shell.observe(&(), &Seen::Apply(aborted), at(1));
    let names: Vec<_> = taken(&mut shell).iter().map(|key| key.name.to_string()).collect();
    assert_eq!(names, ["lamp-0077"], "it waited with the others and is urgent now");
}

#[test]
fn counts_wait_longer_where_many_objects_move_at_once() {
    for (others, expected) in [(CROWD - 1, 1_001), (CROWD, 5_001)] {
        let mut shell = crowd(&[("a", others)]);
        let jobs: Vec<_> = std::iter::from_fn(|| job(&mut shell, at(1))).collect();
        assert_eq!(jobs.len(), others);
        let meter = |watts: u32| {
            let mut meter = frame("meter", 5, json!({ "watts": watts }), json!({}));
            meter.meta.namespace = "a".into();
            meter
        };
        shell.observe(&(), &Seen::Apply(meter(3)), at(1));
        assert!(job(&mut shell, at(1)).is_none(), "counts alone");
        assert_eq!(shell.next_due(), Some(at(expected)), "beside {others}");
        assert!(job(&mut shell, at(expected)).is_some(), "beside {others}");
    }
}
