//! The rules of a route as they should be: weights in the user's rules, and rules of our own for
//! headers and copies. What else stands in a rule is left as it is.

use gradus_api::rollout::canary::{MirrorMatch, SetHeaderRoute, SetMirrorRoute, StringMatch};
use serde_json::{Map, Value, json};

use super::config::RouteFamily;
use crate::traffic::own::covers;
use crate::traffic::{Backends, Destination, Goal};
use crate::world::RolloutView;

/// What the rules of one route are planned for.
pub struct RuleGoal<'a> {
    /// The kind of route.
    pub family: RouteFamily,
    /// The Services of both sides.
    pub backends: Backends<'a>,
    /// The split.
    pub goal: &'a Goal<'a>,
    /// Names of the rules that may be ours.
    pub managed: &'a [&'a str],
    /// May rules be added?
    pub uses_header_routes: bool,
    /// The Rollout.
    pub rollout: &'a RolloutView,
}

/// The rules as they should be: copies first, then the user's own, then those by header.
pub fn planned(rules: &[Value], wish: &RuleGoal<'_>) -> Result<Vec<Value>, String> {
    let has_managed =
        matches!(wish.family, RouteFamily::Http | RouteFamily::Grpc) && wish.uses_header_routes;
    let is_ours = |rule: &&Value| has_managed && is_managed(rule, wish.managed);
    let mut own: Vec<Value> = rules.iter().filter(|rule| !is_ours(rule)).cloned().collect();
    let mut is_first = true;
    for rule in own.iter_mut().filter(|rule| has_both(rule, wish.backends)) {
        let takes_additional = is_first && wish.family == RouteFamily::Http;
        set_weights(rule, wish, takes_additional);
        is_first = false;
    }
    if !has_managed {
        return Ok(own);
    }
    let sources: Vec<&Value> = own.iter().filter(|rule| has_both(rule, wish.backends)).collect();
    let (mut copies, mut by_header) = (Vec::new(), Vec::new());
    for name in wish.managed {
        if let Some(route) = wish.goal.mirror_routes.iter().find(|route| route.name == **name)
            && wish.family == RouteFamily::Http
        {
            copies.extend(mirrors(route, &sources, wish)?);
        }
        if let Some(route) = wish.goal.header_routes.iter().find(|route| route.name == **name) {
            by_header.extend(headers(route, &sources, wish)?);
        }
    }
    let known = |rule: Value| {
        let same = rules.iter().find(|known| known["name"] == rule["name"] && covers(known, &rule));
        same.cloned().unwrap_or(rule)
    };
    let copies: Vec<Value> = copies.into_iter().map(known).collect();
    let by_header = by_header.into_iter().map(known);
    Ok(copies.into_iter().chain(own.iter().cloned()).chain(by_header).collect())
}

/// Is a rule one that steps have made: does it bear the name of one, perhaps with a number?
pub fn is_managed(rule: &Value, managed: &[&str]) -> bool {
    let Some(name) = rule["name"].as_str() else { return false };
    managed.iter().any(|route| {
        let rest = name.strip_prefix(route);
        rest.is_some_and(|rest| {
            let number = rest.strip_prefix('-');
            rest.is_empty() || number.is_some_and(|number| number.parse::<u32>().is_ok())
        })
    })
}

/// Does a rule lead to both Services?
pub fn has_both(rule: &Value, backends: Backends<'_>) -> bool {
    let leads_to = |service: &str| refs(rule).iter().any(|one| is_service(one, service));
    leads_to(backends.canary) && leads_to(backends.stable)
}

/// The weight of each backend of a rule.
pub fn weights(rule: &Value) -> Vec<(String, i64)> {
    let name = |one: &Value| one["name"].as_str().unwrap_or_default().to_owned();
    // A missing weight counts as 1.
    let weight = |one: &Value| one["weight"].as_i64().unwrap_or(1);
    refs(rule).iter().map(|one| (name(one), weight(one))).collect()
}

fn refs(rule: &Value) -> &[Value] {
    rule["backendRefs"].as_array().map_or(&[], Vec::as_slice)
}

/// Does a backendRef lead to this Service?
fn is_service(one: &Value, name: &str) -> bool {
    let is_or_missing = |field: &str, value: &str| one[field].is_null() || one[field] == value;
    one["name"] == name && is_or_missing("kind", "Service") && is_or_missing("group", "")
}

fn set_weights(rule: &mut Value, wish: &RuleGoal<'_>, takes_additional: bool) {
    let RuleGoal { backends, goal, .. } = wish;
    let additional = if takes_additional { goal.additional } else { &[] };
    let source = rule.clone();
    let rest = if takes_additional { goal.rest() } else { goal.max_weight - goal.weight };
    let Some(refs) = rule["backendRefs"].as_array_mut() else { return };
    let is_wanted = |one: &Value| additional.iter().any(|it| is_service(one, &it.service));
    refs.retain(|one| is_wanted(one) || !is_of_experiment(one, wish.rollout));
    for one in refs.iter_mut() {
        let weight = match &*one {
            one if is_service(one, backends.canary) => goal.weight,
            one if is_service(one, backends.stable) => rest,
            one => match additional.iter().find(|it| is_service(one, &it.service)) {
                Some(known) => known.weight,
                None => continue,
            },
        };
        one["weight"] = json!(weight);
    }
    for it in additional {
        if !refs.iter().any(|one| is_service(one, &it.service)) {
            refs.push(trial(&source, it, wish));
        }
    }
}

/// The backend of an Experiment's Service. Its ports are those of the containers, not those of the
/// canary's Service.
fn trial(source: &Value, it: &Destination, wish: &RuleGoal<'_>) -> Value {
    let mut one = json!({
        "name": &*it.service, "namespace": &*wish.rollout.namespace, "weight": it.weight,
    });
    let of_canary = || backend(source, wish.backends.canary).get("port").cloned();
    if let Some(port) = it.port.map(Value::from).or_else(of_canary) {
        one["port"] = port;
    }
    one
}

/// Is it the Service of an Experiment of this Rollout: named in the status, or by the pattern
/// `<rollout>-<hash>-<revision>-<step>-<template>`? The status is written after the route, so a
/// crash between the two leaves only the name.
fn is_of_experiment(one: &Value, rollout: &RolloutView) -> bool {
    let Some(name) = one["name"].as_str() else { return false };
    let weights = rollout.status.canary.weights.as_ref();
    let mut stored = weights.into_iter().flat_map(|weights| &weights.additional);
    let rest = name.strip_prefix(&*rollout.name).and_then(|rest| rest.strip_prefix('-'));
    let mut parts = rest.unwrap_or_default().splitn(4, '-').skip(1);
    let mut is_number = || parts.next().is_some_and(|part| part.parse::<u32>().is_ok());
    let is_by_pattern = is_number() && is_number() && parts.next().is_some();
    stored.any(|known| known.service_name == name) || is_by_pattern
}

/// One rule by header for each source rule.
fn headers(
    route: &SetHeaderRoute,
    sources: &[&Value],
    wish: &RuleGoal<'_>,
) -> Result<Vec<Value>, String> {
    let wanted = route.r#match.iter().map(|one| {
        let value = one.header_value.as_ref();
        value.and_then(|value| header(&one.header_name, value)).ok_or("invalid header match type")
    });
    let wanted = wanted.collect::<Result<Vec<Value>, _>>()?;
    let with_headers = |source: &Value| {
        let mut matched = source.as_object().cloned().unwrap_or_default();
        let known = matched.get("headers").and_then(Value::as_array).cloned().unwrap_or_default();
        matched.insert("headers".to_owned(), known.into_iter().chain(wanted.clone()).collect());
        Value::Object(matched)
    };
    let rule = |(at, source): (usize, &&Value)| {
        let matches = match source["matches"].as_array() {
            Some(all) if !all.is_empty() => all.iter().map(with_headers).collect(),
            _ => vec![with_headers(&Value::Null)],
        };
        let whole = backend(source, wish.backends.canary);
        let mut rule = Map::new();
        rule.insert("name".to_owned(), json!(name_of(&route.name, at)));
        rule.insert("matches".to_owned(), Value::Array(matches));
        if let Some(filters) = source.get("filters") {
            rule.insert("filters".to_owned(), filters.clone());
        }
        rule.insert("backendRefs".to_owned(), json!([whole]));
        Value::Object(rule)
    };
    Ok(sources.iter().enumerate().map(rule).collect())
}

/// One rule that copies requests for each source rule.
fn mirrors(
    route: &SetMirrorRoute,
    sources: &[&Value],
    wish: &RuleGoal<'_>,
) -> Result<Vec<Value>, String> {
    let matches = route.r#match.iter().map(request).collect::<Result<Vec<Value>, String>>()?;
    let rule = |(at, source): (usize, &&Value)| {
        let mut mirror = json!({ "backendRef": backend(source, wish.backends.canary) });
        if let Some(percent) = route.percentage {
            mirror["percent"] = json!(percent);
        }
        let filters = source["filters"].as_array().cloned().unwrap_or_default();
        let filter = json!({ "type": "RequestMirror", "requestMirror": mirror });
        let filters: Vec<Value> = filters.into_iter().chain([filter]).collect();
        json!({
            "name": name_of(&route.name, at), "matches": matches, "filters": filters,
            "backendRefs": source["backendRefs"],
        })
    };
    Ok(sources.iter().enumerate().map(rule).collect())
}

/// The canary Service with the port it has in a rule.
fn backend(source: &Value, service: &str) -> Value {
    let known = refs(source).iter().find(|one| is_service(one, service));
    let mut backend = json!({ "group": "", "kind": "Service", "name": service });
    if let Some(port) = known.and_then(|known| known.get("port")) {
        backend["port"] = port.clone();
    }
    backend
}

fn name_of(route: &str, at: usize) -> String {
    if at == 0 { route.to_owned() } else { format!("{route}-{at}") }
}

/// A match of a header; `None` where the value says nothing.
fn header(name: &str, value: &StringMatch) -> Option<Value> {
    let (r#type, value) = match value {
        value if !value.exact.is_empty() => ("Exact", value.exact.clone()),
        value if !value.prefix.is_empty() => ("RegularExpression", format!("{}.*", value.prefix)),
        value if !value.regex.is_empty() => ("RegularExpression", value.regex.clone()),
        _ => return None,
    };
    Some(json!({ "type": r#type, "name": name, "value": value }))
}

/// What a request must look like to be copied.
fn request(wanted: &MirrorMatch) -> Result<Value, String> {
    let mut matched = Map::new();
    let (r#type, value) = match &wanted.path {
        None => ("PathPrefix", "/"),
        Some(path) if !path.exact.is_empty() => ("Exact", path.exact.as_str()),
        Some(path) if !path.prefix.is_empty() => ("PathPrefix", path.prefix.as_str()),
        Some(path) => ("RegularExpression", path.regex.as_str()),
    };
    matched.insert("path".to_owned(), json!({ "type": r#type, "value": value }));
    if let Some(method) = &wanted.method {
        if method.exact.is_empty() {
            return Err("Gateway API matches a method by exact value only".to_owned());
        }
        matched.insert("method".to_owned(), json!(method.exact));
    }
    let headers = wanted.headers.iter().map(|(name, value)| header(name, value));
    let headers: Vec<Value> =
        headers.collect::<Option<_>>().ok_or_else(|| "invalid header match type".to_owned())?;
    if !headers.is_empty() {
        matched.insert("headers".to_owned(), Value::Array(headers));
    }
    Ok(Value::Object(matched))
}
