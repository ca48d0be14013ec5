//! What does one pass over a blue-green rollout want? Calls the stages in the contract's order.

use std::sync::Arc;

use gradus_api::names::{pause, reason};
use gradus_api::rollout::BlueGreenStrategy;
use jiff::{SignedDuration, Timestamp};

use super::delay::{self, OldSets};
use super::draft::{Creation, Draft};
use super::history;
use super::metadata;
use super::replica_sets::Roles;
use super::restart;
use super::rollback::{self, Rollback};
use super::runs::{self, Switch};
use super::status::{self, Pauses, UpdateState};
use crate::decision::{After, EventKind};
use crate::world::ReplicaSetView;

/// The ordinary pass.
pub(super) fn update<'w>(draft: Draft<'w>, roles: Roles) -> Draft<'w> {
    let strategy = draft.blue_green();
    let new_hash = draft.sets[roles.new].hash.to_string();
    let draft = if is_halted(&draft) || strategy.preview_service.is_empty() {
        draft
    } else {
        draft.switch(&strategy.preview_service, &new_hash)
    };
    if is_changed(&draft, roles) {
        return reset(draft, roles);
    }
    let draft = restart::apply(draft, roles);
    let draft = history::clean_up(resize(recall_fast_track(draft, roles), roles), roles);
    let pauses = pause_change(&draft, roles);
    let draft = run_analyses(switch_active(draft, roles, pauses), roles);
    let draft = metadata::apply(draft, roles);
    let pauses = draft.found.pause.map_or(pauses, Pauses::Add);
    conclude(draft, roles, pauses)
}

/// Sizes follow a new number of replicas; nothing else moves.
pub(super) fn scale_only<'w>(draft: Draft<'w>, roles: Roles) -> Draft<'w> {
    let mut draft = resize(draft, roles);
    if draft.creation == Creation::Unsized {
        draft.creation = Creation::Sized;
    }
    status::refresh_counts(draft, roles)
}

fn is_halted(draft: &Draft<'_>) -> bool {
    let inconclusive = draft.status.pause_condition(pause::INCONCLUSIVE_ANALYSIS_RUN).is_some();
    draft.spec().paused || inconclusive
}

fn is_changed(draft: &Draft<'_>, roles: Roles) -> bool {
    let known = &draft.status.current_pod_hash;
    !known.is_empty() && **known != *draft.sets[roles.new].hash
}

fn reset<'w>(draft: Draft<'w>, roles: Roles) -> Draft<'w> {
    let verdict = UpdateState {
        index: None,
        pauses: Pauses::Clear,
        is_aborted: false,
        promote_full: false,
        stable: draft.status.stable_rs.clone(),
        abort_because: None,
    };
    let mut draft = status::persist(draft, roles, verdict);
    Arc::make_mut(&mut draft.status).blue_green.scale_up_preview_check_point = false;
    draft
}

/// The fast track of a way back is kept for the attempt, which an abort ends.
fn recall_fast_track<'w>(draft: Draft<'w>, roles: Roles) -> Draft<'w> {
    let set = Arc::clone(&draft.sets[roles.new]);
    let mut draft = draft;
    if rollback::awaits_end(&draft, roles) && rollback::is_rollback(&draft, roles) {
        draft.memo.fast_track = Some(set.hash.to_string());
    } else if draft.status.abort
        || draft.memo.fast_track.as_deref().is_some_and(|hash| *hash != *set.hash)
    {
        draft.memo.fast_track = None;
    }
    draft
}

/// Stable has all replicas, new its target, old ones stay for their delay.
fn resize<'w>(draft: Draft<'w>, roles: Roles) -> Draft<'w> {
    let replicas = draft.replicas();
    let is_aborted = is_aborted(&draft);
    let delayed = is_aborted.then(|| roles.separate_stable()).flatten();
    let mut draft = draft;
    if let Some(stable) = roles.stable {
        draft = delay::without_deadline(draft, stable).resize(stable, replicas);
    }
    draft = match delayed {
        Some(stable) => {
            let abort_delay = draft.blue_green().abort_delay();
            delay::after_abort(draft, roles.new, stable, abort_delay)
        }
        None => {
            // Before the update begins, the deadline shows that it is a way back.
            let draft = match draft.has_begun(roles.new) {
                true => delay::without_deadline(draft, roles.new),
                false => draft,
            };
            let target = new_target(&draft, roles);
            sized(draft.resize(roles.new, target))
        }
    };
    retire_old(draft, roles)
}

fn sized(draft: Draft<'_>) -> Draft<'_> {
    let mut draft = draft;
    if draft.creation != Creation::None {
        draft.creation = Creation::Sized;
    }
    draft
}

fn is_aborted(draft: &Draft<'_>) -> bool {
    draft.status.abort
        && !draft.promotes_fully()
        && draft.status.stable_rs != draft.status.current_pod_hash
}

/// How many pods the new ReplicaSet should have now.
pub(super) fn new_target(draft: &Draft<'_>, roles: Roles) -> i32 {
    let (status, replicas) = (&draft.status, draft.replicas());
    let Some(preview) = preview_size(draft) else { return replicas };
    let is_paused = draft.spec().paused || !status.pause_conditions.is_empty();
    let checkpoint = status.blue_green.scale_up_preview_check_point;
    // Who waits for nobody needs no preview: the switch wants all pods.
    let is_whole =
        is_fast_tracked(draft, roles) || draft.has_begun(roles.new) && !is_paused && checkpoint;
    if is_whole { replicas } else { preview }
}

/// How many pods a preview has, if it is to have fewer than all: never more than all.
fn preview_size(draft: &Draft<'_>) -> Option<i32> {
    Some(draft.blue_green().preview_replica_count?.min(draft.replicas()))
}

/// The revision the active Service selects.
fn active_hash<'d>(draft: &'d Draft<'_>) -> &'d str {
    draft.service(&draft.blue_green().active_service).map_or("", |service| service.hash_text())
}

fn retire_old<'w>(draft: Draft<'w>, roles: Roles) -> Draft<'w> {
    let strategy = draft.blue_green();
    let is_judged = draft.status.stable_rs != *draft.sets[roles.new].hash
        && *active_hash(&draft) == *draft.sets[roles.new].hash;
    let keeps_old = strategy.scale_down_delay_seconds.is_none() && is_judged;
    // The way back stays open while the new revision is judged; without replicas there is none.
    if keeps_old && draft.replicas() > 0 && !runs::is_post_promotion_done(&draft) {
        return draft;
    }
    // Without replicas even the revision that has the traffic goes: its Service moves afterwards.
    let may_go = |at: &usize| draft.replicas() == 0 || !is_referenced(&draft, &draft.sets[*at]);
    let mut old: Vec<usize> = roles.others(&draft).filter(may_go).collect();
    old.sort_by_key(|at| std::cmp::Reverse(draft.sets[*at].revision));
    let old = OldSets {
        newest_first: old,
        delay_seconds: strategy.scale_down_delay_seconds_or_default(),
        limit: strategy.scale_down_delay_revision_limit_or_default(),
        size_meanwhile: Some(draft.replicas()),
    };
    old.retire(draft)
}

/// Does anything still lead to this revision?
fn is_referenced(draft: &Draft<'_>, set: &ReplicaSetView) -> bool {
    let (status, strategy) = (&draft.status, draft.blue_green());
    let stored = [
        &status.stable_rs,
        &status.current_pod_hash,
        &status.blue_green.active_selector,
        &status.blue_green.preview_selector,
    ];
    let services = [&strategy.active_service, &strategy.preview_service];
    let live = services.into_iter().filter_map(|name| draft.service(name)?.hash.clone());
    stored.into_iter().any(|hash| **hash == *set.hash)
        || live.into_iter().any(|hash| hash == set.hash)
}

/// Is the new ReplicaSet as it should be before the switch?
fn is_at_target(draft: &Draft<'_>, roles: Roles) -> bool {
    let (set, target) = (&draft.sets[roles.new], new_target(draft, roles));
    set.size == target && set.available() == target
}

/// Does this ReplicaSet carry everything?
pub(super) fn is_saturated(draft: &Draft<'_>, set: &ReplicaSetView) -> bool {
    let replicas = draft.replicas();
    set.size == replicas && set.desired_replicas == Some(replicas) && set.available() == replicas
}

/// Is there no reason to wait for a person or a time?
fn is_fast_tracked(draft: &Draft<'_>, roles: Roles) -> bool {
    let active = active_hash(draft);
    rollback::is_fast(draft, roles)
        || draft.promotes_fully()
        || active.is_empty()
        || *active == *draft.sets[roles.new].hash
}

fn needs_pause(strategy: &BlueGreenStrategy) -> bool {
    !strategy.auto_promotion_enabled_or_default() || strategy.auto_promotion_seconds > 0
}

/// What happens to the pause before the switch.
fn pause_change(draft: &Draft<'_>, roles: Roles) -> Pauses {
    let status = &draft.status;
    if status.abort || !is_at_target(draft, roles) || is_halted(draft) {
        return Pauses::Keep;
    }
    let is_needless = is_fast_tracked(draft, roles)
        || status.blue_green.scale_up_preview_check_point
        || !needs_pause(draft.blue_green());
    let has_begun = status.pause_condition(pause::BLUE_GREEN_PAUSE).is_some();
    if !is_needless && !runs::is_pre_promotion_done(draft) {
        return Pauses::Keep;
    }
    if has_begun && (is_needless || is_pause_complete(draft)) {
        Pauses::Remove(pause::BLUE_GREEN_PAUSE)
    } else if !is_needless && status.pause_conditions.is_empty() && !status.controller_pause {
        Pauses::Add(pause::BLUE_GREEN_PAUSE)
    } else {
        Pauses::Keep
    }
}

/// When the pause ends by itself.
pub(super) fn pause_end(draft: &Draft<'_>) -> Option<Timestamp> {
    let strategy = draft.blue_green();
    let seconds = strategy.auto_promotion_seconds;
    let is_timed = strategy.auto_promotion_enabled_or_default() && seconds > 0;
    let began = draft.status.pause_condition(pause::BLUE_GREEN_PAUSE).filter(|_| is_timed)?;
    let length = SignedDuration::from_secs(i64::from(seconds));
    began.start_time.timestamp().checked_add(length).ok()
}

/// Is the pause over: never needed, run out, or ended by a person?
fn is_pause_complete(draft: &Draft<'_>) -> bool {
    let status = &draft.status;
    let has_begun = status.pause_condition(pause::BLUE_GREEN_PAUSE).is_some();
    let is_resumed = status.controller_pause && !has_begun;
    status.blue_green.scale_up_preview_check_point
        || !needs_pause(draft.blue_green())
        || is_resumed
        || pause_end(draft).is_some_and(|end| end <= draft.now)
}

/// Is the pause all that lies before the switch, or before a preview grows to full size?
pub(super) fn awaits_switch(draft: &Draft<'_>) -> bool {
    let status = &draft.status;
    needs_pause(draft.blue_green())
        && !draft.is_promoted()
        && !status.blue_green.scale_up_preview_check_point
        && *active_hash(draft) != *status.current_pod_hash
        && runs::is_pre_promotion_done(draft)
}

/// Points the active Service at the revision that should have the traffic.
fn switch_active<'w>(draft: Draft<'w>, roles: Roles, pauses: Pauses) -> Draft<'w> {
    let draft = match pause_end(&draft) {
        Some(end) if draft.now < end => draft.wake(end),
        _ => draft,
    };
    let name = &draft.blue_green().active_service;
    if is_aborted(&draft) {
        return match roles.stable {
            // An abort wins as soon as stable can carry it, whatever the new revision does.
            Some(stable) if may_return(&draft, roles.new, stable) => {
                let hash = draft.sets[stable].hash.to_string();
                draft.switch(name, &hash)
            }
            _ => draft,
        };
    }
    let new = Arc::clone(&draft.sets[roles.new]);
    let is_complete = is_at_target(&draft, roles) && is_saturated(&draft, &new);
    let may_switch = !is_halted(&draft) && is_complete && may_serve(&draft, &new);
    let is_paused = matches!(pauses, Pauses::Add(_)) || !is_pause_complete(&draft);
    let is_cleared = !is_paused && runs::is_pre_promotion_done(&draft);
    if may_switch && (is_fast_tracked(&draft, roles) || is_cleared) {
        draft.switch(name, &new.hash)
    } else {
        draft
    }
}

/// Is nobody sent from pods to none? A rollout of no replicas is complete without any.
fn may_serve(draft: &Draft<'_>, set: &ReplicaSetView) -> bool {
    set.available() > 0 || draft.sets.iter().all(|other| other.available() == 0)
}

/// The analyses before and after the switch.
fn run_analyses<'w>(draft: Draft<'w>, roles: Roles) -> Draft<'w> {
    let active = active_hash(&draft).to_owned();
    let new = &draft.sets[roles.new];
    let is_complete = is_saturated(&draft, new);
    let is_ready = match preview_size(&draft) {
        Some(preview) => new.size == preview && new.available() == preview,
        None => is_complete,
    };
    let is_fast_rollback = rollback::is_fast(&draft, roles);
    let switch = Switch { active: &active, is_fast_rollback, is_ready, is_complete };
    runs::of_blue_green(draft, roles, switch)
}

/// Has stable the traffic?
pub(super) fn is_back(draft: &Draft<'_>, stable: usize) -> bool {
    *active_hash(draft) == *draft.sets[stable].hash
}

/// Can stable take the traffic back?
fn may_return(draft: &Draft<'_>, new: usize, stable: usize) -> bool {
    let available = draft.sets[stable].available();
    let is_enough = available >= draft.replicas() || available > draft.sets[new].available();
    is_enough && may_serve(draft, &draft.sets[stable])
}

/// What the pass means for the update: promoted, or as before.
fn conclude<'w>(draft: Draft<'w>, roles: Roles, pauses: Pauses) -> Draft<'w> {
    let status = &draft.status;
    let is_back = rollback::classify(&draft, roles) == Rollback::WithinWindow;
    let is_updating = status.stable_rs != status.current_pod_hash;
    let is_fast = draft.promotes_fully() || is_back && is_updating && !status.abort;
    let abort_because = draft.found.abort_because.clone();
    let is_aborted = is_aborted(&draft) && !is_fast || abort_because.is_some();
    if let Some(why) = promotion(&draft, roles, is_aborted) {
        return promote(draft, roles, why);
    }
    let verdict = UpdateState {
        index: None,
        pauses: if is_fast { Pauses::Clear } else { pauses },
        is_aborted,
        promote_full: draft.promotes_fully(),
        stable: status.stable_rs.clone(),
        abort_because,
    };
    let checkpoint = preview_is_done(&draft, roles, pauses);
    let mut draft = status::persist(draft, roles, verdict);
    Arc::make_mut(&mut draft.status).blue_green.scale_up_preview_check_point = checkpoint;
    draft
}

/// Has the preview served its purpose, so that the new ReplicaSet may grow to full size?
fn preview_is_done(draft: &Draft<'_>, roles: Roles, pauses: Pauses) -> bool {
    let Some(preview) = preview_size(draft) else { return false };
    let is_over = !matches!(pauses, Pauses::Add(_))
        && is_pause_complete(draft)
        && runs::is_pre_promotion_done(draft);
    draft.status.blue_green.scale_up_preview_check_point
        || !is_aborted(draft) && is_over && draft.sets[roles.new].available() == preview
}

/// Why the new revision may become the stable one now; `None` if it may not.
fn promotion(draft: &Draft<'_>, roles: Roles, is_aborted: bool) -> Option<&'static str> {
    let active = active_hash(draft);
    if roles.stable.is_none() || active.is_empty() {
        return Some("Initial deploy");
    }
    let new = &draft.sets[roles.new];
    if *active != *new.hash || !new.is_observed() {
        return None;
    }
    if draft.promotes_fully() {
        return Some("Full promotion requested");
    }
    match rollback::classify(draft, roles) {
        Rollback::WithinWindow => return Some("Rollback within window"),
        Rollback::ToStable => return Some("Fast rollback"),
        Rollback::None if rollback::is_fast(draft, roles) => return Some("Fast rollback"),
        Rollback::None => {}
    }
    let is_done = !is_aborted && runs::is_post_promotion_done(draft);
    is_done.then_some("Completed blue-green update")
}

fn promote<'w>(draft: Draft<'w>, roles: Roles, why: &str) -> Draft<'w> {
    let new = Arc::clone(&draft.sets[roles.new]);
    let mut draft = draft;
    if draft.status.stable_rs != *new.hash {
        let revision = new.revision.unwrap_or(0);
        let text = format!("Rollout completed update to revision {revision} ({}): {why}", new.hash);
        draft = draft.event(EventKind::Normal, reason::ROLLOUT_COMPLETED, text, After::Status);
        draft.memo.fast_track = None;
    }
    let verdict = UpdateState {
        index: None,
        pauses: Pauses::Clear,
        is_aborted: false,
        promote_full: false,
        stable: new.hash.to_string(),
        abort_because: None,
    };
    status::persist(draft, roles, verdict)
}
