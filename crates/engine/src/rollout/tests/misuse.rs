//! What people get wrong in the middle of an update: it is said, nothing moves, and it heals.

use serde_json::{Value, json};

use super::at;
use super::fixture::Fixture;

/// What is wrong | whose strategy | what is merged into the spec | what mends it | what is said.
const MISTAKES: &str = r#"
11: no selector | canary | {"selector":null} | {"selector":{"matchLabels":{"app":"web"}}} | spec.selector: Required value: Rollout has missing field '.spec.selector'
11: a selector of nothing | canary | {"selector":{"matchLabels":null}} | {"selector":{"matchLabels":{"app":"web"}}} | spec.selector: Invalid value: {}: empty selector is invalid for deployment
11: a selector that no pod matches | canary | {"selector":{"matchLabels":{"app":"shop"}}} | {"selector":{"matchLabels":{"app":"web"}}} | spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`
17: more than everything | canary | {"strategy":{"canary":{"steps":[{"setWeight":101}]}}} | {"strategy":{"canary":{"steps":STEPS}}} | spec.strategy.steps[0].setWeight: Invalid value: 101: SetWeight needs to be between 0 and 100
17: less than nothing | canary | {"strategy":{"canary":{"steps":[{"setWeight":-1}]}}} | {"strategy":{"canary":{"steps":STEPS}}} | spec.strategy.steps[0].setWeight: Invalid value: -1: SetWeight needs to be between 0 and 100
17: a size of its own without a router | canary | {"strategy":{"canary":{"steps":[{"setCanaryScale":{"replicas":1}}]}}} | {"strategy":{"canary":{"steps":STEPS}}} | spec.strategy.trafficRouting: Required value: SetCanaryScale requires TrafficRouting to be set
17: a pause of no known length | canary | {"strategy":{"canary":{"steps":[{"pause":{"duration":"1z"}}]}}} | {"strategy":{"canary":{"steps":STEPS}}} | spec.strategy.steps[0].pause.duration: Invalid value: -1: Duration needs to be greater than 0
17: a stable side that gives way without a router | canary | {"strategy":{"canary":{"dynamicStableScale":true}}} | {"strategy":{"canary":{"dynamicStableScale":null}}} | spec.strategy.dynamicStableScale: Invalid value: true: Canary dynamicStableScale can only be used with traffic routing
17: a stable side that gives way after a delay | nginx | {"strategy":{"canary":{"dynamicStableScale":true,"scaleDownDelaySeconds":5}}} | {"strategy":{"canary":{"dynamicStableScale":null,"scaleDownDelaySeconds":null}}} | spec.strategy.dynamicStableScale: Invalid value: true: Canary dynamicStableScale cannot be used with scaleDownDelaySeconds
nothing to split | nginx | {"strategy":{"canary":{"trafficRouting":{"maxTrafficWeight":0},"steps":[{"pause":{}}]}}} | {"strategy":{"canary":{"trafficRouting":{"maxTrafficWeight":null},"steps":STEPS}}} | spec.strategy.trafficRouting.maxTrafficWeight: Invalid value: 0: Canary maxTrafficWeight must be greater than 0
less than nothing to split | nginx | {"strategy":{"canary":{"trafficRouting":{"maxTrafficWeight":-5},"steps":[{"pause":{}}]}}} | {"strategy":{"canary":{"trafficRouting":{"maxTrafficWeight":null},"steps":STEPS}}} | spec.strategy.trafficRouting.maxTrafficWeight: Invalid value: -5: Canary maxTrafficWeight must be greater than 0
nginx without an Ingress beside ALB | nginx | {"strategy":{"canary":{"trafficRouting":{"nginx":{"stableIngress":null},"alb":{"ingress":"web","servicePort":80}}}}} | {"strategy":{"canary":{"trafficRouting":{"nginx":{"stableIngress":"web"},"alb":null}}}} | spec.strategy.canary.trafficRouting.nginx: Internal error: Either StableIngress or StableIngresses must be configured. Neither are configured.
what is missing before what is wrong | nginx | {"strategy":{"canary":{"stableService":"foreign","canaryService":"gone"}}} | {"strategy":{"canary":{"stableService":"stable","canaryService":"canary"}}} | spec.strategy.canary.canaryService: Invalid value: "gone": service "gone" not found
17: both strategies | canary | {"strategy":{"blueGreen":{"activeService":"active"}}} | {"strategy":{"blueGreen":null}} | spec.strategy.strategy: Invalid value: "blueGreen: true canary: true": Multiple Strategies can not be listed
no strategy | blueGreen | {"strategy":{"blueGreen":null}} | {"strategy":{"blueGreen":{"activeService":"active","previewService":"preview","autoPromotionEnabled":false}}} | spec.strategy.strategy: Required value: Rollout has missing field '.spec.strategy.canary or .spec.strategy.blueGreen'
14: one Service in both parts | blueGreen | {"strategy":{"blueGreen":{"previewService":"active"}}} | {"strategy":{"blueGreen":{"previewService":"preview"}}} | spec.strategy.activeService: Invalid value: "active": This rollout uses the same service for the active and preview services, but two different services are required.
14: one Service in both parts of a canary | nginx | {"strategy":{"canary":{"canaryService":"stable"}}} | {"strategy":{"canary":{"canaryService":"canary"}}} | spec.strategy.stableService: Invalid value: "stable": This rollout uses the same service for the stable and canary services, but two different services are required."#;

const STEPS: &str = r#"[{"setWeight":20},{"pause":{}}]"#;

/// Five pods in mid-update, paused.
fn updating(whose: &str) -> Fixture {
    let steps = json!({ "steps": serde_json::from_str::<Value>(STEPS).unwrap() });
    let mut fixture = match whose {
        "canary" => Fixture::canary(5, steps["steps"].clone()),
        "nginx" => Fixture::nginx(5, steps).with_services(&["foreign"]),
        _ => Fixture::blue_green(5, json!({ "autoPromotionEnabled": false })),
    };
    if whose == "nginx" {
        fixture.patch_service("foreign", json!({ "spec": { "selector": { "app": "shop" } } }));
    }
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(10));
    assert_eq!(fixture.status()["phase"], "Paused", "{whose}");
    fixture
}

/// What users are served by: sizes, and what each Service selects.
fn serving(fixture: &Fixture, whose: &str) -> (Vec<i64>, Vec<usize>) {
    let services: &[&str] = match whose {
        "canary" => &[],
        "nginx" => &["stable", "canary"],
        _ => &["active", "preview"],
    };
    (fixture.sizes(), services.iter().map(|name| fixture.selects(name)).collect())
}

#[test]
fn a_mistake_in_mid_update_is_said_and_moves_nothing_until_it_is_mended() {
    for row in MISTAKES.replace("STEPS", STEPS).trim().lines() {
        let cells: Vec<&str> = row.split(" | ").collect();
        let [what, whose, mistake, mended, words] = cells[..] else { panic!("five cells: {row}") };
        let mut fixture = updating(whose);
        let (before, status) = (serving(&fixture, whose), fixture.status());
        fixture.patch_spec(serde_json::from_str(mistake).unwrap());
        assert_eq!(fixture.reconcile(at(20)), ["status"], "{what}");
        let message = format!("InvalidSpec: The Rollout \"web\" is invalid: {words}");
        assert_eq!(fixture.status()["message"], message, "{what}");
        assert_eq!(fixture.status()["phase"], "Degraded", "{what}");
        assert_eq!(fixture.status()["currentStepIndex"], status["currentStepIndex"], "{what}");
        assert_eq!(serving(&fixture, whose), before, "{what}: users notice nothing");
        assert_eq!(fixture.reconcile(at(21)), [""; 0], "{what}: said once");
        fixture.patch_spec(serde_json::from_str(mended).unwrap());
        fixture.settle(at(30));
        assert_eq!(fixture.status()["phase"], "Paused", "{what}: {}", fixture.status()["message"]);
        assert_eq!(serving(&fixture, whose), before, "{what}: as before");
    }
}

#[test]
fn another_mistake_is_said_in_place_of_the_first() {
    let mut fixture = updating("canary");
    fixture.patch_spec(json!({ "minReadySeconds": -1 }));
    fixture.reconcile(at(20));
    fixture.patch_spec(json!({ "minReadySeconds": 0, "selector": null }));
    fixture.reconcile(at(30));
    let known = fixture.condition("InvalidSpec");
    let words = "The Rollout \"web\" is invalid: spec.selector: Required value: \
                 Rollout has missing field '.spec.selector'";
    assert_eq!(known["message"], words, "11");
    assert_eq!(known["lastTransitionTime"], json!(at(20)), "it is invalid all the while");
    assert_eq!(known["lastUpdateTime"], json!(at(30)));
}

#[test]
fn an_index_beyond_the_steps_counts_as_their_end() {
    let mut fixture = updating("canary");
    fixture.patch_status(json!({ "currentStepIndex": 77 }));
    fixture.settle(at(20));
    let status = fixture.status();
    assert_eq!((&status["currentStepIndex"], &status["phase"]), (&json!(2), &json!("Healthy")));
    assert_eq!(status["stableRS"], status["currentPodHash"]);
}

/// Every Service a strategy can name, by its field.
fn named(field: &str) -> Fixture {
    let services = |names: Value| json!({ "strategy": { "canary": names } });
    let mut fixture = match field {
        "activeService" | "previewService" => Fixture::blue_green(2, json!({})),
        _ => Fixture::canary(2, json!([])).with_services(&["stable", "canary", "ping", "pong"]),
    };
    match field {
        "stableService" | "canaryService" => {
            fixture.patch_spec(services(
                json!({ "stableService": "stable", "canaryService": "canary" }),
            ));
        }
        "pingPong.pingService" | "pingPong.pongService" => {
            let pair = json!({ "pingService": "ping", "pongService": "pong" });
            fixture.patch_spec(services(json!({ "pingPong": pair })));
        }
        _ => {}
    }
    fixture
}

#[test]
fn a_service_that_is_missing_not_ours_or_of_other_pods_is_named_and_heals() {
    type Deed = fn(&mut Fixture, &str);
    let deeds: [(Deed, &str); 3] = [
        (|fixture, name| fixture.lose_service(name), "14: service \"NAME\" not found"),
        (
            |fixture, name| {
                let owner = json!({ "argo-rollouts.argoproj.io/managed-by-rollouts": "other" });
                fixture.patch_service(name, json!({ "metadata": { "annotations": owner } }));
            },
            "15: Service \"NAME\" is managed by another Rollout",
        ),
        (
            |fixture, name| {
                fixture.patch_service(name, json!({ "spec": { "selector": { "tier": "x" } } }));
            },
            "16: Service \"NAME\" has unmatch label \"tier\" in rollout",
        ),
    ];
    let fields = [
        ("blueGreen", "activeService", "active"),
        ("blueGreen", "previewService", "preview"),
        ("canary", "stableService", "stable"),
        ("canary", "canaryService", "canary"),
        ("canary", "pingPong.pingService", "ping"),
        ("canary", "pingPong.pongService", "pong"),
    ];
    for (strategy, field, name) in fields {
        for (deed, words) in deeds {
            let mut fixture = named(field);
            fixture.settle(at(0));
            assert_eq!(
                fixture.status()["phase"],
                "Healthy",
                "{field}: {}",
                fixture.status()["message"]
            );
            let mut broken = fixture.clone();
            deed(&mut broken, name);
            broken.reconcile(at(1));
            let words = words.replace("NAME", name);
            let (row, words) = words.split_once(": ").unwrap();
            let expected = format!(
                "InvalidSpec: The Rollout \"web\" is invalid: \
                 spec.strategy.{strategy}.{field}: Invalid value: \"{name}\": {words}"
            );
            assert_eq!(broken.status()["message"], expected, "{row}");
            assert_eq!(broken.sizes(), [2], "{row}: {field}");
            broken.lose_service(name);
            let mut mended = broken.with_services(&[name]);
            mended.settle(at(2));
            assert_eq!(mended.status()["phase"], "Healthy", "{row}: {field}");
        }
    }
}

/// What happens in mid-update, and the phase and sizes in the end.
#[test]
fn another_strategy_in_mid_update_goes_on_with_the_same_pods() {
    let canary = json!({ "steps": [{ "setWeight": 40 }, { "pause": {} }] });
    let mut fixture = updating("blueGreen");
    fixture.patch_spec(json!({ "strategy": { "blueGreen": null, "canary": canary } }));
    fixture.settle(at(20));
    assert_eq!(fixture.sizes(), [3, 2], "the canary's first step, with the same ReplicaSets");
    assert_eq!(fixture.status()["phase"], "Paused");
    fixture.promote();
    fixture.settle(at(30));
    assert_eq!((fixture.sizes(), &fixture.status()["phase"]), (vec![0, 5], &json!("Healthy")));

    let mut fixture = updating("canary").with_services(&["active"]);
    let whole = json!({ "activeService": "active" });
    fixture.patch_spec(json!({ "strategy": { "canary": null, "blueGreen": whole } }));
    fixture.reconcile(at(20));
    let least: i64 = fixture.sizes().iter().sum();
    assert!(least >= 5, "somebody serves: {:?}", fixture.sizes());
    fixture.settle(at(21));
    assert_eq!((fixture.selects("active"), &fixture.status()["phase"]), (2, &json!("Healthy")));
    fixture.settle(at(99));
    assert_eq!(fixture.sizes(), [0, 5]);
}

#[test]
fn a_rollout_of_no_pods_comes_back_with_the_version_it_had() {
    for whose in ["canary", "nginx", "blueGreen"] {
        let mut fixture = updating(whose);
        let before = serving(&fixture, whose);
        fixture.patch_spec(json!({ "replicas": 0 }));
        fixture.settle(at(20));
        assert!(fixture.sizes().iter().all(|size| *size == 0), "{whose}: {:?}", fixture.sizes());
        fixture.patch_spec(json!({ "replicas": 5 }));
        fixture.settle(at(30));
        assert_eq!(serving(&fixture, whose), before, "{whose}");
        assert_eq!(fixture.status()["phase"], "Paused", "{whose}: {}", fixture.status()["message"]);
    }
}

/// What else is wrong, whose strategy, what is merged into the spec, and what is said.
#[test]
fn what_routers_and_experiments_cannot_use_is_named() {
    let router = |alb: Value| json!({ "strategy": { "canary": { "trafficRouting": { "nginx": null, "alb": alb } } } });
    let step = |templates: Value| {
        let experiment = json!({ "experiment": { "templates": templates } });
        json!({ "strategy": { "canary": { "steps": [experiment] } } })
    };
    let cases = [
        (
            "nginx",
            router(json!({ "servicePort": 80, "ingress": "web", "ingresses": ["web"] })),
            "spec.strategy.canary.trafficRouting.alb: Internal error: \
             Either Ingress or Ingresses must be configured. Both are configured.",
        ),
        (
            "nginx",
            router(json!({ "servicePort": 80 })),
            "spec.strategy.canary.trafficRouting.alb: Internal error: \
             Either Ingress or Ingresses must be configured. Neither are configured.",
        ),
        (
            "canary",
            step(json!([{ "name": "a", "specRef": "newest" }])),
            "spec.strategy.canary.steps[0].experiment.templates: Invalid value: \
             \"newest\": Invalid template step SpecRef: must be canary or stable",
        ),
    ];
    for (whose, patch, words) in cases {
        let mut fixture = updating(whose);
        fixture.patch_spec(patch);
        fixture.settle(at(20));
        let message = format!("InvalidSpec: The Rollout \"web\" is invalid: {words}");
        assert_eq!(fixture.status()["message"], message);
    }
}

#[test]
fn a_stable_replica_set_that_somebody_deletes_leaves_the_traffic_to_the_new_one_and_skips_no_pause()
{
    for whose in ["canary", "nginx", "blueGreen"] {
        let mut fixture = updating(whose);
        fixture.lose_set(0);
        fixture.settle(at(20));
        fixture.settle(at(99));
        assert_eq!(fixture.sizes(), [5], "{whose}: nobody else can serve");
        let served: Vec<usize> = serving(&fixture, whose).1;
        assert!(served.iter().all(|revision| *revision == 1), "{whose}: {served:?}");
        let pauses = if whose == "blueGreen" { "Healthy" } else { "Paused" };
        assert_eq!(fixture.status()["phase"], pauses, "{whose}");
        fixture.promote();
        fixture.settle(at(120));
        let served: Vec<usize> = serving(&fixture, whose).1;
        assert!(served.iter().all(|revision| *revision == 1), "{whose}: {served:?}");
        assert_eq!(fixture.status()["phase"], "Healthy", "{whose}");
    }
}
