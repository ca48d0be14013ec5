//! What does the data plane say of a routing object: has it taken in what stands there?

use serde_json::Value;

use super::RouteView;

/// What a data plane says, from good to bad.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Report {
    /// The object as it stands is in force.
    InForce,
    /// It is not yet; what is waited for.
    Pending(String),
    /// It will not be; why.
    Refused(String),
}

/// The conditions of a parent that must not be against a route. The first one must be there.
const OF_PARENT: [&str; 3] = ["Accepted", "ResolvedRefs", "Programmed"];

/// Gateway API: each parent that a route names has taken it in as it stands. Of several controllers that
/// speak for one parent the best counts: what one that is gone left behind does not. `None` where
/// nobody has ever reported.
pub(super) fn of_parents(route: &RouteView, what: &str) -> Option<Report> {
    let said = list(&route.0["status"]["parents"]);
    if said.is_empty() {
        return None;
    }
    let of_parent = |parent: &Value| {
        let name = parent["name"].as_str().unwrap_or_default();
        let about = said.iter().filter(|one| is_same(&one["parentRef"], parent, route));
        let best = about.map(|one| of_entry(one, generation(route), what, name)).min();
        best.unwrap_or_else(|| Report::Pending(format!("{what}: {name} has not reported")))
    };
    list(&route.spec()["parentRefs"]).iter().map(of_parent).max()
}

/// Istio, where it is told to write the status: the generation that all proxies have.
pub(super) fn of_generation(service: &RouteView, what: &str) -> Option<Report> {
    let status = &service.0["status"];
    let number = |value: &Value| value.as_i64().or_else(|| value.as_str()?.parse().ok());
    let seen = number(&status["observedGeneration"])?;
    let wanted = generation(service);
    if seen < wanted {
        return Some(behind(what, "istiod", seen, wanted));
    }
    let reconciled = find(&status["conditions"], "Reconciled");
    Some(match reconciled {
        Some(condition) if condition["status"] != "True" => {
            let message = condition["message"].as_str().unwrap_or_default();
            Report::Pending(format!("{what}: not all proxies have it: {message}"))
        }
        _ => Report::InForce,
    })
}

fn of_entry(entry: &Value, wanted: i64, what: &str, parent: &str) -> Report {
    let conditions = &entry["conditions"];
    let judged = OF_PARENT.iter().enumerate().map(|(at, kind)| {
        let Some(condition) = find(conditions, kind) else {
            let waits = || Report::Pending(format!("{what}: {parent} has not said {kind}"));
            return if at == 0 { waits() } else { Report::InForce };
        };
        let seen = condition["observedGeneration"].as_i64().unwrap_or(wanted);
        let message = condition["message"].as_str().unwrap_or_default();
        match condition["status"].as_str() {
            _ if seen < wanted => behind(what, parent, seen, wanted),
            Some("True") => Report::InForce,
            Some("False") => Report::Refused(format!("{what}: {parent}: not {kind}: {message}")),
            _ => Report::Pending(format!("{what}: {parent}: {kind} is not known: {message}")),
        }
    });
    judged.max().unwrap_or(Report::InForce)
}

fn behind(what: &str, who: &str, seen: i64, wanted: i64) -> Report {
    Report::Pending(format!("{what}: {who} has seen generation {seen} of {wanted}"))
}

/// Do two references mean the same parent? Without a namespace it is the route's.
fn is_same(one: &Value, other: &Value, route: &RouteView) -> bool {
    let namespace = |it: &Value| it["namespace"].as_str().map(str::to_owned);
    let own = route.0["metadata"]["namespace"].as_str().map(str::to_owned);
    let field = |name: &str| one[name] == other[name];
    let is_here = |it: &Value| namespace(it).or_else(|| own.clone());
    ["name", "sectionName", "port"].into_iter().all(field) && is_here(one) == is_here(other)
}

fn generation(object: &RouteView) -> i64 {
    object.0["metadata"]["generation"].as_i64().unwrap_or(0)
}

fn find<'v>(conditions: &'v Value, kind: &str) -> Option<&'v Value> {
    list(conditions).iter().find(|condition| condition["type"] == kind)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    fn view(spec: Value, status: Value) -> RouteView {
        let meta = json!({ "name": "web", "namespace": "shop", "generation": 7 });
        RouteView(Arc::new(json!({ "metadata": meta, "spec": spec, "status": status })))
    }

    fn entry(parent: Value, conditions: Value) -> Value {
        json!({ "parentRef": parent, "controllerName": "x", "conditions": conditions })
    }

    fn says(kind: &str, status: &str, generation: i64) -> Value {
        json!({ "type": kind, "status": status, "observedGeneration": generation, "message": "m" })
    }

    fn pending(text: &str) -> Option<Report> {
        Some(Report::Pending(format!("web: {text}")))
    }

    #[test]
    fn a_route_is_in_force_when_each_parent_has_taken_it_in_as_it_stands() {
        let (edge, inner) = (json!({ "name": "edge" }), json!({ "name": "inner", "port": 80 }));
        let same = json!({ "name": "edge", "namespace": "shop" });
        let accepted = |at: i64| json!([says("Accepted", "True", at)]);
        let refused = json!([says("Accepted", "True", 7), says("ResolvedRefs", "False", 7)]);
        let both = [edge.clone(), inner.clone()];
        let one = [edge.clone()];
        let cases = [
            ("nobody reports", &one[..], json!([]), None),
            ("taken in", &one, json!([entry(edge.clone(), accepted(7))]), Some(Report::InForce)),
            ("by its namespace", &one, json!([entry(same, accepted(7))]), Some(Report::InForce)),
            (
                "an older state",
                &one,
                json!([entry(edge.clone(), accepted(6))]),
                pending("edge has seen generation 6 of 7"),
            ),
            (
                "a controller that is gone said something, too",
                &one,
                json!([entry(edge.clone(), accepted(2)), entry(edge.clone(), accepted(7))]),
                Some(Report::InForce),
            ),
            (
                "one of two",
                &both,
                json!([entry(edge.clone(), accepted(7))]),
                pending("inner has not reported"),
            ),
            (
                "a backend that cannot be found",
                &one,
                json!([entry(edge.clone(), refused)]),
                Some(Report::Refused("web: edge: not ResolvedRefs: m".to_owned())),
            ),
            (
                "nothing said yet",
                &one,
                json!([entry(edge, json!([]))]),
                pending("edge has not said Accepted"),
            ),
        ];
        for (what, parents, said, expected) in cases {
            let view = view(json!({ "parentRefs": parents }), json!({ "parents": said }));
            assert_eq!(of_parents(&view, "web"), expected, "{what}");
        }
    }

    #[test]
    fn istio_says_which_generation_all_proxies_have() {
        let condition = |status: &str| json!([says("Reconciled", status, 7)]);
        let cases = [
            (json!({}), None),
            (json!({ "observedGeneration": "7" }), Some(Report::InForce)),
            (json!({ "observedGeneration": 6 }), pending("istiod has seen generation 6 of 7")),
            (
                json!({ "observedGeneration": 7, "conditions": condition("False") }),
                pending("not all proxies have it: m"),
            ),
            (
                json!({ "observedGeneration": 7, "conditions": condition("True") }),
                Some(Report::InForce),
            ),
        ];
        for (status, expected) in cases {
            assert_eq!(
                of_generation(&view(json!({}), status.clone()), "web"),
                expected,
                "{status}"
            );
        }
    }
}
