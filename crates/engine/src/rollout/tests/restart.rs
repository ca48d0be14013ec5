//! Restarts of pods by eviction, as tables.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::at;
use super::fixture::Fixture;
use crate::decision::{Frees, Guard, OnRefusal};

/// maxUnavailable, replicas, pods that are ready, evictions of the first pass, and what it shows.
const AT_ONCE: &str = r#"
2      | 3 | 3 | 2 | as many as may be missing
2      | 3 | 2 | 1 | one is missing already
2      | 3 | 1 | 0 | both are missing already
0      | 3 | 3 | 1 | one at a time where none may be missing
0      | 3 | 2 | 0 | and none while one is missing
"100%" | 3 | 3 | 3 | all at once
"50%"  | 5 | 5 | 2 | a share is rounded down
"#;

#[test]
fn no_more_pods_are_evicted_than_may_be_missing() {
    for is_blue_green in [false, true] {
        for row in AT_ONCE.trim().lines() {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let [unavailable, replicas, ready, evictions, what] = cells[..] else {
                panic!("five cells: {row}");
            };
            let unavailable: Value = serde_json::from_str(unavailable).unwrap();
            let mut fixture = deployed(is_blue_green, replicas.parse().unwrap(), unavailable);
            fixture.ready(0, ready.parse().unwrap());
            fixture.reconcile(at(9));
            fixture.patch_spec(json!({ "restartAt": at(10) }));
            let writes = fixture.reconcile(at(20));
            let evicted = writes.iter().filter(|write| *write == "evict").count();
            assert_eq!(evicted.to_string(), evictions, "{what}: {writes:?}");
        }
    }
}

/// Second, what happens, evictions, and what the row shows.
const RESTART: &str = "
100 |      |       | nothing before its time
120 |      | evict | one at a time
121 |      |       | its successor is not there yet
122 | pods | evict | now it is
123 | pods | evict | the last one
124 |      |       | which takes its time to go
129 | pods |       | all are new
130 |      |       | settled";

#[test]
fn a_restart_replaces_every_older_pod_and_is_noted_once() {
    for is_blue_green in [false, true] {
        let mut fixture = deployed(is_blue_green, 3, json!(0));
        fixture.patch_spec(json!({ "restartAt": at(120) }));
        fixture.reconcile(at(50));
        assert_eq!(fixture.decide().wake_at, Some(at(120)), "a timer for its time");
        for row in RESTART.trim().lines() {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let [second, happens, evictions, what] = cells[..] else {
                panic!("four cells: {row}");
            };
            let now = at(second.parse().unwrap());
            if happens == "pods" {
                fixture.at(now);
                fixture.pods_follow();
            }
            let mut writes = fixture.reconcile(now);
            writes.retain(|write| write != "status");
            assert_eq!(writes.join(", "), evictions, "{what}");
            let is_done = !fixture.status()["restartedAt"].is_null();
            let message = if is_done { Value::Null } else { json!("rollout is restarting") };
            assert_eq!(fixture.status()["message"], message, "{what}");
        }
        assert_eq!(fixture.status()["restartedAt"], json!(at(120)));
        assert_eq!(fixture.status()["phase"], "Healthy");
        assert_eq!(fixture.reconcile(at(131)), [""; 0], "settled");
    }
}

#[test]
fn no_pod_is_evicted_beside_a_new_replica_set() {
    let mut fixture = deployed(false, 3, json!(0));
    fixture.patch_spec(json!({ "restartAt": at(10) }));
    fixture.set_image("v2");
    assert_eq!(fixture.reconcile(at(20)), ["create 2 size 1", "revision 2", "status"]);
    fixture.settle(at(30));
    assert_eq!(fixture.status()["phase"], "Healthy", "{}", fixture.status());
    assert_eq!(fixture.sizes(), [0, 3]);
}

#[test]
fn a_pod_that_has_failed_since_the_list_is_missing() {
    let mut fixture = deployed(false, 3, json!(0));
    fixture.patch_spec(json!({ "restartAt": at(10) }));
    fixture.at(at(20));
    assert_eq!(fixture.decide().changes.len(), 1, "one may go");
    fixture.lose_pod(0);
    let writes = fixture.reconcile(at(20));
    assert!(!writes.contains(&"evict".to_owned()), "not while one is missing: {writes:?}");
}

#[test]
fn a_restart_without_pods_to_replace_is_done_at_once() {
    let mut fixture = deployed(false, 0, json!(1));
    fixture.patch_spec(json!({ "restartAt": at(10) }));
    assert_eq!(fixture.reconcile(at(20)), ["status"]);
    assert_eq!(fixture.status()["restartedAt"], json!(at(10)), "no replicas");

    let mut fixture = deployed(false, 2, json!(1));
    fixture.patch_spec(json!({ "restartAt": at(1) }));
    assert_eq!(fixture.reconcile(at(20)), ["status"]);
    assert_eq!(fixture.status()["restartedAt"], json!(at(1)), "pods made at that very moment stay");
}

#[test]
fn one_pod_at_a_time_where_a_canary_stands_beside_one_stable_pod() {
    let mut fixture = Fixture::canary(1, json!([{ "setWeight": 50 }, { "pause": {} }]));
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(1));
    assert_eq!(fixture.sizes(), [1, 1]);
    fixture.patch_spec(json!({ "restartAt": at(10) }));
    let evicted = |fixture: &mut Fixture, second| {
        fixture.reconcile(at(second)).iter().filter(|write| *write == "evict").count()
    };
    assert_eq!(evicted(&mut fixture, 20), 1);
    assert_eq!(evicted(&mut fixture, 21), 0, "none while one is missing");
    fixture.at(at(22));
    fixture.pods_follow();
    assert_eq!(evicted(&mut fixture, 22), 1);
}

#[test]
fn a_disruption_budget_is_asked_again_after_30_seconds() {
    let words = "Cannot evict pod as it would violate the pod's disruption budget.";
    let mut fixture = deployed(false, 3, json!("100%"));
    fixture.patch_spec(json!({ "restartAt": at(10) }));
    fixture.at(at(20));
    let half_a_minute = OnRefusal::SkipFor(SignedDuration::from_secs(30));
    for eviction in fixture.decide().changes {
        assert_eq!(eviction.on_refusal, half_a_minute, "one refusal ends no pass");
    }
    fixture.refuse_evictions(Some(words));
    let refused = "evict refused";
    assert_eq!(fixture.reconcile(at(20)), [refused, refused, refused, "status"]);
    assert_eq!(fixture.reconcile(at(21)), [""; 0]);
    let decision = fixture.decide();
    let held = decision.why.iter().find(|why| why.field == "spec.restartAt").unwrap();
    assert_eq!(held.guard, Guard::Refused { message: words.to_owned(), times: 1 });
    assert_eq!(held.frees, Frees::At(at(50)));
    assert_eq!(decision.wake_at, Some(at(50)));
    assert_eq!(fixture.reconcile(at(49)), [""; 0], "not before its time");
    assert_eq!(fixture.reconcile(at(50)), [refused; 3]);
    fixture.refuse_evictions(None);
    assert_eq!(fixture.reconcile(at(80)), ["evict"; 3]);
}

/// A first revision whose pods were made at second 1.
fn deployed(is_blue_green: bool, replicas: i32, max_unavailable: Value) -> Fixture {
    let mut fixture = if is_blue_green {
        Fixture::blue_green(replicas, json!({ "maxUnavailable": max_unavailable }))
    } else {
        let mut fixture = Fixture::canary(replicas, json!([]));
        let limits = json!({ "maxSurge": 1, "maxUnavailable": max_unavailable });
        fixture.patch_spec(json!({ "strategy": { "canary": limits } }));
        fixture
    };
    fixture.settle(at(1));
    fixture
}
