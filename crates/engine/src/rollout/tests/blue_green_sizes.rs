//! Blue-green rollouts from deed to deed: sizes, delays, counts and what ends them.

use serde_json::{Value, json};

use super::at;
use super::fixture::Fixture;
use super::rows::tell;
use crate::rollout::Memo;

/// As `tell` reads them; a person promotes.
const PAUSED: &str = r"
0    | image v1        | 2   | null | Healthy                | deployed
10   | image v2, stuck | 2 2 | null | Progressing active service cutover pending | 80: no pause before the pods are there
20   |                 | 2 2 | null | Paused BlueGreenPause  | 80: then it begins
30   | pause           | 2 2 | null | Paused manually paused | 81: halted by hand as well
40   | promote         | 2 2 | null | Paused manually paused | 81: nothing moves meanwhile
50   | resume          | 2 2 | null | Healthy                | 81: and then it does
90   |                 | 0 2 | null | Healthy                | the delay has passed";

#[test]
fn a_preview_waits_for_its_pods_then_for_a_person() {
    let mut fixture = Fixture::blue_green(2, json!({ "autoPromotionEnabled": false }));
    tell(&mut fixture, PAUSED);
}

#[test]
fn a_halt_by_hand_holds_a_promotion_by_time() {
    let mut fixture = Fixture::blue_green(2, json!({ "autoPromotionSeconds": 10 }));
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(10));
    assert_eq!(fixture.decide().wake_at, Some(at(20)));
    fixture.patch_spec(json!({ "paused": true }));
    fixture.settle(at(100));
    assert_eq!(fixture.selects("active"), 1, "81");
    fixture.patch_spec(json!({ "paused": false }));
    fixture.settle(at(101));
    assert_eq!(fixture.selects("active"), 2, "81");
}

#[test]
fn an_abort_of_a_rollout_without_replicas_keeps_users_on_the_pods_that_are_left() {
    let strategy = json!({ "scaleDownDelaySeconds": 30, "abortScaleDownDelaySeconds": 30 });
    let mut fixture = Fixture::blue_green(2, strategy);
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(10));
    assert_eq!((fixture.selects("active"), fixture.sizes()), (2, vec![2, 2]));
    fixture.patch_spec(json!({ "replicas": 0 }));
    fixture.patch_status(json!({ "abort": true, "stableRS": fixture.hash(0) }));
    fixture.size(0, 0, 0);
    fixture.reconcile(at(11));
    assert_eq!(fixture.selects("active"), 2, "stable has no pod to go back to");
    fixture.settle(at(99));
    assert_eq!(fixture.sizes(), [0, 0]);
}

#[test]
fn there_is_nothing_to_wait_for_where_the_active_service_leads_already() {
    for (what, selects_new) in [("the new revision", true), ("every revision", false)] {
        let mut fixture = Fixture::blue_green(2, json!({ "autoPromotionEnabled": false }));
        fixture.settle(at(0));
        fixture.set_image("v2");
        fixture.reconcile(at(10));
        let hash = selects_new.then(|| fixture.hash(1));
        let selector = json!({ "selector": { "rollouts-pod-template-hash": hash } });
        fixture.patch_service("active", json!({ "spec": selector }));
        fixture.settle(at(20));
        assert_eq!(fixture.status()["phase"], "Healthy", "83: {what}");
        assert_eq!(fixture.selects("active"), 2, "83: {what}");
    }
}

/// Desired, current, updated, ready, available.
fn counts(fixture: &Fixture) -> Vec<i64> {
    let mut counts = vec![fixture.rollout()["spec"]["replicas"].as_i64().unwrap()];
    let fields = ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"];
    counts.extend(fields.map(|field| fixture.status()[field].as_i64().unwrap_or(0)));
    counts
}

#[test]
fn counts_and_selector_are_of_the_active_revision() {
    let strategy = json!({ "autoPromotionEnabled": false, "previewReplicaCount": 1 });
    let mut fixture = Fixture::blue_green(2, strategy);
    fixture.reconcile(at(0));
    assert_eq!(fixture.status()["selector"], "app=web", "93: no active revision yet");
    fixture.settle(at(1));
    fixture.set_image("v2");
    fixture.settle(at(10));
    assert_eq!(counts(&fixture), [2, 3, 1, 2, 2], "84: one preview beside two");
    let active = format!("app=web,rollouts-pod-template-hash={}", fixture.hash(0));
    assert_eq!(fixture.status()["selector"], active, "93");
    assert_eq!(fixture.status()["HPAReplicas"], 2, "93: an autoscaler sees the active ones");
    fixture.promote();
    fixture.settle(at(20));
    assert_eq!(counts(&fixture), [2, 4, 2, 2, 2], "84: both complete, the new one active");
    let active = format!("app=web,rollouts-pod-template-hash={}", fixture.hash(1));
    assert_eq!(fixture.status()["selector"], active, "93");
}

/// As `tell` reads them; one preview pod of three, promoted by a person.
const PREVIEWED: &str = r"
0    | image v1 | 3     | null | Healthy               | deployed
10   | image v2 | 3 1   | null | Paused BlueGreenPause | one to look at
20   | scale 5  | 5 1   | null | Paused BlueGreenPause | 86: stable follows, the preview stays
30   | full     | 5 5   | null | Healthy               | 85: straight to the end
100  | image v3 | 0 5 1 | null | Paused BlueGreenPause | one to look at
110  | abort    | 0 5 1 | null | Degraded RolloutAborted: Rollout aborted update to revision 3 | given up
115  | image v4 | 0 5 5 1 | null | Paused BlueGreenPause | 91: the next; an old one has full size for its delay
150  |          | 0 5 0 1 | null | Paused BlueGreenPause | 91: the one that was given up goes after its delay";

#[test]
fn a_preview_keeps_its_own_size_until_it_is_promoted() {
    let strategy = json!({ "autoPromotionEnabled": false, "previewReplicaCount": 1 });
    let mut fixture = Fixture::blue_green(3, strategy);
    tell(&mut fixture, PREVIEWED);
    assert_eq!((fixture.selects("active"), fixture.selects("preview")), (2, 4), "91");
}

/// What stands in the annotation, the size afterwards, whether the annotation is gone.
#[test]
fn an_old_revision_stays_until_its_deadline_and_no_longer() {
    let cases = [
        ("ahead", json!(at(500)), 3, false),
        ("past", json!(at(50)), 0, true),
        ("not to be read", json!("soon"), 0, true),
    ];
    for (what, deadline, size, is_gone) in cases {
        let mut fixture = Fixture::blue_green(2, json!({}));
        fixture.settle(at(0));
        fixture.set_image("v2");
        fixture.settle(at(10));
        assert_eq!(*fixture.note(0, "scale-down-deadline"), json!(at(40)), "87: after the switch");
        fixture.set(0)["metadata"]["annotations"]["scale-down-deadline"] = deadline;
        fixture.patch_spec(json!({ "replicas": 3 }));
        fixture.settle(at(30));
        fixture.settle(at(100));
        assert_eq!(fixture.sizes(), [size, 3], "87: {what}");
        assert_eq!(*fixture.note(0, "scale-down-deadline") == Value::Null, is_gone, "87: {what}");
    }
}

#[test]
fn a_way_back_within_the_delay_is_one_more_revision_without_a_pause() {
    let mut fixture = Fixture::blue_green(2, json!({ "autoPromotionEnabled": false }));
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(10));
    fixture.promote();
    fixture.settle(at(20));
    fixture.take_events();
    fixture.take_messages();
    fixture.set_image("v1");
    fixture.settle(at(25));
    let expected = [
        "RolloutUpdated",
        "SwitchService",
        "RolloutNotCompleted",
        "SwitchService",
        "RolloutCompleted",
    ];
    assert_eq!(fixture.take_events(), expected, "88");
    assert_eq!(fixture.note(0, "rollout.argoproj.io/revision"), "3", "88");
    let hash = fixture.hash(0);
    let last = format!("Rollout completed update to revision 3 ({hash}): Fast rollback");
    assert_eq!(fixture.take_messages().last(), Some(&last), "88");
}

/// What the strategy says besides a preview of one pod | of the spec | what happens on the way back
/// | what ends the wait.
const WAYS_BACK: &str = r#"
by hand                        | {"autoPromotionEnabled":false,"scaleDownDelaySeconds":60} | {} | |
by time                        | {"autoPromotionSeconds":1,"scaleDownDelaySeconds":60}     | {} | |
at once                        | {"scaleDownDelaySeconds":60}                              | {} | |
a pod is lost meanwhile        | {"autoPromotionEnabled":false,"scaleDownDelaySeconds":60} | {} | lost pod | pods
and the controller starts anew | {"autoPromotionEnabled":false,"scaleDownDelaySeconds":60} | {} | lost pod, restart | pods
scaled meanwhile               | {"autoPromotionEnabled":false,"scaleDownDelaySeconds":60} | {} | scale | pods
within the window, by hand     | {"autoPromotionEnabled":false,"scaleDownDelaySeconds":5} | {"rollbackWindow":{"revisions":3}} | late | pods
within the window, by time     | {"autoPromotionSeconds":1,"scaleDownDelaySeconds":5}     | {"rollbackWindow":{"revisions":3}} | late | pods"#;

#[test]
fn a_way_back_needs_no_preview_and_no_person() {
    for row in WAYS_BACK.trim().lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [what, strategy, spec, meanwhile, waits] = cells[..] else {
            panic!("five cells: {row}");
        };
        let mut fixture = Fixture::blue_green(2, serde_json::from_str(strategy).unwrap());
        fixture.patch_spec(json!({ "strategy": { "blueGreen": { "previewReplicaCount": 1 } } }));
        fixture.patch_spec(serde_json::from_str(spec).unwrap());
        fixture.settle(at(0));
        fixture.set_image("v2");
        fixture.settle(at(10));
        fixture.promote();
        fixture.settle(at(20));
        assert_eq!(fixture.selects("active"), 2, "{what}: promoted");
        let second = if meanwhile == "late" { 100 } else { 30 };
        fixture.settle(at(second));
        fixture.set_image("v1");
        if meanwhile.starts_with("lost pod") {
            fixture.lose_pod(0);
        }
        if meanwhile == "scale" {
            fixture.patch_spec(json!({ "replicas": 3 }));
        }
        fixture.reconcile(at(second));
        fixture.reconcile(at(second + 1));
        if waits == "pods" {
            assert_eq!(fixture.selects("active"), 2, "{what}: not before its pods are there");
        }
        if meanwhile.ends_with("restart") {
            fixture.recall().memo = Memo::default();
        }
        fixture.settle(at(second + 2));
        let replicas = fixture.rollout()["spec"]["replicas"].as_i64().unwrap();
        assert_eq!((fixture.selects("active"), fixture.sizes()[0]), (1, replicas), "{what}");
        let status = fixture.status();
        assert_eq!(status["phase"], "Healthy", "{what}: {status}");
        assert_eq!(status["duration"]["completionStatus"], "FastRolledBack", "{what}");
        let told = fixture.take_events();
        let pauses = told.iter().filter(|reason| *reason == "RolloutPaused").count();
        assert!(pauses <= 1, "{what}: only the first update pauses");
    }
}

/// As `tell` reads them; a deadline of one minute.
const STUCK: &str = r#"
0    | image v1   | 2   | null | Healthy | deployed
10   | image bad, stuck | 2 2 | null | Progressing active service cutover pending | it does not come up
71   | stuck      | 2 2 | null | Degraded ProgressDeadlineExceeded: ReplicaSet "web-HASH" has timed out progressing. | 94: told, not given up
80   | spec {"progressDeadlineAbort":true}, stuck | 2 2 | null | Degraded RolloutAborted: Rollout aborted update to revision 2: ReplicaSet "web-HASH" has timed out progressing. | 94: given up once that is wished
111  | stuck      | 2 0 | null | Degraded RolloutAborted: Rollout aborted update to revision 2: ReplicaSet "web-HASH" has timed out progressing. | 94: its pods go after the delay"#;

#[test]
fn pods_that_never_come_give_the_update_up_only_where_that_is_wished() {
    let mut fixture = Fixture::blue_green(2, json!({}));
    fixture.patch_spec(json!({ "progressDeadlineSeconds": 60 }));
    let mut bad = fixture.clone();
    bad.set_image("bad");
    tell(&mut fixture, &STUCK.replace("HASH", &bad.world().rollout.hash));
    assert_eq!((fixture.selects("active"), &fixture.status()["abort"]), (1, &json!(true)), "94");
}

#[test]
fn a_promoted_rollout_that_loses_its_pods_is_never_given_up() {
    let mut fixture = Fixture::blue_green(2, json!({}));
    fixture.patch_spec(json!({ "progressDeadlineSeconds": 60, "progressDeadlineAbort": true }));
    fixture.settle(at(0));
    fixture.settle_without_new_pods(at(10));
    fixture.settle_without_new_pods(at(999));
    assert_eq!(
        (&fixture.status()["phase"], &fixture.status()["abort"]),
        (&json!("Degraded"), &Value::Null)
    );
}

/// The limit of delayed revisions before and after, and the sizes.
#[test]
fn a_lower_limit_of_delayed_revisions_counts_at_once() {
    let mut fixture = Fixture::blue_green(2, json!({ "scaleDownDelayRevisionLimit": 2 }));
    for tag in ["v1", "v2", "v3", "v4"] {
        fixture.set_image(tag);
        fixture.settle(at(10));
    }
    assert_eq!(fixture.sizes(), [0, 2, 2, 2], "96: two are delayed");
    let limit = json!({ "scaleDownDelayRevisionLimit": 1 });
    fixture.patch_spec(json!({ "strategy": { "blueGreen": limit } }));
    fixture.settle(at(11));
    assert_eq!(fixture.sizes(), [0, 0, 2, 2], "96: one is");
}

#[test]
fn another_strategy_keeps_the_pods_and_forgets_what_was_of_the_old_one() {
    let mut fixture = Fixture::blue_green(2, json!({}));
    fixture.settle(at(0));
    fixture.patch_spec(json!({ "strategy": { "blueGreen": null,
        "canary": { "steps": [{ "setWeight": 50 }, { "pause": {} }] } } }));
    fixture.settle(at(10));
    let status = fixture.status();
    assert_eq!((fixture.sizes(), &status["phase"]), (vec![2], &json!("Healthy")), "95");
    assert_eq!(status["blueGreen"], json!({}), "95");
    assert_eq!(status["currentStepIndex"], 2, "95");
    assert_ne!(status["currentStepHash"], Value::Null, "95");
    assert_eq!(status["selector"], "app=web", "95");
    fixture.set_image("v2");
    fixture.settle(at(20));
    assert_eq!((fixture.sizes(), &fixture.status()["phase"]), (vec![1, 1], &json!("Paused")), "95");
}

#[test]
fn a_promote_is_kept_while_the_preview_is_not_ready() {
    for strategy in [json!({}), json!({ "previewReplicaCount": 1 })] {
        let mut fixture = Fixture::blue_green(2, json!({ "autoPromotionEnabled": false }));
        fixture.patch_spec(json!({ "strategy": { "blueGreen": strategy } }));
        fixture.settle(at(0));
        fixture.set_image("v2");
        fixture.settle(at(10));
        assert_eq!(fixture.status()["phase"], "Paused", "{strategy}");
        fixture.promote();
        fixture.lose_pod(1);
        fixture.reconcile(at(20));
        fixture.reconcile(at(21));
        assert_eq!(fixture.selects("active"), 1, "{strategy}");
        fixture.settle(at(30));
        assert_eq!(fixture.selects("active"), 2, "{strategy}: {}", fixture.status());
        assert_eq!(fixture.status()["controllerPause"], Value::Null, "{strategy}");
    }
}
