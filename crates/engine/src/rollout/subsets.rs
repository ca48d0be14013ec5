//! Where a router has a destination of its own for the canary, a subset or a node: to which revision
//! does it lead?

use std::sync::Arc;

use super::objects::Objects;
use super::replica_sets::{Roles, find_stable};
use super::weights::{by_router, is_enough_for};
use super::{routed, step};
use crate::traffic::TrafficSide;

/// The revision that the canary side is to lead to in a full promotion: it goes on leading to the one
/// before until the new one has the pods for the weight.
pub(super) fn led_to(objects: &Objects<'_>, roles: Roles, weight: i32) -> Arc<str> {
    let new = &objects.sets[roles.new].hash;
    let known = by_router(objects, TrafficSide::Canary).filter(|known| {
        has_pods(objects, known)
            && *known != **new
            && !is_enough_for(objects, roles, roles.new, weight)
    });
    known.map_or_else(|| Arc::clone(new), |known| known.as_str().into())
}

/// The revision that the canary's own destination is to lead to, when the canary side is to be this one.
pub(super) fn hash(
    objects: &Objects<'_>,
    roles: Roles,
    weight: i32,
    canary_hash: &Arc<str>,
) -> Arc<str> {
    let new = &objects.sets[roles.new];
    let Some(stable) = roles.separate_stable().filter(|_| *canary_hash == new.hash) else {
        return Arc::clone(canary_hash);
    };
    if objects.is_aborted() && weight == 0 && new.size == 0 {
        // Nobody is left behind what was given up: whoever calls it finds the stable pods.
        return Arc::clone(&objects.sets[stable].hash);
    }
    match by_router(objects, TrafficSide::Canary).filter(|_| waits(objects, roles)) {
        Some(known) => known.as_str().into(),
        None => Arc::clone(canary_hash),
    }
}

/// The revision that stable's own destination is to lead to. One that still leads to the pods of every
/// revision, or to a revision of before that has pods, goes on doing so until stable has the pods for its
/// part of the traffic.
pub(super) fn of_stable(objects: &Objects<'_>, roles: Roles, weight: i32) -> Arc<str> {
    let Some(stable) = roles.stable else { return Arc::default() };
    let hash = &objects.sets[stable].hash;
    let rest = objects.canary().max_weight() - weight;
    let serves = |known: &str| known.is_empty() || *known != **hash && has_pods(objects, known);
    let known = by_router(objects, TrafficSide::Stable).filter(|known| serves(known));
    match known.filter(|_| !is_enough_for(objects, roles, stable, rest)) {
        Some(known) => known.as_str().into(),
        None => Arc::clone(hash),
    }
}

fn has_pods(objects: &Objects<'_>, hash: &str) -> bool {
    find_stable(hash, &objects.sets).is_some_and(|at| objects.sets[at].available() > 0)
}

/// Must a destination that no Service stands behind wait for all pods of the new revision?
fn waits(objects: &Objects<'_>, roles: Roles) -> bool {
    let strategy = objects.canary();
    let has_services = !strategy.stable_service.is_empty() || !strategy.canary_service.is_empty();
    let set = &objects.sets[roles.new];
    let is_complete = match set.size {
        0 => routed::sizes(objects, roles).new == 0,
        size => set.available() >= size || step::is_by_threshold(objects, roles.new, size),
    };
    !has_services && !is_complete
}
