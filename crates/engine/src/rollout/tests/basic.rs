//! Canaries without a router: what is written next in the middle of an update, and how deeds end.

use serde_json::{Value, json};

use super::at;
use super::fixture::Fixture;
use super::rows::tell;

/// 20 % and a pause for a person.
fn steps() -> Value {
    json!([{ "setWeight": 20 }, { "pause": {} }])
}

/// Rows of: what | replicas | strategy | size/available of the ReplicaSets, oldest first | status |
/// what is written, and the step if it changes. The last ReplicaSet is the new one, the one before
/// it the stable one, those before are older.
fn table(rows: &str) {
    for row in rows.trim().lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [what, replicas, strategy, pods, status, expected] = cells[..] else {
            panic!("six cells: {row}");
        };
        let parsed = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
        let pods: Vec<(i64, i64)> = pods.split(' ').map(pair).collect();
        let mut fixture = Fixture::canary(replicas.parse().unwrap(), json!([]));
        for number in 1..pods.len() {
            fixture.set_image(&format!("v{number}"));
            fixture.settle(at(0));
        }
        fixture.patch_spec(json!({ "strategy": { "canary": parsed(strategy) } }));
        fixture.settle(at(1));
        fixture.set_image("new");
        fixture.reconcile(at(2));
        for (set, (size, available)) in pods.into_iter().enumerate() {
            fixture.size(set, size, available);
        }
        fixture.patch_status(parsed(status));
        let before = fixture.status()["currentStepIndex"].clone();
        let mut written = fixture.reconcile(at(3));
        written.retain(|write| write != "status");
        let (after, stable) =
            (fixture.status()["currentStepIndex"].clone(), fixture.status()["stableRS"].clone());
        if before != after {
            written.push(format!("step {after}"));
        }
        if stable == fixture.status()["currentPodHash"] {
            written.push("promoted".to_owned());
        }
        assert_eq!(written.join(", "), expected, "{what}");
    }
}

fn pair(text: &str) -> (i64, i64) {
    let (size, available) = text.split_once('/').unwrap();
    (size.parse().unwrap(), available.parse().unwrap())
}

#[test]
fn a_weight_is_reached_by_pods_and_older_revisions_go_first() {
    table(
        r#"
20: the new one first, within the surge | 10 | {"steps":[{"setWeight":10}]} | 10/10 0/0 | {} | resize 2 to 1
20: while it is not available stable stays | 10 | {"steps":[{"setWeight":10}]} | 10/10 1/0 | {} |
20: it is: one stable pod less | 10 | {"steps":[{"setWeight":10}]} | 10/10 1/1 | {} | resize 1 to 9
20: both are where they should be | 10 | {"steps":[{"setWeight":10},{"pause":{}}]} | 9/9 1/1 | {} | step 1
22: a third revision still has pods | 10 | {"steps":[{"setWeight":10},{"pause":{}}]} | 1/1 9/8 1/1 | {} |
23: older ones give up what the others can spare, and no more | 10 | {"maxSurge":3,"steps":[{"setWeight":10},{"pause":{}}]} | 3/3 9/9 1/0 | {} | resize 1 to 1
24: what is not available goes first, though nothing can be spared | 10 | {"steps":[{"setWeight":10},{"pause":{}}]} | 2/1 8/8 1/1 | {} | resize 1 to 1
24: not while its last resize is not seen | 10 | {"maxSurge":3,"steps":[{"setWeight":10},{"pause":{}}]} | 1/3 9/9 1/1 | {} |
45: a smaller weight keeps the canary until stable is there | 10 | {"steps":[{"setWeight":50},{"setWeight":10}]} | 5/5 5/5 | {"currentStepIndex":1} | resize 1 to 6
45: and takes it with the pods that came | 10 | {"steps":[{"setWeight":50},{"setWeight":10}]} | 6/6 5/5 | {"currentStepIndex":1} | resize 2 to 4
45: none of it while they start | 10 | {"steps":[{"setWeight":50},{"setWeight":10},{"pause":{}}]} | 6/5 5/5 | {"currentStepIndex":2} |
45: nor is it reached before the last pod beyond it has gone | 10 | {"steps":[{"setWeight":50},{"setWeight":10},{"pause":{}}]} | 9/9 1/2 | {"currentStepIndex":1} |
47: nine of ten are enough at 90 % | 10 | {"replicaProgressThreshold":{"type":"Percent","value":90},"steps":[{"setWeight":50}]} | 0/0 10/9 | {"currentStepIndex":1} | promoted
47: eight are not | 10 | {"replicaProgressThreshold":{"type":"Percent","value":90},"steps":[{"setWeight":50}]} | 0/0 10/8 | {"currentStepIndex":1} |
47: seven are not where eight pods are asked for | 10 | {"replicaProgressThreshold":{"type":"Pods","value":8},"steps":[{"setWeight":50}]} | 0/0 10/7 | {"currentStepIndex":1} |
47: eight are | 10 | {"replicaProgressThreshold":{"type":"Pods","value":8},"steps":[{"setWeight":50}]} | 0/0 10/8 | {"currentStepIndex":1} | promoted
47: less than nothing means all | 10 | {"replicaProgressThreshold":{"type":"Percent","value":-1},"steps":[{"setWeight":50}]} | 0/0 10/9 | {"currentStepIndex":1} |
47: a step asks for the same | 10 | {"replicaProgressThreshold":{"type":"Percent","value":80},"steps":[{"setWeight":50},{"pause":{}}]} | 5/5 5/4 | {} | step 1
"#,
    );
}

#[test]
fn a_new_template_is_one_more_revision_from_its_first_step() {
    let mut fixture = Fixture::canary(5, steps());
    fixture.settle(at(0));
    for (tag, revision) in [("v2", "2"), ("v3", "3")] {
        fixture.take_events();
        fixture.set_image(tag);
        fixture.reconcile(at(10));
        assert_eq!(fixture.status()["currentStepIndex"], 0, "{tag}");
        let at = fixture.sizes().len() - 1;
        assert_eq!(fixture.note(at, "rollout.argoproj.io/revision"), revision);
        let noted = &fixture.rollout()["metadata"]["annotations"]["rollout.argoproj.io/revision"];
        assert_eq!(noted, revision);
        assert_eq!(fixture.take_events()[..2], ["RolloutUpdated", "NewReplicaSetCreated"], "{tag}");
    }
}

/// Reasons of the conditions, with their status, by type.
fn conditions(fixture: &Fixture) -> Vec<String> {
    ["Paused", "Progressing"]
        .map(|r#type| {
            let known = fixture.condition(r#type);
            let text = |field: &str| known[field].as_str().unwrap().to_owned();
            format!("{} {}", text("status"), text("reason"))
        })
        .to_vec()
}

#[test]
fn a_pause_is_told_in_its_conditions_and_a_resume_too() {
    let mut fixture = Fixture::canary(5, steps());
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(10));
    assert_eq!(fixture.status()["controllerPause"], true);
    assert_eq!(conditions(&fixture), ["True RolloutPaused", "Unknown RolloutPaused"]);
    assert_eq!(fixture.reconcile(at(9_999)), [""; 0], "nothing changes meanwhile");
    fixture.take_events();
    fixture.promote();
    fixture.reconcile(at(10_000));
    let status = fixture.status();
    assert_eq!(status["currentStepIndex"], 2);
    assert_eq!(
        (&status["pauseConditions"], &status["controllerPause"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(fixture.condition("Paused")["status"], "False");
    assert_eq!(fixture.take_events(), ["RolloutStepCompleted"], "a person's resume is no event");
}

#[test]
fn a_pause_wakes_at_its_end_however_long_it_is() {
    for seconds in [10, 900, 86_400] {
        let mut fixture = Fixture::canary(
            5,
            json!([{ "setWeight": 20 }, { "pause": { "duration": seconds } }, { "pause": {} }]),
        );
        fixture.settle(at(0));
        fixture.set_image("v2");
        fixture.settle(at(100));
        assert_eq!(fixture.decide().wake_at, Some(at(100 + seconds)), "{seconds}");
        fixture.take_events();
        fixture.settle(at(100 + seconds));
        assert_eq!(fixture.status()["currentStepIndex"], 2, "{seconds}");
        assert_eq!(
            fixture.take_events(),
            ["RolloutStepCompleted", "RolloutResumed", "RolloutPaused"],
            "{seconds}"
        );
    }
}

/// As `tell` reads them; steps 20 %, a minute, 60 %, a person.
const HALTED: &str = r"
0    | image v1 | 5     | 4 | Healthy                 | deployed
10   | image v2 | 4 1   | 1 | Paused CanaryPauseStep  | a minute
20   | pause    | 4 1   | 1 | Paused manually paused  | 29: halted in it
200  |          | 4 1   | 1 | Paused manually paused  | 29: its minute passes without effect
210  | resume   | 2 3   | 3 | Paused CanaryPauseStep  | 29: it has passed
220  | pause    | 2 3   | 3 | Paused manually paused  | 50: halted
230  | resume   | 2 3   | 3 | Paused CanaryPauseStep  | 50: and not";

#[test]
fn a_halt_by_hand_holds_even_what_time_would_end() {
    let minute = json!({ "pause": { "duration": "1m" } });
    let steps = json!([{ "setWeight": 20 }, minute, { "setWeight": 60 }, { "pause": {} }]);
    tell(&mut Fixture::canary(5, steps), HALTED);
}

#[test]
fn a_halt_between_two_sizes_leaves_them_as_they_are() {
    let mut fixture = Fixture::canary(5, json!([{ "setWeight": 60 }]));
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle_without_new_pods(at(10));
    assert_eq!(fixture.sizes(), [5, 1], "the surge, and no pod of it yet");
    fixture.patch_spec(json!({ "paused": true }));
    fixture.settle(at(20));
    assert_eq!(fixture.sizes(), [5, 1], "its pod comes, and nothing follows");
    fixture.patch_spec(json!({ "paused": false }));
    fixture.settle(at(30));
    assert_eq!(fixture.sizes(), [0, 5]);
}

#[test]
fn halting_and_going_on_cost_one_status_each() {
    let mut fixture = Fixture::canary(5, steps());
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(10));
    for round in 0..3 {
        for paused in [true, false] {
            fixture.patch_spec(json!({ "paused": paused }));
            assert_eq!(fixture.reconcile(at(20)), ["status"], "round {round}, {paused}");
            assert_eq!(fixture.reconcile(at(20)), [""; 0], "round {round}, {paused}");
        }
    }
}

#[test]
fn a_halted_update_that_is_scaled_and_overtaken_is_paused_not_late() {
    let mut fixture = Fixture::canary(5, steps());
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(10));
    let sizes = fixture.sizes();
    fixture.patch_spec(json!({ "paused": true, "replicas": 4 }));
    fixture.set_image("v3");
    fixture.settle(at(20));
    assert_eq!(fixture.status()["phase"], "Paused");
    fixture.settle(at(9_999));
    assert_eq!(fixture.status()["phase"], "Paused", "nobody waits for pods");
    assert_eq!(fixture.sizes()[..sizes.len()], sizes, "and nothing moves");
    fixture.patch_spec(json!({ "paused": false }));
    fixture.settle(at(10_000));
    assert_eq!(fixture.status()["currentPodHash"], fixture.hash(2), "then it goes on");
}

#[test]
fn a_new_number_of_replicas_resizes_and_does_nothing_else() {
    let mut fixture = Fixture::canary(5, steps());
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(10));
    fixture.take_events();
    fixture.patch_spec(json!({ "replicas": 10 }));
    assert_eq!(fixture.reconcile(at(20)), ["resize 1 to 8", "resize 2 to 2", "status"]);
    assert_eq!(fixture.status()["currentStepIndex"], 1);
    assert_eq!(fixture.take_events(), ["ScalingReplicaSet", "ScalingReplicaSet"]);
}

/// As `tell` reads them; steps 20 %, a person.
const SCALED_AND_CHANGED: &str = r#"
0    | image v1            | 5      | 2 | Healthy                | deployed
10   | image v2, scale 10  | 8 2    | 1 | Paused CanaryPauseStep | 32: more pods of another image in one edit
20   | promote             | 0 10   | 2 | Healthy                | 32: ends with all of them
30   | image v3, scale 5   | 0 4 1  | 1 | Paused CanaryPauseStep | 32: fewer pods of another image
40   | promote             | 0 0 5  | 2 | Healthy                | 32: ends with all of them
50   | image v4, scale 0   | 0 0 0 0 | 1 | Paused CanaryPauseStep | none at all: the steps are taken all the same
60   | scale 5             | 0 0 4 1 | 1 | Paused CanaryPauseStep | from none to some: by the weight of the step
70   | promote             | 0 0 0 5 | 2 | Healthy                | to the end"#;

#[test]
fn another_number_of_replicas_and_another_image_in_one_edit_both_come_true() {
    tell(&mut Fixture::canary(5, steps()), SCALED_AND_CHANGED);
}

#[test]
fn an_older_revision_that_notes_another_number_is_no_reason_to_resize() {
    let mut fixture = Fixture::canary(5, steps());
    fixture.settle(at(0));
    for tag in ["v2", "v3"] {
        fixture.set_image(tag);
        fixture.settle(at(10));
    }
    fixture.set(1)["spec"]["replicas"] = json!(1);
    fixture.set(1)["metadata"]["annotations"]["rollout.argoproj.io/desired-replicas"] = json!("99");
    fixture.pods_follow();
    let written = fixture.rest(at(20));
    assert_eq!(written, ["resize 2 to 0"], "it goes like any old one");
}

/// As `tell` reads them; steps 20 %, a person.
const EDITED: &str = r#"
0    | image v1   | 5    | 2 | Healthy                 | deployed
10   | canary {"steps":[{"setWeight":40},{"pause":{}},{"pause":{}}]} | 5 | 3 | Healthy | 34: other steps of a promoted rollout
20   | image v2   | 3 2  | 1 | Paused CanaryPauseStep  | they are taken by the next update
30   | promote    | 3 2  | 2 | Paused CanaryPauseStep  | one further
40   | canary {"steps":[{"setWeight":60},{"pause":{}}]} | 2 3 | 1 | Paused CanaryPauseStep | 34: other steps in mid-update: from the first
50   | canary {"steps":[]} | 0 5 | null | Healthy      | none are left: to the end"#;

#[test]
fn edited_steps_are_taken_from_the_first_with_the_same_pods() {
    let mut fixture = Fixture::canary(5, steps());
    tell(&mut fixture, EDITED);
    let skipped =
        fixture.take_messages().into_iter().filter(|text| text.starts_with("Rollback to"));
    assert_eq!(skipped.collect::<Vec<_>>(), ["Rollback to stable ReplicaSets"], "34");
}

#[test]
fn a_way_back_to_stable_is_a_new_revision_of_the_old_replica_set() {
    let mut fixture = Fixture::canary(5, steps());
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(10));
    fixture.take_messages();
    fixture.take_events();
    fixture.set_image("v1");
    fixture.settle(at(20));
    assert_eq!(fixture.sizes(), [5, 0]);
    assert_eq!(fixture.note(0, "rollout.argoproj.io/revision"), "3");
    assert_eq!(fixture.note(0, "rollout.argoproj.io/revision-history"), "1");
    let status = fixture.status();
    assert_eq!((&status["currentStepIndex"], &status["phase"]), (&json!(2), &json!("Healthy")));
    assert_eq!(status["duration"]["completionStatus"], "FastRolledBack");
    let events = ["RolloutUpdated", "SkipSteps", "RolloutResumed", "ScalingReplicaSet"];
    assert_eq!(fixture.take_events()[..4], events);
    assert_eq!(fixture.take_messages()[1], "Rollback to stable ReplicaSets");
}

/// As `tell` reads them; steps 20 %, a person; a window of one revision.
const WINDOW: &str = r#"
0    | image v1   | 5          | 2 | Healthy                | deployed
10   | image v2   | 4 1        | 1 | Paused CanaryPauseStep | the next
20   | promote    | 0 5        | 2 | Healthy                | promoted
30   | image v3   | 0 4 1      | 1 | Paused CanaryPauseStep | the third
40   | promote    | 0 0 5      | 2 | Healthy                | promoted
50   | image v2   | 0 5 0      | 2 | Healthy                | 36: one back is within the window: no step, though it had no pods
60   | image v3   | 0 4 1      | 1 | Paused CanaryPauseStep | forward again is an update
70   | promote    | 0 0 5      | 2 | Healthy                | promoted
80   | image v1   | 1 0 4      | 1 | Paused CanaryPauseStep | 37: two back is not: every step
90   | promote    | 5 0 0      | 2 | Healthy                | to the end"#;

#[test]
fn a_way_back_skips_the_steps_within_the_window_and_takes_them_beyond_it() {
    let mut fixture = Fixture::canary(5, steps());
    fixture.patch_spec(json!({ "rollbackWindow": { "revisions": 1 } }));
    tell(&mut fixture, WINDOW);
    assert_eq!(fixture.status()["duration"]["completionStatus"], "RolledBack", "37");
}

#[test]
fn a_way_back_within_the_window_is_at_the_end_of_its_steps_from_the_first_status_on() {
    let mut fixture = Fixture::canary(5, steps());
    fixture.patch_spec(json!({ "rollbackWindow": { "revisions": 1 } }));
    for (second, tag) in [(0, "v1"), (10, "v2")] {
        fixture.set_image(tag);
        fixture.settle(at(second));
        fixture.patch_status(json!({ "promoteFull": true }));
        fixture.settle(at(second + 5));
    }
    fixture.take_events();
    fixture.set_image("v1");
    fixture.reconcile(at(20));
    assert_eq!(fixture.status()["currentStepIndex"], 2, "though it has no pods yet");
    assert!(
        !fixture.take_events().contains(&"SkipSteps".to_owned()),
        "told of one with pods alone"
    );
}

/// As `tell` reads them; steps 20 %, a person; three replicas.
const OVERTAKEN: &str = r"
0    | image v1   | 3      | 2 | Healthy                | deployed
10   | image v2   | 3 1    | 1 | Paused CanaryPauseStep | one within the surge comes closest
20   | image v3   | 3 0 1  | 1 | Paused CanaryPauseStep | 38: it makes room for the third
30   | abort      | 3 0 0  | 0 | Degraded RolloutAborted: Rollout aborted update to revision 3 | 39: back
40   | image v4   | 3 0 0 1 | 1 | Paused CanaryPauseStep | 42: another image is another attempt
50   | full       | 0 0 0 3 | 2 | Healthy               | to the end
60   | abort      | 0 0 0 3 | 2 | Healthy               | 40: nothing is left to be aborted";

#[test]
fn an_overtaken_or_aborted_version_makes_room_for_the_next() {
    let mut fixture = Fixture::canary(3, steps());
    tell(&mut fixture, OVERTAKEN);
    let status = fixture.status();
    assert_eq!((&status["abort"], &status["abortedAt"]), (&Value::Null, &Value::Null), "40");
}

#[test]
fn an_abort_brings_stable_up_before_the_canary_goes() {
    let mut fixture = Fixture::canary(4, json!([{ "setWeight": 100 }, { "pause": {} }]));
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(10));
    assert_eq!(fixture.sizes(), [0, 4]);
    fixture.patch_status(json!({ "abort": true }));
    let rows = ["resize 1 to 1", "resize 2 to 3", "resize 1 to 2", "resize 2 to 2"];
    for expected in rows {
        assert_eq!(fixture.reconcile(at(20))[0], expected);
        fixture.pods_follow();
    }
    fixture.settle(at(21));
    assert_eq!(fixture.sizes(), [4, 0]);
    assert_eq!(fixture.status()["currentStepIndex"], 0);
}

#[test]
fn fewer_replicas_than_the_canary_has_do_not_hold_up_the_end() {
    let mut fixture = Fixture::canary(10, json!([{ "setWeight": 50 }]));
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.reconcile(at(10));
    fixture.size(0, 4, 4);
    fixture.size(1, 7, 7);
    fixture.patch_status(json!({ "currentStepIndex": 1 }));
    fixture.patch_spec(json!({ "replicas": 5 }));
    fixture.settle(at(20));
    assert_eq!(
        (fixture.sizes(), fixture.status()["phase"].as_str()),
        (vec![0, 5], Some("Healthy"))
    );
}

/// As `tell` reads them; steps 25 %, a person; a deadline of ten minutes.
const RETRIED: &str = r#"
0    | image v1       | 4    | 2 | Healthy                | deployed
10   | image v2       | 3 1  | 1 | Paused CanaryPauseStep | the next
20   | abort          | 4 0  | 0 | Degraded RolloutAborted: Rollout aborted update to revision 2 | given up
5000 | retry, stuck   | 4 1  | 0 | Progressing more replicas need to be updated | 41: from the first step; its deadline begins now
5599 | stuck          | 4 1  | 0 | Progressing more replicas need to be updated | 41: not before
5600 | stuck          | 4 1  | 0 | Degraded ProgressDeadlineExceeded: ReplicaSet "web-HASH" has timed out progressing. | 41: but then
5700 |                | 3 1  | 1 | Paused CanaryPauseStep | 48: pods after all: the pause is told, not the deadline
9999 |                | 3 1  | 1 | Paused CanaryPauseStep | 49: however long the pause
10000 | promote, stuck | 3 2 | 2 | Progressing more replicas need to be updated | 48: on
10601 | stuck         | 3 2  | 2 | Degraded ProgressDeadlineExceeded: ReplicaSet "web-HASH" has timed out progressing. | 48: degraded once more
10700 |               | 0 4  | 2 | Healthy                | 48: and well in the end"#;

#[test]
fn a_deadline_is_of_one_attempt_and_no_pause_runs_into_it() {
    let mut fixture = Fixture::canary(4, json!([{ "setWeight": 25 }, { "pause": {} }]));
    let hash = {
        let mut other = fixture.clone();
        other.set_image("v2");
        other.world().rollout.hash.to_string()
    };
    tell(&mut fixture, &RETRIED.replace("HASH", &hash));
}

/// As `tell` reads them; no steps; `stuck` are the pods of the newest revision.
const BAD_IMAGES: &str = r#"
0    | image bad1, stuck | 4     | null | Progressing updated replicas are still becoming available | the first image is broken
700  | stuck             | 4     | null | Degraded ProgressDeadlineExceeded: ReplicaSet "web-HASH" has timed out progressing. | and told so
800  | image good        | 0 4   | null | Healthy | 43: broken pods do not block the good ones
900  | image bad2, stuck | 0 4 1 | null | Progressing more replicas need to be updated | 44: a broken one gets its first pods
1600 | stuck             | 0 4 1 | null | Degraded ProgressDeadlineExceeded: ReplicaSet "web-HASH2" has timed out progressing. | 44: and no more
1700 | image bad3, stuck | 0 4 0 1 | null | Progressing more replicas need to be updated | 44: the next broken one takes its place
1800 | image good2       | 0 0 0 0 4 | null | Healthy | 44: a good one ends it"#;

#[test]
fn a_bad_image_neither_spreads_nor_blocks_a_good_one() {
    let mut fixture = Fixture::canary(4, json!([]));
    let hash = |tag: &str| {
        let mut other = fixture.clone();
        other.set_image(tag);
        other.world().rollout.hash.to_string()
    };
    let rows = BAD_IMAGES.replace("HASH2", &hash("bad2")).replace("HASH", &hash("bad1"));
    tell(&mut fixture, &rows);
}

#[test]
fn completed_is_about_the_revision_and_healthy_about_its_pods() {
    let mut fixture = Fixture::canary(3, json!([]));
    fixture.settle(at(0));
    let says = |fixture: &Fixture| {
        ["Completed", "Healthy", "Available"]
            .map(|r#type| fixture.condition(r#type)["status"].clone())
    };
    assert_eq!(says(&fixture), ["True", "True", "True"]);
    fixture.set_image("v2");
    fixture.reconcile(at(1));
    assert_eq!(says(&fixture), ["False", "False", "True"], "in mid-update");
    fixture.settle(at(2));
    assert_eq!(says(&fixture), ["True", "True", "True"]);
    fixture.lose_pod(1);
    fixture.reconcile(at(3));
    assert_eq!(says(&fixture), ["True", "False", "False"], "promoted, and short of a pod");
    let status = fixture.status();
    let phase = (status["phase"].as_str().unwrap(), status["message"].as_str().unwrap());
    assert_eq!(phase, ("Progressing", "updated replicas are still becoming available"));
}
