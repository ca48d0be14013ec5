//! Which Rollouts have moved traffic on an object of a user, and what must go back when they let go of
//! it? An annotation notes it, in the same write as the weights, and only while they are not at rest.

use std::collections::BTreeMap;
use std::sync::Arc;

use gradus_api::names::annotation;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::gateway::is_managed;
use super::{Backends, Goal, Release, RouteFault, RouteOp, RouteView, RouteWrite, Router};
use super::{RoutingObjects, Undo};
use crate::decision::{Kind, ObjectRef};
use crate::frame::Meta;
use crate::world::RolloutView;

/// What a Rollout has changed on an object: how its destinations are called, and what it added.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Moved {
    /// The destination of the stable revision.
    stable: String,
    /// That of the new one.
    canary: String,
    /// Destinations of an Experiment.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    additional: Vec<String>,
    /// Routes that steps may have made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    routes: Vec<String>,
    /// The label of a route that has canary traffic.
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
}

/// What each Rollout has changed, by its name.
type Book = BTreeMap<Arc<str>, Moved>;

/// Where the elements of a list of destinations have their names.
const NAMES: [&str; 5] =
    ["/name", "/serviceName", "/destination/host", "/destination/subset", "/virtualNodeRef/name"];

impl Moved {
    /// Traffic between these two, and what a goal adds to them.
    pub(super) fn between(backends: Backends<'_>, goal: &Goal<'_>) -> Self {
        Moved {
            stable: backends.stable.to_owned(),
            canary: backends.canary.to_owned(),
            additional: goal.additional.iter().map(|one| one.service.to_string()).collect(),
            ..Moved::default()
        }
    }

    /// With the routes that steps may make.
    pub(super) fn and_routes(self, routes: &[&str]) -> Self {
        Moved { routes: routes.iter().map(|name| (*name).to_owned()).collect(), ..self }
    }

    /// With a label.
    pub(super) fn and_label(self, label: Option<&str>) -> Self {
        Moved { label: label.map(str::to_owned), ..self }
    }

    /// The spec with everything back at rest.
    fn undone(&self, spec: &Value) -> Value {
        match spec {
            Value::Object(fields) => {
                let undone = fields.iter().map(|(key, value)| (key.clone(), self.undone(value)));
                Value::Object(undone.collect())
            }
            Value::Array(list) => {
                let routes: Vec<&str> = self.routes.iter().map(String::as_str).collect();
                let own = list.iter().filter(|one| !is_managed(one, &routes));
                Value::Array(self.whole(own.map(|one| self.undone(one)).collect()))
            }
            other => other.clone(),
        }
    }

    /// A list of destinations with the stable one getting what the canary and Experiments had; any
    /// other list as it is.
    fn whole(&self, list: Vec<Value>) -> Vec<Value> {
        // Routes may have such names too, but no weights.
        let leads_to =
            |name: &str| list.iter().any(|one| is_called(one, name) && one["weight"].is_number());
        if !leads_to(&self.stable) || !leads_to(&self.canary) {
            return list;
        }
        let is_added = |one: &Value| self.additional.iter().any(|name| is_called(one, name));
        let weight = |one: &Value| one["weight"].as_i64().unwrap_or(0);
        let moved: i64 = list
            .iter()
            .filter(|one| is_called(one, &self.canary) || is_added(one))
            .map(weight)
            .sum();
        let kept = list.iter().filter(|one| !is_added(one));
        let back = |one: &Value| {
            let mut one = one.clone();
            if is_called(&one, &self.canary) {
                one["weight"] = json!(0);
            } else if is_called(&one, &self.stable) {
                one["weight"] = json!(weight(&one) + moved);
            }
            one
        };
        kept.map(back).collect()
    }
}

/// Is this the name of a destination? A host may have its namespace behind it.
fn is_called(one: &Value, name: &str) -> bool {
    let found =
        NAMES.iter().filter_map(|pointer| Some((*pointer, one.pointer(pointer)?.as_str()?)));
    found.into_iter().any(|(pointer, found)| match pointer {
        "/destination/host" => found.split('.').next() == Some(name),
        _ => found == name,
    })
}

/// The writes that are missing, each with the note of what it moves.
pub(crate) fn planned(
    router: &dyn Router,
    rollout: &RolloutView,
    goal: &Goal<'_>,
    seen: &RoutingObjects,
) -> Result<Vec<RouteWrite>, RouteFault> {
    let mut writes = router.plan(goal, seen)?;
    let noted = |object: &ObjectRef| {
        // Who lets go of an object is looked for in its own namespace.
        let moved = router.moved(object, goal).filter(|_| object.namespace == rollout.namespace)?;
        change(seen.get(object)?, &rollout.name, (!goal.is_at_rest()).then_some(moved))
    };
    for write in &mut writes {
        if let (RouteOp::Merge(patch), Some(note)) = (&mut write.op, noted(&write.target)) {
            patch["metadata"]["annotations"][annotation::TRAFFIC] = note;
        }
    }
    if goal.is_at_rest() {
        let is_written = |object: &ObjectRef| writes.iter().any(|write| write.target == *object);
        let others: Vec<&ObjectRef> = seen.keys().filter(|object| !is_written(object)).collect();
        for object in others {
            // Somebody else has put the weights back: only the note is left.
            if let Some(note) = noted(object) {
                let patch = json!({ "metadata": { "annotations": { annotation::TRAFFIC: note } } });
                let (target, op) = (object.clone(), RouteOp::Merge(patch));
                writes.push(RouteWrite { target, op, told: Vec::new() });
            }
        }
    }
    Ok(writes)
}

/// The annotation with the note of a Rollout, or without it; `None` where it says that already.
fn change(known: &RouteView, rollout: &str, moved: Option<Moved>) -> Option<Value> {
    let before = book(known.annotation(annotation::TRAFFIC));
    let mut after = before.clone();
    match moved {
        Some(moved) => drop(after.insert(rollout.into(), moved)),
        None => drop(after.remove(rollout)),
    }
    (after != before).then(|| text(&after))
}

/// What the annotation says; nothing where nobody can read it.
fn book(text: Option<&str>) -> Book {
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

fn text(book: &Book) -> Value {
    let text = serde_json::to_string(book).expect("a map of texts can be JSON");
    if book.is_empty() { Value::Null } else { json!(text) }
}

/// What is left behind on objects of a kind whose weights Rollouts move.
pub(super) const fn release(kind: Kind, named_in: fn(&str, &Value) -> Vec<String>) -> Release {
    Release { kind, managers, released, named_in }
}

fn managers(meta: &Meta) -> Vec<Arc<str>> {
    let noted = meta.annotations.get(annotation::TRAFFIC);
    book(noted.map(|text| &**text)).into_keys().collect()
}

/// The patch that puts back what these Rollouts have moved.
fn released(object: &RouteView, rollouts: &[Arc<str>]) -> Undo {
    let mut book = book(object.annotation(annotation::TRAFFIC));
    let moved: Vec<Moved> = rollouts.iter().filter_map(|rollout| book.remove(rollout)).collect();
    let mut spec = object.spec().clone();
    let mut labels = Map::new();
    for moved in &moved {
        spec = moved.undone(&spec);
        labels.extend(moved.label.iter().map(|label| (label.clone(), Value::Null)));
    }
    labels.retain(|key, _| object.label(key).is_some());
    let mut patch = json!({ "metadata": { "annotations": { annotation::TRAFFIC: text(&book) } } });
    if !labels.is_empty() {
        patch["metadata"]["labels"] = Value::Object(labels);
    }
    // A merge patch replaces a list as a whole: only fields that changed are named.
    let fields = spec.as_object().into_iter().flatten();
    let changed = fields.filter(|(key, value)| object.spec()[key.as_str()] != **value);
    let changed: Map<String, Value> =
        changed.map(|(key, value)| (key.clone(), value.clone())).collect();
    if !changed.is_empty() {
        patch["spec"] = Value::Object(changed);
    }
    Undo::Patch(patch)
}

#[cfg(test)]
mod tests;
