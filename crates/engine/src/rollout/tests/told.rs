//! Traffic plugins as tables: what they are told, when, and what waits for their answers.

use serde_json::{Value, json};

use super::at;
use super::fixture::Fixture;
use crate::ask::RouterReply;

/// Second, what the plugin answers (`-` nothing, `ok` that all is well, else in order), what it is
/// told, the weight in the status and whether it is verified, the step index, and what the row shows.
const UPDATE: &str = "
10 | -     |                    | 0 false  | 0 | what it is told is stored before it hears of it
12 | -     |                    | 0 false  | 0 | nothing moves without an answer
13 | boom  | split 0            | 0 false  | 0 | it refuses
14 | ok    |                    | 0 false  | 0 | it is not pressed
23 | no    | split 0, verify 0, split 20, verify 20 | 20 false | 0 | it has not done it yet
24 | ok    |                    | 20 false | 0 | nor is it asked at once
33 | ok    | verify 20          | 20 null  | 1 | it does not say: that is good enough";

#[test]
fn a_plugin_is_told_once_the_split_is_stored_and_steps_wait_for_it() {
    let mut fixture = routed(json!([{ "setWeight": 20 }, { "pause": {} }]));
    for row in UPDATE.trim().lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [second, says, told, weight, index, what] = cells[..] else {
            panic!("six cells: {row}");
        };
        fixture.routers_answer(match says {
            "-" => None,
            "no" => {
                let verified = RouterReply::Verified;
                Some(vec![
                    RouterReply::Told,
                    verified(None),
                    RouterReply::Told,
                    verified(Some(false)),
                ])
            }
            "ok" => Some(Vec::new()),
            why => Some(vec![RouterReply::Broken(why.to_owned())]),
        });
        fixture.settle(at(second.parse().unwrap()));
        assert_eq!(fixture.take_calls().join(", "), told, "{what}");
        let status = fixture.status();
        let weights = &status["canary"]["weights"];
        let found = format!("{} {}", weights["canary"]["weight"], weights["verified"]);
        assert_eq!(found, weight, "{what}");
        assert_eq!(status["currentStepIndex"].to_string(), index, "{what}");
    }
    let told = fixture.take_events();
    let count = |reason: &str| told.iter().filter(|known| *known == reason).count();
    assert_eq!(count("TrafficRoutingError"), 1, "{told:?}");
    assert_eq!(held(&fixture), Value::Null, "nothing holds it any more");
}

#[test]
fn what_a_plugin_refuses_is_a_condition_of_the_rollout() {
    let mut fixture = routed(json!([{ "setWeight": 20 }, { "pause": {} }]));
    fixture.routers_answer(Some(vec![RouterReply::Broken("failed to set weight: no".to_owned())]));
    fixture.settle(at(11));
    let held = held(&fixture);
    assert_eq!(held["reason"], "TrafficRoutingError");
    assert_eq!(held["message"], "failed to set weight: no");
}

#[test]
fn a_new_controller_tells_again_and_a_settled_rollout_tells_nothing() {
    let mut fixture = routed(json!([{ "setWeight": 20 }, { "pause": {} }]));
    fixture.settle(at(11));
    assert_eq!(fixture.take_calls(), ["split 0", "verify 0", "split 20", "verify 20"]);
    fixture.settle(at(12));
    assert_eq!(fixture.take_calls(), [""; 0], "settled");
    let before = fixture.status();
    fixture.forget();
    fixture.settle(at(13));
    assert_eq!(fixture.take_calls(), ["split 20"], "a crash may have lost what was told");
    assert_eq!(fixture.status(), before, "and nothing is written for it");
}

#[test]
fn an_abort_takes_the_traffic_back_before_any_pod_goes() {
    let mut fixture = routed(json!([{ "setWeight": 50 }, { "pause": {} }]));
    fixture.settle(at(11));
    fixture.take_calls();
    fixture.patch_status(json!({ "abort": true }));
    fixture.routers_answer(None);
    fixture.settle(at(12));
    let sizes = fixture.sizes();
    assert_eq!(fixture.status()["canary"]["weights"]["canary"]["weight"], 0, "as it shall be");
    fixture.settle(at(600));
    assert_eq!(fixture.sizes(), sizes, "no pod goes while the plugin has not answered");
    fixture.routers_answer(Some(Vec::new()));
    fixture.settle(at(601));
    assert_eq!(fixture.take_calls(), ["split 0"], "nothing waits for what it would say");
}

/// A scenario of 4 replicas whose second revision comes next, and whose traffic a plugin splits.
fn routed(steps: Value) -> Fixture {
    let routing = json!({ "plugins": { "a/b": { "x": 1 } } });
    let mut fixture = Fixture::routed(4, routing, json!({ "steps": steps }));
    fixture.settle(at(0));
    assert_eq!(fixture.take_calls(), ["split 0"], "all to the first revision");
    fixture.set_image("v2");
    fixture.take_events();
    fixture
}

fn held(fixture: &Fixture) -> Value {
    let status = fixture.status();
    let conditions = status["conditions"].as_array().unwrap();
    conditions.iter().find(|known| known["type"] == "Held").cloned().unwrap_or_default()
}
