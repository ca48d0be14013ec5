//! Every invariant must bite: harmless decisions pass whole, each kind of harm is cut and named.

use std::sync::Arc;

use gradus_api::names::label::POD_TEMPLATE_HASH;
use serde_json::{Value, json};

use super::*;
use crate::decision::{Guard, ObjectRef, Op};
use crate::frame::Frame;
use crate::kinds;
use crate::world::{Known, ReplicaSetView, RolloutView, Route, ServiceView};

fn frame(value: Value) -> Frame {
    serde_json::from_value(value).unwrap()
}

/// A Rollout of 5 with 4 old and 1 new pod, so many of them available; Service `active` selects
/// the old ones.
fn world(strategy: Value, status: Value, old: i32, new: i32) -> World {
    let template = json!({ "metadata": { "labels": { "app": "web" } }, "spec": {} });
    let rollout = frame(json!({
        "metadata": { "namespace": "default", "name": "web", "uid": "u", "generation": 1 },
        "spec": { "replicas": 5, "strategy": strategy, "template": template },
        "status": status,
    }));
    let set = |hash: &str, size: i32, available: i32| {
        let frame = frame(json!({
            "metadata": { "namespace": "default", "name": format!("web-{hash}"),
                "labels": { POD_TEMPLATE_HASH: hash } },
            "spec": { "replicas": size },
            "status": { "replicas": size, "availableReplicas": available },
        }));
        Arc::new(ReplicaSetView::read(&frame, None))
    };
    let service = frame(json!({
        "metadata": { "namespace": "default", "name": "active" },
        "spec": { "selector": { POD_TEMPLATE_HASH: "old" } },
    }));
    World {
        rollout: Arc::new(RolloutView::read(&rollout, None)),
        replica_sets: Known::Present(vec![set("old", 4, old), set("new", 1, new)]),
        services: [("active".into(), Known::Present(Arc::new(ServiceView::read(&service))))].into(),
        routes: Vec::new(),
        orphans: Vec::new(),
        workload: None,
        runs: Known::default(),
        experiments: Known::default(),
        templates: crate::world::Templates::default(),
        answers: std::collections::BTreeMap::new(),
        recall: crate::ask::Recall::default(),
    }
}

fn canary() -> Value {
    json!({ "canary": { "maxSurge": 1, "maxUnavailable": 0, "stableService": "active",
        "steps": [{ "setWeight": 20 }, { "pause": { "duration": 60 } }, { "setWeight": 60 }] } })
}

fn blue_green() -> Value {
    json!({ "blueGreen": { "activeService": "active" } })
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// `old=3` resizes, `active>new` switches, in this order.
fn changes(world: &World, text: &str) -> Vec<Change> {
    let change = |word: &str| {
        if let Some((service, hash)) = word.split_once('>') {
            let body = json!({ "spec": { "selector": { POD_TEMPLATE_HASH: hash } } });
            return Change::patch(world.rollout.service(&service.into()), body, 1);
        }
        let (hash, size) = word.split_once('=').unwrap();
        let size: i32 = size.parse().unwrap();
        let target = world.rollout.replica_set(&format!("web-{hash}").into());
        Change::patch(target, json!({ "spec": { "replicas": size } }), 1)
    };
    text.split_whitespace().map(change).collect()
}

/// The same words, of what is left.
fn words(changes: &[Change]) -> String {
    let word = |change: &Change| {
        let Op::Merge(body) = &change.op else { panic!("only patches are made here") };
        let name = change.target.name.trim_start_matches("web-");
        if change.target.kind == kinds::SERVICE {
            let hash = body["spec"]["selector"][POD_TEMPLATE_HASH].as_str().unwrap();
            return format!("{name}>{hash}");
        }
        format!("{name}={}", body["spec"]["replicas"])
    };
    changes.iter().map(word).collect::<Vec<_>>().join(" ")
}

#[test]
fn harmful_changes_and_what_follows_are_cut_but_pods_may_be_added() {
    let cases = [
        // what, strategy, available (old, new), changes, invariant and what is left
        ("one more is no harm", canary(), (4, 1), "new=2", None),
        ("pods that never came up may go", canary(), (3, 1), "old=3", None),
        ("the last available pods stay", canary(), (4, 1), "old=3", Some(("I-1", ""))),
        ("all at once", canary(), (4, 0), "new=0 old=0", Some(("I-1", "new=0"))),
        ("what follows goes too", canary(), (4, 1), "old=3 active>new", Some(("I-1", ""))),
        ("but pods are added", canary(), (4, 1), "old=3 new=2", Some(("I-1", "new=2"))),
        ("to a revision with a pod", canary(), (4, 1), "active>new", None),
        ("to one without", canary(), (4, 0), "active>new", Some(("I-3", ""))),
        ("to one without, where nobody has one", canary(), (0, 0), "active>new", None),
        ("another Service may be empty", canary(), (4, 0), "preview>new", None),
        ("blue-green too", blue_green(), (4, 0), "active>new", Some(("I-3", ""))),
        ("what serves does not shrink", blue_green(), (4, 1), "old=0", Some(("I-6", ""))),
        ("what no longer serves may", blue_green(), (4, 1), "active>new old=0", None),
        ("what never served may", blue_green(), (4, 1), "new=0", None),
    ];
    for (what, strategy, (old, new), text, expected) in cases {
        let world = world(strategy, json!({}), old, new);
        let decision = Decided { changes: changes(&world, text), ..Decided::default() };
        let found = check(&world, &decision, at(0));
        let found =
            found.as_ref().map(|harm| (harm.invariant.id(), words(&harm.cut.changes).to_owned()));
        let expected = expected.map(|(id, left)| (id, left.to_owned()));
        assert_eq!(found, expected, "{what}");
    }
}

/// The same World behind an Ingress that gives the canary this weight.
fn routed(weight: i32, old: i32, new: i32) -> World {
    let strategy = json!({ "canary": { "stableService": "active", "canaryService": "canary",
        "trafficRouting": { "nginx": { "stableIngress": "web" } },
        "steps": [{ "setWeight": 20 }, { "setWeight": 60 }] } });
    let mut world = world(strategy, json!({}), old, new);
    let canary = frame(json!({
        "metadata": { "namespace": "default", "name": "canary" },
        "spec": { "selector": { POD_TEMPLATE_HASH: "new" } },
    }));
    let canary = Known::Present(Arc::new(ServiceView::read(&canary)));
    world.services.insert("canary".into(), canary);
    let rule = |service: &str| {
        json!({ "rules": [{ "http": { "paths": [{ "path": "/", "pathType": "Prefix",
            "backend": { "service": { "name": service, "port": { "number": 80 } } } }] } }] })
    };
    let ingress = |name: &str, service: &str, annotations: Value| {
        let object = json!({ "metadata": { "namespace": "default", "name": name,
            "annotations": annotations }, "spec": rule(service) });
        let object_ref = ObjectRef::new(kinds::INGRESS, &"default".into(), &name.into());
        Route { object: object_ref, known: Known::Present(Arc::new(object)) }
    };
    let notes = json!({ NGINX_CANARY: "true", NGINX_WEIGHT: weight.to_string() });
    world.routes =
        vec![ingress("web", "active", json!({})), ingress("web-web-canary", "canary", notes)];
    world
}

const NGINX_CANARY: &str = "nginx.ingress.kubernetes.io/canary";
const NGINX_WEIGHT: &str = "nginx.ingress.kubernetes.io/canary-weight";

#[test]
fn traffic_never_comes_before_its_pods_nor_stays_behind_them() {
    let weight = |world: &World, to: i32| {
        let body = json!({ "metadata": { "annotations": { NGINX_WEIGHT: to.to_string() } } });
        Change::patch(world.routes[1].object.clone(), body, 1)
    };
    let cases = [
        // what, weight now, available (old, new), next weight or size, expected
        ("a pod for a fifth", 0, (4, 1), "20", None),
        ("no pod for a fifth", 0, (4, 0), "20", Some("I-3")),
        ("a pod for more than it can carry", 20, (4, 1), "60", Some("I-4")),
        ("more than all", 20, (4, 1), "120", Some("I-5")),
        ("back to stable, which has the pods", 20, (4, 1), "10", None),
        ("all back to a stable that has too few", 20, (2, 1), "0", Some("I-4")),
        ("away from pods that are gone", 20, (2, 0), "0", None),
        ("the canary goes under its traffic", 20, (4, 1), "new=0", Some("I-6")),
        ("the canary goes without traffic", 0, (4, 1), "new=0", None),
        ("stable goes under its traffic", 20, (4, 1), "old=3", Some("I-6")),
    ];
    for (what, now, (old, new), text, expected) in cases {
        let world = routed(now, old, new);
        let changes = match text.parse::<i32>() {
            Ok(to) => vec![weight(&world, to)],
            Err(_) => changes(&world, text),
        };
        let decision = Decided { changes, ..Decided::default() };
        let found = check(&world, &decision, at(0)).map(|harm| harm.invariant.id());
        assert_eq!(found, expected, "{what}");
    }
}

/// A status at a step, with the pause of that step begun at second 0.
fn status(index: i32, change: Value) -> Value {
    let mut status = json!({
        "currentPodHash": "new", "currentStepHash": "s", "stableRS": "old", "controllerPause": true,
        "currentStepIndex": index,
        "pauseConditions": [{ "reason": "CanaryPauseStep", "startTime": "1970-01-01T00:00:00Z" }],
    });
    for (key, value) in change.as_object().unwrap() {
        status[key] = value.clone();
    }
    status
}

#[test]
fn a_step_index_that_falls_or_passes_a_pause_is_not_stored() {
    let cases = [
        // what, stored, next, second, expected
        ("the pause is over", status(1, json!({})), status(2, json!({})), 60, None),
        ("not yet", status(1, json!({})), status(2, json!({})), 59, Some("past the pause")),
        (
            "a person has ended it",
            status(1, json!({ "pauseConditions": [] })),
            status(2, json!({})),
            1,
            None,
        ),
        ("over it", status(0, json!({})), status(2, json!({})), 1, Some("past the pause")),
        (
            "over it, in full",
            status(0, json!({ "promoteFull": true })),
            status(3, json!({})),
            1,
            None,
        ),
        ("back", status(2, json!({})), status(0, json!({})), 1, Some("fall back")),
        ("back after an abort", status(2, json!({})), status(0, json!({ "abort": true })), 1, None),
        (
            "another update begins in the middle",
            status(1, json!({})),
            status(2, json!({ "currentPodHash": "newer" })),
            1,
            Some("begin at step 2"),
        ),
        (
            "another update begins with a step that is done already",
            status(1, json!({})),
            status(1, json!({ "currentPodHash": "newer" })),
            1,
            None,
        ),
        (
            "another update begins",
            status(1, json!({})),
            status(0, json!({ "currentPodHash": "newer" })),
            1,
            None,
        ),
    ];
    for (what, stored, next, second, expected) in cases {
        let world = world(canary(), stored, 4, 1);
        let next: RolloutStatus = serde_json::from_value(next).unwrap();
        let decision = Decided { status: Some(next), ..Decided::default() };
        let found = check(&world, &decision, at(second));
        assert_eq!(found.is_some(), expected.is_some(), "{what}: {found:?}");
        if let (Some(harm), Some(words)) = (found, expected) {
            assert_eq!(harm.invariant.id(), "I-7", "{what}");
            assert!(harm.message.contains(words), "{what}: {}", harm.message);
            let kept = harm.cut.status.unwrap().current_step_index;
            assert_eq!(kept, world.rollout.status.current_step_index, "{what}");
        }
    }
}

#[test]
fn a_held_rollout_says_so_once_and_is_then_left_alone() {
    let first = world(canary(), status(1, json!({ "phase": "Paused" })), 4, 1);
    let next = status(2, json!({ "replicas": 5, "phase": "Healthy" }));
    let next: RolloutStatus = serde_json::from_value(next).unwrap();
    let decision = Decided { status: Some(next), ..Decided::default() };
    let harm = check(&first, &decision, at(1)).unwrap();
    let held = harm.cut.status.clone().unwrap();
    assert_eq!((held.phase.as_str(), held.current_step_index), ("Paused", Some(1)));
    let condition = held.condition("Held").unwrap();
    assert_eq!((condition.status.as_str(), condition.reason.as_str()), ("True", "InterlockI7"));
    assert_eq!(harm.cut.events.len(), 1);
    assert!(
        matches!(&harm.cut.why[0].guard, Guard::Interlock { invariant, .. } if invariant == "I-7")
    );

    let stored = serde_json::to_value(&held).unwrap();
    let again = world(canary(), stored, 4, 1);
    let harm = check(&again, &decision, at(2)).unwrap();
    assert_eq!((harm.cut.status, harm.cut.events.len()), (None, 0), "it is told already");
}
