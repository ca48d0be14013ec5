//! Gateway API: weights stand on the `backendRefs` of the user's routes. The configuration is that of
//! Argo Rollouts' Gateway API plugin, without the plugin.

mod config;
mod rules;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use gradus_api::rollout::CanaryStep;
use gradus_api::rollout::canary::SetMirrorRoute;
use serde_json::{Map, Value, json};

use super::mark::{self, Moved};
use super::registry::{self, names, routing_in, weighted_template};
use super::report;
use super::split::relative;
use super::{
    Access, ConfigField, Goal, Need, Report, RouteFault, RouteOp, RouteSelection, RouteView,
    RouteWrite, Router, RouterEntry, RoutingObjects, Sides, WeightSplit, managed_routes,
    named_sides,
};
use crate::decision::{Kind, ObjectRef};
use crate::world::RolloutView;
pub(super) use config::RouteFamily;
use config::{GatewayConfig, NamedRoute, SelectedRoutes};
use rules::RuleGoal;
pub(super) use rules::is_managed;

/// The name under which the plugin's configuration stands.
const NAME: &str = "argoproj-labs/gatewayAPI";

const VERBS: &[&str] = &["get", "list", "watch", "patch"];
const WEIGHTS: &str = "spec.rules";

/// This router, for the list.
pub(super) static ENTRY: RouterEntry = RouterEntry {
    config: ConfigField::Plugin(NAME),
    label: None,
    access: &[
        Access { kind: RouteFamily::Http.kind(), verbs: VERBS, weights: WEIGHTS },
        Access { kind: RouteFamily::Grpc.kind(), verbs: VERBS, weights: WEIGHTS },
        Access { kind: RouteFamily::Tcp.kind(), verbs: VERBS, weights: WEIGHTS },
        Access { kind: RouteFamily::Tls.kind(), verbs: VERBS, weights: WEIGHTS },
    ],
    has_header_routes: true,
    has_mirror_routes: true,
    has_experiments: true,
    has_max_weight: true,
    of: |rollout, routing| {
        let routes = config::read(routing.plugins.get(NAME)?, &ENTRY.config.path());
        Some(Box::new(Gateway { rollout, routes }))
    },
    releases: &[
        mark::release(RouteFamily::Http.kind(), |_, spec| named_in(spec, RouteFamily::Http)),
        mark::release(RouteFamily::Grpc.kind(), |_, spec| named_in(spec, RouteFamily::Grpc)),
        mark::release(RouteFamily::Tcp.kind(), |_, spec| named_in(spec, RouteFamily::Tcp)),
        mark::release(RouteFamily::Tls.kind(), |_, spec| named_in(spec, RouteFamily::Tls)),
    ],
    refused: registry::untold,
};

/// The routes of one kind that a Rollout's spec names, read from its JSON.
fn named_in(spec: &Value, family: RouteFamily) -> Vec<String> {
    let config = &routing_in(spec)["plugins"][NAME];
    let one = config[family.field()].as_str().filter(|name| !name.is_empty());
    let several = names(&config[format!("{}s", family.field())]);
    one.map(str::to_owned).into_iter().chain(several).collect()
}

/// Does a Rollout's spec select routes of this kind, read from its JSON?
pub(super) fn selects_in(kind: &Kind, spec: &Value) -> bool {
    let config = &routing_in(spec)["plugins"][NAME];
    let selects =
        |family: &RouteFamily| family.kind() == *kind && !config[family.selector_field()].is_null();
    RouteFamily::ALL.iter().any(selects)
}

/// The router of a Rollout.
struct Gateway<'r> {
    rollout: &'r RolloutView,
    routes: Result<GatewayConfig, RouteFault>,
}

impl Router for Gateway<'_> {
    fn needs(&self) -> Vec<Need> {
        self.named().iter().map(|route| self.need(route)).collect()
    }

    fn leads_to(&self, seen: &RoutingObjects) -> Vec<Need> {
        let selected = self.selected(seen);
        let need = |route: &NamedRoute| Need::optional(self.need(route).object, &*route.field);
        selected.iter().map(need).collect()
    }

    fn selections(&self) -> Vec<RouteSelection> {
        let selected = self.routes.as_ref().map_or(&[][..], |routes| &routes.selected);
        let selection = |one: &SelectedRoutes| RouteSelection {
            kind: one.family.kind(),
            namespace: Arc::clone(self.namespace()),
            selector: one.selector.clone(),
        };
        selected.iter().map(selection).collect()
    }

    fn misconfigured(&self) -> Option<RouteFault> {
        match &self.routes {
            Err(fault) => Some(fault.clone()),
            Ok(_) => self.steps().iter().enumerate().find_map(|(at, step)| self.cannot(at, step)),
        }
    }

    fn unfit(&self, seen: &RoutingObjects) -> Option<RouteFault> {
        let backends = named_sides(self.rollout).preferring_fixed();
        let wanted = self.wanted(seen);
        if wanted.is_empty() {
            return Some(config::nothing(&ENTRY.config.path()));
        }
        wanted.iter().find_map(|route| {
            let need = self.need(route);
            let rules = rules_of(seen.get(&need.object)?);
            let is_fit = rules.iter().any(|rule| rules::has_both(rule, backends));
            (!is_fit).then(|| lacks(route, &need))
        })
    }

    fn splits(&self, sides: &Sides<'_>, seen: &RoutingObjects) -> Vec<WeightSplit> {
        let backends = sides.preferring_fixed();
        let canary = self.rollout.spec.fields.strategy.canary.as_ref();
        let max = canary.map_or(100, |canary| canary.max_weight());
        let of_route = |route: &NamedRoute| {
            let object = self.need(route).object;
            let rules = seen.get(&object).map(rules_of).unwrap_or_default();
            let managed = self.managed();
            let own = rules.iter().filter(|rule| !rules::is_managed(rule, &managed));
            let carrying = own.filter(|rule| rules::has_both(rule, backends));
            let split = |rule: &Value| WeightSplit {
                object: object.clone(),
                parts: relative(&rules::weights(rule), backends, max),
            };
            carrying.map(split).collect::<Vec<_>>()
        };
        self.wanted(seen).iter().flat_map(of_route).collect()
    }

    fn reported(&self, seen: &RoutingObjects) -> Option<Report> {
        let of_route = |route: &NamedRoute| {
            let object = self.need(route).object;
            report::of_parents(seen.get(&object)?, &object.to_string())
        };
        self.wanted(seen).iter().filter_map(of_route).max()
    }

    fn moved(&self, object: &ObjectRef, goal: &Goal<'_>) -> Option<Moved> {
        // Of routes that are selected none but those are seen.
        let is_selected =
            |one: &RouteSelection| one.kind == object.kind && one.namespace == object.namespace;
        let is_named = self.named().iter().any(|route| self.need(route).object == *object);
        (is_named || self.selections().iter().any(is_selected)).then_some(())?;
        let label = self.routes.as_ref().ok()?.label.as_ref().map(|(key, _)| key.as_str());
        let moved = Moved::between(goal.sides.preferring_fixed(), goal);
        Some(moved.and_routes(&self.managed()).and_label(label))
    }

    fn plan(&self, goal: &Goal<'_>, seen: &RoutingObjects) -> Result<Vec<RouteWrite>, RouteFault> {
        let routes = self.routes.as_ref().map_err(Clone::clone)?;
        let wanted = self.wanted(seen);
        let writes = wanted.iter().map(|route| self.plan_one(routes, route, goal, seen));
        writes.filter_map(Result::transpose).collect()
    }
}

impl Gateway<'_> {
    /// The routes that are named.
    fn named(&self) -> &[NamedRoute] {
        self.routes.as_ref().map_or(&[], |routes| &routes.named)
    }

    /// The routes that are there and selected, and not named; steps add no rules to them.
    fn selected(&self, seen: &RoutingObjects) -> Vec<NamedRoute> {
        let selections = self.selections();
        let fields = self.routes.as_ref().map_or(&[][..], |routes| &routes.selected);
        let mut found: Vec<NamedRoute> = Vec::new();
        for (selection, SelectedRoutes { family, field, .. }) in selections.iter().zip(fields) {
            let is_meant = |(object, view): &(&ObjectRef, &RouteView)| {
                selection.selects(object, |key| view.label(key))
            };
            for (object, _) in seen.iter().filter(is_meant) {
                let mut named = self.named().iter();
                if named.any(|route| route.family == *family && route.name == object.name) {
                    continue;
                }
                let (name, field) = (Arc::clone(&object.name), field.clone());
                found.push(NamedRoute { family: *family, name, uses_header_routes: false, field });
            }
        }
        found
    }

    /// All routes to steer, kind by kind.
    fn wanted(&self, seen: &RoutingObjects) -> Vec<NamedRoute> {
        let mut wanted = [self.named().to_vec(), self.selected(seen)].concat();
        wanted.sort_by_key(|route| RouteFamily::ALL.iter().position(|one| *one == route.family));
        wanted
    }

    fn namespace(&self) -> &Arc<str> {
        let namespace = self.routes.as_ref().ok().and_then(|routes| routes.namespace.as_ref());
        namespace.unwrap_or(&self.rollout.namespace)
    }

    fn need(&self, route: &NamedRoute) -> Need {
        let object = ObjectRef::new(route.family.kind(), self.namespace(), &route.name);
        Need::required(object, route.field.clone())
    }

    fn steps(&self) -> &[CanaryStep] {
        let canary = self.rollout.spec.fields.strategy.canary.as_ref();
        canary.map_or(&[], |canary| &canary.steps)
    }

    /// Names of the routes that the steps make.
    fn managed(&self) -> Vec<&str> {
        managed_routes(self.rollout).iter().map(|route| &*route.name).collect()
    }

    /// Why none of the routes can do a step, if none can.
    fn cannot(&self, at: usize, step: &CanaryStep) -> Option<RouteFault> {
        let has = |families: &[RouteFamily]| {
            let with_rules = self.named().iter().filter(|route| route.uses_header_routes);
            with_rules.into_iter().any(|route| families.contains(&route.family))
        };
        let (field, needed) = match step {
            _ if step.set_header_route.is_some()
                && !has(&[RouteFamily::Http, RouteFamily::Grpc]) =>
            {
                ("setHeaderRoute", "an HTTPRoute or a GRPCRoute")
            }
            _ if step.set_mirror_route.is_some() && !has(&[RouteFamily::Http]) => {
                ("setMirrorRoute", "an HTTPRoute")
            }
            _ if step.set_mirror_route.as_ref().is_some_and(|route| has_other_method(route)) => {
                let message = "Forbidden: router argoproj-labs/gatewayAPI can match a method by exact \
                               value alone";
                let path = format!("spec.strategy.canary.steps[{at}].setMirrorRoute.match");
                return Some(RouteFault::configuration(path, message));
            }
            _ => {
                let field = weighted_template(step)?;
                let http = RouteFamily::Http.kind();
                let has_http = self.named().iter().any(|it| it.family == RouteFamily::Http)
                    || self.selections().iter().any(|one| one.kind == http);
                let path = format!("spec.strategy.canary.steps[{at}].{field}");
                let message =
                    format!("Forbidden: router {NAME} cannot do {field} without an HTTPRoute");
                return (!has_http).then(|| RouteFault::configuration(path, message));
            }
        };
        let path = format!("spec.strategy.canary.steps[{at}].{field}");
        let message = format!(
            "Forbidden: router {NAME} cannot do {field} without {needed} with useHeaderRoutes"
        );
        Some(RouteFault::configuration(path, message))
    }

    fn plan_one(
        &self,
        routes: &GatewayConfig,
        route: &NamedRoute,
        goal: &Goal<'_>,
        seen: &RoutingObjects,
    ) -> Result<Option<RouteWrite>, RouteFault> {
        let need = self.need(route);
        let known = seen.get(&need.object).ok_or_else(|| RouteFault::missing(&need))?;
        let backends = goal.sides.preferring_fixed();
        let managed = self.managed();
        let wish = RuleGoal {
            family: route.family,
            backends,
            goal,
            managed: &managed,
            uses_header_routes: route.uses_header_routes,
            rollout: self.rollout,
        };
        let before = rules_of(known);
        if !before.iter().any(|rule| rules::has_both(rule, backends)) {
            return Err(lacks(route, &need));
        }
        let after =
            rules::planned(before, &wish).map_err(|message| RouteFault::unfit(&need, message))?;
        let mut patch = Map::new();
        if let Some(labels) = label(routes, known, goal.weight) {
            patch.insert("metadata".to_owned(), json!({ "labels": labels }));
        }
        if after != before {
            patch.insert("spec".to_owned(), json!({ "rules": after }));
        }
        let op = RouteOp::Merge(Value::Object(patch.clone()));
        let write = RouteWrite { target: need.object, op, told: Vec::new() };
        Ok((!patch.is_empty()).then_some(write))
    }
}

fn rules_of(route: &RouteView) -> &[Value] {
    route.spec()["rules"].as_array().map_or(&[], Vec::as_slice)
}

/// Does a route for copies match methods by anything but an exact value?
fn has_other_method(route: &SetMirrorRoute) -> bool {
    let mut methods = route.r#match.iter().filter_map(|one| one.method.as_ref());
    methods.any(|method| method.exact.is_empty())
}

/// No rule of a route leads to both Services.
fn lacks(route: &NamedRoute, need: &Need) -> RouteFault {
    let what = match route.family {
        RouteFamily::Http => "backendRef was not found in httpRoute",
        RouteFamily::Grpc => "backendRef was not found in grpcRoute",
        RouteFamily::Tcp => "backendRef list was not found in tcpRoute",
        RouteFamily::Tls => "backendRef list was not found in tlsRoute",
    };
    RouteFault::unfit(need, format!("Invalid value: {:?}: {what}", &*need.object.name))
}

/// The change of the label that marks a route while a canary has traffic, if there is one.
fn label(routes: &GatewayConfig, known: &RouteView, weight: i32) -> Option<Value> {
    let (key, value) = routes.label.as_ref()?;
    let wanted = (weight > 0).then_some(value.as_str());
    (known.label(key) != wanted).then(|| json!({ key: wanted }))
}
