//! The HTTP routes that steps make: by header to the new revision, and copies for it. They stand first,
//! in the order of `managedRoutes`.

use gradus_api::rollout::canary::{MirrorMatch, SetHeaderRoute, SetMirrorRoute, StringMatch};
use serde_json::{Map, Value, json};

use super::service::Lanes;
use super::{Backends, Goal, WHOLE};

/// Makes the routes of one VirtualService.
pub struct Maker<'a> {
    /// What is wanted.
    pub goal: &'a Goal<'a>,
    /// Names of the routes that may be ours.
    pub managed: &'a [&'a str],
    /// How the new revision is reached.
    pub lanes: &'a Lanes<'a>,
    /// The host of the DestinationRule, where there is one.
    pub host: Option<&'a str>,
}

impl Maker<'_> {
    /// The HTTP routes as they should be; `None` where they are so already. `source` carries the
    /// weights.
    pub fn planned(&self, http: &Value, source: Option<&Value>) -> Result<Option<Value>, String> {
        let Value::Array(known) = http else {
            let has_routes =
                !self.goal.header_routes.is_empty() || !self.goal.mirror_routes.is_empty();
            return if has_routes { Err("spec.http not found".to_owned()) } else { Ok(None) };
        };
        let is_ours = |route: &&Value| self.managed.iter().any(|name| route["name"] == **name);
        let mut planned = Vec::new();
        for name in self.managed {
            let by_header = self.goal.header_routes.iter().find(|route| route.name == **name);
            let copies = self.goal.mirror_routes.iter().find(|route| route.name == **name);
            if by_header.is_none() && copies.is_none() {
                continue;
            }
            let source = source.filter(|source| !destinations(source).is_empty());
            let source = source.ok_or_else(|| {
                format!("route '{name}' has no HTTP route with destinations to take after")
            })?;
            planned.extend(copies.map(|route| self.mirror(route, source)));
            planned.extend(by_header.map(|route| self.header(route, source)));
        }
        planned.extend(known.iter().filter(|route| !is_ours(route)).cloned());
        Ok((planned != *known).then_some(Value::Array(planned)))
    }

    fn header(&self, route: &SetHeaderRoute, source: &Value) -> Value {
        let matches = route.r#match.iter().map(|one| {
            let value = one.header_value.as_ref().map(text).unwrap_or_default();
            json!({ "headers": { one.header_name.as_str(): value } })
        });
        let matches: Vec<Value> = matches.collect();
        let destination = self.canary(source);
        json!({
            "name": route.name, "match": matches,
            "route": [{ "destination": destination, "weight": WHOLE }],
        })
    }

    fn mirror(&self, route: &SetMirrorRoute, source: &Value) -> Value {
        let matches: Vec<Value> = route.r#match.iter().map(request).collect();
        let copied = destinations(source).iter().map(|one| {
            let mut copy = Map::new();
            copy.insert("destination".to_owned(), one["destination"].clone());
            if one["weight"].as_i64().is_some_and(|weight| weight != 0) {
                copy.insert("weight".to_owned(), one["weight"].clone());
            }
            Value::Object(copy)
        });
        let copied: Vec<Value> = copied.collect();
        json!({
            "name": route.name, "match": matches, "route": copied,
            "mirror": self.canary(source),
            "mirrorPercentage": { "value": route.percentage.unwrap_or(WHOLE) },
        })
    }

    /// The new revision, on the port of the first destination.
    fn canary(&self, source: &Value) -> Value {
        let mut destination = match self.lanes {
            Lanes::Hosts(Backends { canary, .. }) => json!({ "host": canary }),
            Lanes::Subsets { canary, .. } => {
                json!({ "host": self.host.unwrap_or_default(), "subset": canary })
            }
        };
        let first =
            destinations(source).first().map(|first| &first["destination"]["port"]["number"]);
        if let Some(port) = first.filter(|port| port.is_number()) {
            destination["port"] = json!({ "number": port });
        }
        destination
    }
}

/// What is said of the managed routes that have come, changed or gone.
pub fn told(before: &Value, after: &Value, goal: &Goal<'_>, managed: &[&str]) -> Vec<String> {
    let find = |http: &Value, name: &str| {
        let mut routes = http.as_array().into_iter().flatten();
        routes.find(|route| route["name"] == name).cloned()
    };
    let is_changed = |name: &str| find(before, name) != find(after, name);
    let mut told = Vec::new();
    for route in goal.header_routes.iter().filter(|route| is_changed(&route.name)) {
        told.push(format!("set headerRoute '{}'", route.name));
    }
    // Its weights are those of the route it takes after, and told with them.
    let copied = |http: &Value, name: &str| {
        let mut route = find(http, name)?;
        route["route"] = Value::Null;
        Some(route)
    };
    let is_new = |name: &str| copied(before, name) != copied(after, name);
    for route in goal.mirror_routes.iter().filter(|route| is_new(&route.name)) {
        told.push(format!("set mirrorRoute '{}'", route.name));
    }
    let is_gone = |name: &&&str| find(before, name).is_some() && find(after, name).is_none();
    let gone: Vec<&&str> = managed.iter().filter(is_gone).collect();
    if goal.route_steps.is_none() && !gone.is_empty() {
        told.push("removed all managed routes.".to_owned());
        return told;
    }
    // A step without a match takes one route away, and is told like any other.
    told.extend(gone.into_iter().map(|name| {
        let is_copy = find(before, name).is_some_and(|route| route.get("mirror").is_some());
        let what = if is_copy { "mirrorRoute" } else { "headerRoute" };
        format!("set {what} '{name}'")
    }));
    told
}

fn destinations(route: &Value) -> &[Value] {
    route["route"].as_array().map_or(&[], Vec::as_slice)
}

fn request(wanted: &MirrorMatch) -> Value {
    let mut matched = Map::new();
    if let Some(method) = &wanted.method {
        matched.insert("method".to_owned(), text(method));
    }
    if let Some(path) = &wanted.path {
        matched.insert("uri".to_owned(), text(path));
    }
    if !wanted.headers.is_empty() {
        let headers = wanted.headers.iter().map(|(name, value)| (name.clone(), text(value)));
        matched.insert("headers".to_owned(), Value::Object(headers.collect()));
    }
    Value::Object(matched)
}

fn text(wanted: &StringMatch) -> Value {
    let all = [("exact", &wanted.exact), ("prefix", &wanted.prefix), ("regex", &wanted.regex)];
    let set = all.into_iter().filter(|(_, text)| !text.is_empty());
    Value::Object(set.map(|(kind, text)| (kind.to_owned(), json!(text))).collect())
}
