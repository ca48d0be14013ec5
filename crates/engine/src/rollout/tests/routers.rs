//! Rollouts and their routers: header routes, ping-pong, ways back, and routers that cannot.

use serde_json::{Value, json};

use super::at;
use super::fixture::Fixture;

/// A canary whose traffic an ALB splits, with a root Service.
fn alb(replicas: i32, strategy: Value) -> Fixture {
    let routing = json!({
        "nginx": null,
        "alb": { "ingress": "web", "rootService": "root", "servicePort": 80 },
        "managedRoutes": [{ "name": "by-header" }],
    });
    let mut fixture = Fixture::canary(replicas, json!([]));
    let mut whole = json!({ "canary": { "trafficRouting": routing } });
    whole["canary"].as_object_mut().unwrap().extend(strategy.as_object().unwrap().clone());
    fixture.patch_spec(json!({ "strategy": whole }));
    fixture.with_ingress("root")
}

pub(super) fn with_fixed_services(steps: Value) -> Fixture {
    let fixed = json!({ "stableService": "stable", "canaryService": "canary", "steps": steps });
    alb(4, fixed).with_services(&["stable", "canary"])
}

/// Weights by Service, as the Ingress has them: `ping 25, pong 75`.
fn split(fixture: &Fixture) -> String {
    let notes = &fixture.ingress("web")["metadata"]["annotations"];
    let action = notes["alb.ingress.kubernetes.io/actions.root"].as_str().unwrap();
    let action: Value = serde_json::from_str(action).unwrap();
    let groups = action["ForwardConfig"]["TargetGroups"].as_array().unwrap();
    let part =
        |group: &Value| format!("{} {}", group["ServiceName"].as_str().unwrap(), group["Weight"]);
    groups.iter().map(part).collect::<Vec<_>>().join(", ")
}

fn has_route(fixture: &Fixture) -> bool {
    let ingress = fixture.ingress("web");
    let notes = &ingress["metadata"]["annotations"];
    let action = !notes["alb.ingress.kubernetes.io/actions.by-header"].is_null();
    let first = &ingress["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]["name"];
    assert_eq!(action, *first == "by-header", "annotation and path come and go together");
    action
}

#[test]
fn a_header_route_before_the_first_pod_comes_with_it() {
    let header = json!([{ "headerName": "x-canary", "headerValue": { "exact": "always" } }]);
    let route = json!({ "setHeaderRoute": { "name": "by-header", "match": header } });
    let mut fixture =
        with_fixed_services(json!([route, { "pause": {} }, { "setWeight": 25 }, { "pause": {} }]));
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(1));
    assert_eq!(fixture.status()["currentStepIndex"], 1, "there is nobody to be led to yet");
    assert!(!has_route(&fixture));
    fixture.promote();
    fixture.settle(at(2));
    assert_eq!(fixture.status()["currentStepIndex"], 3);
    assert!(has_route(&fixture));
}

#[test]
fn a_header_route_is_there_from_its_step_to_the_end() {
    let header = json!([{ "headerName": "x-canary", "headerValue": { "exact": "always" } }]);
    let steps = json!([
        { "setWeight": 25 }, { "pause": {} },
        { "setHeaderRoute": { "name": "by-header", "match": header } }, { "pause": {} },
        { "setWeight": 50 }, { "pause": {} },
    ]);
    let mut fixture = with_fixed_services(steps);
    fixture.settle(at(0));
    assert!(!has_route(&fixture), "not for the first revision");
    fixture.set_image("v2");
    fixture.settle(at(1));
    assert!(!has_route(&fixture), "not before its step");
    fixture.promote();
    fixture.settle(at(2));
    assert_eq!(
        (fixture.status()["currentStepIndex"].as_i64(), has_route(&fixture)),
        (Some(3), true)
    );

    fixture.size(1, 1, 0);
    fixture.reconcile(at(3));
    assert!(!has_route(&fixture), "not to a version without pods");
    fixture.settle(at(4));
    assert!(has_route(&fixture), "back with them");

    let mut given_up = fixture.clone();
    given_up.patch_status(json!({ "abort": true }));
    given_up.settle(at(5));
    assert!(!has_route(&given_up), "not after an abort");
    fixture.promote();
    fixture.settle(at(6));
    assert!(has_route(&fixture), "beside a later weight");
    fixture.patch_status(json!({ "promoteFull": true }));
    fixture.settle(at(7));
    assert!(!has_route(&fixture), "not after the end");
}

#[test]
fn a_header_route_waits_for_its_router() {
    let header = json!([{ "headerName": "x-canary", "headerValue": { "exact": "always" } }]);
    let route = json!({ "setHeaderRoute": { "name": "by-header", "match": header } });
    let steps = json!([{ "setWeight": 25 }, { "pause": {} }, route, { "pause": {} }]);
    let mut fixture = with_fixed_services(steps);
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(1));
    fixture.size(0, 4, 1);
    fixture.promote();
    fixture.reconcile(at(2));
    fixture.reconcile(at(3));
    assert_eq!(fixture.status()["currentStepIndex"], 2, "stable cannot carry the rest");
    assert!(!has_route(&fixture));
    fixture.settle(at(4));
    assert_eq!(fixture.status()["currentStepIndex"], 3, "now it can");
    assert!(has_route(&fixture));
}

#[test]
fn without_replicas_an_update_does_not_wait_for_a_header_route() {
    let header = json!([{ "headerName": "x-canary", "headerValue": { "exact": "always" } }]);
    let route = json!({ "setHeaderRoute": { "name": "by-header", "match": header } });
    let mut fixture = with_fixed_services(json!([{ "setWeight": 25 }, route, { "pause": {} }]));
    fixture.settle(at(0));
    fixture.patch_spec(json!({ "replicas": 0 }));
    fixture.settle(at(1));
    fixture.set_image("v2");
    fixture.settle(at(2));
    assert_eq!((fixture.status()["phase"].as_str(), has_route(&fixture)), (Some("Paused"), false));
    fixture.patch_spec(json!({ "replicas": 4 }));
    fixture.settle(at(3));
    assert!(has_route(&fixture), "it is there with the pods");
}

#[test]
fn ping_and_pong_take_turns() {
    let pair = json!({ "pingService": "ping", "pongService": "pong" });
    let steps = json!([{ "setWeight": 25 }, { "pause": {} }]);
    let mut fixture = alb(4, json!({ "pingPong": pair, "steps": steps }));
    fixture = fixture.with_services(&["ping", "pong"]);
    fixture.settle(at(0));
    assert_eq!((fixture.selects("ping"), fixture.selects("pong")), (1, 0), "the first deploy");
    assert_eq!(split(&fixture), "pong 0, ping 100");
    let side = |fixture: &Fixture| fixture.status()["canary"]["stablePingPong"].clone();
    assert_eq!(side(&fixture), "ping");

    fixture.set_image("v2");
    let written = fixture.reconcile(at(1)).join(", ");
    assert_eq!(written, "create 2 size 1, revision 2, switch pong to 2, status", "pods or not");
    fixture.settle(at(2));
    assert_eq!(split(&fixture), "pong 25, ping 75");
    fixture.promote();
    fixture.settle(at(3));
    assert_eq!((split(&fixture).as_str(), side(&fixture)), ("ping 0, pong 100", json!("pong")));
    assert_eq!(
        (fixture.selects("ping"), fixture.selects("pong")),
        (1, 2),
        "no Service was switched"
    );

    fixture.set_image("v3");
    fixture.settle(at(4));
    assert_eq!((fixture.selects("ping"), split(&fixture).as_str()), (3, "ping 25, pong 75"));
    fixture.set_image("v4");
    fixture.reconcile(at(5));
    assert_eq!((fixture.selects("ping"), split(&fixture).as_str()), (3, "ping 0, pong 100"));
    fixture.reconcile(at(6));
    assert_eq!(fixture.selects("ping"), 4, "moved when nobody is sent there");
}

#[test]
fn a_stable_side_whose_replica_set_is_gone_leads_to_the_new_one() {
    let pair = json!({ "pingService": "ping", "pongService": "pong" });
    let steps = json!([{ "setWeight": 25 }, { "pause": {} }]);
    let mut fixture =
        alb(4, json!({ "pingPong": pair, "steps": steps })).with_services(&["ping", "pong"]);
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(1));
    fixture.lose_set(0);
    fixture.settle(at(2));
    assert_eq!((fixture.selects("ping"), fixture.selects("pong")), (1, 1), "there is no other");
    assert_eq!(fixture.status()["phase"], "Paused");
}

#[test]
fn a_ping_pong_service_without_a_revision_gets_the_stable_one() {
    let fixed = json!({ "stableService": "stable", "canaryService": "canary" });
    let mut fixture = alb(4, fixed).with_services(&["stable", "canary", "ping", "pong"]);
    fixture.settle(at(0));
    let pair = json!({ "pingService": "ping", "pongService": "pong" });
    let steps = json!([{ "setWeight": 25 }, { "pause": {} }]);
    let strategy = json!({ "canary": { "pingPong": pair, "steps": steps } });
    fixture.patch_spec(json!({ "strategy": strategy }));
    fixture.settle(at(1));
    fixture.set_image("v2");
    fixture.settle(at(2));
    assert_eq!((fixture.selects("pong"), fixture.selects("ping")), (1, 2));
    assert_eq!(split(&fixture), "ping 25, pong 75");
}

#[test]
fn on_the_way_back_to_a_shrunken_stable_the_traffic_waits_for_its_pods() {
    let strategy =
        json!({ "dynamicStableScale": true, "steps": [{ "setWeight": 75 }, { "pause": {} }] });
    let mut fixture = Fixture::nginx(4, strategy);
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(1));
    assert_eq!((fixture.sizes(), fixture.weight()), (vec![1, 3], "75"));
    fixture.set_image("v1");
    fixture.reconcile(at(2));
    fixture.reconcile(at(3));
    assert_eq!(
        (fixture.sizes(), fixture.weight()),
        (vec![4, 3], "75"),
        "stable is made whole first"
    );
    assert_eq!(fixture.selects("canary"), 2);
    fixture.size(0, 4, 3);
    fixture.reconcile(at(4));
    assert_eq!((fixture.sizes(), fixture.weight()), (vec![4, 3], "75"), "one is missing");
    fixture.settle(at(5));
    assert_eq!((fixture.sizes(), fixture.weight()), (vec![4, 0], "0"));
    assert_eq!((fixture.selects("canary"), fixture.selects("stable")), (1, 1));
    assert_eq!(fixture.status()["phase"], "Healthy");
}

#[test]
fn an_abort_without_replicas_divides_by_nothing() {
    let strategy =
        json!({ "dynamicStableScale": true, "steps": [{ "setWeight": 50 }, { "pause": {} }] });
    let mut fixture = Fixture::nginx(4, strategy);
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(1));
    fixture.patch_spec(json!({ "replicas": 0 }));
    fixture.patch_status(json!({ "abort": true }));
    fixture.settle(at(2));
    assert_eq!((fixture.sizes(), fixture.weight()), (vec![0, 0], "0"));
}

#[test]
fn a_router_that_cannot_is_told_once_and_holds_sizes_and_steps() {
    let strategy = json!({ "steps": [{ "setWeight": 20 }, { "pause": {} }] });
    let mut fixture = Fixture::nginx(5, strategy);
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.reconcile(at(1));
    fixture.take_events();
    let other = json!([{ "kind": "Rollout", "name": "other", "uid": "other", "controller": true }]);
    let owned = |owners: &Value| json!({ "metadata": { "ownerReferences": owners } });
    let ours = fixture.ingress("web-web-canary")["metadata"]["ownerReferences"].clone();
    fixture.patch_ingress("web-web-canary", owned(&other));
    fixture.settle(at(2));
    let held = fixture.condition("Held");
    assert_eq!(held["reason"], "TrafficRoutingError");
    assert_eq!(held["message"], "canary ingress `web-web-canary` controlled by different object");
    let told = fixture.take_events();
    let errors = told.iter().filter(|reason| *reason == "TrafficRoutingError").count();
    assert_eq!((errors, fixture.sizes()), (1, vec![5, 1]));
    assert_eq!(fixture.status()["currentStepIndex"], 0);
    assert!(fixture.why().contains("cannot be split"), "{}", fixture.why());

    fixture.patch_ingress("web-web-canary", owned(&ours));
    fixture.settle(at(3));
    assert_eq!((fixture.weight(), &fixture.status()["currentStepIndex"]), ("20", &json!(1)));
    let conditions = fixture.status()["conditions"].to_string();
    assert!(!conditions.contains("Held"), "{conditions}");
}

#[test]
fn an_ingress_that_is_missing_or_leads_elsewhere_is_an_invalid_spec() {
    const PATH: &str = "spec.strategy.canary.trafficRouting";
    let backend = |name: &str| {
        json!({ "spec": { "rules": [
            { "host": "no-http" },
            { "http": { "paths": [{ "backend": { "resource": { "kind": "Bucket" } } }] } },
            { "http": { "paths": [{ "backend": { "service": { "name": name } } }] } },
        ] } })
    };
    let nginx = |config: Value| json!({ "strategy": { "canary": { "trafficRouting": { "nginx": config } } } });
    let cases = [
        (
            "both",
            nginx(json!({ "stableIngresses": ["web"] })),
            backend("stable"),
            ".nginx: Internal error: Either StableIngress or StableIngresses must be configured. Both are configured.",
        ),
        (
            "none",
            nginx(json!({ "stableIngress": null })),
            backend("stable"),
            ".nginx: Internal error: Either StableIngress or StableIngresses must be configured. Neither are configured.",
        ),
        (
            "missing",
            nginx(json!({ "stableIngress": "x" })),
            backend("stable"),
            r#".nginx.stableIngress: Invalid value: "x": ingress.networking.k8s.io "x" not found"#,
        ),
        (
            "one of several",
            nginx(json!({ "stableIngress": null, "stableIngresses": ["web", "y"] })),
            backend("stable"),
            r#".nginx.stableIngresses: Invalid value: "y": ingress.networking.k8s.io "y" not found"#,
        ),
        (
            "elsewhere",
            json!({}),
            backend("other"),
            r#".nginx.stableIngress: Invalid value: "web": ingress `web` has no rules using service stable backend"#,
        ),
    ];
    for (what, spec, ingress, expected) in cases {
        let mut fixture = Fixture::nginx(5, json!({}));
        fixture.patch_spec(spec);
        fixture.patch_ingress("web", ingress);
        fixture.reconcile(at(0));
        let message = fixture.condition("InvalidSpec")["message"].as_str().unwrap().to_owned();
        let expected = format!("The Rollout \"web\" is invalid: {PATH}{expected}");
        assert_eq!(message, expected, "{what}");
        let mended = json!({ "nginx": { "stableIngress": "web", "stableIngresses": null } });
        fixture.patch_spec(json!({ "strategy": { "canary": { "trafficRouting": mended } } }));
        fixture.patch_ingress("web", backend("stable"));
        fixture.settle(at(1));
        assert_eq!(fixture.status()["phase"], "Healthy", "{what}: mended");
    }
}

/// What happens | sizes at rest | revisions of the stable and the canary Service | step and phase.
const UNROUTED: &str = "
deploy  | 4    | 1 1 | 4 Healthy
image   | 4, 1 | 1 2 | 1 Paused
promote | 4, 3 | 1 2 | 3 Paused
abort   | 4, 3 | 1 1 | 0 Degraded
retry   | 4, 1 | 1 2 | 1 Paused
promote | 4, 3 | 1 2 | 3 Paused
promote | 4, 4 | 2 2 | 4 Healthy";

#[test]
fn without_a_router_pods_follow_the_weights_and_the_status_names_none() {
    let steps = json!([{ "setWeight": 25 }, { "pause": {} }, { "setWeight": 75 }, { "pause": {} }]);
    let mut fixture =
        Fixture::nginx(4, json!({ "trafficRouting": { "nginx": null }, "steps": steps }));
    for (second, row) in UNROUTED.trim().lines().enumerate() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [happens, sizes, services, standing] = cells[..] else { panic!("four cells: {row}") };
        match happens {
            "image" => fixture.set_image("v2"),
            "promote" => fixture.promote(),
            "abort" => fixture.patch_status(json!({ "abort": true })),
            "retry" => fixture.patch_status(json!({ "abort": false })),
            _ => {}
        }
        fixture.settle(at(second as i64));
        let found: Vec<String> = fixture.sizes().iter().map(ToString::to_string).collect();
        assert_eq!(found.join(", "), sizes, "{happens}");
        let found = format!("{} {}", fixture.selects("stable"), fixture.selects("canary"));
        assert_eq!(found, services, "{happens}");
        let status = fixture.status();
        let index = &status["currentStepIndex"];
        let found = format!("{index} {}", status["phase"].as_str().unwrap());
        assert_eq!(found, standing, "{happens}");
        assert_eq!(status["canary"]["weights"], Value::Null, "{happens}");
    }
}

#[test]
fn without_a_router_a_dynamic_stable_follows_the_steps() {
    let steps = json!([{ "setWeight": 75 }, { "pause": {} }]);
    let strategy = json!({ "trafficRouting": { "nginx": null }, "dynamicStableScale": true,
        "steps": steps });
    let mut fixture = Fixture::nginx(4, strategy);
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(1));
    assert_eq!(fixture.sizes(), [1, 3]);
    fixture.patch_status(json!({ "abort": true }));
    fixture.settle(at(2));
    assert_eq!(fixture.sizes(), [4, 0]);
}

#[test]
fn a_router_that_is_taken_away_takes_its_weights_from_the_status() {
    let mut fixture = Fixture::nginx(4, json!({ "steps": [{ "setWeight": 25 }, { "pause": {} }] }));
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(1));
    assert_eq!(fixture.status()["canary"]["weights"]["canary"]["weight"], 25);
    fixture
        .patch_spec(json!({ "strategy": { "canary": { "trafficRouting": { "nginx": null } } } }));
    fixture.settle(at(2));
    assert_eq!(fixture.status()["canary"]["weights"], Value::Null);
    assert_eq!((fixture.sizes(), &fixture.status()["phase"]), (vec![4, 1], &json!("Paused")));
}

#[test]
fn until_the_router_knows_of_ping_and_pong_the_services_before_keep_their_pods() {
    let mut fixture = with_fixed_services(json!([{ "setWeight": 50 }, { "pause": {} }]));
    fixture = fixture.with_services(&["ping", "pong"]);
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(1));
    assert_eq!((split(&fixture).as_str(), fixture.selects("canary")), ("canary 50, stable 50", 2));
    let pair = json!({ "pingService": "ping", "pongService": "pong" });
    fixture.patch_spec(json!({ "strategy": { "canary": { "pingPong": pair } } }));
    fixture.set_image("v3");
    fixture.size(0, 4, 1); // Too few for the router to be told anything.
    fixture.reconcile(at(2));
    for (available, expected) in [(1, 2), (2, 3)] {
        fixture.size(2, 2, available);
        fixture.reconcile(at(3));
        assert_eq!(split(&fixture), "canary 50, stable 50");
        assert_eq!(fixture.selects("canary"), expected, "{available} of two for half the traffic");
    }
}

#[test]
fn a_router_of_one_file_carries_a_whole_update() {
    let strategy = json!({ "steps": [{ "setWeight": 50 }, { "pause": {} }] });
    let routing = json!({ "plugins": { "test/notes": { "note": "web" } } });
    let note = json!({ "kind": "Note", "metadata": { "name": "web" }, "spec": { "canary": 0 } });
    let mut fixture = Fixture::routed(4, routing, strategy).with_route(note);
    let weight =
        |fixture: &Fixture| fixture.route("Note", "web").unwrap()["spec"]["canary"].clone();
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(1));
    assert_eq!((weight(&fixture), fixture.selects("canary")), (json!(50), 2));
    fixture.promote();
    fixture.settle(at(2));
    assert_eq!((weight(&fixture), fixture.selects("stable")), (json!(0), 2));
}
