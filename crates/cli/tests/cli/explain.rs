//! `gradus explain` on a World that a running controller showed.

use serde_json::{Value, json};

use crate::cluster::{Cluster, sample};
use crate::controller::{ask_until, start};
use crate::program::{folder, gradus};

/// The World of a rollout that is paused by hand, as the health port shows it.
fn saved(name: &str) -> Value {
    let folder = folder(name);
    let cluster = Cluster::start(0, &folder);
    let mut rollout = sample("canary-with-pauses.yaml");
    rollout["spec"]["paused"] = true.into();
    cluster.create(rollout);
    let (_controller, health, _) = start(&cluster.kubeconfig, &[]);
    let is_paused = |status, body: &str| {
        let has_set = |world: Value| world["world"]["replica_sets"]["Present"][0].is_object();
        let is_there = serde_json::from_str(body).is_ok_and(has_set);
        status == 200 && is_there && body.contains("SpecPaused")
    };
    let text = ask_until(health, "/debug/world/rollout/default/checkout", is_paused);
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_saved_world_decides_the_same_and_says_why() {
    let folder = folder("explain");
    let path = folder.join("world.json");
    let path = path.to_str().unwrap();
    let mut world = saved("explain-world");

    std::fs::write(path, world.to_string()).unwrap();
    let same = gradus(&["explain", "--world", path]);
    assert_eq!(same.code, Some(0), "{}{}", same.stdout, same.stderr);
    for expected in [
        "Rollout default/checkout at ",
        "Rollout default/checkout is paused by hand (spec.paused); a person can free it with",
        "the saved decision is the same",
    ] {
        assert!(same.stdout.contains(expected), "{expected:?} in:\n{}", same.stdout);
    }

    world["decision"]["why"] = Value::Array(Vec::new());
    std::fs::write(path, world.to_string()).unwrap();
    let other = gradus(&["explain", "--world", path]);
    assert_eq!(other.code, Some(2));
    assert!(other.stdout.contains("the saved decision differs in why"), "{}", other.stdout);
}

#[test]
fn what_is_no_world_is_refused_with_its_name() {
    let path = folder("no-world").join("world.json");
    let path = path.to_str().unwrap();
    assert!(gradus(&["explain", "--world", path]).stderr.contains("cannot read"));
    std::fs::write(path, "{}").unwrap();
    let refused = gradus(&["explain", "--world", path]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("is no saved World"), "{}", refused.stderr);
}

#[test]
fn a_saved_world_is_shown_as_far_as_it_goes() {
    let path = folder("shown-world").join("world.json");
    std::fs::write(&path, saved("shown").to_string()).unwrap();
    let path = path.to_str().unwrap();
    let shown = gradus(&["get", "rollout", "--world", path, "--no-color"]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    for expected in
        ["Name:            checkout", "Status:          ॥ Paused", "⟳ checkout", "# revision:1"]
    {
        assert!(shown.stdout.contains(expected), "{expected:?} in:\n{}", shown.stdout);
    }
    let other = gradus(&["get", "rollout", "cart", "--world", path]);
    assert!(other.stderr.contains("this World is about default/checkout"), "{}", other.stderr);
    let experiment = gradus(&["get", "experiment", "x", "--world", path]);
    assert!(experiment.stderr.contains("no Experiment"), "{}", experiment.stderr);
}

/// Every engine of the program can be asked: an object, the words that must stand there, those that must not.
#[test]
fn objects_of_every_engine_are_explained() {
    let folder = folder("explain-kinds");
    let cluster = Cluster::start(0, &folder);
    let metadata = |name: &str| json!({ "namespace": "default", "name": name });
    let metric = json!({ "name": "errors", "successCondition": "result < 1",
        "provider": { "web": { "url": "http://metrics.example/errors", "jsonPath": "{$.errors}" } } });
    cluster.store(&json!({ "apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisRun",
        "metadata": metadata("judge"), "spec": { "metrics": [metric] },
        "status": { "phase": "Running", "message": "", "startedAt": "2026-01-01T00:00:00Z" } }));
    let bad = json!({ "phase": "Failed", "value": "7", "finishedAt": "2026-01-01T00:00:01Z" });
    let result = json!({ "name": "errors", "phase": "Failed", "count": 1, "failed": 1,
        "measurements": [bad] });
    cluster.store(&json!({ "apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisRun",
        "metadata": metadata("judged"), "spec": { "metrics": [metric] },
        "status": { "phase": "Failed", "metricResults": [result],
            "message": "Metric \"errors\" assessed Failed due to failed (1) > failureLimit (0)" } }));
    let template = json!({ "metadata": { "labels": { "app": "a" } },
        "spec": { "containers": [{ "name": "a", "image": "a:1" }] } });
    cluster.store(&json!({ "apiVersion": "argoproj.io/v1alpha1", "kind": "Experiment",
        "metadata": metadata("compare"), "spec": { "templates": [{ "name": "one", "replicas": 1,
            "selector": { "matchLabels": { "app": "a" } }, "template": template }] } }));
    let service = json!({ "apiVersion": "v1", "kind": "Service", "metadata": metadata("plain"),
        "spec": { "ports": [{ "port": 80 }], "selector": { "app": "a" } } });
    cluster.store(&service);
    let cases = [
        (["analysisrun", "judge"], "AnalysisRun default/judge at "),
        (["ar", "judge"], "it asks, and is not answered here: "),
        (
            ["analysisrun", "judged"],
            "metric errors is Failed (1 bad): value 7 at 2026-01-01T00:00:01Z; successCondition \
             result < 1; asked: Web http://metrics.example/errors {$.errors}",
        ),
        (["experiment", "compare"], "it would create ReplicaSet default/compare-one"),
        (["exp", "compare"], "Experiment default/compare at "),
        (["analysisrun", "jugde"], "did you mean \"judge\"?"),
        (["service", "plain"], "Gradus has nothing to decide about Service plain"),
        (["deployment", "x"], "expected one of rollout, analysisrun, experiment, service"),
    ];
    for (what, expected) in cases {
        let flags = ["--kubeconfig", cluster.kubeconfig.to_str().unwrap()];
        let said = gradus(&[&["explain"], &what[..], &flags].concat());
        let all = said.stdout + &said.stderr;
        assert!(all.contains(expected), "{what:?}: {expected:?} in:\n{all}");
    }
}
