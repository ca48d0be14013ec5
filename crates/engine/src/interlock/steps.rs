//! I-7: does the step index only rise, and never past a pause that has not ended?

use gradus_api::names::pause;
use gradus_api::rollout::{CanaryStep, RolloutStatus, StepKind};
use jiff::{SignedDuration, Timestamp};

use crate::world::World;

/// What is wrong with the step index of the next status, if anything.
pub(super) fn judge(world: &World, next: &RolloutStatus, now: Timestamp) -> Option<String> {
    let stored = &*world.rollout.status;
    let spec = &world.rollout.spec.fields;
    let steps = spec.strategy.canary.as_ref().map_or(&[][..], |canary| &canary.steps);
    let (from, to) = (index(stored), index(next));
    let is_promoted = !next.stable_rs.is_empty() && next.stable_rs == next.current_pod_hash;
    let is_first = stored.stable_rs.is_empty();
    let is_same_epoch = stored.current_pod_hash == next.current_pod_hash
        && stored.current_step_hash == next.current_step_hash;
    if !is_same_epoch {
        let may_skip = is_promoted || is_first || spec.rollback_window.is_some();
        let is_pause = |step: &CanaryStep| matches!(step.kind(), StepKind::Pause(_));
        let has_pause = steps[..to.min(steps.len())].iter().any(is_pause);
        return (has_pause && !may_skip)
            .then(|| format!("an update would begin at step {to}, past a pause"));
    }
    if to < from {
        let is_aborted = stored.abort || next.abort;
        return (!is_aborted).then(|| format!("step {from} would fall back to {to}"));
    }
    let may_skip = stored.promote_full || is_promoted && is_first || spec.rollback_window.is_some();
    if may_skip {
        return None;
    }
    let passed = steps.get(from..to.min(steps.len())).unwrap_or_default();
    let closed = passed.iter().position(|step| !is_open(step, stored, now))?;
    Some(format!("step {from} would go to {to} past the pause of step {}", from + closed))
}

/// Has this step's pause ended, by what is stored?
fn is_open(step: &CanaryStep, stored: &RolloutStatus, now: Timestamp) -> bool {
    let StepKind::Pause(gate) = step.kind() else { return true };
    let Some(began) = stored.pause_condition(pause::CANARY_PAUSE_STEP) else {
        return stored.controller_pause; // A person has ended it.
    };
    let seconds = gate.duration.as_ref().and_then(|duration| duration.seconds());
    seconds.is_some_and(|seconds| {
        let lasts = SignedDuration::from_secs(i64::from(seconds));
        began.start_time.timestamp() + lasts <= now
    })
}

fn index(status: &RolloutStatus) -> usize {
    status.current_step_index.and_then(|index| usize::try_from(index).ok()).unwrap_or(0)
}
