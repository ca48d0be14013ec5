//! How many pods should each ReplicaSet of a canary have, and how many may it have next?

#[cfg(test)]
mod tests;

use gradus_api::values::{IntOrPercent, Round};

/// What the arithmetic of one rollout needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeGoal {
    /// `spec.replicas`.
    pub replicas: i32,
    /// Weight the canary should have, of `max_weight`.
    pub weight: i32,
    /// What counts as all traffic.
    pub max_weight: i32,
    /// Resolved maxSurge.
    pub surge: i32,
    /// Resolved maxUnavailable.
    pub unavailable: i32,
}

/// Size and availability of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Side {
    /// `spec.replicas`.
    pub size: i32,
    /// Available pods, already clamped to the size.
    pub available: i32,
}

/// Sizes of the two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Of the new ReplicaSet.
    pub new: i32,
    /// Of the stable ReplicaSet.
    pub stable: i32,
}

/// What the arithmetic of a traffic-routed rollout needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Routed {
    /// `spec.replicas`.
    pub replicas: i32,
    /// What counts as all traffic.
    pub max_weight: i32,
    /// Weight the canary is sized for; may be more than `max_weight`.
    pub weight: i32,
    /// The canary's size, whatever the weight.
    pub exact: Option<i32>,
    /// Weight the canary carries now.
    pub carried: i32,
    /// Fewest pods of a side that has any.
    pub least: Option<i32>,
    /// Does stable shrink as its traffic goes?
    pub is_dynamic: bool,
    /// Is the update given up?
    pub is_aborted: bool,
}

/// The sizes of a rollout whose traffic is split by a router.
pub fn routed(goal: &Routed) -> Sizes {
    let Routed { replicas, max_weight, weight, carried, .. } = *goal;
    let pods = |weight: i32| pods_for(replicas, weight, max_weight);
    let floor = |count: i32| match goal.least {
        Some(least) if count != 0 => count.max(least.min(replicas)),
        _ => count,
    };
    // An exact size says nothing about the traffic: stable is kept as if there were none.
    let weight = if goal.exact.is_some() { 0 } else { weight };
    if !goal.is_dynamic {
        let new = goal.exact.unwrap_or_else(|| floor(pods(weight)));
        return Sizes { new, stable: replicas };
    }
    let stable = pods((max_weight - weight).max(0)).max(pods(max_weight - carried));
    let kept = if goal.is_aborted { pods(carried) } else { 0 };
    let new = goal.exact.unwrap_or_else(|| floor(pods(weight).max(kept)));
    Sizes { new, stable: floor(stable) }
}

/// Pods that carry this weight, rounded up.
pub fn pods_for(replicas: i32, weight: i32, max_weight: i32) -> i32 {
    // Doubles, as the contract counts; products of two 32-bit numbers are exact.
    (f64::from(weight) * f64::from(replicas) / f64::from(max_weight)).ceil() as i32
}

/// The sizes that come closest to the weight without emptying a side that should serve.
pub fn targets(goal: &SizeGoal) -> Sizes {
    let SizeGoal { replicas, weight, max_weight, surge, .. } = *goal;
    if replicas == 0 {
        return Sizes { new: 0, stable: 0 };
    }
    let share = f64::from(replicas.saturating_mul(weight)) / f64::from(max_weight);
    let (ceiling, floor) = (share.ceil() as i32, share.floor() as i32);
    // The operation order is part of the contract: the total times the quotient, in doubles.
    let quotient = f64::from(weight) / f64::from(max_weight);
    let tied = |total: i32| (f64::from(total) * quotient).fract() == 0.5;
    let zero_ok = weight == max_weight || weight == 0 || (replicas == 1 && surge == 0);

    let more = replicas.saturating_add(1);
    let may_floor = |total: i32| !tied(total) && (floor != 0 || zero_ok);
    let candidates = [
        (ceiling, replicas, ceiling < replicas || zero_ok),
        (floor, replicas, may_floor(replicas)),
        (ceiling, more, surge > 0),
        (floor, more, surge > 0 && may_floor(more)),
    ];
    let mut best: Option<(i32, i32)> = None;
    let mut nearest = f64::INFINITY;
    for (new, total, _) in candidates.into_iter().filter(|(_, _, is_allowed)| *is_allowed) {
        let share = f64::from(new.saturating_mul(max_weight)) / f64::from(total);
        let distance = (share - f64::from(weight)).abs();
        if best.is_none() || distance < nearest {
            (best, nearest) = (Some((new, total)), distance);
        }
    }
    // Without surge a tie at the top leaves no candidate; one stable pod stays, the rest moves.
    let (new, total) = best.unwrap_or((replicas - 1, replicas));
    Sizes { new, stable: total - new }
}

/// The sizes both sides may have next, within maxSurge and maxUnavailable. `stable` is `None` where
/// there is no stable ReplicaSet apart from the new one; `others` is the size of all older ones.
pub fn next(goal: &SizeGoal, new: Option<Side>, stable: Option<Side>, others: i32) -> Sizes {
    let target = match stable {
        Some(_) => targets(goal),
        None => Sizes { new: goal.replicas, stable: 0 },
    };
    let max_total = goal.replicas.saturating_add(goal.surge);
    let min_available = goal.replicas - goal.unavailable;
    let increasing = new.is_none_or(|side| target.new >= side.size);
    let (new_side, stable_side) = (new.unwrap_or_default(), stable.unwrap_or_default());
    let mut sizes = Sizes { new: new_side.size, stable: stable_side.size };

    let total = others.saturating_add(sizes.new).saturating_add(sizes.stable);
    let mut room = max_total - total;
    if sizes.stable < target.stable && room > 0 {
        let grown = (sizes.stable + room).min(target.stable);
        room -= grown - sizes.stable;
        sizes.stable = grown;
    }
    if sizes.new < target.new && room > 0 {
        sizes.new = (sizes.new + room).min(target.new);
    }
    if others > 0 {
        return sizes; // Older ReplicaSets drain before these two may shrink.
    }

    let total = counted(new_side, !increasing) + counted(stable_side, increasing);
    if total <= min_available {
        return sizes;
    }
    let surplus = total - min_available;
    let limits = SizeLimits { max_total, min_available };
    if !increasing {
        if new_side.size > target.new {
            sizes.new = target.new.max(new_side.size - surplus);
        }
        let (drained, other) =
            limits.adjust((sizes.new, new_side.available), (sizes.stable, stable_side.available));
        sizes = Sizes { new: drained, stable: other };
    } else if stable.is_some() {
        if stable_side.size > target.stable {
            sizes.stable = target.stable.max(stable_side.size - surplus);
        }
        let (drained, other) =
            limits.adjust((sizes.stable, stable_side.available), (sizes.new, new_side.available));
        sizes = Sizes { new: other, stable: drained };
    }
    sizes
}

/// Pods that count towards the minimum. Of the side being drained, pods that never came up count
/// as if they were available, so that a crash loop cannot block the way.
fn counted(side: Side, ignore_availability: bool) -> i32 {
    if side.size < side.available || ignore_availability { side.size } else { side.available }
}

struct SizeLimits {
    max_total: i32,
    min_available: i32,
}

impl SizeLimits {
    /// Cuts the planned sizes of (drained, other), each with its available pods, to the limits.
    fn adjust(&self, drained: (i32, i32), other: (i32, i32)) -> (i32, i32) {
        let (mut drained_size, drained_available) = drained;
        let (mut other_size, other_available) = other;
        other_size -= (other_size + drained_size - self.max_total).max(0);
        let have = drained_available.min(drained_size) + other_available.min(other_size);
        let lost = (other_available - other_size).max(0);
        other_size += lost.min((self.min_available - have).max(0));
        drained_size -= (other_size + drained_size - self.max_total).max(0);
        (drained_size, other_size)
    }
}

/// maxSurge and maxUnavailable, resolved: at least one of them lets the update move.
pub fn resolve_limits(
    replicas: i32,
    surge: &IntOrPercent,
    unavailable: &IntOrPercent,
) -> (i32, i32) {
    let surge = surge.resolve(replicas, Round::Up);
    let mut unavailable = unavailable.resolve(replicas, Round::Down);
    if surge == 0 && unavailable == 0 {
        unavailable = 1;
    }
    (surge, unavailable.min(replicas))
}
