//! What does one pass over a canary want? Calls the stages in the contract's order.

use std::ops::ControlFlow;

use gradus_api::names::{event, pause, reason, value};
use gradus_api::rollout::{CanaryStep, RolloutStatus, StepKind};
use jiff::SignedDuration;

use super::delay::{self, without_deadline};
use super::draft::{Draft, Passed};
use super::metadata;
use super::objects::Objects;
use super::plan::{Proposal, Room};
use super::plugin;
use super::replica_sets::{Roles, resize};
use super::restart;
use super::rollback::{self, Rollback};
use super::runs::{self, Findings, JudgedRuns};
use super::scale::{self, Side};
use super::status::{self, Pauses, UpdateState};
use super::{experiments, history, routed, services, step, weights};
use crate::decision::EventKind;

/// Sizes follow the new number of replicas; nothing else moves.
pub(super) fn scale_only(draft: Draft<'_>, roles: Roles) -> Passed<'_> {
    let is_begun = draft.objects.has_begun(roles.new);
    let is_paused = draft.objects.spec().paused;
    let draft = match roles.separate_stable() {
        _ if is_paused => draft,
        // A verdict is about an update that has begun, not about the next one. A bad one that is not
        // stored yet makes the new revision no larger either.
        _ if is_begun && (is_undecided(&draft.objects) || is_condemned(&draft.objects)) => {
            resize_without_new(draft, roles)
        }
        // A new template whose update has not begun stays at its size: its weight is not known yet.
        // The note of the new one follows all the same, or this would never end.
        Some(stable) if !is_begun => draft
            .then(|objects| resize(objects, stable, stable_within(objects, stable)))
            .then(|objects| resize(objects, roles.new, objects.sets[roles.new].size))
            .with_size(),
        _ if routed::is_routed(draft.objects.spec()) => resize_next(draft, roles),
        stable => {
            let sizes = next_sizes(&draft.objects, roles);
            draft
                .then(|objects| {
                    stable.map(|at| resize(objects, at, sizes.stable)).unwrap_or_default()
                })
                .then(|objects| resize(objects, roles.new, sizes.new))
        }
    };
    draft.then(|objects| status::refresh_counts(objects, roles)).passed()
}

/// All replicas for stable, as far as the surge has room for them.
fn stable_within(objects: &Objects<'_>, stable: usize) -> i32 {
    if routed::is_routed(objects.spec()) {
        return objects.replicas();
    }
    let goal = goal(objects);
    let sizes = objects.sets.iter().map(|set| set.size);
    let room = goal.replicas.saturating_add(goal.surge) - sizes.fold(0, i32::saturating_add);
    goal.replicas.min(objects.sets[stable].size + room.max(0))
}

/// Is this another template, or are these other steps, than the status is about?
fn is_changed(objects: &Objects<'_>, roles: Roles) -> bool {
    let status = &objects.status;
    let spec = &objects.rollout().spec;
    let is_known_step_hash = status.current_step_hash == *spec.step_hash
        || spec.older_step_hashes.iter().any(|older| status.current_step_hash == *older);
    let is_other_template = !status.current_pod_hash.is_empty()
        && status.current_pod_hash != *objects.sets[roles.new].hash;
    status.current_step_hash.is_empty() || !is_known_step_hash || is_other_template
}

/// The update starts over: nothing of the one before counts any more.
fn reset(draft: Draft<'_>, roles: Roles) -> Passed<'_> {
    let objects = &draft.objects;
    let count = i32::try_from(objects.steps().len()).unwrap_or(i32::MAX);
    let new = &objects.sets[roles.new];
    let is_recent = rollback::classify(objects, roles) == Rollback::WithinWindow;
    let skipped = if *new.hash == *objects.status.stable_rs {
        Some("Rollback to stable ReplicaSets")
    } else if is_recent && new.size > 0 {
        Some("Rollback to active ReplicaSets within RollbackWindow")
    } else {
        None
    };
    let none = Proposal::default();
    let (index, told) = match (count, skipped) {
        (0, _) => (None, none),
        // Without pods it skips the steps all the same; only nobody is told.
        (_, None) => (Some(if is_recent { count } else { 0 }), none),
        (_, Some(why)) => {
            (Some(count), none.tell(EventKind::Normal, event::SKIP_STEPS, why.into()))
        }
    };
    let verdict = UpdateState::anew(index, objects.status.stable_rs.clone());
    draft.with(told).then(plugin::forget).end(roles, Findings::default(), verdict)
}

/// The ordinary pass, in the contract's order: restart, metadata, history, Services, traffic, the
/// Experiment and the analyses, sizes, the pause, the plugin, and what all that means for the steps.
pub(super) fn update(draft: Draft<'_>, roles: Roles) -> Passed<'_> {
    if is_changed(&draft.objects, roles) {
        return reset(draft, roles);
    }
    let (planned, creation) = (draft.plan.changes.len(), draft.plan.creation);
    let draft = draft.then(|objects| restart::apply(objects, creation, roles));
    if draft.plan.changes.len() != planned {
        // Pods are on their way out: no size changes beside that.
        return draft.then(status::keep).passed();
    }
    let draft = metadata::apply(draft, roles).then(|objects| history::clean_up(objects, roles));
    let draft = match weights::steer(switch_services(draft, roles), roles) {
        ControlFlow::Continue(draft) => draft,
        // Sizes and steps rest on the traffic, so they wait for it.
        ControlFlow::Break(draft) => {
            let JudgedRuns { proposal, found } = runs::as_known(&draft.objects, roles);
            let kept = kept(&draft.objects, roles, &found, found.pauses(Pauses::Keep));
            return draft.with(proposal).end(roles, found, kept);
        }
    };
    let experiment = experiments::of_canary(&draft.objects, roles);
    let JudgedRuns { proposal, found } = runs::of_canary(&draft.objects, roles, experiment);
    let draft = draft.with(proposal);
    if found.holds() {
        let draft = if found.is_fatal() { draft } else { resize_undecided(draft, roles) };
        let pauses = found.pauses(Pauses::Keep);
        return conclude(draft, roles, found, pauses);
    }
    let before = draft.plan.resizes;
    let is_halted = is_undecided(&draft.objects) || draft.objects.spec().paused;
    let draft = match is_halted {
        true => resize_undecided(draft, roles),
        false => resize_next(draft, roles),
    };
    if draft.plan.room == Room::Exceeded {
        return Passed { draft, found }; // Nobody acts on this pass, nor reads what it would say.
    }
    let draft = draft.then(wait_for_pause);
    if draft.plan.resizes != before {
        return conclude(draft, roles, found, Pauses::Keep);
    }
    let pauses = pause_step(&draft.objects);
    let draft = plugin::apply(draft);
    let abort_because = plugin::failure(&draft.objects);
    conclude(draft, roles, Findings { abort_because, ..found }, pauses)
}

/// Looks again when the current pause ends by itself.
fn wait_for_pause(objects: &Objects<'_>) -> Proposal {
    match pause_end(objects) {
        Some(end) if objects.now < end => Proposal::default().wake(end),
        _ => Proposal::default(),
    }
}

/// Has a run ended without a verdict, so that a person must decide about the new revision?
fn is_undecided(objects: &Objects<'_>) -> bool {
    objects.status.pause_condition(pause::INCONCLUSIVE_ANALYSIS_RUN).is_some()
}

/// While a person must decide, the new revision keeps its size and stable loses nothing; older
/// revisions go as in any other update, for which stable may have to grow.
fn resize_undecided(draft: Draft<'_>, roles: Roles) -> Draft<'_> {
    if draft.objects.spec().paused || !is_undecided(&draft.objects) {
        return draft;
    }
    resize_without_new(draft, roles)
}

/// Has a run or an Experiment found the new revision bad, and does the status not say so yet?
fn is_condemned(objects: &Objects<'_>) -> bool {
    let is_bad = runs::is_condemned(objects) || experiments::is_condemned(objects);
    is_bad && !objects.status.abort && !objects.promotes_fully()
}

/// Stable grows and older revisions go; the new one keeps its size.
fn resize_without_new(draft: Draft<'_>, roles: Roles) -> Draft<'_> {
    let draft = draft
        .then(|objects| {
            let Some(stable) = roles.separate_stable() else { return Proposal::default() };
            let wanted = next_sizes(objects, roles).stable.max(objects.sets[stable].size);
            resize(objects, stable, wanted)
        })
        .then(|objects| resize(objects, roles.new, objects.sets[roles.new].size));
    drain(draft, roles)
}

/// Resizes stable, else new, else the older ReplicaSets: the first that changes.
fn resize_next(draft: Draft<'_>, roles: Roles) -> Draft<'_> {
    let abort_delay = routed::abort_delay(&draft.objects, roles);
    let wanted_again = [Some(roles.new).filter(|_| abort_delay.is_none()), roles.separate_stable()];
    let draft = draft.then(|objects| {
        let both = wanted_again.into_iter().flatten();
        both.map(|at| without_deadline(objects, at)).collect()
    });
    let before = draft.plan.resizes;
    let next = next_sizes(&draft.objects, roles);
    let draft = match roles.separate_stable() {
        Some(stable) => resize_allowed(draft, roles, stable, next.stable),
        None => draft,
    };
    if draft.plan.resizes != before {
        return draft;
    }
    let draft = match (abort_delay, roles.stable) {
        (Some(delay), Some(stable)) => {
            draft.then(|objects| delay::after_abort(objects, roles.new, stable, delay))
        }
        _ => resize_allowed(draft, roles, roles.new, next.new),
    };
    if draft.plan.resizes != before {
        return draft.with_size();
    }
    let draft = drain(draft, roles);
    // A new ReplicaSet waits for the room that older ones have yet to make.
    if draft.plan.resizes != before { draft.with_size() } else { draft }
}

/// Gives a ReplicaSet the wanted size, as far as its traffic lets it.
fn resize_allowed(draft: Draft<'_>, roles: Roles, at: usize, wanted: i32) -> Draft<'_> {
    let size = routed::allowed(&draft.objects, &draft.plan, roles, at, wanted);
    draft.then(|objects| resize(objects, at, size))
}

/// Takes pods from older ReplicaSets.
fn drain(draft: Draft<'_>, roles: Roles) -> Draft<'_> {
    if routed::is_routed(draft.objects.spec()) {
        routed::drain_others(draft, roles)
    } else {
        drain_others(draft, roles)
    }
}

/// Stable and canary Service follow their revisions once those have pods; after an abort both lead
/// to stable, the canary Service of a routed rollout when its traffic has gone.
fn switch_services(draft: Draft<'_>, roles: Roles) -> Draft<'_> {
    switch_ping_pong(draft, roles)
        .then(|objects| {
            let canary = objects.canary();
            match roles.stable {
                Some(stable) => ensure(objects, roles, &canary.stable_service, stable),
                None => Proposal::default(),
            }
        })
        // Somebody took the stable ReplicaSet away: whoever comes is sent to the pods that are left,
        // once there are enough for all.
        .then(|objects| take_over(objects, roles, &objects.canary().stable_service))
        .then(|objects| take_over(objects, roles, weights::backends(objects).stable))
        .then(|objects| {
            let service = &objects.canary().canary_service;
            let is_aborted = objects.status.abort && !objects.is_promoted();
            match roles.stable {
                Some(_) if is_aborted && routed::is_routed(objects.spec()) => Proposal::default(),
                Some(stable) if is_aborted => ensure(objects, roles, service, stable),
                _ if weights::rolling_back(objects, roles).is_some() => Proposal::default(),
                _ => ensure(objects, roles, service, roles.new),
            }
        })
}

/// Points a Service at the new revision where that is the only one left.
fn take_over(objects: &Objects<'_>, roles: Roles, name: &str) -> Proposal {
    match roles.stable.is_none() && is_alone(objects, roles) {
        true => ensure(objects, roles, name, roles.new),
        false => Proposal::default(),
    }
}

/// Is there a stable revision without a ReplicaSet, and can the new one serve all?
fn is_alone(objects: &Objects<'_>, roles: Roles) -> bool {
    !objects.status.stable_rs.is_empty()
        && objects.sets[roles.new].available() >= objects.replicas()
}

/// Of two Services that take turns, the canary side leads to the new revision in mid-update, pods or
/// not. The stable side is written once: while it selects every revision.
fn switch_ping_pong(draft: Draft<'_>, roles: Roles) -> Draft<'_> {
    if draft.objects.canary().ping_pong.is_none() || draft.objects.is_promoted() {
        return draft;
    }
    let sides = weights::backends(&draft.objects);
    draft
        .then(|objects| {
            let service = objects.service(sides.stable);
            let selects_all = service.is_some_and(|service| service.hash.is_none());
            match roles.separate_stable() {
                Some(stable) if selects_all => ensure(objects, roles, sides.stable, stable),
                _ => Proposal::default(),
            }
        })
        .then(|objects| match weights::may_move(objects, roles, sides.canary, roles.new) {
            true => services::switch(objects, sides.canary, &objects.sets[roles.new].hash),
            false => Proposal::default(),
        })
}

/// Points a Service at a revision that has pods: all of them where the Service is not ours yet, and
/// enough for the traffic that comes along.
fn ensure(objects: &Objects<'_>, roles: Roles, name: &str, at: usize) -> Proposal {
    let Some(service) = objects.service(name) else { return Proposal::default() };
    let set = &objects.sets[at];
    if *service.hash_text() == *set.hash {
        return Proposal::default();
    }
    let is_complete = set.size > 0 && set.available() >= set.size;
    let may_switch = if service.managed_by.is_some() { set.available() > 0 } else { is_complete };
    match may_switch && weights::may_move(objects, roles, name, at) {
        true => services::switch(objects, name, &set.hash),
        false => Proposal::default(),
    }
}

/// The sizes that new and stable may have next.
pub(super) fn next_sizes(objects: &Objects<'_>, roles: Roles) -> scale::Sizes {
    if routed::is_routed(objects.spec()) {
        return routed::sizes(objects, roles);
    }
    let side =
        |at: usize| Side { size: objects.sets[at].size, available: objects.sets[at].available() };
    let others = roles.others(objects).map(|at| objects.sets[at].size).fold(0, i32::saturating_add);
    scale::next(&goal(objects), Some(side(roles.new)), roles.separate_stable().map(side), others)
}

/// What the arithmetic aims at.
pub(super) fn goal(objects: &Objects<'_>) -> scale::SizeGoal {
    let canary = objects.canary();
    let replicas = objects.replicas();
    let (surge, unavailable) = scale::resolve_limits(
        replicas,
        &canary.max_surge_or_default(),
        &canary.max_unavailable_or_default(),
    );
    let max_weight = canary.max_weight();
    scale::SizeGoal {
        replicas,
        weight: weight(objects, max_weight),
        max_weight,
        surge,
        unavailable,
    }
}

/// The share of pods that the new ReplicaSet should have now.
fn weight(objects: &Objects<'_>, max_weight: i32) -> i32 {
    let status = &objects.status;
    let is_stable = status.stable_rs.is_empty() || status.current_pod_hash == status.stable_rs;
    if objects.promotes_fully() || is_stable { max_weight } else { set_weight(objects) }
}

/// The weight that the steps ask for now: the nearest up to the current one.
pub(super) fn set_weight(objects: &Objects<'_>) -> i32 {
    if objects.status.abort {
        return 0;
    }
    let Some((index, _)) = objects.current_step() else {
        return objects.canary().max_weight();
    };
    objects.steps()[..=index].iter().rev().find_map(|step| step.set_weight).unwrap_or(0)
}

/// Older ReplicaSets give up what is not available, then what the others can do without.
fn drain_others(draft: Draft<'_>, roles: Roles) -> Draft<'_> {
    let sets = &draft.objects.sets;
    let active: Vec<usize> = roles.others(&draft.objects).filter(|at| sets[*at].size > 0).collect();
    let is_behind = |at: &usize| sets[*at].reported_available > sets[*at].size;
    if active.is_empty() || active.iter().any(is_behind) {
        return draft;
    }
    draft
        .then(|objects| {
            active.iter().map(|at| resize(objects, *at, objects.sets[*at].available())).collect()
        })
        .then(|objects| drain_surplus(objects, &active))
}

/// Takes pods from these, newest first, as far as enough are left.
fn drain_surplus(objects: &Objects<'_>, active: &[usize]) -> Proposal {
    let goal = goal(objects);
    let available = objects.sets.iter().map(|set| set.available()).fold(0, i32::saturating_add);
    let mut budget = available.saturating_sub(goal.replicas - goal.unavailable);
    let mut newest_first = active.to_vec();
    newest_first.sort_by_key(|at| std::cmp::Reverse(objects.sets[*at].revision));
    let mut drained = Proposal::default();
    for at in newest_first {
        if budget <= 0 {
            break;
        }
        let size = objects.sets[at].size;
        let left = (size - budget).max(0);
        budget -= size - left;
        drained = drained.and(resize(objects, at, left));
    }
    drained
}

/// At a pause step that has not begun: it begins, unless a person has just ended it.
fn pause_step(objects: &Objects<'_>) -> Pauses {
    let at_pause =
        objects.current_step().is_some_and(|(_, step)| matches!(step.kind(), StepKind::Pause(_)));
    let status = &objects.status;
    let may_begin = !objects.spec().paused && !status.promote_full && !status.abort;
    let has_begun = status.pause_condition(pause::CANARY_PAUSE_STEP).is_some();
    if at_pause && may_begin && !has_begun && !status.controller_pause && is_updating(objects) {
        Pauses::Add(pause::CANARY_PAUSE_STEP)
    } else {
        Pauses::Keep
    }
}

/// Is there an update at all? The first deploy and a promoted rollout have no steps to take.
fn is_updating(objects: &Objects<'_>) -> bool {
    let status = &objects.status;
    !status.stable_rs.is_empty() && status.stable_rs != status.current_pod_hash
}

/// When the current pause step ends by itself.
pub(super) fn pause_end(objects: &Objects<'_>) -> Option<jiff::Timestamp> {
    let (_, step) = objects.current_step()?;
    let StepKind::Pause(pause_step) = step.kind() else { return None };
    let seconds = pause_step.duration.as_ref()?.seconds()?;
    let began = objects.status.pause_condition(pause::CANARY_PAUSE_STEP)?.start_time;
    began.timestamp().checked_add(SignedDuration::from_secs(i64::from(seconds))).ok()
}

/// What the pass means for the update: promoted, aborted, a step further, or as before.
fn conclude(draft: Draft<'_>, roles: Roles, found: Findings, pauses: Pauses) -> Passed<'_> {
    let objects = &draft.objects;
    let kept = kept(objects, roles, &found, pauses);
    if let Some(why) = step::promotion(objects, roles, &found, kept.is_aborted) {
        let draft = promote(draft, roles, &found, &why);
        return Passed { draft, found };
    }
    let stays = kept.is_aborted
        || is_fast(objects, roles)
        || kept.pauses != Pauses::Keep
        || !step::is_complete(objects, roles, &found);
    let concluded = match objects.current_step() {
        Some((index, current)) if !stays => {
            complete_step(objects, roles, &found, kept, (index, current))
        }
        _ => status::persist(objects, roles, &found, kept),
    };
    Passed { draft: draft.with(concluded), found }
}

/// Everything as before, but for what an abort or a full promotion takes back.
fn kept(objects: &Objects<'_>, roles: Roles, found: &Findings, pauses: Pauses) -> UpdateState {
    let status = &objects.status;
    let is_fast = is_fast(objects, roles);
    let abort_because = found.abort_because.clone();
    let is_aborted = status.abort && !objects.is_promoted() && !is_fast || abort_because.is_some();
    let count = i32::try_from(objects.steps().len()).unwrap_or(i32::MAX);
    let index = match (is_aborted, is_fast) {
        (true, _) => 0,
        (_, true) => count,
        _ => status.current_step_index.unwrap_or(0),
    };
    UpdateState {
        index: (count > 0).then_some(index),
        pauses: if is_fast { Pauses::Clear } else { pauses },
        is_aborted,
        promote_full: objects.promotes_fully(),
        stable: status.stable_rs.clone(),
        checkpoint: false,
        abort_because,
    }
}

/// Are the steps skipped, by a person's wish or on a way back?
fn is_fast(objects: &Objects<'_>, roles: Roles) -> bool {
    let is_aborted = objects.status.abort && !objects.is_promoted();
    let is_back = rollback::classify(objects, roles) == Rollback::WithinWindow;
    objects.promotes_fully() || is_back && is_updating(objects) && !is_aborted
}

/// The new ReplicaSet becomes the stable one.
fn promote<'w>(draft: Draft<'w>, roles: Roles, found: &Findings, why: &str) -> Draft<'w> {
    let count = i32::try_from(draft.objects.steps().len()).unwrap_or(i32::MAX);
    let stable = draft.objects.sets[roles.new].hash.to_string();
    let verdict = UpdateState::anew((count > 0).then_some(count), stable.clone());
    draft
        .then(|objects| match objects.status.stable_rs != stable {
            true => completed(objects, roles, why),
            false => Proposal::default(),
        })
        .then(|objects| status::persist(objects, roles, found, verdict))
}

/// The update is complete: it is told, and two Services that take turns change their roles.
fn completed(objects: &Objects<'_>, roles: Roles, why: &str) -> Proposal {
    let new = &objects.sets[roles.new];
    let revision = new.revision.unwrap_or(0);
    let text = format!("Rollout completed update to revision {revision} ({}): {why}", new.hash);
    let told = Proposal::default().tell(EventKind::Normal, reason::ROLLOUT_COMPLETED, text);
    if objects.canary().ping_pong.is_none() {
        return told;
    }
    let mut status = RolloutStatus::clone(&objects.status);
    let side = &mut status.canary.stable_ping_pong;
    *side = if side == value::PING { value::PONG } else { value::PING }.to_owned();
    told.note(status)
}

fn complete_step(
    objects: &Objects<'_>,
    roles: Roles,
    found: &Findings,
    kept: UpdateState,
    (index, step): (usize, &CanaryStep),
) -> Proposal {
    let next = i32::try_from(index + 1).unwrap_or(i32::MAX);
    let text = format!("Rollout step {next}/{} completed ({})", objects.steps().len(), step.text());
    // Its verdict is in the index now.
    let found = Findings { step: None, experiment: String::new(), ..found.clone() };
    let pauses = Pauses::Remove(pause::CANARY_PAUSE_STEP);
    let verdict = UpdateState { index: Some(next), pauses, ..kept };
    Proposal::default()
        .tell(EventKind::Normal, event::ROLLOUT_STEP_COMPLETED, text)
        .and(status::persist(objects, roles, &found, verdict))
}
