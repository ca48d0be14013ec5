//! Whole rollouts as tables: what happened, what is decided, what the status says.

mod analyses;
mod basic;
mod blue_green;
mod blue_green_runs;
mod blue_green_sizes;
mod claim;
mod cost;
mod deploy;
mod duration;
mod edges;
mod events;
mod experiments;
pub(super) mod fixture;
mod history;
mod metadata;
mod misuse;
mod plugin;
mod refused;
mod restart;
mod routed;
mod routers;
mod rows;
mod runs;
mod subsets;
mod takeover;
mod targets;
mod told;
mod traffic;
mod unread;
mod verify;
mod why;
mod workload;

use jiff::Timestamp;
use serde_json::json;

use fixture::Fixture;
use fixture::told::Told;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

/// The scenario that is told in every way there is.
const FIRST: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/canary_pause_promote.yaml"));

/// Second, what happens (`step 1`: the scenario's first step is taken), what is written, step
/// index, phase, message (`more` for "more replicas need to be updated"), and what the row shows.
const CANARY: &str = "
0      |         | create 1 size 5, revision 1, status | 4 | Progressing | more | full size at once, no steps
1      | pods    | status         | 4 | Healthy     |                 | the pods are there
2      |         |                | 4 | Healthy     |                 | settled
3      | step 1  | create 2 size 1, revision 2, status | 0 | Progressing | more | one canary pod within the surge
4      | pods    | resize 1 to 4  | 0 | Progressing | more            | it is available: one stable pod less
5      | pods    | status         | 1 | Paused      | CanaryPauseStep | step done; the pause begins in the same write
1000   | step 2  |                | 1 | Paused      | CanaryPauseStep | nothing moves in a pause
1804   |         |                | 1 | Paused      | CanaryPauseStep | one second before its end
1805   |         | status         | 2 | Progressing | more            | the pause ends at its instant
1806   |         | resize 2 to 2  | 2 | Progressing | more            | 60 %: one more, within the surge
1807   | pods    | resize 1 to 3  | 2 | Progressing | more            | then one less
1808   | pods    | resize 2 to 3  | 2 | Progressing | more            | and again
1809   | pods    | resize 1 to 2  | 2 | Progressing | more            | and again, down
1810   | pods    | status         | 3 | Paused      | CanaryPauseStep | step done, paused for a person
600000 |         |                | 3 | Paused      | CanaryPauseStep | a week later
600001 | step 3  | status         | 4 | Progressing | more            | promoted: the step is done
600002 |         | resize 2 to 4  | 4 | Progressing | more            | to the end, one by one
600003 | pods    | resize 1 to 1  | 4 | Progressing | more            | down
600004 | pods    | resize 2 to 5  | 4 | Progressing | more            | up
600005 | pods    | resize 1 to 0  | 4 | Progressing | more            | the last old pod goes
600006 | pods    | status         | 4 | Healthy     |                 | promoted and healthy in one write
600007 | step 4  |                | 4 | Healthy     |                 | settled";

const CANARY_EVENTS: &str = "RolloutAddedToInformer RolloutUpdated NewReplicaSetCreated
RolloutNotCompleted ScalingReplicaSet RolloutCompleted
RolloutUpdated NewReplicaSetCreated RolloutNotCompleted ScalingReplicaSet
ScalingReplicaSet RolloutStepCompleted RolloutPaused
RolloutStepCompleted RolloutResumed
ScalingReplicaSet ScalingReplicaSet ScalingReplicaSet ScalingReplicaSet
RolloutStepCompleted RolloutPaused
RolloutStepCompleted
ScalingReplicaSet ScalingReplicaSet ScalingReplicaSet ScalingReplicaSet
RolloutCompleted";

#[test]
fn a_canary_waits_for_time_then_for_a_person() {
    let told = Told::read(FIRST);
    let mut fixture = told.fixture();
    let mut steps = (1..).zip(&told.steps);
    for row in CANARY.trim().lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [second, happens, writes, index, phase, message, what] = cells[..] else {
            panic!("seven cells: {row}");
        };
        match happens {
            "" => {}
            "pods" => fixture.pods_follow(),
            named => {
                let (number, step) = steps.next().expect("the scenario has more steps");
                assert_eq!(named, format!("step {number}"), "{what}");
                fixture.take(step, what);
            }
        }
        let written = fixture.reconcile(at(second.parse().unwrap())).join(", ");
        assert_eq!(written, writes, "{what}");
        let message = if message == "more" { "more replicas need to be updated" } else { message };
        let status = fixture.status();
        assert_eq!(status["currentStepIndex"].to_string(), index, "{what}: index");
        let says = (status["phase"].as_str().unwrap(), status["message"].as_str().unwrap_or(""));
        assert_eq!(says, (phase, message), "{what}: phase");
    }
    assert_eq!(steps.count(), 0, "every step is taken");
    assert_eq!(fixture.projected(), told.end.expect, "the end");
    assert_eq!(fixture.sizes_by_revision(), told.end.sizes, "the end");
    let expected: Vec<&str> = CANARY_EVENTS.split_whitespace().collect();
    assert_eq!(fixture.events(), expected);
}

#[test]
fn an_abort_goes_back_to_stable_and_a_retry_starts_over() {
    let mut fixture =
        Fixture::canary(1, json!([{ "setWeight": 50 }, { "pause": { "duration": 3 } }]));
    fixture.reconcile(at(0));
    fixture.pods_follow();
    fixture.reconcile(at(1));
    fixture.set_image("v2");
    fixture.settle(at(2));
    assert_eq!(fixture.status()["phase"], "Paused");
    fixture.take_events();

    fixture.patch_status(json!({ "abort": true }));
    fixture.settle(at(3));
    let status = fixture.status();
    assert_eq!(status["phase"], "Degraded");
    assert_eq!(status["message"], "RolloutAborted: Rollout aborted update to revision 2");
    assert_eq!(status["currentStepIndex"], 0);
    assert_eq!(fixture.take_events(), ["ScalingReplicaSet", "RolloutAborted"]);
    assert_eq!(fixture.sizes(), [1, 0]);

    fixture.patch_status(json!({ "abort": false }));
    fixture.settle(at(4));
    assert_eq!(
        fixture.take_events(),
        ["ScalingReplicaSet", "RolloutStepCompleted", "RolloutPaused"]
    );
    fixture.settle(at(60));
    assert_eq!(fixture.status()["phase"], "Healthy");
    assert_eq!(
        fixture.take_events(),
        ["RolloutStepCompleted", "RolloutResumed", "ScalingReplicaSet", "RolloutCompleted"]
    );
}

#[test]
fn what_is_asked_for_in_mid_update_is_done() {
    type Ask = fn(&mut Fixture);
    let cases: [(&str, Ask, &str, &[i64]); 6] = [
        ("full promotion", |s| s.patch_status(json!({ "promoteFull": true })), "Healthy", &[0, 5]),
        ("back to the stable image", |s| s.set_image("v1"), "Healthy", &[5, 0]),
        ("another image", |s| s.set_image("v3"), "Paused", &[4, 0, 1]),
        ("halted by hand", |s| s.patch_spec(json!({ "paused": true })), "Paused", &[4, 1]),
        ("more replicas", |s| s.patch_spec(json!({ "replicas": 10 })), "Paused", &[8, 2]),
        ("no replicas", |s| s.patch_spec(json!({ "replicas": 0 })), "Paused", &[0, 0]),
    ];
    for (what, ask, phase, sizes) in cases {
        let mut fixture = Fixture::canary(5, json!([{ "setWeight": 20 }, { "pause": {} }]));
        fixture.settle(at(0));
        fixture.set_image("v2");
        fixture.settle(at(10));
        assert_eq!(fixture.sizes(), [4, 1], "{what}: the canary is out");
        ask(&mut fixture);
        fixture.settle(at(20));
        assert_eq!(fixture.status()["phase"], phase, "{what}: {}", fixture.status());
        assert_eq!(fixture.sizes(), sizes, "{what}");
        assert_eq!(fixture.reconcile(at(21)), [""; 0], "{what}: settled");
    }
}

#[test]
fn pods_that_never_come_degrade_the_rollout_and_hold_the_step() {
    let mut fixture = Fixture::canary(4, json!([{ "setWeight": 25 }, { "pause": {} }]));
    fixture.settle(at(0));
    fixture.set_image("broken");
    fixture.settle_without_new_pods(at(10));
    assert_eq!(fixture.status()["phase"], "Progressing");
    fixture.settle_without_new_pods(at(10 + 599));
    assert_eq!(fixture.status()["phase"], "Progressing");
    fixture.settle_without_new_pods(at(10 + 600));
    assert_eq!(fixture.status()["phase"], "Degraded");
    let message = fixture.status()["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("ProgressDeadlineExceeded: ReplicaSet \"web-"), "{message}");
    assert_eq!(fixture.status()["currentStepIndex"], 0);
    fixture.settle(at(700));
    assert_eq!(fixture.status()["phase"], "Paused", "it goes on when the pods come after all");
}

#[test]
fn a_refused_create_is_told_in_the_servers_words_and_tried_again() {
    let mut fixture = Fixture::canary(1, json!([]));
    fixture.refuse("quota exceeded", at(5));
    assert_eq!(fixture.reconcile(at(1)), ["status"]);
    let condition = fixture.condition("Progressing");
    assert_eq!(condition["reason"], "ReplicaSetCreateError");
    let text = condition["message"].as_str().unwrap();
    assert!(text.ends_with(": quota exceeded"), "{text}");
    assert_ne!(fixture.status()["phase"], "Healthy");
    assert_eq!(fixture.reconcile(at(2)), [""; 0], "not before its time");
    assert_eq!(fixture.reconcile(at(5)), ["create 1 size 1", "revision 1", "status"]);
}

#[test]
fn an_invalid_spec_changes_nothing_but_the_status() {
    let mut fixture = Fixture::canary(2, json!([{ "setWeight": 50 }]));
    fixture.settle(at(0));
    fixture.patch_spec(json!({ "minReadySeconds": "soon" }));
    assert_eq!(fixture.reconcile(at(1)), ["status"]);
    let status = fixture.status();
    assert_eq!(status["phase"], "Degraded");
    let message = status["message"].as_str().unwrap();
    assert!(message.contains("The Rollout \"web\" is invalid: spec.minReadySeconds"), "{message}");
    assert_eq!(fixture.sizes(), [2], "the old version keeps serving");
    assert_eq!(fixture.reconcile(at(2)), [""; 0]);
    fixture.patch_spec(json!({ "minReadySeconds": 0 }));
    fixture.settle(at(3));
    assert_eq!(fixture.status()["phase"], "Healthy", "and it heals by itself");
}

#[test]
fn the_same_world_and_now_give_the_same_decision() {
    let mut fixture = Fixture::canary(5, json!([{ "setWeight": 20 }, { "pause": {} }]));
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.pods_follow();
    let world = fixture.world();
    let text = serde_json::to_string(&world).unwrap();
    let copy = serde_json::from_str(&text).unwrap();
    let decide = |world| serde_json::to_value(super::decide(world, at(9))).unwrap();
    assert_eq!(decide(&world), decide(&copy), "a saved World decides as the live one did");
}

#[test]
fn only_so_many_old_revisions_are_kept() {
    let mut fixture = Fixture::canary(1, json!([]));
    fixture.patch_spec(json!({ "revisionHistoryLimit": 2 }));
    for number in 1..=5 {
        fixture.set_image(&format!("v{number}"));
        fixture.settle(at(number * 100));
    }
    assert_eq!(fixture.sizes(), [0, 0, 1]);
    fixture.patch_spec(json!({ "revisionHistoryLimit": 0 }));
    fixture.settle(at(600));
    assert_eq!(fixture.sizes(), [1]);
    assert_eq!(fixture.reconcile(at(601)), [""; 0]);
}

#[test]
fn without_surge_room_is_made_before_the_new_revision_is_created() {
    let mut fixture = Fixture::canary(4, json!([{ "setWeight": 25 }, { "pause": {} }]));
    let limits = json!({ "maxSurge": 0, "maxUnavailable": 1 });
    fixture.patch_spec(json!({ "strategy": { "canary": limits } }));
    fixture.settle(at(0));
    fixture.set_image("v2");
    let writes = fixture.reconcile(at(10));
    assert_eq!(writes, ["resize 1 to 3", "create 2 size 1", "revision 2", "status"]);
}

#[test]
fn new_pods_keep_away_from_stable_ones_and_a_revert_finds_its_replica_set() {
    for kind in ["preferred", "required"] {
        let mut fixture = Fixture::canary(2, json!([{ "setWeight": 50 }, { "pause": {} }]));
        let how = if kind == "preferred" { json!({ "weight": 7 }) } else { json!({}) };
        let field = format!("{kind}DuringSchedulingIgnoredDuringExecution");
        let wanted =
            json!({ "strategy": { "canary": { "antiAffinity": { field.as_str(): how } } } });
        fixture.patch_spec(wanted);
        fixture.settle(at(0));
        assert_eq!(
            fixture.affinity(0),
            json!(null),
            "{kind}: the first has nothing to keep away from"
        );
        fixture.set_image("v2");
        fixture.settle(at(10));
        let terms = &fixture.affinity(1)["podAntiAffinity"][&field];
        let term = if kind == "preferred" { &terms[0]["podAffinityTerm"] } else { &terms[0] };
        let expression = &term["labelSelector"]["matchExpressions"][0];
        assert_eq!(expression["values"][0], fixture.status()["stableRS"], "{kind}");
        fixture.promote();
        fixture.settle(at(20));
        assert_eq!(fixture.sizes(), [0, 2], "{kind}");
        fixture.set_image("v3");
        fixture.settle(at(30));
        fixture.set_image("v2");
        fixture.settle(at(40));
        assert_eq!(fixture.sizes(), [0, 2, 0], "{kind}: the term is no difference");
        assert_eq!(fixture.affinity(1), json!(null), "{kind}: and goes with the next change");
    }
}

#[test]
fn of_an_abort_and_a_full_promotion_the_later_one_counts() {
    let update = || {
        let mut fixture = Fixture::canary(5, json!([{ "setWeight": 20 }, { "pause": {} }]));
        fixture.settle(at(0));
        fixture.set_image("v2");
        fixture.settle(at(10));
        fixture
    };
    let mut fixture = update();
    fixture.patch_status(json!({ "promoteFull": true }));
    fixture.reconcile(at(11));
    fixture.patch_status(json!({ "abort": true }));
    fixture.settle(at(12));
    assert_eq!(
        (fixture.status()["phase"].as_str(), fixture.sizes()),
        (Some("Degraded"), vec![5, 0])
    );

    let mut fixture = update();
    fixture.patch_status(json!({ "abort": true }));
    fixture.settle(at(11));
    fixture.patch_status(json!({ "promoteFull": true }));
    fixture.settle(at(12));
    assert_eq!(
        (fixture.status()["phase"].as_str(), fixture.sizes()),
        (Some("Healthy"), vec![0, 5])
    );
}

#[test]
fn a_new_number_of_replicas_before_the_first_status_does_not_strand_an_update() {
    for replicas in [0, 3, 8] {
        let mut fixture = Fixture::canary(5, json!([{ "setWeight": 20 }, { "setWeight": 60 }]));
        fixture.settle(at(0));
        let stored = fixture.status();
        fixture.set_image("v2");
        fixture.reconcile(at(10));
        // The ReplicaSet was created, but nobody has heard of the status; then an autoscaler acts.
        let hashes = ["currentPodHash", "currentStepHash", "currentStepIndex", "phase"];
        for field in hashes {
            fixture.patch_status(json!({ field: stored[field] }));
        }
        fixture.patch_spec(json!({ "replicas": replicas }));
        fixture.settle(at(20));
        assert_eq!(fixture.status()["phase"], "Healthy", "{replicas} replicas");
        assert_eq!(fixture.sizes(), [0, replicas], "{replicas} replicas");
    }
}

#[test]
fn a_stable_revision_that_follows_a_new_number_of_replicas_keeps_to_the_surge() {
    let mut fixture = Fixture::canary(5, json!([{ "setWeight": 20 }, { "pause": {} }]));
    let limits = json!({ "maxSurge": 0, "maxUnavailable": 1 });
    fixture.patch_spec(json!({ "strategy": { "canary": limits } }));
    fixture.settle(at(0));
    let stored = fixture.status();
    fixture.set_image("v2");
    fixture.reconcile(at(10));
    assert_eq!(fixture.sizes(), [4, 1]);
    // The status of the update was never stored; then an autoscaler acts.
    fixture.patch_status(json!({ "currentPodHash": stored["currentPodHash"] }));
    fixture.patch_spec(json!({ "replicas": 6 }));
    fixture.reconcile(at(20));
    assert_eq!(fixture.sizes(), [5, 1], "six in all, not seven");
    fixture.settle(at(30));
    assert_eq!(fixture.sizes(), [5, 1], "20 % of six is one");
}

#[test]
fn an_update_whose_stable_replica_set_is_gone_still_keeps_to_its_steps() {
    let mut fixture = Fixture::canary(5, json!([{ "setWeight": 20 }, { "pause": {} }]));
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(10));
    fixture.lose_set(0);
    fixture.settle(at(20));
    assert_eq!(fixture.sizes(), [5], "there is nobody else to serve");
    assert_eq!(fixture.status()["phase"], "Paused");
    fixture.promote();
    fixture.settle(at(30));
    assert_eq!(fixture.status()["phase"], "Healthy");
}
