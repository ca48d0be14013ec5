//! AWS load balancer controller: weights and header routes are annotations of the user's Ingress.

mod release;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use gradus_api::names::{annotation, router_event};
use gradus_api::rollout::canary::SetHeaderRoute;
use gradus_api::traffic::AlbRouting;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::ingress::{NamedIngress, backend, leads_to, paths, reference, rules};
use super::registry;
use super::{
    Access, Backends, ConfigField, Goal, Need, Release, RouteFault, RouteOp, RouteView, RouteWrite,
    Router, RouterEntry, RoutingObjects, Sides, Undo, WeightPart, WeightSplit,
};
use crate::ask::WeightsOf;
use crate::decision::ObjectRef;
use crate::kinds;
use crate::world::RolloutView;

/// Prefix of the annotations the controller reads, unless the configuration says otherwise.
const PREFIX: &str = "alb.ingress.kubernetes.io";
/// The port name that tells the controller to look for an annotation instead of a Service.
const BY_ANNOTATION: &str = "use-annotation";
/// What a load balancer takes for the whole traffic of a stickiness: a second to a week.
const STICKINESS_SECONDS: std::ops::RangeInclusive<i64> = 1..=604_800;

/// This router, for the list.
pub(super) static ENTRY: RouterEntry = RouterEntry {
    config: ConfigField::Field("alb"),
    label: Some((0, "ALB")),
    access: &[Access {
        kind: kinds::INGRESS,
        verbs: &["get", "list", "watch", "patch"],
        weights: "metadata.annotations",
    }],
    has_header_routes: true,
    has_mirror_routes: false,
    has_experiments: true,
    has_max_weight: false,
    of: |rollout, routing| {
        let config = routing.alb.as_deref()?;
        Some(Box::new(Alb { rollout, config }))
    },
    releases: &[Release {
        kind: kinds::INGRESS,
        managers: |meta| release::managers(&meta.annotations),
        released: |ingress, rollouts| Undo::Patch(release::released(ingress, rollouts)),
        named_in: |_, spec| release::managed_in(spec),
    }],
    refused: registry::untold,
};

/// The router of a Rollout.
pub(super) struct Alb<'r> {
    /// The Rollout.
    pub rollout: &'r RolloutView,
    /// Its configuration.
    pub config: &'r AlbRouting,
}

/// What the load balancer does with a request. The order of the fields is the order of the keys.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Action {
    r#type: String,
    forward_config: Forward,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Forward {
    target_groups: Vec<TargetGroup>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target_group_stickiness_config: Option<Stickiness>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct TargetGroup {
    service_name: String,
    service_port: String,
    weight: i32,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Stickiness {
    enabled: bool,
    duration_seconds: i64,
}

impl Router for Alb<'_> {
    fn needs(&self) -> Vec<Need> {
        self.named().needs(self.rollout)
    }

    fn misconfigured(&self) -> Option<RouteFault> {
        self.named().misconfigured()
    }

    fn unfit(&self, seen: &RoutingObjects) -> Option<RouteFault> {
        self.named().unfit(self.rollout, self.action_service(), seen)
    }

    fn splits(&self, sides: &Sides<'_>, seen: &RoutingObjects) -> Vec<WeightSplit> {
        let key = self.key("actions", self.action_service());
        let backends = backends(sides);
        let part = |group: TargetGroup| {
            let side = backends.side(&group.service_name);
            WeightPart::service(side, &group.service_name, group.weight)
        };
        let split = |need: Need| {
            let known = seen.get(&need.object)?;
            let action: Action = serde_json::from_str(known.annotation(&key)?).ok()?;
            let parts = action.forward_config.target_groups.into_iter().map(part).collect();
            Some(WeightSplit { object: need.object, parts })
        };
        self.needs().into_iter().filter_map(split).collect()
    }

    fn asks(&self, goal: &Goal<'_>) -> Option<WeightsOf> {
        let Backends { stable, canary } = backends(&goal.sides);
        let further = goal.additional.iter();
        Some(WeightsOf {
            ingresses: self.needs().into_iter().map(|need| need.object).collect(),
            canary: canary.to_owned(),
            stable: stable.to_owned(),
            port: self.config.service_port,
            weight: goal.weight,
            additional: further.map(|one| (one.service.to_string(), one.weight)).collect(),
        })
    }

    fn plan(&self, goal: &Goal<'_>, seen: &RoutingObjects) -> Result<Vec<RouteWrite>, RouteFault> {
        self.named().plan(|name| self.plan_one(name, goal, seen))
    }
}

impl Alb<'_> {
    fn named(&self) -> NamedIngress<'_> {
        NamedIngress {
            path: "spec.strategy.canary.trafficRouting.alb",
            one: ("ingress", &self.config.ingress),
            several: ("ingresses", &self.config.ingresses),
            spelled: ("Ingress", "Ingresses"),
        }
    }

    /// The Service whose requests are split.
    fn action_service(&self) -> &str {
        let strategy = self.rollout.spec.fields.strategy.canary.as_ref();
        match self.config.root_service.as_str() {
            "" => strategy.map_or("", |strategy| &strategy.stable_service),
            root => root,
        }
    }

    fn key(&self, part: &str, name: &str) -> String {
        let prefix = match self.config.annotation_prefix.as_str() {
            "" => PREFIX,
            prefix => prefix,
        };
        format!("{prefix}/{part}.{name}")
    }

    fn plan_one(
        &self,
        name: &str,
        goal: &Goal<'_>,
        seen: &RoutingObjects,
    ) -> Result<Option<RouteWrite>, RouteFault> {
        let target = reference(self.rollout, name);
        let known = seen.get(&target).ok_or_else(|| self.named().gone(self.rollout, name))?;
        if !leads_to(known.spec(), self.action_service()) {
            let message =
                format!("ingress does not have service `{}` in rules", self.action_service());
            return Err(RouteFault::unfit(&Need::required(target, self.named().field()), message));
        }
        let mut plan = Plan::new(known);
        let action = self.key("actions", self.action_service());
        let mut keys = vec![action.clone()];
        // The contract takes routes back, or makes them, before it sets weights.
        self.plan_header_routes(goal, &mut plan, &mut keys)?;
        if plan.note(&action, Some(self.split(goal)?)) {
            plan.tell(format!("Updating Ingress `{name}` to desiredWeight '{}'", goal.weight));
        }
        let routes: Vec<&str> = goal.header_routes.iter().map(|route| &*route.name).collect();
        plan.lead_to(&routes, goal);
        let need = Need::required(target, self.named().field());
        plan.note(annotation::MANAGED_ALB, Some(self.bookkeeping(&need, known, keys)?));
        Ok(plan.finish(need.object))
    }

    /// Annotations of the header routes that shall be there; those of other managed routes go.
    fn plan_header_routes(
        &self,
        goal: &Goal<'_>,
        plan: &mut Plan<'_>,
        keys: &mut Vec<String>,
    ) -> Result<(), RouteFault> {
        let mut has_removed = false;
        for managed in goal.managed_routes {
            let wanted = goal.header_routes.iter().find(|route| route.name == managed.name);
            let (action, conditions) =
                (self.key("actions", &managed.name), self.key("conditions", &managed.name));
            let Some(route) = wanted else {
                has_removed |= plan.note(&action, None) | plan.note(&conditions, None);
                continue;
            };
            let whole = self.action(vec![self.group(backends(&goal.sides).canary, 100)])?;
            let is_new =
                plan.note(&action, Some(whole)) | plan.note(&conditions, Some(matching(route)));
            if is_new {
                let name = plan.known.name();
                let told = format!("Updating Ingress `{name}` to headerRoute '{}'", route.name);
                plan.tell(told);
            }
            keys.extend([action, conditions]);
        }
        if has_removed {
            plan.tell(format!("Updating Ingress `{}` removing managed routes", plan.known.name()));
        }
        Ok(())
    }

    /// Canary first, stable last, Experiments between them.
    fn split(&self, goal: &Goal<'_>) -> Result<String, RouteFault> {
        let Backends { stable, canary } = backends(&goal.sides);
        let mut groups = vec![self.group(canary, goal.weight)];
        groups.extend(goal.additional.iter().map(|one| self.group(&one.service, one.weight)));
        groups.push(self.group(stable, goal.rest()));
        self.action(groups)
    }

    fn group(&self, service: &str, weight: i32) -> TargetGroup {
        TargetGroup {
            service_name: service.to_owned(),
            service_port: self.config.service_port.to_string(),
            weight,
        }
    }

    fn action(&self, target_groups: Vec<TargetGroup>) -> Result<String, RouteFault> {
        let wanted = self.config.stickiness_config.as_ref().filter(|wanted| wanted.enabled);
        if wanted.is_some_and(|wanted| !STICKINESS_SECONDS.contains(&wanted.duration_seconds)) {
            let message = "TargetGroupStickinessConfig's duration must be between 1 and 604800 \
                           seconds (7 days)!";
            let path = format!("{}.stickinessConfig.durationSeconds", ENTRY.config.path());
            return Err(RouteFault::configuration(path, message));
        }
        let stickiness = wanted
            .map(|wanted| Stickiness { enabled: true, duration_seconds: wanted.duration_seconds });
        let forward_config = Forward { target_groups, target_group_stickiness_config: stickiness };
        Ok(text(&Action { r#type: "forward".to_owned(), forward_config }))
    }

    /// Which annotations are ours, beside those of other Rollouts.
    fn bookkeeping(
        &self,
        need: &Need,
        known: &RouteView,
        keys: Vec<String>,
    ) -> Result<String, RouteFault> {
        let stored = known.annotation(annotation::MANAGED_ALB);
        let mut all: BTreeMap<String, Vec<String>> = match stored {
            None => BTreeMap::new(),
            Some(stored) => serde_json::from_str(stored).map_err(|error| {
                let name = known.name();
                let key = annotation::MANAGED_ALB;
                RouteFault::unfit(need, format!("ingress `{name}`: annotation {key}: {error}"))
            })?,
        };
        all.insert(self.rollout.name.to_string(), keys);
        Ok(text(&all))
    }
}

/// The Services of both sides: those that take turns, where there are such.
fn backends<'a>(sides: &Sides<'a>) -> Backends<'a> {
    sides.ping_pong.unwrap_or(sides.fixed)
}

fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("texts and numbers can be written as JSON")
}

/// The condition of a header route; values for one header are joined.
fn matching(route: &SetHeaderRoute) -> String {
    let mut headers: Vec<(&str, Vec<&str>)> = Vec::new();
    for one in &route.r#match {
        let value = one.header_value.as_ref().map_or("", |value| &value.exact);
        match headers.iter_mut().find(|(name, _)| *name == one.header_name) {
            Some((_, values)) => values.push(value),
            None => headers.push((&one.header_name, vec![value])),
        }
    }
    let conditions = headers.into_iter().map(|(name, values)| {
        json!({
            "field": "http-header",
            "httpHeaderConfig": { "httpHeaderName": name, "values": values },
        })
    });
    Value::Array(conditions.collect()).to_string()
}

/// What is missing on one Ingress, gathered bit by bit.
struct Plan<'k> {
    known: &'k RouteView,
    notes: Map<String, Value>,
    rules: Option<Value>,
    told: Vec<(&'static str, String)>,
}

impl<'k> Plan<'k> {
    fn new(known: &'k RouteView) -> Self {
        Plan { known, notes: Map::new(), rules: None, told: Vec::new() }
    }

    /// Sets or removes an annotation; true if that is a change.
    fn note(&mut self, key: &str, value: Option<String>) -> bool {
        let is_change = self.known.annotation(key) != value.as_deref();
        if is_change {
            self.notes.insert(key.to_owned(), json!(value));
        }
        is_change
    }

    fn tell(&mut self, message: String) {
        self.told.push((router_event::PATCHING_ALB_INGRESS, message));
    }

    /// Every rule gets a path to each of these routes, in order of precedence and before all others;
    /// paths to other managed routes go.
    fn lead_to(&mut self, routes: &[&str], goal: &Goal<'_>) {
        let is_managed = |path: &Value| {
            let is_by_annotation = path["backend"]["service"]["port"]["name"] == BY_ANNOTATION;
            let is_named = goal.managed_routes.iter().any(|route| *backend(path) == *route.name);
            is_by_annotation && is_named
        };
        let by_annotation = |route: &&str| {
            json!({
                "path": "/*",
                "pathType": "ImplementationSpecific",
                "backend": { "service": { "name": route, "port": { "name": BY_ANNOTATION } } },
            })
        };
        let ordered = goal.managed_routes.iter().filter_map(|managed| {
            routes.iter().find(|route| **route == managed.name).map(by_annotation)
        });
        let ours: Vec<Value> = ordered.collect();
        let led = rules(self.known.spec()).iter().map(|rule| {
            let mut rule = rule.clone();
            if rule.get("http").is_some() {
                let kept = paths(&rule).iter().filter(|path| !is_managed(path)).cloned();
                rule["http"]["paths"] = ours.iter().cloned().chain(kept).collect();
            }
            rule
        });
        let led: Value = led.collect();
        if led != self.known.spec()["rules"] {
            self.rules = Some(led);
        }
    }

    fn finish(self, target: ObjectRef) -> Option<RouteWrite> {
        let mut patch = Map::new();
        if !self.notes.is_empty() {
            patch.insert("metadata".to_owned(), json!({ "annotations": self.notes }));
        }
        if let Some(rules) = self.rules {
            patch.insert("spec".to_owned(), json!({ "rules": rules }));
        }
        let op = RouteOp::Merge(Value::Object(patch.clone()));
        (!patch.is_empty()).then_some(RouteWrite { target, op, told: self.told })
    }
}
