//! I-7: does a status write leave the step index where it may be?

use gradus_api::names::pause;
use gradus_api::values::DurationText;
use gradus_simkube::object::Object;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::trials::Trials;
use crate::sight::Sight;

/// What is wrong with the step index after a status write of ours, if anything.
pub(super) fn judge(
    before: &Object,
    after: &Object,
    trials: &Trials,
    now: Timestamp,
) -> Option<String> {
    let (old, new) = (&*before.status, &*after.status);
    let (from, to) = (index(old), index(new));
    let is_same_update = ["currentPodHash", "currentStepHash"].iter().all(|f| old[f] == new[f]);
    if is_same_update && from == to {
        return None;
    }
    let steps = Sight { generation: 0, revision: None, spec: &after.spec, status: new }.steps();
    let is_promoted = new["stableRS"] == new["currentPodHash"] && !is_empty(&new["stableRS"]);
    if !is_same_update {
        let may_skip = is_promoted || is_empty(&old["stableRS"]) || is_window(&after.spec);
        // Nothing stored is about the new update yet, so no gate of it can be open.
        let none = Value::Null;
        let passed = steps.get(..to.min(steps.len())).unwrap_or_default();
        let closed = passed.iter().position(|step| !is_open(step, &none, trials, now));
        return closed.filter(|_| !may_skip).map(|closed| {
            format!("a new epoch begins at step {to}, past step {closed} whose gate is not open")
        });
    }
    if to < from {
        let is_aborted = old["abort"] == true || new["abort"] == true;
        return (!is_aborted).then(|| format!("step {from} → {to} without an abort"));
    }
    let may_skip = old["promoteFull"] == true
        || is_window(&after.spec)
        || is_promoted && is_empty(&old["stableRS"]);
    if may_skip {
        return None;
    }
    let passed = steps.get(from..to.min(steps.len())).unwrap_or_default();
    let closed = passed.iter().position(|step| !is_open(step, old, trials, now))?;
    Some(format!("step {from} → {to} passes step {} whose gate is not open", from + closed))
}

/// Is the gate of this step open by what was stored?
fn is_open(step: &Value, status: &Value, trials: &Trials, now: Timestamp) -> bool {
    let canary = &status["canary"];
    if step.get("analysis").is_some() {
        return trials.has_succeeded(&canary["currentStepAnalysisRunStatus"]["name"]);
    }
    if step.get("experiment").is_some() {
        return trials.has_succeeded(&canary["currentExperiment"]);
    }
    let Some(gate) = step.get("pause") else {
        return true;
    };
    let pauses = status["pauseConditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let Some(began) = pauses.iter().find(|pause| pause["reason"] == pause::CANARY_PAUSE_STEP)
    else {
        return status["controllerPause"] == true; // A person has ended it.
    };
    let duration: Option<DurationText> = serde_json::from_value(gate["duration"].clone()).ok();
    let Some(seconds) = duration.and_then(|duration| duration.seconds()) else {
        return false;
    };
    let began = began["startTime"].as_str().and_then(|text| text.parse::<Timestamp>().ok());
    began.is_some_and(|began| began + SignedDuration::from_secs(seconds.into()) <= now)
}

fn index(status: &Value) -> usize {
    status["currentStepIndex"].as_u64().and_then(|index| usize::try_from(index).ok()).unwrap_or(0)
}

fn is_empty(hash: &Value) -> bool {
    hash.as_str().is_none_or(str::is_empty)
}

fn is_window(spec: &Value) -> bool {
    spec["rollbackWindow"].is_object()
}
