//! A run that goes wrong must say so: every way a scenario can fail is told.

use std::path::Path;

use gradus_simkube::{Request, Subresource};
use serde_json::json;

use super::*;
use crate::deeds::NAMESPACE;
use crate::faults::{Fault, Planned};
use crate::person::Action;
use crate::scenario::{Scenario, Step};
use crate::sight::When;

/// The first scenario, changed.
fn scenario(change: impl FnOnce(&mut Scenario)) -> Prepared {
    let mut scenario = named("canary_pause_promote");
    change(&mut scenario);
    Prepared::new(scenario).unwrap()
}

fn named(name: &str) -> Scenario {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    crate::load(&folder.join(name).with_extension("yaml")).unwrap()
}

fn complaints(prepared: &Prepared) -> Vec<String> {
    let outcome = simulate(prepared, &Faults::default());
    outcome.violations.iter().map(ToString::to_string).collect()
}

#[test]
fn a_scenario_that_happens_as_told_has_no_complaints() {
    assert_eq!(complaints(&scenario(|_| {})), Vec::<String>::new());
}

#[test]
fn what_is_not_seen_is_told_field_by_field() {
    let found = complaints(&scenario(|scenario| {
        scenario.steps[1].expect.as_mut().unwrap()["updatedReplicas"] = json!(2);
    }));
    let expected =
        "the scenario violated by step 2 (expect) of web: updatedReplicas: 1 instead of 2";
    assert_eq!(found, [expected]);
}

#[test]
fn a_step_that_never_comes_is_told() {
    let never = Step {
        when: Some(When { phase: Some("Degraded".to_owned()), ..When::default() }),
        ..Step::default()
    };
    let found = complaints(&scenario(|scenario| scenario.steps.push(never)));
    assert_eq!(found.len(), 1);
    assert!(found[0].contains("nothing is left to happen: step 5 waits for"), "{found:?}");
}

#[test]
fn another_end_is_told() {
    let found = complaints(&scenario(|scenario| {
        scenario.end.expect["phase"] = json!("Paused");
    }));
    assert_eq!(found.len(), 1);
    assert!(found[0].contains("phase: \"Healthy\" instead of \"Paused\""), "{found:?}");
    let found = complaints(&scenario(|scenario| {
        scenario.end.sizes.insert(1, 3);
    }));
    assert!(found[0].contains("sizes {1: 0, 2: 5}, expected {1: 3, 2: 5}"), "{found:?}");
}

#[test]
fn an_action_that_the_server_refuses_is_told() {
    let nobody = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "nobody"}});
    let found = complaints(&scenario(|scenario| {
        scenario.steps[0].r#do = Some(Action::Delete(nobody));
    }));
    assert_eq!(found.len(), 1);
    assert!(found[0].contains("configmaps \"nobody\" not found"), "{found:?}");
}

#[test]
fn a_rollout_left_in_the_middle_is_told() {
    let found = complaints(&scenario(|scenario| {
        scenario.steps.truncate(1);
        scenario.steps[0].r#do = Some(Action::SetImage("example.com/web:bad".to_owned()));
        let bad = json!([{"image": "*:bad", "neverReady": true}]);
        scenario.images = serde_json::from_value(bad).unwrap();
    }));
    assert!(
        found[0].starts_with("I-12 violated by the end of web: ends \"Degraded\""),
        "{found:?}"
    );
}

/// A count that is wrong at the end is written a moment later: that is a write, too.
#[test]
fn a_write_that_comes_late_after_the_end_is_told() {
    for (repeat, how) in ["decided again", "started again"].into_iter().enumerate() {
        let prepared = scenario(|_| {});
        let mut run = Run::new(&prepared, &Faults::default(), Trace::hashed());
        while !matches!(run.stage, Stage::Tried { repeat: at, .. } if at == repeat) {
            assert!(run.advance(), "its end is tried");
        }
        let patch = json!({"status": {"availableReplicas": 4}});
        let request = Request::merge(prepared.rollout.kind, NAMESPACE, "web", patch);
        let now = run.now;
        let status = request.on(Subresource::Status);
        run.bench.borrow_mut().cluster.call(&status, now).unwrap();
        let found: Vec<String> = run.finish().violations.iter().map(ToString::to_string).collect();
        let expected =
            format!("I-10 violated by the end of web: 1 writes when {how}, expected none");
        assert_eq!(found, [expected]);
    }
}

/// The last requests of this scenario are those of a controller that is started to try its end.
#[test]
fn nobody_acts_while_an_end_is_tried() {
    let prepared = Prepared::new(named("ephemeral_metadata")).unwrap();
    let last = simulate(&prepared, &Faults::default()).requests;
    let outcome = simulate(&prepared, &Faults::interrupted(last, Action::Abort));
    assert_eq!((outcome.violations, outcome.interrupted_update), (vec![], None));
}

#[test]
fn a_scenario_can_bring_its_own_faults() {
    let prepared = scenario(|scenario| {
        scenario.faults = vec![Planned { write: 2, fault: Fault::CrashAfter }];
    });
    let outcome = narrate(&prepared, &Faults::default());
    let struck = outcome
        .trace
        .records()
        .iter()
        .filter(|(_, record)| matches!(record, Record::Struck(Fault::CrashAfter)));
    assert_eq!(struck.count(), 1);
    assert!(outcome.violations.is_empty(), "{:?}", outcome.violations);
}

#[test]
fn objects_that_the_server_refuses_are_told_before_the_scenario_begins() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/canary_pause_promote.yaml");
    let mut scenario = crate::load(&path).unwrap();
    scenario.objects[0]["spec"]["replicas"] = json!("five");
    let error = Prepared::new(scenario).unwrap_err().to_string();
    assert!(error.starts_with("scenario canary_pause_promote: Rollout is refused: "), "{error}");
}
