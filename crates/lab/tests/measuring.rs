//! What do measurements cost? Five of them at one second: requests to the provider, and writes.

use std::path::Path;

use gradus_lab::faults::{Fault, Faults};
use gradus_lab::scenario::{End, Scenario};
use gradus_lab::simulate::{Outcome, Prepared, simulate};
use serde_json::{Value, json};

/// Measurements of the run.
const COUNT: usize = 5;
/// Writes of ours that they may cost: the run, its status, and what the Rollout says of it.
const MOST_WRITES: usize = 15;

/// A canary with an analysis step of five measurements, or the same without that step.
fn scenario(is_measured: bool) -> Prepared {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let scenario = gradus_lab::scenario::load(&path.join("step_http_analysis.yaml"));
    let mut scenario: Scenario = scenario.expect("the scenario is well formed");
    for object in &mut scenario.objects {
        if object["kind"] == "AnalysisTemplate" {
            object["spec"]["metrics"][0]["interval"] = json!("1s");
            object["spec"]["metrics"][0]["count"] = json!(COUNT);
        }
        let steps = object.pointer_mut("/spec/strategy/canary/steps").and_then(Value::as_array_mut);
        if let Some(steps) = steps.filter(|_| !is_measured) {
            steps.remove(1);
        }
    }
    if !is_measured {
        scenario.steps.remove(1);
        scenario.end = End::default();
    }
    Prepared::new(scenario).expect("its objects are accepted")
}

fn assert_good(outcome: &Outcome) {
    assert!(outcome.violations.is_empty(), "{:?}", outcome.violations);
}

#[test]
fn five_measurements_are_five_requests_and_few_writes() {
    let measured = simulate(&scenario(true), &Faults::default());
    let plain = simulate(&scenario(false), &Faults::default());
    assert_good(&measured);
    assert_eq!((measured.provider_calls, plain.provider_calls), (COUNT, 0));
    let cost = measured.writes - plain.writes;
    assert!(cost <= MOST_WRITES, "{cost} writes");
}

#[test]
fn no_measurement_is_asked_twice_and_a_crash_costs_one_request_at_most() {
    let prepared = scenario(true);
    let attempts = simulate(&prepared, &Faults::default()).attempts;
    for write in 1..=attempts {
        for fault in Fault::ALL {
            let outcome = simulate(&prepared, &Faults::at(write, fault));
            assert_good(&outcome);
            let is_crash = matches!(fault, Fault::CrashBefore | Fault::CrashAfter);
            let most = COUNT + usize::from(is_crash);
            let calls = outcome.provider_calls;
            assert!(
                (COUNT..=most).contains(&calls),
                "{fault:?} at write {write}: {calls} requests"
            );
        }
    }
}
