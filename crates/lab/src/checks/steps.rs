//! I-7: does a status write leave the step index where it may be?

use gradus_api::names::pause;
use gradus_api::values::DurationText;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::told::Told;
use super::trials::Trials;
use crate::sight;

/// What is wrong with the step index after a status write of ours, if anything.
pub(super) fn judge(
    spec: &Value,
    (old, new): (&Told<'_>, &Told<'_>),
    trials: &Trials,
    now: Timestamp,
) -> Option<String> {
    let (from, to) = (old.index, new.index);
    let is_same_update = old.is_same_update(new);
    if is_same_update && from == to {
        return None;
    }
    let steps = sight::steps(spec);
    if !is_same_update {
        let may_skip = new.is_promoted() || old.stable.is_empty() || is_window(spec);
        // Nothing stored is about the new update yet, so no gate of it can be open.
        let none = Told::default();
        let passed = steps.get(..to.min(steps.len())).unwrap_or_default();
        let closed = passed.iter().position(|step| !is_open(step, &none, trials, now));
        return closed.filter(|_| !may_skip).map(|closed| {
            format!("a new epoch begins at step {to}, past step {closed} whose gate is not open")
        });
    }
    if to < from {
        let is_aborted = old.is_aborted || new.is_aborted;
        return (!is_aborted).then(|| format!("step {from} → {to} without an abort"));
    }
    let is_first = new.is_promoted() && old.stable.is_empty();
    if old.promotes_fully || is_window(spec) || is_first {
        return None;
    }
    let passed = steps.get(from..to.min(steps.len())).unwrap_or_default();
    let closed = passed.iter().position(|step| !is_open(step, old, trials, now))?;
    Some(format!("step {from} → {to} passes step {} whose gate is not open", from + closed))
}

/// Is the gate of this step open by what was stored?
fn is_open(step: &Value, told: &Told<'_>, trials: &Trials, now: Timestamp) -> bool {
    if step.get("analysis").is_some() {
        return trials.has_succeeded(&told.canary["currentStepAnalysisRunStatus"]["name"]);
    }
    if step.get("experiment").is_some() {
        return trials.has_succeeded(&told.canary["currentExperiment"]);
    }
    let Some(gate) = step.get("pause") else {
        return true;
    };
    let Some(began) = told.pause(pause::CANARY_PAUSE_STEP) else {
        return told.controller_pause; // A person has ended it.
    };
    let duration: Option<DurationText> = serde_json::from_value(gate["duration"].clone()).ok();
    let Some(seconds) = duration.and_then(|duration| duration.seconds()) else {
        return false;
    };
    let began = began["startTime"].as_str().and_then(|text| text.parse::<Timestamp>().ok());
    began.is_some_and(|began| began + SignedDuration::from_secs(seconds.into()) <= now)
}

fn is_window(spec: &Value) -> bool {
    spec["rollbackWindow"].is_object()
}
