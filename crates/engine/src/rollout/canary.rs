//! What does one pass over a canary want? Calls the stages in the contract's order.

use std::ops::ControlFlow;
use std::sync::Arc;

use gradus_api::names::{event, pause, reason, value};
use gradus_api::rollout::StepKind;
use jiff::SignedDuration;

use super::delay::{self, without_deadline};
use super::draft::{Creation, Draft};
use super::metadata;
use super::plugin;
use super::replica_sets::Roles;
use super::restart;
use super::rollback::{self, Rollback};
use super::scale::{self, Side};
use super::status::{self, Pauses, UpdateState};
use super::{experiments, history, routed, runs, step, weights};
use crate::decision::{After, EventKind};

/// Sizes follow the new number of replicas; nothing else moves.
pub(super) fn scale_only(draft: Draft<'_>, roles: Roles) -> Draft<'_> {
    let is_begun = draft.has_begun(roles.new);
    // A verdict that is missing is about an update that has begun, not about the next one.
    if draft.spec().paused {
        return status::refresh_counts(draft, roles);
    }
    if is_begun && is_undecided(&draft) {
        return status::refresh_counts(resize_undecided(draft, roles), roles);
    }
    // A new template whose update has not begun stays at its size: its weight is not known yet.
    let draft = match (is_begun, roles.separate_stable()) {
        (false, Some(stable)) => {
            let (whole, size) = (stable_within(&draft, stable), draft.sets[roles.new].size);
            // The note of the new one follows all the same, or this would never end.
            let mut draft = draft.resize(stable, whole).resize(roles.new, size);
            if draft.creation == Creation::Unsized {
                draft.creation = Creation::Sized;
            }
            draft
        }
        _ if routed::is_routed(draft.spec()) => resize(draft, roles),
        _ => {
            let sizes = next_sizes(&draft, roles);
            let draft = match roles.separate_stable() {
                Some(stable) => draft.resize(stable, sizes.stable),
                None => draft,
            };
            draft.resize(roles.new, sizes.new)
        }
    };
    status::refresh_counts(draft, roles)
}

/// All replicas for stable, as far as the surge has room for them.
fn stable_within(draft: &Draft<'_>, stable: usize) -> i32 {
    if routed::is_routed(draft.spec()) {
        return draft.replicas();
    }
    let goal = goal(draft);
    let sizes = draft.sets.iter().map(|set| set.size);
    let room = goal.replicas.saturating_add(goal.surge) - sizes.fold(0, i32::saturating_add);
    goal.replicas.min(draft.sets[stable].size + room.max(0))
}

/// Is this another template, or are these other steps, than the status is about?
fn is_changed(draft: &Draft<'_>, roles: Roles) -> bool {
    let status = &draft.status;
    let spec = &draft.rollout().spec;
    let is_known_step_hash = status.current_step_hash == *spec.step_hash
        || spec.older_step_hashes.iter().any(|older| status.current_step_hash == *older);
    let is_other_template = !status.current_pod_hash.is_empty()
        && status.current_pod_hash != *draft.sets[roles.new].hash;
    status.current_step_hash.is_empty() || !is_known_step_hash || is_other_template
}

/// The update starts over: nothing of the one before counts any more.
fn reset<'w>(draft: Draft<'w>, roles: Roles) -> Draft<'w> {
    let count = i32::try_from(draft.steps().len()).unwrap_or(i32::MAX);
    let new = Arc::clone(&draft.sets[roles.new]);
    let is_recent = rollback::classify(&draft, roles) == Rollback::WithinWindow;
    let skipped = if *new.hash == *draft.status.stable_rs {
        Some("Rollback to stable ReplicaSets")
    } else if is_recent && new.size > 0 {
        Some("Rollback to active ReplicaSets within RollbackWindow")
    } else {
        None
    };
    let mut draft = draft;
    let index = match (count, skipped) {
        (0, _) => None,
        // Without pods it skips the steps all the same; only nobody is told.
        (_, None) => Some(if is_recent { count } else { 0 }),
        (_, Some(why)) => {
            draft = draft.event(EventKind::Normal, event::SKIP_STEPS, why.into(), After::Status);
            Some(count)
        }
    };
    draft = plugin::forget(draft);
    let verdict = UpdateState {
        index,
        pauses: Pauses::Clear,
        is_aborted: false,
        promote_full: false,
        stable: draft.status.stable_rs.clone(),
        abort_because: None,
    };
    status::persist(draft, roles, verdict)
}

/// The ordinary pass: restart, metadata, Services, traffic, analysis, sizes, then the pause, then the
/// steps.
pub(super) fn update(draft: Draft<'_>, roles: Roles) -> Draft<'_> {
    if is_changed(&draft, roles) {
        return reset(draft, roles);
    }
    let planned = draft.changes.len();
    let draft = restart::apply(draft, roles);
    if draft.changes.len() != planned {
        return status::keep(draft); // Pods are on their way out: no size changes beside that.
    }
    let draft = metadata::apply(draft, roles);
    let draft = switch_services(history::clean_up(draft, roles), roles);
    let draft = match weights::steer(draft, roles) {
        ControlFlow::Continue(draft) => draft,
        // Sizes and steps rest on the traffic, so they wait for it.
        ControlFlow::Break(draft) => {
            let draft = runs::as_known(draft, roles);
            let kept = kept(&draft, roles, draft.found.pause.map_or(Pauses::Keep, Pauses::Add));
            return status::persist(draft, roles, kept);
        }
    };
    let draft = runs::of_canary(experiments::of_canary(draft, roles), roles);
    if draft.found.holds() {
        let draft = if draft.found.is_fatal() { draft } else { resize_undecided(draft, roles) };
        let pauses = draft.found.pause.map_or(Pauses::Keep, Pauses::Add);
        return conclude(draft, roles, pauses);
    }
    let before = draft.resizes;
    let draft = match is_undecided(&draft) || draft.spec().paused {
        true => resize_undecided(draft, roles),
        false => resize(draft, roles),
    };
    if draft.is_overfull {
        return draft; // Nobody acts on this pass, nor reads what it would say.
    }
    let has_scaled = draft.resizes != before;
    let pauses = if has_scaled { Pauses::Keep } else { pause_step(&draft) };
    let draft = match pause_end(&draft) {
        Some(end) if draft.now < end => draft.wake(end),
        _ => draft,
    };
    let draft = if has_scaled { draft } else { plugin::apply(draft) };
    conclude(draft, roles, pauses)
}

/// Has a run ended without a verdict, so that a person must decide about the new revision?
fn is_undecided(draft: &Draft<'_>) -> bool {
    draft.status.pause_condition(pause::INCONCLUSIVE_ANALYSIS_RUN).is_some()
}

/// While a person must decide, the new revision keeps its size and stable loses nothing; older
/// revisions go as in any other update, for which stable may have to grow.
fn resize_undecided(draft: Draft<'_>, roles: Roles) -> Draft<'_> {
    if draft.spec().paused || !is_undecided(&draft) {
        return draft;
    }
    let size = draft.sets[roles.new].size;
    let draft = match roles.separate_stable() {
        Some(stable) => {
            let wanted = next_sizes(&draft, roles).stable.max(draft.sets[stable].size);
            draft.resize(stable, wanted)
        }
        None => draft,
    };
    drain(draft.resize(roles.new, size), roles)
}

/// Resizes stable, else new, else the older ReplicaSets: the first that changes.
fn resize(draft: Draft<'_>, roles: Roles) -> Draft<'_> {
    let abort_delay = routed::abort_delay(&draft, roles);
    let draft = [Some(roles.new).filter(|_| abort_delay.is_none()), roles.separate_stable()]
        .into_iter()
        .flatten()
        .fold(draft, without_deadline);
    let before = draft.resizes;
    let next = next_sizes(&draft, roles);
    let draft = match roles.separate_stable() {
        Some(stable) => {
            let size = routed::allowed(&draft, roles, stable, next.stable);
            draft.resize(stable, size)
        }
        None => draft,
    };
    if draft.resizes != before {
        return draft;
    }
    let draft = match (abort_delay, roles.stable) {
        (Some(delay), Some(stable)) => delay::after_abort(draft, roles.new, stable, delay),
        _ => {
            let size = routed::allowed(&draft, roles, roles.new, next.new);
            draft.resize(roles.new, size)
        }
    };
    if draft.resizes != before {
        return sized(draft);
    }
    let draft = drain(draft, roles);
    // A new ReplicaSet waits for the room that older ones have yet to make.
    if draft.resizes != before { sized(draft) } else { draft }
}

/// Takes pods from older ReplicaSets.
fn drain(draft: Draft<'_>, roles: Roles) -> Draft<'_> {
    if routed::is_routed(draft.spec()) {
        routed::drain_others(draft, roles)
    } else {
        drain_others(draft, roles)
    }
}

/// A created ReplicaSet has got its size.
fn sized(draft: Draft<'_>) -> Draft<'_> {
    let mut draft = draft;
    if draft.creation != Creation::None {
        draft.creation = Creation::Sized;
    }
    draft
}

/// Stable and canary Service follow their revisions once those have pods; after an abort both lead
/// to stable, the canary Service of a routed rollout when its traffic has gone.
fn switch_services<'w>(draft: Draft<'w>, roles: Roles) -> Draft<'w> {
    let canary = draft.canary();
    let is_aborted = draft.status.abort && !draft.is_promoted();
    let draft = switch_ping_pong(draft, roles);
    let draft = match roles.stable {
        Some(stable) => ensure(draft, roles, &canary.stable_service, stable),
        // Somebody took the stable ReplicaSet away: whoever comes is sent to the pods that are left,
        // once there are enough for all.
        None if is_alone(&draft, roles) => {
            let names = [canary.stable_service.as_str(), weights::backends(&draft).stable];
            names.iter().fold(draft, |draft, name| ensure(draft, roles, name, roles.new))
        }
        None => draft,
    };
    match roles.stable {
        Some(_) if is_aborted && routed::is_routed(draft.spec()) => draft,
        Some(stable) if is_aborted => ensure(draft, roles, &canary.canary_service, stable),
        _ if weights::rolling_back(&draft, roles).is_some() => draft,
        _ => ensure(draft, roles, &canary.canary_service, roles.new),
    }
}

/// Is there a stable revision without a ReplicaSet, and can the new one serve all?
fn is_alone(draft: &Draft<'_>, roles: Roles) -> bool {
    !draft.status.stable_rs.is_empty() && draft.sets[roles.new].available() >= draft.replicas()
}

/// Of two Services that take turns, the canary side leads to the new revision in mid-update, pods or
/// not. The stable side is written once: while it selects every revision.
fn switch_ping_pong<'w>(draft: Draft<'w>, roles: Roles) -> Draft<'w> {
    if draft.canary().ping_pong.is_none() || draft.is_promoted() {
        return draft;
    }
    let sides = weights::backends(&draft);
    let selects_all = draft.service(sides.stable).is_some_and(|service| service.hash.is_none());
    let draft = match roles.separate_stable() {
        Some(stable) if selects_all => ensure(draft, roles, sides.stable, stable),
        _ => draft,
    };
    let hash = Arc::clone(&draft.sets[roles.new].hash);
    let may_move = weights::may_move(&draft, roles, sides.canary, roles.new);
    if may_move { draft.switch(sides.canary, &hash) } else { draft }
}

/// Points a Service at a revision that has pods: all of them where the Service is not ours yet, and
/// enough for the traffic that comes along.
fn ensure<'w>(draft: Draft<'w>, roles: Roles, name: &str, at: usize) -> Draft<'w> {
    let Some(service) = draft.service(name) else { return draft };
    let set = Arc::clone(&draft.sets[at]);
    if *service.hash_text() == *set.hash {
        return draft;
    }
    let is_complete = set.size > 0 && set.available() >= set.size;
    let may_switch = if service.managed_by.is_some() { set.available() > 0 } else { is_complete };
    let may_switch = may_switch && weights::may_move(&draft, roles, name, at);
    if may_switch { draft.switch(name, &set.hash) } else { draft }
}

/// The sizes that new and stable may have next.
pub(super) fn next_sizes(draft: &Draft<'_>, roles: Roles) -> scale::Sizes {
    if routed::is_routed(draft.spec()) {
        return routed::sizes(draft, roles);
    }
    let side =
        |at: usize| Side { size: draft.sets[at].size, available: draft.sets[at].available() };
    let others = roles.others(draft).map(|at| draft.sets[at].size).fold(0, i32::saturating_add);
    scale::next(&goal(draft), Some(side(roles.new)), roles.separate_stable().map(side), others)
}

/// What the arithmetic aims at.
pub(super) fn goal(draft: &Draft<'_>) -> scale::Goal {
    let canary = draft.canary();
    let replicas = draft.replicas();
    let (surge, unavailable) = scale::resolve_limits(
        replicas,
        &canary.max_surge_or_default(),
        &canary.max_unavailable_or_default(),
    );
    let max_weight = canary.max_weight();
    scale::Goal { replicas, weight: weight(draft, max_weight), max_weight, surge, unavailable }
}

/// The share of pods that the new ReplicaSet should have now.
fn weight(draft: &Draft<'_>, max_weight: i32) -> i32 {
    let status = &draft.status;
    let is_stable = status.stable_rs.is_empty() || status.current_pod_hash == status.stable_rs;
    if draft.promotes_fully() || is_stable { max_weight } else { set_weight(draft) }
}

/// The weight that the steps ask for now: the nearest up to the current one.
pub(super) fn set_weight(draft: &Draft<'_>) -> i32 {
    if draft.status.abort {
        return 0;
    }
    let Some((index, _)) = draft.current_step() else {
        return draft.canary().max_weight();
    };
    draft.steps()[..=index].iter().rev().find_map(|step| step.set_weight).unwrap_or(0)
}

/// Older ReplicaSets give up what is not available, then what the others can do without.
fn drain_others(draft: Draft<'_>, roles: Roles) -> Draft<'_> {
    let active: Vec<usize> = roles.others(&draft).filter(|at| draft.sets[*at].size > 0).collect();
    let is_behind = |at: &usize| draft.sets[*at].reported_available > draft.sets[*at].size;
    if active.is_empty() || active.iter().any(is_behind) {
        return draft;
    }
    let mut draft = draft;
    for at in &active {
        let available = draft.sets[*at].available();
        draft = draft.resize(*at, available);
    }
    let goal = goal(&draft);
    let available: i32 = draft.sets.iter().map(|set| set.available()).sum();
    let mut budget = available - (goal.replicas - goal.unavailable);
    let mut newest_first = active;
    newest_first.sort_by_key(|at| std::cmp::Reverse(draft.sets[*at].revision));
    for at in newest_first {
        if budget <= 0 {
            break;
        }
        let size = draft.sets[at].size;
        let left = (size - budget).max(0);
        budget -= size - left;
        draft = draft.resize(at, left);
    }
    draft
}

/// At a pause step that has not begun: it begins, unless a person has just ended it.
fn pause_step(draft: &Draft<'_>) -> Pauses {
    let at_pause =
        draft.current_step().is_some_and(|(_, step)| matches!(step.kind(), StepKind::Pause(_)));
    let status = &draft.status;
    let may_begin = !draft.spec().paused && !status.promote_full && !status.abort;
    let has_begun = status.pause_condition(pause::CANARY_PAUSE_STEP).is_some();
    if at_pause && may_begin && !has_begun && !status.controller_pause && is_updating(draft) {
        Pauses::Add(pause::CANARY_PAUSE_STEP)
    } else {
        Pauses::Keep
    }
}

/// Is there an update at all? The first deploy and a promoted rollout have no steps to take.
fn is_updating(draft: &Draft<'_>) -> bool {
    let status = &draft.status;
    !status.stable_rs.is_empty() && status.stable_rs != status.current_pod_hash
}

/// When the current pause step ends by itself.
pub(super) fn pause_end(draft: &Draft<'_>) -> Option<jiff::Timestamp> {
    let (_, step) = draft.current_step()?;
    let StepKind::Pause(pause_step) = step.kind() else { return None };
    let seconds = pause_step.duration.as_ref()?.seconds()?;
    let began = draft.status.pause_condition(pause::CANARY_PAUSE_STEP)?.start_time;
    began.timestamp().checked_add(SignedDuration::from_secs(i64::from(seconds))).ok()
}

/// What the pass means for the update: promoted, aborted, a step further, or as before.
fn conclude<'w>(draft: Draft<'w>, roles: Roles, pauses: Pauses) -> Draft<'w> {
    let count = i32::try_from(draft.steps().len()).unwrap_or(i32::MAX);
    let done = (count > 0).then_some(count);
    let kept = kept(&draft, roles, pauses);
    if let Some(why) = step::promotion(&draft, roles, kept.is_aborted) {
        return promote(draft, roles, done, &why);
    }
    if kept.is_aborted {
        return status::persist(draft, roles, kept);
    }
    if is_fast(&draft, roles) || kept.pauses != Pauses::Keep || !step::is_complete(&draft, roles) {
        return status::persist(draft, roles, kept);
    }
    complete_step(draft, roles, kept)
}

/// Everything as before, but for what an abort or a full promotion takes back.
fn kept(draft: &Draft<'_>, roles: Roles, pauses: Pauses) -> UpdateState {
    let status = &draft.status;
    let is_fast = is_fast(draft, roles);
    let abort_because = draft.found.abort_because.clone();
    let is_aborted = status.abort && !draft.is_promoted() && !is_fast || abort_because.is_some();
    let count = i32::try_from(draft.steps().len()).unwrap_or(i32::MAX);
    let index = match (is_aborted, is_fast) {
        (true, _) => 0,
        (_, true) => count,
        _ => status.current_step_index.unwrap_or(0),
    };
    UpdateState {
        index: (count > 0).then_some(index),
        pauses: if is_fast { Pauses::Clear } else { pauses },
        is_aborted,
        promote_full: draft.promotes_fully(),
        stable: status.stable_rs.clone(),
        abort_because,
    }
}

/// Are the steps skipped, by a person's wish or on a way back?
fn is_fast(draft: &Draft<'_>, roles: Roles) -> bool {
    let is_aborted = draft.status.abort && !draft.is_promoted();
    let is_back = rollback::classify(draft, roles) == Rollback::WithinWindow;
    draft.promotes_fully() || is_back && is_updating(draft) && !is_aborted
}

/// The new ReplicaSet becomes the stable one.
fn promote<'w>(draft: Draft<'w>, roles: Roles, index: Option<i32>, why: &str) -> Draft<'w> {
    let stable = draft.sets[roles.new].hash.to_string();
    let mut draft = draft;
    if draft.status.stable_rs != stable {
        let revision = draft.sets[roles.new].revision.unwrap_or(0);
        let text = format!("Rollout completed update to revision {revision} ({stable}): {why}");
        draft = draft.event(EventKind::Normal, reason::ROLLOUT_COMPLETED, text, After::Status);
        if draft.canary().ping_pong.is_some() {
            let side = &mut Arc::make_mut(&mut draft.status).canary.stable_ping_pong;
            *side = if side == value::PING { value::PONG } else { value::PING }.to_owned();
        }
    }
    let verdict = UpdateState {
        index,
        pauses: Pauses::Clear,
        is_aborted: false,
        promote_full: false,
        stable,
        abort_because: None,
    };
    status::persist(draft, roles, verdict)
}

fn complete_step<'w>(draft: Draft<'w>, roles: Roles, kept: UpdateState) -> Draft<'w> {
    let Some((index, step)) = draft.current_step() else {
        return status::persist(draft, roles, kept);
    };
    let next = i32::try_from(index + 1).unwrap_or(i32::MAX);
    let text = format!("Rollout step {next}/{} completed ({})", draft.steps().len(), step.text());
    let draft = draft.event(EventKind::Normal, event::ROLLOUT_STEP_COMPLETED, text, After::Status);
    let mut draft = draft;
    draft.found.step = None; // Its verdict is in the index now.
    let pauses = Pauses::Remove(pause::CANARY_PAUSE_STEP);
    status::persist(draft, roles, UpdateState { index: Some(next), pauses, ..kept })
}
