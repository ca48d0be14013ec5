//! What does one pass over a blue-green rollout want? Calls the stages in the contract's order.

use gradus_api::names::{pause, promotion, reason};
use gradus_api::rollout::BlueGreenStrategy;
use jiff::{SignedDuration, Timestamp};

use super::Memo;
use super::analyses::Purpose;
use super::delay::{self, OldSets};
use super::draft::{Draft, Passed};
use super::history;
use super::metadata;
use super::objects::Objects;
use super::plan::Proposal;
use super::replica_sets::{Roles, resize};
use super::restart;
use super::rollback::{self, Rollback};
use super::runs::{self, Findings, JudgedRuns, Switch};
use super::services;
use super::status::{self, Pauses, UpdateState};
use super::targets;
use crate::decision::EventKind;
use crate::world::ReplicaSetView;

/// The ordinary pass: the preview Service, restart, sizes, history, the pause, the active Service, the
/// analyses, then metadata.
pub(super) fn update(draft: Draft<'_>, roles: Roles) -> Passed<'_> {
    let draft = draft.then(|objects| switch_preview(objects, roles));
    if is_changed(&draft.objects, roles) {
        return reset(draft, roles);
    }
    let creation = draft.plan.creation;
    let draft = draft
        .then(|objects| restart::apply(objects, creation, roles))
        .then(|objects| recall_fast_track(objects, roles));
    let draft = resize_all(draft, roles).then(|objects| history::clean_up(objects, roles));
    let pauses = pause_change(&draft.objects, roles);
    let draft = draft.then(|objects| switch_active(objects, roles, pauses));
    let asked = targets::of_active(&draft.objects, &draft.plan, roles);
    let draft = draft.with(asked);
    let JudgedRuns { proposal, found } = run_analyses(&draft.objects, roles);
    let draft = metadata::apply(draft.with(proposal), roles);
    let pauses = found.pauses(pauses);
    conclude(draft, roles, found, pauses)
}

/// Sizes follow a new number of replicas; nothing else moves.
pub(super) fn scale_only(draft: Draft<'_>, roles: Roles) -> Passed<'_> {
    resize_all(draft, roles)
        .with_size()
        .then(|objects| status::refresh_counts(objects, roles))
        .passed()
}

/// The preview Service leads to the new revision.
fn switch_preview(objects: &Objects<'_>, roles: Roles) -> Proposal {
    let name = &objects.blue_green().preview_service;
    if is_halted(objects) || name.is_empty() {
        return Proposal::default();
    }
    services::switch(objects, name, &objects.sets[roles.new].hash)
}

fn is_halted(objects: &Objects<'_>) -> bool {
    objects.spec().paused || is_undecided(objects)
}

/// Has a run ended without a verdict, so that a person must decide about the new revision?
fn is_undecided(objects: &Objects<'_>) -> bool {
    objects.status.pause_condition(pause::INCONCLUSIVE_ANALYSIS_RUN).is_some()
}

fn is_changed(objects: &Objects<'_>, roles: Roles) -> bool {
    let known = &objects.status.current_pod_hash;
    !known.is_empty() && **known != *objects.sets[roles.new].hash
}

fn reset(draft: Draft<'_>, roles: Roles) -> Passed<'_> {
    let verdict = UpdateState::anew(None, draft.objects.status.stable_rs.clone());
    draft.end(roles, Findings::default(), verdict)
}

/// The fast track of a way back is kept for the attempt, which an abort ends.
fn recall_fast_track(objects: &Objects<'_>, roles: Roles) -> Proposal {
    let (hash, known) = (&objects.sets[roles.new].hash, objects.memo.fast_track.as_deref());
    let begins = rollback::awaits_end(objects, roles) && rollback::is_rollback(objects, roles);
    let ends = objects.status.abort || known.is_some_and(|known| *known != **hash);
    let fast_track = match (begins, ends) {
        (true, _) => Some(hash.to_string()),
        (false, true) => None,
        (false, false) => return Proposal::default(),
    };
    Proposal::default().recall(Memo { fast_track, ..objects.memo.clone() })
}

/// Stable has all replicas, new its target, old ones stay for their delay.
fn resize_all(draft: Draft<'_>, roles: Roles) -> Draft<'_> {
    let draft = draft.then(|objects| match roles.stable {
        Some(stable) => delay::without_deadline(objects, stable).and(resize(
            objects,
            stable,
            objects.replicas(),
        )),
        None => Proposal::default(),
    });
    let delayed = roles.separate_stable().filter(|_| is_aborted(&draft.objects));
    let draft = match delayed {
        Some(stable) => draft.then(|objects| {
            delay::after_abort(objects, roles.new, stable, objects.blue_green().abort_delay())
        }),
        None => draft
            // Until the status that begins the update is stored, only the deadline shows that it is a
            // rollback within the delay.
            .then(|objects| match objects.is_begun_in_store(roles.new) {
                true => delay::without_deadline(objects, roles.new),
                false => Proposal::default(),
            })
            .then(|objects| resize(objects, roles.new, new_size(objects, roles)))
            .with_size(),
    };
    draft.then(|objects| retire_old(objects, roles))
}

fn is_aborted(objects: &Objects<'_>) -> bool {
    objects.status.abort
        && !objects.promotes_fully()
        && objects.status.stable_rs != objects.status.current_pod_hash
}

/// The size that the new ReplicaSet gets now. While a person must decide about a preview, or a verdict
/// against it is not stored yet, it grows for nobody.
fn new_size(objects: &Objects<'_>, roles: Roles) -> i32 {
    let (new, target) = (&objects.sets[roles.new], new_target(objects, roles));
    let is_preview = !objects.is_promoted() && *active_hash(objects) != *new.hash;
    let is_judged = is_undecided(objects)
        || runs::is_refused(objects, Purpose::PrePromotion) && !objects.promotes_fully();
    match is_preview && is_judged && objects.has_begun(roles.new) {
        true => target.min(new.size),
        false => target,
    }
}

/// How many pods the new ReplicaSet should have now.
pub(super) fn new_target(objects: &Objects<'_>, roles: Roles) -> i32 {
    let (status, replicas) = (&objects.status, objects.replicas());
    let Some(preview) = preview_size(objects) else { return replicas };
    let is_paused = objects.spec().paused || !status.pause_conditions.is_empty();
    let checkpoint = status.blue_green.scale_up_preview_check_point;
    // Who waits for nobody needs no preview: the switch wants all pods.
    let is_whole =
        is_fast_tracked(objects, roles) || objects.has_begun(roles.new) && !is_paused && checkpoint;
    if is_whole { replicas } else { preview }
}

/// How many pods a preview has, if it is to have fewer than all: never more than all.
fn preview_size(objects: &Objects<'_>) -> Option<i32> {
    Some(objects.blue_green().preview_replica_count?.min(objects.replicas()))
}

/// The revision the active Service selects.
fn active_hash<'d>(objects: &'d Objects<'_>) -> &'d str {
    objects.service(&objects.blue_green().active_service).map_or("", |service| service.hash_text())
}

fn retire_old(objects: &Objects<'_>, roles: Roles) -> Proposal {
    let strategy = objects.blue_green();
    let is_judged = objects.status.stable_rs != *objects.sets[roles.new].hash
        && *active_hash(objects) == *objects.sets[roles.new].hash;
    // Nobody knows how long a person takes to decide: only the way back to stable is kept meanwhile.
    let keeps_old =
        strategy.scale_down_delay_seconds.is_none() && is_judged && !is_undecided(objects);
    // The way back stays open while the new revision is judged; without replicas there is none.
    let is_kept = keeps_old && !runs::is_post_promotion_done(objects);
    if objects.replicas() > 0 && (is_kept || targets::waits(objects, roles)) {
        return Proposal::default();
    }
    // Without replicas even the revision that has the traffic goes: its Service moves afterwards.
    let may_go =
        |at: &usize| objects.replicas() == 0 || !is_referenced(objects, &objects.sets[*at]);
    let mut old: Vec<usize> = roles.others(objects).filter(may_go).collect();
    old.sort_by_key(|at| std::cmp::Reverse(objects.sets[*at].revision));
    let old = OldSets {
        newest_first: old,
        delay_seconds: strategy.scale_down_delay_seconds_or_default(),
        limit: strategy.scale_down_delay_revision_limit_or_default(),
        size_meanwhile: Some(objects.replicas()),
    };
    old.retire(objects)
}

/// Does anything still lead to this revision?
fn is_referenced(objects: &Objects<'_>, set: &ReplicaSetView) -> bool {
    let (status, strategy) = (&objects.status, objects.blue_green());
    let stored = [
        &status.stable_rs,
        &status.current_pod_hash,
        &status.blue_green.active_selector,
        &status.blue_green.preview_selector,
    ];
    let services = [&strategy.active_service, &strategy.preview_service];
    let live = services.into_iter().filter_map(|name| objects.service(name)?.hash.clone());
    stored.into_iter().any(|hash| **hash == *set.hash)
        || live.into_iter().any(|hash| hash == set.hash)
}

/// Is the new ReplicaSet as it should be before the switch?
fn is_at_target(objects: &Objects<'_>, roles: Roles) -> bool {
    let (set, target) = (&objects.sets[roles.new], new_target(objects, roles));
    set.size == target && set.available() == target
}

/// Does this ReplicaSet carry everything?
pub(super) fn is_saturated(objects: &Objects<'_>, set: &ReplicaSetView) -> bool {
    let replicas = objects.replicas();
    set.size == replicas && set.desired_replicas == Some(replicas) && set.available() == replicas
}

/// Is there no reason to wait for a person or a time?
fn is_fast_tracked(objects: &Objects<'_>, roles: Roles) -> bool {
    let active = active_hash(objects);
    rollback::is_fast(objects, roles)
        || objects.promotes_fully()
        || active.is_empty()
        || *active == *objects.sets[roles.new].hash
}

fn needs_pause(strategy: &BlueGreenStrategy) -> bool {
    !strategy.auto_promotion_enabled_or_default() || strategy.auto_promotion_seconds > 0
}

/// What happens to the pause before the switch.
fn pause_change(objects: &Objects<'_>, roles: Roles) -> Pauses {
    let status = &objects.status;
    if status.abort || !is_at_target(objects, roles) || is_halted(objects) {
        return Pauses::Keep;
    }
    let is_needless = is_fast_tracked(objects, roles)
        || status.blue_green.scale_up_preview_check_point
        || !needs_pause(objects.blue_green());
    let has_begun = status.pause_condition(pause::BLUE_GREEN_PAUSE).is_some();
    if !is_needless && !runs::is_pre_promotion_done(objects) {
        return Pauses::Keep;
    }
    if has_begun && (is_needless || is_pause_complete(objects)) {
        Pauses::Remove(pause::BLUE_GREEN_PAUSE)
    } else if !is_needless && status.pause_conditions.is_empty() && !status.controller_pause {
        Pauses::Add(pause::BLUE_GREEN_PAUSE)
    } else {
        Pauses::Keep
    }
}

/// When the pause ends by itself.
pub(super) fn pause_end(objects: &Objects<'_>) -> Option<Timestamp> {
    let strategy = objects.blue_green();
    let seconds = strategy.auto_promotion_seconds;
    let is_timed = strategy.auto_promotion_enabled_or_default() && seconds > 0;
    let began = objects.status.pause_condition(pause::BLUE_GREEN_PAUSE).filter(|_| is_timed)?;
    let length = SignedDuration::from_secs(i64::from(seconds));
    began.start_time.timestamp().checked_add(length).ok()
}

/// Is the pause over: never needed, run out, or ended by a person?
fn is_pause_complete(objects: &Objects<'_>) -> bool {
    let status = &objects.status;
    let has_begun = status.pause_condition(pause::BLUE_GREEN_PAUSE).is_some();
    let is_resumed = status.controller_pause && !has_begun;
    status.blue_green.scale_up_preview_check_point
        || !needs_pause(objects.blue_green())
        || is_resumed
        || pause_end(objects).is_some_and(|end| end <= objects.now)
}

/// Is the pause all that lies before the switch, or before a preview grows to full size?
pub(super) fn awaits_switch(objects: &Objects<'_>) -> bool {
    let status = &objects.status;
    needs_pause(objects.blue_green())
        && !objects.is_promoted()
        && !status.blue_green.scale_up_preview_check_point
        && *active_hash(objects) != *status.current_pod_hash
        && runs::is_pre_promotion_done(objects)
}

/// Points the active Service at the revision that should have the traffic.
fn switch_active(objects: &Objects<'_>, roles: Roles, pauses: Pauses) -> Proposal {
    let none = match pause_end(objects) {
        Some(end) if objects.now < end => Proposal::default().wake(end),
        _ => Proposal::default(),
    };
    let name = &objects.blue_green().active_service;
    if is_aborted(objects) {
        return match roles.stable {
            // An abort wins as soon as stable can carry it, whatever the new revision does.
            Some(stable) if may_return(objects, roles.new, stable) => {
                none.and(services::switch(objects, name, &objects.sets[stable].hash))
            }
            _ => none,
        };
    }
    let new = &objects.sets[roles.new];
    let is_complete = is_at_target(objects, roles) && is_saturated(objects, new);
    let may_switch = !is_halted(objects) && is_complete && may_serve(objects, new);
    let is_paused = matches!(pauses, Pauses::Add(_)) || !is_pause_complete(objects);
    let is_cleared = !is_paused && runs::is_pre_promotion_done(objects);
    if may_switch && (is_fast_tracked(objects, roles) || is_cleared) {
        none.and(services::switch(objects, name, &new.hash))
    } else {
        none
    }
}

/// Is nobody sent from pods to none? A rollout of no replicas is complete without any.
fn may_serve(objects: &Objects<'_>, set: &ReplicaSetView) -> bool {
    set.available() > 0 || objects.sets.iter().all(|other| other.available() == 0)
}

/// The analyses before and after the switch.
fn run_analyses(objects: &Objects<'_>, roles: Roles) -> JudgedRuns {
    let new = &objects.sets[roles.new];
    let is_complete = is_saturated(objects, new);
    let is_ready = match preview_size(objects) {
        Some(preview) => new.size == preview && new.available() == preview,
        None => is_complete,
    };
    let is_fast_rollback = rollback::is_fast(objects, roles);
    let active = active_hash(objects);
    let is_registered = !targets::waits(objects, roles);
    let switch = Switch { active, is_fast_rollback, is_ready, is_complete, is_registered };
    runs::of_blue_green(objects, roles, switch)
}

/// Has stable the traffic?
pub(super) fn is_back(objects: &Objects<'_>, stable: usize) -> bool {
    *active_hash(objects) == *objects.sets[stable].hash
}

/// Can stable take the traffic back?
fn may_return(objects: &Objects<'_>, new: usize, stable: usize) -> bool {
    let available = objects.sets[stable].available();
    let is_enough = available >= objects.replicas() || available > objects.sets[new].available();
    is_enough && may_serve(objects, &objects.sets[stable])
}

/// What the pass means for the update: promoted, or as before.
fn conclude(draft: Draft<'_>, roles: Roles, found: Findings, pauses: Pauses) -> Passed<'_> {
    let objects = &draft.objects;
    let status = &objects.status;
    let is_back = rollback::classify(objects, roles) == Rollback::WithinWindow;
    let is_updating = status.stable_rs != status.current_pod_hash;
    let is_fast = objects.promotes_fully() || is_back && is_updating && !status.abort;
    let abort_because = found.abort_because.clone();
    let is_aborted = is_aborted(objects) && !is_fast || abort_because.is_some();
    if let Some(why) = promotion(objects, roles, is_aborted) {
        let draft = promote(draft, roles, &found, why);
        return Passed { draft, found };
    }
    let verdict = UpdateState {
        index: None,
        pauses: if is_fast { Pauses::Clear } else { pauses },
        is_aborted,
        promote_full: objects.promotes_fully(),
        stable: status.stable_rs.clone(),
        checkpoint: preview_is_done(objects, roles, pauses),
        abort_because,
    };
    draft.end(roles, found, verdict)
}

/// Has the preview served its purpose, so that the new ReplicaSet may grow to full size?
fn preview_is_done(objects: &Objects<'_>, roles: Roles, pauses: Pauses) -> bool {
    let Some(preview) = preview_size(objects) else { return false };
    let is_over = !matches!(pauses, Pauses::Add(_))
        && is_pause_complete(objects)
        && runs::is_pre_promotion_done(objects);
    objects.status.blue_green.scale_up_preview_check_point
        || !is_aborted(objects) && is_over && objects.sets[roles.new].available() == preview
}

/// Why the new revision may become the stable one now; `None` if it may not.
fn promotion(objects: &Objects<'_>, roles: Roles, is_aborted: bool) -> Option<&'static str> {
    let active = active_hash(objects);
    if roles.stable.is_none() || active.is_empty() {
        return Some(promotion::INITIAL_DEPLOY);
    }
    let new = &objects.sets[roles.new];
    if *active != *new.hash || !new.is_observed() || targets::waits(objects, roles) {
        return None;
    }
    if objects.promotes_fully() {
        return Some(promotion::FULL);
    }
    match rollback::classify(objects, roles) {
        Rollback::WithinWindow => return Some(promotion::ROLLBACK_WITHIN_WINDOW),
        Rollback::ToStable => return Some(promotion::FAST_ROLLBACK),
        Rollback::None if rollback::is_fast(objects, roles) => {
            return Some(promotion::FAST_ROLLBACK);
        }
        Rollback::None => {}
    }
    let is_done = !is_aborted && runs::is_post_promotion_done(objects);
    is_done.then_some(promotion::BLUE_GREEN)
}

fn promote<'w>(draft: Draft<'w>, roles: Roles, found: &Findings, why: &str) -> Draft<'w> {
    let new = draft.objects.sets[roles.new].hash.to_string();
    let verdict = UpdateState::anew(None, new.clone());
    draft
        .then(|objects| match objects.status.stable_rs != new {
            true => completed(objects, roles, why),
            false => Proposal::default(),
        })
        .then(|objects| status::persist(objects, roles, found, verdict))
}

/// The update is complete: it is told, and its fast track is over.
fn completed(objects: &Objects<'_>, roles: Roles, why: &str) -> Proposal {
    let new = &objects.sets[roles.new];
    let revision = new.revision.unwrap_or(0);
    let text = format!("Rollout completed update to revision {revision} ({}): {why}", new.hash);
    Proposal::default()
        .tell(EventKind::Normal, reason::ROLLOUT_COMPLETED, text)
        .recall(Memo { fast_track: None, ..objects.memo.clone() })
}
