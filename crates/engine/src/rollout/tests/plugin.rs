//! Step plugins as tables: what they answer, what they are told, what the status keeps of it.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::at;
use super::fixture::Fixture;
use crate::ask::{PluginReply, PluginSaid};
use crate::decision::{Frees, Guard};

/// Second, what the plugin answers if it is called, what it is told, its entries afterwards (step,
/// operation, phase, executions, back-off), the step index, and what the row shows.
const RUN: &str = "
10  |              |         | 0 Run  0            | 0 | stored before the first call
11  | Running 17   | Run 0   | 0 Run Running 1 17s | 0 | it takes its time, and says how long
27  | Running      |         | 0 Run Running 1 17s | 0 | not before that
28  | Running 9    | Run 0   | 0 Run Running 2 30s | 0 | ten seconds or less are too few
58  | Running 60.5 | Run 0   | 0 Run Running 3 1m0.5s | 0 | parts of a second count
118 |              |         | 0 Run Running 3 1m0.5s | 0 | each of them
119 | broken pipe  | Run 0   | 0 Run Error 4 30s   | 0 | a call that fails is tried again
149 | Error        | Run 0   | 0 Run Error 5 30s   | 0 | so is a plugin that says so
179 | Nonsense     | Run 0   | 0 Run Error 6 30s   | 0 | an unknown phase changes nothing
209 |              | Run 0   | 0 Run Error 7 30s   | 0 | nor does an empty one
239 | Successful   | Run 0   | 0 Run Successful 8  | 1 | done
240 |              |         | 0 Run Successful 8  | 1 | once";

#[test]
fn a_plugin_is_called_until_it_is_done() {
    let mut fixture =
        updating(json!([{ "plugin": { "name": "a", "config": { "x": 1 } } }, pause()]));
    for row in RUN.trim().lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [second, says, told, entries, index, what] = cells[..] else {
            panic!("six cells: {row}");
        };
        let is_asked = !["10", "118"].contains(&second);
        fixture.plugin_answers(if is_asked { vec![reply(says)] } else { Vec::new() });
        fixture.reconcile(at(second.parse().unwrap()));
        assert_eq!(fixture.take_calls().join(", "), told, "{what}");
        assert_eq!(entries_of(&fixture), entries, "{what}");
        assert_eq!(fixture.status()["currentStepIndex"].to_string(), index, "{what}");
    }
    let mut told = fixture.take_events();
    told.retain(|reason| reason.starts_with("StepPlugin") || reason.starts_with("Reconciliation"));
    let expected = ["StepPluginTransition", "StepPluginTransition", "ReconciliationError"];
    assert_eq!(told, expected, "to Running, to Error, the unknown phase; a success is no news");
    assert_eq!(fixture.status()["canary"]["stepPluginStatuses"][0]["status"], json!({ "seen": 1 }));
}

#[test]
fn a_call_that_failed_is_a_condition_until_one_does_not() {
    let mut fixture = updating(json!([plugin("a"), plugin("b"), pause()]));
    let cases = [
        (11, "Running", ""),
        (41, "broken pipe", "StepPluginError Step plugin a (step 1) Error: broken pipe"),
        (71, "Error", "StepPluginError Step plugin a (step 1) Error: Error it is"),
        (
            101,
            "Nonsense",
            "ReconciliationError failed to run plugin: could not validate rpc phase: phase \
             'Nonsense' is not valid",
        ),
        (131, "Running", ""),
        (161, "broken pipe", "StepPluginError Step plugin a (step 1) Error: broken pipe"),
    ];
    for (second, says, expected) in cases {
        fixture.plugin_answers(vec![reply(says)]);
        fixture.settle(at(second));
        assert_eq!(held(&fixture), expected, "{second}");
        assert_eq!(fixture.status()["phase"], "Progressing", "{second}");
        assert_eq!(fixture.reconcile(at(second)), [""; 0], "settled: {second}");
    }
    fixture.plugin_answers(vec![reply("Successful"), reply("broken")]);
    fixture.settle(at(191));
    assert_eq!(held(&fixture), "StepPluginError Step plugin b (step 2) Error: broken");
    fixture.patch_status(json!({ "abort": true }));
    fixture.plugin_answers(Vec::new());
    fixture.settle(at(192));
    assert_eq!(fixture.status()["phase"], "Progressing", "the first plugin is to take back");
    fixture.plugin_answers(vec![reply("Successful")]);
    fixture.settle(at(193));
    assert_eq!((held(&fixture).as_str(), &fixture.status()["phase"]), ("", &json!("Degraded")));
}

#[test]
fn a_failed_plugin_aborts_and_the_others_are_taken_back_in_reverse() {
    let steps = json!([plugin("a"), plugin("b"), plugin("c"), pause()]);
    let mut fixture = updating(steps);
    fixture.plugin_answers(["Successful", "Successful", "Failed"].map(reply).to_vec());
    fixture.settle(at(11));
    assert_eq!(fixture.take_calls(), ["Run 0", "Run 1", "Run 2"]);
    let status = fixture.status();
    let why = "Rollout aborted update to revision 2: Step Plugin 3 (c) failed: Failed it is";
    let waiting = "waiting for step plugins to be aborted";
    assert_eq!(status["message"], format!("{waiting} (RolloutAborted: {why})"));
    assert_eq!((&status["abort"], &status["currentStepIndex"]), (&json!(true), &json!(0)));

    fixture.plugin_answers(["Running", ""].map(reply).to_vec());
    fixture.settle(at(12));
    assert_eq!(fixture.take_calls(), ["Abort 1", "Abort 0"]);
    let entries = "0 Run Successful 1; 1 Run Successful 1; 2 Run Failed 1; \
                   1 Abort Failed 0; 0 Abort Successful 0";
    assert_eq!(entries_of(&fixture), entries, "an abort that only begins has failed");
    assert_eq!(fixture.status()["message"], format!("RolloutAborted: {why}"));
    fixture.settle(at(13));
    assert_eq!(fixture.take_calls(), [""; 0], "once");

    fixture.patch_status(json!({ "abort": false }));
    fixture.plugin_answers(Vec::new());
    fixture.settle(at(14));
    assert_eq!(entries_of(&fixture), "0 Run  0", "a retry starts over");
}

#[test]
fn a_full_promotion_ends_a_running_plugin_once() {
    let mut fixture = updating(json!([plugin("a"), pause()]));
    fixture.plugin_answers(vec![reply("Running")]);
    fixture.settle(at(11));
    fixture.patch_status(json!({ "promoteFull": true }));
    fixture.take_calls();
    fixture.plugin_answers(vec![reply("Successful")]);
    fixture.settle(at(12));
    assert_eq!(fixture.take_calls(), ["Terminate 0"]);
    assert_eq!(entries_of(&fixture), "0 Run Running 1 30s; 0 Terminate Successful 0");
    assert_eq!(fixture.status()["phase"], "Healthy");
    assert_eq!(fixture.reconcile(at(13)), [""; 0], "settled");
}

#[test]
fn an_unknown_plugin_is_told_and_asked_for_every_30_seconds_until_the_deadline() {
    let unknown = || vec![PluginReply::Unusable("plugin a not configured in configmap".to_owned())];
    let words = "could not create step plugin at index 0 : plugin a not configured in configmap";
    let mut fixture = updating(json!([plugin("a")]));
    fixture.patch_spec(json!({ "progressDeadlineSeconds": 60, "progressDeadlineAbort": true }));
    fixture.plugin_answers(unknown());
    fixture.settle(at(11));
    assert_eq!(fixture.take_calls(), [""; 0], "there is nobody to be called");
    assert!(fixture.take_events().contains(&"ReconciliationError".to_owned()));
    assert_eq!(entries_of(&fixture), "", "and nothing that was begun");
    assert_eq!(held(&fixture), format!("ReconciliationError {words}"));
    let decision = fixture.decide();
    let guard = Guard::PluginStep { index: 0, count: 1, message: words.to_owned() };
    assert_eq!(decision.why[0].guard, guard);
    assert_eq!(decision.why[0].frees, Frees::At(at(41)), "when it is asked for next");
    fixture.plugin_answers(unknown());
    fixture.settle(at(40));
    assert_eq!(fixture.take_events(), [""; 0]);
    fixture.settle(at(41));
    assert_eq!(fixture.take_events(), ["ReconciliationError"]);
    fixture.plugin_answers(unknown());
    fixture.settle(at(400));
    assert_eq!(fixture.status()["abort"], true, "{}", fixture.status());
    fixture.take_calls();
    fixture.settle(at(500));
    assert_eq!(fixture.take_calls(), [""; 0], "what was never called needs no taking back");
    assert_eq!(held(&fixture), "", "an aborted update waits for no plugin");
}

#[test]
fn a_plugin_that_comes_late_is_called_and_nothing_is_held_any_more() {
    let mut fixture = updating(json!([plugin("a"), pause()]));
    fixture.plugin_answers(vec![PluginReply::Unusable("away".to_owned())]);
    fixture.settle(at(11));
    assert_eq!(
        held(&fixture),
        "ReconciliationError could not create step plugin at index 0 : away"
    );
    fixture.plugin_answers(vec![reply("Running")]);
    fixture.settle(at(41));
    assert_eq!(entries_of(&fixture), "0 Run Running 1 30s");
    assert_eq!(held(&fixture), "");
}

#[test]
fn an_aborted_update_is_degraded_when_its_plugins_have_been_told() {
    let mut fixture = updating(json!([plugin("a"), pause()]));
    fixture.plugin_answers(vec![reply("Running")]);
    fixture.settle(at(11));
    fixture.patch_status(json!({ "abort": true }));
    fixture.plugin_answers(Vec::new());
    fixture.settle(at(12));
    let shown = |fixture: &Fixture| fixture.status()["phase"].as_str().unwrap().to_owned();
    assert_eq!(shown(&fixture), "Progressing");
    let message = fixture.status()["message"].as_str().unwrap().to_owned();
    assert!(
        message.starts_with("waiting for step plugins to be aborted (RolloutAborted: "),
        "{message}"
    );
    fixture.plugin_answers(vec![reply("Successful")]);
    fixture.settle(at(13));
    assert_eq!(entries_of(&fixture), "0 Run Running 1 30s; 0 Abort Successful 0");
    assert_eq!(shown(&fixture), "Degraded");

    let mut fixture = updating(json!([plugin("a"), pause()]));
    fixture.plugin_answers(vec![reply("Running")]);
    fixture.settle(at(11));
    fixture.patch_status(json!({ "abort": true }));
    fixture.plugin_answers(vec![PluginReply::Unusable("away".to_owned())]);
    fixture.settle(at(12));
    assert_eq!(shown(&fixture), "Degraded", "one that cannot be told is not waited for");
}

#[test]
fn a_disabled_plugin_is_skipped() {
    let mut fixture = updating(json!([plugin("a"), pause()]));
    fixture.plugin_answers(vec![PluginReply::Disabled]);
    fixture.settle(at(11));
    assert_eq!(entries_of(&fixture), "0 Run disabled");
    assert_eq!(fixture.status()["currentStepIndex"], 1);
    assert_eq!(fixture.status()["phase"], "Paused");
}

#[test]
fn a_call_that_was_or_may_have_been_made_before_an_abort_is_taken_back() {
    let mut fixture = updating(json!([plugin("a"), pause()]));
    fixture.reconcile(at(11));
    fixture.patch_status(json!({ "abort": true }));
    fixture.plugin_answers(vec![reply("Successful")]);
    fixture.settle(at(12));
    assert_eq!(fixture.take_calls(), ["Abort 0"], "nobody knows: a crash may have lost the answer");
    assert_eq!(entries_of(&fixture), "0 Run  0; 0 Abort Successful 0");

    let mut fixture = updating(json!([plugin("a"), pause()]));
    fixture.reconcile(at(11));
    fixture.plugin_answers(vec![reply("Running"), reply("Successful")]);
    fixture.decide();
    fixture.patch_status(json!({ "abort": true }));
    fixture.settle(at(12));
    assert_eq!(fixture.take_calls(), ["Run 0", "Abort 0"]);
    let entries = "0 Run Running 1 30s; 0 Abort Successful 0";
    assert_eq!(entries_of(&fixture), entries, "an answer is recorded even after the abort");
}

/// What holds the rollout: reason and message of the condition.
fn held(fixture: &Fixture) -> String {
    let status = fixture.status();
    let conditions = status["conditions"].as_array().unwrap();
    let held = conditions.iter().find(|known| known["type"] == "Held");
    held.map(|held| {
        format!("{} {}", held["reason"].as_str().unwrap(), held["message"].as_str().unwrap())
    })
    .unwrap_or_default()
}

/// A scenario whose second revision has just begun.
fn updating(steps: Value) -> Fixture {
    let mut fixture = Fixture::canary(1, steps);
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.reconcile(at(10));
    fixture.pods_follow();
    fixture
}

fn plugin(name: &str) -> Value {
    json!({ "plugin": { "name": name } })
}

fn pause() -> Value {
    json!({ "pause": {} })
}

/// `Running 17`: the phase and when to be called again; lower case is a call that fails.
fn reply(text: &str) -> PluginReply {
    if text.starts_with(char::is_lowercase) {
        return PluginReply::Broken(text.to_owned());
    }
    let (phase, seconds) = text.split_once(' ').unwrap_or((text, "0"));
    PluginReply::Said(PluginSaid {
        phase: phase.to_owned(),
        message: format!("{phase} it is"),
        requeue_after: SignedDuration::from_secs_f64(seconds.parse().unwrap()),
        status: Some(std::sync::Arc::new(json!({ "seen": 1 }))),
    })
}

fn entries_of(fixture: &Fixture) -> String {
    let status = fixture.status();
    let entries = status["canary"]["stepPluginStatuses"].as_array().cloned().unwrap_or_default();
    let text = |entry: &Value| {
        let field = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        if entry["disabled"] == true {
            return format!("{} {} disabled", entry["index"], field("operation"));
        }
        let executions = entry["executions"].as_i64().unwrap_or(0);
        let (operation, phase, backoff) = (field("operation"), field("phase"), field("backoff"));
        let text = format!("{} {operation} {phase} {executions} {backoff}", entry["index"]);
        text.trim_end().to_owned()
    };
    entries.iter().map(text).collect::<Vec<_>>().join("; ")
}
