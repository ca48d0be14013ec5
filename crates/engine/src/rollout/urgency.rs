//! May a status write wait a second? Only if nobody would act on the difference.

use gradus_api::names::condition;
use gradus_api::rollout::RolloutStatus;

use crate::decision::Urgency;

/// Counts, message, update times, and Healthy and Available while the phase stays may wait.
pub(super) fn of(stored: &RolloutStatus, next: &RolloutStatus) -> Urgency {
    if stored.phase == next.phase && without_counts(stored) == without_counts(next) {
        Urgency::Within1s
    } else {
        Urgency::Now
    }
}

fn without_counts(status: &RolloutStatus) -> RolloutStatus {
    let mut rest = status.clone();
    rest.replicas = 0;
    rest.updated_replicas = 0;
    rest.ready_replicas = 0;
    rest.available_replicas = 0;
    rest.hpa_replicas = 0;
    rest.message.clear();
    let may_wait = [condition::HEALTHY, condition::AVAILABLE];
    rest.conditions.retain(|known| !may_wait.contains(&known.r#type.as_str()));
    for known in &mut rest.conditions {
        known.last_update_time = known.last_transition_time;
        known.message.clear();
    }
    rest.conditions.sort_by(|one, other| one.r#type.cmp(&other.r#type));
    rest
}
