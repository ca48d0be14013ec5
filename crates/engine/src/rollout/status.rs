//! What does the status say? The one place that composes it: counts, conditions, phase, message.

use std::sync::Arc;

use gradus_api::names::label::POD_TEMPLATE_HASH;
use gradus_api::names::{condition, condition_status, event, message, pause, phase, reason};
use gradus_api::rollout::status::{BlueGreenStatus, CanaryStatus, Condition, PauseCondition};
use gradus_api::rollout::{RolloutSpec, RolloutStatus, StepKind};
use gradus_api::values::Time;

use super::blue_green;
use super::conditions::{self, Statement, is_progressing, is_true, truth};
use super::duration;
use super::metadata;
use super::objects::Objects;
use super::plan::Proposal;
use super::plugin;
use super::progress;
use super::replica_sets::{Roles, find_stable};
use super::routed;
use super::runs::{self, Findings};
use super::selector;
use super::targets;
use super::verify;
use super::workload;
use crate::decision::EventKind;
use crate::world::ReplicaSetView;

/// Why an aborted update is not shown as degraded yet.
const TAKING_BACK: &str = "waiting for step plugins to be aborted";
/// Why a rollout that has all its pods is not healthy yet.
const METADATA_PENDING: &str = "pods are still getting their labels and annotations";

/// What a pass decided about the update itself.
#[derive(Clone, Debug)]
pub(super) struct UpdateState {
    /// The step to be at.
    pub index: Option<i32>,
    /// What happens to the pauses.
    pub pauses: Pauses,
    /// Is the update given up?
    pub is_aborted: bool,
    /// Does a person still want the rest skipped?
    pub promote_full: bool,
    /// Hash of the stable revision.
    pub stable: String,
    /// Has the preview of a blue-green rollout served its purpose?
    pub checkpoint: bool,
    /// Why the update is given up in this pass, in the words of whoever judged it.
    pub abort_because: Option<String>,
}

impl UpdateState {
    /// An update that begins, or has ended: nothing of what was before counts.
    pub fn anew(index: Option<i32>, stable: String) -> Self {
        UpdateState {
            index,
            pauses: Pauses::Clear,
            is_aborted: false,
            promote_full: false,
            stable,
            checkpoint: false,
            abort_because: None,
        }
    }
}

/// What happens to the pauses of a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pauses {
    /// Nothing.
    Keep,
    /// One more, from now on, unless it is there already.
    Add(&'static str),
    /// This one ends.
    Remove(&'static str),
    /// All end.
    Clear,
}

/// The status of a full pass.
pub(super) fn persist(
    objects: &Objects<'_>,
    roles: Roles,
    found: &Findings,
    verdict: UpdateState,
) -> Proposal {
    let mut next = counted(objects, roles, found);
    next.current_step_index = verdict.index;
    next.stable_rs = verdict.stable;
    next.blue_green.scale_up_preview_check_point = verdict.checkpoint;
    let times_out = verdict.abort_because.is_none() && progress::gives_up(objects, roles, &next);
    // A promotion that stands still too long is given up with the rest.
    next.promote_full = verdict.promote_full && !times_out;
    let is_aborted = verdict.is_aborted || times_out;
    (next.pause_conditions, next.controller_pause) = pauses(objects, verdict.pauses, is_aborted);
    note_abort(objects, &mut next, is_aborted);
    if !times_out {
        return finish(objects, roles, next, verdict.abort_because);
    }
    let message = progress::timed_out_message(objects, roles);
    warn(message.clone()).and(finish(objects, roles, next, Some(message)))
}

/// Whether the update is given up, and since when: of every pass that writes a status.
fn note_abort(objects: &Objects<'_>, next: &mut RolloutStatus, is_aborted: bool) {
    next.abort = is_aborted;
    next.aborted_at =
        is_aborted.then(|| objects.status.aborted_at.unwrap_or_else(|| Time::new(objects.now)));
}

/// The status of a pass that only evicts pods: an abort is noted all the same.
pub(super) fn keep(objects: &Objects<'_>) -> Proposal {
    if !objects.is_aborted() {
        return Proposal::default();
    }
    let mut next = RolloutStatus::clone(&objects.status);
    note_abort(objects, &mut next, true);
    next.promote_full = false;
    Proposal::default().note(next)
}

/// The status of a pass that only followed a change of `spec.replicas`.
pub(super) fn refresh_counts(objects: &Objects<'_>, roles: Roles) -> Proposal {
    let counts = counted(objects, roles, &Findings::default());
    // What a person halts does not begin; that it is halted is told all the same.
    let is_noted = objects.has_begun(roles.new) || objects.spec().paused;
    let mut next = RolloutStatus {
        available_replicas: counts.available_replicas,
        hpa_replicas: counts.hpa_replicas,
        ..RolloutStatus::clone(&objects.status)
    };
    if is_noted {
        next.observed_generation = objects.generation_text();
        next.workload_observed_generation = workload::observed_generation(objects);
    }
    // A retry is noted by the pass that judges the update anew.
    // Before the first status nothing tells whether there is an update.
    if objects.status.abort && !objects.status.current_pod_hash.is_empty() {
        let is_aborted = objects.is_aborted();
        note_abort(objects, &mut next, is_aborted);
        next.promote_full = objects.promotes_fully();
        (next.pause_conditions, next.controller_pause) = pauses(objects, Pauses::Keep, is_aborted);
    }
    finish(objects, roles, next, None)
}

/// The status with other conditions, and the phase that follows from them.
pub(super) fn with_conditions(objects: &Objects<'_>, found: Vec<Condition>) -> Proposal {
    let mut next = RolloutStatus::clone(&objects.status);
    next.conditions = found;
    next.observed_generation = objects.generation_text();
    next.workload_observed_generation = workload::observed_generation(objects);
    (next.phase, next.message) = phase_of(objects.spec(), &next);
    Proposal::default().note(next)
}

/// Everything that is counted or derived anew; whatever is not named here disappears.
fn counted(objects: &Objects<'_>, roles: Roles, found: &Findings) -> RolloutStatus {
    let new = &objects.sets[roles.new];
    let sum = |count: fn(&crate::world::ReplicaSetView) -> i32| -> i32 {
        objects.sets.iter().map(|set| count(set)).sum()
    };
    let stored = &objects.status;
    // What a router holds up is judged by the traffic pass.
    let is_routing =
        |reason: &str| reason == event::TRAFFIC_ROUTING_ERROR || verify::is_reason(reason);
    let is_kept = |one: &&Condition| match one.r#type.as_str() {
        condition::INVALID_SPEC => false,
        // That a plugin cannot be called, by its step.
        condition::HELD if plugin::is_reason(&one.reason) => plugin::is_awaited(objects),
        condition::HELD if objects.is_blue_green() => {
            verify::is_reason(&one.reason) && targets::waits(objects, roles)
        }
        condition::HELD => is_routing(&one.reason) && routed::is_routed(objects.spec()),
        _ => true,
    };
    let mut known = Vec::with_capacity(stored.conditions.len() + 1);
    known.extend(stored.conditions.iter().filter(is_kept).cloned());
    let blue_green = blue_green_status(objects, found);
    let active =
        find_stable(&blue_green.active_selector, &objects.sets).map(|at| &objects.sets[at]);
    RolloutStatus {
        blue_green,
        current_pod_hash: new.hash.to_string(),
        current_step_hash: objects.rollout().spec.step_hash.to_string(),
        replicas: sum(|set| set.replicas),
        updated_replicas: new.replicas,
        ready_replicas: active.map_or_else(|| sum(|set| set.ready), |set| set.ready),
        available_replicas: active
            .map_or_else(|| sum(|set| set.reported_available), |set| set.reported_available),
        hpa_replicas: active.map_or_else(|| sum(|set| set.replicas), |set| set.replicas),
        selector: selector_text(objects, active),
        collision_count: stored.collision_count,
        observed_generation: objects.generation_text(),
        workload_observed_generation: workload::observed_generation(objects),
        conditions: known,
        restarted_at: stored.restarted_at,
        alb: stored.alb.clone(),
        albs: stored.albs.clone(),
        canary: CanaryStatus {
            current_step_analysis_run_status: found.step.clone(),
            current_background_analysis_run_status: found.background.clone(),
            current_experiment: found.experiment.clone(),
            stable_ping_pong: stored.canary.stable_ping_pong.clone(),
            weights: stored.canary.weights.clone().filter(|_| routed::is_routed(objects.spec())),
            step_plugin_statuses: plugin::kept(objects),
        },
        ..RolloutStatus::default()
    }
}

/// What the Services of a blue-green rollout select.
fn blue_green_status(objects: &Objects<'_>, found: &Findings) -> BlueGreenStatus {
    let Some(strategy) = &objects.spec().strategy.blue_green else {
        return BlueGreenStatus::default();
    };
    let hash = |name: &str| {
        objects.service(name).map(|service| service.hash_text().to_owned()).unwrap_or_default()
    };
    BlueGreenStatus {
        active_selector: hash(&strategy.active_service),
        preview_selector: hash(&strategy.preview_service),
        pre_promotion_analysis_run_status: found.pre.clone(),
        post_promotion_analysis_run_status: found.post.clone(),
        ..BlueGreenStatus::default()
    }
}

/// The selector an autoscaler uses: only the active pods of a blue-green rollout.
fn selector_text(objects: &Objects<'_>, active: Option<&Arc<ReplicaSetView>>) -> String {
    let (Some(wanted), Some(set)) = (&objects.spec().selector, active) else {
        return objects.rollout().spec.selector.to_string();
    };
    let mut wanted = wanted.clone();
    wanted.match_labels.insert(POD_TEMPLATE_HASH.to_owned(), set.hash.to_string());
    selector::text(&wanted)
}

fn pauses(objects: &Objects<'_>, change: Pauses, is_aborted: bool) -> (Vec<PauseCondition>, bool) {
    let stored = &objects.status;
    let mut kept = stored.pause_conditions.clone();
    let mut is_ours = stored.controller_pause;
    match change {
        Pauses::Keep => {}
        Pauses::Add(reason) => {
            if stored.pause_condition(reason).is_none() {
                let start_time = Time::new(objects.now);
                kept.push(PauseCondition { reason: reason.into(), start_time });
            }
            is_ours = true;
        }
        Pauses::Remove(reason) => kept.retain(|known| known.reason != reason),
        Pauses::Clear => kept.clear(),
    }
    if is_aborted {
        kept.clear();
    }
    // A person's resume leaves controllerPause set; it stands until the pause has taken note.
    let is_resumed = change == Pauses::Keep && !is_aborted && stored.pause_conditions.is_empty();
    let is_ours = is_ours && (!kept.is_empty() || is_resumed && at_pause(objects));
    (kept, is_ours)
}

fn at_pause(objects: &Objects<'_>) -> bool {
    if objects.is_blue_green() {
        return blue_green::awaits_switch(objects);
    }
    objects.current_step().is_some_and(|(_, step)| matches!(step.kind(), StepKind::Pause(_)))
}

/// Conditions, phase and message, and the Events that tell of them.
fn finish(
    objects: &Objects<'_>,
    roles: Roles,
    mut next: RolloutStatus,
    abort_because: Option<String>,
) -> Proposal {
    let is_paused = !next.pause_conditions.is_empty() || objects.spec().paused;
    // Healthy stays healthy; it only does not begin while pods lack the metadata of their role.
    let is_held_back = objects.rollout().status.phase != phase::HEALTHY
        && metadata::is_awaited(objects, roles, &next.stable_rs);
    let is_healthy = is_healthy(objects, &next) && !is_held_back;
    let turned_unhealthy = set_healthy(objects, &mut next, is_healthy && !is_paused);
    let mut told = Proposal::default();
    if next.abort {
        told = set_aborted(objects, roles, &mut next, abort_because);
    }
    told = told.and(set_completed(objects, roles, &mut next));
    let standing = progress::ProgressInput { is_healthy, is_paused, turned_unhealthy };
    told = told.and(progress::set_progressing(objects, roles, &mut next, standing));
    set_available(objects, &mut next);
    set_replica_failure(objects, roles, &mut next);
    (next.phase, next.message) = phase_of(objects.spec(), &next);
    if is_held_back && next.phase == phase::HEALTHY {
        (next.phase, next.message) = (phase::PROGRESSING.into(), METADATA_PENDING.into());
    }
    // As with Argo Rollouts, it is degraded once the plugins have taken back what they did.
    if next.phase == phase::DEGRADED && next.abort && is_being_taken_back(objects) {
        next.phase = phase::PROGRESSING.into();
        next.message = format!("{TAKING_BACK} ({})", next.message);
    }
    next.duration = duration::track(objects, roles, &next);
    told.and(tell_pause(objects, &next)).note(next)
}

/// Are plugins being told of an abort before it is shown as the end? What was shown stays shown.
fn is_being_taken_back(objects: &Objects<'_>) -> bool {
    objects.rollout().status.phase != phase::DEGRADED && plugin::is_taking_back(objects)
}

/// Fully promoted, with exactly the pods asked for, on a generation seen before. A first deploy
/// that is halted before it has a revision in its status is not.
fn is_healthy(objects: &Objects<'_>, next: &RolloutStatus) -> bool {
    let replicas = objects.replicas();
    let steps = i32::try_from(objects.steps().len()).unwrap_or(i32::MAX);
    let is_done = match &objects.spec().strategy.blue_green {
        Some(strategy) => {
            let (active, preview) =
                (&next.blue_green.active_selector, &next.blue_green.preview_selector);
            *active == next.current_pod_hash
                && (strategy.preview_service.is_empty() || *preview == next.current_pod_hash)
        }
        None => {
            (steps == 0 || next.current_step_index == Some(steps))
                && next.replicas == replicas
                && next.stable_rs == next.current_pod_hash
        }
    };
    next.updated_replicas == replicas
        && next.available_replicas == replicas
        && objects.is_observed()
        && !next.current_pod_hash.is_empty()
        && is_done
}

/// Sets the Healthy condition; true if it has just turned false.
fn set_healthy(objects: &Objects<'_>, next: &mut RolloutStatus, is_healthy: bool) -> bool {
    let is_known = next.condition(condition::HEALTHY).is_some();
    if !is_healthy && !is_known {
        return false;
    }
    let was_true = is_true(next, condition::HEALTHY);
    let text = if is_healthy { message::HEALTHY } else { message::UNHEALTHY };
    let statement = Statement {
        r#type: condition::HEALTHY,
        status: truth(is_healthy),
        reason: reason::ROLLOUT_HEALTHY,
        message: format_args!("{text}"),
    };
    conditions::set(&mut next.conditions, objects.now, statement);
    was_true && !is_healthy
}

fn set_aborted(
    objects: &Objects<'_>,
    roles: Roles,
    next: &mut RolloutStatus,
    why: Option<String>,
) -> Proposal {
    let is_known = is_progressing(next, reason::ROLLOUT_ABORTED);
    let revision = objects.sets[roles.new].revision.unwrap_or(0);
    let mut message = format!("Rollout aborted update to revision {revision}");
    if let Some(why) = why {
        message = format!("{message}: {why}");
    }
    let (status, reason) = (condition_status::FALSE, reason::ROLLOUT_ABORTED);
    let words = format_args!("{message}");
    let statement = Statement::progressing(status, reason, words);
    conditions::set(&mut next.conditions, objects.now, statement);
    if is_known { Proposal::default() } else { warn(message) }
}

fn warn(message: String) -> Proposal {
    Proposal::default().tell(EventKind::Warning, reason::ROLLOUT_ABORTED, message)
}

fn set_completed(objects: &Objects<'_>, roles: Roles, next: &mut RolloutStatus) -> Proposal {
    let is_completed = next.is_promoted();
    let known = next.condition(condition::COMPLETED).map(|known| known.status.clone());
    let statement = Statement {
        r#type: condition::COMPLETED,
        status: truth(is_completed),
        reason: reason::ROLLOUT_COMPLETED,
        message: format_args!("{}", reason::ROLLOUT_COMPLETED),
    };
    conditions::set(&mut next.conditions, objects.now, statement);
    if is_completed || known.as_deref() == Some(condition_status::FALSE) {
        return Proposal::default();
    }
    let new = &objects.sets[roles.new];
    let text = format!(
        "Rollout not completed, started update to revision {} ({})",
        new.revision.unwrap_or(0),
        new.hash
    );
    Proposal::default().tell(EventKind::Normal, event::ROLLOUT_NOT_COMPLETED, text)
}

fn set_available(objects: &Objects<'_>, next: &mut RolloutStatus) {
    let is_available = if objects.is_blue_green() {
        let active = find_stable(&next.blue_green.active_selector, &objects.sets);
        active.is_some_and(|at| blue_green::is_saturated(objects, &objects.sets[at]))
    } else {
        next.available_replicas >= objects.replicas()
    };
    let text = if is_available { message::AVAILABLE } else { message::UNAVAILABLE };
    let statement = Statement {
        r#type: condition::AVAILABLE,
        status: truth(is_available),
        reason: reason::AVAILABLE,
        message: format_args!("{text}"),
    };
    conditions::set(&mut next.conditions, objects.now, statement);
}

/// What a ReplicaSet says of pods it cannot make, the new one's words first.
fn set_replica_failure(objects: &Objects<'_>, roles: Roles, next: &mut RolloutStatus) {
    let new = objects.sets[roles.new].failure();
    let Some(failure) = new.or_else(|| objects.sets.iter().find_map(|set| set.failure())) else {
        return conditions::remove(&mut next.conditions, condition::REPLICA_FAILURE);
    };
    let known = next.condition(condition::REPLICA_FAILURE);
    if known.is_some_and(|known| known.reason == failure.reason && known.message == failure.message)
    {
        return;
    }
    conditions::remove(&mut next.conditions, condition::REPLICA_FAILURE);
    next.conditions.push(Condition {
        r#type: condition::REPLICA_FAILURE.into(),
        status: condition_status::TRUE.into(),
        last_update_time: Time::new(objects.now),
        last_transition_time: Time::new(objects.now),
        reason: failure.reason.clone(),
        message: failure.message.clone(),
    });
}

/// Pauses that begin or end by our own doing are told; a person's resume is not.
fn tell_pause(objects: &Objects<'_>, next: &RolloutStatus) -> Proposal {
    let had = !objects.status.pause_conditions.is_empty();
    match next.pause_conditions.first() {
        Some(first) if !had => {
            let text = format!("Rollout is paused ({})", first.reason);
            Proposal::default().tell(EventKind::Normal, reason::ROLLOUT_PAUSED, text)
        }
        None if had && !next.abort => {
            let text = "Rollout is resumed".to_owned();
            Proposal::default().tell(EventKind::Normal, reason::ROLLOUT_RESUMED, text)
        }
        _ => Proposal::default(),
    }
}

/// The phase, and why: the first of these that applies.
pub fn phase_of(spec: &RolloutSpec, next: &RolloutStatus) -> (String, String) {
    let because = |phase: &'static str, message: &'static str| (phase.into(), message.into());
    for known in &next.conditions {
        let is_degraded = known.r#type == condition::INVALID_SPEC
            || known.reason == reason::ROLLOUT_ABORTED
            || known.reason == reason::PROGRESS_DEADLINE_EXCEEDED;
        if is_degraded {
            let message = format!("{}: {}", known.reason, known.message);
            return (phase::DEGRADED.into(), message);
        }
    }
    if spec.paused {
        return because(phase::PAUSED, "manually paused");
    }
    // What a person must decide comes before a pause that would end by itself.
    let undecided = [pause::INCONCLUSIVE_ANALYSIS_RUN, pause::INCONCLUSIVE_EXPERIMENT];
    let undecided = undecided.into_iter().find_map(|reason| next.pause_condition(reason));
    if let Some(first) = undecided.or(next.pause_conditions.first()) {
        return (phase::PAUSED.into(), first.reason.clone());
    }
    if spec.restart_at.is_some() && spec.restart_at != next.restarted_at {
        return because(phase::PROGRESSING, "rollout is restarting");
    }
    if next.updated_replicas < spec.replicas_or_default() {
        return because(phase::PROGRESSING, "more replicas need to be updated");
    }
    if next.available_replicas < next.updated_replicas {
        return because(phase::PROGRESSING, "updated replicas are still becoming available");
    }
    let is_promoted = next.is_promoted();
    if spec.strategy.blue_green.is_some() {
        let active = &next.blue_green.active_selector;
        if active.is_empty() || *active != next.current_pod_hash {
            return because(phase::PROGRESSING, "active service cutover pending");
        }
        if !is_promoted {
            let message = if runs::awaits_post_promotion(spec, next) {
                "waiting for analysis to complete"
            } else {
                "waiting for post-promotion verification to complete"
            };
            return because(phase::PROGRESSING, message);
        }
        return because(phase::HEALTHY, "");
    }
    if next.replicas > next.updated_replicas && !routed::is_routed(spec) {
        return because(phase::PROGRESSING, "old replicas are pending termination");
    }
    if !is_promoted {
        return because(phase::PROGRESSING, "waiting for all steps to complete");
    }
    because(phase::HEALTHY, "")
}

/// Does the update wait for a person, a duration or a verdict, not for pods?
pub(super) fn is_indefinite(objects: &Objects<'_>, next: &RolloutStatus) -> bool {
    let at_wait = objects.current_step().is_some_and(|(_, step)| {
        matches!(step.kind(), StepKind::Pause(_) | StepKind::Analysis(_) | StepKind::Experiment(_))
    });
    is_true(next, condition::PAUSED)
        || at_wait
        || next.pause_condition(pause::CANARY_PAUSE_STEP).is_some()
}
