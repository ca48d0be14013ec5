//! Canaries whose traffic a router splits, from deed to deed: sizes, weights and Services at rest.

use serde_json::{Value, json};

use super::at;
use super::fixture::Fixture;
use super::rows::tell;

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
    tell(&mut Fixture::nginx(4, json!({ "steps": steps })), OWN_SIZES);
}

#[test]
fn a_stable_revision_that_is_wanted_again_and_scaled_at_once_is_never_sized_as_a_canary() {
    let scale = |scale: Value| json!({ "setCanaryScale": scale });
    let steps = [
        scale(json!({ "replicas": 1 })),
        scale(json!({ "weight": 25 })),
        json!({ "setWeight": 25 }),
    ];
    let routers = [json!({ "nginx": { "stableIngress": "web" } }), json!({})];
    for (step, routing) in steps.iter().flat_map(|step| routers.iter().map(move |it| (step, it))) {
        for replicas in [2, 4, 7] {
            let what = format!("{step} {routing} {replicas}");
            let steps = json!({ "steps": [step, { "pause": {} }] });
            let mut fixture = Fixture::routed(4, routing.clone(), steps).with_ingress("stable");
            fixture.settle(at(0));
            fixture.set_image("v2");
            fixture.settle(at(10));
            fixture.set_image("v1");
            fixture.patch_spec(json!({ "replicas": replicas }));
            fixture.reconcile(at(20));
            assert_eq!(fixture.sizes()[0], replicas, "{what}: at once");
            fixture.settle(at(20));
            fixture.settle(at(9_999));
            assert_eq!(
                (fixture.sizes(), &fixture.status()["phase"]),
                (vec![replicas, 0], &json!("Healthy")),
                "{what}"
            );
        }
    }
}

#[test]
fn at_the_end_all_traffic_goes_to_the_new_revision_before_it_is_stable() {
    let mut fixture = Fixture::nginx(2, json!({ "steps": [{ "setWeight": 50 }, { "pause": {} }] }));
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(10));
    fixture.take_events();
    fixture.promote();
    fixture.reconcile(at(20));
    fixture.reconcile(at(21));
    fixture.pods_follow();
    let written = [fixture.reconcile(at(22)), fixture.reconcile(at(23))];
    assert_eq!(
        written,
        [vec!["weight 100", "status"], vec!["switch stable to 2", "weight 0", "status"],]
            .map(|writes| writes.into_iter().map(str::to_owned).collect::<Vec<_>>())
    );
    assert_eq!(fixture.status()["canary"]["weights"]["stable"]["podTemplateHash"], fixture.hash(1));
    let events = fixture.take_events();
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
    let mut fixture = Fixture::nginx(4, json!({ "dynamicStableScale": true, "steps": steps }));
    let rows: Vec<&str> = DYNAMIC.trim().lines().collect();
    tell(&mut fixture, &rows[..3].join("\n"));
    assert_eq!(fixture.weight(), "75");
    let mut given_up = fixture.clone();
    tell(&mut fixture, rows[3]);
    assert_eq!((fixture.weight(), fixture.selects("canary")), ("0", 1));

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
    let mut fixture = Fixture::nginx(1, strategy);
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(10));
    assert_eq!((fixture.sizes(), fixture.weight()), (vec![1, 1], "50"), "76");
    assert_eq!(fixture.reconcile(at(11)), [""; 0], "76: settled");
}

#[test]
fn a_canary_without_an_end_of_its_delay_stays_after_an_abort() {
    let strategy = json!({ "abortScaleDownDelaySeconds": 0,
        "steps": [{ "setWeight": 40 }, { "pause": {} }] });
    let mut fixture = Fixture::nginx(5, strategy);
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(10));
    fixture.patch_status(json!({ "abort": true }));
    fixture.settle(at(20));
    fixture.settle(at(9_999));
    assert_eq!(
        (fixture.sizes(), fixture.weight(), fixture.selects("canary")),
        (vec![5, 2], "0", 1)
    );
}

#[test]
fn an_abort_leaves_the_overtaken_version_what_stable_cannot_carry() {
    let strategy =
        json!({ "dynamicStableScale": true, "steps": [{ "setWeight": 50 }, { "pause": {} }] });
    let mut fixture = Fixture::nginx(4, strategy);
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(10));
    assert_eq!(
        (fixture.sizes(), fixture.weight(), fixture.selects("canary")),
        (vec![2, 2], "50", 2)
    );
    fixture.set_image("v3");
    fixture.reconcile(at(20));
    assert_eq!(
        (fixture.weight(), fixture.selects("canary")),
        ("50", 2),
        "the third has no pods yet"
    );
    fixture.patch_status(json!({ "abort": true }));
    for (available, weight, service) in [(2, "50", 2), (3, "25", 2), (4, "0", 1)] {
        fixture.reconcile(at(30));
        fixture.size(0, 4, available);
        fixture.reconcile(at(31));
        let seen = (fixture.weight(), fixture.selects("canary"));
        assert_eq!(seen, (weight, service), "{available} of four are back");
    }
    fixture.settle(at(40));
    assert_eq!(fixture.sizes(), [4, 0, 0]);
}

#[test]
fn without_replicas_no_version_keeps_its_pods() {
    let mut fixture = Fixture::nginx(5, json!({ "steps": [{ "setWeight": 40 }, { "pause": {} }] }));
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(10));
    assert_eq!((fixture.sizes(), fixture.selects("canary")), (vec![5, 2], 2));
    fixture.set_image("v3");
    fixture.patch_spec(json!({ "replicas": 0 }));
    fixture.settle(at(20));
    assert_eq!(fixture.sizes(), [0, 0, 0], "the canary Service led to the second");
    assert_eq!(fixture.reconcile(at(21)), [""; 0], "settled");
}

#[test]
fn without_a_router_too_the_stable_service_moves_only_onto_enough_pods() {
    let mut fixture = Fixture::nginx(5, json!({ "trafficRouting": { "nginx": null } }));
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.reconcile(at(10));
    fixture.size(1, 5, 5);
    fixture.reconcile(at(11));
    assert_eq!(fixture.status()["stableRS"], fixture.hash(1), "promoted");
    fixture.size(1, 5, 2);
    fixture.reconcile(at(12));
    assert_eq!(fixture.selects("stable"), 1, "three have failed since");
    fixture.set_image("v3");
    fixture.reconcile(at(12));
    assert_eq!(fixture.selects("stable"), 1, "nor beside the next version");
    fixture.size(1, 5, 5);
    fixture.reconcile(at(13));
    assert_eq!(fixture.selects("stable"), 2, "all are back");
}

#[test]
fn a_retry_after_an_abort_that_has_not_taken_the_traffic_back_goes_on() {
    let steps = json!([{ "setWeight": 25 }, { "pause": {} }, { "setWeight": 75 }, { "pause": {} }]);
    let mut fixture = Fixture::nginx(4, json!({ "dynamicStableScale": true, "steps": steps }));
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(10));
    fixture.promote();
    fixture.settle(at(20));
    assert_eq!((fixture.sizes(), fixture.weight()), (vec![1, 3], "75"));
    fixture.patch_status(json!({ "abort": true }));
    fixture.reconcile(at(30));
    assert_eq!((fixture.sizes(), fixture.weight()), (vec![4, 3], "75"), "stable comes back first");
    fixture.patch_status(json!({ "abort": false }));
    fixture.settle(at(40));
    assert_eq!((fixture.sizes(), fixture.weight()), (vec![3, 1], "25"));
    assert_eq!(fixture.status()["phase"], "Paused");
}

#[test]
fn nobody_is_sent_to_a_stable_version_that_has_given_way_to_the_last_pod() {
    let strategy =
        json!({ "dynamicStableScale": true, "steps": [{ "setWeight": 50 }, { "pause": {} }] });
    let mut fixture = Fixture::nginx(1, strategy);
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(10));
    assert_eq!((fixture.sizes(), fixture.weight()), (vec![1, 1], "50"));
    fixture.promote();
    fixture.reconcile(at(20));
    let key = "nginx.ingress.kubernetes.io/canary-weight";
    let note = json!({ "metadata": { "annotations": { key: "100" } } });
    fixture.patch_ingress("web-web-canary", note); // A crash came before the promotion was stored.
    fixture.reconcile(at(21));
    assert_eq!((fixture.sizes(), fixture.weight()), (vec![0, 1], "100"), "stable gives way");
    fixture.reconcile(at(22));
    assert_eq!(fixture.weight(), "100", "stable has no pod to come back to");
    fixture.settle(at(23));
    assert_eq!((fixture.sizes(), fixture.weight()), (vec![0, 1], "0"));
    assert_eq!(fixture.status()["phase"], "Healthy");
}
