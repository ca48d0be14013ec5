//! What the server refuses for good stands in the status at once: shown with a new Rollout.

use gradus_engine::ask::Class;
use gradus_engine::rollout::Rollouts;
use serde_json::json;

use super::super::*;
use super::at;
use crate::act::{Acknowledged, Acted};
use crate::cluster::WriteError;
use crate::rollouts::Source;
use crate::watched::Watched;

/// A shell that has listed a Rollout which has no ReplicaSet yet.
fn new_rollout() -> Shell<Rollouts> {
    let rollout = serde_json::from_value(json!({
        "metadata": { "name": "web", "namespace": "home", "uid": "web", "resourceVersion": "5",
                      "generation": 1 },
        "spec": {
            "replicas": 1, "selector": { "matchLabels": { "app": "web" } },
            "template": { "metadata": { "labels": { "app": "web" } },
                          "spec": { "containers": [{ "name": "c", "image": "i" }] } },
            "strategy": { "canary": {} },
        },
    }));
    let rollout: gradus_engine::frame::Frame = rollout.unwrap();
    let mut shell = Shell::new(&Scope::default(), InterlockMode::default());
    for source in Rollouts::sources() {
        shell.observe(&source, &Seen::Init, at(0));
        if source == Source::Rollouts {
            shell.observe(&source, &Seen::InitApply(rollout.clone()), at(0));
        }
        shell.observe(&source, &Seen::InitDone, at(0));
    }
    shell
}

fn job(shell: &mut Shell<Rollouts>, now: Timestamp) -> Option<Box<Job>> {
    match shell.next_work(now)? {
        Work::Act(job) => Some(job),
        Work::Settle(read) => panic!("unexpected read of {}", read.object),
        Work::Ask(inquiry) => panic!("unexpected {inquiry:?}"),
        Work::Survey(listing) => panic!("unexpected {listing:?}"),
    }
}

fn refuse(shell: &mut Shell<Rollouts>, job: Box<Job>, class: Class, now: Timestamp) {
    let change = &job.changes[0];
    let failures = vec![Refusal {
        id: Some(change.id.clone()),
        object: change.target.clone(),
        rested_on: change.expect.version(),
        error: WriteError { class, message: "1GB is no quantity".into(), retry_after_secs: None },
        again_after: None,
    }];
    let (written, pruned) = (Vec::new(), Vec::new());
    shell.learn(Acted { job, changes: 1, written, failures, pruned }, now);
}

#[test]
fn a_refusal_is_told_though_nothing_else_happens() {
    let mut shell = new_rollout();
    let create = job(&mut shell, at(0)).expect("a ReplicaSet is missing");
    refuse(&mut shell, create, Class::Denied, at(0));
    let told = job(&mut shell, at(0)).expect("the status shall say so");
    assert!(told.changes.is_empty(), "it is not tried again yet");
    let patch = &told.status.as_ref().expect("a status").patch["status"];
    assert_eq!(patch["conditions"][0]["reason"], "ReplicaSetCreateError");
    let message = patch["message"].as_str().unwrap_or_default();
    assert!(message.ends_with(": 1GB is no quantity"), "{message}");

    let object = told.head.object.clone();
    let written = vec![Acknowledged { id: None, object, version: Some(5) }];
    let (failures, pruned) = (Vec::new(), Vec::new());
    shell.learn(Acted { job: told, changes: 0, written, failures, pruned }, at(0));
    let again = job(&mut shell, at(250)).expect("its back-off is over");
    assert!(!again.changes.is_empty(), "and it is tried again");
}

#[test]
fn a_denied_create_is_tried_again_with_a_growing_delay_from_the_first_time() {
    let mut shell = new_rollout();
    let mut tries = Vec::new();
    for now in (0..30_000).step_by(10) {
        while let Some(job) = job(&mut shell, at(now)) {
            if job.changes.is_empty() {
                let object = job.head.object.clone();
                let written = vec![Acknowledged { id: None, object, version: Some(5) }];
                let (failures, pruned) = (Vec::new(), Vec::new());
                shell.learn(Acted { job, changes: 0, written, failures, pruned }, at(now));
                break;
            }
            tries.push(now);
            refuse(&mut shell, job, Class::Denied, at(now));
        }
    }
    assert_eq!(tries, [0, 250, 750, 1750, 3750, 7750, 15_750, 25_750]);
}

#[test]
fn what_may_pass_by_itself_is_tried_again_first() {
    let mut shell = new_rollout();
    let create = job(&mut shell, at(0)).expect("a ReplicaSet is missing");
    refuse(&mut shell, create, Class::Unreachable, at(0));
    assert!(job(&mut shell, at(0)).is_none());
    assert!(job(&mut shell, at(2)).is_some_and(|again| !again.changes.is_empty()));
}
