//! What is applied: one application for each way to split traffic, each in a namespace of its own.

use gradus_api::names;
use serde_json::{Value, json};

use super::pods::PORT;

/// The applications by the router that leads to them.
pub const ROUTERS: [&str; 4] = ["gateway", "nginx", "traefik", "blue-green"];

/// The name of the Rollout and of everything that leads to it.
pub const NAME: &str = "web";

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

/// What all of them share.
pub fn shared(port: u16) -> Vec<Value> {
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
        json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
            "metadata": { "name": "edge", "namespace": "default" },
            "spec": {
                "gatewayClassName": "traefik",
                "listeners": [{
                    "name": "web", "protocol": "HTTP", "port": port,
                    "allowedRoutes": { "namespaces": { "from": "All" } },
                }],
            },
        }),
    ]
}

/// The application behind this router.
pub fn app(router: &'static str) -> App {
    let mut app = App { router, objects: vec![service("stable"), service("canary")] };
    let host = app.host();
    let route = match router {
        "nginx" => ingress(&host),
        "traefik" => {
            app.objects.push(ingress_route(&host));
            traefik_service()
        }
        "blue-green" => http_route(&host, &[("stable", 1)]),
        _ => http_route(&host, &[("stable", 100), ("canary", 0)]),
    };
    app.objects.push(route);
    app.objects.push(rollout(router));
    app
}

fn strategy(router: &str) -> Value {
    let routing = match router {
        "blue-green" => {
            return json!({ "blueGreen": {
                "activeService": "stable", "previewService": "canary", "scaleDownDelaySeconds": 3,
            } });
        }
        "nginx" => json!({ "nginx": { "stableIngress": NAME } }),
        "traefik" => json!({ "traefik": { "weightedTraefikServiceName": NAME } }),
        _ => json!({ "plugins": { "argoproj-labs/gatewayAPI": { "httpRoute": NAME } } }),
    };
    json!({ "canary": {
        "stableService": "stable", "canaryService": "canary",
        "scaleDownDelaySeconds": 3, "abortScaleDownDelaySeconds": 3,
        "trafficRouting": routing,
        "steps": [
            { "setWeight": 20 }, { "pause": {} }, { "setWeight": 60 }, { "pause": {} },
        ],
    } })
}

fn rollout(router: &str) -> Value {
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
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [container] },
            },
            "strategy": strategy(router),
        },
    })
}

fn service(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": name },
        "spec": {
            "selector": { "app": "web" },
            "ports": [{ "port": 80, "targetPort": PORT }],
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
            "parentRefs": [{ "name": "edge", "namespace": "default" }],
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
