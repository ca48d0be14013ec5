//! Traefik's API: what it says of a weighted service as it is in force.

use gradus_api::names::annotation;
use jiff::SignedDuration;
use serde_json::Value;

use super::{Goal, RolloutView};
use crate::ask::http::HttpRequest;
use crate::traffic::Report;

/// How long an answer may take.
const PATIENCE: SignedDuration = SignedDuration::from_secs(5);

/// The provider of TraefikServices, as Traefik calls it.
const PROVIDER: &str = "kubernetescrd";

/// The request for a TraefikService, where the Rollout says where the API is.
pub fn request(rollout: &RolloutView, name: &str) -> Option<HttpRequest> {
    let url = rollout.annotations.get(annotation::TRAEFIK_API).filter(|url| !url.is_empty())?;
    let (url, service) = (url.trim_end_matches('/'), key(&[&rollout.namespace, name]));
    let url = format!("{url}/api/http/services/{service}@{PROVIDER}");
    Some(HttpRequest { redirects: 0, ..HttpRequest::get(url, PATIENCE) })
}

/// Has Traefik the weights of a goal? `services` are those of the TraefikService.
pub fn shown(rollout: &RolloutView, services: &[Value], goal: &Goal<'_>, body: &str) -> Report {
    let Ok(answer) = serde_json::from_str::<Value>(body) else {
        return Report::Refused("Traefik's API: expected JSON that describes a service".to_owned());
    };
    if answer["status"] == "disabled" {
        let errors = answer["error"].as_array().into_iter().flatten();
        let errors: Vec<&str> = errors.filter_map(Value::as_str).collect();
        return Report::Refused(format!("Traefik has disabled the service: {}", errors.join("; ")));
    }
    let weighted = answer["weighted"]["services"].as_array().map_or(&[][..], Vec::as_slice);
    let sides = goal.sides.fixed;
    let other = [(sides.canary, goal.weight), (sides.stable, goal.rest())].into_iter().find_map(
        |(name, wanted)| {
            let service = services.iter().find(|one| one["name"] == name)?;
            let found = weighted.iter().find(|one| is_called(one, rollout, service));
            // A weight of 0 may be left out, with its name or without.
            let found = found.and_then(|one| one["weight"].as_i64()).unwrap_or(0);
            (found != i64::from(wanted)).then(|| format!("service {name} has weight {found}"))
        },
    );
    other.map_or(Report::InForce, Report::Pending)
}

/// Is it this service of a TraefikService? Traefik puts namespace, name and port together.
fn is_called(one: &Value, rollout: &RolloutView, service: &Value) -> bool {
    let namespace = service["namespace"].as_str().unwrap_or(&rollout.namespace);
    let name = service["name"].as_str().unwrap_or_default();
    let port = match &service["port"] {
        Value::String(port) => port.clone(),
        port => port.to_string(),
    };
    let found = one["name"].as_str().unwrap_or_default();
    let found = found.split('@').next().unwrap_or_default();
    found == key(&[namespace, name, &port]) || found == key(&[namespace, name])
}

/// A name as Traefik makes it of parts.
fn key(parts: &[&str]) -> String {
    let text = parts.join("-");
    let is_plain = |one: char| one.is_alphanumeric();
    let words = text.split(|one: char| !is_plain(one)).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::traffic::tests::{self, goal};

    #[test]
    fn traefik_is_asked_where_the_rollout_says_so() {
        let mut rollout = tests::rollout(json!({ "traefik": {} }));
        assert_eq!(request(&rollout, "web.app"), None);
        let url = "http://traefik.edge:8080/".into();
        let annotations = std::sync::Arc::make_mut(&mut rollout.annotations);
        annotations.insert(annotation::TRAEFIK_API.into(), url);
        let found = request(&rollout, "web.app").unwrap();
        let expected = "http://traefik.edge:8080/api/http/services/shop-web-app@kubernetescrd";
        assert_eq!(found.url, expected.to_owned().into());
    }

    /// What | what Traefik says | what it means for a weight of 20.
    #[test]
    fn a_weight_is_in_force_when_traefik_has_both() {
        let has = |stable: i64, canary: i64| {
            let part = |name: &str, weight: i64| json!({ "name": name, "weight": weight });
            let parts = [part("shop-stable-80", stable), part("edge-canary-web", canary)];
            json!({ "weighted": { "services": parts }, "status": "enabled" }).to_string()
        };
        let pending = |text: &str| Report::Pending(text.to_owned());
        let refused = |text: &str| Report::Refused(text.to_owned());
        let alone =
            json!({ "weighted": { "services": [{ "name": "shop-stable-80", "weight": 80 }] } });
        let disabled = json!({ "status": "disabled", "error": ["no such port", "x"] });
        let cases = [
            ("both", has(80, 20), Report::InForce),
            ("before", has(100, 0), pending("service canary has weight 0")),
            ("half of it", has(100, 20), pending("service stable has weight 100")),
            ("without the canary", alone.to_string(), pending("service canary has weight 0")),
            (
                "disabled",
                disabled.to_string(),
                refused("Traefik has disabled the service: no such port; x"),
            ),
            (
                "no JSON",
                "<html>".to_owned(),
                refused("Traefik's API: expected JSON that describes a service"),
            ),
        ];
        let rollout = tests::rollout(json!({ "traefik": {} }));
        let services = [
            json!({ "name": "stable", "port": 80 }),
            json!({ "name": "canary", "namespace": "edge", "port": "web" }),
        ];
        for (what, body, expected) in cases {
            assert_eq!(shown(&rollout, &services, &goal(20), &body), expected, "{what}");
        }
    }
}
