//! Canaries whose traffic a router splits, from deed to deed: sizes, weights and Services at rest.

use serde_json::{Value, json};

use super::at;
use super::rows::tell;
use super::story::Story;

/// As `tell` reads them, of four replicas: nothing, a quarter, half the traffic, three, by traffic.
const OWN_SIZES: &str = r#"
0    | image v1 | 4   | 10 | Healthy                | deployed
10   | image v2 | 4 0 | 0  | Paused CanaryPauseStep | 60: no weight, no pods
20   | promote  | 4 1 | 2  | Paused CanaryPauseStep | 60: a quarter of its own
30   | promote  | 4 1 | 4  | Paused CanaryPauseStep | 60: half the traffic does not change it
40   | promote  | 4 3 | 6  | Paused CanaryPauseStep | 60: three by number
50   | promote  | 4 2 | 8  | Paused CanaryPauseStep | 60: two by the traffic
60   | promote  | 4 4 | 10 | Healthy                | all
200  |          | 0 4 | 10 | Healthy                | 61: the old one stays for its delay"#;

#[test]
fn a_canary_has_the_size_its_steps_give_it() {
    let pause = json!({ "pause": {} });
    let scale = |scale: Value| json!({ "setCanaryScale": scale });
    let steps = json!([
        pause, scale(json!({ "weight": 25 })), pause, { "setWeight": 50 }, pause,
        scale(json!({ "replicas": 3 })), pause, scale(json!({ "matchTrafficWeight": true })), pause,
        { "setWeight": 100 },
    ]);
    tell(&mut Story::nginx(4, json!({ "steps": steps })), OWN_SIZES);
}

#[test]
fn at_the_end_all_traffic_goes_to_the_new_revision_before_it_is_stable() {
    let mut story = Story::nginx(2, json!({ "steps": [{ "setWeight": 50 }, { "pause": {} }] }));
    story.settle(at(0));
    story.set_image("v2");
    story.settle(at(10));
    story.take_events();
    story.promote();
    story.reconcile(at(20));
    story.reconcile(at(21));
    story.pods_follow();
    let written = [story.reconcile(at(22)), story.reconcile(at(23))];
    assert_eq!(
        written,
        [vec!["weight 100", "status"], vec!["switch stable to 2", "weight 0", "status"],]
            .map(|writes| writes.into_iter().map(str::to_owned).collect::<Vec<_>>())
    );
    assert_eq!(story.status()["canary"]["weights"]["stable"]["podTemplateHash"], story.hash(1));
    let events = story.take_events();
    let told = |reason: &str| events.iter().position(|known| known == reason).unwrap();
    assert!(told("TrafficWeightUpdated") < told("RolloutCompleted"), "{events:?}");
    assert!(told("RolloutCompleted") < told("SwitchService"), "{events:?}");
}

/// As `tell` reads them, of four replicas with a stable revision that gives way.
const DYNAMIC: &str = r"
0    | image v1 | 4   | 4 | Healthy                | deployed
10   | image v2 | 3 1 | 1 | Paused CanaryPauseStep | 68: a quarter
20   | promote  | 1 3 | 3 | Paused CanaryPauseStep | 68: three quarters
30   | abort    | 4 0 | 0 | Degraded RolloutAborted: Rollout aborted update to revision 2 | 68: and back";

#[test]
fn a_stable_revision_that_gave_way_comes_back_before_the_canary_goes() {
    let steps = json!([{ "setWeight": 25 }, { "pause": {} }, { "setWeight": 75 }, { "pause": {} }]);
    let mut story = Story::nginx(4, json!({ "dynamicStableScale": true, "steps": steps }));
    let rows: Vec<&str> = DYNAMIC.trim().lines().collect();
    tell(&mut story, &rows[..3].join("\n"));
    assert_eq!(story.weight(), "75");
    let mut given_up = story.clone();
    tell(&mut story, rows[3]);
    assert_eq!((story.weight(), story.selects("canary")), ("0", 1));

    given_up.patch_status(json!({ "abort": true }));
    given_up.reconcile(at(30));
    assert_eq!(given_up.sizes(), [4, 3], "68: stable is made whole first");
    for (available, weight, service) in [(2, "50", 2), (3, "25", 2), (4, "0", 1)] {
        given_up.size(0, 4, available);
        given_up.reconcile(at(31));
        let seen = (given_up.weight(), given_up.selects("canary"));
        assert_eq!(seen, (weight, service), "68: {available} of four are back");
    }
}

#[test]
fn fewer_replicas_than_pods_per_replica_set_are_enough() {
    let strategy =
        json!({ "minPodsPerReplicaSet": 2, "steps": [{ "setWeight": 50 }, { "pause": {} }] });
    let mut story = Story::nginx(1, strategy);
    story.settle(at(0));
    story.set_image("v2");
    story.settle(at(10));
    assert_eq!((story.sizes(), story.weight()), (vec![1, 1], "50"), "76");
    assert_eq!(story.reconcile(at(11)), [""; 0], "76: settled");
}

#[test]
fn a_canary_without_an_end_of_its_delay_stays_after_an_abort() {
    let strategy = json!({ "abortScaleDownDelaySeconds": 0,
        "steps": [{ "setWeight": 40 }, { "pause": {} }] });
    let mut story = Story::nginx(5, strategy);
    story.settle(at(0));
    story.set_image("v2");
    story.settle(at(10));
    story.patch_status(json!({ "abort": true }));
    story.settle(at(20));
    story.settle(at(9_999));
    assert_eq!((story.sizes(), story.weight(), story.selects("canary")), (vec![5, 2], "0", 1));
}

#[test]
fn an_abort_leaves_the_overtaken_version_what_stable_cannot_carry() {
    let strategy =
        json!({ "dynamicStableScale": true, "steps": [{ "setWeight": 50 }, { "pause": {} }] });
    let mut story = Story::nginx(4, strategy);
    story.settle(at(0));
    story.set_image("v2");
    story.settle(at(10));
    assert_eq!((story.sizes(), story.weight(), story.selects("canary")), (vec![2, 2], "50", 2));
    story.set_image("v3");
    story.reconcile(at(20));
    assert_eq!((story.weight(), story.selects("canary")), ("50", 2), "the third has no pods yet");
    story.patch_status(json!({ "abort": true }));
    for (available, weight, service) in [(2, "50", 2), (3, "25", 2), (4, "0", 1)] {
        story.reconcile(at(30));
        story.size(0, 4, available);
        story.reconcile(at(31));
        let seen = (story.weight(), story.selects("canary"));
        assert_eq!(seen, (weight, service), "{available} of four are back");
    }
    story.settle(at(40));
    assert_eq!(story.sizes(), [4, 0, 0]);
}

#[test]
fn without_replicas_no_version_keeps_its_pods() {
    let mut story = Story::nginx(5, json!({ "steps": [{ "setWeight": 40 }, { "pause": {} }] }));
    story.settle(at(0));
    story.set_image("v2");
    story.settle(at(10));
    assert_eq!((story.sizes(), story.selects("canary")), (vec![5, 2], 2));
    story.set_image("v3");
    story.patch_spec(json!({ "replicas": 0 }));
    story.settle(at(20));
    assert_eq!(story.sizes(), [0, 0, 0], "the canary Service led to the second");
    assert_eq!(story.reconcile(at(21)), [""; 0], "settled");
}

#[test]
fn without_a_router_too_the_stable_service_moves_only_onto_enough_pods() {
    let mut story = Story::nginx(5, json!({ "trafficRouting": { "nginx": null } }));
    story.settle(at(0));
    story.set_image("v2");
    story.reconcile(at(10));
    story.size(1, 5, 5);
    story.reconcile(at(11));
    assert_eq!(story.status()["stableRS"], story.hash(1), "promoted");
    story.size(1, 5, 2);
    story.reconcile(at(12));
    assert_eq!(story.selects("stable"), 1, "three have failed since");
    story.set_image("v3");
    story.reconcile(at(12));
    assert_eq!(story.selects("stable"), 1, "nor beside the next version");
    story.size(1, 5, 5);
    story.reconcile(at(13));
    assert_eq!(story.selects("stable"), 2, "all are back");
}

#[test]
fn a_retry_after_an_abort_that_has_not_taken_the_traffic_back_goes_on() {
    let steps = json!([{ "setWeight": 25 }, { "pause": {} }, { "setWeight": 75 }, { "pause": {} }]);
    let mut story = Story::nginx(4, json!({ "dynamicStableScale": true, "steps": steps }));
    story.settle(at(0));
    story.set_image("v2");
    story.settle(at(10));
    story.promote();
    story.settle(at(20));
    assert_eq!((story.sizes(), story.weight()), (vec![1, 3], "75"));
    story.patch_status(json!({ "abort": true }));
    story.reconcile(at(30));
    assert_eq!((story.sizes(), story.weight()), (vec![4, 3], "75"), "stable comes back first");
    story.patch_status(json!({ "abort": false }));
    story.settle(at(40));
    assert_eq!((story.sizes(), story.weight()), (vec![3, 1], "25"));
    assert_eq!(story.status()["phase"], "Paused");
}

#[test]
fn nobody_is_sent_to_a_stable_version_that_has_given_way_to_the_last_pod() {
    let strategy =
        json!({ "dynamicStableScale": true, "steps": [{ "setWeight": 50 }, { "pause": {} }] });
    let mut story = Story::nginx(1, strategy);
    story.settle(at(0));
    story.set_image("v2");
    story.settle(at(10));
    assert_eq!((story.sizes(), story.weight()), (vec![1, 1], "50"));
    story.promote();
    story.reconcile(at(20));
    let key = "nginx.ingress.kubernetes.io/canary-weight";
    let note = json!({ "metadata": { "annotations": { key: "100" } } });
    story.patch_ingress("web-web-canary", note); // A crash came before the promotion was stored.
    story.reconcile(at(21));
    assert_eq!((story.sizes(), story.weight()), (vec![0, 1], "100"), "stable gives way");
    story.reconcile(at(22));
    assert_eq!(story.weight(), "100", "stable has no pod to come back to");
    story.settle(at(23));
    assert_eq!((story.sizes(), story.weight()), (vec![0, 1], "0"));
    assert_eq!(story.status()["phase"], "Healthy");
}
