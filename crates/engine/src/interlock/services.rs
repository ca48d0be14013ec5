//! I-3: does a Service that users reach come to select nothing?

use super::pods::{Pods, selected_after};
use crate::decision::Change;
use crate::world::World;

/// What is wrong with a change of a Service, if anything. A preview, or a canary's own Service, may
/// select a revision without pods: nobody is sent there.
pub(super) fn judge(world: &World, pods: &Pods, change: &Change) -> Option<String> {
    let hash = selected_after(change)?;
    let strategy = &world.rollout.spec.fields.strategy;
    let active = strategy.blue_green.as_ref().map(|blue_green| &blue_green.active_service);
    let stable = strategy.canary.as_ref().map(|canary| &canary.stable_service);
    let name = &*change.target.name;
    let is_reached = active.into_iter().chain(stable).any(|service| service == name);
    let (available, all) = pods.available(hash);
    (is_reached && available == 0 && all > 0).then(|| {
        format!(
            "Service {name} would select revision {hash} without an available pod, while others \
             have {all}"
        )
    })
}
