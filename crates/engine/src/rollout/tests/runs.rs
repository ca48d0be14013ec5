//! Analyses of a Rollout as tables: which runs there are, and what their verdicts do.

use serde_json::{Value, json};

use super::at;
use super::story::Story;

fn once() -> Value {
    json!({ "metrics": [{ "name": "m", "provider": { "web": { "url": "x" } } }] })
}

fn endless() -> Value {
    json!({ "metrics": [{ "name": "n", "interval": "1m", "provider": { "web": { "url": "x" } } }] })
}

fn analysis(template: &str) -> Value {
    json!({ "templates": [{ "templateName": template }] })
}

/// A canary of five pods with these steps and templates, at the beginning of its first update.
fn canary(steps: Value) -> Story {
    let mut story =
        Story::canary(5, steps).with_template("once", once()).with_template("endless", endless());
    story.settle(at(0));
    story
}

/// Plays the rows of a table: what happens, what is written until it comes to rest, the runs, phase,
/// step index and message.
fn play(story: &mut Story, table: &str) {
    for (row, number) in table.trim().lines().zip(1..) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [happens, writes, runs, phase, index, message] = cells[..] else {
            panic!("six cells: {row}");
        };
        let words: Vec<&str> = happens.splitn(4, ' ').collect();
        match words[..] {
            ["image", tag] => story.set_image(tag),
            ["promote"] => story.promote(),
            ["skip", step] => {
                let index: i32 = step.parse().unwrap();
                story.patch_status(json!({ "pauseConditions": null, "currentStepIndex": index }));
            }
            ["decide"] => story.patch_status(json!({ "pauseConditions": null,
                "controllerPause": false, "currentStepIndex": 2 })),
            ["abort"] => story.patch_status(json!({ "abort": true })),
            ["retry"] => story.patch_status(json!({ "abort": false })),
            ["full"] => story.patch_status(json!({ "promoteFull": true })),
            ["turns", name, phase] => story.trial_turns(name, phase, ""),
            ["turns", name, phase, words] => story.trial_turns(name, phase, words),
            ["later"] => {}
            _ => panic!("nobody knows {happens:?}"),
        }
        let written = story.rest(at(number * 100));
        let of_trials: Vec<String> = written
            .into_iter()
            .filter(|write| write.contains("run ") || write.contains("experiment "))
            .collect();
        assert_eq!(of_trials.join(", "), writes, "{row}");
        assert_eq!(story.trials().join(", "), runs, "{row}");
        let status = story.status();
        let text = |field: &str| status[field].as_str().unwrap_or_default().to_owned();
        let seen = (text("phase"), status["currentStepIndex"].to_string(), text("message"));
        assert_eq!(seen, (phase.to_owned(), index.to_owned(), message.to_owned()), "{row}");
        assert_eq!(story.reconcile(at(number * 100 + 50)), [""; 0], "{row}: settled");
    }
}

const STEP: &str = "
image v2        | start run 2-1   | 2-1 -          | Progressing | 1 | more replicas need to be updated
turns 2-1 Running |               | 2-1 Running    | Progressing | 1 | more replicas need to be updated
turns 2-1 Successful |            | 2-1 Successful | Paused      | 2 | CanaryPauseStep
promote         |                 | 2-1 Successful | Healthy     | 3 | ";

#[test]
fn a_step_ends_with_the_success_of_its_run() {
    let mut story =
        canary(json!([{ "setWeight": 20 }, { "analysis": analysis("once") }, { "pause": {} }]));
    story.take_events();
    play(&mut story, STEP);
    let events = story.take_events();
    let told: Vec<&str> =
        events.iter().map(String::as_str).filter(|reason| reason.contains("Run")).collect();
    assert_eq!(told, ["AnalysisRunRunning", "AnalysisRunSuccessful"]);
}
