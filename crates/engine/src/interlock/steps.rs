//! I-7: does the step index only rise, and never past a gate that is not open: a pause, an analysis,
//! an Experiment, a plugin?

use gradus_api::names::{analysis_phase, pause, plugin_operation};
use gradus_api::rollout::canary::PauseStep;
use gradus_api::rollout::{CanaryStep, RolloutStatus, StepKind};
use jiff::{SignedDuration, Timestamp};

use super::verdicts;
use crate::world::{RunPhase, World};

/// What is wrong with the step index of the next status, if anything.
pub(super) fn judge(world: &World, next: &RolloutStatus, now: Timestamp) -> Option<String> {
    let stored = &*world.rollout.status;
    let spec = &world.rollout.spec.fields;
    let steps = spec.strategy.canary.as_ref().map_or(&[][..], |canary| &canary.steps);
    // A number beyond the last step, which only a person writes, means that all are done.
    let (from, to) = (index(stored).min(steps.len()), index(next));
    let is_promoted = next.is_promoted();
    let is_first = stored.stable_rs.is_empty();
    // The same steps have had other hashes in earlier versions.
    let are_same_steps = stored.current_step_hash == next.current_step_hash
        || world
            .rollout
            .spec
            .older_step_hashes
            .iter()
            .any(|hash| stored.current_step_hash == **hash);
    let is_same_epoch = stored.current_pod_hash == next.current_pod_hash && are_same_steps;
    let is_way_back = spec.rollback_window.is_some() && is_older(world, next);
    if !is_same_epoch {
        let may_skip = is_promoted || is_first || is_way_back;
        // Nothing stored is about the new update yet, so no gate of it can be open.
        let gate = steps[..to.min(steps.len())].iter().find_map(gate);
        let gate = gate.filter(|_| !may_skip)?;
        return Some(format!("an update would begin at step {to}, past {gate}"));
    }
    if to < from {
        let is_aborted = stored.abort || next.abort;
        return (!is_aborted).then(|| format!("step {from} would fall back to {to}"));
    }
    let may_skip = stored.promote_full || is_promoted && is_first || is_way_back;
    if may_skip {
        return None;
    }
    let passed = steps.get(from..to.min(steps.len())).unwrap_or_default();
    passed.iter().zip(from..).find_map(|(step, at)| {
        let gate = gate(step).filter(|_| !is_open(world, next, (at, step), now))?;
        Some(format!("step {from} would go to {to} past {gate} of step {at}"))
    })
}

/// Was the revision of the next status made before the stable one?
fn is_older(world: &World, next: &RolloutStatus) -> bool {
    let sets = world.replica_sets.present().map_or(&[][..], Vec::as_slice);
    let made = |hash: &str| sets.iter().find(|set| *set.hash == *hash).map(|set| set.created);
    let both = made(&next.current_pod_hash).zip(made(&world.rollout.status.stable_rs));
    both.is_some_and(|(new, stable)| new < stable)
}

/// What must have happened before a step may be left, if anything.
fn gate(step: &CanaryStep) -> Option<&'static str> {
    match step.kind() {
        StepKind::Pause(_) => Some("the pause"),
        StepKind::Analysis(_) => Some("the analysis"),
        StepKind::Experiment(_) => Some("the Experiment"),
        StepKind::Plugin(_) => Some("the plugin"),
        _ => None,
    }
}

/// Is this step's gate open, by what is stored and by what the World knows of it? Only a plugin's
/// answer comes in with the status that passes it.
fn is_open(
    world: &World,
    next: &RolloutStatus,
    (at, step): (usize, &CanaryStep),
    now: Timestamp,
) -> bool {
    let stored = &*world.rollout.status;
    match step.kind() {
        StepKind::Pause(pause) => has_ended(pause, stored, now),
        StepKind::Analysis(_) => {
            let slot = stored.canary.current_step_analysis_run_status.as_ref();
            let run = slot.and_then(|slot| verdicts::find(&world.runs, &slot.name));
            run.is_some_and(|run| run.step == Some(at) && run.phase == RunPhase::Successful)
        }
        StepKind::Experiment(_) => {
            let name = &stored.canary.current_experiment;
            let experiment = verdicts::find(&world.experiments, name);
            experiment.is_some_and(|experiment| experiment.phase == RunPhase::Successful)
        }
        StepKind::Plugin(_) => has_answered(next, at),
        _ => true,
    }
}

/// Has this step's pause ended, by what is stored?
fn has_ended(gate: &PauseStep, stored: &RolloutStatus, now: Timestamp) -> bool {
    let Some(began) = stored.pause_condition(pause::CANARY_PAUSE_STEP) else {
        return stored.controller_pause; // A person has ended it.
    };
    let seconds = gate.duration.as_ref().and_then(|duration| duration.seconds());
    seconds.is_some_and(|seconds| {
        let lasts = SignedDuration::from_secs(i64::from(seconds));
        began.start_time.timestamp() + lasts <= now
    })
}

/// Has the plugin of a step succeeded, is it switched off, or was it told to end?
fn has_answered(next: &RolloutStatus, at: usize) -> bool {
    let entries = next.canary.step_plugin_statuses.iter();
    let mut entries = entries.filter(|entry| usize::try_from(entry.index) == Ok(at));
    entries.any(|entry| {
        entry.operation != plugin_operation::RUN
            || entry.disabled
            || entry.phase == analysis_phase::SUCCESSFUL
    })
}

fn index(status: &RolloutStatus) -> usize {
    status.current_step_index.and_then(|index| usize::try_from(index).ok()).unwrap_or(0)
}
