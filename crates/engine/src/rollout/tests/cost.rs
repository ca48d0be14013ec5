//! What a change of the weight costs: one write of each routing object that carries weights, and no
//! question to anybody.

use serde_json::{Value, json};

use super::at;
use super::fixture::Fixture;

/// Routing, the objects of users, and the object that carries the weights.
fn routers() -> Vec<(Value, Vec<Value>, &'static str)> {
    let object = |kind: &str, name: &str, spec: Value| json!({ "kind": kind, "metadata": { "name": name }, "spec": spec });
    let hosts = ["stable", "canary"].map(|host| json!({ "destination": { "host": host } }));
    let rule = |key: &str| ["stable", "canary"].map(|name| json!({ key: name, "port": 80 }));
    let path = json!({ "backend": { "service": { "name": "stable", "port": { "number": 80 } } } });
    let ingress =
        || object("Ingress", "web", json!({ "rules": [{ "http": { "paths": [path] } }] }));
    let targets =
        ["stable", "canary"].map(|node| json!({ "virtualNodeRef": { "name": node }, "weight": 1 }));
    let main = json!({ "name": "r", "httpRoute": { "action": { "weightedTargets": targets } } });
    let named =
        json!({ "provider": { "virtualRouter": { "virtualRouterRef": { "name": "web" } } } });
    vec![
        (
            json!({ "istio": { "virtualService": { "name": "web" } } }),
            vec![object("VirtualService", "web", json!({ "http": [{ "route": hosts }] }))],
            "virtualservice web",
        ),
        (json!({ "nginx": { "stableIngress": "web" } }), vec![ingress()], "weight"),
        (json!({ "alb": { "ingress": "web", "servicePort": 80 } }), vec![ingress()], "patch web"),
        (json!({ "smi": {} }), vec![], "trafficsplit web"),
        (
            json!({ "ambassador": { "mappings": ["web"] } }),
            vec![object("Mapping", "web", json!({ "service": "stable" }))],
            "mapping web-canary",
        ),
        (
            json!({ "appMesh": { "virtualService": { "name": "web" }, "virtualNodeGroup": {
                "canaryVirtualNodeRef": { "name": "canary" },
                "stableVirtualNodeRef": { "name": "stable" } } } }),
            vec![
                object("VirtualService", "web", named),
                object("VirtualRouter", "web", json!({ "routes": [main] })),
                object("VirtualNode", "stable", json!({})),
                object("VirtualNode", "canary", json!({})),
            ],
            "virtualrouter web",
        ),
        (
            json!({ "traefik": { "weightedTraefikServiceName": "web" } }),
            vec![object(
                "TraefikService",
                "web",
                json!({ "weighted": { "services": rule("name") } }),
            )],
            "traefikservice web",
        ),
        (
            json!({ "apisix": { "route": { "name": "web" } } }),
            vec![object(
                "ApisixRoute",
                "web",
                json!({ "http": [{ "name": "web", "backends": rule("serviceName") }] }),
            )],
            "apisixroute web",
        ),
        (
            json!({ "plugins": { "argoproj-labs/gatewayAPI": { "httpRoute": "web" } } }),
            vec![object("HTTPRoute", "web", json!({ "rules": [{ "backendRefs": rule("name") }] }))],
            "httproute web",
        ),
    ]
}

#[test]
fn a_weight_costs_one_write_of_each_routing_object_and_no_question() {
    let steps = json!([
        { "setWeight": 20 }, { "pause": {} }, { "setCanaryScale": { "replicas": 5 } },
        { "pause": {} }, { "setWeight": 60 }, { "pause": {} },
    ]);
    for (routing, objects, carrier) in routers() {
        let what = routing.to_string();
        let mut fixture = Fixture::routed(5, routing, json!({ "steps": steps }));
        for object in objects {
            fixture = fixture.with_route(object);
        }
        fixture.settle(at(0));
        fixture.set_image("v2");
        fixture.settle(at(1));
        fixture.promote();
        fixture.settle(at(2));
        assert_eq!(fixture.status()["currentStepIndex"], 3, "{what}");
        fixture.promote();
        fixture.take_lists();
        let written = fixture.rest(at(3));
        assert_eq!(fixture.status()["canary"]["weights"]["canary"]["weight"], 60, "{what}");
        assert_eq!(fixture.status()["currentStepIndex"], 5, "{what}");
        let changes: Vec<&String> =
            written.iter().filter(|line| !line.contains("status")).collect();
        assert_eq!(changes.len(), 1, "{what}: {written:?}");
        assert!(changes[0].contains(carrier), "{what}: {written:?}");
        assert_eq!(fixture.take_lists(), 0, "{what}: nothing is asked");
    }
}
