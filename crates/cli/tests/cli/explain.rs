//! `gradus explain` on a World that a running controller showed.

use serde_json::Value;

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
