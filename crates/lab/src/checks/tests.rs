//! Every checker must bite: good writes pass, each kind of bad write is named.

mod gates;

use std::sync::Arc;

use gradus_simkube::kinds::{KindId, Kinds};
use gradus_simkube::object::Object;
use gradus_simkube::request::{PatchKind, Verb};
use gradus_simkube::{Change, Write};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::sizes::ResizeLimits;
use super::{CONTROLLER, Checker, Judge};

/// Any kind that is not a ReplicaSet stands for the Rollout here.
const ROLLOUT: KindId = KindId::CONFIG_MAP;

fn object(kind: KindId, name: &str, spec: Value, status: Value) -> Arc<Object> {
    let owner = json!([{"apiVersion": "a/v1", "kind": "Rollout", "name": "web", "uid": "web",
        "controller": true}]);
    let wire = json!({
        "metadata": {"name": name, "namespace": "default", "uid": name, "ownerReferences": owner},
        "spec": spec, "status": status,
    });
    Arc::new(Object::from_json(kind, wire).unwrap())
}

fn write(user: &str, before: Option<&Arc<Object>>, after: &Arc<Object>) -> Write {
    Write {
        version: 7,
        verb: Verb::Patch(PatchKind::Merge),
        user: user.into(),
        change: if before.is_some() { Change::Modified } else { Change::Added },
        before: before.cloned(),
        after: after.clone(),
    }
}

fn set(name: &str, size: i64, available: i64) -> Arc<Object> {
    object(
        KindId::REPLICA_SET,
        name,
        json!({ "replicas": size }),
        json!({ "availableReplicas": available }),
    )
}

fn canary(replicas: i64, steps: Value) -> Value {
    json!({"replicas": replicas,
        "strategy": {"canary": {"maxSurge": 1, "maxUnavailable": 0, "steps": steps}}})
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// The invariants that our write from one state to the other violates.
fn found(
    checker: &mut Checker,
    before: Option<&Arc<Object>>,
    after: &Arc<Object>,
) -> Vec<&'static str> {
    let earlier = checker.violations().len();
    checker.judge(&write(CONTROLLER, before, after), at(1_000));
    checker.violations()[earlier..].iter().map(|violation| violation.invariant).collect()
}

/// A checker that has seen a rollout of 5 with 4 old and 1 new pod, so many of them available.
fn checker(old: i64, new: i64) -> Checker {
    let mut checker = Checker::new(ROLLOUT, &Kinds::default());
    let rollout = object(ROLLOUT, "web", canary(5, json!([])), Value::Null);
    for one in [&rollout, &set("old", 4, old), &set("new", 1, new)] {
        checker.judge(&write("somebody", None, one), at(0));
        checker.shown(one);
    }
    checker.decided();
    checker
}

#[test]
fn a_resize_below_the_floor_or_above_the_ceiling_is_named() {
    let cases = [
        // what, available old and new, name, size, next, expected
        ("one more is the surge", (4, 1), ("new", 1, 2), vec![]),
        ("two more are too many", (4, 1), ("new", 1, 3), vec!["I-2"]),
        ("the last available pods stay", (4, 1), ("old", 4, 3), vec!["I-1"]),
        ("what is not available may go", (3, 1), ("old", 4, 3), vec![]),
        ("but not what is", (3, 1), ("old", 4, 2), vec!["I-1"]),
        ("a failed canary may go", (4, 0), ("new", 1, 0), vec![]),
    ];
    for (what, (old, new), (name, size, next), expected) in cases {
        let available = if name == "old" { old } else { new };
        let (before, after) = (set(name, size, available), set(name, next, available));
        assert_eq!(found(&mut checker(old, new), Some(&before), &after), expected, "{what}");
    }
}

#[test]
fn a_pod_that_fails_after_the_decision_is_not_our_fault() {
    let mut checker = checker(4, 2);
    let failed = set("new", 2, 0);
    checker.judge(&write("kubelet", Some(&set("new", 2, 2)), &failed), at(0));
    let resized = (set("old", 4, 4), set("old", 3, 4));
    assert!(found(&mut checker, Some(&resized.0), &resized.1).is_empty(), "it was decided before");
    checker.shown(&failed);
    checker.decided();
    let resized = (set("old", 3, 3), set("old", 2, 3));
    assert_eq!(found(&mut checker, Some(&resized.0), &resized.1), ["I-1"], "now it was known");
}

#[test]
fn limits_are_numbers_or_percentages() {
    let of = |surge: Value, unavailable: Value| {
        let canary = json!({"maxSurge": surge, "maxUnavailable": unavailable});
        match ResizeLimits::of(&json!({"replicas": 10, "strategy": {"canary": canary}})) {
            Some(ResizeLimits::Canary { floor, ceiling }) => (floor, ceiling),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(of(json!(1), json!(0)), (10, 11));
    assert_eq!(of(json!("25%"), json!("25%")), (8, 13), "surge rounds up, unavailable down");
    assert_eq!(of(Value::Null, Value::Null), (8, 13), "25 % is the default");
    assert_eq!(of(json!(0), json!(0)), (9, 10), "one of them must be possible");
    let blue_green = ResizeLimits::of(&json!({"replicas": 10, "strategy": {"blueGreen": {}}}));
    assert_eq!(blue_green, Some(ResizeLimits::BlueGreen { each: 10 }));
    let routed = json!({"strategy": {"canary": {"trafficRouting": {}}}});
    assert_eq!(ResizeLimits::of(&routed), None, "other invariants rule there");
}

/// A ReplicaSet with a revision number, a label for its hash, and perhaps a deadline.
fn numbered(hash: &str, revision: i64, size: i64, is_delayed: bool) -> Arc<Object> {
    let mut one = Object::clone(&set_of(hash, size, size));
    let meta = Arc::make_mut(&mut one.meta);
    let number = ("rollout.argoproj.io/revision".to_owned(), revision.to_string());
    let deadline = ("scale-down-deadline".to_owned(), at(9_999).to_string());
    let notes = [number].into_iter().chain(is_delayed.then_some(deadline));
    Arc::make_mut(&mut meta.annotations).extend(notes);
    Arc::new(one)
}

#[test]
fn a_blue_green_revision_that_nobody_waits_for_never_grows() {
    let cases = [
        // what, hash, revision, size, next, is it delayed, expected
        ("the newest comes", "c", 4, 0, 5, false, vec![]),
        ("but not with more than all", "c", 4, 0, 6, false, vec!["I-2"]),
        ("stable returns", "a", 1, 2, 5, false, vec![]),
        ("what users reach stays whole", "b", 2, 2, 5, false, vec![]),
        ("and is not taken away", "b", 2, 5, 4, false, vec!["I-6"]),
        ("beyond what all are it may be", "b", 2, 7, 5, false, vec![]),
        ("one in between may go", "x", 3, 2, 0, false, vec![]),
        ("and never returns", "x", 3, 0, 1, false, vec!["I-2"]),
        ("unless it waits for its end", "x", 3, 2, 5, true, vec![]),
        ("with as many as all at most", "x", 3, 2, 6, true, vec!["I-2"]),
    ];
    for (what, hash, revision, size, next, is_delayed, expected) in cases {
        let mut checker = Checker::new(ROLLOUT, &Kinds::default());
        let spec = json!({"replicas": 5, "strategy": {"blueGreen": {"activeService": "active"}}});
        let status = json!({"stableRS": "a", "blueGreen": {"activeSelector": "b"}});
        let sets = [("a", 1), ("b", 2), ("x", 3), ("c", 4)];
        let sets = sets.map(|(hash, revision)| numbered(hash, revision, size, is_delayed));
        let around = [object(ROLLOUT, "web", spec, status), service_to("active", "b")];
        for one in around.iter().chain(&sets) {
            checker.judge(&write("somebody", None, one), at(0));
            checker.shown(one);
        }
        checker.decided();
        let [before, after] = [size, next].map(|size| numbered(hash, revision, size, is_delayed));
        assert_eq!(found(&mut checker, Some(&before), &after), expected, "{what}");
    }
}

#[test]
fn a_service_that_comes_to_select_nothing_is_named() {
    let service = |name: &str, hash: &str| {
        let selector = json!({"selector": {"rollouts-pod-template-hash": hash}});
        object(KindId::SERVICE, name, selector, Value::Null)
    };
    let sized = |hash: &str, available: i64| {
        let mut set = Object::clone(&set(hash, 2, available));
        let label = ("rollouts-pod-template-hash".to_owned(), hash.to_owned());
        Arc::make_mut(&mut Arc::make_mut(&mut set.meta).labels).extend([label]);
        Arc::new(set)
    };
    let cases = [
        // what, available old and new, are they known of, Service, expected
        ("to pods that are there", (2, 2), true, "active", vec![]),
        ("to fewer than all", (2, 1), true, "active", vec!["I-4"]),
        ("to fewer than all, from none", (0, 1), true, "active", vec![]),
        ("to none while others are there", (2, 0), true, "active", vec!["I-3"]),
        ("to none while others came after the decision", (2, 0), false, "active", vec![]),
        ("to none where there is none at all", (0, 0), true, "active", vec![]),
        ("a preview may be empty", (2, 0), true, "preview", vec![]),
    ];
    for (what, (old, new), is_known, name, expected) in cases {
        let mut checker = Checker::new(ROLLOUT, &Kinds::default());
        let spec = json!({"replicas": 2, "strategy": {"blueGreen": {"activeService": "active"}}});
        for one in [object(ROLLOUT, "web", spec, Value::Null), sized("a", old), sized("b", new)] {
            checker.judge(&write("somebody", None, &one), at(0));
            if is_known {
                checker.shown(&one);
            }
        }
        checker.decided();
        let (before, after) = (service(name, "a"), service(name, "b"));
        assert_eq!(found(&mut checker, Some(&before), &after), expected, "{what}");
    }
}

#[test]
fn a_step_that_goes_back_or_passes_a_closed_gate_is_named() {
    let steps =
        json!([{"setWeight": 20}, {"pause": {"duration": 60}}, {"setWeight": 60}, {"pause": {}}]);
    let began =
        |second: i64| json!([{"reason": "CanaryPauseStep", "startTime": at(second).to_string()}]);
    let epoch = |index: i64| {
        json!({"currentPodHash": "b", "currentStepHash": "s", "stableRS": "a",
        "currentStepIndex": index})
    };
    let with = |index: i64, more: Value| {
        let mut status = epoch(index);
        status.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        status
    };
    let cases = [
        ("a step further", epoch(0), epoch(1), vec![]),
        ("back", epoch(2), epoch(1), vec!["I-7"]),
        ("from beyond the last to the end", epoch(77), epoch(4), vec![]),
        ("back from beyond the last", epoch(77), epoch(3), vec!["I-7"]),
        ("back by abort", with(2, json!({"abort": true})), with(0, json!({"abort": true})), vec![]),
        ("past a pause that has not begun", epoch(1), epoch(2), vec!["I-7"]),
        (
            "past a pause that is over",
            with(1, json!({"pauseConditions": began(940)})),
            epoch(2),
            vec![],
        ),
        (
            "past a pause that is not over",
            with(1, json!({"pauseConditions": began(941)})),
            epoch(2),
            vec!["I-7"],
        ),
        (
            "past a pause nobody ended",
            with(3, json!({"pauseConditions": began(0), "controllerPause": true})),
            epoch(4),
            vec!["I-7"],
        ),
        (
            "past everything in full",
            with(0, json!({"promoteFull": true})),
            with(4, json!({"stableRS": "b"})),
            vec![],
        ),
        ("a new epoch begins at 0", epoch(3), with(0, json!({"currentPodHash": "c"})), vec![]),
        ("and nowhere else", epoch(3), with(2, json!({"currentPodHash": "c"})), vec!["I-7"]),
        ("the first deploy skips", json!({}), epoch(4), vec![]),
    ];
    for (what, old, new, expected) in cases {
        let before = object(ROLLOUT, "web", canary(5, steps.clone()), old);
        let after = object(ROLLOUT, "web", canary(5, steps.clone()), new);
        let mut checker = Checker::new(ROLLOUT, &Kinds::default());
        assert_eq!(found(&mut checker, Some(&before), &after), expected, "{what}");
    }
}

#[test]
fn a_violation_names_invariant_write_object_and_numbers() {
    let mut checker = checker(4, 1);
    let (before, after) = (set("new", 1, 1), set("new", 3, 1));
    found(&mut checker, Some(&before), &after);
    assert_eq!(
        checker.violations()[0].to_string(),
        "I-2 violated by our write 1 (version 7) of default/new: 1 → 3 makes 7 pods, ceiling 6"
    );
}

fn service_to(name: &str, hash: &str) -> Arc<Object> {
    let selector = json!({"rollouts-pod-template-hash": hash});
    object(KindId::SERVICE, name, json!({"selector": selector}), Value::Null)
}

fn set_of(hash: &str, size: i64, available: i64) -> Arc<Object> {
    let mut one = Object::clone(&set(hash, size, available));
    let label = ("rollouts-pod-template-hash".to_owned(), hash.to_owned());
    Arc::make_mut(&mut Arc::make_mut(&mut one.meta).labels).extend([label]);
    Arc::new(one)
}

fn canary_ingress(weight: i64) -> Arc<Object> {
    let mut one = Object::clone(&object(KindId::INGRESS, "web-web-canary", json!({}), Value::Null));
    let note = |key: &str, value: String| (format!("nginx.ingress.kubernetes.io/{key}"), value);
    let notes = [note("canary", "true".to_owned()), note("canary-weight", weight.to_string())];
    Arc::make_mut(&mut Arc::make_mut(&mut one.meta).annotations).extend(notes);
    Arc::new(one)
}

fn routed_spec() -> Value {
    json!({"replicas": 10, "strategy": {"canary": {
        "stableService": "stable", "canaryService": "canary",
        "trafficRouting": {"nginx": {"stableIngress": "web"}},
        "steps": [{"setWeight": 50}, {"setCanaryScale": {"replicas": 1}}],
    }}})
}

/// A checker that has seen a rollout of ten with a canary, both with their Services, and a weight.
fn routed(status: Value, stable: (i64, i64), canary: (i64, i64), weight: i64) -> Checker {
    let spec = routed_spec();
    let mut whole = json!({"stableRS": "a", "currentPodHash": "b", "currentStepIndex": 0});
    whole.as_object_mut().unwrap().extend(status.as_object().unwrap().clone());
    let rollout = object(ROLLOUT, "web", spec, whole);
    let mut checker = Checker::new(ROLLOUT, &Kinds::default());
    let (old, new) = (set_of("a", stable.0, stable.1), set_of("b", canary.0, canary.1));
    let services = [service_to("stable", "a"), service_to("canary", "b")];
    for one in [rollout, old, new].iter().chain(&services).chain(&[canary_ingress(weight)]) {
        checker.judge(&write("somebody", None, one), at(0));
        checker.shown(one);
    }
    checker.decided();
    checker
}

#[test]
fn traffic_to_too_few_pods_is_named() {
    let none = json!({});
    let aborted = json!({"abort": true});
    let in_full = json!({"abort": true, "promoteFull": true});
    let overruled = json!({"abort": true, "promoteFull": true, "abortedAt": at(1).to_string()});
    let cases = [
        // what, status, stable, canary, weight, next, expected
        ("onto enough pods", &none, (10, 10), (2, 2), 0, 20, vec![]),
        ("onto too few", &none, (10, 10), (2, 1), 0, 20, vec!["I-4"]),
        ("onto none", &none, (10, 10), (2, 0), 0, 20, vec!["I-3", "I-4"]),
        ("back without a reason", &none, (8, 8), (5, 5), 50, 20, vec!["I-21"]),
        ("back because a pod is lost", &none, (8, 8), (5, 4), 50, 20, vec![]),
        ("back by a lower step", &none, (8, 8), (5, 5), 60, 50, vec![]),
        ("back onto too few", &none, (5, 5), (5, 4), 50, 20, vec!["I-4"]),
        ("away from none", &none, (5, 5), (5, 0), 50, 0, vec![]),
        ("away from none, onto less than enough", &none, (5, 1), (5, 0), 50, 0, vec![]),
        ("no weight of this world", &none, (10, 10), (10, 10), 0, 110, vec!["I-5", "I-4"]),
        ("a size of its own", &json!({"currentStepIndex": 1}), (10, 10), (1, 1), 0, 50, vec![]),
        ("back after an abort", &aborted, (10, 10), (5, 5), 50, 0, vec![]),
        ("up after an abort", &aborted, (10, 10), (5, 5), 20, 50, vec!["I-9"]),
        ("wanted in full at the same time", &in_full, (10, 10), (5, 5), 20, 50, vec!["I-9"]),
        ("wanted in full after it", &overruled, (10, 10), (5, 5), 20, 50, vec![]),
    ];
    for (what, status, stable, canary, weight, next, expected) in cases {
        let mut checker = routed(status.clone(), stable, canary, weight);
        let (before, after) = (canary_ingress(weight), canary_ingress(next));
        assert_eq!(found(&mut checker, Some(&before), &after), expected, "{what}");
    }
}

#[test]
fn a_service_that_brings_traffic_to_too_few_pods_is_named() {
    let cases = [
        ("with no traffic", 0, (10, 10), "canary", "b", "a", vec![]),
        ("with what stable can take", 50, (10, 10), "canary", "b", "a", vec![]),
        ("with more than stable can take", 50, (10, 5), "canary", "b", "a", vec!["I-4"]),
        ("the stable Service, early", 50, (10, 10), "stable", "a", "b", vec!["I-4"]),
    ];
    for (what, weight, stable, name, from, to, expected) in cases {
        let mut checker = routed(json!({}), stable, (5, 5), weight);
        let (before, after) = (service_to(name, from), service_to(name, to));
        assert_eq!(found(&mut checker, Some(&before), &after), expected, "{what}");
    }
}

#[test]
fn pods_that_go_under_their_traffic_are_named() {
    let cases = [
        // what, weight, hash, size, next, expected
        ("what the weight leaves", 50, "b", 6, 5, vec![]),
        ("what the weight needs", 50, "b", 6, 4, vec!["I-6"]),
        ("all of them", 10, "b", 6, 0, vec!["I-6"]),
        ("without traffic", 0, "b", 6, 0, vec![]),
        ("stable under the rest", 50, "a", 10, 4, vec!["I-6"]),
    ];
    for (what, weight, hash, size, next, expected) in cases {
        let mut checker = routed(json!({}), (10, 10), (6, 6), weight);
        let (before, after) = (set_of(hash, size, size), set_of(hash, next, size));
        assert_eq!(found(&mut checker, Some(&before), &after), expected, "{what}");
    }
}

#[test]
fn who_was_told_that_there_are_no_replicas_may_take_all_pods() {
    let resize = |told: i64| {
        let mut checker = routed(json!({}), (10, 10), (6, 6), 50);
        let rollout = |replicas: i64| {
            let mut rollout = Object::clone(&object(ROLLOUT, "web", routed_spec(), json!({})));
            Arc::make_mut(&mut rollout.spec)["replicas"] = json!(replicas);
            Arc::new(rollout)
        };
        checker.shown(&rollout(told));
        checker.decided();
        let (before, after) = (set_of("b", 6, 6), set_of("b", 0, 6));
        found(&mut checker, Some(&before), &after)
    };
    assert_eq!(resize(0), [""; 0], "somebody has scaled it up again since");
    assert_eq!(resize(3), ["I-6"], "it was told of some");
}

/// The same ReplicaSet without an owner.
fn let_go(set: &Arc<Object>) -> Arc<Object> {
    let mut free = Object::clone(set);
    Arc::make_mut(&mut free.meta).owners = Vec::new();
    Arc::new(free)
}

#[test]
fn a_replica_set_that_was_let_go_serves_but_is_not_counted_on() {
    let mut checker = checker(4, 1);
    let old = set("old", 4, 4);
    let free = let_go(&old);
    assert_eq!(found(&mut checker, Some(&old), &free), [""; 0], "letting go is no resize");
    assert_eq!(checker.sizes.wanted(), 1, "a restart does not count its pods");
    assert_eq!(checker.sizes.available("").1, 5, "they are there");
    let grown = (set("new", 1, 1), set("new", 6, 1));
    assert_eq!(found(&mut checker, Some(&grown.0), &grown.1), [""; 0], "nor does the ceiling");
    let gone = Write { change: Change::Deleted, ..write("person", Some(&free), &free) };
    checker.judge(&gone, at(0));
    assert_eq!(checker.sizes.available("").1, 1, "it goes with its pods");

    let mut checker = routed(json!({"abort": true}), (10, 10), (10, 10), 20);
    let stable = set_of("a", 10, 10);
    checker.judge(&write(CONTROLLER, Some(&stable), &let_go(&stable)), at(0));
    assert_eq!(checker.judge_end(), None, "there is no stable revision to return to");
}

#[test]
fn an_abort_that_ends_off_stable_is_named() {
    let aborted = json!({"abort": true});
    let end = |weight: i64, stable: (i64, i64)| {
        routed(aborted.clone(), stable, (5, 5), weight).judge_end().map(|(invariant, _)| invariant)
    };
    assert_eq!(end(0, (10, 10)), None);
    assert_eq!(end(20, (10, 10)), Some("I-9"));
    assert_eq!(end(20, (10, 8)), None, "stable cannot carry it");
}

/// A run that judges the revision `new`; any kind of ours will do.
fn run_of_new(phase: &str) -> Arc<Object> {
    let wire = json!({
        "metadata": {
            "name": "run", "namespace": "default", "uid": "run",
            "labels": { "rollout-type": "Step", "rollouts-pod-template-hash": "new" },
            "ownerReferences": [{ "apiVersion": "a/v1", "kind": "Rollout", "name": "web",
                "uid": "web", "controller": true }],
        },
        "spec": {}, "status": { "phase": phase },
    });
    Arc::new(Object::from_json(KindId::SECRET, wire).unwrap())
}

#[test]
fn what_moves_against_a_verdict_is_named() {
    let cases = [
        // what, phase, is it known, what somebody else changes, sizes, expected
        ("a good verdict", "Successful", true, None, (1, 2), vec![]),
        ("no verdict yet", "Running", true, None, (1, 2), vec![]),
        ("a bad verdict", "Failed", true, None, (1, 2), vec!["I-8"]),
        ("no verdict at the end", "Inconclusive", true, None, (1, 2), vec!["I-8"]),
        ("a verdict nobody has seen", "Failed", false, None, (1, 2), vec![]),
        ("a person wants it so", "Failed", true, Some("template"), (1, 2), vec![]),
        ("a person wants more of all", "Failed", true, Some("replicas"), (1, 2), vec![]),
        ("a person wants something else", "Failed", true, Some("paused"), (1, 2), vec!["I-8"]),
        ("away from it", "Failed", true, None, (1, 0), vec![]),
    ];
    for (what, phase, is_known, changed, (size, next), expected) in cases {
        let mut checker = checker(4, 0);
        let slot = json!({ "canary": { "currentStepAnalysisRunStatus": { "name": "run" } } });
        let rollout = object(ROLLOUT, "web", canary(5, json!([])), slot);
        checker.judge(&write(CONTROLLER, Some(&rollout), &rollout), at(0));
        let (before, after) = (run_of_new(""), run_of_new(phase));
        checker.judge(&write(CONTROLLER, None, &before), at(0));
        checker.judge(&write("who measures", Some(&before), &after), at(0));
        if is_known {
            checker.shown(&after);
            checker.decided();
        }
        if let Some(field) = changed {
            let mut edited = Object::clone(&rollout);
            Arc::make_mut(&mut edited.spec)[field] = json!(6);
            checker.judge(&write("somebody", Some(&rollout), &Arc::new(edited)), at(0));
        }
        let (set, resized) = (set_of("new", size, 0), set_of("new", next, 0));
        assert_eq!(found(&mut checker, Some(&set), &resized), expected, "{what}");
    }
}

#[test]
fn a_step_that_passes_without_its_verdict_is_named() {
    let steps = json!([{ "analysis": {} }, { "experiment": {} }]);
    let stands = |index: i64, slots: Value| {
        let status = json!({ "currentPodHash": "new", "stableRS": "old", "currentStepHash": "s",
            "currentStepIndex": index, "canary": slots });
        object(ROLLOUT, "web", canary(5, steps.clone()), status)
    };
    let of_run = json!({ "currentStepAnalysisRunStatus": { "name": "run" } });
    let of_experiment = json!({ "currentExperiment": "run" });
    for (phase, expected) in [("Successful", vec![]), ("Running", vec!["I-7"])] {
        for (index, slots) in [(0, &of_run), (1, &of_experiment)] {
            let mut checker = checker(4, 1);
            checker.judge(&write("who measures", None, &run_of_new(phase)), at(0));
            let (before, after) = (stands(index, slots.clone()), stands(index + 1, json!({})));
            assert_eq!(found(&mut checker, Some(&before), &after), expected, "{index} {phase}");
        }
    }
}
