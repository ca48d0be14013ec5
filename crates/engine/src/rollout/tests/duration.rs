//! How long updates take and how they end, as a table of deeds.

use serde_json::{Value, json};

use super::at;
use super::story::Story;

/// Seconds since the beginning of started, finished and since when a person is awaited; the seconds
/// waited for people; how it ended. `-` for nothing.
fn told(story: &Story) -> String {
    let duration = story.status()["duration"].clone();
    let moment = |field: &str| match duration[field].as_str() {
        Some(text) => {
            let moment: jiff::Timestamp = text.parse().unwrap();
            (moment.as_second() - at(0).as_second()).to_string()
        }
        None => "-".to_owned(),
    };
    let or_none = |value: &Value| match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let [began, ended, waits] =
        ["rolloutStartedAt", "finishedAt", "manualPauseStartedAt"].map(moment);
    let waited = or_none(&duration["totalManualPauseDurationSeconds"]);
    format!("{began} {ended} {waits} {waited} {}", or_none(&duration["completionStatus"]))
}

/// Second, what happens, and what is told then.
const DEEDS: &str = "
0   | -         | 0 0 - - Promoted        | the first deploy
10  | scale 6   | 0 0 - - Promoted        | scaling is no update
20  | image v2  | 20 - 20 - -             | an update that waits for a person
50  | image v3  | 50 - 50 - -             | a newer one takes over: a fresh start
80  | promote   | 50 80 - 30 Promoted     | thirty seconds were a person's
90  | image v4  | 90 - 90 - -             | the next
100 | abort     | 90 100 - 10 Aborted     | given up
110 | retry     | 110 - 110 - -           | a retry is a new start
115 | full      | 110 115 - 5 FastPromoted | the rest is skipped
120 | image v5  | 120 - 120 - -           | the next
130 | image v4  | 120 130 - 10 FastRolledBack | back to stable: the same attempt
140 | image v1  | 140 - 140 - RolledBack  | back to an old revision, with all its steps
150 | pause     | 140 - 140 - RolledBack  | a person halts it as well
160 | resume    | 140 - 140 - RolledBack  | and the step still waits
170 | promote   | 140 170 - 30 RolledBack | the end";

#[test]
fn an_attempt_has_a_beginning_an_end_and_the_time_people_took() {
    let mut story = Story::canary(5, json!([{ "setWeight": 20 }, { "pause": {} }]));
    for row in DEEDS.trim().lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [second, deed, expected, what] = cells[..] else { panic!("{row}") };
        match deed.split_once(' ').unwrap_or((deed, "")) {
            ("scale", size) => {
                story.patch_spec(json!({ "replicas": size.parse::<i32>().unwrap() }));
            }
            ("image", tag) => story.set_image(tag),
            ("promote", _) => story.promote(),
            ("abort", _) => story.patch_status(json!({ "abort": true })),
            ("retry", _) => story.patch_status(json!({ "abort": false })),
            ("full", _) => story.patch_status(json!({ "promoteFull": true })),
            ("pause", _) => story.patch_spec(json!({ "paused": true })),
            ("resume", _) => story.patch_spec(json!({ "paused": false })),
            _ => {}
        }
        story.settle(at(second.parse().unwrap()));
        assert_eq!(told(&story), expected, "{what}");
    }
}

#[test]
fn a_pause_that_ends_by_itself_is_nobodys_time() {
    let steps = json!([{ "setWeight": 50 }, { "pause": { "duration": 60 } }]);
    let mut story = Story::canary(2, steps);
    story.settle(at(0));
    story.set_image("v2");
    story.settle(at(10));
    assert_eq!(told(&story), "10 - - - -");
    story.settle(at(70));
    assert_eq!(told(&story), "10 70 - - Promoted");
}

#[test]
fn a_blue_green_update_waits_for_a_person_where_it_must() {
    let mut story = Story::blue_green(2, json!({ "autoPromotionEnabled": false }));
    story.settle(at(0));
    assert_eq!(told(&story), "0 0 - - Promoted");
    story.set_image("v2");
    story.settle(at(10));
    assert_eq!(told(&story), "10 - 10 - -");
    story.promote();
    story.settle(at(40));
    assert_eq!(told(&story), "10 40 - 30 Promoted");
    story.set_image("v1");
    story.settle(at(50));
    assert_eq!(told(&story), "50 50 - - FastRolledBack", "the old one still waited for its end");
}

#[test]
fn another_strategy_without_another_template_is_no_update() {
    let mut story = Story::blue_green(2, json!({}));
    story.settle(at(0));
    let canary = json!({ "blueGreen": null, "canary": { "steps": [{ "setWeight": 50 }] } });
    story.patch_spec(json!({ "strategy": canary }));
    story.settle(at(10));
    let status = story.status();
    assert_eq!((&status["phase"], &status["currentStepIndex"]), (&json!("Healthy"), &json!(1)));
    assert_eq!((&status["blueGreen"], &status["selector"]), (&json!({}), &json!("app=web")));
    assert_ne!(status["currentStepHash"], Value::Null);
    assert_eq!(told(&story), "0 0 - - Promoted");
}
