//! The annotations of an ALB Ingress: to the letter, and nothing of others is touched.

use std::sync::Arc;

use gradus_api::rollout::canary::SetHeaderRoute;
use gradus_api::traffic::ManagedRoute;
use serde_json::{Value, json};

use super::*;
use crate::traffic::tests::{self, goal, seen};
use crate::traffic::{Destination, routers};

const ACTION: &str = "alb.ingress.kubernetes.io/actions.stable";
const BOOKS: &str = "rollouts.argoproj.io/managed-alb-annotations";

fn rollout(more: Value) -> RolloutView {
    let mut alb = json!({ "ingress": "web", "servicePort": 443 });
    alb.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    tests::rollout(json!({ "alb": alb }))
}

fn ingress(name: &str, annotations: Value) -> Value {
    let backend = json!({ "service": { "name": "stable", "port": { "name": "use-annotation" } } });
    json!({
        "metadata": { "name": name, "namespace": "shop", "annotations": annotations },
        "spec": { "rules": [
            { "host": "x", "http": { "paths": [{ "path": "/*", "backend": backend }] } },
            { "host": "z" },
        ] },
    })
}

/// The Ingress as the planned write leaves it, and the messages; `None` if nothing is missing.
fn planned(rollout: &RolloutView, goal: &Goal<'_>, object: &Value) -> Option<(Value, Vec<String>)> {
    let seen = seen(std::slice::from_ref(object));
    let mut writes = routers(rollout)[0].plan(goal, &seen).unwrap();
    let write = writes.pop()?;
    let RouteOp::Merge(patch) = &write.op else { panic!("{write:?}") };
    let after = RouteView(Arc::new(object.clone())).patched(patch);
    let told = write.told.into_iter().map(|(_, message)| message).collect();
    Some((Value::clone(&after.0), told))
}

#[test]
fn the_action_is_written_to_the_letter_beside_what_others_keep() {
    let rollout = rollout(json!({}));
    let theirs = r#"{"other":["alb.ingress.kubernetes.io/actions.x"]}"#;
    let object = ingress("web", json!({ "theirs": "kept", BOOKS: theirs }));
    let (after, told) = planned(&rollout, &goal(20), &object).unwrap();
    let notes = &after["metadata"]["annotations"];
    let action = r#"{"Type":"forward","ForwardConfig":{"TargetGroups":[{"ServiceName":"canary","ServicePort":"443","Weight":20},{"ServiceName":"stable","ServicePort":"443","Weight":80}]}}"#;
    assert_eq!(notes[ACTION], action);
    let books =
        format!(r#"{{"app":["{ACTION}"],"other":["alb.ingress.kubernetes.io/actions.x"]}}"#);
    assert_eq!((&notes[BOOKS], &notes["theirs"]), (&json!(books), &json!("kept")));
    assert_eq!(told, ["Updating Ingress `web` to desiredWeight '20'"]);
    assert_eq!(planned(&rollout, &goal(20), &after), None, "nothing is missing any more");
    let sides = goal(0).sides;
    assert_eq!(routers(&rollout)[0].carried(&sides, &seen(&[after])), 20);
    assert_eq!(routers(&rollout)[0].carried(&sides, &seen(&[object])), 0);
}

#[test]
fn an_experiment_gets_its_part_between_the_two() {
    let rollout = rollout(json!({}));
    let one = Destination { service: "try".into(), hash: "c".into(), port: None, weight: 5 };
    let goal = Goal { additional: &[one], ..goal(20) };
    let (after, _) = planned(&rollout, &goal, &ingress("web", json!({}))).unwrap();
    let action: Value =
        serde_json::from_str(after["metadata"]["annotations"][ACTION].as_str().unwrap()).unwrap();
    let groups = action["ForwardConfig"]["TargetGroups"].as_array().unwrap();
    let parts: Vec<String> =
        groups.iter().map(|one| format!("{} {}", one["ServiceName"], one["Weight"])).collect();
    assert_eq!(parts, ["\"canary\" 20", "\"try\" 5", "\"stable\" 75"]);
}

#[test]
fn a_root_service_ping_pong_a_prefix_and_stickiness_have_their_say() {
    let more = json!({
        "rootService": "root", "annotationPrefix": "corp",
        "stickinessConfig": { "enabled": true, "durationSeconds": 60 },
    });
    let rollout = rollout(more);
    let mut object = ingress("web", json!({}));
    let name = object.pointer_mut("/spec/rules/0/http/paths/0/backend/service/name").unwrap();
    *name = json!("root");
    let mut goal = goal(25);
    goal.sides.ping_pong = Some(Backends { stable: "pong", canary: "ping" });
    let (after, _) = planned(&rollout, &goal, &object).unwrap();
    let action = r#"{"Type":"forward","ForwardConfig":{"TargetGroups":[{"ServiceName":"ping","ServicePort":"443","Weight":25},{"ServiceName":"pong","ServicePort":"443","Weight":75}],"TargetGroupStickinessConfig":{"Enabled":true,"DurationSeconds":60}}}"#;
    assert_eq!(after["metadata"]["annotations"]["corp/actions.root"], action);
}

#[test]
fn a_header_route_is_an_action_a_condition_and_the_first_path() {
    let rollout = rollout(json!({}));
    let managed: Vec<ManagedRoute> =
        serde_json::from_value(json!([{ "name": "first" }, { "name": "second" }])).unwrap();
    let route = |name: &str, matches: Value| -> SetHeaderRoute {
        serde_json::from_value(json!({ "name": name, "match": matches })).unwrap()
    };
    let by =
        |name: &str, value: &str| json!({ "headerName": name, "headerValue": { "exact": value } });
    let second = route("second", json!([by("x-a", "1"), by("x-b", "2"), by("x-a", "3")]));
    let first = route("first", json!([by("x-c", "4")]));
    let object = ingress("web", json!({}));
    let mut goal = Goal { managed_routes: &managed, ..goal(0) };
    let (bare, _) = planned(&rollout, &goal, &object).unwrap();
    goal.header_routes = vec![&second, &first];
    let (after, told) = planned(&rollout, &goal, &bare).unwrap();
    let notes = &after["metadata"]["annotations"];
    let action = r#"{"Type":"forward","ForwardConfig":{"TargetGroups":[{"ServiceName":"canary","ServicePort":"443","Weight":100}]}}"#;
    assert_eq!(notes["alb.ingress.kubernetes.io/actions.second"], action);
    let condition = r#"[{"field":"http-header","httpHeaderConfig":{"httpHeaderName":"x-a","values":["1","3"]}},{"field":"http-header","httpHeaderConfig":{"httpHeaderName":"x-b","values":["2"]}}]"#;
    assert_eq!(notes["alb.ingress.kubernetes.io/conditions.second"], condition);
    let paths = after["spec"]["rules"][0]["http"]["paths"].as_array().unwrap();
    let names: Vec<&Value> = paths.iter().map(backend).collect();
    assert_eq!(names, ["first", "second", "stable"], "in order of precedence");
    let head = json!({ "path": "/*", "pathType": "ImplementationSpecific", "backend": {
        "service": { "name": "first", "port": { "name": "use-annotation" } } } });
    assert_eq!(paths[0], head);
    let route = |name: &str| format!("Updating Ingress `web` to headerRoute '{name}'");
    assert_eq!(told, [route("first"), route("second")]);
    assert!(notes[BOOKS].as_str().unwrap().contains("conditions.second"));
    assert_eq!(planned(&rollout, &goal, &after), None, "nothing is missing any more");

    goal.header_routes = Vec::new();
    let (gone, told) = planned(&rollout, &goal, &after).unwrap();
    assert_eq!(gone, bare);
    assert_eq!(told, ["Updating Ingress `web` removing managed routes"]);
}

#[test]
fn each_of_several_ingresses_is_brought_there() {
    let rollout = rollout(json!({ "ingress": "", "ingresses": ["one", "two"] }));
    let (one, _) =
        planned(&self::rollout(json!({ "ingress": "one" })), &goal(20), &ingress("one", json!({})))
            .unwrap();
    let seen = seen(&[one, ingress("two", json!({}))]);
    let writes = routers(&rollout)[0].plan(&goal(20), &seen).unwrap();
    let names: Vec<&str> = writes.iter().map(|write| &*write.target.name).collect();
    assert_eq!(names, ["two"], "the first is there already");
}

#[test]
fn what_cannot_be_done_is_said() {
    let long = json!({ "stickinessConfig": { "enabled": true, "durationSeconds": 604_801 } });
    let mut elsewhere = ingress("web", json!({}));
    elsewhere["spec"]["rules"] = json!([{ "host": "z" }]);
    let cases = [
        (
            json!({}),
            None,
            "error retrieving ingress `web` from cache: ingress.networking.k8s.io \"web\" not found",
        ),
        (json!({}), Some(elsewhere), "ingress does not have service `stable` in rules"),
        (
            long,
            Some(ingress("web", json!({}))),
            "TargetGroupStickinessConfig's duration must be between 1 and 604800 seconds (7 days)!",
        ),
        (
            json!({}),
            Some(ingress("web", json!({ BOOKS: "[" }))),
            "ingress `web`: annotation rollouts.argoproj.io/managed-alb-annotations: invalid type: sequence, expected a map at line 1 column 0",
        ),
    ];
    for (more, object, expected) in cases {
        let rollout = rollout(more);
        let seen = seen(object.as_slice());
        let error = routers(&rollout)[0].plan(&goal(20), &seen).unwrap_err();
        assert_eq!(error.message, expected);
    }
}
