//! Which Ingresses does a router work on, and do they lead to the right Service?

use std::sync::Arc;

use serde_json::Value;

use super::fault::not_found;
use super::{Need, RouteFault, RouteWrite, RoutingObjects};
use crate::decision::ObjectRef;
use crate::kinds;
use crate::world::RolloutView;

/// The Ingresses a router's configuration names: one field for one, another for several.
pub(super) struct NamedIngress<'a> {
    /// Path of the configuration.
    pub path: &'static str,
    /// The field for one Ingress, and what it says.
    pub one: (&'static str, &'a str),
    /// The field for several, and what it says.
    pub several: (&'static str, &'a [String]),
    /// Both fields as error messages spell them.
    pub spelled: (&'static str, &'static str),
}

impl<'a> NamedIngress<'a> {
    /// The names, whichever field they are in.
    pub fn names(&self) -> Vec<&'a str> {
        let one = Some(self.one.1).filter(|name| !name.is_empty());
        one.into_iter().chain(self.several.1.iter().map(String::as_str)).collect()
    }

    /// The Ingresses themselves; all must be there.
    pub fn needs(&self, rollout: &RolloutView) -> Vec<Need> {
        let need = |name: &str| Need::required(reference(rollout, name), self.field());
        self.names().into_iter().map(need).collect()
    }

    /// The field that names them.
    pub fn field(&self) -> String {
        let field = if self.one.1.is_empty() { self.several.0 } else { self.one.0 };
        format!("{}.{field}", self.path)
    }

    /// The writes that are missing on all of them, in order.
    pub fn plan(
        &self,
        one: impl Fn(&str) -> Result<Option<RouteWrite>, RouteFault>,
    ) -> Result<Vec<RouteWrite>, RouteFault> {
        self.names().into_iter().filter_map(|name| one(name).transpose()).collect()
    }

    /// Not exactly one field is set.
    pub fn misconfigured(&self) -> Option<RouteFault> {
        let (has_one, has_several) = (!self.one.1.is_empty(), !self.several.1.is_empty());
        if has_one != has_several {
            return None;
        }
        let (one, several) = self.spelled;
        let found = if has_one { "Both" } else { "Neither" };
        let message = format!(
            "Internal error: Either {one} or {several} must be configured. {found} are configured."
        );
        Some(RouteFault::configuration(self.path, message))
    }

    /// The first that does not lead to the Service.
    pub fn unfit(
        &self,
        rollout: &RolloutView,
        service: &str,
        seen: &RoutingObjects,
    ) -> Option<RouteFault> {
        let leads_astray = |need: &Need| {
            let found = seen.get(&need.object);
            found.is_some_and(|found| !leads_to(found.spec(), service))
        };
        let need = self.needs(rollout).into_iter().find(leads_astray)?;
        let name = &*need.object.name;
        let detail = format!("ingress `{name}` has no rules using service {service} backend");
        Some(RouteFault::unfit(&need, format!("Invalid value: {name:?}: {detail}")))
    }

    /// One of them is gone although it was there a moment ago.
    pub fn gone(&self, rollout: &RolloutView, name: &str) -> RouteFault {
        let need = Need::required(reference(rollout, name), self.field());
        let missing = not_found(&need.object);
        let message = format!("error retrieving {} `{name}` from cache: {missing}", self.one.0);
        RouteFault { message, ..RouteFault::missing(&need) }
    }
}

/// A reference to an Ingress beside a Rollout.
pub(super) fn reference(rollout: &RolloutView, name: &str) -> ObjectRef {
    ObjectRef::new(kinds::INGRESS, &rollout.namespace, &Arc::from(name))
}

/// Has an Ingress a path to this Service?
pub(super) fn leads_to(spec: &Value, service: &str) -> bool {
    rules(spec).iter().any(|rule| paths(rule).iter().any(|path| *backend(path) == *service))
}

/// The rules of an Ingress.
pub(super) fn rules(spec: &Value) -> &[Value] {
    spec["rules"].as_array().map_or(&[], Vec::as_slice)
}

/// The paths of a rule; none of a rule for something else than HTTP.
pub(super) fn paths(rule: &Value) -> &[Value] {
    rule["http"]["paths"].as_array().map_or(&[], Vec::as_slice)
}

/// The Service a path leads to; none where it leads to another kind of resource.
pub(super) fn backend(path: &Value) -> &Value {
    &path["backend"]["service"]["name"]
}
