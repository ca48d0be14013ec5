//! Apache APISIX: weights stand on the backends of rules of the user's ApisixRoute; a header route is an
//! ApisixRoute of our own beside it.

mod header;
#[cfg(test)]
mod tests;

use gradus_api::names::router_event;
use gradus_api::traffic::ApisixRoute;
use serde_json::{Value, json};

use super::mark::{self, Moved};
use super::own;
use super::registry::{names, routing_in};
use super::split::relative;
use super::{
    Access, Backends, ConfigField, Goal, Need, Release, RouteFault, RouteOp, RouteView, RouteWrite,
    Router, RouterEntry, RoutingObjects, Sides, WeightSplit, managed_routes, named_sides,
};
use crate::decision::{EventKind, Kind, ObjectRef, Op};
use crate::world::RolloutView;

pub(super) const APISIX_ROUTE: Kind =
    Kind::new("apisix.apache.org", "v2", "ApisixRoute", "apisixroutes");
/// What APISIX takes for a weight that is not there.
const DEFAULT_WEIGHT: i64 = 100;

/// This router, for the list.
pub(super) static ENTRY: RouterEntry = RouterEntry {
    config: ConfigField::Field("apisix"),
    label: None,
    access: &[Access {
        kind: APISIX_ROUTE,
        verbs: &["get", "list", "watch", "create", "patch", "delete"],
        weights: "spec.http",
    }],
    has_header_routes: true,
    has_mirror_routes: false,
    has_experiments: false,
    has_max_weight: false,
    of: |rollout, routing| {
        let route = routing.apisix.as_deref()?.route.as_ref();
        Some(Box::new(Apisix { rollout, route }))
    },
    releases: &[
        Release {
            kind: APISIX_ROUTE,
            managers: own::managers,
            released: own::released,
            named_in: |_, spec| {
                // The user's own comes first: as long as it is named, leftovers are looked for.
                let routing = routing_in(spec);
                let own = routing["apisix"]["route"]["name"].as_str().map(str::to_owned);
                own.into_iter()
                    .flat_map(|own| [vec![own], names(&routing["managedRoutes"])].concat())
                    .collect()
            },
        },
        mark::release(APISIX_ROUTE, |_, spec| {
            let name = &routing_in(spec)["apisix"]["route"]["name"];
            name.as_str().map(str::to_owned).into_iter().collect()
        }),
    ],
    refused: |route, op, said| {
        let (reason, what) = match op {
            Op::Create(_) => (router_event::APISIX_ROUTE_CREATE_ERROR, "create"),
            Op::Merge(_) => (router_event::APISIX_ROUTE_UPDATE_ERROR, "updating"),
            Op::Delete | Op::Evict => (router_event::APISIX_ROUTE_DELETE_ERROR, "deleting"),
        };
        let text = || format!("Error {what} apisix route {:?}: {said}", &*route.name);
        (route.kind == APISIX_ROUTE).then(|| (EventKind::Warning, reason, text()))
    },
};

/// The router of a Rollout.
struct Apisix<'r> {
    rollout: &'r RolloutView,
    route: Option<&'r ApisixRoute>,
}

impl Router for Apisix<'_> {
    fn needs(&self) -> Vec<Need> {
        let managed = managed_routes(self.rollout).iter().enumerate();
        let by_header = managed.map(|(at, route)| {
            let field = format!("{}.trafficRouting.managedRoutes[{at}].name", super::PATH);
            Need::optional(self.reference(&route.name), field)
        });
        self.need().into_iter().chain(by_header).collect()
    }

    fn misconfigured(&self) -> Option<RouteFault> {
        let path = format!("{}.route", ENTRY.config.path());
        let Some(need) = self.need().filter(|need| !need.object.name.is_empty()) else {
            let message = "Required value: the name of an ApisixRoute";
            return Some(RouteFault::configuration(format!("{path}.name"), message));
        };
        let managed = self.needs().into_iter().skip(1);
        let twin = managed.into_iter().find(|other| other.object == need.object)?;
        let message = format!(
            "Invalid value: {:?}: expected another name than that of the ApisixRoute with the \
             weights",
            &*need.object.name
        );
        Some(RouteFault::configuration(twin.field, message))
    }

    fn unfit(&self, seen: &RoutingObjects) -> Option<RouteFault> {
        let need = self.need()?;
        let message =
            self.selected(seen.get(&need.object)?, named_sides(self.rollout).fixed).err()?;
        let name = &*need.object.name;
        Some(RouteFault::unfit(&need, format!("Invalid value: {name:?}: {message}")))
    }

    fn splits(&self, sides: &Sides<'_>, seen: &RoutingObjects) -> Vec<WeightSplit> {
        let Some(object) = self.need().map(|need| need.object) else { return Vec::new() };
        let Some(known) = seen.get(&object) else { return Vec::new() };
        let selected = self.selected(known, sides.fixed).unwrap_or_default();
        let split = |at: usize| {
            let weight = |one: &Value| {
                let name = one["serviceName"].as_str().unwrap_or_default().to_owned();
                (name, one["weight"].as_i64().unwrap_or(DEFAULT_WEIGHT))
            };
            let weights: Vec<_> = backends_of(&http(known)[at]).iter().map(weight).collect();
            let parts = relative(&weights, sides.fixed, super::WHOLE);
            WeightSplit { object: object.clone(), parts }
        };
        selected.into_iter().map(split).collect()
    }

    fn moved(&self, object: &ObjectRef, goal: &Goal<'_>) -> Option<Moved> {
        (*object == self.need()?.object).then(|| Moved::between(goal.sides.fixed, goal))
    }

    fn plan(&self, goal: &Goal<'_>, seen: &RoutingObjects) -> Result<Vec<RouteWrite>, RouteFault> {
        let Some(need) = self.need() else { return Err(self.misconfigured().expect("no route")) };
        let known = seen.get(&need.object).ok_or_else(|| RouteFault::missing(&need))?;
        let unfit = |message: String| RouteFault::unfit(&need, message);
        let selected = self.selected(known, goal.sides.fixed).map_err(unfit)?;
        // Routes that go leave before the weights change, routes that come follow.
        let (mut first, mut last) = (Vec::new(), Vec::new());
        for managed in self.needs().into_iter().skip(1) {
            let wanted = goal.header_routes.iter().find(|it| *it.name == *managed.object.name);
            let known_route = seen.get(&managed.object);
            match (wanted, known_route) {
                (None, Some(stored)) if own::is_owned(stored, self.rollout) => {
                    let (target, op) = (managed.object, RouteOp::Delete);
                    first.push(RouteWrite { target, op, told: Vec::new() });
                }
                (None, _) => {}
                (Some(route), stored) => {
                    let maker =
                        header::HeaderRouteMaker { base: known, selected: &selected, route, goal };
                    last.extend(self.plan_header(&managed, stored, &maker)?);
                }
            }
        }
        let weights = weighted(known, &selected, goal).map(|http| {
            let op = RouteOp::Merge(json!({ "spec": { "http": http } }));
            RouteWrite { target: need.object.clone(), op, told: Vec::new() }
        });
        Ok(first.into_iter().chain(weights).chain(last).collect())
    }
}

impl Apisix<'_> {
    fn reference(&self, name: &str) -> ObjectRef {
        ObjectRef::new(APISIX_ROUTE, &self.rollout.namespace, &name.into())
    }

    fn need(&self) -> Option<Need> {
        let field = format!("{}.route.name", ENTRY.config.path());
        Some(Need::required(self.reference(&self.route?.name), field))
    }

    /// Places of the rules that carry the weights; what is wrong where one cannot.
    fn selected(&self, known: &RouteView, backends: Backends<'_>) -> Result<Vec<usize>, String> {
        let Some(route) = self.route else { return Ok(Vec::new()) };
        if !known.spec()["http"].is_array() {
            return Err("spec.http was not found in Apisix Route manifest".to_owned());
        }
        let own = std::slice::from_ref(&route.name);
        let names = if route.rules.is_empty() { own } else { &route.rules };
        let place = |name: &String| {
            let at = http(known).iter().position(|rule| rule["name"] == **name);
            let at = at.ok_or_else(|| format!("Apisix http route rule {name} not found"))?;
            lacks(&http(known)[at], backends).map_or(Ok(at), Err)
        };
        names.iter().map(place).collect()
    }

    fn plan_header(
        &self,
        need: &Need,
        stored: Option<&RouteView>,
        maker: &header::HeaderRouteMaker<'_>,
    ) -> Result<Option<RouteWrite>, RouteFault> {
        let target = need.object.clone();
        let Some(stored) = stored else {
            let op = RouteOp::Create(maker.manifest(self.rollout, &target));
            return Ok(Some(RouteWrite { target, op, told: Vec::new() }));
        };
        if !own::is_owned(stored, self.rollout) {
            let message = format!("duplicate ApisixRoute [{}] already exists", target.name);
            return Err(RouteFault::unfit(need, message));
        }
        let patch = maker.missing(stored);
        Ok(patch.map(|patch| RouteWrite { target, op: RouteOp::Merge(patch), told: Vec::new() }))
    }
}

fn http(known: &RouteView) -> &[Value] {
    known.spec()["http"].as_array().map_or(&[], Vec::as_slice)
}

fn backends_of(rule: &Value) -> &[Value] {
    rule["backends"].as_array().map_or(&[], Vec::as_slice)
}

/// What a rule lacks to split between both Services.
fn lacks(rule: &Value, backends: Backends<'_>) -> Option<String> {
    if !rule["backends"].is_array() {
        return Some("Apisix http route backends not found".to_owned());
    }
    let all = backends_of(rule);
    if all.iter().any(|one| !one["serviceName"].is_string()) {
        return Some("serviceName field was not found in backend".to_owned());
    }
    let is_absent = |name: &&str| !all.iter().any(|one| one["serviceName"] == **name);
    let absent = [backends.canary, backends.stable].into_iter().find(is_absent)?;
    Some(format!("apisix route {absent} backend was not found"))
}

/// The rules with the wanted weights; `None` where they have them.
fn weighted(known: &RouteView, selected: &[usize], goal: &Goal<'_>) -> Option<Vec<Value>> {
    let mut http = http(known).to_vec();
    for at in selected {
        for one in http[*at]["backends"].as_array_mut().into_iter().flatten() {
            let name = one["serviceName"].as_str().unwrap_or_default();
            if let Some(weight) = goal.weight_of(goal.sides.fixed, name) {
                one["weight"] = json!(weight);
            }
        }
    }
    (http != self::http(known)).then_some(http)
}
