//! Is the current canary step finished, is the update finished, and if not, what is missing?

use gradus_api::names::{analysis_phase, pause, promotion, value};
use gradus_api::rollout::StepKind;
use gradus_api::rollout::canary::ReplicaProgressThreshold;

use super::canary::{next_sizes, pause_end};
use super::objects::Objects;
use super::plugin;
use super::replica_sets::Roles;
use super::rollback::{self, Rollback};
use super::runs::Findings;
use super::{routed, weights};

/// What an update still waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// The counts of this ReplicaSet are not of our last write.
    Observation(usize),
    /// This ReplicaSet has not the size it should get.
    Size { at: usize, wanted: i32 },
    /// This ReplicaSet has not as many available pods as wanted.
    Available { at: usize, wanted: i32 },
    /// This ReplicaSet has not exactly as many pods as wanted.
    Pods { at: usize, wanted: i32 },
    /// Older ReplicaSets still have available pods.
    Others { available: i32 },
}

/// May the current step be left? Never while somebody has halted the rollout.
pub(super) fn is_complete(objects: &Objects<'_>, roles: Roles, found: &Findings) -> bool {
    let Some((index, step)) = objects.current_step() else { return false };
    let status = &objects.status;
    if objects.spec().paused || is_undecided(objects, found) {
        return false;
    }
    match step.kind() {
        StepKind::Pause(_) => {
            let begun = status.pause_condition(pause::CANARY_PAUSE_STEP);
            let is_resumed = status.controller_pause && begun.is_none();
            // However short, it ends only once it is stored: nothing passes a gate unseen.
            let stored = objects.rollout().status.pause_condition(pause::CANARY_PAUSE_STEP);
            let is_over = || pause_end(objects).is_some_and(|end| end <= objects.now);
            is_resumed || stored == begun && is_over()
        }
        StepKind::SetCanaryScale(_) => missing_counts(objects, roles).is_none(),
        StepKind::SetWeight(_) => {
            let weights = status.canary.weights.as_ref();
            let is_unverified = weights.is_some_and(|weights| weights.verified == Some(false));
            missing_counts(objects, roles).is_none() && !is_unverified
        }
        StepKind::SetHeaderRoute(_) | StepKind::SetMirrorRoute(_) => {
            weights::is_reached(objects, roles)
        }
        StepKind::Analysis(_) => {
            found.step.as_ref().is_some_and(|run| run.status == analysis_phase::SUCCESSFUL)
        }
        StepKind::Experiment(_) => found.experiment_succeeded,
        StepKind::Plugin(_) => plugin::is_complete(objects, index),
        // Refused by `supported` before a pass begins.
        _ => false,
    }
}

/// Has an AnalysisRun or Experiment ended without a verdict, so that a person must decide, or is one yet to be made?
fn is_undecided(objects: &Objects<'_>, found: &Findings) -> bool {
    let reasons = [pause::INCONCLUSIVE_ANALYSIS_RUN, pause::INCONCLUSIVE_EXPERIMENT];
    let stands = |reason: &&str| objects.status.pause_condition(reason).is_some();
    found.holds() || reasons.iter().any(stands)
}

/// The first thing that keeps the counts from being as the weight wants them.
pub(super) fn missing_counts(objects: &Objects<'_>, roles: Roles) -> Option<Missing> {
    let sizes = next_sizes(objects, roles);
    if let Some(missing) = missing_observation(objects, roles) {
        return Some(missing);
    }
    let new = &objects.sets[roles.new];
    if !is_enough(objects, roles.new, sizes.new) {
        let (at, wanted) = (roles.new, sizes.new);
        return Some(match new.available() {
            _ if new.size != wanted => Missing::Size { at, wanted },
            available if available < wanted => Missing::Available { at, wanted },
            _ => Missing::Pods { at, wanted }, // More than wanted, until the last of them are gone.
        });
    }
    let is_routed = routed::is_routed(objects.spec());
    let follows_traffic = is_routed && objects.canary().dynamic_stable_scale;
    if let Some(at) = roles.separate_stable().filter(|_| !follows_traffic) {
        let (stable, wanted) = (&objects.sets[at], sizes.stable);
        if stable.size != wanted {
            return Some(Missing::Size { at, wanted });
        }
        if stable.replicas != wanted {
            return Some(Missing::Pods { at, wanted });
        }
    }
    let available: i32 = roles.others(objects).map(|at| objects.sets[at].reported_available).sum();
    (available > 0 && !is_routed).then_some(Missing::Others { available })
}

/// Has the new ReplicaSet at least the available pods that the current step wants of it? Pods beyond
/// them, and a resize that is not observed, do not matter here.
pub(super) fn has_new_pods(objects: &Objects<'_>, roles: Roles) -> bool {
    let wanted = next_sizes(objects, roles).new;
    objects.sets[roles.new].available() >= wanted || is_by_threshold(objects, roles.new, wanted)
}

/// Why the new revision may become the stable one now, in the words of the Event; `None` if not.
pub(super) fn promotion(
    objects: &Objects<'_>,
    roles: Roles,
    found: &Findings,
    is_aborted: bool,
) -> Option<String> {
    let status = &objects.status;
    // Where only the ReplicaSet of a stable revision is gone, the steps still count.
    if status.stable_rs.is_empty() {
        return Some(promotion::INITIAL_DEPLOY.into());
    }
    if is_aborted || missing_promotion(objects, roles).is_some() {
        return None;
    }
    if objects.promotes_fully() {
        return Some(promotion::FULL.into());
    }
    match rollback::classify(objects, roles) {
        Rollback::WithinWindow => return Some(promotion::ROLLBACK_WITHIN_WINDOW.into()),
        Rollback::ToStable => return Some(promotion::FAST_ROLLBACK.into()),
        Rollback::None => {}
    }
    if is_undecided(objects, found) {
        return None;
    }
    let count = objects.steps().len();
    let index = usize::try_from(status.current_step_index.unwrap_or(0)).unwrap_or(0);
    (index >= count).then(|| format!("Completed all {count} canary steps"))
}

/// The first thing that keeps the new ReplicaSet from carrying everything.
pub(super) fn missing_promotion(objects: &Objects<'_>, roles: Roles) -> Option<Missing> {
    let (new, replicas) = (&objects.sets[roles.new], objects.replicas());
    if let Some(missing) = missing_observation(objects, roles) {
        return Some(missing);
    }
    let is_enough = new.available() >= replicas || is_enough(objects, roles.new, replicas);
    (!is_enough).then_some(Missing::Available { at: roles.new, wanted: replicas })
}

fn missing_observation(objects: &Objects<'_>, roles: Roles) -> Option<Missing> {
    let both = [Some(roles.new), roles.separate_stable()].into_iter().flatten();
    both.into_iter().find(|at| !objects.sets[*at].is_observed()).map(Missing::Observation)
}

/// Complete, or complete enough by `replicaProgressThreshold`.
fn is_enough(objects: &Objects<'_>, at: usize, wanted: i32) -> bool {
    let set = &objects.sets[at];
    match threshold(objects) {
        Some(_) => is_by_threshold(objects, at, wanted),
        // As counted, not as it will be: pods beyond the size are still there.
        None => set.size == wanted && set.reported_available == wanted,
    }
}

/// Is there a `replicaProgressThreshold` by which these are pods enough?
pub(super) fn is_by_threshold(objects: &Objects<'_>, at: usize, wanted: i32) -> bool {
    let available = objects.sets[at].available();
    threshold(objects).is_some_and(|threshold| match threshold.r#type.as_str() {
        // Whole numbers: available / wanted · 100 ≥ value, without rounding.
        value::PERCENT => {
            wanted == 0
                || i64::from(available) * 100 >= i64::from(threshold.value) * i64::from(wanted)
        }
        _ => available >= threshold.value,
    })
}

/// How complete a ReplicaSet must be, where that is not: complete.
fn threshold<'w>(objects: &Objects<'w>) -> Option<&'w ReplicaProgressThreshold> {
    let wanted = objects.canary().replica_progress_threshold.as_ref();
    wanted.filter(|threshold| threshold.value >= 0)
}
