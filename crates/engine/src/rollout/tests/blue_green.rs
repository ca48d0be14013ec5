//! Blue-green rollouts as tables.

use serde_json::json;

use super::at;
use super::story::Story;

#[test]
fn the_active_service_moves_when_the_new_revision_is_complete() {
    let mut story = Story::blue_green(3, json!({}));
    assert_eq!(
        story.reconcile(at(0)),
        ["create 1 size 3", "revision 1", "switch preview to 1", "status"]
    );
    assert_eq!(story.selects("active"), 0, "not before there are pods");
    story.settle(at(1));
    assert_eq!((story.selects("active"), story.selects("preview")), (1, 1));
    assert_eq!(story.status()["phase"], "Healthy");
    assert_eq!(
        story.take_events(),
        [
            "RolloutAddedToInformer",
            "RolloutUpdated",
            "NewReplicaSetCreated",
            "SwitchService",
            "ScalingReplicaSet",
            "RolloutCompleted",
            "SwitchService",
        ]
    );

    story.set_image("v2");
    let mut writes = story.reconcile(at(10));
    assert_eq!(writes, ["create 2 size 3", "revision 2", "switch preview to 2", "status"]);
    story.pods_follow();
    writes.extend(story.reconcile(at(11)));
    assert_eq!(writes[4..], ["switch active to 2", "status"]);
    writes.extend(story.reconcile(at(12)));
    assert_eq!(writes[6..], ["annotate 1"], "the old one gets its deadline after the switch");
    writes.extend(story.reconcile(at(20)));
    assert_eq!(story.sizes(), [3, 3], "and stays for its delay");
    assert_eq!(story.status()["phase"], "Healthy");
    writes.extend(story.reconcile(at(42)));
    assert_eq!(writes[7..], ["resize 1 to 0"]);
    story.pods_follow();
    writes.extend(story.reconcile(at(43)));
    assert!(writes.len() <= 9, "{writes:?}");
    assert_eq!(story.reconcile(at(44)), [""; 0]);
    assert_eq!(
        story.take_events(),
        [
            "RolloutUpdated",
            "NewReplicaSetCreated",
            "SwitchService",
            "RolloutNotCompleted",
            "ScalingReplicaSet",
            "SwitchService",
            "RolloutCompleted",
            "ScalingReplicaSet",
        ]
    );
}

#[test]
fn a_pause_before_the_switch_ends_by_hand_or_by_time() {
    type End = fn(&mut Story);
    let cases: [(&str, serde_json::Value, End, i64); 3] = [
        ("by hand", json!({ "autoPromotionEnabled": false }), Story::promote, 20),
        ("by time", json!({ "autoPromotionSeconds": 10 }), |_| {}, 20),
        ("by hand before its time", json!({ "autoPromotionSeconds": 600 }), Story::promote, 20),
    ];
    for (what, strategy, end, second) in cases {
        let mut story = Story::blue_green(2, strategy);
        story.settle(at(0));
        story.set_image("v2");
        story.settle(at(10));
        assert_eq!(story.status()["phase"], "Paused", "{what}");
        assert_eq!(story.status()["message"], "BlueGreenPause", "{what}");
        assert_eq!((story.selects("active"), story.selects("preview")), (1, 2), "{what}");
        end(&mut story);
        story.settle(at(second));
        assert_eq!(story.selects("active"), 2, "{what}");
        assert_eq!(story.status()["phase"], "Healthy", "{what}: {}", story.status());
    }
}

/// What the strategy says | what goes wrong between the pause and a person's resume.
const RESUMED: &str = r#"
by hand            | {"autoPromotionEnabled":false}                           | lost pod
by hand or by time | {"autoPromotionSeconds":600}                             | lost pod
with a preview     | {"autoPromotionEnabled":false,"previewReplicaCount":2}   | lost pod
by hand            | {"autoPromotionEnabled":false}                           | scaled
with a preview     | {"autoPromotionEnabled":false,"previewReplicaCount":2}   | scaled"#;

#[test]
fn a_resume_counts_although_the_new_revision_is_not_complete_just_then() {
    for row in RESUMED.trim().lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [what, strategy, wrong] = cells[..] else { panic!("three cells: {row}") };
        let mut story = Story::blue_green(3, serde_json::from_str(strategy).unwrap());
        story.settle(at(0));
        story.set_image("v2");
        story.settle(at(1));
        assert_eq!(story.status()["phase"], "Paused", "{what}");
        match wrong {
            "scaled" => story.patch_spec(json!({ "replicas": 4 })),
            _ => story.lose_pod(1),
        }
        story.promote();
        for second in 2..6 {
            story.reconcile(at(second));
            assert_eq!(story.selects("active"), 1, "{what}, {wrong}: not before it is complete");
        }
        story.take_events();
        story.settle(at(6));
        assert_eq!(story.selects("active"), 2, "{what}, {wrong}");
        let told = story.take_events();
        assert!(!told.contains(&"RolloutPaused".to_owned()), "{what}, {wrong}: {told:?}");
        assert!(story.status()["controllerPause"].is_null(), "{what}, {wrong}: it is over");
    }
}

#[test]
fn a_preview_count_grows_to_full_size_before_the_switch() {
    let strategy = json!({ "autoPromotionEnabled": false, "previewReplicaCount": 1 });
    let mut story = Story::blue_green(3, strategy);
    story.settle(at(0));
    assert_eq!(story.sizes(), [3], "the first revision has no preview");
    story.set_image("v2");
    story.settle(at(10));
    assert_eq!(story.sizes(), [3, 1]);
    assert_eq!(story.status()["phase"], "Paused");
    story.promote();
    story.settle(at(20));
    assert_eq!((story.sizes(), story.selects("active")), (vec![3, 3], 2));
    story.settle(at(60));
    assert_eq!(story.sizes(), [0, 3]);
    story.set_image("v3");
    story.settle(at(70));
    assert_eq!(story.sizes(), [0, 3, 1], "the next update starts with a preview again");
}

#[test]
fn a_preview_never_has_more_pods_than_the_rollout() {
    for (replicas, expected) in [(2, [2, 2]), (0, [0, 0])] {
        let strategy = json!({ "autoPromotionEnabled": false, "previewReplicaCount": 3 });
        let mut story = Story::blue_green(replicas, strategy);
        story.settle(at(0));
        story.set_image("v2");
        story.settle(at(10));
        assert_eq!(story.sizes(), expected, "{replicas} replicas");
        assert_eq!(story.status()["phase"], "Paused", "{replicas} replicas");
        story.promote();
        story.settle(at(20));
        assert_eq!(story.selects("active"), 2, "{replicas} replicas");
        assert_eq!(story.status()["phase"], "Healthy", "{replicas} replicas");
    }
}

#[test]
fn what_becomes_stable_while_the_active_service_leads_elsewhere_has_all_its_pods() {
    let strategy = json!({ "autoPromotionEnabled": false, "previewReplicaCount": 1 });
    let mut story = Story::blue_green(3, strategy);
    story.settle(at(0));
    // No status of the first revision was ever stored.
    story.lose_status();
    story.set_image("v2");
    story.settle(at(10));
    assert_eq!((story.sizes(), story.selects("active")), (vec![3, 3], 2));
    assert_eq!(story.status()["phase"], "Healthy");
}

#[test]
fn without_replicas_the_active_service_moves_when_the_last_pods_are_gone() {
    type Before = fn(&mut Story);
    let cases: [(&str, Before); 2] = [
        ("the Service selects every revision", |story| {
            story.reconcile(at(0));
            story.pods_follow();
        }),
        ("the Service selects the revision before", |story| story.settle(at(0))),
    ];
    for (what, before) in cases {
        let mut story = Story::blue_green(2, json!({}));
        before(&mut story);
        story.lose_status();
        story.set_image("v2");
        story.patch_spec(json!({ "replicas": 0 }));
        let writes = story.reconcile(at(10));
        assert!(!writes.contains(&"switch active to 2".to_owned()), "{what}: {writes:?}");
        story.settle(at(11));
        assert_eq!((story.sizes(), story.selects("active")), (vec![0, 0], 2), "{what}");
        assert_eq!(story.status()["phase"], "Healthy", "{what}");
    }
}

#[test]
fn a_pod_that_was_taken_away_is_not_counted_again_when_its_replica_set_grows() {
    let mut story = Story::blue_green(5, json!({ "autoPromotionEnabled": false }));
    story.settle(at(0));
    story.set_image("v2");
    story.settle(at(10));
    story.patch_spec(json!({ "replicas": 2 }));
    assert_eq!(story.reconcile(at(11)), ["resize 1 to 2", "resize 2 to 2", "status"]);
    // Nobody has seen the pods go when they are wanted again.
    story.patch_status(json!({ "abort": true }));
    story.patch_spec(json!({ "replicas": 5 }));
    story.reconcile(at(12));
    assert_eq!(story.sizes(), [5, 2]);
    let deadline = "scale-down-deadline";
    assert_eq!(story.note(1, deadline), &json!(null), "stable has two pods, not five");
    story.settle(at(13));
    assert_ne!(story.note(1, deadline), &json!(null), "now it has");
}

#[test]
fn an_abort_goes_back_and_keeps_the_preview_for_its_delay() {
    let mut story = Story::blue_green(2, json!({ "autoPromotionEnabled": false }));
    story.settle(at(0));
    story.set_image("v2");
    story.settle(at(10));
    story.patch_status(json!({ "abort": true }));
    story.settle(at(20));
    assert_eq!(story.status()["phase"], "Degraded");
    assert_eq!((story.selects("active"), story.selects("preview")), (1, 2));
    assert_eq!(story.sizes(), [2, 2], "the preview stays for its delay");
    story.settle(at(50));
    assert_eq!(story.sizes(), [2, 0]);
    story.patch_status(json!({ "abort": false }));
    story.settle(at(60));
    assert_eq!(story.status()["phase"], "Paused", "a retry starts over");
    assert_eq!(story.sizes(), [2, 2]);
}

#[test]
fn a_way_back_within_the_delay_needs_no_pause() {
    let mut story = Story::blue_green(2, json!({ "autoPromotionEnabled": false }));
    story.settle(at(0));
    story.set_image("v2");
    story.settle(at(10));
    story.promote();
    story.settle(at(20));
    assert_eq!(story.selects("active"), 2);
    story.set_image("v1");
    story.settle(at(25));
    assert_eq!(story.selects("active"), 1, "no pause: {}", story.status());
    assert_eq!(story.status()["phase"], "Healthy");
}

#[test]
fn services_that_cannot_be_used_are_named() {
    type Change = fn(&mut Story);
    let cases: [(&str, Change, &str); 3] = [
        (
            "missing",
            |s| s.lose_service("preview"),
            "spec.strategy.blueGreen.previewService: Invalid value: \"preview\": service \"preview\" not found",
        ),
        (
            "other pods",
            |s| s.patch_service("active", json!({ "spec": { "selector": { "app": "other" } } })),
            "spec.strategy.blueGreen.activeService: Invalid value: \"active\": Service \"active\" has unmatch label \"app\" in rollout",
        ),
        (
            "another's",
            |s| {
                s.patch_service(
                    "active",
                    json!({ "metadata": { "annotations": {
            "argo-rollouts.argoproj.io/managed-by-rollouts": "other" } } }),
                )
            },
            "spec.strategy.blueGreen.activeService: Invalid value: \"active\": Service \"active\" is managed by another Rollout",
        ),
    ];
    for (what, change, words) in cases {
        let mut story = Story::blue_green(2, json!({}));
        change(&mut story);
        assert_eq!(story.reconcile(at(0)), ["status"], "{what}");
        let message = story.status()["message"].as_str().unwrap().to_owned();
        assert_eq!(
            message,
            format!("InvalidSpec: The Rollout \"web\" is invalid: {words}"),
            "{what}"
        );
    }
}

#[test]
fn canary_services_follow_their_revisions_and_go_back_on_abort() {
    let mut story = Story::canary(5, json!([{ "setWeight": 20 }, { "pause": {} }]))
        .with_services(&["stable", "canary"]);
    story.patch_spec(json!({ "strategy": { "canary": {
        "stableService": "stable", "canaryService": "canary" } } }));
    story.settle(at(0));
    assert_eq!((story.selects("stable"), story.selects("canary")), (1, 1));
    story.set_image("v2");
    story.settle(at(10));
    assert_eq!((story.selects("stable"), story.selects("canary")), (1, 2));
    story.patch_status(json!({ "abort": true }));
    story.settle(at(20));
    assert_eq!((story.selects("stable"), story.selects("canary")), (1, 1));
    story.patch_status(json!({ "abort": false }));
    story.settle(at(30));
    story.promote();
    story.settle(at(40));
    assert_eq!((story.selects("stable"), story.selects("canary")), (2, 2));
    assert_eq!(story.status()["phase"], "Healthy");
}
