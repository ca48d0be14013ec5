//! The routes of Gateway API: weights in the rules of users, rules of our own, and nothing else.

use std::sync::Arc;

use gradus_api::rollout::canary::{SetHeaderRoute, SetMirrorRoute};
use gradus_api::traffic::ManagedRoute;
use serde_json::{Value, json};

use super::*;
use crate::traffic::tests::{self, goal};
use crate::traffic::{Destination, routers};

fn rollout(config: Value) -> RolloutView {
    let managed = json!([{ "name": "copies" }, { "name": "testers" }]);
    tests::rollout(json!({ "plugins": { NAME: config }, "managedRoutes": managed }))
}

fn backend(name: &str, weight: Value) -> Value {
    json!({ "name": name, "port": 80, "weight": weight, "theirs": { "kept": true } })
}

fn route(rules: Value) -> Value {
    json!({
        "metadata": { "name": "web", "namespace": "shop" },
        "spec": { "hostnames": ["x"], "rules": rules },
    })
}

fn seen(kind: Kind, object: &Value) -> RoutingObjects {
    let reference = ObjectRef::new(kind, &"shop".into(), &"web".into());
    RoutingObjects::from([(reference, RouteView(Arc::new(object.clone())))])
}

/// The route as the planned write leaves it; `None` if nothing is missing.
fn planned(config: Value, goal: &Goal<'_>, kind: Kind, object: &Value) -> Option<Value> {
    let rollout = rollout(config);
    let mut writes = routers(&rollout)[0].plan(goal, &seen(kind, object)).unwrap();
    let write = writes.pop()?;
    let RouteOp::Merge(patch) = &write.op else { panic!("{write:?}") };
    Some(Value::clone(&RouteView(Arc::new(object.clone())).patched(patch).0))
}

#[test]
fn weights_move_in_rules_that_lead_to_both_services_and_nowhere_else() {
    let other = json!({ "matches": [{ "path": { "value": "/admin" } }],
        "backendRefs": [backend("stable", json!(7))] });
    let rules = json!([
        { "name": "main", "timeouts": { "request": "5s" },
          "backendRefs": [backend("stable", json!(100)), backend("canary", json!(0))] },
        other,
        { "backendRefs": [backend("canary", json!(null)), backend("third", json!(10)),
            backend("stable", json!(90))] },
    ]);
    let families = [
        ("httpRoute", RouteFamily::Http),
        ("grpcRoute", RouteFamily::Grpc),
        ("tcpRoute", RouteFamily::Tcp),
        ("tlsRoute", RouteFamily::Tls),
    ];
    for (field, family) in families {
        let config = json!({ field: "web" });
        let plan = |weight: i32, object: &Value| {
            planned(config.clone(), &goal(weight), family.kind(), object)
        };
        let after = plan(20, &route(rules.clone())).unwrap();
        let expected = json!([
            { "name": "main", "timeouts": { "request": "5s" },
              "backendRefs": [backend("stable", json!(80)), backend("canary", json!(20))] },
            other,
            { "backendRefs": [backend("canary", json!(20)), backend("third", json!(10)),
                backend("stable", json!(80))] },
        ]);
        assert_eq!(after["spec"], json!({ "hostnames": ["x"], "rules": expected }), "{field}");
        let labels = json!({ "rollouts.argoproj.io/gatewayapi-canary": "in-progress" });
        assert_eq!(after["metadata"]["labels"], labels, "{field}");
        assert_eq!(plan(20, &after), None, "{field}: nothing is missing any more");
        let rest = plan(0, &after).unwrap();
        assert_eq!(rest["metadata"]["labels"], json!({}), "{field}: no mark at rest");
        let rollout = rollout(config.clone());
        let carried = |object: &Value| {
            routers(&rollout)[0].carried(&goal(0).sides, &seen(family.kind(), object))
        };
        assert_eq!((carried(&after), carried(&rest)), (20, 0), "{field}");
    }
}

/// What | weights of stable, canary and another | canary's part of 100 as it is read.
#[test]
fn weights_are_read_as_parts_of_their_sum() {
    let cases = [
        ("no weights: half and half", [None, None, None], 34),
        ("parts of 100", [Some(80), Some(20), Some(0)], 20),
        ("parts of 1000", [Some(975), Some(25), Some(0)], 3),
        ("beside another", [Some(80), Some(20), Some(100)], 10),
        ("nobody gets anything", [Some(0), Some(0), Some(0)], 0),
    ];
    for (what, [stable, canary, other], expected) in cases {
        let refs = [
            backend("stable", json!(stable)),
            backend("canary", json!(canary)),
            backend("o", json!(other)),
        ];
        let object = route(json!([{ "backendRefs": refs }]));
        let rollout = rollout(json!({ "httpRoute": "web" }));
        let kind = RouteFamily::Http.kind();
        let splits = routers(&rollout)[0].splits(&goal(0).sides, &seen(kind, &object));
        assert_eq!(splits[0].canary(), expected, "{what}");
        let sum: i32 = splits[0].parts.iter().map(|part| part.weight).sum();
        assert_eq!(sum, if expected == 0 { 0 } else { 100 }, "{what}");
    }
}

#[test]
fn experiments_get_their_part_in_the_first_rule_and_leave_it_again() {
    let both = || json!([backend("stable", json!(80)), backend("canary", json!(20))]);
    let object = route(json!([{ "backendRefs": both() }, { "backendRefs": both() }]));
    let service = "app-7c4f-2-1-try";
    let one =
        [Destination { service: service.into(), hash: "c".into(), port: Some(8080), weight: 5 }];
    let with = Goal { additional: &one, ..goal(20) };
    let kind = RouteFamily::Http.kind();
    let config = json!({ "httpRoute": "web" });
    let after = planned(config.clone(), &with, kind.clone(), &object).unwrap();
    let refs = &after["spec"]["rules"][0]["backendRefs"];
    assert_eq!((&refs[0]["weight"], &refs[1]["weight"]), (&json!(75), &json!(20)));
    let added = json!({ "name": service, "namespace": "shop", "port": 8080, "weight": 5 });
    assert_eq!(refs[2], added, "by the port of its own Service");
    assert_eq!(after["spec"]["rules"][1]["backendRefs"], both(), "the second rule is as it was");
    assert_eq!(planned(config.clone(), &with, kind.clone(), &after), None);
    let gone = planned(config, &goal(20), kind, &after).unwrap();
    assert_eq!(gone["spec"], object["spec"], "also where no status was stored");
}

fn managed() -> Vec<ManagedRoute> {
    serde_json::from_value(json!([{ "name": "copies" }, { "name": "testers" }])).unwrap()
}

#[test]
fn header_and_mirror_routes_are_rules_by_name() {
    let both = json!([backend("stable", json!(100)), backend("canary", json!(0))]);
    let source = json!({ "filters": [{ "type": "X" }], "backendRefs": both,
        "matches": [{ "path": { "type": "PathPrefix", "value": "/" } }] });
    let theirs = json!({ "name": "testers-x", "backendRefs": [backend("canary", json!(1))] });
    let object = route(json!([source, theirs]));
    let header: SetHeaderRoute = serde_json::from_value(json!({ "name": "testers", "match": [
        { "headerName": "a", "headerValue": { "exact": "1" } },
        { "headerName": "b", "headerValue": { "prefix": "p" } },
    ] }))
    .unwrap();
    let mirror: SetMirrorRoute =
        serde_json::from_value(json!({ "name": "copies", "percentage": 35,
        "match": [{ "method": { "exact": "GET" }, "path": { "prefix": "/" } }] }))
        .unwrap();
    let managed = managed();
    let mut goal = Goal { managed_routes: &managed, ..goal(0) };
    goal.header_routes = vec![&header];
    goal.mirror_routes = vec![&mirror];
    let kind = RouteFamily::Http.kind();
    let config = json!({ "httpRoute": "web" });
    let after = planned(config.clone(), &goal, kind.clone(), &object).unwrap();
    let rules = after["spec"]["rules"].as_array().unwrap();
    let canary = json!({ "group": "", "kind": "Service", "name": "canary", "port": 80 });
    let copies = json!({
        "name": "copies",
        "matches": [{ "path": { "type": "PathPrefix", "value": "/" }, "method": "GET" }],
        "filters": [{ "type": "X" }, { "type": "RequestMirror",
            "requestMirror": { "backendRef": canary, "percent": 35 } }],
        "backendRefs": both,
    });
    let testers = json!({
        "name": "testers",
        "matches": [{ "path": { "type": "PathPrefix", "value": "/" }, "headers": [
            { "type": "Exact", "name": "a", "value": "1" },
            { "type": "RegularExpression", "name": "b", "value": "p.*" },
        ] }],
        "filters": [{ "type": "X" }],
        "backendRefs": [{ "group": "", "kind": "Service", "name": "canary", "port": 80 }],
    });
    assert_eq!(rules, &[copies, source.clone(), theirs.clone(), testers]);
    let mut defaulted = after.clone();
    defaulted["spec"]["rules"][0]["filters"][1]["requestMirror"]["backendRef"]["namespace"] =
        json!("shop");
    assert_eq!(
        planned(config.clone(), &goal, kind.clone(), &defaulted),
        None,
        "what a server adds to our rules is no difference"
    );
    let bare = Goal { managed_routes: &managed, ..tests::goal(0) };
    let gone = planned(config, &bare, kind.clone(), &after).unwrap();
    assert_eq!(gone["spec"], object["spec"], "the user's rules are as they were");
    let untouched = json!({ "httpRoutes": [{ "name": "web" }] });
    assert_eq!(planned(untouched, &goal, kind, &object), None, "a route without header routes");
}

/// Configuration | fault.
#[test]
fn a_configuration_that_cannot_be_carried_out_is_named_by_its_field() {
    let path = ENTRY.config.path();
    let nothing = "No routes configured. At least one of 'httpRoutes', 'grpcRoutes', 'tcpRoutes', \
                   'tlsRoutes', 'httpRoute', 'grpcRoute', 'tcpRoute' or 'tlsRoute' must be set";
    let cases = [
        (json!({}), format!("{path}: {nothing}")),
        (json!({ "httpRoute": 7 }), format!("{path}.httpRoute: Invalid value: 7: expected a text")),
        (
            json!({ "grpcRoutes": [{ "name": "a" }, {}] }),
            format!("{path}.grpcRoutes[1].name: Required value: the name of a route"),
        ),
        (
            json!({ "tcpRoutes": "a" }),
            format!("{path}.tcpRoutes: Invalid value: expected a list of routes"),
        ),
        (
            json!({ "httpRouteSelector": { "matchExpressions": [{ "key": "a", "operator": "Is" }] } }),
            format!(
                r#"{path}.httpRouteSelector: Invalid value: "Is": expected one of In, NotIn, Exists, DoesNotExist"#
            ),
        ),
        (
            json!({ "grpcRouteSelector": { "matchLabels": { "team": "shop" } } }),
            format!("{path}: {nothing}"),
        ),
        (
            json!({ "httpRouteSelector": {} }),
            format!(
                r#"{path}.httpRouteSelector: Invalid value: "web": backendRef was not found in httpRoute"#
            ),
        ),
        (
            json!({ "tlsRoute": "gone" }),
            format!(
                r#"{path}.tlsRoute: Invalid value: "gone": tlsroutes.gateway.networking.k8s.io "gone" not found"#
            ),
        ),
        (
            json!({ "httpRoute": "web" }),
            format!(
                r#"{path}.httpRoute: Invalid value: "web": backendRef was not found in httpRoute"#
            ),
        ),
    ];
    let object = route(json!([{ "backendRefs": [backend("canary", json!(1))] }]));
    for (config, expected) in cases {
        let rollout = rollout(config);
        let router = &routers(&rollout)[0];
        let fault = router.fault(&seen(RouteFamily::Http.kind(), &object)).unwrap();
        assert_eq!(fault.to_string(), expected);
    }
}

#[test]
fn a_step_that_no_route_can_do_is_refused() {
    let steps = json!([{ "setWeight": 5 }, { "setMirrorRoute": { "name": "copies" } }]);
    let cases = [
        (json!({ "httpRoute": "web" }), true),
        (json!({ "httpRoutes": [{ "name": "web" }] }), false),
        (json!({ "grpcRoute": "web" }), false),
        (json!({ "tcpRoute": "web" }), false),
    ];
    for (config, is_possible) in cases {
        let frame = json!({ "metadata": { "name": "app", "namespace": "shop" }, "spec": {
            "strategy": { "canary": { "steps": steps, "trafficRouting": {
                "plugins": { NAME: config } } } } } });
        let view = RolloutView::read(&serde_json::from_value(frame).unwrap(), None);
        let fault = routers(&view)[0].misconfigured().map(|fault| fault.to_string());
        let expected = "spec.strategy.canary.steps[1].setMirrorRoute: Forbidden: router \
                        argoproj-labs/gatewayAPI cannot do setMirrorRoute without an HTTPRoute \
                        with useHeaderRoutes";
        assert_eq!(fault, (!is_possible).then(|| expected.to_owned()), "{config}");
    }
}

#[test]
fn routes_are_selected_by_their_labels_beside_those_that_are_named() {
    let config = json!({
        "httpRoute": "web", "httpRouteSelector": { "matchLabels": { "team": "shop" } },
    });
    let rollout = rollout(config);
    let routers = routers(&rollout);
    let router = &routers[0];
    let rules = json!([{ "backendRefs": [
        backend("stable", json!(100)), backend("canary", json!(0)),
    ] }]);
    let labelled = |name: &str, namespace: &str, labels: Value| {
        let mut object = route(rules.clone());
        let metadata = json!({ "name": name, "namespace": namespace, "labels": labels });
        object["metadata"] = metadata;
        let reference = ObjectRef::new(RouteFamily::Http.kind(), &namespace.into(), &name.into());
        (reference, RouteView(Arc::new(object)))
    };
    let shop = || json!({ "team": "shop", "theirs": "kept" });
    let seen: RoutingObjects = [
        labelled("web", "shop", shop()),
        labelled("api", "shop", shop()),
        labelled("bank", "shop", json!({ "team": "bank" })),
        labelled("api", "elsewhere", shop()),
    ]
    .into_iter()
    .collect();
    let header = SetHeaderRoute {
        name: "testers".to_owned(),
        r#match: serde_json::from_value(
            json!([{ "headerName": "x", "headerValue": { "exact": "yes" } }]),
        )
        .unwrap(),
    };
    let goal = Goal { header_routes: vec![&header], ..goal(20) };
    let writes = router.plan(&goal, &seen).unwrap();
    let of_write = |write: &RouteWrite| {
        let RouteOp::Merge(patch) = &write.op else { panic!("a route is changed, not made") };
        let rules = patch["spec"]["rules"].as_array().unwrap();
        assert_eq!(rules[0]["backendRefs"][1]["weight"], 20, "{}", write.target);
        (write.target.name.to_string(), rules.len())
    };
    let found: Vec<_> = writes.iter().map(of_write).collect();
    let expected = [("web".to_owned(), 2), ("api".to_owned(), 1)];
    assert_eq!(found, expected, "each once, and steps add rules to those that are named alone");
    let selections = router.selections();
    let selected = &selections[0];
    assert_eq!((selections.len(), &selected.kind), (1, &RouteFamily::Http.kind()));
    assert_eq!(router.splits(&named_sides(&rollout), &seen).len(), 2);
}
