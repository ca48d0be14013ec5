//! Which Ingresses does a router work on, and do they lead to the right Service?

use std::sync::Arc;

use serde_json::Value;

use super::{RouteError, RouteWrite, Seen};
use crate::decision::ObjectRef;
use crate::kinds;
use crate::world::RolloutView;

/// The Ingresses a router's configuration names: one field for one, another for several.
pub(super) struct Named<'a> {
    /// Path of the configuration.
    pub path: &'static str,
    /// The field for one Ingress, and what it says.
    pub one: (&'static str, &'a str),
    /// The field for several, and what it says.
    pub several: (&'static str, &'a [String]),
    /// Both fields as error messages spell them.
    pub spelled: (&'static str, &'static str),
}

impl<'a> Named<'a> {
    /// The names, whichever field they are in.
    pub fn names(&self) -> Vec<&'a str> {
        let one = Some(self.one.1).filter(|name| !name.is_empty());
        one.into_iter().chain(self.several.1.iter().map(String::as_str)).collect()
    }

    /// The writes that are missing on all of them, in order.
    pub fn plan(
        &self,
        one: impl Fn(&str) -> Result<Option<RouteWrite>, RouteError>,
    ) -> Result<Vec<RouteWrite>, RouteError> {
        self.names().into_iter().filter_map(|name| one(name).transpose()).collect()
    }

    /// The first thing wrong with them, as a field error: exactly one field is set, every Ingress is
    /// there and leads to the Service.
    pub fn check(&self, rollout: &RolloutView, service: &str, seen: &Seen) -> Option<String> {
        let (has_one, has_several) = (!self.one.1.is_empty(), !self.several.1.is_empty());
        if has_one == has_several {
            let (one, several) = self.spelled;
            let found = if has_one { "Both" } else { "Neither" };
            return Some(format!(
                "{}: Internal error: Either {one} or {several} must be configured. {found} are \
                 configured.",
                self.path
            ));
        }
        let field = if has_one { self.one.0 } else { self.several.0 };
        let invalid = |name: &str, detail: String| {
            Some(format!("{}.{field}: Invalid value: {name:?}: {detail}", self.path))
        };
        self.names().into_iter().find_map(|name| match seen.get(&reference(rollout, name)) {
            None => invalid(name, format!("ingress.networking.k8s.io {name:?} not found")),
            Some(found) if !leads_to(found.spec(), service) => invalid(
                name,
                format!("ingress `{name}` has no rules using service {service} backend"),
            ),
            Some(_) => None,
        })
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
