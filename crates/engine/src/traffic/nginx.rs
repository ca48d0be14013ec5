//! Ingress of nginx: a second Ingress, of our own, carries the canary's weight in an annotation.

#[cfg(test)]
mod tests;

use gradus_api::names::{self, router_event};
use gradus_api::patch::Difference;
use gradus_api::traffic::NginxRouting;
use serde_json::{Map, Value, json};

use super::ingress::{Named, backend, paths, reference, rules};
use super::{Goal, RouteError, RouteOp, RouteView, RouteWrite, Router, RoutingObjects, Sides};
use crate::decision::ObjectRef;
use crate::frame::TextMap;
use crate::world::RolloutView;

/// Prefix of the annotations nginx reads, unless the configuration says otherwise.
const PREFIX: &str = "nginx.ingress.kubernetes.io";
/// The annotation that older Ingresses name their controller with.
const CLASS: &str = "kubernetes.io/ingress.class";
/// What the canary Ingress's name ends with, and how much of it may stand before that.
const ENDING: &str = "-canary";
const NAME_LIMIT: usize = 253;

/// The router of a Rollout.
pub(super) struct Nginx<'r> {
    /// The Rollout.
    pub rollout: &'r RolloutView,
    /// Its configuration.
    pub config: &'r NginxRouting,
}

impl Router for Nginx<'_> {
    fn reads(&self) -> Vec<ObjectRef> {
        let both = |name: &str| [reference(self.rollout, name), self.canary_of(name)];
        self.named().names().into_iter().flat_map(both).collect()
    }

    fn misconfigured(&self) -> Option<String> {
        self.named().misconfigured()
    }

    fn missing(&self, seen: &RoutingObjects) -> Option<String> {
        self.looked_up()?.missing(self.rollout, seen)
    }

    fn unfit(&self, seen: &RoutingObjects) -> Option<String> {
        let strategy = self.rollout.spec.fields.strategy.canary.as_ref()?;
        self.looked_up()?.unfit(self.rollout, &strategy.stable_service, seen)
    }

    fn carried(&self, _sides: &Sides<'_>, seen: &RoutingObjects) -> i32 {
        let weights = self.named().names().into_iter().filter_map(|name| {
            let canary = seen.get(&self.canary_of(name))?;
            let is_on = canary.annotation(&self.key("canary")) == Some("true");
            canary.annotation(&self.key("canary-weight")).filter(|_| is_on)?.parse().ok()
        });
        weights.max().unwrap_or(0)
    }

    fn plan(&self, goal: &Goal<'_>, seen: &RoutingObjects) -> Result<Vec<RouteWrite>, RouteError> {
        self.named().plan(|name| self.plan_one(name, goal, seen))
    }
}

impl Nginx<'_> {
    fn named(&self) -> Named<'_> {
        Named {
            path: "spec.strategy.canary.trafficRouting.nginx",
            one: ("stableIngress", &self.config.stable_ingress),
            several: ("stableIngresses", &self.config.stable_ingresses),
            spelled: ("StableIngress", "StableIngresses"),
        }
    }

    /// Those that must be there and lead to the stable Service: beside an AWS load balancer the
    /// contract looks up the Ingresses of that one alone.
    fn looked_up(&self) -> Option<Named<'_>> {
        let canary = self.rollout.spec.fields.strategy.canary.as_ref()?;
        let has_alb = canary.traffic_routing.as_ref().is_some_and(|it| it.alb.is_some());
        (!has_alb).then(|| self.named())
    }

    fn prefix(&self) -> &str {
        let prefix = self.config.annotation_prefix.as_str();
        if prefix.is_empty() { PREFIX } else { prefix }
    }

    fn key(&self, name: &str) -> String {
        format!("{}/{name}", self.prefix())
    }

    /// The canary Ingress beside a stable one.
    fn canary_of(&self, stable: &str) -> ObjectRef {
        let mut name = format!("{}-{stable}", self.rollout.name);
        name.truncate(NAME_LIMIT - ENDING.len());
        reference(self.rollout, &(name + ENDING))
    }

    fn plan_one(
        &self,
        name: &str,
        goal: &Goal<'_>,
        seen: &RoutingObjects,
    ) -> Result<Option<RouteWrite>, RouteError> {
        let stable = seen
            .get(&reference(self.rollout, name))
            .ok_or_else(|| RouteError::Missing { field: "stableIngress", name: name.to_owned() })?;
        let target = self.canary_of(name);
        let spec = canary_spec(stable, goal)?;
        let notes = self.annotations(stable, goal);
        let Some(known) = seen.get(&target) else {
            let told =
                format!("Creating canary ingress `{}` with weight `{}`", target.name, goal.weight);
            let manifest = self.manifest(&target, &notes, spec);
            let told = vec![(router_event::CREATING_CANARY_INGRESS, told)];
            return Ok(Some(RouteWrite { target, op: RouteOp::Create(manifest), told }));
        };
        if known.owner() != Some(self.rollout.uid) {
            return Err(RouteError::Foreign(target.name.to_string()));
        }
        let Some(patch) = missing(known, &notes, &spec) else { return Ok(None) };
        let told = format!("Updating Ingress `{}` to desiredWeight '{}'", target.name, goal.weight);
        let told = vec![(router_event::PATCHING_CANARY_INGRESS, told)];
        Ok(Some(RouteWrite { target, op: RouteOp::Merge(patch), told }))
    }

    /// The annotations of the canary Ingress, later ones overriding earlier ones.
    fn annotations(&self, stable: &RouteView, goal: &Goal<'_>) -> TextMap {
        let mut notes = TextMap::new();
        if let Some(class) = stable.annotation(CLASS) {
            notes.insert(CLASS.to_owned(), class.to_owned());
        }
        for (key, value) in &self.config.additional_ingress_annotations {
            let is_whole = key.starts_with(self.prefix());
            notes.insert(if is_whole { key.clone() } else { self.key(key) }, value.clone());
        }
        notes.extend(self.config.canary_ingress_annotations.clone());
        notes.insert(self.key("canary"), "true".to_owned());
        notes.insert(self.key("canary-weight"), goal.weight.to_string());
        let strategy = self.rollout.spec.fields.strategy.canary.as_ref();
        let total = strategy.and_then(|it| it.traffic_routing.as_ref()?.max_traffic_weight);
        if let Some(total) = total {
            notes.insert(self.key("canary-weight-total"), total.to_string());
        }
        notes
    }

    fn manifest(&self, target: &ObjectRef, notes: &TextMap, spec: Value) -> Value {
        json!({
            "apiVersion": target.kind.api_version(),
            "kind": &*target.kind.name,
            "metadata": {
                "name": &*target.name,
                "namespace": &*target.namespace,
                "annotations": notes,
                "ownerReferences": [{
                    "apiVersion": names::API_VERSION,
                    "kind": names::kind::ROLLOUT,
                    "name": &*self.rollout.name,
                    "uid": self.rollout.uid.to_string(),
                    "controller": true,
                    "blockOwnerDeletion": true,
                }],
            },
            "spec": spec,
        })
    }
}

/// What of the stable Ingress the canary Ingress has too.
const COPIED: [&str; 2] = ["ingressClassName", "tls"];

/// The stable rules that lead to the stable Service, leading to the canary Service instead.
fn canary_spec(stable: &RouteView, goal: &Goal<'_>) -> Result<Value, RouteError> {
    let (from, to) = (goal.sides.fixed.stable, goal.sides.fixed.canary);
    let is_ours = |rule: &&Value| paths(rule).iter().any(|path| *backend(path) == *from);
    let switched = rules(stable.spec()).iter().filter(is_ours).map(|rule| {
        let mut rule = rule.clone();
        let paths = rule["http"]["paths"].as_array_mut().into_iter().flatten();
        for path in paths.filter(|path| *backend(path) == *from) {
            path["backend"]["service"]["name"] = json!(to);
        }
        rule
    });
    let rules: Vec<Value> = switched.collect();
    if rules.is_empty() {
        let message =
            format!("ingress `{}` has no rules using service {from} backend", stable.name());
        return Err(RouteError::NoSuchBackend(message));
    }
    let mut spec = Map::from_iter([("rules".to_owned(), Value::Array(rules))]);
    for field in COPIED {
        if let Some(value) = stable.spec().get(field) {
            spec.insert(field.to_owned(), value.clone());
        }
    }
    Ok(Value::Object(spec))
}

/// The patch that gives a canary Ingress these annotations and this spec; others' stay.
fn missing(known: &RouteView, notes: &TextMap, spec: &Value) -> Option<Value> {
    let notes: Map<String, Value> = notes
        .iter()
        .filter(|(key, value)| known.annotation(key) != Some(value))
        .map(|(key, value)| (key.clone(), json!(value)))
        .collect();
    let fields = ["rules"].into_iter().chain(COPIED);
    let ours: Map<String, Value> = fields
        .filter_map(|field| Some((field.to_owned(), known.spec().get(field)?.clone())))
        .collect();
    let spec = Value::Object(ours).difference(spec);
    if notes.is_empty() && spec.is_none() {
        return None;
    }
    let mut patch = Map::new();
    if !notes.is_empty() {
        patch.insert("metadata".to_owned(), json!({ "annotations": notes }));
    }
    if let Some(spec) = spec {
        patch.insert("spec".to_owned(), spec);
    }
    Some(Value::Object(patch))
}
