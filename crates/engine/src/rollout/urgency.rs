//! May a status write wait a second? Only if nobody would act on the difference.

use gradus_api::names::{condition, phase};
use gradus_api::rollout::RolloutStatus;
use gradus_api::rollout::status::Condition;

use crate::decision::Urgency;

/// Counts, message, update times, and Healthy and Available while the phase stays may wait.
pub(super) fn of(stored: &RolloutStatus, next: &RolloutStatus) -> Urgency {
    let is_same = has_same_gates(stored, next)
        && has_same_rest(stored, next)
        && weighty(stored).count() == weighty(next).count()
        && weighty(stored).all(|known| weighty(next).any(|other| says_the_same(known, other)));
    match is_same {
        false => Urgency::Now,
        // People and scripts look a second after it is healthy, and expect the counts to be right.
        true if next.phase == phase::HEALTHY => Urgency::Shortly,
        true => Urgency::Within1s,
    }
}

/// Conditions somebody may wait for.
fn weighty(status: &RolloutStatus) -> impl Iterator<Item = &Condition> {
    let may_wait = |known: &&Condition| {
        known.r#type != condition::HEALTHY && known.r#type != condition::AVAILABLE
    };
    status.conditions.iter().filter(may_wait)
}

fn says_the_same(one: &Condition, other: &Condition) -> bool {
    one.r#type == other.r#type
        && one.status == other.status
        && one.reason == other.reason
        && one.last_transition_time == other.last_transition_time
}

/// Gate fields decide what may be done next, so they are stored before it is done.
pub(super) fn has_same_gates(stored: &RolloutStatus, next: &RolloutStatus) -> bool {
    stored.current_step_index == next.current_step_index
        && stored.pause_conditions == next.pause_conditions
        && stored.controller_pause == next.controller_pause
        && stored.abort == next.abort
        && stored.aborted_at == next.aborted_at
        && stored.promote_full == next.promote_full
        && stored.stable_rs == next.stable_rs
        && stored.blue_green.scale_up_preview_check_point
            == next.blue_green.scale_up_preview_check_point
        && stored.canary.step_plugin_statuses == next.canary.step_plugin_statuses
}

/// Everything else but counts and message.
fn has_same_rest(stored: &RolloutStatus, next: &RolloutStatus) -> bool {
    stored.phase == next.phase
        && stored.current_pod_hash == next.current_pod_hash
        && stored.current_step_hash == next.current_step_hash
        && stored.collision_count == next.collision_count
        && stored.observed_generation == next.observed_generation
        && stored.selector == next.selector
        && stored.restarted_at == next.restarted_at
        && stored.workload_observed_generation == next.workload_observed_generation
        && stored.canary == next.canary
        && stored.blue_green == next.blue_green
        && stored.alb == next.alb
        && stored.albs == next.albs
        && stored.duration == next.duration
}
