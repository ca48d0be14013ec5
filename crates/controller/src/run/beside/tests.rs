//! Which decisions of a dry run differ from what somebody else did?

use gradus_engine::decision::{ChangeId, Expect, OnRefusal};
use gradus_engine::kinds::{REPLICA_SET, ROLLOUT};
use gradus_engine::uid::Uid;
use gradus_engine::{Head, StatusPlace};

use super::*;
use crate::act::StatusWrite;
use crate::cluster::Lane;
use crate::watched::{Scope, Standing};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn object(kind: Kind, name: &str) -> ObjectRef {
    ObjectRef::new(kind, &"shop".into(), &name.into())
}

fn change(op: Op) -> Change {
    let target = object(REPLICA_SET, "web-1");
    let (id, expect) = (ChangeId::of("any", &target), Expect::Nothing);
    Change { id, target, op, expect, on_refusal: OnRefusal::Stop }
}

fn job(changes: Vec<Change>, status: Option<Value>) -> Job {
    let place = StatusPlace::Subresource;
    let object = object(ROLLOUT, "web");
    Job {
        key: Key::of(&object),
        head: Head { object, uid: Uid::default(), version: 5 },
        changes,
        status: status.map(|patch| StatusWrite { patch: json!({ "status": patch }).into(), place }),
        events: Vec::new(),
        wake_at: None,
        standing: Standing::default(),
        decided_at: at(0),
        lane: Lane::default(),
    }
}

fn frame(name: &str, mut whole: Value) -> Frame {
    whole["metadata"]["name"] = json!(name);
    whole["metadata"]["namespace"] = json!("shop");
    whole["metadata"]["resourceVersion"] = json!("7");
    serde_json::from_value(whole).unwrap()
}

fn scaled(size: i32) -> Value {
    json!({ "metadata": {}, "spec": { "replicas": size } })
}

#[test]
fn what_the_other_does_in_time_is_no_difference() {
    let resize = || change(Op::Merge(json!({ "spec": { "replicas": 4 } }).into()));
    let create = || change(Op::Create(json!({}).into()));
    let sets = Scope::default().all(REPLICA_SET);
    let rollouts = Scope::default().all(ROLLOUT);
    let paused = || {
        json!({ "phase": "Paused", "readyReplicas": 3, "pauseConditions": [
        { "reason": "CanaryPauseStep", "startTime": "2026-01-01T00:00:00Z" }] })
    };
    let theirs = json!({ "metadata": {}, "status": { "phase": "Paused", "readyReplicas": 2,
        "pauseConditions": [{ "reason": "CanaryPauseStep", "startTime": "2026-01-01T00:00:07Z" }] } });
    let other = json!({ "metadata": {}, "status": { "phase": "Progressing" } });
    let deleted = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } });
    let cases = [
        ("nothing happens", job(vec![resize()], None), None, 1),
        ("the same size", job(vec![resize()], None), Some((&sets, "web-1", scaled(4))), 0),
        ("another size", job(vec![resize()], None), Some((&sets, "web-1", scaled(5))), 1),
        ("another object", job(vec![resize()], None), Some((&sets, "web-2", scaled(4))), 1),
        ("it is made", job(vec![create()], None), Some((&sets, "web-1", scaled(0))), 0),
        ("it goes", job(vec![change(Op::Delete)], None), Some((&sets, "web-1", deleted)), 0),
        ("its status", job(vec![], Some(paused())), Some((&rollouts, "web", theirs)), 0),
        ("another status", job(vec![], Some(paused())), Some((&rollouts, "web", other)), 1),
        ("counts alone", job(vec![], Some(json!({ "readyReplicas": 3 }))), None, 0),
    ];
    for (what, job, seen, differences) in cases {
        let mut beside = Beside::default();
        beside.decided(0, &job, at(100));
        if let Some((watch, name, whole)) = seen {
            beside.seen(watch, &Seen::Apply(frame(name, whole)));
        }
        let status = job.status.as_ref().map(|status| status.patch["status"].clone());
        let decision = json!({ "changes": job.changes, "status": status });
        let still = |_: &UnmadeWrite| Some(json!({ "decision": decision }));
        assert_eq!(beside.take_due(at(109), still).len(), 0, "{what}: there is time");
        assert_eq!(beside.take_due(at(110), still).len(), differences, "{what}");
        beside.decided(0, &job, at(111));
        let said = beside.wishes.values().filter(|wish| wish.is_told).count();
        assert_eq!(said, differences, "{what}: known, so not said again");
    }
}

#[test]
fn what_would_no_longer_be_done_is_no_difference() {
    let resize = |size: i32| change(Op::Merge(json!({ "spec": { "replicas": size } }).into()));
    let mut beside = Beside::default();
    beside.decided(0, &job(vec![resize(4)], None), at(100));
    beside.decided(0, &job(vec![resize(5)], None), at(105));
    assert_eq!(beside.next_due(), Some(at(115)), "the one before is forgotten");
    let nothing = |_: &UnmadeWrite| Some(json!({ "decision": { "changes": [], "status": null } }));
    assert_eq!(beside.take_due(at(115), nothing), []);
    assert_eq!((beside.next_due(), beside.wishes.len()), (None, 0));
    beside.decided(0, &job(vec![resize(6)], None), at(200));
    assert_eq!(beside.take_due(at(300), |_| None), [], "its object is gone");
}

#[test]
fn what_is_done_or_no_longer_decided_leaves_nothing() {
    let resize = |set: &str| {
        let target = object(REPLICA_SET, set);
        let op = Op::Merge(json!({ "spec": { "replicas": 4 } }).into());
        Change { target, ..change(op) }
    };
    let mut beside = Beside::default();
    beside.decided(0, &job(vec![resize("web-1"), resize("web-2"), resize("web-3")], None), at(100));
    beside.decided(0, &job(vec![resize("web-1"), resize("web-2")], None), at(101));
    assert_eq!(beside.wishes.len(), 2, "one is no longer decided");
    let sets = Scope::default().all(REPLICA_SET);
    beside.seen(&sets, &Seen::Apply(frame("web-1", scaled(4))));
    beside.seen(&sets, &Seen::Delete(frame("web-2", scaled(0))));
    let Beside { wishes, by_target, by_key, due, .. } = &beside;
    assert_eq!((wishes.len(), by_target.len(), by_key.len(), due.len()), (0, 0, 0, 0));
}

#[test]
fn an_object_says_what_a_patch_would_make_it_say() {
    let cases = [
        ("equal", json!({ "a": 1, "b": 2 }), json!({ "a": 1 }), true),
        ("other", json!({ "a": 1 }), json!({ "a": 2 }), false),
        ("gone", json!({ "b": 2 }), json!({ "a": null }), true),
        ("not gone", json!({ "a": [1] }), json!({ "a": null }), false),
        ("nothing as Go writes it", json!({}), json!({ "a": false, "b": "", "c": [] }), true),
        ("a list", json!({ "a": [1, 2] }), json!({ "a": [1, 2] }), true),
        ("a longer list", json!({ "a": [1, 2] }), json!({ "a": [1] }), false),
        ("an empty list", json!({ "a": [1] }), json!({ "a": [] }), false),
        (
            "conditions in another order",
            json!({ "c": [{ "type": "A" }, { "type": "B", "lastUpdateTime": "y" }] }),
            json!({ "c": [{ "type": "B", "lastUpdateTime": "x" }, { "type": "A" }] }),
            true,
        ),
        (
            "a condition that says otherwise",
            json!({ "c": [{ "type": "A", "status": "True" }] }),
            json!({ "c": [{ "type": "A", "status": "False" }] }),
            false,
        ),
        ("moments", json!({ "startedAt": "x" }), json!({ "startedAt": "y" }), true),
        ("no moment", json!({}), json!({ "scale-down-deadline": "y" }), false),
        ("another uid", json!({ "uid": "1" }), json!({ "uid": "2" }), true),
    ];
    for (what, object, patch, expected) in cases {
        assert_eq!(says(&object, &patch), expected, "{what}");
    }
}
