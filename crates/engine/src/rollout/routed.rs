//! How large are the ReplicaSets of a canary whose traffic a router splits, and when do they go?

use gradus_api::defaults::AbortDelay;
use gradus_api::rollout::RolloutSpec;
use gradus_api::rollout::canary::SetCanaryScale;

use super::delay::OldSets;
use super::draft::Draft;
use super::objects::Objects;
use super::plan::{Plan, Proposal};
use super::replica_sets::{Roles, resize};
use super::scale::{self, Routed, Sizes, pods_for};
use super::{canary, told, weights};
use crate::traffic::TrafficSide;
use crate::world::Deadline;

/// Does a router split the traffic of this rollout?
pub(super) fn is_routed(spec: &RolloutSpec) -> bool {
    let canary = spec.strategy.canary.as_ref();
    canary.is_some_and(|canary| canary.traffic_routing.is_some())
}

/// The sizes that new and stable should have.
pub(super) fn sizes(objects: &Objects<'_>, roles: Roles) -> Sizes {
    let strategy = objects.canary();
    let max_weight = strategy.max_weight();
    // Where the stable revision is wanted again, the status tells of the update before until a pass that
    // follows `spec.replicas` is over.
    let is_whole =
        objects.promotes_fully() || roles.separate_stable().is_none() || objects.is_promoted();
    let (weight, exact) = match canary_scale(objects) {
        _ if is_whole => (max_weight, None),
        Some(SetCanaryScale { replicas: Some(replicas), .. }) => (0, Some(*replicas)),
        Some(SetCanaryScale { weight: Some(weight), .. }) => (*weight, None),
        _ => (canary::set_weight(objects), None),
    };
    scale::routed(&Routed {
        replicas: objects.replicas(),
        max_weight,
        weight,
        exact,
        // Where no router is named, somebody else sends what the steps say.
        carried: weights::carried(objects).unwrap_or_else(|| weight.clamp(0, max_weight)),
        least: strategy.min_pods_per_replica_set,
        is_dynamic: strategy.dynamic_stable_scale,
        is_aborted: objects.is_aborted(),
    })
}

/// The setCanaryScale that rules now: the nearest up to the current step, none after an abort.
fn canary_scale<'w>(objects: &Objects<'w>) -> Option<&'w SetCanaryScale> {
    let (index, _) = objects.current_step().filter(|_| !objects.is_aborted())?;
    let passed = objects.steps()[..=index].iter().rev();
    let nearest = passed.into_iter().find_map(|step| step.set_canary_scale.as_ref())?;
    (!nearest.match_traffic_weight).then_some(nearest)
}

/// The size a ReplicaSet may be given when another is wanted: it does not shrink below what carries
/// its traffic, and not at all in a decision that moves traffic.
pub(super) fn allowed(
    objects: &Objects<'_>,
    plan: &Plan,
    roles: Roles,
    at: usize,
    wanted: i32,
) -> i32 {
    let set = &objects.sets[at];
    if !is_routed(objects.spec()) || wanted >= set.size || objects.replicas() == 0 {
        return wanted;
    }
    if weights::is_moving(plan) || told::is_open(objects) {
        return set.size;
    }
    let share = weights::share(objects, &set.hash);
    let mut least = pods_for(objects.replicas(), share, objects.canary().max_weight());
    // A person may size the canary below its traffic, but never to nothing.
    if at == roles.new && canary_scale(objects).is_some() {
        least = least.min(wanted.max(1));
    }
    wanted.max(least.min(set.size))
}

/// How long the new ReplicaSet stays after an abort; `None` where it follows its traffic.
pub(super) fn abort_delay(objects: &Objects<'_>, roles: Roles) -> Option<AbortDelay> {
    let strategy = objects.canary();
    roles.separate_stable()?;
    let follows = strategy.dynamic_stable_scale
        && strategy.abort_scale_down_delay_seconds.is_none_or(|seconds| seconds == 0);
    if !is_routed(objects.spec()) || !objects.is_aborted() || follows {
        return None;
    }
    let has_traffic = weights::share(objects, &objects.sets[roles.new].hash) > 0;
    Some(if has_traffic { AbortDelay::Forever } else { strategy.abort_delay() })
}

/// Older ReplicaSets that nothing leads to give up what is not available; then those that served
/// until now stay for their delay, and the rest goes.
pub(super) fn drain_others(draft: Draft<'_>, roles: Roles) -> Draft<'_> {
    let sets = &draft.objects.sets;
    let active: Vec<usize> = roles.others(&draft.objects).filter(|at| sets[*at].size > 0).collect();
    let is_behind = |at: &usize| sets[*at].reported_available > sets[*at].size;
    if active.iter().any(is_behind) || weights::is_moving(&draft.plan) {
        return draft;
    }
    let free: Vec<usize> =
        active.into_iter().filter(|at| !is_referenced(&draft.objects, *at)).collect();
    draft
        .then(|objects| {
            free.iter().map(|at| resize(objects, *at, objects.sets[*at].available())).collect()
        })
        .then(|objects| retire(objects, &free))
}

/// Those that nothing leads to and that served until now stay for their delay; the rest goes, as far
/// as enough pods are left.
fn retire(objects: &Objects<'_>, free: &[usize]) -> Proposal {
    let goal = canary::goal(objects);
    let available: i32 = objects.sets.iter().map(|set| set.available()).sum();
    let mut budget = available - (goal.replicas - goal.unavailable);
    if budget <= 0 {
        return Proposal::default();
    }
    let mut newest_first = free.to_vec();
    newest_first.sort_by_key(|at| std::cmp::Reverse(objects.sets[*at].revision));
    let strategy = objects.canary();
    let stays = |at: &usize| {
        let has_served = objects.is_promoted() || objects.sets[*at].deadline != Deadline::None;
        has_served && !strategy.dynamic_stable_scale
    };
    let (staying, going): (Vec<usize>, Vec<usize>) = newest_first.into_iter().partition(stays);
    let mut retired = Proposal::default();
    for at in going {
        if budget > 0 {
            budget -= objects.sets[at].size;
            retired = retired.and(resize(objects, at, 0));
        }
    }
    let old = OldSets {
        newest_first: staying,
        delay_seconds: strategy.scale_down_delay_seconds_or_default(),
        limit: strategy.scale_down_delay_revision_limit_or_default(),
        size_meanwhile: None,
    };
    retired.and(old.retire(objects))
}

/// Does anything still lead to this ReplicaSet, by what is stored or by what is planned? Without
/// replicas nobody is sent anywhere, and no Service would ever find pods to leave it for.
fn is_referenced(objects: &Objects<'_>, at: usize) -> bool {
    if objects.replicas() == 0 {
        return false;
    }
    let hash = &objects.sets[at].hash;
    let strategy = objects.canary();
    let stored = [&*objects.rollout().status, &objects.status].into_iter().any(|status| {
        let weights = status.canary.weights.as_ref();
        let parts = weights.map(|weights| [&weights.canary, &weights.stable]);
        let mut hashes = parts.into_iter().flatten().map(|part| &part.pod_template_hash);
        hashes.any(|known| **known == **hash)
    });
    let services = [&strategy.stable_service, &strategy.canary_service];
    let live = services.into_iter().any(|name| {
        objects.service(name).is_some_and(|service| service.hash.as_ref() == Some(hash))
    });
    let is_subset = [TrafficSide::Canary, TrafficSide::Stable]
        .into_iter()
        .any(|side| weights::by_router(objects, side).is_some_and(|known| *known == **hash));
    stored || live || is_subset || weights::share(objects, hash) > 0
}
