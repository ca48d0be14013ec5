//! Every invariant must bite: harmless decisions pass whole, each kind of harm is cut and named.

use std::sync::Arc;

use gradus_api::names::label::POD_TEMPLATE_HASH;
use serde_json::{Value, json};

use super::*;
use crate::decision::{Guard, ObjectRef, Op};
use crate::frame::Frame;
use crate::kinds;
use crate::world::{Known, ReplicaSetView, RolloutView, Route, RunView, ServiceView};

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
        experiment_sets: Vec::new(),
        templates: crate::world::Templates::default(),
        verifies: false,
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
    let mut world = world(routed_strategy(), json!({}), old, new);
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

fn routed_strategy() -> Value {
    json!({ "canary": { "stableService": "active", "canaryService": "canary",
        "trafficRouting": { "nginx": { "stableIngress": "web" } },
        "steps": [{ "setWeight": 20 }, { "setWeight": 60 }] } })
}

/// The canary gets another weight.
fn weight(world: &World, to: i32) -> Change {
    let body = json!({ "metadata": { "annotations": { NGINX_WEIGHT: to.to_string() } } });
    Change::patch(world.routes[1].object.clone(), body, 1)
}

const NGINX_CANARY: &str = "nginx.ingress.kubernetes.io/canary";
const NGINX_WEIGHT: &str = "nginx.ingress.kubernetes.io/canary-weight";

#[test]
fn traffic_never_comes_before_its_pods_nor_stays_behind_them() {
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

#[test]
fn a_service_without_a_revision_leads_to_every_pod() {
    for (what, old, expected) in [("enough of all", 3, None), ("too few", 2, Some("I-4"))] {
        let mut world = routed(20, old, 1);
        let all = frame(json!({ "metadata": { "namespace": "default", "name": "active" } }));
        let all = Known::Present(Arc::new(ServiceView::read(&all)));
        world.services.insert("active".into(), all);
        let decision = Decided { changes: vec![weight(&world, 10)], ..Decided::default() };
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
        ("a number beyond the last step", status(77, json!({})), status(3, json!({})), 1, None),
        ("back from it", status(77, json!({})), status(1, json!({})), 1, Some("3 would fall back")),
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

/// A run or an Experiment about the new revision.
fn run_view(name: &str, kind: &crate::decision::Kind, step: &str, phase: &str) -> Arc<RunView> {
    let frame = frame(json!({
        "metadata": { "namespace": "default", "name": name,
            "labels": { POD_TEMPLATE_HASH: "new", "step-index": step } },
        "status": { "phase": phase },
    }));
    Arc::new(RunView::read(kind, &frame))
}

/// What | the gate | how it stands | is it open?
const GATES: &str = r#"
a run that succeeded              | analysis   | run 1 Successful            | open
one that goes on                  | analysis   | run 1 Running               | closed
one that failed                   | analysis   | run 1 Failed                | closed
one of another step               | analysis   | run 0 Successful            | closed
none                              | analysis   |                             | closed
an Experiment that succeeded      | experiment | experiment 1 Successful     | open
one that goes on                  | experiment | experiment 1 Running        | closed
none                              | experiment |                             | closed
a plugin that succeeded           | plugin     | plugin 1 Run Successful     | open
one that goes on                  | plugin     | plugin 1 Run Running        | closed
one that was told to end          | plugin     | plugin 1 Terminate Running  | open
one of another step               | plugin     | plugin 0 Run Successful     | closed
none                              | plugin     |                             | closed
a weight                          | weight     |                             | open"#;

#[test]
fn a_step_index_that_passes_a_closed_gate_is_not_stored() {
    for row in GATES.trim().lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [what, gate, standing, expected] = cells[..] else { panic!("four cells: {row}") };
        let step = match gate {
            "analysis" => json!({ "analysis": { "templates": [{ "templateName": "t" }] } }),
            "experiment" => json!({ "experiment": { "templates": [] } }),
            "plugin" => json!({ "plugin": { "name": "p" } }),
            _ => json!({ "setWeight": 40 }),
        };
        let strategy = json!({ "canary": { "steps": [{ "setWeight": 20 }, step] } });
        let named = json!({ "currentExperiment": "t",
            "currentStepAnalysisRunStatus": { "name": "t", "status": "Running" } });
        let quiet = json!({ "pauseConditions": [], "controllerPause": false, "canary": named });
        let mut world = world(strategy, status(1, quiet.clone()), 4, 1);
        let mut next = status(2, quiet);
        match standing.split_whitespace().collect::<Vec<_>>()[..] {
            ["run", step, phase] => {
                let run = run_view("t", &kinds::ANALYSIS_RUN, step, phase);
                world.runs = Known::Present(vec![run]);
            }
            ["experiment", step, phase] => {
                let experiment = run_view("t", &kinds::EXPERIMENT, step, phase);
                world.experiments = Known::Present(vec![experiment]);
            }
            ["plugin", index, operation, phase] => {
                let index: i32 = index.parse().unwrap();
                next["canary"]["stepPluginStatuses"] = json!([{ "index": index, "name": "p",
                    "operation": operation, "phase": phase }]);
            }
            _ => {}
        }
        let next = Some(serde_json::from_value(next).unwrap());
        let found = check(&world, &Decided { status: next, ..Decided::default() }, at(1));
        let found = found.map(|harm| harm.invariant.id());
        let expected = (expected == "closed").then_some("I-7");
        assert_eq!(found, expected, "{gate}: {what}");
    }
}

#[test]
fn a_held_status_does_not_say_what_only_its_gates_would_make_true() {
    let condition = |r#type: &str, status: &str| {
        json!({ "type": r#type, "status": status, "reason": "R", "message": "",
            "lastUpdateTime": at(0), "lastTransitionTime": at(0) })
    };
    let conditions = |all: [(&str, &str); 3]| {
        let all: Vec<_> =
            all.into_iter().map(|(r#type, status)| condition(r#type, status)).collect();
        json!({ "conditions": all })
    };
    let stored = [("InvalidSpec", "True"), ("Available", "True"), ("Completed", "False")];
    let next = [("Healthy", "True"), ("Completed", "True"), ("Available", "False")];
    let strategy = json!({ "canary": { "steps": [{ "setWeight": 20 }, { "pause": {} }] } });
    let world = world(strategy, status(1, conditions(stored)), 4, 1);
    let next = Some(serde_json::from_value(status(0, conditions(next))).unwrap());
    let harm = check(&world, &Decided { status: next, ..Decided::default() }, at(1)).unwrap();
    let held = harm.cut.status.unwrap();
    let told: Vec<_> = held.conditions.iter().map(|one| (&*one.r#type, &*one.status)).collect();
    assert_eq!(told, [("Completed", "False"), ("Available", "False"), ("Held", "True")]);
}

/// What | strategy | verdict of the run | status besides | changes | expected.
const VERDICTS: &str = r#"
users come through pods         | canary     | 1 Failed       | {}                                             | new=2          | I-8
an analysis without a verdict   | canary     | 1 Inconclusive | {}                                             | new=2          | I-8
it goes on                      | canary     | 1 Running      | {}                                             | new=2          | -
it was found good               | canary     | 1 Successful   | {}                                             | new=2          | -
more of the other revision      | canary     | 1 Failed       | {}                                             | old=5          | -
of a step that was skipped      | canary     | 0 Failed       | {}                                             | new=2          | -
wanted in full                  | canary     | 1 Failed       | {"promoteFull":true}                           | new=2          | -
tried again                     | canary     | 1 Failed       | {"abortedAt":"1970-01-01T00:00:00Z"}           | new=2          | -
given up                        | canary     | 1 Failed       | {"abortedAt":"1970-01-01T00:00:00Z","abort":true} | new=2       | I-8
resumed by a person             | canary     | 1 Inconclusive | {"controllerPause":true}                       | new=2          | -
the switch                      | blue-green | 1 Failed       | {}                                             | active>new     | I-8
the switch away                 | blue-green | 1 Failed       | {}                                             | active>old     | -
a preview                       | blue-green | 1 Failed       | {}                                             | preview>new    | -
pods before the switch          | blue-green | 1 Failed       | {}                                             | new=5          | -
a weight                        | routed     | 1 Failed       | {}                                             | weight=20      | I-8
less weight                     | routed     | 1 Failed       | {}                                             | weight=5       | -
pods without weight             | routed     | 1 Failed       | {}                                             | new=2          | -"#;

#[test]
fn nothing_moves_towards_a_revision_that_was_not_found_good() {
    for row in VERDICTS.trim().lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [what, strategy, verdict, besides, text, expected] = cells[..] else {
            panic!("six cells: {row}");
        };
        let slot = json!({ "name": "run", "status": "Running" });
        let mut stored = status(
            1,
            json!({ "pauseConditions": [], "controllerPause": false,
            "canary": { "currentStepAnalysisRunStatus": slot } }),
        );
        let besides: Value = serde_json::from_str(besides).unwrap();
        stored.as_object_mut().unwrap().extend(besides.as_object().unwrap().clone());
        let mut world = match strategy {
            "canary" => world(canary(), stored, 4, 1),
            "blue-green" => world(blue_green(), stored, 4, 1),
            _ => World {
                rollout: world(routed_strategy(), stored, 4, 1).rollout,
                ..routed(10, 4, 1)
            },
        };
        let (step, phase) = verdict.split_once(' ').unwrap();
        world.runs = Known::Present(vec![run_view("run", &kinds::ANALYSIS_RUN, step, phase)]);
        let changes = match text.strip_prefix("weight=") {
            Some(to) => vec![weight(&world, to.parse().unwrap())],
            None => changes(&world, text),
        };
        let found = check(&world, &Decided { changes, ..Decided::default() }, at(1));
        let found = found.map_or("-", |harm| harm.invariant.id());
        assert_eq!(found, expected, "{what}");
    }
}

#[test]
fn a_revision_that_was_not_found_good_does_not_become_the_stable_one() {
    let slot = json!({ "name": "run", "status": "Running" });
    let named = json!({ "pauseConditions": [], "controllerPause": false,
        "blueGreen": { "postPromotionAnalysisRunStatus": slot } });
    let mut world = world(blue_green(), status(0, named.clone()), 4, 1);
    let mut next = status(0, named);
    next["stableRS"] = json!("new");
    let next: RolloutStatus = serde_json::from_value(next).unwrap();
    for (phase, expected) in [("Failed", Some("I-8")), ("Successful", None)] {
        let run = run_view("run", &kinds::ANALYSIS_RUN, "", phase);
        world.runs = Known::Present(vec![run]);
        let decision = Decided { status: Some(next.clone()), ..Decided::default() };
        let found = check(&world, &decision, at(1));
        assert_eq!(found.as_ref().map(|harm| harm.invariant.id()), expected, "{phase}");
        let kept = found.map(|harm| harm.cut.status.unwrap().stable_rs.to_string());
        assert_eq!(kept, expected.map(|_| "old".to_owned()), "{phase}");
    }
}

#[test]
fn what_takes_traffic_off_a_revision_that_is_not_stable_is_done_all_the_same() {
    let world = World {
        rollout: world(routed_strategy(), status(0, json!({})), 4, 1).rollout,
        ..routed(20, 5, 1)
    };
    let cases = [
        // What follows a change that is cut, and how much of it is, what is left of them
        ("less weight", vec![weight(&world, 10)], 1),
        ("more weight", vec![weight(&world, 20)], 0),
        ("back to stable", changes(&world, "canary>old"), 1),
        ("stable to the new one", changes(&world, "active>new"), 0),
        ("more pods", changes(&world, "new=3"), 1),
        ("fewer pods", changes(&world, "old=3"), 0),
    ];
    for (what, after, left) in cases {
        let cut = changes(&world, "new=0");
        let changes: Vec<Change> = cut.into_iter().chain(after).collect();
        let decision = Decided { changes, ..Decided::default() };
        let harm = check(&world, &decision, at(0)).unwrap();
        assert_eq!((harm.invariant.id(), harm.cut.changes.len()), ("I-6", left), "{what}");
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

#[test]
fn a_decision_that_does_not_settle_is_an_alarm_and_nothing_is_done() {
    let world = world(canary(), status(1, json!({ "phase": "Paused" })), 4, 1);
    let decision = held(&world, "24 passes each changed something");
    assert!(decision.changes.is_empty() && decision.status.is_none());
    let harm = check(&world, &decision, at(1)).unwrap();
    assert_eq!((harm.invariant.id(), harm.cut.changes.len()), ("I-10", 0));
    let told = harm.cut.status.unwrap();
    assert_eq!(told.condition("Held").unwrap().reason, "InterlockI10");
    assert_eq!((told.phase.as_str(), harm.cut.events.len()), ("Paused", 1));
    assert_eq!(harm.cut.why.len(), 1);
}
