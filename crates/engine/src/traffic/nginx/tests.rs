//! The canary Ingress: made once, then only what differs is patched.

use serde_json::{Value, json};

use super::*;
use crate::traffic::routers;
use crate::traffic::tests::{self, goal, seen};

fn rollout(nginx: Value, more: Value) -> RolloutView {
    let mut routing = json!({ "nginx": nginx });
    routing.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    tests::rollout(routing)
}

fn path(service: &str) -> Value {
    let service = json!({ "name": service, "port": { "number": 80 } });
    json!({ "path": format!("/{}", service["name"].as_str().unwrap()), "backend": { "service": service } })
}

fn stable() -> Value {
    json!({
        "metadata": { "name": "web", "namespace": "shop", "annotations": {
            "kubernetes.io/ingress.class": "nginx", "nginx.ingress.kubernetes.io/rewrite": "/",
        } },
        "spec": { "ingressClassName": "nginx", "tls": [{ "hosts": ["x"] }], "rules": [
            { "host": "x", "http": { "paths": [path("stable"), path("other")] } },
            { "host": "y", "http": { "paths": [path("other")] } },
            { "host": "z" },
            { "http": { "paths": [{ "backend": { "resource": { "kind": "Bucket" } } }] } },
        ] },
    })
}

/// The writes for one router, each with what is told.
fn plan(rollout: &RolloutView, weight: i32, objects: &[Value]) -> Result<Vec<RouteWrite>, String> {
    let seen = seen(objects);
    let found = routers(rollout)[0].plan(&goal(weight), &seen);
    found.map_err(|fault| fault.message)
}

fn created(rollout: &RolloutView) -> Value {
    let writes = plan(rollout, 20, &[stable()]).unwrap();
    let RouteOp::Create(manifest) = &writes[0].op else { panic!("{writes:?}") };
    manifest.clone()
}

#[test]
fn the_canary_ingress_has_the_rules_that_lead_to_stable_and_nothing_else() {
    let config = json!({
        "stableIngress": "web",
        "additionalIngressAnnotations": { "canary-by-header": "x-a",
            "nginx.ingress.kubernetes.io/affinity": "cookie" },
        "canaryIngressAnnotations": { "team": "shop" },
    });
    let rollout = rollout(config, json!({ "maxTrafficWeight": 1000 }));
    let writes = plan(&rollout, 20, &[stable()]).unwrap();
    let told = "Creating canary ingress `app-web-canary` with weight `20`".to_owned();
    assert_eq!(writes[0].told, [("CreatingCanaryIngress", told)]);
    let manifest = created(&rollout);
    let rules = json!([{ "host": "x", "http": { "paths": [
        { "path": "/stable", "backend": { "service": { "name": "canary", "port": { "number": 80 } } } },
        path("other"),
    ] } }]);
    let spec = json!({ "ingressClassName": "nginx", "tls": [{ "hosts": ["x"] }], "rules": rules });
    assert_eq!(manifest["spec"], spec);
    let notes = json!({
        "kubernetes.io/ingress.class": "nginx",
        "nginx.ingress.kubernetes.io/affinity": "cookie",
        "nginx.ingress.kubernetes.io/canary": "true",
        "nginx.ingress.kubernetes.io/canary-by-header": "x-a",
        "nginx.ingress.kubernetes.io/canary-weight": "20",
        "nginx.ingress.kubernetes.io/canary-weight-total": "1000",
        "team": "shop",
    });
    assert_eq!(manifest["metadata"]["annotations"], notes);
    let owner = &manifest["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["controller"], &owner["name"]), (&json!(true), &json!("app")));
}

#[test]
fn only_what_differs_is_patched_and_nothing_when_all_is_there() {
    let rollout = rollout(json!({ "stableIngress": "web" }), json!({}));
    let mut canary = created(&rollout);
    canary["metadata"]["annotations"]["theirs"] = json!("kept");
    assert_eq!(plan(&rollout, 20, &[stable(), canary.clone()]).unwrap(), []);
    let writes = plan(&rollout, 40, &[stable(), canary.clone()]).unwrap();
    let key = "nginx.ingress.kubernetes.io/canary-weight";
    let patch = json!({ "metadata": { "annotations": { key: "40" } } });
    assert_eq!(writes[0].op, RouteOp::Merge(patch));
    let told = "Updating Ingress `app-web-canary` to desiredWeight '40'".to_owned();
    assert_eq!(writes[0].told, [("PatchingCanaryIngress", told)]);
    let mut bare = stable();
    bare["spec"].as_object_mut().unwrap().remove("tls");
    let writes = plan(&rollout, 20, &[bare, canary.clone()]).unwrap();
    assert_eq!(writes[0].op, RouteOp::Merge(json!({ "spec": { "tls": null } })), "tls follows");
    let routers = routers(&rollout);
    let sides = goal(0).sides;
    assert_eq!(routers[0].carried(&sides, &seen(&[stable(), canary])), 20);
    assert_eq!(routers[0].carried(&sides, &seen(&[stable()])), 0, "not made yet");
}

#[test]
fn what_cannot_be_done_is_said() {
    let one = rollout(json!({ "stableIngress": "web" }), json!({}));
    let mut foreign = created(&one);
    foreign["metadata"]["ownerReferences"][0]["uid"] = json!("u-2");
    let mut elsewhere = stable();
    elsewhere["spec"]["rules"] = json!([{ "http": { "paths": [path("other")] } }]);
    let cases = [
        (
            vec![],
            "error retrieving stableIngress `web` from cache: ingress.networking.k8s.io \"web\" not found",
        ),
        (vec![elsewhere], "ingress `web` has no rules using service stable backend"),
        (vec![stable(), foreign], "canary ingress `app-web-canary` controlled by different object"),
    ];
    for (objects, expected) in cases {
        assert_eq!(plan(&one, 20, &objects).unwrap_err(), expected);
    }
}

#[test]
fn every_ingress_gets_a_canary_under_a_name_that_fits() {
    let long = "x".repeat(253);
    let config = json!({ "stableIngresses": ["web", long], "annotationPrefix": "corp" });
    let rollout = rollout(config, json!({}));
    let mut second = stable();
    second["metadata"]["name"] = json!(long);
    let writes = plan(&rollout, 20, &[stable(), second]).unwrap();
    let names: Vec<&str> = writes.iter().map(|write| &*write.target.name).collect();
    let cut = format!("app-{}-canary", "x".repeat(242));
    assert_eq!(names, ["app-web-canary", &cut]);
    assert_eq!(cut.len(), 253);
    let RouteOp::Create(manifest) = &writes[1].op else { panic!("{writes:?}") };
    assert_eq!(manifest["metadata"]["annotations"]["corp/canary-weight"], "20");
    let needs = routers(&rollout)[0].needs();
    let lengths: Vec<_> = needs.iter().map(|need| need.object.name.len()).collect();
    assert_eq!(lengths, [3, 14, 253, 253], "both of each");
    let required: Vec<_> = needs.iter().map(|need| need.is_required).collect();
    assert_eq!(required, [true, false, true, false], "its own Ingress need not be there");
}

#[test]
fn a_name_is_never_cut_inside_a_character() {
    for before in 0..8 {
        let name = format!("{}{}", "x".repeat(235 + before), "ä€😀".repeat(4));
        let rollout = rollout(json!({ "stableIngress": name }), json!({}));
        let canary = routers(&rollout)[0].needs().remove(1).object.name;
        assert!(canary.len() <= 253 && canary.ends_with("-canary"), "{canary}");
    }
}
