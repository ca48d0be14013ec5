//! What is applied: one application for each way to split traffic, each in a namespace of its own.

use gradus_api::names;
use serde_json::{Value, json};

use super::{front::DataPlane, pods::PORT};
use crate::plugins::NGINX;

/// The name of the Rollout and of everything that leads to it.
pub const NAME: &str = "web";

/// Argo Rollouts' sample of a traffic plugin, unmodified: it splits by a second Ingress.
pub const PLUGIN: &str = "plugin";

/// The name of what takes requests from outside.
pub const EDGE: &str = "edge";

/// The route by which a step has requests copied.
const COPIES: &str = "copies";

/// So many of a hundred requests are copied meanwhile.
pub const COPIED: usize = 50;

/// An application: its host is its namespace.
pub struct App {
    pub router: &'static str,
    pub objects: Vec<Value>,
}

impl App {
    pub fn host(&self) -> String {
        format!("{}.test", self.router)
    }
}

/// The image of a version.
pub fn image(version: &str) -> String {
    format!("example.com/web:{version}")
}

/// What all applications behind Traefik share.
pub fn shared_by_traefik(port: u16) -> Vec<Value> {
    vec![
        json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass",
            "metadata": { "name": "traefik" },
            "spec": { "controllerName": "traefik.io/gateway-controller" },
        }),
        json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "IngressClass",
            "metadata": { "name": "nginx" },
            "spec": { "controller": "k8s.io/ingress-nginx" },
        }),
        gateway("traefik", port, json!([])),
    ]
}

/// What all applications behind Istio share: a gateway of Istio's own kind, and one of the Gateway API
/// by the same Envoy.
pub fn shared_by_istio(port: u16) -> Vec<Value> {
    let service = format!("{EDGE}.default.svc.cluster.local");
    vec![
        json!({
            "apiVersion": "networking.istio.io/v1", "kind": "Gateway",
            "metadata": { "name": EDGE, "namespace": "default" },
            "spec": {
                "selector": labels_of_edge(),
                "servers": [{
                    "port": { "number": port, "name": "http", "protocol": "HTTP" },
                    "hosts": ["*"],
                }],
            },
        }),
        gateway("istio", port, json!([{ "type": "Hostname", "value": service }])),
    ]
}

/// The Service and the pod that stand for Envoy in the cluster.
pub fn gateway_of_istio(port: u16) -> Vec<Value> {
    vec![
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": { "name": EDGE, "namespace": "default" },
            "spec": {
                "selector": labels_of_edge(),
                "ports": [{ "name": "http", "port": port, "targetPort": port }],
            },
        }),
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": EDGE, "namespace": "default", "labels": labels_of_edge() },
            "spec": { "containers": [{ "name": "envoy", "image": "example.com/envoy:1" }] },
        }),
    ]
}

/// By these labels gateways of Istio find their Envoy.
pub fn labels_of_edge() -> Value {
    json!({ "istio": "ingressgateway" })
}

fn gateway(class: &str, port: u16, addresses: Value) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
        "metadata": { "name": EDGE, "namespace": "default" },
        "spec": {
            "gatewayClassName": class,
            "addresses": addresses,
            "listeners": [{
                "name": "web", "protocol": "HTTP", "port": port,
                "allowedRoutes": { "namespaces": { "from": "All" } },
            }],
        },
    })
}

/// The application behind this router.
pub fn app(plane: DataPlane, router: &'static str) -> App {
    let mut app = App { router, objects: vec![service("stable"), service("canary")] };
    let host = app.host();
    let both = [("stable", 100), ("canary", 0)];
    app.objects.extend(match (plane, router) {
        (DataPlane::Traefik, "nginx" | PLUGIN) => vec![ingress(&host)],
        (DataPlane::Traefik, "traefik") => vec![ingress_route(&host), traefik_service()],
        (DataPlane::Traefik, "blue-green") => vec![http_route(&host, &[("stable", 1)])],
        (DataPlane::Istio, "blue-green") => vec![virtual_service(&host, &[("stable", "", 100)])],
        (DataPlane::Istio, "hosts" | "mirror") => {
            vec![virtual_service(&host, &[("stable", "", 100), ("canary", "", 0)])]
        }
        (DataPlane::Istio, "subsets") => vec![
            service(NAME),
            virtual_service(&host, &[(NAME, "stable", 100), (NAME, "canary", 0)]),
            destination_rule(),
        ],
        _ => vec![http_route(&host, &both)],
    });
    app.objects.push(rollout(plane, router));
    app
}

fn strategy(plane: DataPlane, router: &str) -> Value {
    let routing = match (plane, router) {
        (_, "blue-green") => {
            return json!({ "blueGreen": {
                "activeService": "stable", "previewService": "canary", "scaleDownDelaySeconds": 3,
            } });
        }
        (DataPlane::Traefik, "nginx") => json!({ "nginx": { "stableIngress": NAME } }),
        (DataPlane::Traefik, PLUGIN) => {
            json!({ "plugins": { NGINX.0: { "stableIngress": NAME } } })
        }
        (DataPlane::Traefik, "traefik") => {
            json!({ "traefik": { "weightedTraefikServiceName": NAME } })
        }
        (DataPlane::Istio, "hosts") => json!({ "istio": { "virtualService": { "name": NAME } } }),
        (DataPlane::Istio, "mirror") => json!({
            "istio": { "virtualService": { "name": NAME } },
            "managedRoutes": [{ "name": COPIES }],
        }),
        (DataPlane::Istio, "subsets") => json!({ "istio": {
            "virtualService": { "name": NAME },
            "destinationRule": {
                "name": NAME, "stableSubsetName": "stable", "canarySubsetName": "canary",
            },
        } }),
        _ => json!({ "plugins": { "argoproj-labs/gatewayAPI": { "httpRoute": NAME } } }),
    };
    let mut canary = json!({
        "scaleDownDelaySeconds": 3, "abortScaleDownDelaySeconds": 3,
        "trafficRouting": routing, "steps": steps(router),
    });
    if router != "subsets" {
        canary["stableService"] = "stable".into();
        canary["canaryService"] = "canary".into();
    }
    json!({ "canary": canary })
}

fn steps(router: &str) -> Value {
    if router != "mirror" {
        return json!([{ "setWeight": 20 }, { "pause": {} }, { "setWeight": 60 }, { "pause": {} }]);
    }
    json!([
        { "setCanaryScale": { "replicas": 1 } },
        { "setMirrorRoute": {
            "name": COPIES, "percentage": COPIED, "match": [{ "method": { "exact": "GET" } }],
        } },
        { "pause": {} },
        { "setWeight": 20 },
        { "pause": {} },
        { "setMirrorRoute": { "name": COPIES } },
        { "setCanaryScale": { "matchTrafficWeight": true } },
        { "setWeight": 60 },
        { "pause": {} },
    ])
}

fn rollout(plane: DataPlane, router: &str) -> Value {
    // As a user would write it who wants no lost requests: a pod that goes waits until nobody
    // sends it any more.
    let container = json!({
        "name": "web", "image": image("v1"), "ports": [{ "containerPort": PORT }],
        "lifecycle": { "preStop": { "sleep": { "seconds": 3 } } },
    });
    json!({
        "apiVersion": names::API_VERSION, "kind": names::kind::ROLLOUT,
        "metadata": { "name": NAME },
        "spec": {
            "replicas": 3,
            // Before a proxy knows the address of a pod, a subset that has no other is empty for it.
            "minReadySeconds": if router == "subsets" { 3 } else { 0 },
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [container] },
            },
            "strategy": strategy(plane, router),
        },
    })
}

fn service(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": name },
        "spec": {
            "selector": { "app": "web" },
            "ports": [{ "name": "http", "port": 80, "targetPort": PORT }],
        },
    })
}

/// A VirtualService with one route: host, subset if any, and weight of each destination.
fn virtual_service(host: &str, to: &[(&str, &str, i32)]) -> Value {
    let destination = |(host, subset, weight): &(&str, &str, i32)| {
        let mut destination = json!({ "host": host, "port": { "number": 80 } });
        if !subset.is_empty() {
            destination["subset"] = (*subset).into();
        }
        json!({ "destination": destination, "weight": weight })
    };
    json!({
        "apiVersion": "networking.istio.io/v1", "kind": "VirtualService",
        "metadata": { "name": NAME },
        "spec": {
            "hosts": [host],
            "gateways": [format!("default/{EDGE}")],
            "http": [{ "name": "main", "route": to.iter().map(destination).collect::<Vec<_>>() }],
        },
    })
}

fn destination_rule() -> Value {
    json!({
        "apiVersion": "networking.istio.io/v1", "kind": "DestinationRule",
        "metadata": { "name": NAME },
        "spec": {
            "host": NAME,
            "subsets": [
                { "name": "stable", "labels": { "app": "web" } },
                { "name": "canary", "labels": { "app": "web" } },
            ],
        },
    })
}

fn http_route(host: &str, backends: &[(&str, i32)]) -> Value {
    let backend =
        |(name, weight): &(&str, i32)| json!({ "name": name, "port": 80, "weight": weight });
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
        "metadata": { "name": NAME },
        "spec": {
            "parentRefs": [{ "name": EDGE, "namespace": "default" }],
            "hostnames": [host],
            "rules": [{ "backendRefs": backends.iter().map(backend).collect::<Vec<_>>() }],
        },
    })
}

fn ingress(host: &str) -> Value {
    let backend = json!({ "service": { "name": "stable", "port": { "number": 80 } } });
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": { "name": NAME },
        "spec": {
            "ingressClassName": "nginx",
            "rules": [{
                "host": host,
                "http": { "paths": [{ "path": "/", "pathType": "Prefix", "backend": backend }] },
            }],
        },
    })
}

fn traefik_service() -> Value {
    json!({
        "apiVersion": "traefik.io/v1alpha1", "kind": "TraefikService",
        "metadata": { "name": NAME },
        "spec": { "weighted": { "services": [
            { "name": "stable", "port": 80, "weight": 100 },
            { "name": "canary", "port": 80, "weight": 0 },
        ] } },
    })
}

fn ingress_route(host: &str) -> Value {
    json!({
        "apiVersion": "traefik.io/v1alpha1", "kind": "IngressRoute",
        "metadata": { "name": NAME },
        "spec": {
            "entryPoints": ["web"],
            "routes": [{
                "match": format!("Host(`{host}`)"), "kind": "Rule",
                "services": [{ "name": NAME, "kind": "TraefikService" }],
            }],
        },
    })
}
