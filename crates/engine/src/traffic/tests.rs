//! What the tests of all routers begin with: a Rollout, a goal and the objects that are there.

pub(super) mod notes;
mod rights;

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    Backends, FaultCause, Goal, RouteView, RoutingObjects, Sides, metric_label, routers, routes,
    unsupported, weights_field,
};
use crate::decision::ObjectRef;
use crate::frame::Frame;
use crate::kinds;
use crate::world::RolloutView;

/// The Rollout `app` with this routing and the Services `stable` and `canary`.
pub(super) fn rollout(routing: Value) -> RolloutView {
    rollout_with(routing, json!([]))
}

/// The same with steps.
pub(super) fn rollout_with(routing: Value, steps: Value) -> RolloutView {
    let strategy = json!({ "canary": {
        "stableService": "stable", "canaryService": "canary", "trafficRouting": routing,
        "steps": steps,
    } });
    let frame = json!({
        "metadata": { "name": "app", "namespace": "shop", "uid": "u-1" },
        "spec": { "strategy": strategy },
    });
    let frame: Frame = serde_json::from_value(frame).unwrap();
    RolloutView::read(&frame, None)
}

/// This much of the traffic to the canary, and nothing else.
pub(super) fn goal(weight: i32) -> Goal<'static> {
    Goal {
        weight,
        max_weight: 100,
        canary_hash: "b",
        subset_hash: "b",
        stable_subset_hash: "a",
        stable_hash: "a",
        sides: Sides { fixed: Backends { stable: "stable", canary: "canary" }, ping_pong: None },
        additional: &[],
        header_routes: Vec::new(),
        mirror_routes: Vec::new(),
        route_steps: None,
        managed_routes: &[],
        canary_empty: false,
    }
}

/// These Ingresses are there.
pub(super) fn seen(objects: &[Value]) -> RoutingObjects {
    let entry = |object: &Value| {
        let name = object["metadata"]["name"].as_str().unwrap();
        let reference = ObjectRef::new(kinds::INGRESS, &"shop".into(), &name.into());
        (reference, RouteView(Arc::new(object.clone())))
    };
    objects.iter().map(entry).collect()
}

/// What follows from a line in the list of routers, without another line anywhere.
#[test]
fn a_router_is_one_file_and_one_line() {
    let rollout = rollout(json!({ "plugins": { "test/notes": { "note": "web" } } }));
    let spec = &rollout.spec.fields;
    assert_eq!(unsupported(spec), None, "it is not refused");
    assert_eq!(metric_label(spec), "Notes");
    let note = routers(&rollout)[0].needs().remove(0).object;
    let named = crate::rollout::references::routes(&rollout, &RoutingObjects::new());
    assert!(named.contains(&note), "it wakes the Rollout");
    assert!(routes(&note.kind), "it is watched once it is named");
    assert_eq!(weights_field(&note.kind), Some("spec.canary"));
    let fault = routers(&rollout)[0].fault(&RoutingObjects::new()).unwrap();
    let path = "spec.strategy.canary.trafficRouting.plugins.test/notes.note";
    let expected =
        format!(r#"{path}: Invalid value: "web": notes.test.gradus.dev "web" not found"#);
    assert_eq!((fault.to_string(), fault.cause), (expected, FaultCause::Missing(Box::new(note))));
}

/// Router, steps, and what is refused.
#[test]
fn a_step_that_a_router_cannot_do_is_refused_by_name() {
    let header = json!([{ "setWeight": 5 }, { "setHeaderRoute": { "name": "r" } }]);
    let mirror = json!([{ "setMirrorRoute": { "name": "r" } }]);
    let alb = json!({ "alb": { "ingress": "web", "servicePort": 80 } });
    let nginx = json!({ "nginx": { "stableIngress": "web" } });
    let both = json!({ "alb": alb["alb"], "nginx": nginx["nginx"] });
    let other = json!({ "plugins": { "acme/router": {} } });
    let traefik = json!({ "traefik": { "weightedTraefikServiceName": "web" } });
    let template = json!({ "name": "a", "specRef": "canary" });
    let weighted = json!({ "name": "b", "specRef": "canary", "weight": 5 });
    let experiment = json!([{ "experiment": { "templates": [template, weighted] } }]);
    let fine = json!({ "maxTrafficWeight": 1000, "nginx": nginx["nginx"], "alb": alb["alb"] });
    let cases = [
        ("an Experiment through ALB", &alb, &experiment, ""),
        (
            "an Experiment through Traefik",
            &traefik,
            &experiment,
            "steps[0].experiment.templates[1].weight: Forbidden: router traefik cannot do \
             experiment.templates[1].weight",
        ),
        (
            "parts of 1000 through ALB",
            &fine,
            &header,
            "trafficRouting.maxTrafficWeight: Forbidden: router alb cannot do another \
             maxTrafficWeight than 100",
        ),
        ("a header through ALB", &alb, &header, ""),
        (
            "a copy through ALB",
            &alb,
            &mirror,
            "steps[0].setMirrorRoute: Forbidden: router alb cannot do setMirrorRoute",
        ),
        (
            "a header through nginx",
            &nginx,
            &header,
            "steps[1].setHeaderRoute: Forbidden: router nginx cannot do setHeaderRoute",
        ),
        (
            "a header through one of two",
            &both,
            &header,
            "steps[1].setHeaderRoute: Forbidden: router nginx cannot do setHeaderRoute",
        ),
        ("a plugin can do what it can", &other, &header, ""),
    ];
    for (what, routing, steps, expected) in cases {
        let canary = json!({ "trafficRouting": routing, "steps": steps });
        let spec = json!({ "strategy": { "canary": canary } });
        let found = unsupported(&serde_json::from_value(spec).unwrap());
        let found = found.map(|fault| fault.to_string()).unwrap_or_default();
        let expected = match expected {
            "" => String::new(),
            expected => format!("spec.strategy.canary.{expected}"),
        };
        assert_eq!(found, expected, "{what}");
    }
}
