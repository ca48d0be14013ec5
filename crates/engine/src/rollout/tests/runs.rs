//! Analyses of a Rollout as tables: which runs there are, and what their verdicts do.

use serde_json::{Value, json};

use super::at;
use super::fixture::Fixture;
use crate::ask::Class;
use crate::kinds;

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
fn canary(steps: Value) -> Fixture {
    let mut fixture =
        Fixture::canary(5, steps).with_template("once", once()).with_template("endless", endless());
    fixture.settle(at(0));
    fixture
}

/// Plays the rows of a table: what happens, what is written until it comes to rest, the runs,
/// phase, step index and message.
pub fn play(fixture: &mut Fixture, table: &str) {
    for (row, number) in table.trim().lines().zip(1..) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [happens, writes, runs, phase, index, message] = cells[..] else {
            panic!("six cells: {row}");
        };
        let words: Vec<&str> = happens.splitn(4, ' ').collect();
        match words[..] {
            ["image", tag] => fixture.set_image(tag),
            ["promote"] => fixture.promote(),
            ["skip", step] => {
                let index: i32 = step.parse().unwrap();
                fixture.patch_status(json!({ "pauseConditions": null, "currentStepIndex": index }));
            }
            ["decide"] => fixture.patch_status(json!({ "pauseConditions": null,
                "controllerPause": false, "currentStepIndex": 2 })),
            ["abort"] => fixture.patch_status(json!({ "abort": true })),
            ["retry"] => fixture.patch_status(json!({ "abort": false })),
            ["full"] => fixture.patch_status(json!({ "promoteFull": true })),
            ["turns", name, phase] => fixture.run_turns(name, phase, ""),
            ["turns", name, phase, words] => fixture.run_turns(name, phase, words),
            ["halt"] => fixture.patch_spec(json!({ "paused": true })),
            ["go", "on"] => fixture.patch_spec(json!({ "paused": false })),
            ["later"] => {}
            _ => panic!("nobody knows {happens:?}"),
        }
        let written = fixture.rest(at(number * 100));
        let of_runs: Vec<String> = written
            .into_iter()
            .filter(|write| write.contains("run ") || write.contains("experiment "))
            .collect();
        assert_eq!(of_runs.join(", "), writes, "{row}");
        assert_eq!(fixture.runs().join(", "), runs, "{row}");
        let status = fixture.status();
        let text = |field: &str| status[field].as_str().unwrap_or_default().to_owned();
        let seen = (text("phase"), status["currentStepIndex"].to_string(), text("message"));
        assert_eq!(seen, (phase.to_owned(), index.to_owned(), message.to_owned()), "{row}");
        assert_eq!(fixture.reconcile(at(number * 100 + 5)), [""; 0], "{row}: settled");
    }
}

const STEP: &str = "
image v2             | start run 2-1 | 2-1 -          | Progressing | 1 | more replicas need to be updated
turns 2-1 Running    |               | 2-1 Running    | Progressing | 1 | more replicas need to be updated
turns 2-1 Successful |               | 2-1 Successful | Paused      | 2 | CanaryPauseStep
promote              |               | 2-1 Successful | Healthy     | 3 | ";

#[test]
fn a_step_ends_with_the_success_of_its_run() {
    let mut fixture = judged_canary();
    fixture.take_events();
    play(&mut fixture, STEP);
    assert_eq!(told(&mut fixture), ["AnalysisRunRunning", "AnalysisRunSuccessful"]);
}

/// 20 %, an analysis, a pause.
fn judged_canary() -> Fixture {
    canary(json!([{ "setWeight": 20 }, { "analysis": analysis("once") }, { "pause": {} }]))
}

/// Reasons of the Events about runs, Experiments and aborts.
pub fn told(fixture: &mut Fixture) -> Vec<String> {
    let is_meant = |reason: &String| {
        ["AnalysisRun", "Experiment", "RolloutAborted"].iter().any(|one| reason.starts_with(one))
    };
    fixture.take_events().into_iter().filter(is_meant).collect()
}

const FAILURE: &str = "
image v2              | start run 2-1   | 2-1 -                      | Progressing | 1 | more replicas need to be updated
turns 2-1 Failed m: 3 |                 | 2-1 Failed                 | Degraded    | 0 | RolloutAborted: Rollout aborted update to revision 2: Step-based analysis phase error/failed: m: 3
retry                 | start run 2-1.1 | 2-1 Failed, 2-1.1 -        | Progressing | 1 | more replicas need to be updated
turns 2-1.1 Error     |                 | 2-1 Failed, 2-1.1 Error    | Degraded    | 0 | RolloutAborted: Rollout aborted update to revision 2: Step-based analysis phase error/failed
retry                 | start run 2-1.2 | 2-1 Failed, 2-1.1 Error, 2-1.2 - | Progressing | 1 | more replicas need to be updated
turns 2-1.2 Successful |                | 2-1 Failed, 2-1.1 Error, 2-1.2 Successful | Paused | 2 | CanaryPauseStep";

#[test]
fn a_failed_run_gives_the_update_up_and_a_retry_starts_a_new_one() {
    let mut fixture = judged_canary();
    play(&mut fixture, FAILURE);
    let expected = [
        "AnalysisRunFailed",
        "RolloutAborted",
        "AnalysisRunError",
        "RolloutAborted",
        "AnalysisRunSuccessful",
    ];
    assert_eq!(told(&mut fixture), expected);
}

/// A user's promote decides past an inconclusive step; a plain resume wants a new run.
const INCONCLUSIVE: &str = "
image v2               | start run 2-1   | 2-1 -                             | Progressing | 1 | more replicas need to be updated
turns 2-1 Inconclusive |                 | 2-1 Inconclusive                  | Paused      | 1 | InconclusiveAnalysisRun
promote                | start run 2-1.1 | 2-1 Inconclusive, 2-1.1 -         | Progressing | 1 | more replicas need to be updated
turns 2-1.1 Inconclusive |               | 2-1 Inconclusive, 2-1.1 Inconclusive | Paused   | 1 | InconclusiveAnalysisRun
decide                 |                 | 2-1 Inconclusive, 2-1.1 Inconclusive | Paused   | 2 | CanaryPauseStep";

#[test]
fn an_inconclusive_run_pauses_until_a_person_decides() {
    let mut fixture = judged_canary();
    play(&mut fixture, INCONCLUSIVE);
    assert_eq!(told(&mut fixture), ["AnalysisRunInconclusive", "AnalysisRunInconclusive"]);
}

#[test]
fn what_was_not_decided_about_one_update_does_not_hold_the_next_that_is_scaled() {
    let mut fixture = judged_canary();
    fixture.set_image("v2");
    fixture.settle(at(10));
    fixture.run_turns("2-1", "Inconclusive", "");
    fixture.settle(at(20));
    assert_eq!(fixture.status()["message"], "InconclusiveAnalysisRun");
    fixture.patch_spec(json!({ "replicas": 4 }));
    fixture.set_image("v3");
    fixture.settle(at(30));
    assert_eq!(fixture.status()["currentPodHash"], fixture.hash(2), "the next has begun");
    assert_eq!(fixture.runs(), ["2-1 Inconclusive", "3-1 -"]);
}

/// The second revision is overtaken in its pause, and the run of the third finds nothing: its pods,
/// and stable, stay; those of the second go, for which stable grows.
#[test]
fn overtaken_pods_go_although_nobody_has_decided_about_the_next_revision() {
    let steps = json!([
        { "setWeight": 40 },
        { "pause": {} },
        { "analysis": { "templates": [{ "templateName": "once" }] } },
    ]);
    for surge in [0, 1] {
        let mut fixture = Fixture::canary(5, steps.clone());
        let limits = json!({ "maxSurge": surge, "maxUnavailable": 1 - surge });
        fixture.patch_spec(json!({ "strategy": { "canary": limits } }));
        let metric = json!({ "name": "m", "provider": { "web": { "url": "x" } } });
        let mut fixture = fixture.with_template("once", json!({ "metrics": [metric] }));
        fixture.settle(at(0));
        fixture.set_image("v2");
        fixture.settle(at(10));
        assert_eq!(fixture.sizes(), [3, 2], "surge {surge}");
        let judged = json!([
            { "analysis": { "templates": [{ "templateName": "once" }] } }, { "pause": {} },
        ]);
        fixture.patch_spec(json!({ "strategy": { "canary": { "steps": judged } } }));
        fixture.set_image("v3");
        fixture.reconcile(at(20));
        fixture.run_turns("3-0", "Inconclusive", "");
        fixture.reconcile(at(21));
        assert_eq!(fixture.status()["message"], "InconclusiveAnalysisRun", "surge {surge}");
        fixture.settle(at(22));
        assert_eq!(fixture.sizes(), [5, 0, 0], "surge {surge}");
        assert_eq!(fixture.status()["phase"], "Paused", "surge {surge}");
        fixture.patch_spec(json!({ "replicas": 7 }));
        fixture.settle(at(30));
        assert_eq!(fixture.sizes(), [7, 0, 0], "surge {surge}: stable follows an autoscaler");
    }
}

const BACKGROUND: &str = "
image v2             | start run 2 | 2 -            | Paused      | 1 | CanaryPauseStep
turns 2 Running      |             | 2 Running      | Paused      | 1 | CanaryPauseStep
promote              | end run 2   | 2 Running ending | Healthy   | 3 | ";

const BACKGROUND_FAILS: &str = "
image v2             | start run 2   | 2 -            | Paused   | 1 | CanaryPauseStep
turns 2 Failed       |               | 2 Failed       | Degraded | 0 | RolloutAborted: Rollout aborted update to revision 2: Background analysis phase error/failed
retry                | start run 2.1 | 2 Failed, 2.1 - | Paused  | 1 | CanaryPauseStep
turns 2.1 Inconclusive |             | 2 Failed, 2.1 Inconclusive | Paused | 1 | InconclusiveAnalysisRun
promote              | start run 2.2, end run 2.2 | 2 Failed, 2.1 Inconclusive, 2.2 - ending | Healthy | 3 | ";

#[test]
fn a_background_run_lasts_as_long_as_the_update() {
    for table in [BACKGROUND, BACKGROUND_FAILS] {
        let mut fixture =
            canary(json!([{ "setWeight": 20 }, { "pause": {} }, { "setWeight": 60 }]));
        fixture
            .patch_spec(json!({ "strategy": { "canary": { "analysis": analysis("endless") } } }));
        fixture.settle(at(1));
        assert_eq!(fixture.runs(), [""; 0], "none on the first deploy, none when promoted");
        play(&mut fixture, table);
    }
}

#[test]
fn a_background_run_starts_at_its_step_and_ends_with_its_configuration() {
    let mut fixture = canary(json!([{ "pause": {} }, { "setWeight": 20 }, { "pause": {} }]));
    let mut late = analysis("endless");
    late["startingStep"] = json!(2);
    fixture.patch_spec(json!({ "strategy": { "canary": { "analysis": late } } }));
    fixture.set_image("v2");
    fixture.settle(at(10));
    assert_eq!(fixture.runs(), [""; 0], "not before its step");
    fixture.promote();
    fixture.settle(at(20));
    assert_eq!(fixture.runs(), ["2 -"]);
    fixture.patch_spec(json!({ "strategy": { "canary": { "analysis": { "templates": [] } } } }));
    fixture.settle(at(30));
    assert_eq!(fixture.runs(), ["2 - ending"], "without templates there is none");
    assert_eq!(fixture.status()["canary"], json!({}));
}

/// What a person does in mid-analysis, and the runs afterwards.
#[test]
fn a_run_ends_when_nobody_wants_its_verdict_any_more() {
    type Deed = fn(&mut Fixture);
    let cases: [(&str, Deed, &[&str], &str); 5] = [
        ("abort", |s| s.patch_status(json!({ "abort": true })), &["2-1 - ending"], "Degraded"),
        (
            "full promotion",
            |s| s.patch_status(json!({ "promoteFull": true })),
            &["2-1 - ending"],
            "Healthy",
        ),
        ("back to stable", |s| s.set_image("v1"), &["2-1 - ending"], "Healthy"),
        ("another image", |s| s.set_image("v3"), &["2-1 - ending", "3-1 -"], "Progressing"),
        (
            "the step is skipped",
            |s| s.patch_status(json!({ "currentStepIndex": 2 })),
            &["2-1 - ending"],
            "Paused",
        ),
    ];
    for (what, deed, runs, phase) in cases {
        let mut fixture = judged_canary();
        fixture.set_image("v2");
        fixture.settle(at(10));
        deed(&mut fixture);
        fixture.settle(at(20));
        assert_eq!(fixture.runs(), runs, "{what}");
        assert_eq!(fixture.status()["phase"], phase, "{what}");
        assert_eq!(fixture.reconcile(at(21)), [""; 0], "{what}: settled");
    }
}

const TWO_STEPS: &str = "
image v2             | start run 2-0 | 2-0 -                        | Progressing | 0 | more replicas need to be updated
skip 1               | start run 2-1, end run 2-0 | 2-0 - ending, 2-1 - | Progressing | 1 | more replicas need to be updated
turns 2-0 Successful |               | 2-0 Successful ending, 2-1 - | Progressing | 1 | more replicas need to be updated
turns 2-1 Successful |               | 2-0 Successful ending, 2-1 Successful | Healthy | 2 | ";

#[test]
fn each_of_two_analysis_steps_has_its_own_run() {
    let mut fixture =
        canary(json!([{ "analysis": analysis("once") }, { "analysis": analysis("once") }]));
    play(&mut fixture, TWO_STEPS);
}

#[test]
fn a_name_that_is_taken_is_stepped_around_and_an_equal_run_is_used() {
    let start = |prepare: fn(&mut Fixture, &str)| {
        let mut fixture = judged_canary();
        fixture.set_image("v2");
        let hash = fixture.world().rollout.hash.to_string();
        prepare(&mut fixture, &format!("web-{hash}-2-1"));
        fixture.settle(at(10));
        fixture.runs()
    };
    let foreign = start(|fixture, name| {
        fixture.refuse_run(&kinds::ANALYSIS_RUN, name, Class::Exists, at(99));
    });
    assert_eq!(foreign, ["2-1.1 -"], "somebody else's");

    let mut fixture = judged_canary();
    fixture.set_image("v2");
    fixture.settle(at(10));
    fixture.forget_runs();
    assert_eq!(fixture.rest(at(11)), ["status"], "a crash after the create: the run is used");
    assert_eq!(fixture.runs(), ["2-1 -"]);
    fixture.forget_runs();
    fixture.named_run("2-1")["spec"]["metrics"] = json!([]);
    assert_eq!(
        fixture.rest(at(12)),
        ["start run 2-1.1", "end run 2-1", "status"],
        "another intent"
    );
}

#[test]
fn a_run_tells_what_it_is_for_and_whose_it_is() {
    let spec = json!({
        "args": [{ "name": "hash" }, { "name": "team" }, { "name": "kept", "value": "k" }],
        "metrics": [{ "name": "m", "provider": { "web": { "url": "{{args.hash}}" } } }],
    });
    let mut fixture = Fixture::canary(
        1,
        json!([{ "setWeight": 50 }, { "analysis": {
        "templates": [{ "templateName": "inner" }, { "templateName": "all", "clusterScope": true }],
        "args": [
            { "name": "hash", "valueFrom": { "podTemplateHashValue": "Stable" } },
            { "name": "team", "valueFrom": { "fieldRef": { "fieldPath": "spec.replicas" } } },
        ],
        "dryRun": [{ "metricName": "m" }],
        "analysisRunMetadata": {
            "labels": { "app": "mine", "x": "y" }, "annotations": { "note": "n" },
        },
    } }]),
    )
    .with_template("inner", spec);
    fixture.add_cluster_template("all", json!({ "metrics": [{ "name": "c" }] }));
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(10));
    let stable = fixture.status()["stableRS"].clone();
    let new = fixture.status()["currentPodHash"].clone();
    let run = fixture.named_run("2-1").clone();
    assert_eq!(
        run["metadata"]["labels"],
        json!({ "app": "web", "x": "y", "rollout-type": "Step", "step-index": "1",
            "rollouts-pod-template-hash": new })
    );
    let notes = json!({ "note": "n", "rollout.argoproj.io/revision": "2" });
    assert_eq!(run["metadata"]["annotations"], notes);
    assert_eq!(run["metadata"]["ownerReferences"][0]["name"], "web");
    assert_eq!(
        run["spec"],
        json!({
            "metrics": [
                { "name": "m", "provider": { "web": { "url": "{{args.hash}}" } } }, { "name": "c" },
            ],
            "args": [
                { "name": "hash", "value": stable }, { "name": "team", "value": "1" },
                { "name": "kept", "value": "k" },
            ],
            "dryRun": [{ "metricName": "m" }],
        })
    );
}

#[test]
fn a_way_back_within_the_window_is_not_judged_and_one_beyond_it_is() {
    for (window, runs) in [(2, [""; 0].as_slice()), (0, &["3-1 -"])] {
        let mut fixture = canary(json!([{ "setWeight": 20 }, { "pause": {} }]));
        fixture.patch_spec(json!({ "rollbackWindow": { "revisions": window } }));
        fixture.set_image("v2");
        fixture.settle(at(10));
        fixture.promote();
        fixture.settle(at(20));
        let steps = json!([{ "setWeight": 20 }, { "analysis": analysis("once") }]);
        let judged = json!({ "steps": steps, "analysis": analysis("endless") });
        fixture.patch_spec(json!({ "strategy": { "canary": judged } }));
        fixture.settle(at(30));
        fixture.set_image("v1");
        fixture.settle(at(40));
        let found: Vec<String> =
            fixture.runs().into_iter().filter(|run| run.starts_with("3-")).collect();
        assert_eq!(found, runs, "window {window}");
        let phase = if window == 0 { "Progressing" } else { "Healthy" };
        assert_eq!(fixture.status()["phase"], phase, "window {window}");
    }
}

#[test]
fn only_so_many_runs_are_kept_and_they_go_with_their_replica_set() {
    let mut fixture = canary(json!([{ "analysis": analysis("once") }]));
    fixture.patch_spec(json!({ "revisionHistoryLimit": 3,
        "analysis": { "successfulRunHistoryLimit": 2, "unsuccessfulRunHistoryLimit": 1 } }));
    for number in 2..=6 {
        fixture.set_image(&format!("v{number}"));
        fixture.settle(at(number * 100));
        fixture.run_turns(&format!("{number}-0"), "Successful", "");
        fixture.settle(at(number * 100 + 5));
    }
    assert_eq!(fixture.runs(), ["5-0 Successful", "6-0 Successful"]);
    for (attempt, name) in [(1, "7-0"), (2, "7-0.1"), (3, "7-0")] {
        fixture.set_image("v7");
        fixture.settle(at(1000 * attempt));
        fixture.run_turns(name, "Failed", "");
        fixture.settle(at(1000 * attempt + 10));
        fixture.patch_status(json!({ "abort": false }));
    }
    fixture.settle(at(9000));
    assert_eq!(fixture.runs(), ["5-0 Successful", "6-0 Successful", "7-0 Failed", "7-0.1 -"]);
    fixture.patch_spec(json!({ "revisionHistoryLimit": 0 }));
    fixture.settle(at(9100));
    assert_eq!(fixture.runs(), ["6-0 Successful", "7-0 Failed", "7-0.1 -"], "with its ReplicaSet");
}

#[test]
fn a_run_that_is_refused_holds_the_update_and_is_told() {
    let mut fixture = judged_canary();
    fixture.set_image("v2");
    let name = format!("web-{}-2-1", fixture.world().rollout.hash);
    fixture.refuse_run(&kinds::ANALYSIS_RUN, &name, Class::Denied, at(100));
    fixture.settle(at(10));
    assert_eq!((fixture.runs(), &fixture.status()["currentStepIndex"]), (vec![], &json!(1)));
    let held = fixture.condition("Held");
    assert_eq!((&held["status"], &held["reason"]), (&json!("True"), &json!("Refused")));
    assert_eq!(held["message"], format!("AnalysisRun default/{name}: no"));
    fixture.settle(at(100));
    assert_eq!(fixture.runs(), ["2-1 -"], "it is tried again at its time");
    let conditions = fixture.status()["conditions"].to_string();
    assert!(!conditions.contains("Held"), "{conditions}");
}

#[test]
fn another_number_of_replicas_grows_no_revision_that_a_run_has_found_bad() {
    let mut fixture = judged_canary();
    fixture.set_image("v2");
    fixture.settle(at(10));
    assert_eq!(fixture.sizes(), [4, 1]);
    fixture.patch_spec(json!({ "replicas": 10 }));
    fixture.run_turns("2-1", "Failed", "");
    let sizes = |fixture: &Fixture| fixture.sizes()[1];
    while !fixture.reconcile(at(20)).is_empty() {
        assert!(sizes(&fixture) <= 1, "the bad revision grows to {}", sizes(&fixture));
    }
    fixture.settle(at(30));
    assert_eq!((fixture.sizes(), &fixture.status()["abort"]), (vec![10, 0], &json!(true)));
}

#[test]
fn a_version_that_is_overtaken_before_anything_moved_is_no_progress_of_the_next() {
    let mut fixture = canary(json!([{ "analysis": analysis("once") }]));
    fixture.settle(at(0));
    let rows = [
        ("v2", "True ReplicaSetUpdated"),
        ("v3", "True NewReplicaSetCreated"),
        ("v2", "True NewReplicaSetCreated"),
    ];
    for (second, (image, expected)) in (10..).zip(rows) {
        fixture.set_image(image);
        fixture.settle(at(second));
        let known = fixture.condition("Progressing");
        let text = |field: &str| known[field].as_str().unwrap_or_default().to_owned();
        assert_eq!(format!("{} {}", text("status"), text("reason")), expected, "{image}");
        assert_eq!(known["lastUpdateTime"], json!(at(second)), "{image}: the clock starts anew");
        assert_eq!(fixture.reconcile(at(second)), [""; 0], "{image}: settled");
    }
}
