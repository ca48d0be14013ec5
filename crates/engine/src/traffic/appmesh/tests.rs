//! The VirtualRouter and the VirtualNodes: weights, selectors and their order.

use super::*;
use crate::traffic::tests::{self, goal};
use crate::traffic::{RouteView, routers};

fn rollout(routes: Value) -> RolloutView {
    let nodes = json!({ "canaryVirtualNodeRef": { "name": "new" },
        "stableVirtualNodeRef": { "name": "old" } });
    let service = json!({ "name": "web", "routes": routes });
    tests::rollout(json!({ "appMesh": { "virtualService": service, "virtualNodeGroup": nodes } }))
}

fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({ "kind": kind, "metadata": { "name": name, "namespace": "shop" }, "spec": spec })
}

fn service(router: Value) -> Value {
    object(
        "VirtualService",
        "web",
        json!({ "awsName": "web.local",
        "provider": { "virtualRouter": { "virtualRouterRef": router } } }),
    )
}

fn target(node: &str, weight: i32) -> Value {
    json!({ "virtualNodeRef": { "name": node }, "port": 80, "weight": weight })
}

fn http(name: &str, protocol: &str, canary: i32) -> Value {
    let targets = [target("old", 100 - canary), target("new", canary)];
    json!({ "name": name, "priority": 1, protocol: { "match": { "prefix": "/" },
        "action": { "weightedTargets": targets } } })
}

fn virtual_router(routes: Value) -> Value {
    object("VirtualRouter", "router", json!({ "listeners": [], "routes": routes }))
}

fn node(name: &str, hash: Value) -> Value {
    let labels = json!({ "app": "web", "rollouts-pod-template-hash": hash });
    let spec = json!({ "podSelector": { "matchLabels": labels }, "listeners": [] });
    let mut node = object("VirtualNode", name, spec);
    let notes = json!({ "argo-rollouts.argoproj.io/managed-by-rollouts": "app" });
    node["metadata"]["annotations"] = notes;
    node
}

fn seen(objects: &[Value]) -> RoutingObjects {
    let entry = |object: &Value| {
        let kind = [VIRTUAL_SERVICE, VIRTUAL_ROUTER, VIRTUAL_NODE]
            .into_iter()
            .find(|kind| object["kind"] == *kind.name);
        let text = |field: &str| object["metadata"][field].as_str().unwrap().into();
        let reference = ObjectRef::new(kind.unwrap(), &text("namespace"), &text("name"));
        (reference, RouteView(Arc::new(object.clone())))
    };
    objects.iter().map(entry).collect()
}

fn mesh(routes: Value, old: &str, new: &str) -> RoutingObjects {
    seen(&[
        service(json!({ "name": "router" })),
        virtual_router(routes),
        node("old", json!(old)),
        node("new", json!(new)),
    ])
}

/// The objects as the planned writes leave them, and the names of what was written, in order.
fn planned(
    rollout: &RolloutView,
    goal: &Goal<'_>,
    seen: &RoutingObjects,
) -> (RoutingObjects, String) {
    let (mut seen, mut names) = (seen.clone(), Vec::new());
    for write in routers(rollout)[0].plan(goal, &seen).unwrap() {
        let RouteOp::Merge(patch) = &write.op else { panic!("{write:?}") };
        let after = seen[&write.target].patched(patch);
        names.push(write.target.name.to_string());
        seen.insert(write.target, after);
    }
    (seen, names.join(" "))
}

#[test]
fn selected_routes_of_every_protocol_get_their_weights() {
    let protocols = ["httpRoute", "tcpRoute", "http2Route", "grpcRoute"];
    let routes = |canary: [i32; 4]| -> Value {
        let each = protocols.iter().zip(canary);
        each.map(|(protocol, weight)| http(protocol, protocol, weight)).collect()
    };
    let cases = [
        ("all", json!([]), [20, 20, 20, 20]),
        ("two of them", json!(["tcpRoute", "grpcRoute"]), [0, 20, 0, 20]),
    ];
    for (what, names, expected) in cases {
        let rollout = rollout(names);
        let before = mesh(routes([0, 0, 0, 0]), "a", "b");
        let (after, written) = planned(&rollout, &goal(20), &before);
        assert_eq!(after, mesh(routes(expected), "a", "b"), "{what}: nothing else changes");
        assert_eq!(written, "router", "{what}");
        assert_eq!(planned(&rollout, &goal(20), &after).1, "", "{what}: it is there");
        assert_eq!(routers(&rollout)[0].carried(&goal(0).sides, &after), 20, "{what}");
    }
    let absent = rollout(json!(["none"]));
    let fault = routers(&absent)[0].plan(&goal(20), &mesh(routes([0; 4]), "a", "b")).unwrap_err();
    assert_eq!(fault.message, "route none not found in virtual-router router");
}

/// What | hashes of old and new, weight | goal: canary hash, stable hash, weight | what is written,
/// in order | what both select then.
#[test]
fn traffic_leaves_before_its_node_and_comes_after_it() {
    let cases = [
        ("first deploy", ("", "", 0), ("a", "a", 0), "old new", ("a", "canary-hash")),
        ("a new canary", ("a", "canary-hash", 0), ("b", "a", 20), "new router", ("a", "b")),
        ("its next weight", ("a", "b", 20), ("b", "a", 60), "router", ("a", "b")),
        ("overtaken", ("a", "b", 60), ("c", "a", 0), "router new", ("a", "c")),
        ("promoted", ("a", "b", 100), ("b", "b", 0), "old router new", ("b", "canary-hash")),
        ("at rest", ("b", "canary-hash", 0), ("b", "b", 0), "", ("b", "canary-hash")),
    ];
    let rollout = rollout(json!([]));
    for (what, (old, new, weight), (canary, stable, wanted), expected, (last, next)) in cases {
        let before = mesh(json!([http("r", "httpRoute", weight)]), old, new);
        let goal = Goal {
            subset_hash: canary,
            stable_hash: stable,
            stable_subset_hash: stable,
            ..goal(wanted)
        };
        let (after, written) = planned(&rollout, &goal, &before);
        assert_eq!(written, expected, "{what}");
        assert_eq!(after, mesh(json!([http("r", "httpRoute", wanted)]), last, next), "{what}");
        assert_eq!(planned(&rollout, &goal, &after).1, "", "{what}: it is there");
        let behind = |side| routers(&rollout)[0].revision(side, &after).unwrap();
        let sides = (behind(TrafficSide::Stable), behind(TrafficSide::Canary));
        assert_eq!(sides, (last.to_owned(), next.to_owned()), "{what}");
    }
}

#[test]
fn the_router_is_the_one_that_the_service_names() {
    let rollout = rollout(json!([]));
    let router = &routers(&rollout)[0];
    let named = |reference: Value| {
        let found = router.leads_to(&seen(&[service(reference)]));
        found.into_iter().map(|need| need.object.to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(named(json!({ "name": "r" })), "VirtualRouter shop/r");
    assert_eq!(named(json!({ "name": "r", "namespace": "edge" })), "VirtualRouter edge/r");
    assert_eq!(named(json!(null)), "");
}

#[test]
fn what_cannot_be_used_is_named() {
    let field = "spec.strategy.canary.trafficRouting.appmesh.virtualService";
    let alone = json!([{ "name": "r", "httpRoute": { "action": {
        "weightedTargets": [target("old", 100)] } } }]);
    let unweighted = json!([{ "name": "r", "httpRoute": { "action": { "weightedTargets": [
        { "virtualNodeRef": { "name": "old" } }, target("new", 0)] } } }]);
    let targets = "spec.routes[0].httpRoute.action.weightedTargets: Invalid value: \"router\"";
    let with = |routes: Value| vec![service(json!({ "name": "router" })), virtual_router(routes)];
    let cases = [
        (
            vec![],
            format!(
                r#"{field}: Invalid value: "web.shop": virtualservices.appmesh.k8s.aws "web" not found"#
            ),
        ),
        (
            vec![service(json!({ "name": "router" }))],
            format!(
                r#"{field}: Invalid value: "router.shop": virtualrouters.appmesh.k8s.aws "router" not found"#
            ),
        ),
        (
            vec![service(json!(null))],
            format!(
                r#"{field}: Invalid value: "web": Virtual-service is not associated with virtual-router"#
            ),
        ),
        (
            with(json!([])),
            r#"spec.routes: Invalid value: "router": No routes defined for AppMesh virtual-router router"#
                .to_owned(),
        ),
        (
            with(alone),
            format!(
                "{targets}: Invalid number of weightedTargets (1) for AppMesh virtual-router \
                 router and route r, expected 2"
            ),
        ),
        (with(unweighted), format!("{targets}: route r is not well-formed")),
        (
            with(json!([{ "name": "r", "udpRoute": {} }])),
            "spec.routes[0]: Invalid value: \"router\": route r is not well-formed".to_owned(),
        ),
    ];
    let rollout = rollout(json!([]));
    for (objects, expected) in cases {
        let fault = routers(&rollout)[0].fault(&seen(&objects)).unwrap();
        assert_eq!(fault.to_string(), expected);
    }
    let objects = with(json!([http("r", "httpRoute", 0)]));
    let fault = routers(&rollout)[0].plan(&goal(0), &seen(&objects)).unwrap_err();
    assert_eq!(fault.message, "VirtualNode `old` not found in namespace `shop`");
    let path = "spec.strategy.canary.trafficRouting.appMesh";
    let none = tests::rollout(json!({ "appMesh": {} }));
    let fault = routers(&none)[0].misconfigured().unwrap().to_string();
    assert_eq!(
        fault,
        format!("{path}.virtualService: Required value: must provide virtual-service")
    );
    let nodeless = tests::rollout(json!({ "appMesh": { "virtualService": { "name": "web" } } }));
    let fault = routers(&nodeless)[0].misconfigured().unwrap().to_string();
    let field = "virtualNodeGroup.canaryVirtualNodeRef";
    assert_eq!(fault, format!("{path}.{field}: Required value: must provide virtual-node"));
}

#[test]
fn a_node_without_a_hash_goes_on_selecting_the_pods_of_every_revision() {
    let objects = seen(&[
        service(json!({ "name": "router" })),
        virtual_router(json!([http("r", "httpRoute", 0)])),
        node("old", Value::Null),
        node("new", json!("canary-hash")),
    ]);
    let goal = Goal { stable_subset_hash: "", ..goal(0) };
    let (after, written) = planned(&rollout(json!([])), &goal, &objects);
    assert_eq!(written, "new", "the stable node is left alone");
    let of_stable = after.iter().find(|(object, _)| *object.name == *"old").unwrap();
    assert_eq!(mesh::hash(of_stable.1), None);
}
