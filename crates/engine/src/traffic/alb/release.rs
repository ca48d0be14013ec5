//! What is left of an Ingress when Rollouts let go of it? Every action sends all to one Service again;
//! header routes and the book of which annotations are whose go.

use std::collections::BTreeMap;
use std::sync::Arc;

use gradus_api::names::annotation;
use serde_json::{Map, Value, json};

use super::{Action, BY_ANNOTATION, TargetGroup, text};
use crate::frame::TextMap;
use crate::traffic::RouteView;
use crate::traffic::ingress::{backend, paths, rules};
use crate::traffic::registry::{names, routing_in};

/// The annotations of each Rollout, by its name.
type Book = BTreeMap<Arc<str>, Vec<String>>;

/// The Rollouts that the book of an Ingress names; none where nobody can read it.
pub fn managers(annotations: &TextMap) -> Vec<Arc<str>> {
    let book = annotations.get(annotation::MANAGED_ALB);
    let book = book.and_then(|book| serde_json::from_str::<Book>(book).ok());
    book.map(|book| book.into_keys().collect()).unwrap_or_default()
}

/// The Ingresses that a Rollout's spec names for an AWS load balancer, read from its JSON.
pub fn managed_in(spec: &Value) -> Vec<String> {
    let alb = &routing_in(spec)["alb"];
    let one = alb["ingress"].as_str().filter(|name| !name.is_empty());
    one.map(str::to_owned).into_iter().chain(names(&alb["ingresses"])).collect()
}

/// The patch that lets these Rollouts go of an Ingress.
pub fn released(ingress: &RouteView, rollouts: &[Arc<str>]) -> Value {
    let book = ingress.annotation(annotation::MANAGED_ALB).unwrap_or_default();
    let mut book: Book = serde_json::from_str(book).unwrap_or_default();
    let keys: Vec<String> =
        rollouts.iter().filter_map(|rollout| book.remove(rollout)).flatten().collect();
    let mut notes = Map::new();
    let mut routes = Vec::new();
    for key in &keys {
        match (service_of(key, "actions"), service_of(key, "conditions")) {
            (Some(action), _) => {
                let conditions = key.replacen("/actions.", "/conditions.", 1);
                if keys.contains(&conditions) {
                    routes.push(action);
                    notes.insert(key.clone(), Value::Null);
                } else if let Some(whole) = whole(ingress, key, action) {
                    notes.insert(key.clone(), json!(whole));
                }
            }
            (None, Some(_)) => drop(notes.insert(key.clone(), Value::Null)),
            (None, None) => {}
        }
    }
    notes.retain(|key, value| ingress.annotation(key) != value.as_str());
    let book = (!book.is_empty()).then(|| text(&book));
    notes.insert(annotation::MANAGED_ALB.to_owned(), json!(book));
    if ingress.annotation(annotation::MANAGED_ALB_ACTIONS).is_some() {
        notes.insert(annotation::MANAGED_ALB_ACTIONS.to_owned(), Value::Null);
    }
    let mut patch = json!({ "metadata": { "annotations": notes } });
    if let Some(rules) = without(ingress, &routes) {
        patch["spec"] = json!({ "rules": rules });
    }
    patch
}

/// The Service, or the route, that an annotation of this part is about.
fn service_of<'k>(key: &'k str, part: &str) -> Option<&'k str> {
    let (_, name) = key.split_once('/')?;
    name.strip_prefix(part)?.strip_prefix('.')
}

/// The action that sends all to its own Service, or to the stable side where it has none of its own.
/// What nobody can read stays as it is.
fn whole(ingress: &RouteView, key: &str, service: &str) -> Option<String> {
    let mut action: Action = serde_json::from_str(ingress.annotation(key)?).ok()?;
    let groups = &action.forward_config.target_groups;
    let own = groups.iter().find(|group| group.service_name == service);
    // The stable side is written last.
    let TargetGroup { service_name, service_port, .. } = own.or_else(|| groups.last())?;
    let (service_name, service_port) = (service_name.clone(), service_port.clone());
    action.forward_config.target_groups =
        vec![TargetGroup { service_name, service_port, weight: 100 }];
    Some(text(&action))
}

/// The rules without paths to these routes; `None` where there are no such paths.
fn without(ingress: &RouteView, routes: &[&str]) -> Option<Value> {
    let is_ours = |path: &Value| {
        let is_by_annotation = path["backend"]["service"]["port"]["name"] == BY_ANNOTATION;
        is_by_annotation && routes.iter().any(|route| *backend(path) == **route)
    };
    let left = rules(ingress.spec()).iter().map(|rule| {
        let mut rule = rule.clone();
        if let Some(paths) = rule.pointer_mut("/http/paths").and_then(Value::as_array_mut) {
            paths.retain(|path| !is_ours(path));
        }
        rule
    });
    let is_led = rules(ingress.spec()).iter().any(|rule| paths(rule).iter().any(is_ours));
    is_led.then(|| left.collect())
}
