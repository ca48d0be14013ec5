//! The ApisixRoute: weights in the named rules; a route of our own for requests with a header.

use std::sync::Arc;

use gradus_api::rollout::canary::SetHeaderRoute;

use super::*;
use crate::traffic::routers;
use crate::traffic::tests::{self, goal};

fn rollout(route: Value) -> RolloutView {
    let managed = json!([{ "name": "testers" }]);
    tests::rollout(json!({ "apisix": { "route": route }, "managedRoutes": managed }))
}

fn backend(service: &str, weight: Value) -> Value {
    json!({ "serviceName": service, "servicePort": 80, "weight": weight })
}

fn rule(name: &str, stable: i32, canary: i32) -> Value {
    let backends = [backend("stable", json!(stable)), backend("canary", json!(canary))];
    json!({ "name": name, "priority": 3, "match": { "paths": ["/*"], "exprs": ["theirs"] },
        "backends": backends })
}

fn route(http: Value) -> Value {
    json!({ "metadata": { "name": "web", "namespace": "shop", "labels": { "team": "a" },
            "annotations": { "kubectl.kubernetes.io/last-applied-configuration": "{}" } },
        "spec": { "ingressClassName": "apisix", "http": http } })
}

fn seen(objects: &[Value]) -> RoutingObjects {
    let entry = |object: &Value| {
        let name = object["metadata"]["name"].as_str().unwrap();
        let reference = ObjectRef::new(APISIX_ROUTE, &"shop".into(), &name.into());
        (reference, RouteView(Arc::new(object.clone())))
    };
    objects.iter().map(entry).collect()
}

fn header(matched: Value) -> SetHeaderRoute {
    serde_json::from_value(json!({ "name": "testers", "match": matched })).unwrap()
}

#[test]
fn the_named_rules_get_their_weights_and_nothing_else_changes() {
    let cases = [
        (json!({ "name": "web" }), [20, 0, 0]),
        (json!({ "name": "web", "rules": ["a", "b"] }), [0, 20, 20]),
    ];
    for (config, expected) in cases {
        let rollout = rollout(config);
        let http = |[web, a, b]: [i32; 3]| {
            json!([rule("web", 100 - web, web), rule("a", 100 - a, a), rule("b", 100 - b, b)])
        };
        let object = route(http([0, 0, 0]));
        let seen_first = seen(std::slice::from_ref(&object));
        let writes = routers(&rollout)[0].plan(&goal(20), &seen_first).unwrap();
        let RouteOp::Merge(patch) = &writes[0].op else { panic!("{writes:?}") };
        let after = Value::clone(&RouteView(Arc::new(object)).patched(patch).0);
        assert_eq!(after, route(http(expected)));
        let again = routers(&rollout)[0].plan(&goal(20), &seen(std::slice::from_ref(&after)));
        assert_eq!(again.unwrap(), [], "nothing is missing any more");
        assert_eq!(routers(&rollout)[0].carried(&goal(0).sides, &seen(&[after])), 20);
    }
}

#[test]
fn a_header_route_is_an_object_of_its_own_that_comes_and_goes() {
    let rollout = rollout(json!({ "name": "web" }));
    let router = &routers(&rollout)[0];
    let matched = json!([
        { "headerName": "a", "headerValue": { "exact": "1" } },
        { "headerName": "b", "headerValue": { "prefix": "2" } },
        { "headerName": "c", "headerValue": { "regex": "3$" } },
    ]);
    let (header_route, base) =
        (header(matched), route(json!([rule("web", 100, 0), rule("other", 1, 1)])));
    let with = Goal { header_routes: vec![&header_route], ..goal(0) };
    let writes = router.plan(&with, &seen(std::slice::from_ref(&base))).unwrap();
    let RouteOp::Create(manifest) = &writes[0].op else { panic!("{writes:?}") };
    let expression = |name: &str, op: &str, value: &str| json!({ "subject": { "scope": "Header", "name": name }, "op": op, "value": value });
    let expressions = [
        expression("a", "Equal", "1"),
        expression("b", "RegexMatch", "^2.*"),
        expression("c", "RegexMatch", "3$"),
    ];
    let http = json!([{ "name": "web", "priority": 4,
        "match": { "paths": ["/*"], "exprs": expressions },
        "backends": [backend("canary", json!(100))] }]);
    assert_eq!(manifest["spec"], json!({ "ingressClassName": "apisix", "http": http }));
    let meta = &manifest["metadata"];
    assert_eq!((&meta["name"], &meta["labels"]), (&json!("testers"), &json!({ "team": "a" })));
    assert_eq!(
        (&meta["annotations"], &meta["ownerReferences"][0]["name"]),
        (&Value::Null, &json!("app"))
    );

    let stored = manifest.clone();
    let both = seen(&[base.clone(), stored.clone()]);
    assert_eq!(router.plan(&with, &both).unwrap(), [], "nothing is missing any more");
    let gone = router.plan(&goal(0), &both).unwrap();
    assert_eq!((gone.len(), &gone[0].op, &*gone[0].target.name), (1, &RouteOp::Delete, "testers"));
    let moves = router.plan(&goal(20), &both).unwrap();
    let names: Vec<&str> = moves.iter().map(|write| &*write.target.name).collect();
    assert_eq!(names, ["testers", "web"], "it goes before the weight changes");

    let mut other = stored;
    other["spec"]["http"][0]["backends"][0]["weight"] = json!(1);
    other["spec"]["http"][0]["priority"] = json!(9);
    let mended = router.plan(&with, &seen(&[base.clone(), other.clone()])).unwrap();
    let RouteOp::Merge(patch) = &mended[0].op else { panic!("{mended:?}") };
    assert_eq!(patch["spec"]["http"][0]["priority"], 9, "a priority is set once");
    other["metadata"]["ownerReferences"] = json!([]);
    let foreign = seen(&[base, other]);
    let fault = router.plan(&with, &foreign).unwrap_err();
    assert_eq!(fault.message, "duplicate ApisixRoute [testers] already exists");
    assert_eq!(router.plan(&goal(0), &foreign).unwrap(), [], "somebody else's stays");
}

#[test]
fn what_cannot_be_used_is_named() {
    let path = "spec.strategy.canary.trafficRouting.apisix.route.name";
    let unnamed = json!([{ "name": "web", "backends": [{ "servicePort": 80 }] }]);
    let cases = [
        (json!(null), "spec.http was not found in Apisix Route manifest"),
        (json!([rule("other", 1, 1)]), "Apisix http route rule web not found"),
        (json!([{ "name": "web" }]), "Apisix http route backends not found"),
        (unnamed, "serviceName field was not found in backend"),
        (
            json!([{ "name": "web", "backends": [backend("canary", json!(1))] }]),
            "apisix route stable backend was not found",
        ),
    ];
    let named = rollout(json!({ "name": "web" }));
    let router = &routers(&named)[0];
    for (http, expected) in cases {
        let seen = seen(&[route(http)]);
        let fault = router.fault(&seen).unwrap().to_string();
        assert_eq!(fault, format!(r#"{path}: Invalid value: "web": {expected}"#));
        assert_eq!(router.plan(&goal(20), &seen).unwrap_err().message, expected);
    }
    let missing = router.fault(&RoutingObjects::new()).unwrap().to_string();
    let expected = r#"Invalid value: "web": apisixroutes.apisix.apache.org "web" not found"#;
    assert_eq!(missing, format!("{path}: {expected}"));
    let nameless = tests::rollout(json!({ "apisix": {} }));
    let fault = routers(&nameless)[0].fault(&RoutingObjects::new()).unwrap().to_string();
    assert_eq!(fault, format!("{path}: Required value: the name of an ApisixRoute"));
    let twin = rollout(json!({ "name": "testers" }));
    let fault = routers(&twin)[0].misconfigured().unwrap().to_string();
    let field = "spec.strategy.canary.trafficRouting.managedRoutes[0].name";
    let expected = "expected another name than that of the ApisixRoute with the weights";
    assert_eq!(fault, format!(r#"{field}: Invalid value: "testers": {expected}"#));
}
