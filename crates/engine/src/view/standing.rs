//! How does a Rollout stand, as seen from outside: its phase, step and weights?

use gradus_api::names::phase;
use gradus_api::rollout::{CanaryStrategy, RolloutSpec, RolloutStatus};

use crate::rollout::phase_of;

/// Phase and message. The stored ones count only once the controller has seen the latest spec and
/// the latest resume.
pub fn phase(generation: i64, spec: &RolloutSpec, status: &RolloutStatus) -> (String, String) {
    let progressing = |message: &str| (phase::PROGRESSING.to_owned(), message.to_owned());
    let observed = status.observed_generation.parse::<i64>();
    if observed.is_ok_and(|observed| observed < generation) {
        return progressing("waiting for rollout spec update to be observed");
    }
    if status.controller_pause && status.pause_conditions.is_empty() {
        return progressing("waiting for rollout to unpause");
    }
    if !status.phase.is_empty() {
        return (status.phase.to_string(), status.message.to_string());
    }
    let (phase, message) = phase_of(spec, status);
    (phase.to_string(), message.to_string())
}

/// `2/5`: the current step of how many; none without steps or before the first.
pub fn step(spec: &RolloutSpec, status: &RolloutStatus) -> Option<String> {
    let count = spec.strategy.canary.as_ref()?.steps.len();
    let index = status.current_step_index?;
    (count > 0).then(|| format!("{index}/{count}"))
}

/// The weight that the steps ask for now.
pub fn set_weight(canary: &CanaryStrategy, status: &RolloutStatus) -> i32 {
    if status.abort {
        return 0;
    }
    let Some(index) = current_step(canary, status) else { return canary.max_weight() };
    canary.steps[..=index].iter().rev().find_map(|step| step.set_weight).unwrap_or(0)
}

/// The weight that is reached, by pods or by the router.
pub(super) fn actual_weight(
    canary: &CanaryStrategy,
    status: &RolloutStatus,
    canary_available: i64,
) -> i32 {
    if current_step(canary, status).is_none() {
        return canary.max_weight();
    }
    if status.available_replicas <= 0 {
        return 0;
    }
    if canary.traffic_routing.is_some() {
        let weights = status.canary.weights.as_ref();
        return weights.map_or_else(|| set_weight(canary, status), |known| known.canary.weight);
    }
    let share = canary_available * i64::from(canary.max_weight());
    i32::try_from(share / i64::from(status.available_replicas)).unwrap_or(i32::MAX)
}

/// The step being carried out; none without steps or past the last.
fn current_step(canary: &CanaryStrategy, status: &RolloutStatus) -> Option<usize> {
    let index = usize::try_from(status.current_step_index.unwrap_or(0)).unwrap_or(0);
    (index < canary.steps.len()).then_some(index)
}
