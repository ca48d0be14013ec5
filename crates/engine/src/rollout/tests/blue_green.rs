//! Blue-green rollouts as tables.

use serde_json::json;

use super::at;
use super::fixture::Fixture;

#[test]
fn the_active_service_moves_when_the_new_revision_is_complete() {
    let mut fixture = Fixture::blue_green(3, json!({}));
    assert_eq!(
        fixture.reconcile(at(0)),
        ["create 1 size 3", "revision 1", "switch preview to 1", "status"]
    );
    assert_eq!(fixture.selects("active"), 0, "not before there are pods");
    fixture.settle(at(1));
    assert_eq!((fixture.selects("active"), fixture.selects("preview")), (1, 1));
    assert_eq!(fixture.status()["phase"], "Healthy");
    assert_eq!(
        fixture.take_events(),
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

    fixture.set_image("v2");
    let mut writes = fixture.reconcile(at(10));
    assert_eq!(writes, ["create 2 size 3", "revision 2", "switch preview to 2", "status"]);
    fixture.pods_follow();
    writes.extend(fixture.reconcile(at(11)));
    assert_eq!(writes[4..], ["switch active to 2", "status"]);
    writes.extend(fixture.reconcile(at(12)));
    assert_eq!(writes[6..], ["annotate 1"], "the old one gets its deadline after the switch");
    writes.extend(fixture.reconcile(at(20)));
    assert_eq!(fixture.sizes(), [3, 3], "and stays for its delay");
    assert_eq!(fixture.status()["phase"], "Healthy");
    writes.extend(fixture.reconcile(at(42)));
    assert_eq!(writes[7..], ["resize 1 to 0"]);
    fixture.pods_follow();
    writes.extend(fixture.reconcile(at(43)));
    assert!(writes.len() <= 9, "{writes:?}");
    assert_eq!(fixture.reconcile(at(44)), [""; 0]);
    assert_eq!(
        fixture.take_events(),
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
    type End = fn(&mut Fixture);
    let cases: [(&str, serde_json::Value, End, i64); 3] = [
        ("by hand", json!({ "autoPromotionEnabled": false }), Fixture::promote, 20),
        ("by time", json!({ "autoPromotionSeconds": 10 }), |_| {}, 20),
        ("by hand before its time", json!({ "autoPromotionSeconds": 600 }), Fixture::promote, 20),
    ];
    for (what, strategy, end, second) in cases {
        let mut fixture = Fixture::blue_green(2, strategy);
        fixture.settle(at(0));
        fixture.set_image("v2");
        fixture.settle(at(10));
        assert_eq!(fixture.status()["phase"], "Paused", "{what}");
        assert_eq!(fixture.status()["message"], "BlueGreenPause", "{what}");
        assert_eq!((fixture.selects("active"), fixture.selects("preview")), (1, 2), "{what}");
        end(&mut fixture);
        fixture.settle(at(second));
        assert_eq!(fixture.selects("active"), 2, "{what}");
        assert_eq!(fixture.status()["phase"], "Healthy", "{what}: {}", fixture.status());
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
        let mut fixture = Fixture::blue_green(3, serde_json::from_str(strategy).unwrap());
        fixture.settle(at(0));
        fixture.set_image("v2");
        fixture.settle(at(1));
        assert_eq!(fixture.status()["phase"], "Paused", "{what}");
        match wrong {
            "scaled" => fixture.patch_spec(json!({ "replicas": 4 })),
            _ => fixture.lose_pod(1),
        }
        fixture.promote();
        for second in 2..6 {
            fixture.reconcile(at(second));
            assert_eq!(fixture.selects("active"), 1, "{what}, {wrong}: not before it is complete");
        }
        fixture.take_events();
        fixture.settle(at(6));
        assert_eq!(fixture.selects("active"), 2, "{what}, {wrong}");
        let told = fixture.take_events();
        assert!(!told.contains(&"RolloutPaused".to_owned()), "{what}, {wrong}: {told:?}");
        assert!(fixture.status()["controllerPause"].is_null(), "{what}, {wrong}: it is over");
    }
}

#[test]
fn a_preview_count_grows_to_full_size_before_the_switch() {
    let strategy = json!({ "autoPromotionEnabled": false, "previewReplicaCount": 1 });
    let mut fixture = Fixture::blue_green(3, strategy);
    fixture.settle(at(0));
    assert_eq!(fixture.sizes(), [3], "the first revision has no preview");
    fixture.set_image("v2");
    fixture.settle(at(10));
    assert_eq!(fixture.sizes(), [3, 1]);
    assert_eq!(fixture.status()["phase"], "Paused");
    fixture.promote();
    fixture.settle(at(20));
    assert_eq!((fixture.sizes(), fixture.selects("active")), (vec![3, 3], 2));
    fixture.settle(at(60));
    assert_eq!(fixture.sizes(), [0, 3]);
    fixture.set_image("v3");
    fixture.settle(at(70));
    assert_eq!(fixture.sizes(), [0, 3, 1], "the next update starts with a preview again");
}

#[test]
fn a_preview_never_has_more_pods_than_the_rollout() {
    for (replicas, expected) in [(2, [2, 2]), (0, [0, 0])] {
        let strategy = json!({ "autoPromotionEnabled": false, "previewReplicaCount": 3 });
        let mut fixture = Fixture::blue_green(replicas, strategy);
        fixture.settle(at(0));
        fixture.set_image("v2");
        fixture.settle(at(10));
        assert_eq!(fixture.sizes(), expected, "{replicas} replicas");
        assert_eq!(fixture.status()["phase"], "Paused", "{replicas} replicas");
        fixture.promote();
        fixture.settle(at(20));
        assert_eq!(fixture.selects("active"), 2, "{replicas} replicas");
        assert_eq!(fixture.status()["phase"], "Healthy", "{replicas} replicas");
    }
}

#[test]
fn what_becomes_stable_while_the_active_service_leads_elsewhere_has_all_its_pods() {
    let strategy = json!({ "autoPromotionEnabled": false, "previewReplicaCount": 1 });
    let mut fixture = Fixture::blue_green(3, strategy);
    fixture.settle(at(0));
    // No status of the first revision was ever stored.
    fixture.lose_status();
    fixture.set_image("v2");
    fixture.settle(at(10));
    assert_eq!((fixture.sizes(), fixture.selects("active")), (vec![3, 3], 2));
    assert_eq!(fixture.status()["phase"], "Healthy");
}

#[test]
fn without_replicas_the_active_service_moves_when_the_last_pods_are_gone() {
    type Before = fn(&mut Fixture);
    let cases: [(&str, Before); 2] = [
        ("the Service selects every revision", |fixture| {
            fixture.reconcile(at(0));
            fixture.pods_follow();
        }),
        ("the Service selects the revision before", |fixture| fixture.settle(at(0))),
    ];
    for (what, before) in cases {
        let mut fixture = Fixture::blue_green(2, json!({}));
        before(&mut fixture);
        fixture.lose_status();
        fixture.set_image("v2");
        fixture.patch_spec(json!({ "replicas": 0 }));
        let writes = fixture.reconcile(at(10));
        assert!(!writes.contains(&"switch active to 2".to_owned()), "{what}: {writes:?}");
        fixture.settle(at(11));
        assert_eq!((fixture.sizes(), fixture.selects("active")), (vec![0, 0], 2), "{what}");
        assert_eq!(fixture.status()["phase"], "Healthy", "{what}");
    }
}

#[test]
fn a_pod_that_was_taken_away_is_not_counted_again_when_its_replica_set_grows() {
    let mut fixture = Fixture::blue_green(5, json!({ "autoPromotionEnabled": false }));
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(10));
    fixture.patch_spec(json!({ "replicas": 2 }));
    assert_eq!(fixture.reconcile(at(11)), ["resize 1 to 2", "resize 2 to 2", "status"]);
    // Nobody has seen the pods go when they are wanted again.
    fixture.patch_status(json!({ "abort": true }));
    fixture.patch_spec(json!({ "replicas": 5 }));
    fixture.reconcile(at(12));
    assert_eq!(fixture.sizes(), [5, 2]);
    let deadline = "scale-down-deadline";
    assert_eq!(fixture.note(1, deadline), &json!(null), "stable has two pods, not five");
    fixture.settle(at(13));
    assert_ne!(fixture.note(1, deadline), &json!(null), "now it has");
}

#[test]
fn an_abort_goes_back_and_keeps_the_preview_for_its_delay() {
    let mut fixture = Fixture::blue_green(2, json!({ "autoPromotionEnabled": false }));
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(10));
    fixture.patch_status(json!({ "abort": true }));
    fixture.settle(at(20));
    assert_eq!(fixture.status()["phase"], "Degraded");
    assert_eq!((fixture.selects("active"), fixture.selects("preview")), (1, 2));
    assert_eq!(fixture.sizes(), [2, 2], "the preview stays for its delay");
    fixture.settle(at(50));
    assert_eq!(fixture.sizes(), [2, 0]);
    fixture.patch_status(json!({ "abort": false }));
    fixture.settle(at(60));
    assert_eq!(fixture.status()["phase"], "Paused", "a retry starts over");
    assert_eq!(fixture.sizes(), [2, 2]);
}

#[test]
fn a_way_back_within_the_delay_needs_no_pause() {
    let mut fixture = Fixture::blue_green(2, json!({ "autoPromotionEnabled": false }));
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(10));
    fixture.promote();
    fixture.settle(at(20));
    assert_eq!(fixture.selects("active"), 2);
    fixture.set_image("v1");
    fixture.settle(at(25));
    assert_eq!(fixture.selects("active"), 1, "no pause: {}", fixture.status());
    assert_eq!(fixture.status()["phase"], "Healthy");
}

#[test]
fn services_that_cannot_be_used_are_named() {
    type Change = fn(&mut Fixture);
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
        let mut fixture = Fixture::blue_green(2, json!({}));
        change(&mut fixture);
        assert_eq!(fixture.reconcile(at(0)), ["status"], "{what}");
        let message = fixture.status()["message"].as_str().unwrap().to_owned();
        assert_eq!(
            message,
            format!("InvalidSpec: The Rollout \"web\" is invalid: {words}"),
            "{what}"
        );
    }
}

#[test]
fn canary_services_follow_their_revisions_and_go_back_on_abort() {
    let mut fixture = Fixture::canary(5, json!([{ "setWeight": 20 }, { "pause": {} }]))
        .with_services(&["stable", "canary"]);
    fixture.patch_spec(json!({ "strategy": { "canary": {
        "stableService": "stable", "canaryService": "canary" } } }));
    fixture.settle(at(0));
    assert_eq!((fixture.selects("stable"), fixture.selects("canary")), (1, 1));
    fixture.set_image("v2");
    fixture.settle(at(10));
    assert_eq!((fixture.selects("stable"), fixture.selects("canary")), (1, 2));
    fixture.patch_status(json!({ "abort": true }));
    fixture.settle(at(20));
    assert_eq!((fixture.selects("stable"), fixture.selects("canary")), (1, 1));
    fixture.patch_status(json!({ "abort": false }));
    fixture.settle(at(30));
    fixture.promote();
    fixture.settle(at(40));
    assert_eq!((fixture.selects("stable"), fixture.selects("canary")), (2, 2));
    assert_eq!(fixture.status()["phase"], "Healthy");
}
