//! What do the ReplicaSets lack, and how long do those stay that have lost their traffic?

use gradus_api::defaults::AbortDelay;
use gradus_api::names::annotation::SCALE_DOWN_DEADLINE;
use gradus_api::names::{condition, reason};
use jiff::{SignedDuration, Timestamp};

use super::super::objects::Objects;
use super::super::replica_sets::Roles;
use super::super::step::Missing;
use super::super::{blue_green, canary, delay, routed, weights};
use super::aborted_at;
use crate::decision::{Frees, Guard, Why};

/// What an update waits for.
pub(super) fn missing(objects: &Objects<'_>, missing: Option<Missing>) -> Vec<Why> {
    let since = unmoved_since(objects);
    let about = |at: usize, guard: Guard, field: &'static str| Why {
        guard,
        object: objects.rollout().replica_set(&objects.sets[at].name),
        field: field.into(),
        since,
        frees: Frees::Cluster,
    };
    let why = match missing {
        None => return Vec::new(),
        Some(Missing::Observation(at)) => {
            about(at, Guard::NotObserved, "status.observedGeneration")
        }
        Some(Missing::Size { at, wanted }) => {
            let replicas = objects.sets[at].size;
            about(at, Guard::NotScaled { replicas, wanted }, "spec.replicas")
        }
        Some(Missing::Available { at, wanted }) => {
            let available = objects.sets[at].available();
            about(at, Guard::NotAvailable { available, wanted }, "status.availableReplicas")
        }
        Some(Missing::Pods { at, wanted }) => {
            let replicas = objects.sets[at].replicas;
            about(at, Guard::NotScaled { replicas, wanted }, "status.replicas")
        }
        Some(Missing::Others { available }) => {
            let at = old_with_pods(objects);
            about(at, Guard::OldReplicas { available }, "status.availableReplicas")
        }
    };
    vec![why]
}

/// Since when nothing has moved. The Progressing condition stays true from update to update, so its
/// transition says nothing: its last word does, as far as that is about moving.
pub(super) fn unmoved_since(objects: &Objects<'_>) -> Option<Timestamp> {
    let known = objects.status.condition(condition::PROGRESSING)?;
    let said = known.last_update_time.timestamp();
    match known.reason.as_str() {
        reason::ROLLOUT_ABORTED => aborted_at(objects),
        reason::NEW_REPLICA_SET_AVAILABLE | reason::ROLLOUT_PAUSED => None,
        // It was said when the deadline had passed, and stood still that long before.
        reason::PROGRESS_DEADLINE_EXCEEDED => {
            let seconds = i64::from(objects.spec().progress_deadline_seconds_or_default());
            said.checked_sub(SignedDuration::from_secs(seconds)).ok()
        }
        _ => Some(said),
    }
}

/// The first older ReplicaSet that still has pods.
fn old_with_pods(objects: &Objects<'_>) -> usize {
    let status = &objects.status;
    let is_other = |hash: &str| hash != status.current_pod_hash && hash != status.stable_rs;
    let found =
        objects.sets.iter().position(|set| is_other(&set.hash) && set.reported_available > 0);
    found.unwrap_or(0)
}

/// What an aborted update still lacks to be back on the stable revision: its pods, the traffic that
/// returns to them, and the end of the new revision.
pub(super) fn way_back(objects: &Objects<'_>, roles: Roles) -> Vec<Why> {
    let Some(stable) = roles.separate_stable() else { return Vec::new() };
    let waits = stable_lacks(objects, roles, stable).or_else(|| older(objects, roles));
    let found = missing(objects, waits);
    if objects.sets[roles.new].size == 0 {
        return found;
    }
    let kept = kept(objects, roles).into_iter();
    let goes = Missing::Size { at: roles.new, wanted: 0 };
    let going = goes_at_once(objects, roles).then_some(goes).filter(|_| waits.is_none());
    found.into_iter().chain(kept).chain(missing(objects, going)).collect()
}

/// The first thing that keeps stable from carrying everything.
fn stable_lacks(objects: &Objects<'_>, roles: Roles, stable: usize) -> Option<Missing> {
    let set = &objects.sets[stable];
    let at = stable;
    let sizes = (!objects.is_blue_green()).then(|| canary::next_sizes(objects, roles));
    let wanted = sizes.map_or(objects.replicas(), |sizes| sizes.stable);
    let enough = match objects.is_blue_green() && !blue_green::is_back(objects, stable) {
        // Traffic returns as soon as stable has more to offer than the new revision.
        true => wanted.min(objects.sets[roles.new].available() + 1),
        false => wanted,
    };
    if !set.is_observed() {
        Some(Missing::Observation(at))
    } else if set.size != wanted {
        Some(Missing::Size { at, wanted })
    } else if set.available() < enough {
        Some(Missing::Available { at, wanted: enough })
    } else if set.available() < wanted {
        Some(Missing::Available { at, wanted })
    } else {
        (set.replicas != wanted).then_some(Missing::Pods { at, wanted })
    }
}

/// Older revisions that nobody sends traffic to go first, where pods are the traffic.
fn older(objects: &Objects<'_>, roles: Roles) -> Option<Missing> {
    let available: i32 = roles.others(objects).map(|at| objects.sets[at].reported_available).sum();
    let is_split = objects.is_blue_green() || routed::is_routed(objects.spec());
    (available > 0 && !is_split).then_some(Missing::Others { available })
}

/// How long the new revision stays after an abort; `None` where its pods are its traffic.
fn abort_delay(objects: &Objects<'_>, roles: Roles) -> Option<AbortDelay> {
    if objects.is_blue_green() {
        return Some(objects.blue_green().abort_delay());
    }
    routed::abort_delay(objects, roles)
}

/// The spec keeps an aborted revision whose traffic is gone.
fn kept(objects: &Objects<'_>, roles: Roles) -> Option<Why> {
    let new = &objects.sets[roles.new];
    let (has_traffic, strategy) = match objects.is_blue_green() {
        true => (false, "blueGreen"),
        false => (weights::share(objects, &new.hash) > 0, "canary"),
    };
    let is_kept = abort_delay(objects, roles) == Some(AbortDelay::Forever) && !has_traffic;
    is_kept.then(|| Why {
        guard: Guard::Kept { set: new.name.clone() },
        object: objects.rollout().reference(),
        field: format!("spec.strategy.{strategy}.abortScaleDownDelaySeconds").into(),
        since: aborted_at(objects),
        frees: Frees::Edit,
    })
}

/// Does nothing but the way there keep the new revision of an aborted update?
fn goes_at_once(objects: &Objects<'_>, roles: Roles) -> bool {
    matches!(abort_delay(objects, roles), None | Some(AbortDelay::AtOnce))
}

/// ReplicaSets that have lost their traffic and keep their pods until their deadline.
pub(super) fn leaving(objects: &Objects<'_>, roles: Roles) -> Vec<Why> {
    let is_aborted = objects.status.abort;
    let mut found = Vec::new();
    for (at, set) in objects.sets.iter().enumerate().filter(|(_, set)| set.size > 0) {
        let is_leaving = match at == roles.new || Some(at) == roles.stable {
            true => is_aborted && at == roles.new,
            false => true,
        };
        let end = delay::moment(set.deadline).filter(|end| is_leaving && objects.now < *end);
        found.extend(end.map(|end| Why {
            guard: Guard::Delay,
            object: objects.rollout().replica_set(&set.name),
            field: format!("metadata.annotations.{SCALE_DOWN_DEADLINE}").into(),
            since: None,
            frees: Frees::At(end),
        }));
    }
    found
}

/// What a rollout lacks that nothing above names: pods, where fewer were enough for the update, or the
/// end of older ones.
pub(super) fn left(objects: &Objects<'_>, roles: Roles) -> Vec<Why> {
    let (at, new) = (roles.new, &objects.sets[roles.new]);
    let wanted = match objects.is_blue_green() {
        true => blue_green::new_target(objects, roles),
        false => canary::next_sizes(objects, roles).new,
    };
    if !new.is_observed() {
        return missing(objects, Some(Missing::Observation(at)));
    }
    if new.size != wanted {
        return missing(objects, Some(Missing::Size { at, wanted }));
    }
    if new.replicas != wanted {
        return missing(objects, Some(Missing::Pods { at, wanted }));
    }
    if new.available() < wanted {
        return missing(objects, Some(Missing::Available { at, wanted }));
    }
    let is_old = |at: &usize| *at != roles.new && objects.sets[*at].replicas > 0;
    let old = (0..objects.sets.len()).find(is_old);
    missing(objects, old.map(|at| Missing::Pods { at, wanted: objects.sets[at].size }))
}
