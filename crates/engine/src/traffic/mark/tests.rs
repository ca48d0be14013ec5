//! What is noted on an object of a user, and what goes back when a Rollout lets go of it.

use gradus_api::names::label;

use super::*;
use crate::traffic::tests::{goal, rollout};
use crate::traffic::{Destination, routers};

/// One object of a user, at rest.
struct Case {
    what: &'static str,
    routing: Value,
    kind: Kind,
    spec: Value,
}

fn cases() -> Vec<Case> {
    let weights = |name: &str| {
        json!([{ name: "stable", "weight": 100, "port": 80 }, { name: "other", "weight": 0 },
            { name: "canary", "weight": 0, "port": 80 }])
    };
    let destinations = json!([
        { "destination": { "host": "stable.shop.svc" }, "weight": 100 },
        { "destination": { "host": "canary" }, "weight": 0 },
    ]);
    let subsets = json!([
        { "destination": { "host": "web", "subset": "old" }, "weight": 100 },
        { "destination": { "host": "web", "subset": "new" }, "weight": 0 },
    ]);
    let plugin = |field: &str| {
        json!({ "plugins": { "argoproj-labs/gatewayAPI": { field: "web" } },
            "managedRoutes": [{ "name": "testers" }] })
    };
    vec![
        Case {
            what: "TraefikService",
            routing: json!({ "traefik": { "weightedTraefikServiceName": "web" } }),
            kind: crate::traffic::released_kind(7),
            spec: json!({ "weighted": { "sticky": {}, "services": weights("name") } }),
        },
        Case {
            what: "ApisixRoute",
            routing: json!({ "apisix": { "route": { "name": "web" } } }),
            kind: crate::traffic::released_kind(5),
            spec: json!({ "http": [{ "name": "web", "backends": weights("serviceName") }] }),
        },
        Case {
            what: "VirtualService by host",
            routing: json!({ "istio": { "virtualService": { "name": "web" } } }),
            kind: crate::traffic::released_kind(6),
            spec: json!({ "hosts": ["web"], "http": [{ "name": "stable", "route": destinations }] }),
        },
        Case {
            what: "VirtualService by subset",
            routing: json!({ "istio": {
                "virtualService": { "name": "web" },
                "destinationRule": {
                    "name": "web", "canarySubsetName": "new", "stableSubsetName": "old",
                },
            } }),
            kind: crate::traffic::released_kind(6),
            spec: json!({ "tcp": [{ "route": subsets }] }),
        },
        Case {
            what: "HTTPRoute",
            routing: plugin("httpRoute"),
            kind: crate::traffic::released_kind(8),
            spec: json!({ "rules": [{ "name": "canary", "backendRefs": weights("name") }] }),
        },
        Case {
            what: "TLSRoute",
            routing: plugin("tlsRoute"),
            kind: crate::traffic::released_kind(11),
            spec: json!({ "rules": [{ "backendRefs": weights("name") }] }),
        },
    ]
}

fn object(case: &Case) -> Value {
    json!({ "metadata": { "name": "web", "namespace": "shop", "annotations": { "a": "b" },
        "labels": { "c": "d" } }, "spec": case.spec })
}

fn reference(case: &Case) -> ObjectRef {
    ObjectRef::new(case.kind.clone(), &"shop".into(), &"web".into())
}

/// The object after the writes of the Rollout's router that reach it.
fn after(case: &Case, before: &Value, goal: &Goal<'_>) -> Value {
    let rollout = rollout(case.routing.clone());
    let target = reference(case);
    let mut seen = RoutingObjects::from([(target.clone(), view(before))]);
    if case.routing["istio"]["destinationRule"].is_object() {
        let rule = json!({ "metadata": { "name": "web" }, "spec": { "subsets": [
            { "name": "old" }, { "name": "new" },
        ] } });
        let name = ObjectRef::new(crate::traffic::released_kind(1), &"shop".into(), &"web".into());
        seen.insert(name, view(&rule));
    }
    let writes = planned(&*routers(&rollout)[0], &rollout, goal, &seen).unwrap();
    let writes = writes.iter().filter(|write| write.target == target);
    writes.fold(before.clone(), |object, write| match &write.op {
        RouteOp::Merge(patch) => Value::clone(&view(&object).patched(patch).0),
        other => panic!("{other:?}"),
    })
}

fn view(object: &Value) -> RouteView {
    RouteView(Arc::new(object.clone()))
}

fn note(object: &Value) -> Option<&str> {
    object["metadata"]["annotations"][annotation::TRAFFIC].as_str()
}

#[test]
fn a_note_is_there_while_traffic_is_moved_and_its_release_gives_back_what_the_user_applied() {
    for case in cases() {
        let what = case.what;
        let before = object(&case);
        let moved = after(&case, &before, &goal(30));
        assert_ne!(moved["spec"], before["spec"], "{what}");
        let known = note(&moved).unwrap_or_else(|| panic!("{what}: no note"));
        assert!(known.starts_with("{\"app\":"), "{what}: {known}");
        let Undo::Patch(patch) = released(&view(&moved), &["app".into()]) else { panic!("{what}") };
        assert_eq!(*view(&moved).patched(&patch).0, before, "{what}: released");
        assert_eq!(after(&case, &moved, &goal(0)), before, "{what}: at rest");
        assert_eq!(after(&case, &before, &goal(0)), before, "{what}: nothing was moved");
    }
}

#[test]
fn what_others_have_moved_stays() {
    let case = &cases()[0];
    let mut moved = after(case, &object(case), &goal(30));
    let other = json!({ "api": { "stable": "s", "canary": "c" } });
    let mut both: Value = serde_json::from_str(note(&moved).unwrap()).unwrap();
    both["api"] = other["api"].clone();
    moved["metadata"]["annotations"][annotation::TRAFFIC] = json!(both.to_string());
    let Undo::Patch(patch) = released(&view(&moved), &["app".into()]) else { panic!() };
    let left = view(&moved).patched(&patch);
    let noted = left.annotation(annotation::TRAFFIC).unwrap();
    assert_eq!(serde_json::from_str::<Value>(noted).unwrap(), other);
    assert_eq!(*left.spec(), case.spec);
}

#[test]
fn routes_of_steps_destinations_of_experiments_and_the_label_go() {
    let case = cases().remove(4);
    let moved = Moved {
        stable: "stable".to_owned(),
        canary: "canary".to_owned(),
        additional: vec!["trial".to_owned()],
        routes: vec!["testers".to_owned()],
        label: Some(label::GATEWAY_CANARY.to_owned()),
    };
    let mut route = object(&case);
    route["metadata"]["annotations"][annotation::TRAFFIC] =
        text(&Book::from([("app".into(), moved)]));
    route["metadata"]["labels"][label::GATEWAY_CANARY] = json!("in-progress");
    route["spec"]["rules"] = json!([
        { "name": "canary", "backendRefs": [
            { "name": "stable", "weight": 60, "port": 80 }, { "name": "other", "weight": 0 },
            { "name": "canary", "weight": 30, "port": 80 }, { "name": "trial", "weight": 10 },
        ] },
        { "name": "testers-1", "backendRefs": [{ "name": "canary" }] },
    ]);
    let Undo::Patch(patch) = released(&view(&route), &["app".into()]) else { panic!() };
    assert_eq!(*view(&route).patched(&patch).0, object(&case));
}

#[test]
fn a_note_of_somebody_who_put_the_weights_back_goes_alone() {
    let case = &cases()[0];
    let moved = after(case, &object(case), &goal(30));
    let mut reverted = object(case);
    reverted["metadata"]["annotations"][annotation::TRAFFIC] =
        moved["metadata"]["annotations"][annotation::TRAFFIC].clone();
    assert_eq!(after(case, &reverted, &goal(0)), object(case));
}

#[test]
fn an_experiment_alone_is_noted_too() {
    let case = cases().remove(2);
    let trial = Destination { service: "trial".into(), hash: "t".into(), port: None, weight: 10 };
    let goal = Goal { additional: std::slice::from_ref(&trial), ..goal(0) };
    let moved = after(&case, &object(&case), &goal);
    assert!(note(&moved).is_some_and(|note| note.contains("\"additional\":[\"trial\"]")));
    let Undo::Patch(patch) = released(&view(&moved), &["app".into()]) else { panic!() };
    assert_eq!(*view(&moved).patched(&patch).0, object(&case));
}
