//! The TraefikService: two weights change, and nothing else.

use std::sync::Arc;

use super::*;
use crate::traffic::routers;
use crate::traffic::tests::{self, goal};

fn rollout() -> RolloutView {
    tests::rollout(json!({ "traefik": { "weightedTraefikServiceName": "web" } }))
}

fn service(services: Value) -> Value {
    json!({ "metadata": { "name": "web", "namespace": "shop" },
        "spec": { "weighted": { "sticky": { "cookie": {} }, "services": services } } })
}

fn seen(object: &Value) -> RoutingObjects {
    let reference = ObjectRef::new(TRAEFIK_SERVICE, &"shop".into(), &"web".into());
    RoutingObjects::from([(reference, RouteView(Arc::new(object.clone())))])
}

#[test]
fn two_weights_change_and_the_rest_stays() {
    let third = json!({ "name": "third", "weight": 7, "kind": "TraefikService" });
    let object = service(json!([
        { "name": "stable", "port": 80 }, third, { "name": "canary", "port": 80, "weight": 0 },
    ]));
    let rollout = rollout();
    let router = &routers(&rollout)[0];
    let writes = router.plan(&goal(20), &seen(&object)).unwrap();
    let RouteOp::Merge(patch) = &writes[0].op else { panic!("{writes:?}") };
    let after = Value::clone(&RouteView(Arc::new(object)).patched(patch).0);
    let expected = service(json!([
        { "name": "stable", "port": 80, "weight": 80 }, third,
        { "name": "canary", "port": 80, "weight": 20 },
    ]));
    assert_eq!(after, expected);
    assert_eq!((writes.len(), &writes[0].told[..]), (1, &[][..]));
    assert_eq!(router.plan(&goal(20), &seen(&after)).unwrap(), [], "nothing is missing any more");
}

/// What | weights of stable and canary | canary's part of 100 as it is read.
#[test]
fn weights_are_read_as_parts_of_their_sum() {
    let cases = [
        ("as we write them", [json!(80), json!(20)], 20),
        ("none at all", [json!(null), json!(null)], 50),
        ("parts of 4", [json!(3), json!(1)], 25),
    ];
    let rollout = rollout();
    for (what, [stable, canary], expected) in cases {
        let object = service(json!([
            { "name": "stable", "weight": stable }, { "name": "canary", "weight": canary },
        ]));
        let carried = routers(&rollout)[0].carried(&goal(0).sides, &seen(&object));
        assert_eq!(carried, expected, "{what}");
    }
}

#[test]
fn what_cannot_be_used_is_named() {
    let path = "spec.strategy.canary.trafficRouting.traefik.weightedTraefikServiceName";
    let stable = json!({ "name": "stable" });
    let cases = [
        (json!({}), "spec.weighted.services was not found in traefik service manifest"),
        (json!([{ "port": 80 }]), "name field was not found in service"),
        (json!([stable]), "traefik canary service was not found"),
        (json!([{ "name": "canary" }]), "traefik stable service was not found"),
    ];
    let rollout = rollout();
    let router = &routers(&rollout)[0];
    for (services, expected) in cases {
        let seen = seen(&service(services));
        let fault = router.fault(&seen).unwrap().to_string();
        assert_eq!(fault, format!(r#"{path}: Invalid value: "web": {expected}"#));
        assert_eq!(router.plan(&goal(20), &seen).unwrap_err().message, expected);
    }
    let missing = router.fault(&RoutingObjects::new()).unwrap().to_string();
    let expected = r#"Invalid value: "web": traefikservices.traefik.io "web" not found"#;
    assert_eq!(missing, format!("{path}: {expected}"));
    let unnamed = tests::rollout(json!({ "traefik": {} }));
    let fault = routers(&unnamed)[0].fault(&RoutingObjects::new()).unwrap().to_string();
    assert_eq!(fault, format!("{path}: Required value: the name of a TraefikService"));
}
