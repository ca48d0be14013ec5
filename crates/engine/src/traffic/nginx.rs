//! Ingress of nginx: a second Ingress, of our own, carries the canary's weight in an annotation.

#[cfg(test)]
mod tests;

use gradus_api::names::router_event;
use gradus_api::patch::Difference;
use gradus_api::traffic::NginxRouting;
use serde_json::{Map, Value, json};

use super::ingress::{NamedIngress, backend, paths, reference, rules};
use super::own;
use super::registry::{self, names, routing_in};
use super::{
    Access, ConfigField, Goal, Need, Release, RouteFault, RouteOp, RouteView, RouteWrite, Router,
    RouterEntry, RoutingObjects, Sides, TrafficSide, WeightPart, WeightSplit,
};
use crate::decision::ObjectRef;
use crate::frame::TextMap;
use crate::kinds;
use crate::world::RolloutView;

/// Prefix of the annotations nginx reads, unless the configuration says otherwise.
const PREFIX: &str = "nginx.ingress.kubernetes.io";
/// The annotation that older Ingresses name their controller with.
const CLASS: &str = "kubernetes.io/ingress.class";
/// What the canary Ingress's name ends with, and how much of it may stand before that.
const ENDING: &str = "-canary";
const NAME_LIMIT: usize = 253;

/// This router, for the list.
pub(super) static ENTRY: RouterEntry = RouterEntry {
    config: ConfigField::Field("nginx"),
    label: Some((3, "Nginx")),
    access: &[Access {
        kind: kinds::INGRESS,
        verbs: &["get", "list", "watch", "create", "patch", "delete"],
        weights: "metadata.annotations",
    }],
    has_header_routes: false,
    has_mirror_routes: false,
    has_experiments: false,
    has_max_weight: true,
    of: |rollout, routing| {
        let config = routing.nginx.as_deref()?;
        Some(Box::new(Nginx { rollout, config }))
    },
    releases: &[Release {
        kind: kinds::INGRESS,
        managers: own::managers,
        released: own::released,
        named_in: |rollout, spec| {
            let nginx = &routing_in(spec)["nginx"];
            let one = nginx["stableIngress"].as_str().filter(|name| !name.is_empty());
            let all = one.map(str::to_owned).into_iter().chain(names(&nginx["stableIngresses"]));
            all.map(|stable| canary_name(rollout, &stable)).collect()
        },
    }],
    refused: registry::untold,
};

/// The router of a Rollout.
pub(super) struct Nginx<'r> {
    /// The Rollout.
    pub rollout: &'r RolloutView,
    /// Its configuration.
    pub config: &'r NginxRouting,
}

impl Router for Nginx<'_> {
    fn needs(&self) -> Vec<Need> {
        // Beside an AWS load balancer the contract looks up the Ingresses of that one alone.
        let is_required = !self.has_alb();
        let both = |need: Need| {
            let canary = Need::optional(self.canary_of(&need.object.name), need.field.clone());
            [Need { is_required, ..need }, canary]
        };
        self.named().needs(self.rollout).into_iter().flat_map(both).collect()
    }

    fn misconfigured(&self) -> Option<RouteFault> {
        self.named().misconfigured()
    }

    fn unfit(&self, seen: &RoutingObjects) -> Option<RouteFault> {
        if self.has_alb() {
            return None;
        }
        let strategy = self.rollout.spec.fields.strategy.canary.as_ref()?;
        self.named().unfit(self.rollout, &strategy.stable_service, seen)
    }

    fn splits(&self, sides: &Sides<'_>, seen: &RoutingObjects) -> Vec<WeightSplit> {
        let strategy = self.rollout.spec.fields.strategy.canary.as_ref();
        let max = strategy.map_or(100, |strategy| strategy.max_weight());
        let split = |name: &str| {
            let object = self.canary_of(name);
            let canary = seen.get(&object)?;
            let is_on = canary.annotation(&self.key("canary")) == Some("true");
            let weight = canary.annotation(&self.key("canary-weight")).filter(|_| is_on)?;
            let weight: i32 = weight.parse().ok()?;
            let to_canary = WeightPart::service(TrafficSide::Canary, sides.fixed.canary, weight);
            let rest = max.saturating_sub(weight);
            let to_stable = WeightPart::service(TrafficSide::Stable, sides.fixed.stable, rest);
            Some(WeightSplit { object, parts: vec![to_canary, to_stable] })
        };
        self.named().names().into_iter().filter_map(split).collect()
    }

    fn plan(&self, goal: &Goal<'_>, seen: &RoutingObjects) -> Result<Vec<RouteWrite>, RouteFault> {
        self.named().plan(|name| self.plan_one(name, goal, seen))
    }
}

impl Nginx<'_> {
    fn named(&self) -> NamedIngress<'_> {
        NamedIngress {
            path: "spec.strategy.canary.trafficRouting.nginx",
            one: ("stableIngress", &self.config.stable_ingress),
            several: ("stableIngresses", &self.config.stable_ingresses),
            spelled: ("StableIngress", "StableIngresses"),
        }
    }

    /// Does an AWS load balancer split the traffic too?
    fn has_alb(&self) -> bool {
        let canary = self.rollout.spec.fields.strategy.canary.as_ref();
        let routing = canary.and_then(|canary| canary.traffic_routing.as_ref());
        routing.is_some_and(|routing| routing.alb.is_some())
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
        reference(self.rollout, &canary_name(&self.rollout.name, stable))
    }

    fn plan_one(
        &self,
        name: &str,
        goal: &Goal<'_>,
        seen: &RoutingObjects,
    ) -> Result<Option<RouteWrite>, RouteFault> {
        let need = Need::required(reference(self.rollout, name), self.named().field());
        let stable = seen.get(&need.object).ok_or_else(|| self.named().gone(self.rollout, name))?;
        let target = self.canary_of(name);
        let spec = canary_spec(stable, goal).ok_or_else(|| {
            let service = goal.sides.fixed.stable;
            let message = format!("ingress `{name}` has no rules using service {service} backend");
            RouteFault::unfit(&need, message)
        })?;
        let notes = self.annotations(stable, goal);
        let Some(known) = seen.get(&target) else {
            let told =
                format!("Creating canary ingress `{}` with weight `{}`", target.name, goal.weight);
            let manifest = self.manifest(&target, &notes, spec);
            let told = vec![(router_event::CREATING_CANARY_INGRESS, told)];
            return Ok(Some(RouteWrite { target, op: RouteOp::Create(manifest), told }));
        };
        if !own::is_owned(known, self.rollout) {
            let need = Need::optional(target, need.field);
            let name = &need.object.name;
            let message = format!("canary ingress `{name}` controlled by different object");
            return Err(RouteFault::unfit(&need, message));
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
        let mut manifest = own::manifest(self.rollout, target, spec);
        manifest["metadata"]["annotations"] = json!(notes);
        manifest
    }
}

/// The name of the canary Ingress beside a stable one.
fn canary_name(rollout: &str, stable: &str) -> String {
    let mut name = format!("{rollout}-{stable}");
    name.truncate(name.floor_char_boundary(NAME_LIMIT - ENDING.len()));
    name + ENDING
}

/// What of the stable Ingress the canary Ingress has too.
const COPIED: [&str; 2] = ["ingressClassName", "tls"];

/// The stable rules that lead to the stable Service, leading to the canary Service instead; `None`
/// where there are no such rules.
fn canary_spec(stable: &RouteView, goal: &Goal<'_>) -> Option<Value> {
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
        return None;
    }
    let mut spec = Map::from_iter([("rules".to_owned(), Value::Array(rules))]);
    for field in COPIED {
        if let Some(value) = stable.spec().get(field) {
            spec.insert(field.to_owned(), value.clone());
        }
    }
    Some(Value::Object(spec))
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
