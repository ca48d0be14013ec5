//! Routing objects that are missing, or whose writes the server refuses: the contract has Events of
//! their own for them, beside the one that all routers share.

use serde_json::{Value, json};

use super::at;
use super::fixture::Fixture;
use crate::decision::ObjectRef;
use crate::traffic;

const SHARED: &str = "TrafficRoutingError";

/// The object of a kind and name in the namespace of the fixtures.
fn object(kind: &str, name: &str) -> ObjectRef {
    let mut kinds = traffic::accesses().map(|access| &access.kind);
    let kind = kinds.find(|known| *known.name == *kind).unwrap();
    ObjectRef::new(kind.clone(), &"default".into(), &name.into())
}

/// Reasons and messages of the Events since the last call, of these reasons.
fn told(fixture: &mut Fixture, own: &str) -> Vec<(String, String)> {
    let events = fixture.take_told().into_iter();
    let is_meant = |reason: &str| reason == own || reason == SHARED;
    events
        .filter(|event| is_meant(&event.reason))
        .map(|event| (event.reason.to_string(), event.message))
        .collect()
}

#[test]
fn a_destination_rule_that_is_missing_is_told_by_its_own_event() {
    let routing = json!({ "istio": { "virtualService": { "name": "web" }, "destinationRule": {
        "name": "web", "canarySubsetName": "canary", "stableSubsetName": "stable" } } });
    let to = |subset: &str, weight: i32| json!({ "destination": { "host": "web", "subset": subset }, "weight": weight });
    let service = json!({ "kind": "VirtualService", "metadata": { "name": "web" },
        "spec": { "http": [{ "route": [to("stable", 100), to("canary", 0)] }] } });
    let mut fixture = Fixture::routed(2, routing, json!({})).with_route(service);
    fixture.settle(at(0));
    let text = "DestinationRule `web` not found".to_owned();
    let own = "DestinationRuleNotFound";
    let expected = [(own.to_owned(), text.clone()), (SHARED.to_owned(), text)];
    assert_eq!(told(&mut fixture, own), expected, "once");
    assert_eq!(fixture.condition("Held")["reason"], SHARED);
}

/// Routing, objects, the write that is refused, reason and message of its own Event.
type Refused = (Value, Vec<Value>, (&'static str, ObjectRef), &'static str, &'static str);

fn refused() -> Vec<Refused> {
    let services = json!([{ "name": "stable", "weight": 100 }, { "name": "canary", "weight": 0 }]);
    let service = json!({ "kind": "TraefikService", "metadata": { "name": "web" },
        "spec": { "weighted": { "services": services } } });
    let backends = json!([{ "serviceName": "stable", "weight": 100 },
        { "serviceName": "canary", "weight": 0 }]);
    let route = json!({ "kind": "ApisixRoute", "metadata": { "name": "web" },
        "spec": { "http": [{ "name": "web", "backends": backends }] } });
    let mapping = json!({ "kind": "Mapping", "metadata": { "name": "web" },
        "spec": { "service": "stable:80" } });
    vec![
        (
            json!({ "traefik": { "weightedTraefikServiceName": "web" } }),
            vec![service],
            ("patch", object("TraefikService", "web")),
            "TraefikServiceUpdateError",
            r#"Error updating traefik service "web": no"#,
        ),
        (
            json!({ "apisix": { "route": { "name": "web" } } }),
            vec![route],
            ("patch", object("ApisixRoute", "web")),
            "ApisixRouteUpdateError",
            r#"Error updating apisix route "web": no"#,
        ),
        (
            json!({ "ambassador": { "mappings": ["web"] } }),
            vec![mapping],
            ("create", object("Mapping", "web-canary")),
            "CanaryMappingCreationError",
            "Error creating canary mapping: no",
        ),
        (
            json!({ "smi": {} }),
            Vec::new(),
            ("create", object("TrafficSplit", "web")),
            "TrafficSplitNotCreated",
            "TrafficSplit `web` failed creation: no",
        ),
    ]
}

#[test]
fn a_write_that_is_refused_is_told_by_its_own_event() {
    for (routing, objects, (verb, target), reason, message) in refused() {
        let steps = json!({ "steps": [{ "setWeight": 50 }, { "pause": {} }] });
        let mut fixture = Fixture::routed(2, routing, steps);
        for object in objects {
            fixture = fixture.with_route(object);
        }
        fixture.refuse_route(verb, &target, at(1000));
        fixture.settle(at(0));
        fixture.set_image("v2");
        fixture.settle(at(1));
        let own = (reason.to_owned(), message.to_owned());
        assert_eq!(told(&mut fixture, reason), [own, (SHARED.to_owned(), "no".to_owned())]);
        assert_eq!(fixture.condition("Held")["message"], "no", "{reason}");
    }
}
