//! Which ReplicaSets a Rollout adopts, uses and lets go, as tables.

use gradus_api::rollout::LabelSelector;
use serde_json::{Value, json};

use super::at;
use super::fixture::Fixture;
use crate::frame::Frame;
use crate::rollout::claim::matches;
use crate::rollout::decide;
use crate::world::ReplicaSetView;

const HASH: &str = "rollouts-pod-template-hash";
const ROLLOUT_UID: &str = "00000000-0000-4000-8000-000000000001";

fn owners(fixture: &mut Fixture, at: usize) -> Vec<String> {
    let owners = fixture.set(at)["metadata"]["ownerReferences"].as_array().cloned();
    let uid = |owner: &Value| owner["uid"].as_str().unwrap().to_owned();
    owners.unwrap_or_default().iter().map(uid).collect()
}

#[test]
fn an_orphan_with_an_equal_template_is_adopted_and_used_under_its_own_hash() {
    let labels = json!({ "app": "web", HASH: "of-another-controller" });
    let fixtures = [
        ("canary", Fixture::canary(2, json!([{ "setWeight": 50 }, { "pause": {} }]))),
        ("blue-green", Fixture::blue_green(2, json!({}))),
    ];
    for (what, fixture) in fixtures {
        let mut fixture = fixture.with_orphan(labels.clone(), 2);
        let decision = decide(&fixture.world(), at(0));
        assert_eq!((decision.asks.len(), decision.changes.len()), (1, 0), "{what}: read first");
        assert_eq!(fixture.reconcile(at(0)), [""; 0], "{what}");
        assert_eq!(fixture.reconcile(at(0)), ["annotate 1"], "{what}: adopted, and nothing else");
        assert_eq!(owners(&mut fixture, 0), [ROLLOUT_UID], "{what}");
        fixture.settle(at(1));
        assert_eq!(fixture.sizes(), [2], "{what}: no other is made, no pod is restarted");
        assert_eq!(fixture.status()["currentPodHash"], "of-another-controller", "{what}");
        assert_eq!(fixture.status()["stableRS"], "of-another-controller", "{what}");
        assert_eq!(fixture.status()["phase"], "Healthy", "{what}");
    }
}

#[test]
fn an_orphan_that_is_not_meant_is_left_alone() {
    let ours = json!({ "app": "web", HASH: "a" });
    let cases = [
        ("other labels", json!({ "app": "shop", HASH: "a" }), json!({})),
        ("on its way out", ours.clone(), json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" })),
        (
            "controlled by another",
            ours,
            json!({ "ownerReferences": [{ "kind": "Experiment", "uid": "x", "controller": true }] }),
        ),
    ];
    for (what, labels, metadata) in cases {
        let mut fixture = Fixture::canary(2, json!([])).with_orphan(labels, 0);
        for (field, value) in metadata.as_object().unwrap() {
            fixture.set(0)["metadata"][field] = value.clone();
        }
        let mut world = fixture.world();
        let is_foreign = what.starts_with("controlled");
        if is_foreign {
            world.replica_sets = crate::world::Known::Present(Vec::new());
        }
        let decision = decide(&world, at(0));
        assert_eq!(decision.asks, [], "{what}");
        let made: Vec<&str> = decision.changes.iter().map(|change| &*change.id.0).collect();
        assert!(made[0].starts_with("create ReplicaSet"), "{what}: {made:?}");
    }
}

#[test]
fn a_replica_set_that_no_longer_matches_is_released_and_keeps_its_other_owners() {
    let mut fixture = Fixture::canary(2, json!([{ "setWeight": 50 }, { "pause": {} }]));
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(1));
    let other =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "keeper", "uid": "keeper" });
    let references = fixture.set(0)["metadata"]["ownerReferences"].as_array_mut().unwrap();
    references.push(other);
    fixture.set(0)["metadata"]["labels"]["app"] = json!("quarantine");
    assert_eq!(fixture.reconcile(at(2)), [""; 0], "it is read first");
    assert_eq!(fixture.reconcile(at(2)), ["annotate 1"]);
    assert_eq!(owners(&mut fixture, 0), ["keeper"]);
    assert_eq!(owners(&mut fixture, 1), [ROLLOUT_UID]);
}

#[test]
fn nothing_is_claimed_or_released_without_a_selector() {
    let mut fixture = Fixture::referring(2, "", 3);
    fixture.settle(at(0));
    *fixture.deployment() = None;
    fixture.settle(at(1));
    assert_eq!(
        owners(&mut fixture, 0),
        [ROLLOUT_UID],
        "the workload is gone, its selector with it"
    );

    let mut fixture = Fixture::referring(2, "", 3);
    fixture.patch_spec(json!({ "selector": {} }));
    fixture.reconcile(at(0));
    assert_eq!(owners(&mut fixture, 0), [ROLLOUT_UID]);
    assert_eq!(decide(&fixture.world(), at(0)).asks, [], "an empty selector means nobody");
}

#[test]
fn an_adoption_waits_for_a_read_of_the_very_same_object() {
    let labels = json!({ "app": "web", HASH: "a" });
    let mut fixture = Fixture::canary(2, json!([])).with_orphan(labels, 2);
    fixture.reconcile(at(0));
    let mut world = fixture.world();
    assert_eq!(decide(&world, at(0)).changes.len(), 1);
    std::sync::Arc::make_mut(&mut world.orphans[0]).version = 7;
    let decision = decide(&world, at(1));
    assert_eq!((decision.asks.len(), decision.changes.len()), (1, 0), "a newer one is read anew");
    fixture.settle(at(2));
    assert_eq!(owners(&mut fixture, 0), [ROLLOUT_UID]);
}

#[test]
fn a_selector_reads_labels_as_kubernetes_does() {
    let labels = json!({ "app": "web", "tier": "front", HASH: "a" });
    let frame: Frame = serde_json::from_value(json!({ "metadata": { "labels": labels } })).unwrap();
    let set = ReplicaSetView::read(&frame, None);
    let one = |key: &str, operator: &str, values: &[&str]| {
        let requirement = json!({ "key": key, "operator": operator, "values": values });
        json!({ "matchExpressions": [requirement] })
    };
    let cases = [
        (json!({}), false),
        (json!({ "matchLabels": { "app": "web" } }), true),
        (json!({ "matchLabels": { "app": "web", "tier": "back" } }), false),
        (one("tier", "In", &["back", "front"]), true),
        (one("tier", "In", &["back"]), false),
        (one("tier", "NotIn", &["back"]), true),
        (one("tier", "NotIn", &["front"]), false),
        (one("none", "NotIn", &["front"]), true),
        (one("tier", "Exists", &[]), true),
        (one("none", "Exists", &[]), false),
        (one("tier", "DoesNotExist", &[]), false),
        (one("none", "DoesNotExist", &[]), true),
    ];
    for (selector, expected) in cases {
        let parsed: LabelSelector = serde_json::from_value(selector.clone()).unwrap();
        assert_eq!(matches(&parsed, &set), expected, "{selector}");
    }
}
