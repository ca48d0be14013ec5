//! Analyses before and after a blue-green switch as tables.

use serde_json::{Value, json};

use super::at;
use super::fixture::Fixture;
use super::runs::{play, told};

fn blue_green(strategy: Value) -> Fixture {
    let template = json!({ "metrics": [{ "name": "m", "provider": { "web": { "url": "x" } } }] });
    let mut fixture = Fixture::blue_green(2, strategy).with_template("once", template);
    fixture.settle(at(0));
    assert_eq!(fixture.runs(), [""; 0], "the first deploy is not judged");
    fixture.take_events();
    fixture
}

fn analysis() -> Value {
    json!({ "templates": [{ "templateName": "once" }] })
}

const PRE: &str = "
image v2               | start run 2-pre | 2-pre -          | Progressing | null | active service cutover pending
turns 2-pre Running    |                 | 2-pre Running    | Progressing | null | active service cutover pending
turns 2-pre Successful |                 | 2-pre Successful | Paused      | null | BlueGreenPause
promote                |                 | 2-pre Successful | Healthy     | null | ";

const PRE_FAILS: &str = "
image v2                 | start run 2-pre   | 2-pre -          | Progressing | null | active service cutover pending
turns 2-pre Failed m     |                   | 2-pre Failed     | Degraded    | null | RolloutAborted: Rollout aborted update to revision 2: Blue/green pre-promotion analysis phase error/failed: m
retry                    | start run 2-pre.1 | 2-pre Failed, 2-pre.1 - | Progressing | null | active service cutover pending
turns 2-pre.1 Successful |                   | 2-pre Failed, 2-pre.1 Successful | Paused | null | BlueGreenPause";

const PRE_INCONCLUSIVE: &str = "
image v2                 | start run 2-pre   | 2-pre -            | Progressing | null | active service cutover pending
turns 2-pre Inconclusive |                   | 2-pre Inconclusive | Paused      | null | InconclusiveAnalysisRun
promote                  | start run 2-pre.1 | 2-pre Inconclusive, 2-pre.1 - | Progressing | null | active service cutover pending
turns 2-pre.1 Successful |                   | 2-pre Inconclusive, 2-pre.1 Successful | Paused | null | BlueGreenPause
promote                  |                   | 2-pre Inconclusive, 2-pre.1 Successful | Healthy | null | ";

#[test]
fn the_switch_waits_for_the_analysis_before_it() {
    for (table, active) in [(PRE, 2), (PRE_FAILS, 1), (PRE_INCONCLUSIVE, 2)] {
        let strategy = json!({ "autoPromotionEnabled": false, "prePromotionAnalysis": analysis() });
        let mut fixture = blue_green(strategy);
        play(&mut fixture, table);
        assert_eq!((fixture.selects("active"), fixture.selects("preview")), (active, 2), "{table}");
    }
}

const POST: &str = "
image v2                | start run 2-post | 2-post -          | Progressing | null | waiting for analysis to complete
turns 2-post Successful |                  | 2-post Successful | Healthy     | null | ";

const POST_FAILS: &str = "
image v2            | start run 2-post   | 2-post -     | Progressing | null | waiting for analysis to complete
turns 2-post Error  |                    | 2-post Error | Degraded    | null | RolloutAborted: Rollout aborted update to revision 2: Blue/green post-promotion analysis phase error/failed";

#[test]
fn the_analysis_after_the_switch_promotes_or_switches_back() {
    for (table, active) in [(POST, 2), (POST_FAILS, 1)] {
        let mut fixture = blue_green(json!({ "postPromotionAnalysis": analysis() }));
        play(&mut fixture, table);
        assert_eq!((fixture.selects("active"), fixture.selects("preview")), (active, 2), "{table}");
    }
}

#[test]
fn a_pause_after_the_switch_says_paused_and_changes_nothing_more() {
    // All pods of the new revision serve, but it is not stable yet: the pause must not be overwritten.
    let cases = [
        ("by a person", "Running", json!({ "paused": true }), json!({ "paused": false })),
        ("by the analysis", "Inconclusive", json!({}), json!({})),
    ];
    for (what, phase, pause, resume) in cases {
        let mut fixture = blue_green(json!({ "postPromotionAnalysis": analysis() }));
        fixture.set_image("v2");
        fixture.settle(at(10));
        fixture.run_turns("2-post", phase, "");
        fixture.patch_spec(pause);
        fixture.settle(at(20));
        let progressing = &fixture.condition("Progressing");
        assert_eq!(progressing["reason"], "RolloutPaused", "{what}: {progressing}");
        assert_eq!(fixture.status()["phase"], "Paused", "{what}");
        assert_eq!(fixture.rest(at(900)), [""; 0], "{what}: a settled rollout makes no request");
        fixture.patch_spec(resume);
        fixture.patch_status(json!({ "pauseConditions": null }));
        fixture.settle(at(1000));
        let run = if phase == "Running" { "2-post" } else { "2-post.1" };
        fixture.run_turns(run, "Successful", "");
        fixture.settle(at(1010));
        assert_eq!(fixture.status()["phase"], "Healthy", "{what}");
    }
}

#[test]
fn a_retry_after_the_switch_back_is_judged_from_the_start() {
    let strategy =
        json!({ "prePromotionAnalysis": analysis(), "postPromotionAnalysis": analysis() });
    let mut fixture = blue_green(strategy);
    fixture.set_image("v2");
    fixture.settle(at(10));
    fixture.run_turns("2-pre", "Successful", "");
    fixture.settle(at(20));
    assert_eq!(fixture.selects("active"), 2);
    fixture.run_turns("2-post", "Failed", "");
    fixture.settle(at(30));
    assert_eq!(fixture.selects("active"), 1);
    let expected = ["AnalysisRunSuccessful", "AnalysisRunFailed", "RolloutAborted"];
    assert_eq!(told(&mut fixture), expected);
    fixture.settle(at(300));
    assert_eq!(fixture.sizes(), [2, 0], "its delay has passed");
    fixture.patch_status(json!({ "abort": false }));
    fixture.reconcile(at(310));
    assert_eq!(fixture.runs(), ["2-pre Successful", "2-post Failed"], "not without pods");
    fixture.settle(at(320));
    assert_eq!(fixture.runs(), ["2-pre Successful", "2-post Failed", "2-pre.1 -"]);
    assert_eq!(fixture.selects("active"), 1, "an old verdict does not count");
    fixture.run_turns("2-pre.1", "Successful", "");
    fixture.settle(at(330));
    assert_eq!(fixture.selects("active"), 2);
    fixture.run_turns("2-post.1", "Successful", "");
    fixture.settle(at(340));
    assert_eq!(fixture.status()["phase"], "Healthy");
}

#[test]
fn a_lost_pod_does_not_end_a_run_and_old_pods_stay_for_the_verdict() {
    let mut fixture = blue_green(json!({ "postPromotionAnalysis": analysis() }));
    fixture.set_image("v2");
    fixture.settle(at(10));
    fixture.lose_pod(1);
    assert_eq!(fixture.reconcile(at(11)).iter().filter(|write| write.contains("run")).count(), 0);
    assert_eq!(fixture.runs(), ["2-post -"], "the run goes on");
    fixture.settle(at(12));
    fixture.settle(at(500));
    assert_eq!(fixture.sizes(), [2, 2], "the way back stays open however long it takes");
    fixture.run_turns("2-post", "Successful", "");
    fixture.settle(at(510));
    fixture.settle(at(541));
    assert_eq!(fixture.sizes(), [0, 2], "then the delay begins");
}

#[test]
fn a_run_that_was_started_and_not_noted_goes_on_whatever_its_pods_do() {
    let mut fixture = blue_green(json!({ "prePromotionAnalysis": analysis() }));
    fixture.set_image("v2");
    fixture.settle(at(10));
    assert_eq!(fixture.runs(), ["2-pre -"]);
    let none = json!({ "blueGreen": { "prePromotionAnalysisRunStatus": null } });
    fixture.patch_status(none); // As a crash before the status was written leaves it.
    fixture.lose_pod(1);
    fixture.reconcile(at(11));
    assert_eq!(fixture.runs(), ["2-pre -"], "it is neither ended nor made again");
    fixture.settle(at(12));
    fixture.run_turns("2-pre", "Successful", "");
    fixture.settle(at(20));
    assert_eq!((fixture.runs(), fixture.selects("active")), (vec!["2-pre Successful".into()], 2));
}

#[test]
fn older_revisions_stay_for_the_verdict_unless_a_delay_is_set() {
    for (delay, sizes) in [(None, vec![2, 2, 2]), (Some(30), vec![0, 2, 2])] {
        let mut strategy = json!({ "postPromotionAnalysis": analysis() });
        if let Some(delay) = delay {
            strategy["scaleDownDelaySeconds"] = json!(delay);
        }
        let mut fixture = blue_green(strategy);
        fixture.set_image("v2");
        fixture.settle(at(10));
        fixture.run_turns("2-post", "Successful", "");
        fixture.settle(at(20));
        fixture.set_image("v3");
        fixture.settle(at(25));
        assert_eq!(fixture.runs(), ["2-post Successful", "3-post -"]);
        fixture.settle(at(200));
        assert_eq!(fixture.sizes(), sizes, "delay {delay:?}");
        fixture.run_turns("3-post", "Inconclusive", "");
        fixture.settle(at(210));
        fixture.settle(at(300));
        let seen = (fixture.sizes(), fixture.selects("active"), &fixture.status()["phase"]);
        let expected = (vec![0, 2, 2], 3, &json!("Paused"));
        assert_eq!(seen, expected, "delay {delay:?}: nobody waits for a person with old pods");
    }
}

#[test]
fn a_preview_that_is_not_passed_does_not_grow_with_the_replicas() {
    let mut fixture = blue_green(json!({ "prePromotionAnalysis": analysis() }));
    fixture.set_image("v2");
    fixture.settle(at(10));
    fixture.run_turns("2-pre", "Inconclusive", "");
    fixture.patch_spec(json!({ "replicas": 5 }));
    fixture.settle(at(20));
    assert_eq!((fixture.sizes(), &fixture.status()["phase"]), (vec![5, 2], &json!("Paused")));
    fixture.promote();
    fixture.settle(at(30));
    assert_eq!(
        (fixture.sizes(), fixture.selects("active")),
        (vec![5, 5], 1),
        "a person has decided"
    );
    assert_eq!(fixture.runs(), ["2-pre Inconclusive", "2-pre.1 -"]);
}

#[test]
fn a_preview_is_judged_at_its_own_size() {
    let strategy = json!({ "previewReplicaCount": 1, "prePromotionAnalysis": analysis() });
    let mut fixture = blue_green(strategy);
    fixture.set_image("v2");
    fixture.settle(at(10));
    assert_eq!((fixture.sizes(), fixture.runs()), (vec![2, 1], vec!["2-pre -".to_owned()]));
    fixture.run_turns("2-pre", "Successful", "");
    fixture.settle(at(20));
    assert_eq!((fixture.sizes(), fixture.selects("active")), (vec![2, 2], 2));
    assert_eq!(fixture.status()["phase"], "Healthy");
}

#[test]
fn a_way_back_within_the_delay_is_not_judged() {
    let mut fixture = blue_green(json!({ "prePromotionAnalysis": analysis() }));
    fixture.set_image("v2");
    fixture.settle(at(10));
    fixture.run_turns("2-pre", "Successful", "");
    fixture.settle(at(20));
    fixture.set_image("v1");
    fixture.settle(at(25));
    assert_eq!(fixture.runs(), ["2-pre Successful"], "no new run");
    assert_eq!((fixture.selects("active"), &fixture.status()["phase"]), (1, &json!("Healthy")));
}
