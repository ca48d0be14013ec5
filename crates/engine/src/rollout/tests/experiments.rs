//! Experiment steps as tables: which Experiments there are, and what their verdicts do.

use std::sync::Arc;

use serde_json::{Value, json};

use super::at;
use super::fixture::Fixture;
use super::runs::{play, told};
use crate::rollout::experiments::destinations;
use crate::rollout::objects::Objects;
use crate::traffic::Destination;
use crate::world::ExperimentSet;

fn experiment() -> Value {
    json!({
        "templates": [
            { "name": "one", "specRef": "canary", "replicas": 2, "weight": 5,
                "metadata": { "labels": { "x": "y" }, "annotations": { "note": "n" } } },
            { "name": "two", "specRef": "stable", "service": { "name": "two" } },
        ],
        "duration": "5m",
        "analyses": [{
            "name": "a", "templateName": "once", "requiredForCompletion": true,
            "args": [{ "name": "hash", "valueFrom": { "podTemplateHashValue": "Latest" } }],
        }],
        "scaleDownDelaySeconds": 3,
    })
}

fn without_weights(mut experiment: Value) -> Value {
    experiment["templates"][0].as_object_mut().unwrap().remove("weight");
    experiment
}

/// A canary with an experiment step between a weight and a pause, promoted once.
fn canary() -> Fixture {
    let experiment = without_weights(experiment());
    let steps = json!([{ "setWeight": 20 }, { "experiment": experiment }, { "pause": {} }]);
    let mut fixture = Fixture::canary(5, steps);
    fixture.settle(at(0));
    assert_eq!(fixture.runs(), [""; 0], "without a stable revision there is nothing to compare");
    fixture
}

const SUCCESS: &str = "
image v2              | start experiment 2-1 | 2-1 -          | Progressing | 1 | more replicas need to be updated
turns 2-1 Pending     |                      | 2-1 Pending    | Progressing | 1 | more replicas need to be updated
turns 2-1 Running     |                      | 2-1 Running    | Progressing | 1 | more replicas need to be updated
turns 2-1 Successful  |                      | 2-1 Successful | Paused      | 2 | CanaryPauseStep";

const FAILURE: &str = "
image v2              | start experiment 2-1   | 2-1 -               | Progressing | 1 | more replicas need to be updated
turns 2-1 Failed pods |                        | 2-1 Failed          | Degraded    | 0 | RolloutAborted: Rollout aborted update to revision 2: Experiment analysis phase is error/failed: pods
retry                 | start experiment 2-1-1 | 2-1 Failed, 2-1-1 - | Progressing | 1 | more replicas need to be updated
abort                 | end experiment 2-1-1   | 2-1 Failed, 2-1-1 - ending | Degraded | 0 | RolloutAborted: Rollout aborted update to revision 2";

const INCONCLUSIVE: &str = "
image v2               | start experiment 2-1   | 2-1 -                     | Progressing | 1 | more replicas need to be updated
turns 2-1 Inconclusive |                        | 2-1 Inconclusive          | Paused      | 1 | InconclusiveExperiment
later                  |                        | 2-1 Inconclusive          | Paused      | 1 | InconclusiveExperiment
promote                | start experiment 2-1-1 | 2-1 Inconclusive, 2-1-1 - | Progressing | 1 | more replicas need to be updated
skip 2                 | end experiment 2-1-1   | 2-1 Inconclusive, 2-1-1 - ending | Paused | 2 | CanaryPauseStep";

const HALTED: &str = "
image v2              | start experiment 2-1 | 2-1 -          | Progressing | 1 | more replicas need to be updated
turns 2-1 Running     |                      | 2-1 Running    | Progressing | 1 | more replicas need to be updated
halt                  |                      | 2-1 Running    | Paused      | 1 | manually paused
turns 2-1 Successful  |                      | 2-1 Successful | Paused      | 1 | manually paused
later                 |                      | 2-1 Successful | Paused      | 1 | manually paused
go on                 |                      | 2-1 Successful | Paused      | 2 | CanaryPauseStep";

#[test]
fn an_experiment_step_ends_with_its_verdict() {
    let cases = [
        ("success", SUCCESS, ["ExperimentCreated"].as_slice()),
        (
            "failure",
            FAILURE,
            &["ExperimentCreated", "RolloutAborted", "ExperimentCreated", "RolloutAborted"],
        ),
        ("no verdict", INCONCLUSIVE, &["ExperimentCreated", "ExperimentCreated"]),
        ("success while somebody has halted the rollout", HALTED, &["ExperimentCreated"]),
    ];
    for (what, table, events) in cases {
        let mut fixture = canary();
        play(&mut fixture, table);
        assert_eq!(told(&mut fixture), events, "{what}");
    }
}

#[test]
fn an_experiment_copies_the_revisions_it_compares() {
    let mut fixture = canary();
    fixture.patch_spec(json!({ "progressDeadlineSeconds": 77 }));
    fixture.set_image("v2");
    fixture.settle(at(10));
    let new = fixture.status()["currentPodHash"].clone();
    let found = fixture.named_run("2-1").clone();
    assert_eq!(found["metadata"]["labels"], json!({ "rollouts-pod-template-hash": new }));
    let spec = &found["spec"];
    let one = &spec["templates"][0];
    let labels = json!({ "app": "web", "x": "y", "rollouts-pod-template-hash": new });
    assert_eq!(one["template"]["metadata"]["labels"], labels);
    assert_eq!(one["template"]["metadata"]["annotations"], json!({ "note": "n" }));
    assert_eq!(one["selector"]["matchLabels"], labels);
    assert_eq!(one["template"]["spec"]["containers"][0]["image"], "web:v2");
    assert_eq!((&one["replicas"], one.get("service")), (&json!(2), None));
    let two = &spec["templates"][1];
    assert_eq!(two["template"]["spec"]["containers"][0]["image"], "web:v1");
    assert_eq!(two["service"], json!({ "name": "two" }));
    let analysis = json!({ "name": "a", "templateName": "once", "requiredForCompletion": true,
        "args": [{ "name": "hash", "value": new }] });
    assert_eq!(spec["analyses"], json!([analysis]));
    let rest =
        [&spec["duration"], &spec["progressDeadlineSeconds"], &spec["scaleDownDelaySeconds"]];
    assert_eq!(rest, [&json!("5m"), &json!(77), &json!(3)]);
    assert_eq!(spec.get("dryRun"), None, "nothing is added that the step does not name");
}

#[test]
fn an_experiment_runs_dry_what_its_step_says() {
    let dry_run = json!([{ "metricName": "m" }]);
    let mut experiment = without_weights(experiment());
    experiment["dryRun"] = dry_run.clone();
    let mut fixture = Fixture::canary(5, json!([{ "experiment": experiment }]));
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(10));
    assert_eq!(fixture.named_run("2-0")["spec"]["dryRun"], dry_run);
}

#[test]
fn an_experiment_that_is_there_already_is_used() {
    let mut fixture = canary();
    fixture.set_image("v2");
    fixture.settle(at(10));
    fixture.forget_runs();
    assert_eq!(fixture.rest(at(11)), ["status"]);
    assert_eq!(fixture.runs(), ["2-1 -"]);
    assert!(fixture.status()["canary"]["currentExperiment"].as_str().unwrap().ends_with("-2-1"));
}

#[test]
fn a_running_experiment_says_where_its_traffic_goes() {
    let mut fixture = canary();
    fixture.set_image("v2");
    fixture.settle(at(10));
    let steps = json!([{ "setWeight": 20 }, { "experiment": experiment() }, { "pause": {} }]);
    let status = json!([
        { "name": "one", "serviceName": "one-svc", "podTemplateHash": "aaa" },
        { "name": "two", "serviceName": "two", "podTemplateHash": "bbb" },
    ]);
    fixture.named_run("2-1")["status"]["templateStatuses"] = status;
    let set = |available: i64| ("2-1", "aaa", available);
    let cases = [
        // The Experiment's phase, its ReplicaSets as (Experiment, hash, available pods), parts
        ("Pending", vec![set(1)], 0),
        ("Running", vec![set(1)], 1),
        ("Running", vec![set(0)], 0),
        ("Running", vec![], 0),
        ("Running", vec![("2-1", "bbb", 1)], 0),
        ("Running", vec![("2-0", "aaa", 1)], 0),
        ("Running", vec![("2-0", "aaa", 0), set(2)], 1),
        ("Successful", vec![set(1)], 0),
    ];
    for (phase, sets, count) in cases {
        fixture.run_turns("2-1", phase, "");
        let mut world = fixture.world();
        let mut rollout = (*world.rollout).clone();
        let mut spec = (*rollout.spec).clone();
        spec.fields.strategy.canary.as_mut().unwrap().steps =
            serde_json::from_value(steps.clone()).unwrap();
        rollout.spec = spec.into();
        world.rollout = rollout.into();
        let name = world.rollout.status.canary.current_experiment.clone();
        let set = |(experiment, hash, available): &(&str, &str, i64)| ExperimentSet {
            experiment: name.replace("2-1", experiment).into(),
            hash: (*hash).into(),
            version: 1,
            available: *available,
            port: Some(8080),
        };
        world.experiment_sets = sets.iter().map(|one| Arc::new(set(one))).collect();
        let found = destinations(&Objects::new(&world, &[], at(20)));
        let one = Destination {
            service: "one-svc".into(),
            hash: "aaa".into(),
            port: Some(8080),
            weight: 5,
        };
        assert_eq!(found, vec![one; count], "{phase} {sets:?}");
    }
}
