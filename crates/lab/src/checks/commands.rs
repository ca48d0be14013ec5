//! Is what a user has written into the status still there, or carried out?

use gradus_api::names::{analysis_phase, pause};
use serde_json::Value;

use super::told::Told;
use crate::sight;

/// Which command of a user a status write of ours has lost, if any.
pub(super) fn judge(spec: &Value, old: &Told<'_>, new: &Told<'_>) -> Option<String> {
    if !(old.is_aborted || old.promotes_fully || old.controller_pause) {
        return None;
    }
    if !old.is_same_update(new, spec) || new.is_promoted() {
        return None;
    }
    // Beside an abort that was not answered yet, nobody can tell which wish came first: the abort
    // wins. One that was answered is older than the wish to promote.
    let is_fresh_abort = old.is_aborted && !old.is_abort_noted;
    let is_overruled = old.promotes_fully && !is_fresh_abort;
    if old.is_aborted && !new.is_aborted && !is_overruled {
        return Some("an abort is taken back although the update is not over".to_owned());
    }
    if old.promotes_fully && !new.promotes_fully && !is_fresh_abort {
        return Some("a full promote is taken back although the update is not over".to_owned());
    }
    if old.is_aborted || !old.controller_pause || old.index != new.index {
        return None;
    }
    if let Some(reason) = REASONS.into_iter().find(|reason| begins_again(reason, old, new)) {
        return Some(format!("{reason} begins again although a promote has ended it"));
    }
    let is_forgotten = old.is_resumed() && !new.controller_pause && waits(spec, old, new);
    is_forgotten.then(|| "that a promote has ended the pause is forgotten".to_owned())
}

/// Why an update may be paused by the controller.
const REASONS: [&str; 4] = [
    pause::CANARY_PAUSE_STEP,
    pause::BLUE_GREEN_PAUSE,
    pause::INCONCLUSIVE_ANALYSIS_RUN,
    pause::INCONCLUSIVE_EXPERIMENT,
];

/// Does a pause begin for a reason that a promote has done away with?
fn begins_again(reason: &str, old: &Told<'_>, new: &Told<'_>) -> bool {
    if old.pause(reason).is_some() || new.pause(reason).is_none() {
        return false;
    }
    match reason {
        // A promote asks for another run, and that one may find nothing either.
        pause::INCONCLUSIVE_ANALYSIS_RUN => old.is_resumed() && is_same_verdict(old, new),
        pause::INCONCLUSIVE_EXPERIMENT => {
            let is_named = old.canary["currentExperiment"].as_str().is_some_and(|n| !n.is_empty());
            old.is_resumed() && !is_named
        }
        _ => true,
    }
}

/// Do both name a run that had found nothing before the promote?
fn is_same_verdict(old: &Told<'_>, new: &Told<'_>) -> bool {
    let slots = |told: &Told<'_>| {
        [
            told.canary["currentStepAnalysisRunStatus"].clone(),
            told.canary["currentBackgroundAnalysisRunStatus"].clone(),
            told.blue_green["prePromotionAnalysisRunStatus"].clone(),
            told.blue_green["postPromotionAnalysisRunStatus"].clone(),
        ]
    };
    let is_same = |(old, new): (Value, Value)| {
        old["status"] == analysis_phase::INCONCLUSIVE && old["name"] == new["name"]
    };
    slots(old).into_iter().zip(slots(new)).any(is_same)
}

/// Would the pause that a promote has ended begin once more, where nobody knew of the promote?
fn waits(spec: &Value, old: &Told<'_>, new: &Told<'_>) -> bool {
    if new.is_aborted || new.promotes_fully {
        return false;
    }
    let strategy = &spec["strategy"]["blueGreen"];
    if !strategy.is_object() {
        return sight::steps(spec).get(new.index).is_some_and(|step| step.get("pause").is_some());
    }
    let is_wanted = strategy["autoPromotionEnabled"] == false
        || strategy["autoPromotionSeconds"].as_i64().is_some_and(|seconds| seconds > 0);
    let before = &old.blue_green["prePromotionAnalysisRunStatus"];
    let is_judged = before.is_null() || before["status"] == analysis_phase::SUCCESSFUL;
    let is_passed = new.blue_green["activeSelector"] == new.hash
        || new.blue_green["scaleUpPreviewCheckPoint"] == true;
    is_wanted && is_judged && !is_passed
}
