//! I-1 and I-6: does a resize leave enough available pods, and enough behind the traffic?

use std::sync::Arc;

use gradus_api::names::label::POD_TEMPLATE_HASH;

use super::Invariant;
use crate::decision::{Change, Op};
use crate::kinds;
use crate::rollout::scale;
use crate::world::World;

/// ReplicaSets and Services as the changes so far leave them.
pub(super) struct Pods {
    sets: Vec<Set>,
    /// What each Service selects, by name.
    selected: Vec<(Arc<str>, String)>,
}

struct Set {
    name: Arc<str>,
    hash: String,
    size: i32,
    available: i32,
}

impl Pods {
    pub(super) fn of(world: &World) -> Self {
        let sets = world.replica_sets.present().map_or(&[][..], Vec::as_slice);
        let set = |set: &Arc<crate::world::ReplicaSetView>| Set {
            name: Arc::clone(&set.name),
            hash: set.hash.to_string(),
            size: set.size,
            available: set.available(),
        };
        let services = world.services.iter().filter_map(|(name, known)| {
            Some((Arc::clone(name), known.present()?.hash_text().to_owned()))
        });
        Pods { sets: sets.iter().map(set).collect(), selected: services.collect() }
    }

    /// Available pods of one revision, and of all.
    pub(super) fn available(&self, hash: &str) -> (i32, i32) {
        let of_revision = self.sets.iter().filter(|set| set.hash == hash);
        let all = self.sets.iter().map(|set| set.available).sum();
        (of_revision.map(|set| set.available).sum(), all)
    }

    /// Available pods behind a Service that selects this revision, and of all: without a revision it
    /// selects every pod.
    pub(super) fn behind(&self, hash: &str) -> (i32, i32) {
        let (available, all) = self.available(hash);
        (if hash.is_empty() { all } else { available }, all)
    }

    /// The revision that a Service selects.
    pub(super) fn selected(&self, service: &str) -> &str {
        let found = self.selected.iter().find(|(name, _)| **name == *service);
        found.map_or("", |(_, hash)| hash)
    }

    /// Revision and size of a ReplicaSet.
    pub(super) fn size(&self, name: &str) -> Option<(&str, i32)> {
        let found = self.sets.iter().find(|set| *set.name == *name)?;
        Some((&found.hash, found.size))
    }

    /// What is wrong with a change of a ReplicaSet, if anything.
    pub(super) fn judge(&self, world: &World, change: &Change) -> Option<(Invariant, String)> {
        let next = size_after(change)?;
        let set = self.sets.iter().find(|set| set.name == change.target.name)?;
        if set.size <= next {
            return None;
        }
        let strategy = &world.rollout.spec.fields.strategy;
        if let Some(blue_green) = &strategy.blue_green {
            let found = self.starves(world, &blue_green.active_service, set, next);
            return found.map(|message| (Invariant::TrafficBeforeTeardown, message));
        }
        let canary = strategy.canary.as_ref().filter(|canary| canary.traffic_routing.is_none())?;
        let replicas = world.rollout.spec.fields.replicas_or_default();
        let limits = (canary.max_surge_or_default(), canary.max_unavailable_or_default());
        let (_, unavailable) = scale::resolve_limits(replicas, &limits.0, &limits.1);
        let found = self.falls_below(replicas - unavailable, set, next);
        found.map(|message| (Invariant::AvailabilityFloor, message))
    }

    /// Does this change a ReplicaSet, or make one, so that there are more pods?
    pub(super) fn only_adds(&self, change: &Change) -> bool {
        let size = self.size(&change.target.name).map(|(_, size)| size);
        size_after(change).is_some_and(|next| size.is_none_or(|size| size < next))
    }

    /// Notes a change as done.
    pub(super) fn take_in(&mut self, change: &Change) {
        if let Some(hash) = selected_after(change) {
            self.selected.retain(|(name, _)| *name != change.target.name);
            self.selected.push((Arc::clone(&change.target.name), hash.to_owned()));
        }
        let Some(size) = size_after(change) else { return };
        match self.sets.iter_mut().find(|set| set.name == change.target.name) {
            Some(set) => {
                set.size = size;
                set.available = set.available.min(size);
            }
            None => self.sets.push(Set {
                name: Arc::clone(&change.target.name),
                hash: String::new(),
                size,
                available: 0,
            }),
        }
    }

    fn falls_below(&self, floor: i32, set: &Set, next: i32) -> Option<String> {
        let before: i32 = self.sets.iter().map(|set| set.available).sum();
        let after = before - set.available + set.available.min(next);
        (after < before.min(floor)).then(|| {
            format!(
                "ReplicaSet {} from {} to {next} would leave {after} of {before} available pods, \
                 at least {floor} must stay",
                set.name, set.size
            )
        })
    }

    /// Does the active Service select it, and would too few be left?
    fn starves(&self, world: &World, active: &str, set: &Set, next: i32) -> Option<String> {
        let replicas = world.rollout.spec.fields.replicas_or_default();
        let is_served = self.selected(active) == set.hash;
        (is_served && next < replicas).then(|| {
            format!(
                "ReplicaSet {} from {} to {next} while Service {active} sends it all traffic of \
                 {replicas} replicas",
                set.name, set.size
            )
        })
    }
}

/// The size that a change gives to a ReplicaSet, if it gives one.
pub(super) fn size_after(change: &Change) -> Option<i32> {
    if change.target.kind != kinds::REPLICA_SET {
        return None;
    }
    match &change.op {
        Op::Create(body) | Op::Merge(body) => {
            body["spec"]["replicas"].as_i64().and_then(|size| i32::try_from(size).ok())
        }
        Op::Delete => Some(0),
        Op::Evict => None,
    }
}

/// The revision that a change makes a Service select, if it does.
pub(super) fn selected_after(change: &Change) -> Option<&str> {
    match &change.op {
        Op::Merge(body) if change.target.kind == kinds::SERVICE => {
            body["spec"]["selector"][POD_TEMPLATE_HASH].as_str()
        }
        _ => None,
    }
}
