//! Rollouts at an edge: pauses of no time, turning round, pods that come late, writes that are
//! refused.

use serde_json::{Value, json};

use super::at;
use super::fixture::Fixture;
use super::rows::act;

/// The Progressing condition: its reason.
fn progressing(fixture: &Fixture) -> Value {
    let conditions = fixture.status()["conditions"].clone();
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
        let mut fixture = Fixture::canary(2, steps.clone());
        fixture.settle(at(0));
        fixture.take_events();
        fixture.set_image("v2");
        fixture.settle(at(1));
        let status = fixture.status();
        assert_eq!(status["phase"], "Healthy", "{steps}");
        assert_eq!(status["stableRS"], status["currentPodHash"], "{steps}");
        let events = fixture.take_events();
        assert!(events.contains(&"RolloutPaused".to_owned()), "{steps}: {events:?}");
    }
}

#[test]
fn a_full_promotion_that_stands_still_too_long_is_given_up_for_good() {
    let mut fixture = Fixture::canary(4, json!([{ "setWeight": 25 }, { "pause": {} }]));
    fixture.patch_spec(json!({ "progressDeadlineSeconds": 10, "progressDeadlineAbort": true }));
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(1));
    fixture.patch_status(json!({ "promoteFull": true }));
    fixture.settle_without_new_pods(at(2));
    fixture.settle_without_new_pods(at(60));
    fixture.settle_without_new_pods(at(120));
    let status = fixture.status();
    assert_eq!((&status["abort"], &status["phase"]), (&json!(true), &json!("Degraded")));
    assert_eq!(status["promoteFull"], Value::Null);
    assert_eq!(fixture.sizes(), [4, 0]);
}

/// Whose rollout | what happens beside the abort.
const ABORTED_BESIDE: &str = r#"
a canary       | spec {"replicas":3}
a canary       | spec {"replicas":3}, pause
a canary       | spec {"restartAt":"2023-11-14T22:13:22Z"}
a canary       | full, spec {"replicas":3}
a routed one   | spec {"replicas":3}
a blue-green   | spec {"replicas":3}
a blue-green   | spec {"replicas":3}, pause"#;

#[test]
fn an_abort_is_noted_by_the_pass_that_first_sees_it_whatever_else_that_does() {
    for row in ABORTED_BESIDE.trim().lines() {
        let (whose, deeds) = row.split_once('|').unwrap();
        let steps = json!([{ "setWeight": 50 }, { "pause": {} }]);
        let mut fixture = match whose.trim() {
            "a canary" => Fixture::canary(2, steps),
            "a routed one" => Fixture::nginx(2, json!({ "steps": steps })),
            _ => Fixture::blue_green(2, json!({ "autoPromotionEnabled": false })),
        };
        fixture.settle(at(0));
        fixture.set_image("v2");
        fixture.settle(at(1));
        assert_eq!(fixture.status()["phase"], "Paused", "{row}");
        for deed in deeds.split(", ") {
            act(&mut fixture, deed.trim());
        }
        act(&mut fixture, "abort");
        fixture.reconcile(at(10));
        let status = fixture.status();
        assert_eq!(status["abortedAt"], json!(at(10)), "{row}: {status}");
        let fields = ["pauseConditions", "controllerPause", "promoteFull"];
        assert_eq!(fields.map(|field| &status[field]), [&Value::Null; 3], "{row}");
        assert_eq!(status["phase"], "Degraded", "{row}");
        fixture.settle(at(20));
        assert_eq!(fixture.status()["abortedAt"], json!(at(10)), "{row}: once");
    }
}

#[test]
fn an_abort_of_what_is_promoted_says_nothing_in_a_pass_that_only_scales() {
    let mut fixture = Fixture::canary(2, json!([{ "setWeight": 50 }]));
    fixture.settle(at(0));
    fixture.patch_status(json!({ "abort": true }));
    fixture.patch_spec(json!({ "replicas": 3 }));
    fixture.take_events();
    fixture.settle(at(10));
    let told = fixture.take_events();
    assert!(!told.contains(&"RolloutAborted".to_owned()), "{told:?}");
    assert_eq!(
        (&fixture.status()["abort"], &fixture.status()["phase"]),
        (&Value::Null, &json!("Healthy"))
    );
}

/// What happens to a canary in its pause | the Progressing condition once all is quiet.
const HALTED_ON_THE_WAY: &str = r"
pause                         | Unknown RolloutPaused
pause, image v1               | True ReplicaSetUpdated
pause, abort, image v1        | True ReplicaSetUpdated
pause, image v3               | Unknown RolloutPaused
pause, abort, image v3        | Unknown RolloutPaused
pause, image v1, resume       | True NewReplicaSetAvailable";

#[test]
fn a_halt_is_told_of_an_update_and_not_of_a_revision_that_is_stable() {
    for row in HALTED_ON_THE_WAY.trim().lines() {
        let (deeds, expected) = row.split_once('|').unwrap();
        let mut fixture = Fixture::canary(4, json!([{ "setWeight": 50 }, { "pause": {} }]));
        fixture.settle(at(0));
        fixture.set_image("v2");
        fixture.settle(at(1));
        for (second, deed) in (10..).zip(deeds.split(", ")) {
            act(&mut fixture, deed.trim());
            fixture.settle(at(second));
        }
        let condition = fixture.condition("Progressing");
        let says = format!(
            "{} {}",
            condition["status"].as_str().unwrap(),
            condition["reason"].as_str().unwrap()
        );
        assert_eq!(says, expected.trim(), "{row}");
        assert_eq!(fixture.reconcile(at(30)), [""; 0], "{row}: settled");
    }
}

#[test]
fn an_abort_before_the_first_status_is_not_taken_back_by_a_pass_that_only_scales() {
    let mut fixture = Fixture::canary(2, json!([{ "setWeight": 50 }]));
    fixture.reconcile(at(0));
    let fields = ["currentPodHash", "currentStepHash", "currentStepIndex", "stableRS"];
    for field in fields {
        fixture.patch_status(json!({ field: null }));
    }
    fixture.patch_status(json!({ "abort": true }));
    fixture.patch_spec(json!({ "replicas": 3, "paused": true }));
    fixture.reconcile(at(1));
    assert_eq!(fixture.status()["abort"], true, "{}", fixture.status());
}

#[test]
fn the_time_of_a_halt_is_not_counted_against_a_revision_that_was_promoted_in_it() {
    let mut fixture = Fixture::canary(4, json!([{ "setWeight": 50 }, { "pause": {} }]));
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(1));
    act(&mut fixture, "pause");
    fixture.settle(at(2));
    act(&mut fixture, "image v1");
    fixture.settle(at(3));
    act(&mut fixture, "resume");
    fixture.reconcile(at(3_600));
    assert_eq!(progressing(&fixture), "ReplicaSetUpdated", "{}", fixture.status());
    fixture.settle(at(3_601));
    assert_eq!(fixture.status()["phase"], "Healthy");
}

#[test]
fn a_retry_is_told_until_something_moves() {
    let mut fixture = Fixture::canary(4, json!([{ "setWeight": 25 }, { "pause": {} }]));
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(1));
    fixture.patch_status(json!({ "abort": true }));
    fixture.settle(at(2));
    fixture.patch_status(json!({ "abort": null }));
    fixture.reconcile(at(3));
    assert_eq!(progressing(&fixture), "RolloutRetry");
    fixture.settle(at(4));
    assert_eq!(fixture.status()["phase"], "Paused", "and then it goes on as before");
}

#[test]
fn pods_that_come_back_one_by_one_are_progress_however_many_there_were_before() {
    let mut fixture = Fixture::canary(10, json!([]));
    fixture.patch_spec(json!({ "progressDeadlineSeconds": 10 }));
    fixture.settle(at(0));
    fixture.patch_spec(json!({ "replicas": 2 }));
    fixture.settle(at(100));
    fixture.patch_spec(json!({ "replicas": 9 }));
    for (second, available) in [(200, 2), (205, 4), (212, 6), (219, 8)] {
        fixture.reconcile(at(second));
        fixture.size(0, 9, available);
        fixture.reconcile(at(second));
        assert_eq!(fixture.status()["phase"], "Progressing", "{available} pods");
    }
}

#[test]
fn after_an_abort_users_go_back_though_the_next_version_cannot_be_made() {
    let steps = json!({ "steps": [{ "setWeight": 50 }, { "pause": {} }] });
    let mut fixture = Fixture::nginx(4, steps);
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(1));
    assert_eq!(fixture.weight(), "50");
    fixture.patch_status(json!({ "abort": true }));
    fixture.set_image("v3");
    fixture.refuse("exceeded quota", at(1_000));
    fixture.settle(at(2));
    assert_eq!(fixture.weight(), "0", "nobody stays with the version that was given up");
}

#[test]
fn after_an_abort_no_service_moves_on_to_a_version_that_cannot_be_made() {
    let steps = json!({ "steps": [{ "setWeight": 50 }, { "pause": {} }] });
    let cases = [
        ("preview", Fixture::blue_green(3, json!({ "autoPromotionEnabled": false }))),
        ("canary", Fixture::nginx(4, steps)),
    ];
    for (service, mut fixture) in cases {
        fixture.settle(at(0));
        fixture.set_image("v2");
        fixture.settle(at(1));
        assert_eq!(fixture.selects(service), 2, "{service}");
        fixture.patch_status(json!({ "abort": true }));
        fixture.set_image("v3");
        fixture.refuse("exceeded quota", at(1_000));
        fixture.settle(at(2));
        assert_ne!(fixture.selects(service), 0, "{service} leads to a version that is there");
        fixture.settle(at(1_001));
        assert_eq!(fixture.selects(service), 3, "{service} once the next one is there");
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
        let mut fixture = Fixture::canary(4, json!([{ "setWeight": 25 }]));
        fixture.settle(at(0));
        fixture.set_image("v2");
        fixture.take_events();
        let name = format!("web-{}", fixture.world().rollout.hash);
        fixture.refuse(&format!("ReplicaSet.apps \"{name}\" is invalid: {said}"), at(10));
        assert_eq!(fixture.reconcile(at(1)), ["status"], "{what}");
        let message = format!("InvalidSpec: The Rollout \"web\" is invalid: {words}");
        let status = fixture.status();
        assert_eq!((&status["phase"], &status["message"]), (&json!("Degraded"), &json!(message)));
        assert_eq!(status["observedGeneration"], "2", "{what}");
        assert_eq!(fixture.reconcile(at(2)), [""; 0], "{what}: said once");
        assert_eq!(fixture.take_events(), [""; 0], "{what}");
        fixture.settle(at(11));
        assert_eq!(fixture.status()["phase"], "Healthy", "{what}: it is tried again");
    }
}

#[test]
fn while_the_new_version_cannot_be_made_the_rest_of_the_spec_is_observed() {
    let mut fixture = Fixture::canary(4, json!([{ "setWeight": 25 }]));
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.refuse("exceeded quota", at(1_000));
    fixture.reconcile(at(1));
    assert_eq!(progressing(&fixture), "ReplicaSetCreateError");
    fixture.take_events();
    fixture.patch_spec(json!({ "strategy": { "canary": { "steps": [{ "setWeight": 101 }] } } }));
    fixture.reconcile(at(2));
    assert_eq!(fixture.status()["phase"], "Degraded", "the steps are wrong");
    fixture.patch_spec(json!({ "strategy": { "canary": { "steps": [{ "setWeight": 50 }] } } }));
    fixture.reconcile(at(3));
    let status = fixture.status();
    assert_eq!(
        (&status["phase"], &status["observedGeneration"]),
        (&json!("Progressing"), &json!("4"))
    );
    assert_eq!(fixture.take_events(), [""; 0], "the refusal is told once");
}

#[test]
fn sizes_that_nobody_can_have_stop_nothing_else() {
    for spec in [
        json!({ "replicas": i32::MAX }),
        json!({ "strategy": { "canary": { "maxSurge": i32::MAX } } }),
    ] {
        let mut fixture = Fixture::canary(4, json!([{ "setWeight": 50 }, { "pause": {} }]));
        fixture.settle(at(0));
        fixture.patch_spec(spec.clone());
        fixture.set_image("v2");
        for second in 1..9 {
            fixture.reconcile(at(second));
        }
        assert!(fixture.sizes()[0] >= 4, "{spec}: {:?}", fixture.sizes());
    }
}

#[test]
fn a_revision_that_comes_back_keeps_away_from_the_stable_pods_too() {
    let apart = json!({ "antiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {} } });
    let mut fixture = Fixture::canary(2, json!([{ "setWeight": 50 }, { "pause": {} }]));
    fixture.patch_spec(json!({ "strategy": { "canary": apart } }));
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(1));
    fixture.promote();
    fixture.settle(at(2));
    fixture.set_image("v1");
    fixture.settle(at(3));
    let (stable, affinity) = (fixture.hash(1), fixture.set(0)["spec"]["template"]["spec"].clone());
    assert!(affinity["affinity"].to_string().contains(&stable), "{affinity}");
}

#[test]
fn a_halted_first_deploy_that_is_scaled_to_none_settles_and_is_not_healthy() {
    let steps = json!([{ "setWeight": 25 }, { "pause": { "duration": "5m" } }]);
    let deploys = [
        ("a canary", Fixture::canary(4, steps.clone()), "RolloutPaused"),
        ("a routed canary", Fixture::nginx(4, json!({ "steps": steps })), "RolloutPaused"),
        ("a blue-green rollout", Fixture::blue_green(4, json!({})), "ReplicaSetUpdated"),
    ];
    let indexes = [Value::Null, json!(1), json!(2)];
    for (whose, deploy, reason) in deploys {
        for index in &indexes {
            let mut fixture = deploy.clone();
            fixture.reconcile(at(0));
            fixture.lose_status();
            fixture.patch_status(json!({ "currentStepIndex": index }));
            fixture.patch_spec(json!({ "replicas": 0, "paused": true }));
            fixture.rest(at(1));
            let status = fixture.status();
            assert_eq!(status["phase"], "Paused", "{whose}, step {index}");
            let conditions = status["conditions"].as_array().unwrap();
            let is_healthy = conditions.iter().any(|one| one["type"] == "Healthy");
            assert!(!is_healthy, "{whose}, step {index}");
            assert_eq!(progressing(&fixture), reason, "{whose}, step {index}");
        }
    }
}
