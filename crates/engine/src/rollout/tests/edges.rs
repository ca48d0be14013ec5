//! Rollouts at an edge: pauses of no time, turning round, pods that come late, writes that are refused.

use serde_json::{Value, json};

use super::at;
use super::story::Story;

/// The Progressing condition: its reason.
fn progressing(story: &Story) -> Value {
    let conditions = story.status()["conditions"].clone();
    let found = conditions.as_array().unwrap().iter().find(|one| one["type"] == "Progressing");
    found.unwrap()["reason"].clone()
}

#[test]
fn a_pause_of_no_time_is_passed_once_it_is_stored() {
    let durations = [json!(0), json!("0"), json!("0s"), json!("500ms")];
    let steps = |pause: &Value| {
        let pause = json!({ "pause": { "duration": pause } });
        [json!([pause, { "setWeight": 50 }]), json!([{ "setWeight": 50 }, pause, pause])]
    };
    for steps in durations.iter().flat_map(steps) {
        let mut story = Story::canary(2, steps.clone());
        story.settle(at(0));
        story.take_events();
        story.set_image("v2");
        story.settle(at(1));
        let status = story.status();
        assert_eq!(status["phase"], "Healthy", "{steps}");
        assert_eq!(status["stableRS"], status["currentPodHash"], "{steps}");
        let events = story.take_events();
        assert!(events.contains(&"RolloutPaused".to_owned()), "{steps}: {events:?}");
    }
}

#[test]
fn a_full_promotion_that_stands_still_too_long_is_given_up_for_good() {
    let mut story = Story::canary(4, json!([{ "setWeight": 25 }, { "pause": {} }]));
    story.patch_spec(json!({ "progressDeadlineSeconds": 10, "progressDeadlineAbort": true }));
    story.settle(at(0));
    story.set_image("v2");
    story.settle(at(1));
    story.patch_status(json!({ "promoteFull": true }));
    story.settle_without_new_pods(at(2));
    story.settle_without_new_pods(at(60));
    story.settle_without_new_pods(at(120));
    let status = story.status();
    assert_eq!((&status["abort"], &status["phase"]), (&json!(true), &json!("Degraded")));
    assert_eq!(status["promoteFull"], Value::Null);
    assert_eq!(story.sizes(), [4, 0]);
}

#[test]
fn a_retry_is_told_until_something_moves() {
    let mut story = Story::canary(4, json!([{ "setWeight": 25 }, { "pause": {} }]));
    story.settle(at(0));
    story.set_image("v2");
    story.settle(at(1));
    story.patch_status(json!({ "abort": true }));
    story.settle(at(2));
    story.patch_status(json!({ "abort": null }));
    story.reconcile(at(3));
    assert_eq!(progressing(&story), "RolloutRetry");
    story.settle(at(4));
    assert_eq!(story.status()["phase"], "Paused", "and then it goes on as before");
}

#[test]
fn pods_that_come_back_one_by_one_are_progress_however_many_there_were_before() {
    let mut story = Story::canary(10, json!([]));
    story.patch_spec(json!({ "progressDeadlineSeconds": 10 }));
    story.settle(at(0));
    story.patch_spec(json!({ "replicas": 2 }));
    story.settle(at(100));
    story.patch_spec(json!({ "replicas": 9 }));
    for (second, available) in [(200, 2), (205, 4), (212, 6), (219, 8)] {
        story.reconcile(at(second));
        story.size(0, 9, available);
        story.reconcile(at(second));
        assert_eq!(story.status()["phase"], "Progressing", "{available} pods");
    }
}

#[test]
fn after_an_abort_users_go_back_though_the_next_version_cannot_be_made() {
    let steps = json!({ "steps": [{ "setWeight": 50 }, { "pause": {} }] });
    let mut story = Story::nginx(4, steps);
    story.settle(at(0));
    story.set_image("v2");
    story.settle(at(1));
    assert_eq!(story.weight(), "50");
    story.patch_status(json!({ "abort": true }));
    story.set_image("v3");
    story.refuse("exceeded quota", at(1_000));
    story.settle(at(2));
    assert_eq!(story.weight(), "0", "nobody stays with the version that was given up");
}

#[test]
fn after_an_abort_no_service_moves_on_to_a_version_that_cannot_be_made() {
    let steps = json!({ "steps": [{ "setWeight": 50 }, { "pause": {} }] });
    let cases = [
        ("preview", Story::blue_green(3, json!({ "autoPromotionEnabled": false }))),
        ("canary", Story::nginx(4, steps)),
    ];
    for (service, mut story) in cases {
        story.settle(at(0));
        story.set_image("v2");
        story.settle(at(1));
        assert_eq!(story.selects(service), 2, "{service}");
        story.patch_status(json!({ "abort": true }));
        story.set_image("v3");
        story.refuse("exceeded quota", at(1_000));
        story.settle(at(2));
        assert_ne!(story.selects(service), 0, "{service} leads to a version that is there");
        story.settle(at(1_001));
        assert_eq!(story.selects(service), 3, "{service} once the next one is there");
    }
}

#[test]
fn what_the_server_finds_wrong_with_the_template_is_a_fault_of_the_spec() {
    let words = "spec.template.spec.containers[0].resources.requests: Invalid value: \"2\": must be \
                 less than or equal to cpu limit of 1";
    let other = "spec.template.spec.volumes[0].name: Required value";
    let cases = [
        ("one error", words.to_owned()),
        ("several: the first is shown", format!("[{words}, {other}]")),
    ];
    for (what, said) in cases {
        let mut story = Story::canary(4, json!([{ "setWeight": 25 }]));
        story.settle(at(0));
        story.set_image("v2");
        story.take_events();
        let name = format!("web-{}", story.world().rollout.hash);
        story.refuse(&format!("ReplicaSet.apps \"{name}\" is invalid: {said}"), at(10));
        assert_eq!(story.reconcile(at(1)), ["status"], "{what}");
        let message = format!("InvalidSpec: The Rollout \"web\" is invalid: {words}");
        let status = story.status();
        assert_eq!((&status["phase"], &status["message"]), (&json!("Degraded"), &json!(message)));
        assert_eq!(status["observedGeneration"], "2", "{what}");
        assert_eq!(story.reconcile(at(2)), [""; 0], "{what}: said once");
        assert_eq!(story.take_events(), [""; 0], "{what}");
        story.settle(at(11));
        assert_eq!(story.status()["phase"], "Healthy", "{what}: it is tried again");
    }
}

#[test]
fn while_the_new_version_cannot_be_made_the_rest_of_the_spec_is_observed() {
    let mut story = Story::canary(4, json!([{ "setWeight": 25 }]));
    story.settle(at(0));
    story.set_image("v2");
    story.refuse("exceeded quota", at(1_000));
    story.reconcile(at(1));
    assert_eq!(progressing(&story), "ReplicaSetCreateError");
    story.take_events();
    story.patch_spec(json!({ "strategy": { "canary": { "steps": [{ "setWeight": 101 }] } } }));
    story.reconcile(at(2));
    assert_eq!(story.status()["phase"], "Degraded", "the steps are wrong");
    story.patch_spec(json!({ "strategy": { "canary": { "steps": [{ "setWeight": 50 }] } } }));
    story.reconcile(at(3));
    let status = story.status();
    assert_eq!(
        (&status["phase"], &status["observedGeneration"]),
        (&json!("Progressing"), &json!("4"))
    );
    assert_eq!(story.take_events(), [""; 0], "the refusal is told once");
}

#[test]
fn sizes_that_nobody_can_have_stop_nothing_else() {
    for spec in [
        json!({ "replicas": i32::MAX }),
        json!({ "strategy": { "canary": { "maxSurge": i32::MAX } } }),
    ] {
        let mut story = Story::canary(4, json!([{ "setWeight": 50 }, { "pause": {} }]));
        story.settle(at(0));
        story.patch_spec(spec.clone());
        story.set_image("v2");
        for second in 1..9 {
            story.reconcile(at(second));
        }
        assert!(story.sizes()[0] >= 4, "{spec}: {:?}", story.sizes());
    }
}

#[test]
fn a_revision_that_comes_back_keeps_away_from_the_stable_pods_too() {
    let apart = json!({ "antiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {} } });
    let mut story = Story::canary(2, json!([{ "setWeight": 50 }, { "pause": {} }]));
    story.patch_spec(json!({ "strategy": { "canary": apart } }));
    story.settle(at(0));
    story.set_image("v2");
    story.settle(at(1));
    story.promote();
    story.settle(at(2));
    story.set_image("v1");
    story.settle(at(3));
    let (stable, affinity) = (story.hash(1), story.set(0)["spec"]["template"]["spec"].clone());
    assert!(affinity["affinity"].to_string().contains(&stable), "{affinity}");
}
