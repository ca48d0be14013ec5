//! What the tests of all routers begin with: a Rollout, a goal and the objects that are there.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Backends, Goal, RouteView, RoutingObjects, Sides};
use crate::decision::ObjectRef;
use crate::frame::Frame;
use crate::kinds;
use crate::world::RolloutView;

/// The Rollout `app` with this routing and the Services `stable` and `canary`.
pub(super) fn rollout(routing: Value) -> RolloutView {
    let strategy = json!({ "canary": {
        "stableService": "stable", "canaryService": "canary", "trafficRouting": routing,
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
        stable_hash: "a",
        sides: Sides { fixed: Backends { stable: "stable", canary: "canary" }, ping_pong: None },
        additional: &[],
        header_routes: Vec::new(),
        mirror_routes: Vec::new(),
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
