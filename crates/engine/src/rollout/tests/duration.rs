//! How long updates take and how they end, as a table of deeds.

use serde_json::{Value, json};

use super::at;
use super::fixture::Fixture;

/// Seconds since the beginning of started, finished and since when a person is awaited; the seconds
/// waited for people; how it ended. `-` for nothing.
fn told(fixture: &Fixture) -> String {
    let duration = fixture.status()["duration"].clone();
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
    let mut fixture = Fixture::canary(5, json!([{ "setWeight": 20 }, { "pause": {} }]));
    for row in DEEDS.trim().lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [second, deed, expected, what] = cells[..] else { panic!("{row}") };
        match deed.split_once(' ').unwrap_or((deed, "")) {
            ("scale", size) => {
                fixture.patch_spec(json!({ "replicas": size.parse::<i32>().unwrap() }));
            }
            ("image", tag) => fixture.set_image(tag),
            ("promote", _) => fixture.promote(),
            ("abort", _) => fixture.patch_status(json!({ "abort": true })),
            ("retry", _) => fixture.patch_status(json!({ "abort": false })),
            ("full", _) => fixture.patch_status(json!({ "promoteFull": true })),
            ("pause", _) => fixture.patch_spec(json!({ "paused": true })),
            ("resume", _) => fixture.patch_spec(json!({ "paused": false })),
            _ => {}
        }
        fixture.settle(at(second.parse().unwrap()));
        assert_eq!(told(&fixture), expected, "{what}");
    }
}

#[test]
fn a_pause_that_ends_by_itself_is_nobodys_time() {
    let steps = json!([{ "setWeight": 50 }, { "pause": { "duration": 60 } }]);
    let mut fixture = Fixture::canary(2, steps);
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(10));
    assert_eq!(told(&fixture), "10 - - - -");
    fixture.settle(at(70));
    assert_eq!(told(&fixture), "10 70 - - Promoted");
}

#[test]
fn a_blue_green_update_waits_for_a_person_where_it_must() {
    let mut fixture = Fixture::blue_green(2, json!({ "autoPromotionEnabled": false }));
    fixture.settle(at(0));
    assert_eq!(told(&fixture), "0 0 - - Promoted");
    fixture.set_image("v2");
    fixture.settle(at(10));
    assert_eq!(told(&fixture), "10 - 10 - -");
    fixture.promote();
    fixture.settle(at(40));
    assert_eq!(told(&fixture), "10 40 - 30 Promoted");
    fixture.set_image("v1");
    fixture.settle(at(50));
    assert_eq!(told(&fixture), "50 50 - - FastRolledBack", "the old one still waited for its end");
}

#[test]
fn another_strategy_without_another_template_is_no_update() {
    let mut fixture = Fixture::blue_green(2, json!({}));
    fixture.settle(at(0));
    let canary = json!({ "blueGreen": null, "canary": { "steps": [{ "setWeight": 50 }] } });
    fixture.patch_spec(json!({ "strategy": canary }));
    fixture.settle(at(10));
    let status = fixture.status();
    assert_eq!((&status["phase"], &status["currentStepIndex"]), (&json!("Healthy"), &json!(1)));
    assert_eq!((&status["blueGreen"], &status["selector"]), (&json!({}), &json!("app=web")));
    assert_ne!(status["currentStepHash"], Value::Null);
    assert_eq!(told(&fixture), "0 0 - - Promoted");
}
