//! Gates that a person, a plugin or a way back opens: who passes a closed one is named, and so is who
//! closes one again.

use gradus_controller::cluster::{Lane, ResourcePart, Write as Sent};
use gradus_engine::decision::{Expect, ObjectRef, Op};
use gradus_engine::kinds;
use gradus_engine::uid::Uid;

use super::*;

#[test]
fn a_lost_command_is_named() {
    let status = |more: Value| {
        let mut status = json!({"currentPodHash": "b", "stableRS": "a", "currentStepIndex": 1});
        status.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        status
    };
    let cases = [
        ("an abort stays", json!({"abort": true}), json!({"abort": true, "message": "x"}), vec![]),
        ("an abort is lost", json!({"abort": true}), json!({}), vec!["commands"]),
        (
            "an abort of what is over",
            json!({"abort": true, "stableRS": "b"}),
            json!({"stableRS": "b"}),
            vec![],
        ),
        ("a full promote is lost", json!({"promoteFull": true}), json!({}), vec!["commands"]),
    ];
    for (what, old, new, expected) in cases {
        let before = object(ROLLOUT, "web", canary(5, json!([{}, {}])), status(old));
        let after = object(ROLLOUT, "web", canary(5, json!([{}, {}])), status(new));
        let mut checker = Checker::new(ROLLOUT, &Kinds::default());
        assert_eq!(found(&mut checker, Some(&before), &after), expected, "{what}");
    }
}

fn began(reason: &str) -> Value {
    json!([{"reason": reason, "startTime": at(999).to_string()}])
}

/// A status at step 1 in mid-update, with more.
fn in_update(more: &Value) -> Value {
    let mut status = json!({"currentPodHash": "b", "stableRS": "a", "currentStepIndex": 1});
    status.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    status
}

/// What is found where our write of this status follows on that one, by this spec.
fn judged(spec: &Value, old: &Value, new: &Value) -> Vec<&'static str> {
    let before = object(ROLLOUT, "web", spec.clone(), in_update(old));
    let after = object(ROLLOUT, "web", spec.clone(), in_update(new));
    found(&mut Checker::new(ROLLOUT, &Kinds::default()), Some(&before), &after)
}

/// The same where a person has ended the pause of the step before.
fn judged_after_promote(spec: &Value, old: &Value, new: &Value) -> Vec<&'static str> {
    let [paused, before, after] =
        [&paused(), old, new].map(|status| object(ROLLOUT, "web", spec.clone(), in_update(status)));
    let mut checker = Checker::new(ROLLOUT, &Kinds::default());
    checker.judge(&write("person", Some(&paused), &before), at(999));
    found(&mut checker, Some(&before), &after)
}

fn paused() -> Value {
    json!({"controllerPause": true, "pauseConditions": began("CanaryPauseStep")})
}

#[test]
fn a_pause_that_nobody_has_ended_is_passed_by_nobody() {
    let resumed = json!({"controllerPause": true});
    let (next, none) = (json!({"currentStepIndex": 2}), json!({}));
    let over = json!({"controllerPause": true, "pauseConditions":
        [{"reason": "CanaryPauseStep", "startTime": at(900).to_string()}]});
    let in_full = json!({"controllerPause": true, "promoteFull": true,
        "pauseConditions": began("CanaryPauseStep")});
    let next_update = json!({"currentPodHash": "c", "currentStepIndex": 0});
    let kept = |paused: &Value, more: Value| {
        let mut status = paused.clone();
        status.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        status
    };
    let cases = [
        // what, old, new, expected
        ("it stays", &paused(), &paused(), vec![]),
        ("it is passed", &paused(), &next, vec!["I-7"]),
        ("it ends by itself", &paused(), &resumed, vec!["I-7"]),
        ("it ends without a trace", &paused(), &none, vec!["I-7"]),
        ("it looks as if it was ended", &resumed, &next, vec!["I-7"]),
        ("its time is over", &over, &next, vec![]),
        ("the update is given up", &paused(), &json!({"abort": true}), vec![]),
        ("all is wanted at once", &in_full, &json!({"promoteFull": true}), vec![]),
        ("it begins anew", &over, &paused(), vec!["I-7"]),
        ("it outlasts its step", &over, &kept(&over, json!({"currentStepIndex": 2})), vec!["I-7"]),
        ("it outlasts its update", &over, &kept(&over, next_update), vec!["I-7"]),
    ];
    let spec = canary(5, json!([{}, {"pause": {"duration": "60s"}}, {}]));
    for (what, old, new, expected) in cases {
        assert_eq!(judged(&spec, old, new), expected, "{what}");
    }
    assert_eq!(judged_after_promote(&spec, &resumed, &next), [""; 0], "a person has ended it");
}

#[test]
fn the_same_steps_with_the_hash_of_an_older_release_are_the_same_update() {
    let spec =
        canary(5, json!([{"pause": {}}, {"analysis": {"templates": [{"templateName": "a"}]}}]));
    let older = gradus_engine::template::older_step_hashes(&spec["strategy"]["canary"]["steps"]);
    assert!(!older.is_empty(), "releases differ in the hash of these steps");
    let status =
        |hash: &str, index: i64| json!({"currentStepHash": hash, "currentStepIndex": index});
    for (what, hash, expected) in
        [("older", older[0].as_str(), vec![]), ("another", "x", vec!["I-7"])]
    {
        assert_eq!(judged(&spec, &status(hash, 1), &status("now", 1)), expected, "{what}");
    }
}

#[test]
fn a_lost_promote_of_a_canary_is_named() {
    let resumed = json!({"controllerPause": true});
    let again = |reason: &str| json!({"controllerPause": true, "pauseConditions": began(reason)});
    let run = |name: &str| {
        json!({"currentBackgroundAnalysisRunStatus":
        {"name": name, "status": "Inconclusive"}})
    };
    let resumed_with = |canary: Value| json!({"controllerPause": true, "canary": canary});
    let again_with = |reason: &str, canary: Value| json!({"controllerPause": true, "pauseConditions": began(reason), "canary": canary});
    let of_run = "InconclusiveAnalysisRun";
    let of_experiment = "InconclusiveExperiment";
    let named = json!({"currentExperiment": "e"});
    let cases = [
        ("the pause is left", &resumed, json!({"currentStepIndex": 2}), vec![]),
        ("it is about to be", &resumed, json!({"controllerPause": true, "message": ""}), vec![]),
        ("the pause begins again", &resumed, again("CanaryPauseStep"), vec!["commands"]),
        ("the promote is forgotten", &resumed, json!({}), vec!["commands"]),
        ("an abort comes", &resumed, json!({"abort": true}), vec![]),
        (
            "the same run holds it again",
            &resumed_with(run("r")),
            again_with(of_run, run("r")),
            vec!["commands"],
        ),
        ("another run holds it", &resumed_with(run("r")), again_with(of_run, run("s")), vec![]),
        ("an Experiment holds it again", &resumed, again(of_experiment), vec!["commands"]),
        (
            "a new Experiment finds nothing",
            &resumed_with(named.clone()),
            again_with(of_experiment, json!({})),
            vec![],
        ),
    ];
    let spec = canary(5, json!([{}, {"pause": {}}, {}]));
    for (what, old, new, expected) in cases {
        assert_eq!(judged_after_promote(&spec, old, &new), expected, "{what}");
    }
}

#[test]
fn a_lost_promote_of_a_blue_green_rollout_is_named() {
    let by_hand = json!({"strategy": {"blueGreen": {"autoPromotionEnabled": false}}});
    let by_itself = json!({"strategy": {"blueGreen": {}}});
    let active = |hash: &str| json!({"blueGreen": {"activeSelector": hash}});
    let again = json!({"controllerPause": true, "pauseConditions": began("BlueGreenPause")});
    let undecided = json!({"controllerPause": true, "blueGreen": {"activeSelector": "a",
        "prePromotionAnalysisRunStatus": {"name": "r", "status": "Inconclusive"}}});
    let resumed = json!({"controllerPause": true, "blueGreen": {"activeSelector": "a"}});
    let grows = json!({"blueGreen": {"activeSelector": "a", "scaleUpPreviewCheckPoint": true}});
    let cases = [
        ("it is switched", &by_hand, &resumed, active("b"), vec![]),
        ("the preview grows first", &by_hand, &resumed, grows, vec![]),
        ("the pause begins again", &by_hand, &resumed, again, vec!["commands"]),
        ("the promote is forgotten", &by_hand, &resumed, active("a"), vec!["commands"]),
        ("nobody is to promote it", &by_itself, &resumed, active("a"), vec![]),
        ("another run begins", &by_hand, &undecided, active("a"), vec![]),
    ];
    for (what, spec, old, new, expected) in cases {
        assert_eq!(judged(spec, old, &new), expected, "{what}");
    }
}

#[test]
fn a_step_that_passes_without_its_plugin_is_named() {
    let entry = |index: i64, operation: &str, phase: &str| {
        json!({"currentStepIndex": 2, "canary": {"stepPluginStatuses":
            [{"index": index, "name": "p", "operation": operation, "phase": phase}]}})
    };
    let disabled = json!({"currentStepIndex": 2, "canary": {"stepPluginStatuses":
        [{"index": 1, "name": "p", "operation": "Run", "disabled": true}]}});
    let cases = [
        ("it has succeeded", entry(1, "Run", "Successful"), vec![]),
        ("it runs", entry(1, "Run", "Running"), vec!["I-7"]),
        ("it has failed", entry(1, "Run", "Failed"), vec!["I-7"]),
        ("another one has succeeded", entry(0, "Run", "Successful"), vec!["I-7"]),
        ("it was told to end", entry(1, "Terminate", "Successful"), vec![]),
        ("it is switched off", disabled, vec![]),
        ("nobody has asked it", json!({"currentStepIndex": 2}), vec!["I-7"]),
    ];
    let spec = canary(5, json!([{}, {"plugin": {"name": "p"}}, {}]));
    for (what, new, expected) in cases {
        assert_eq!(judged(&spec, &json!({}), &new), expected, "{what}");
    }
}

#[test]
fn only_a_way_back_within_the_window_skips_steps() {
    let cases = [
        // what, when the stable and the next revision came, window, expected
        ("a way back", (20, 10), 1, vec![]),
        ("forward", (20, 40), 1, vec!["I-7", "I-7"]),
        ("back too far", (60, 10), 1, vec!["I-7", "I-7"]),
        ("back as far as that", (60, 10), 2, vec![]),
        ("without a window", (20, 10), 0, vec!["I-7", "I-7"]),
    ];
    for (what, (stable, next), window, expected) in cases {
        let mut spec = canary(5, json!([{}, {"pause": {}}, {}]));
        spec["rollbackWindow"] = json!({ "revisions": window });
        let mut checker = Checker::new(ROLLOUT, &Kinds::default());
        for (hash, second) in [("a", stable), ("b", next), ("x", 30)] {
            let mut set = Object::clone(&set_of(hash, 1, 1));
            Arc::make_mut(&mut set.meta).created = at(second);
            checker.judge(&write("somebody", None, &Arc::new(set)), at(0));
        }
        let status = |hash: &str, index: i64| {
            let status =
                json!({"currentPodHash": hash, "stableRS": "a", "currentStepIndex": index});
            object(ROLLOUT, "web", spec.clone(), status)
        };
        let mut all = found(&mut checker, Some(&status("a", 3)), &status("b", 3));
        all.extend(found(&mut checker, Some(&status("b", 1)), &status("b", 3)));
        assert_eq!(all, expected, "{what}");
    }
}

#[test]
fn a_write_that_does_not_say_on_what_it_rests_is_named() {
    let patch = || Op::Merge(Arc::new(json!({})));
    let uid = || Expect::Uid(Uid::default());
    let cases = [
        ("a patch", patch(), Expect::Nothing, 1),
        ("a patch of a version", patch(), Expect::Version(7), 0),
        ("a patch of one life", patch(), uid(), 0),
        ("a delete", Op::Delete, Expect::Nothing, 1),
        ("a delete of one life", Op::Delete, uid(), 0),
        ("an eviction", Op::Evict, Expect::Nothing, 1),
        ("what is made rests on nothing", Op::Create(Arc::default()), Expect::Nothing, 0),
    ];
    for (what, op, expect, count) in cases {
        let target = ObjectRef::new(kinds::ROLLOUT, &"default".into(), &"web".into());
        let (part, lane) = (ResourcePart::Main, Lane::default());
        let mut checker = Checker::new(ROLLOUT, &Kinds::default());
        checker.sent(&Sent { target, part, op, expect, lane });
        assert_eq!(checker.violations().len(), count, "{what}");
    }
}
