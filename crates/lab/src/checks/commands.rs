//! Is what a user has written into the status still there, or carried out?

use gradus_api::names::pause;
use gradus_simkube::object::Object;
use serde_json::Value;

/// Which command of a user a status write of ours has lost, if any.
pub(super) fn judge(before: &Object, after: &Object) -> Option<String> {
    let (old, new) = (&*before.status, &*after.status);
    if !["abort", "promoteFull", "controllerPause"].iter().any(|wish| old[wish] == true) {
        return None;
    }
    let is_same_update = old["currentPodHash"] == new["currentPodHash"]
        && old["currentStepHash"] == new["currentStepHash"];
    let is_promoted = new["stableRS"] == new["currentPodHash"];
    if !is_same_update || is_promoted {
        return None;
    }
    // Beside an abort that was not answered yet, nobody can tell which wish came first: the abort
    // wins. One that was answered is older than the wish to promote.
    let is_fresh_abort = old["abort"] == true && old["abortedAt"].is_null();
    let is_overruled = old["promoteFull"] == true && !is_fresh_abort;
    if old["abort"] == true && new["abort"] != true && !is_overruled {
        return Some("an abort is taken back although the update is not over".to_owned());
    }
    if old["promoteFull"] == true && new["promoteFull"] != true && !is_fresh_abort {
        return Some("a full promote is taken back although the update is not over".to_owned());
    }
    let was_ended = old["controllerPause"] == true && !is_paused(old) && old["abort"] != true;
    let is_same_step = old["currentStepIndex"] == new["currentStepIndex"];
    if was_ended && is_same_step && is_paused(new) {
        return Some("a pause begins again although a promote has ended it".to_owned());
    }
    None
}

fn is_paused(status: &Value) -> bool {
    let pauses = status["pauseConditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    pauses.iter().any(|one| one["reason"] == pause::CANARY_PAUSE_STEP)
}
