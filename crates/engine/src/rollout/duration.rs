//! How long does an update take, how much of that does it wait for people, and how does it end?

use gradus_api::names::{completion, pause};
use gradus_api::rollout::RolloutStatus;
use gradus_api::rollout::status::DurationStatus;
use gradus_api::values::Time;

use super::objects::Objects;
use super::replica_sets::Roles;
use super::rollback;

/// The duration as the next status has it. An attempt begins with a new template, other steps or a
/// retry, and ends when the new revision is promoted and complete, or given up.
pub(super) fn track(
    objects: &Objects<'_>,
    roles: Roles,
    next: &RolloutStatus,
) -> Option<Box<DurationStatus>> {
    let now = Time::new(objects.now);
    let is_changed = is_changed(objects, next);
    let back = is_changed.then(|| way_back(objects, roles)).flatten();
    let open = objects.status.duration.as_ref().filter(|known| known.finished_at.is_none());
    let begins = match open {
        // A newer revision takes over; a way back is still the same attempt.
        Some(_) => is_changed && back.is_none(),
        None => is_changed && !is_complete(objects, roles, next) || is_retried(objects, next),
    };
    let mut attempt = match (begins, open) {
        (true, _) => {
            Box::new(DurationStatus { rollout_started_at: Some(now), ..DurationStatus::default() })
        }
        (false, Some(open)) => open.clone(),
        (false, None) => return objects.status.duration.clone(),
    };
    if let Some(how) = back {
        attempt.completion_status = Some(how.to_owned());
    }
    if objects.status.stable_rs != next.stable_rs && attempt.completion_status.is_none() {
        let how = if objects.status.promote_full {
            completion::FAST_PROMOTED
        } else {
            completion::PROMOTED
        };
        attempt.completion_status = Some(how.to_owned());
    }
    let is_over = next.abort || is_complete(objects, roles, next);
    note_pause(&mut attempt, now, waits_for_people(objects, next) && !is_over);
    if is_over {
        attempt.finished_at = Some(now);
        let how = if next.abort { completion::ABORTED } else { completion::PROMOTED };
        if next.abort || attempt.completion_status.is_none() {
            attempt.completion_status = Some(how.to_owned());
        }
    }
    Some(attempt)
}

/// Is this status about another template, or other steps, than the one before?
fn is_changed(objects: &Objects<'_>, next: &RolloutStatus) -> bool {
    let (was, steps) = (&objects.status, &objects.rollout().spec);
    let has_older_name =
        steps.older_step_hashes.iter().any(|older| was.current_step_hash == *older);
    let has_other_steps = was.current_step_hash != next.current_step_hash && !has_older_name;
    was.current_pod_hash != next.current_pod_hash || has_other_steps
}

/// Does a person try an aborted update again?
fn is_retried(objects: &Objects<'_>, next: &RolloutStatus) -> bool {
    let is_updating = next.stable_rs != next.current_pod_hash;
    objects.status.aborted_at.is_some() && next.aborted_at.is_none() && is_updating
}

/// Is the new revision the stable one, with all its pods?
fn is_complete(objects: &Objects<'_>, roles: Roles, next: &RolloutStatus) -> bool {
    let is_promoted = next.is_promoted();
    is_promoted && objects.sets[roles.new].available() >= objects.replicas()
}

/// How an update that goes back will have ended; `None` for one that goes forward.
fn way_back(objects: &Objects<'_>, roles: Roles) -> Option<&'static str> {
    if !rollback::is_rollback(objects, roles) {
        return None;
    }
    let is_fast = rollback::is_fast(objects, roles);
    Some(if is_fast { completion::FAST_ROLLED_BACK } else { completion::ROLLED_BACK })
}

/// Does the update wait for a person? A pause that ends by itself does not.
fn waits_for_people(objects: &Objects<'_>, next: &RolloutStatus) -> bool {
    let spec = objects.spec();
    let green = spec.strategy.blue_green.as_ref();
    let needs_person = |reason: &str| match reason {
        pause::INCONCLUSIVE_ANALYSIS_RUN | pause::INCONCLUSIVE_EXPERIMENT => true,
        pause::CANARY_PAUSE_STEP => {
            let index = usize::try_from(next.current_step_index.unwrap_or(0)).unwrap_or(0);
            let step = objects.steps().get(index).and_then(|step| step.pause.as_ref());
            step.is_some_and(|step| step.duration.is_none())
        }
        pause::BLUE_GREEN_PAUSE => {
            green.is_some_and(|green| !green.auto_promotion_enabled_or_default())
        }
        _ => false,
    };
    spec.paused || next.pause_conditions.iter().any(|pause| needs_person(&pause.reason))
}

/// Adds up the time spent waiting for people.
fn note_pause(attempt: &mut DurationStatus, now: Time, is_waiting: bool) {
    match (attempt.manual_pause_started_at, is_waiting) {
        (None, true) => attempt.manual_pause_started_at = Some(now),
        (Some(since), false) => {
            let waited = now.timestamp().as_second() - since.timestamp().as_second();
            let total = attempt.total_manual_pause_duration_seconds.unwrap_or(0) + waited.max(0);
            attempt.total_manual_pause_duration_seconds = (total > 0).then_some(total);
            attempt.manual_pause_started_at = None;
        }
        (None, false) | (Some(_), true) => {}
    }
}
