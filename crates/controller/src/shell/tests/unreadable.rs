//! What nobody expected in an object, and what holds one up, is told.

use gradus_engine::ask::Class;
use serde_json::{Value, json};

use super::super::*;
use super::{Lamps, at, frame, job, refused, shell};

#[test]
fn a_spec_that_cannot_be_read_stands_in_the_status() {
    let mut shell = shell(5, json!({ "odd": "told" }), json!({}));
    let first = job(&mut shell, at(0)).expect("its status says so");
    let patch = &first.status.as_ref().unwrap().patch;
    assert_eq!(patch["status"]["watts"], "an odd lamp");
    assert!(matches!(&shell.take_alarms()[..], [Alarm::Panicked { .. }]), "and the log");
    let repaired = frame("desk", 6, json!({ "on": true }), json!({}));
    shell.learn(refused(first, Class::Stale), at(1));
    shell.observe(&(), &Seen::Apply(repaired), at(2));
    assert!(job(&mut shell, at(2)).is_some(), "a repaired one is read again");
}

#[test]
fn a_hold_is_told_when_it_begins_and_when_it_ends() {
    let mut shell = shell(5, json!({ "held": true }), json!({}));
    let told = |shell: &mut Shell<Lamps>, version, spec: Value, now| {
        shell.observe(&(), &Seen::Apply(frame("desk", version, spec, json!({}))), now);
        drop(shell.next_work(now));
        let alarms = shell.take_alarms().into_iter();
        let changes = alarms.map(|alarm| match alarm {
            Alarm::Hold { change: HoldChange::Held { guard, .. }, .. } => (guard, None),
            Alarm::Hold { change: HoldChange::Freed { guard, seconds }, .. } => {
                (guard, Some(seconds))
            }
            other => panic!("{other:?}"),
        });
        changes.collect::<Vec<_>>()
    };
    let held = json!({ "held": true });
    assert_eq!(told(&mut shell, 6, held.clone(), at(0)), [("SpecPaused", None)]);
    assert_eq!(told(&mut shell, 7, held, at(9_000)), [], "the same goes on");
    let on = json!({ "on": true });
    assert_eq!(told(&mut shell, 8, on, at(30_000)), [("SpecPaused", Some(30))]);
}
