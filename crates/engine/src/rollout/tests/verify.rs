//! Load balancers that are asked whether they split the traffic as they were told.

use gradus_api::rollout::status::AlbStatus;
use serde_json::{Value, json};

use super::at;
use super::fixture::Fixture;
use super::routers::with_fixed_services;
use crate::ask::{Class, Failure, Split, WeightsSaid};
use crate::decision::EventKind;

fn said(split: Split) -> Option<Result<WeightsSaid, Failure>> {
    let resource = |name: &str| json!({ "name": name, "arn": format!("arn:{name}") });
    let balancer: AlbStatus = serde_json::from_value(json!({ "ingress": "web",
        "loadBalancer": resource("lb"), "canaryTargetGroup": resource("c"),
        "stableTargetGroup": resource("s") }))
    .unwrap();
    let message = format!("{split:?}");
    Some(Ok(WeightsSaid { split, message, load_balancers: vec![balancer] }))
}

fn away() -> Option<Result<WeightsSaid, Failure>> {
    let (class, message) = (Class::Unreachable, "away".to_owned());
    Some(Err(Failure { class, message, times: 1, retry_at: at(1000) }))
}

/// In mid-update, at a weight that the Ingress has and of which nothing is heard yet.
fn waiting(steps: Value) -> Fixture {
    let mut fixture = with_fixed_services(steps);
    fixture.balancers_say(None);
    fixture.settle(at(0));
    assert!(fixture.status().get("albs").is_none(), "nothing is asked in a first deploy");
    fixture.set_image("v2");
    fixture.settle(at(1));
    fixture.take_events();
    fixture
}

fn steps() -> Value {
    json!([{ "setWeight": 25 }, { "pause": {} }])
}

/// What is heard | verified | reason of Held | Events | the step it is at then.
const HEARD: &str = "
nothing    | false | -                     |                      | 0
otherwise  | false | TargetGroupUnverified | TargetGroupUnverified | 0
nowhere    | false | LoadBalancerNotFound  | LoadBalancerNotFound  | 0
unreadable | false | TargetGroupVerifyError | TargetGroupVerifyError | 0
away       | false | WeightVerifyError     | WeightVerifyError    | 0
as told    | true  | -                     | TargetGroupVerified RolloutStepCompleted RolloutPaused | 1";

#[test]
fn a_weight_step_waits_for_the_word_of_the_load_balancer() {
    for row in HEARD.trim().lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [heard, verified, held, events, step] = cells[..] else { panic!("five cells: {row}") };
        let mut fixture = waiting(steps());
        fixture.balancers_say(match heard {
            "otherwise" => said(Split::Otherwise),
            "nowhere" => said(Split::Nowhere),
            "unreadable" => said(Split::Unreadable),
            "as told" => said(Split::AsTold),
            "away" => away(),
            _ => None,
        });
        fixture.settle(at(2));
        fixture.settle(at(3));
        let status = fixture.status();
        assert_eq!(status["currentStepIndex"].to_string(), step, "{heard}");
        assert_eq!(status["canary"]["weights"]["canary"]["weight"], 25, "{heard}");
        assert_eq!(status["canary"]["weights"]["verified"].to_string(), verified, "{heard}");
        let known = status["conditions"].as_array().unwrap().iter();
        let known = known.filter(|known| known["type"] == "Held").map(|known| &known["reason"]);
        let known: Vec<&str> = known.map(|reason| reason.as_str().unwrap()).collect();
        assert_eq!(known.first().copied().unwrap_or("-"), held, "{heard}");
        assert_eq!(fixture.take_events().join(" "), events, "{heard}: told once");
        let is_found = !["nothing", "away"].contains(&heard);
        assert_eq!(status["alb"]["loadBalancer"]["name"] == "lb", is_found, "{heard}");
        match heard {
            "nothing" => assert!(fixture.why().contains("is weight 25 of Service canary in force")),
            "as told" => {}
            _ => assert!(fixture.why().contains("cannot be split"), "{}", fixture.why()),
        }
    }
}

#[test]
fn a_load_balancer_is_found_before_the_first_weight_step() {
    let mut fixture = waiting(json!([{ "setCanaryScale": { "replicas": 1 } }, { "pause": {} }]));
    assert_eq!(fixture.status().get("alb"), None);
    fixture.balancers_say(said(Split::Otherwise));
    fixture.settle(at(2));
    let status = fixture.status();
    assert_eq!(status["alb"]["loadBalancer"]["name"], "lb");
    assert_eq!(status["albs"].as_array().unwrap().len(), 1);
    assert_eq!(status["canary"]["weights"].get("verified"), None, "nothing waits for it");
    assert_eq!(fixture.take_events(), [""; 0]);
    assert_eq!(fixture.rest(at(3)), [""; 0]);
}

#[test]
fn a_load_balancer_that_lags_is_asked_again_after_ten_seconds() {
    let mut fixture = waiting(steps());
    fixture.balancers_say(said(Split::Otherwise));
    fixture.reconcile(at(2));
    let decision = fixture.decide();
    assert_eq!(decision.wake_at, Some(at(12)));
    assert!(decision.events.iter().all(|event| event.kind == EventKind::Warning));
    fixture.balancers_say(said(Split::AsTold));
    fixture.settle(at(11));
    assert_eq!(fixture.status()["currentStepIndex"], 0, "not before");
    fixture.settle(at(12));
    assert_eq!(fixture.status()["currentStepIndex"], 1);
}

#[test]
fn the_end_of_an_update_waits_too_and_no_pods_go_before() {
    let mut fixture = waiting(steps());
    fixture.balancers_say(said(Split::AsTold));
    fixture.settle(at(2));
    fixture.promote();
    fixture.balancers_say(None);
    fixture.settle(at(3));
    let status = fixture.status();
    assert_eq!(status["canary"]["weights"]["canary"]["weight"], 100);
    assert_eq!((fixture.sizes(), &status["phase"]), (vec![4, 4], &json!("Progressing")));
    assert_ne!(status["stableRS"], status["currentPodHash"]);
    fixture.balancers_say(said(Split::AsTold));
    fixture.settle(at(4));
    let status = fixture.status();
    assert_eq!(
        (status["stableRS"] == status["currentPodHash"], &status["phase"]),
        (true, &json!("Healthy"))
    );
    fixture.take_lists();
    assert_eq!(fixture.rest(at(5)), [""; 0]);
    assert_eq!(fixture.take_lists(), 0, "nothing is asked at rest");
}

#[test]
fn a_weight_step_waits_until_a_url_shows_the_split() {
    let mut fixture = with_fixed_services(steps());
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.probe_shows(None);
    fixture.settle(at(1));
    let state = |fixture: &Fixture| {
        let status = fixture.status();
        (status["currentStepIndex"].clone(), status["canary"]["weights"]["verified"].clone())
    };
    assert_eq!(state(&fixture), (json!(0), json!(false)), "nothing is measured yet");
    assert!(fixture.why().contains("is weight 25 in force at http://web.example.com/"));
    fixture.probe_shows(Some(0));
    fixture.settle(at(2));
    assert_eq!(state(&fixture), (json!(0), json!(false)), "everything goes to the old one");
    assert!(fixture.why().contains("0 of 1000 requests"), "{}", fixture.why());
    fixture.probe_shows(Some(240));
    fixture.settle(at(11));
    assert_eq!(state(&fixture), (json!(0), json!(false)), "it is not measured again yet");
    fixture.settle(at(12));
    assert_eq!(state(&fixture), (json!(1), json!(true)), "it stays verified at a pause");
    fixture.promote();
    fixture.settle(at(13));
    assert_eq!(fixture.sizes(), [4, 4], "the end waits, too");
    fixture.probe_shows(Some(1000));
    fixture.settle(at(23));
    assert_eq!(fixture.status()["phase"], "Healthy");
    fixture.settle(at(60));
    assert_eq!(fixture.rest(at(61)), [""; 0], "nothing is measured at rest");
}

#[test]
fn an_abort_does_not_wait_for_a_load_balancer() {
    let mut fixture = waiting(steps());
    fixture.patch_status(json!({ "abort": true }));
    fixture.settle(at(2));
    assert_eq!(fixture.status()["canary"]["weights"]["canary"]["weight"], 0);
    assert_eq!(fixture.status()["phase"], "Degraded");
}

/// In mid-update at a weight that the HTTPRoute has, with a Gateway that has seen this generation.
fn through_gateway(seen: i64, status: &str) -> Fixture {
    let routing = json!({ "plugins": { "argoproj-labs/gatewayAPI": { "httpRoute": "web" } } });
    let backends = [json!({ "name": "stable" }), json!({ "name": "canary", "weight": 0 })];
    let spec =
        json!({ "parentRefs": [{ "name": "edge" }], "rules": [{ "backendRefs": backends }] });
    let mut fixture = Fixture::routed(4, routing, json!({ "steps": steps() })).with_route(json!({
        "kind": "HTTPRoute", "metadata": { "name": "web", "generation": 1 }, "spec": spec,
    }));
    fixture.settle(at(0));
    fixture.set_image("v2");
    report(&mut fixture, 1, "True");
    fixture.settle(at(1));
    let generation = json!({ "metadata": { "generation": 2 } });
    fixture.patch_route("HTTPRoute", "web", &generation);
    report(&mut fixture, seen, status);
    fixture.take_events();
    fixture
}

fn report(fixture: &mut Fixture, generation: i64, status: &str) {
    let condition = json!({ "type": "Accepted", "status": status, "message": "no such listener",
        "observedGeneration": generation });
    let parent = json!({ "parentRef": { "name": "edge" }, "conditions": [condition] });
    fixture.patch_route("HTTPRoute", "web", &json!({ "status": { "parents": [parent] } }));
}

#[test]
fn the_end_of_an_update_waits_for_what_a_gateway_reports() {
    let mut fixture = through_gateway(2, "True");
    fixture.settle(at(2));
    assert_eq!(fixture.status()["currentStepIndex"], 1, "the weight step is over");
    assert_eq!(fixture.status()["canary"]["weights"]["verified"], true, "and stays verified");
    fixture.promote();
    fixture.reconcile(at(3));
    fixture.patch_route("HTTPRoute", "web", &json!({ "metadata": { "generation": 3 } }));
    fixture.settle(at(3));
    let status = fixture.status();
    assert_eq!(status["canary"]["weights"]["canary"]["weight"], 100);
    assert_eq!(status["canary"]["weights"]["verified"], false);
    assert_eq!(fixture.sizes(), [4, 4], "no pods go before");
    let why = fixture.why();
    assert!(why.contains("edge has seen generation 2 of 3"), "{why}");
    report(&mut fixture, 3, "False");
    fixture.settle(at(4));
    assert_eq!(fixture.take_events().last().unwrap(), "WeightVerifyError");
    assert_eq!(fixture.condition("Held")["reason"], "WeightVerifyError");
    report(&mut fixture, 3, "True");
    fixture.settle(at(5));
    let status = fixture.status();
    assert_eq!(status["phase"], "Healthy");
    assert_eq!(fixture.rest(at(6)), [""; 0]);
}

#[test]
fn a_weight_step_waits_until_traefiks_api_shows_the_weights() {
    let part = |name: &str, weight: i64| json!({ "name": name, "port": 80, "weight": weight });
    let service = json!({ "kind": "TraefikService", "metadata": { "name": "web" }, "spec": {
        "weighted": { "services": [part("stable", 100), part("canary", 0)] } } });
    let routing = json!({ "traefik": { "weightedTraefikServiceName": "web" } });
    let strategy = json!({ "steps": steps() });
    let mut fixture = Fixture::routed(4, routing, strategy).with_route(service);
    fixture.annotate("gradus.dev/traefik-api", "http://traefik:8080");
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(1));
    let state = |fixture: &Fixture| {
        let status = fixture.status();
        (status["currentStepIndex"].clone(), status["canary"]["weights"]["verified"].clone())
    };
    assert_eq!(state(&fixture), (json!(0), json!(false)), "nothing is said yet");
    assert!(fixture.why().contains("has the data plane weight 25"), "{}", fixture.why());
    let says = |stable: i64, canary: i64| {
        let part = |name: &str, weight: i64| json!({ "name": name, "weight": weight });
        let parts = [part("default-stable-80", stable), part("default-canary-80", canary)];
        json!({ "weighted": { "services": parts } }).to_string()
    };
    fixture.http_answers(&says(100, 0));
    fixture.settle(at(2));
    assert_eq!(state(&fixture), (json!(0), json!(false)), "not yet");
    fixture.settle(at(12));
    fixture.http_answers(&says(75, 25));
    fixture.settle(at(13));
    assert_eq!(state(&fixture), (json!(1), json!(true)));
}
