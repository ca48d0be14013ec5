//! A router for tests: this file and one line of the list are all that a router takes.

use serde_json::json;

use crate::decision::{Kind, ObjectRef};
use crate::traffic::{
    Access, ConfigField, Goal, Need, RouteFault, RouteOp, RouteWrite, Router, RouterEntry,
    RoutingObjects, Sides, TrafficSide, WeightPart, WeightSplit, registry,
};
use crate::world::RolloutView;

const KIND: Kind = Kind::new("test.gradus.dev", "v1", "Note", "notes");
const NAME: &str = "test/notes";

/// This router, for the list.
pub(in crate::traffic) static ENTRY: RouterEntry = RouterEntry {
    config: ConfigField::Plugin(NAME),
    label: Some((9, "Notes")),
    access: &[Access { kind: KIND, verbs: &["list", "watch", "patch"], weights: "spec.canary" }],
    has_header_routes: false,
    has_mirror_routes: false,
    has_experiments: false,
    has_max_weight: true,
    of: |rollout, routing| {
        let note = routing.plugins.get(NAME)?["note"].as_str().unwrap_or_default();
        Some(Box::new(Notes { rollout, note: note.to_owned() }))
    },
    releases: &[],
    refused: registry::untold,
};

/// The weight is a number in `spec.canary` of a Note.
struct Notes<'r> {
    rollout: &'r RolloutView,
    note: String,
}

impl Notes<'_> {
    fn need(&self) -> Need {
        let namespace = &self.rollout.namespace;
        let object = ObjectRef::new(KIND, namespace, &self.note.as_str().into());
        Need::required(object, format!("{}.note", ENTRY.config.path()))
    }
}

impl Router for Notes<'_> {
    fn needs(&self) -> Vec<Need> {
        vec![self.need()]
    }

    fn unfit(&self, seen: &RoutingObjects) -> Option<RouteFault> {
        let (need, note) = (self.need(), seen.get(&self.need().object)?);
        let is_split = note.spec()["canary"].is_number();
        (!is_split).then(|| RouteFault::unfit(&need, "Required value: spec.canary"))
    }

    fn splits(&self, sides: &Sides<'_>, seen: &RoutingObjects) -> Vec<WeightSplit> {
        let object = self.need().object;
        let weight = seen.get(&object).and_then(|note| note.spec()["canary"].as_i64());
        let weight = weight.and_then(|weight| i32::try_from(weight).ok()).unwrap_or(0);
        let canary = WeightPart::service(TrafficSide::Canary, sides.fixed.canary, weight);
        let stable = WeightPart::service(TrafficSide::Stable, sides.fixed.stable, 100 - weight);
        vec![WeightSplit { object, parts: vec![canary, stable] }]
    }

    fn plan(&self, goal: &Goal<'_>, seen: &RoutingObjects) -> Result<Vec<RouteWrite>, RouteFault> {
        if self.carried(&goal.sides, seen) == goal.weight {
            return Ok(Vec::new());
        }
        let op = RouteOp::Merge(json!({ "spec": { "canary": goal.weight } }));
        Ok(vec![RouteWrite { target: self.need().object, op, told: Vec::new() }])
    }
}
