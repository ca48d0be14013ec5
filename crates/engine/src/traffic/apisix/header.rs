//! The ApisixRoute of a header route: the rules with the weights, for requests with the header, before
//! all others, to the canary alone.

use gradus_api::rollout::canary::{SetHeaderRoute, StringMatch};
use serde_json::{Map, Value, json};

use super::super::WHOLE;
use super::super::own::{copied, covers, manifest};
use super::{Goal, RolloutView, RouteView, http};
use crate::decision::ObjectRef;

/// Makes the ApisixRoute of one header route.
pub struct HeaderRouteMaker<'a> {
    /// The user's ApisixRoute.
    pub base: &'a RouteView,
    /// Its rules that carry the weights.
    pub selected: &'a [usize],
    /// What the step asks for.
    pub route: &'a SetHeaderRoute,
    /// The split.
    pub goal: &'a Goal<'a>,
}

impl HeaderRouteMaker<'_> {
    /// The whole object.
    pub fn manifest(&self, rollout: &RolloutView, target: &ObjectRef) -> Value {
        let mut whole = manifest(rollout, target, self.spec());
        for field in ["labels", "annotations"] {
            if let Some(copy) = copied(self.base, field) {
                whole["metadata"][field] = copy;
            }
        }
        whole
    }

    /// The patch that a stored one needs; its priorities stay.
    pub fn missing(&self, stored: &RouteView) -> Option<Value> {
        let mut spec = self.spec();
        for rule in spec["http"].as_array_mut().into_iter().flatten() {
            let known = http(stored).iter().find(|known| known["name"] == rule["name"]);
            if let Some(priority) = known.and_then(|known| known.get("priority")) {
                rule["priority"] = priority.clone();
            }
        }
        (!covers(stored.spec(), &spec)).then(|| json!({ "spec": { "http": spec["http"] } }))
    }

    /// The spec of the base with the rules of the route.
    fn spec(&self) -> Value {
        let rules: Vec<Value> =
            self.selected.iter().map(|at| self.rule(&http(self.base)[*at])).collect();
        let mut spec = self.base.spec().as_object().cloned().unwrap_or_default();
        spec.insert("http".to_owned(), Value::Array(rules));
        Value::Object(spec)
    }

    fn rule(&self, source: &Value) -> Value {
        let mut rule = source.clone();
        let priority = source["priority"].as_i64().unwrap_or(0);
        rule["priority"] = json!(priority.saturating_add(1));
        if !rule["match"].is_object() {
            rule["match"] = Value::Object(Map::new());
        }
        rule["match"]["exprs"] = self.expressions();
        let (stable, canary) = (self.goal.sides.fixed.stable, self.goal.sides.fixed.canary);
        if let Some(backends) = rule["backends"].as_array_mut() {
            backends.retain(|one| one["serviceName"] != stable);
            for one in backends.iter_mut().filter(|one| one["serviceName"] == canary) {
                one["weight"] = json!(WHOLE);
            }
        }
        rule
    }

    fn expressions(&self) -> Value {
        let expression = |name: &str, value: &StringMatch| {
            let (op, value) = match value {
                value if !value.exact.is_empty() => ("Equal", value.exact.clone()),
                value if !value.prefix.is_empty() => ("RegexMatch", format!("^{}.*", value.prefix)),
                value => ("RegexMatch", value.regex.clone()),
            };
            json!({ "subject": { "scope": "Header", "name": name }, "op": op, "value": value })
        };
        let nothing = StringMatch::default();
        let all = self.route.r#match.iter();
        all.map(|one| expression(&one.header_name, one.header_value.as_ref().unwrap_or(&nothing)))
            .collect()
    }
}
