//! How large are the ReplicaSets of a canary whose traffic a router splits, and when do they go?

use gradus_api::defaults::AbortDelay;
use gradus_api::rollout::RolloutSpec;
use gradus_api::rollout::canary::SetCanaryScale;

use super::delay::OldSets;
use super::draft::Draft;
use super::replica_sets::Roles;
use super::scale::{self, Routed, Sizes, pods_for};
use super::{canary, weights};
use crate::traffic::TrafficSide;
use crate::world::Deadline;

/// Does a router split the traffic of this rollout?
pub(super) fn is_routed(spec: &RolloutSpec) -> bool {
    let canary = spec.strategy.canary.as_ref();
    canary.is_some_and(|canary| canary.traffic_routing.is_some())
}

/// The sizes that new and stable should have.
pub(super) fn sizes(draft: &Draft<'_>, roles: Roles) -> Sizes {
    let strategy = draft.canary();
    let max_weight = strategy.max_weight();
    let is_whole = draft.promotes_fully() || roles.stable.is_none() || draft.is_promoted();
    let (weight, exact) = match canary_scale(draft) {
        _ if is_whole => (max_weight, None),
        Some(SetCanaryScale { replicas: Some(replicas), .. }) => (0, Some(*replicas)),
        Some(SetCanaryScale { weight: Some(weight), .. }) => (*weight, None),
        _ => (canary::set_weight(draft), None),
    };
    scale::routed(&Routed {
        replicas: draft.replicas(),
        max_weight,
        weight,
        exact,
        // Where no router is named, somebody else sends what the steps say.
        carried: weights::carried(draft).unwrap_or_else(|| weight.clamp(0, max_weight)),
        least: strategy.min_pods_per_replica_set,
        is_dynamic: strategy.dynamic_stable_scale,
        is_aborted: draft.is_aborted(),
    })
}

/// The setCanaryScale that rules now: the nearest up to the current step, none after an abort.
fn canary_scale<'w>(draft: &Draft<'w>) -> Option<&'w SetCanaryScale> {
    let (index, _) = draft.current_step().filter(|_| !draft.is_aborted())?;
    let passed = draft.steps()[..=index].iter().rev();
    let nearest = passed.into_iter().find_map(|step| step.set_canary_scale.as_ref())?;
    (!nearest.match_traffic_weight).then_some(nearest)
}

/// The size a ReplicaSet may be given when another is wanted: it does not shrink below what carries
/// its traffic, and not at all in a decision that moves traffic.
pub(super) fn allowed(draft: &Draft<'_>, roles: Roles, at: usize, wanted: i32) -> i32 {
    let set = &draft.sets[at];
    if !is_routed(draft.spec()) || wanted >= set.size || draft.replicas() == 0 {
        return wanted;
    }
    if weights::is_moving(draft) {
        return set.size;
    }
    let share = weights::share(draft, &set.hash);
    let mut least = pods_for(draft.replicas(), share, draft.canary().max_weight());
    // A person may size the canary below its traffic, but never to nothing.
    if at == roles.new && canary_scale(draft).is_some() {
        least = least.min(wanted.max(1));
    }
    wanted.max(least.min(set.size))
}

/// How long the new ReplicaSet stays after an abort; `None` where it follows its traffic.
pub(super) fn abort_delay(draft: &Draft<'_>, roles: Roles) -> Option<AbortDelay> {
    let strategy = draft.canary();
    roles.separate_stable()?;
    let follows = strategy.dynamic_stable_scale
        && strategy.abort_scale_down_delay_seconds.is_none_or(|seconds| seconds == 0);
    if !is_routed(draft.spec()) || !draft.is_aborted() || follows {
        return None;
    }
    let has_traffic = weights::share(draft, &draft.sets[roles.new].hash) > 0;
    Some(if has_traffic { AbortDelay::Forever } else { strategy.abort_delay() })
}

/// Older ReplicaSets that nothing leads to give up what is not available; then those that served
/// until now stay for their delay, and the rest goes.
pub(super) fn drain_others(draft: Draft<'_>, roles: Roles) -> Draft<'_> {
    let active: Vec<usize> = roles.others(&draft).filter(|at| draft.sets[*at].size > 0).collect();
    let is_behind = |at: &usize| draft.sets[*at].reported_available > draft.sets[*at].size;
    if active.iter().any(is_behind) || weights::is_moving(&draft) {
        return draft;
    }
    let mut free: Vec<usize> =
        active.into_iter().filter(|at| !is_referenced(&draft, *at)).collect();
    let mut draft = draft;
    for at in &free {
        let available = draft.sets[*at].available();
        draft = draft.resize(*at, available);
    }
    let goal = canary::goal(&draft);
    let available: i32 = draft.sets.iter().map(|set| set.available()).sum();
    let mut budget = available - (goal.replicas - goal.unavailable);
    if budget <= 0 {
        return draft;
    }
    free.sort_by_key(|at| std::cmp::Reverse(draft.sets[*at].revision));
    let strategy = draft.canary();
    let stays = |at: &usize| {
        let has_served = draft.is_promoted() || draft.sets[*at].deadline != Deadline::None;
        has_served && !strategy.dynamic_stable_scale
    };
    let (staying, going): (Vec<usize>, Vec<usize>) = free.into_iter().partition(stays);
    for at in going {
        if budget > 0 {
            budget -= draft.sets[at].size;
            draft = draft.resize(at, 0);
        }
    }
    let old = OldSets {
        newest_first: staying,
        delay_seconds: strategy.scale_down_delay_seconds_or_default(),
        limit: strategy.scale_down_delay_revision_limit_or_default(),
        size_meanwhile: None,
    };
    old.retire(draft)
}

/// Does anything still lead to this ReplicaSet, by what is stored or by what is planned? Without
/// replicas nobody is sent anywhere, and no Service would ever find pods to leave it for.
fn is_referenced(draft: &Draft<'_>, at: usize) -> bool {
    if draft.replicas() == 0 {
        return false;
    }
    let hash = &draft.sets[at].hash;
    let strategy = draft.canary();
    let stored = [&*draft.rollout().status, &draft.status].into_iter().any(|status| {
        let weights = status.canary.weights.as_ref();
        let parts = weights.map(|weights| [&weights.canary, &weights.stable]);
        let mut hashes = parts.into_iter().flatten().map(|part| &part.pod_template_hash);
        hashes.any(|known| **known == **hash)
    });
    let services = [&strategy.stable_service, &strategy.canary_service];
    let live = services
        .into_iter()
        .any(|name| draft.service(name).is_some_and(|service| service.hash.as_ref() == Some(hash)));
    let is_subset = [TrafficSide::Canary, TrafficSide::Stable]
        .into_iter()
        .any(|side| weights::by_router(draft, side).is_some_and(|known| *known == **hash));
    stored || live || is_subset || weights::share(draft, hash) > 0
}
