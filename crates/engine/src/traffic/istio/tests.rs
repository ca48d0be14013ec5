//! VirtualServices and DestinationRules: which routes get weights, in which order, and what stays.

use gradus_api::rollout::canary::{SetHeaderRoute, SetMirrorRoute};
use serde_json::json;

use super::*;
use crate::traffic::tests::{self, goal};
use crate::traffic::{Destination, routers};

fn rollout(istio: Value) -> RolloutView {
    let managed = json!([{ "name": "copies" }, { "name": "testers" }]);
    tests::rollout(json!({ "istio": istio, "managedRoutes": managed }))
}

fn hosts() -> Value {
    json!({ "virtualService": { "name": "web", "routes": ["main"] } })
}

fn subsets() -> Value {
    json!({ "virtualService": { "name": "web" }, "destinationRule": {
        "name": "rule", "canarySubsetName": "c", "stableSubsetName": "s",
        "additionalSubsetNames": ["kept"] } })
}

fn to(host: &str, weight: i32) -> Value {
    json!({ "destination": { "host": host, "port": { "number": 80 } }, "weight": weight,
        "headers": { "kept": true } })
}

fn subset(name: &str, weight: i32) -> Value {
    json!({ "destination": { "host": "web", "subset": name }, "weight": weight })
}

fn service(spec: Value) -> Value {
    json!({ "kind": "VirtualService", "spec": spec,
        "metadata": { "name": "web", "namespace": "shop" } })
}

fn rule(canary: &str, stable: &str) -> Value {
    let subset = |name: &str, hash: &str| {
        let labels = json!({ "rollouts-pod-template-hash": hash, "theirs": "kept" });
        json!({ "name": name, "labels": labels, "trafficPolicy": { "tls": {} } })
    };
    json!({ "kind": "DestinationRule", "metadata": { "name": "rule", "namespace": "shop",
        "annotations": { "argo-rollouts.argoproj.io/managed-by-rollouts": "app" } },
        "spec": { "host": "web", "trafficPolicy": {}, "subsets": [subset("c", canary), subset("s", stable)] } })
}

fn seen(objects: &[Value]) -> RoutingObjects {
    let entry = |object: &Value| {
        let text = |field: &str| object["metadata"][field].as_str().unwrap().into();
        let kind =
            if object["kind"] == "DestinationRule" { DESTINATION_RULE } else { VIRTUAL_SERVICE };
        let reference = ObjectRef::new(kind, &text("namespace"), &text("name"));
        (reference, RouteView(Arc::new(object.clone())))
    };
    objects.iter().map(entry).collect()
}

/// The objects as the planned writes leave them, and what was written, in order.
fn planned(istio: Value, goal: &Goal<'_>, objects: &[Value]) -> (Vec<Value>, Vec<String>) {
    let (rollout, mut seen) = (rollout(istio), seen(objects));
    let mut written = Vec::new();
    for write in routers(&rollout)[0].plan(goal, &seen).unwrap() {
        let RouteOp::Merge(patch) = &write.op else { panic!("{write:?}") };
        let after = seen[&write.target].patched(patch);
        seen.insert(write.target.clone(), after);
        let told = write.told.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("; ");
        written.push(format!("{}: {told}", write.target.name));
    }
    let kinds = |object: &Value| object["kind"].as_str().unwrap().to_owned();
    let mut after: Vec<Value> = seen.values().map(|view| Value::clone(&view.0)).collect();
    after.sort_by_key(|object| std::cmp::Reverse(kinds(object)));
    (after, written)
}

#[test]
fn hosts_get_their_weights_and_nothing_else_changes() {
    let spec = json!({ "hosts": ["x"], "http": [
        { "name": "other", "route": [to("elsewhere", 100)] },
        { "name": "main", "timeout": "5s",
          "route": [to("stable.shop.svc.cluster.local", 100), to("canary", 0)] },
    ] });
    let before = service(spec.clone());
    let (after, written) = planned(hosts(), &goal(20), &[before]);
    let mut expected = spec;
    expected["http"][1]["route"] =
        json!([to("stable.shop.svc.cluster.local", 80), to("canary", 20)]);
    assert_eq!(after[0]["spec"], expected);
    assert_eq!(written, ["web: VirtualService `web` set to desiredWeight '20'"]);
    assert_eq!(planned(hosts(), &goal(20), &after).1, [""; 0], "nothing is missing any more");
    let rollout = rollout(hosts());
    assert_eq!(routers(&rollout)[0].carried(&goal(0).sides, &seen(&after)), 20);
}

/// What it is about, the configuration, the sections, and the places that get weights or the error.
type Selection = (&'static str, Value, Value, Result<&'static str, String>);

fn both() -> Value {
    json!([to("stable", 100), to("canary", 0)])
}

fn named(name: &str) -> Value {
    json!({ "name": name, "route": both() })
}

fn tls(port: Value, hosts: Value) -> Value {
    json!({ "match": [{ "port": port, "sniHosts": hosts }], "route": both() })
}

fn alone(section: &str, field: &str) -> String {
    let error = format!(
        "spec.{section}[] should be set in VirtualService and it must have exactly one route when \
         omitting spec.strategy.canary.trafficRouting.istio.virtualService.{field}"
    );
    invalid(&section.to_uppercase(), &error)
}

fn invalid(section: &str, error: &str) -> String {
    format!("Istio VirtualService has invalid {section} routes. Error: {error}")
}

fn http_rows() -> Vec<Selection> {
    vec![
        ("the only one", json!({}), json!({ "http": [named("any")] }), Ok("http 0")),
        (
            "beside a managed one",
            json!({}),
            json!({ "http": [named("testers"), named("a")] }),
            Ok("http 1"),
        ),
        (
            "one of two",
            json!({}),
            json!({ "http": [named("a"), named("b")] }),
            Err(alone("http", "routes")),
        ),
        (
            "by name",
            json!({ "routes": ["b"] }),
            json!({ "http": [named("a"), named("b")] }),
            Ok("http 1"),
        ),
        (
            "a name that is not there",
            json!({ "routes": ["c"] }),
            json!({ "http": [named("a")] }),
            Err(invalid("HTTP", "HTTP Route 'c' is not found in the defined Virtual Service.")),
        ),
        (
            "a name, and TLS alone",
            json!({ "routes": ["c"] }),
            json!({ "tls": [{ "route": both() }] }),
            Ok("tls 0"),
        ),
    ]
}

fn other_rows() -> Vec<Selection> {
    vec![
        ("two of TLS", json!({}), json!({ "tls": [{}, {}] }), Err(alone("tls", "tlsRoutes"))),
        (
            "TLS by port and hosts",
            json!({ "tlsRoutes": [{ "port": 443, "sniHosts": ["b", "a"] }] }),
            json!({ "tls": [tls(json!(443), json!(["a"])), tls(json!(443), json!(["a", "b"]))] }),
            Ok("tls 1"),
        ),
        (
            "TLS by hosts alone",
            json!({ "tlsRoutes": [{ "sniHosts": ["a"] }] }),
            json!({ "tls": [tls(json!(null), json!(["a"])), tls(json!(1), json!(["a"]))] }),
            Ok("tls 0"),
        ),
        (
            "TCP on another port",
            json!({ "tcpRoutes": [{ "port": 1 }] }),
            json!({ "tcp": [{ "match": [{ "port": 2 }], "route": both() }] }),
            Err(invalid("TCP", "No matching TCP routes found in the defined Virtual Service.")),
        ),
        (
            "nothing to route",
            json!({}),
            json!({ "hosts": [] }),
            Err("Unable to get any of the HTTP, TCP or TLS routes for the Istio VirtualService"
                .to_owned()),
        ),
        (
            "without the canary",
            json!({}),
            json!({ "http": [{ "route": [to("stable", 100)] }] }),
            Err(invalid("HTTP", "Canary Service 'canary' not found in route")),
        ),
    ]
}

#[test]
fn routes_are_selected_as_the_contract_says() {
    for (what, config, spec, expected) in http_rows().into_iter().chain(other_rows()) {
        let mut virtual_service = json!({ "name": "web" });
        virtual_service.as_object_mut().unwrap().extend(config.as_object().unwrap().clone());
        let rollout = rollout(json!({ "virtualService": virtual_service }));
        let config = rollout.spec.fields.strategy.canary.as_ref().unwrap();
        let istio = config.traffic_routing.as_ref().unwrap().istio.as_ref().unwrap();
        let router = Istio { rollout: &rollout, config: istio };
        let lanes = router.lanes(&goal(0).sides);
        let named = istio.virtual_service.as_ref().unwrap();
        let found = service::selected(&spec, named, &router.managed(), &lanes);
        let found = found.map(|all| {
            all.iter().map(|(section, at)| format!("{section} {at}")).collect::<Vec<_>>().join(", ")
        });
        assert_eq!(found, expected.map(str::to_owned), "{what}");
    }
}

#[test]
fn experiments_come_and_go_and_strangers_with_weight_go() {
    let one = |service: &str, weight: i32| Destination {
        service: service.into(),
        hash: "x".into(),
        port: None,
        weight,
    };
    let further = [one("b-try", 10), one("a-try", 5), one("none", 0)];
    let with = Goal { additional: &further, ..goal(20) };
    let route = json!([to("stable", 100), to("left", 7), to("idle", 0), to("canary", 0)]);
    let before = service(json!({ "http": [{ "name": "main", "route": route }] }));
    let (after, _) = planned(hosts(), &with, &[before]);
    let parts = |object: &Value| {
        let all = object["spec"]["http"][0]["route"].as_array().unwrap();
        let part = |one: &Value| {
            format!("{} {}", one["destination"]["host"].as_str().unwrap(), one["weight"])
        };
        all.iter().map(part).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(parts(&after[0]), "stable 65, idle 0, canary 20, a-try 5, b-try 10");
    let (gone, _) = planned(hosts(), &goal(20), &after);
    assert_eq!(parts(&gone[0]), "stable 80, idle 0, canary 20");
}

#[test]
fn managed_routes_stand_first_in_their_order() {
    let header: SetHeaderRoute = serde_json::from_value(json!({ "name": "testers", "match": [
        { "headerName": "a", "headerValue": { "exact": "1" } },
        { "headerName": "b", "headerValue": { "regex": "2" } } ] }))
    .unwrap();
    let mirror: SetMirrorRoute =
        serde_json::from_value(json!({ "name": "copies", "percentage": 35,
        "match": [{ "method": { "exact": "GET" }, "path": { "prefix": "/" } }] }))
        .unwrap();
    let main = json!({ "name": "main", "route": [to("stable", 100), to("canary", 0)] });
    let unnamed = json!({ "route": [to("elsewhere", 100)] });
    let before = service(json!({ "http": [unnamed, main, unnamed] }));
    let wanted = Goal { header_routes: vec![&header], mirror_routes: vec![&mirror], ..goal(0) };
    let (after, written) = planned(hosts(), &wanted, std::slice::from_ref(&before));
    let canary = json!({ "host": "canary", "port": { "number": 80 } });
    let stable = json!({ "host": "stable", "port": { "number": 80 } });
    let copies = json!({ "name": "copies",
        "match": [{ "method": { "exact": "GET" }, "uri": { "prefix": "/" } }],
        "route": [{ "destination": stable, "weight": 100 }, { "destination": canary }],
        "mirror": canary, "mirrorPercentage": { "value": 35 } });
    let testers = json!({ "name": "testers",
        "match": [{ "headers": { "a": { "exact": "1" } } }, { "headers": { "b": { "regex": "2" } } }],
        "route": [{ "destination": canary, "weight": 100 }] });
    assert_eq!(after[0]["spec"]["http"], json!([copies, testers, unnamed, main, unnamed]));
    let told = "VirtualService `web` set";
    assert_eq!(
        written,
        [format!("web: {told} headerRoute 'testers'; {told} mirrorRoute 'copies'")]
    );
    assert_eq!(planned(hosts(), &wanted, &after).1, [""; 0], "nothing is missing any more");
    let (gone, written) = planned(hosts(), &goal(0), &after);
    assert_eq!(gone[0]["spec"], before["spec"], "the user's routes are as they were");
    assert_eq!(written, ["web: VirtualService `web` removed all managed routes."]);
    let by_steps = Goal { route_steps: Some(&[]), ..goal(0) };
    let (_, written) = planned(hosts(), &by_steps, &after);
    assert_eq!(
        written,
        [format!("web: {told} mirrorRoute 'copies'; {told} headerRoute 'testers'")],
        "steps without a match take routes away one by one"
    );
    let by_tcp = service(json!({ "tcp": [{ "route": [to("stable", 100), to("canary", 0)] }] }));
    let rollout = rollout(hosts());
    let fault = routers(&rollout)[0].plan(&wanted, &seen(&[by_tcp])).unwrap_err();
    assert_eq!(fault.message, "spec.http not found");
}

/// What | hashes of c and s, weight | goal: canary hash, stable hash, weight | what is written, in order.
#[test]
fn traffic_leaves_before_its_subset_and_comes_after_it() {
    let cases = [
        ("a new canary", ("a", "a", 0), ("b", "a", 0), "rule"),
        ("its first weight", ("b", "a", 0), ("b", "a", 20), "web"),
        ("a first weight with its subset", ("a", "a", 0), ("b", "a", 20), "rule web"),
        ("overtaken by another", ("b", "a", 20), ("c", "a", 0), "web rule"),
        ("promoted: stable follows first", ("b", "a", 100), ("b", "b", 0), "rule web"),
        ("overtaken and promoted", ("b", "a", 100), ("c", "b", 0), "rule web"),
        ("at rest", ("b", "b", 0), ("b", "b", 0), ""),
    ];
    for (what, (canary, stable, weight), (next, kept, wanted), expected) in cases {
        let route =
            json!([subset("s", 90 - weight.min(90)), subset("c", weight), subset("kept", 10)]);
        let web = service(json!({ "http": [{ "route": route }] }));
        let goal = Goal { subset_hash: next, stable_subset_hash: kept, ..goal(wanted) };
        let (after, written) = planned(subsets(), &goal, &[web, rule(canary, stable)]);
        let names: Vec<&str> = written.iter().map(|text| text.split(':').next().unwrap()).collect();
        assert_eq!(names.join(" "), expected, "{what}");
        let (last, _) = planned(subsets(), &goal, &after);
        assert_eq!(planned(subsets(), &goal, &last).1, [""; 0], "{what}: it is there");
        assert_eq!(last[1]["spec"], rule(next, kept)["spec"], "{what}: other fields stay");
        let rollout = rollout(subsets());
        let router = &routers(&rollout)[0];
        let behind = |side| router.revision(side, &seen(&last)).unwrap();
        assert_eq!(
            (behind(TrafficSide::Canary), behind(TrafficSide::Stable)),
            (next.to_owned(), kept.to_owned())
        );
    }
}

#[test]
fn subsets_of_experiments_come_sorted_and_go_again() {
    let one = |service: &str| Destination {
        service: service.into(),
        hash: "x".into(),
        port: None,
        weight: 5,
    };
    let further = [one("b-try"), one("a-try")];
    let web = service(json!({ "http": [{ "route": [subset("s", 100), subset("c", 0)] }] }));
    let with = Goal { additional: &further, ..goal(0) };
    let (after, written) = planned(subsets(), &with, &[web, rule("b", "a")]);
    let names = |object: &Value| {
        let all = object["spec"]["subsets"].as_array().unwrap();
        all.iter().map(|one| one["name"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(&after[1]), "c s a-try b-try");
    assert_eq!(written[0], "rule: DestinationRule rule subset updated (c: b, s: a)");
    let (gone, _) = planned(subsets(), &goal(0), &after);
    assert_eq!(names(&gone[1]), "c s");
}

#[test]
fn a_step_by_header_needs_http_routes() {
    let tcp = service(json!({ "tcp": [{ "route": [to("stable", 100), to("canary", 0)] }] }));
    let route = json!({ "name": "testers", "match": [] });
    for field in ["setHeaderRoute", "setMirrorRoute"] {
        let steps = json!([{ "setWeight": 5 }, { field: route }]);
        let rollout = tests::rollout_with(json!({ "istio": hosts() }), steps);
        let router = &routers(&rollout)[0];
        let fault = router.fault(&seen(std::slice::from_ref(&tcp))).unwrap().to_string();
        let expected = format!(
            "spec.strategy.canary.steps[1].{field}: Forbidden: router istio cannot do {field}: \
             VirtualService `web` has no spec.http"
        );
        assert_eq!(fault, expected);
    }
}

#[test]
fn what_cannot_be_done_is_named_by_its_field() {
    let path = "spec.strategy.canary.trafficRouting.istio";
    let either = "Internal error: either VirtualService or VirtualServices must be configured";
    let far = json!({ "virtualServices": [{ "name": "web.edge.cluster.local" }] });
    let cases = [
        (json!({}), format!("{path}: {either}")),
        (
            hosts(),
            format!(
                r#"{path}.virtualService.name: Invalid value: "web": virtualservices.networking.istio.io "web" not found"#
            ),
        ),
        (
            far.clone(),
            format!(
                r#"{path}.virtualServices.name: Invalid value: "web": virtualservices.networking.istio.io "web" not found"#
            ),
        ),
    ];
    for (config, expected) in cases {
        let rollout = rollout(config);
        let fault = routers(&rollout)[0].fault(&RoutingObjects::new()).unwrap();
        assert_eq!(fault.to_string(), expected);
    }
    let far = rollout(far);
    let object = routers(&far)[0].needs().remove(0).object;
    assert_eq!((&*object.name, &*object.namespace), ("web", "edge"));
    let web = service(json!({ "http": [{ "route": [subset("s", 100), subset("c", 0)] }] }));
    let by_subset = rollout(subsets());
    let fault = routers(&by_subset)[0].plan(&goal(0), &seen(&[web])).unwrap_err();
    assert_eq!(fault.message, "DestinationRule `rule` not found");
}
