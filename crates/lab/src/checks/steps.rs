//! I-7: does a status write leave the step index where it may be?

use gradus_api::names::{analysis_phase, pause, plugin_operation};
use gradus_api::values::DurationText;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::pauses::{self, Resumed};
use super::runs::Runs;
use super::sizes::Sizes;
use super::told::Told;
use crate::sight;

/// What a status write is judged by, beside what it says.
#[derive(Clone, Copy)]
pub(super) struct StepContext<'c> {
    pub runs: &'c Runs,
    pub sizes: &'c Sizes,
    pub resumed: Resumed,
    pub now: Timestamp,
}

/// What is wrong with the step index after a status write of ours, if anything.
pub(super) fn judge(
    spec: &Value,
    (old, new): (&Told<'_>, &Told<'_>),
    seen: StepContext<'_>,
) -> Option<String> {
    let is_same_update = old.is_same_update(new, spec);
    let steps = sight::steps(spec);
    let is_same_step = is_same_update && old.index == new.index;
    let next = (!is_same_step).then(|| steps.get(new.index).unwrap_or(&Value::Null));
    if let Some(found) = pauses::misplaced(old, new, next) {
        return Some(found.to_owned());
    }
    if is_same_step {
        return cut_short(steps, (old, new), seen);
    }
    // A number beyond the last step, which only a person writes, means that all are done.
    let (from, to) = (old.index.min(steps.len()), new.index);
    let window = spec["rollbackWindow"]["revisions"].as_i64().unwrap_or(0);
    let is_way_back = || seen.sizes.is_way_back(new.hash, old.stable, window);
    if !is_same_update {
        let may_skip = new.is_promoted() || old.stable.is_empty() || is_way_back();
        // Nothing stored is about the new update yet, so no gate of it can be open.
        let none = Told::default();
        let is_open = |at: usize| is_open((at, &steps[at]), (&none, &none), seen);
        let closed = (0..to.min(steps.len())).find(|at| !is_open(*at));
        return closed.filter(|_| !may_skip).map(|closed| {
            format!("a new epoch begins at step {to}, past step {closed} whose gate is not open")
        });
    }
    if to < from {
        let is_aborted = old.is_aborted || new.is_aborted;
        return (!is_aborted).then(|| format!("step {from} → {to} without an abort"));
    }
    let is_first = new.is_promoted() && old.stable.is_empty();
    if old.promotes_fully || is_first || is_way_back() {
        return None;
    }
    let closed =
        (from..to.min(steps.len())).find(|at| !is_open((*at, &steps[*at]), (old, new), seen))?;
    Some(format!("step {from} → {to} passes step {closed} whose gate is not open"))
}

/// Does a pause end here, at its own step, that has not run out, and that no command ends?
fn cut_short(
    steps: &[Value],
    (old, new): (&Told<'_>, &Told<'_>),
    seen: StepContext<'_>,
) -> Option<String> {
    let at = old.index;
    let is_wanted = new.is_aborted || old.promotes_fully || new.is_promoted();
    if is_wanted || !pauses::ends(old, new) {
        return None;
    }
    let step = steps.get(at).filter(|step| !is_open((at, step), (old, new), seen))?;
    Some(format!("the pause of step {at} ends too early: {step}"))
}

/// Is the gate of this step open by what was stored? Only a plugin's answer comes in with the status
/// that passes it.
fn is_open(
    (at, step): (usize, &Value),
    (told, new): (&Told<'_>, &Told<'_>),
    StepContext { runs, resumed, now, .. }: StepContext<'_>,
) -> bool {
    if step.get("analysis").is_some() {
        return runs.has_succeeded(&told.canary["currentStepAnalysisRunStatus"]["name"]);
    }
    if step.get("experiment").is_some() {
        return runs.has_succeeded(&told.canary["currentExperiment"]);
    }
    if step.get("plugin").is_some() {
        return has_answered(new, at);
    }
    let Some(gate) = step.get("pause") else {
        return true;
    };
    let Some(began) = told.pause(pause::CANARY_PAUSE_STEP) else {
        return told.controller_pause && resumed.is_at(at);
    };
    let duration: Option<DurationText> = serde_json::from_value(gate["duration"].clone()).ok();
    let Some(seconds) = duration.and_then(|duration| duration.seconds()) else {
        return false;
    };
    let began = began["startTime"].as_str().and_then(|text| text.parse::<Timestamp>().ok());
    began.is_some_and(|began| began + SignedDuration::from_secs(seconds.into()) <= now)
}

/// Has the plugin of a step succeeded, is it switched off, or was it told to end?
fn has_answered(new: &Told<'_>, at: usize) -> bool {
    let entries = new.canary["stepPluginStatuses"].as_array().into_iter().flatten();
    let is_answer = |entry: &Value| {
        entry["index"].as_u64().and_then(|index| usize::try_from(index).ok()) == Some(at)
            && (entry["operation"] != plugin_operation::RUN
                || entry["disabled"] == true
                || entry["phase"] == analysis_phase::SUCCESSFUL)
    };
    entries.into_iter().any(is_answer)
}
