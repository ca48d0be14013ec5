//! Which pods are restarted now? Those made before `spec.restartAt`, by eviction, never more at once
//! than may be missing.

use std::sync::Arc;

use gradus_api::values::{Round, Time};
use jiff::{SignedDuration, Timestamp};

use super::draft::{Creation, Draft};
use super::pods::{self, Listed};
use super::replica_sets::Roles;
use super::scale;
use crate::ask::Failure;
use crate::decision::{Change, ChangeId, Frees, Guard, ObjectRef, Why};
use crate::kinds;
use crate::world::PodView;

/// How long a refused eviction waits, and how old a list of pods may get while some are refused.
const RETRY: SignedDuration = SignedDuration::from_secs(30);

/// How old a list of pods may get while the last of them are on their way out.
const LAST_ONES: SignedDuration = SignedDuration::from_secs(5);

/// Evicts what may be evicted now; notes the restart as done when no older pod is left.
pub(super) fn apply(draft: Draft<'_>, roles: Roles) -> Draft<'_> {
    let Some(restart_at) = wanted(&draft) else { return draft };
    if draft.now < restart_at.timestamp() {
        return draft.wake(restart_at.timestamp());
    }
    let sets = with_pods(&draft);
    let draft = want_pods(draft, roles, &sets);
    let Some(standing) = RestartProgress::of(&draft, roles, &sets, restart_at) else {
        return draft;
    };
    let mut draft = draft;
    if standing.older.is_empty() {
        Arc::make_mut(&mut draft.status).restarted_at = Some(restart_at);
        return draft;
    }
    if let Some((_, failure)) = standing.refused(&draft) {
        return draft.wake(failure.retry_at);
    }
    if draft.creation != Creation::None {
        return draft; // How many pods must stay is known when the new ReplicaSet has its size.
    }
    let staying = standing.older.iter().filter(|pod| !pod.terminating);
    for pod in staying.take(standing.may_go) {
        let eviction = Change::evict(reference(&draft, pod), pod.uid).or_skip_for(RETRY);
        draft = draft.plan(eviction);
    }
    draft
}

/// Is a restart wanted, not done, and is its time here?
pub(super) fn is_due(draft: &Draft<'_>) -> bool {
    wanted(draft).is_some_and(|at| at.timestamp() <= draft.now)
}

/// What keeps a restart from being done.
pub(super) fn explain(draft: &Draft<'_>, roles: Roles) -> Vec<Why> {
    let Some(restart_at) = wanted(draft) else { return Vec::new() };
    let why = |guard: Guard, object: ObjectRef, frees: Frees| Why {
        guard,
        object,
        field: "spec.restartAt".into(),
        since: Some(restart_at.timestamp()).filter(|at| *at <= draft.now),
        frees,
    };
    let rollout = draft.rollout().reference();
    if draft.now < restart_at.timestamp() {
        let waits = Frees::At(restart_at.timestamp());
        return vec![why(Guard::Restart { older: None }, rollout, waits)];
    }
    let sets = with_pods(draft);
    let Some(standing) = RestartProgress::of(draft, roles, &sets, restart_at) else {
        return sets.iter().take(1).map(|at| pods::unknown(draft, roles, *at)).collect();
    };
    if let Some((pod, failure)) = standing.refused(draft) {
        let guard = Guard::Refused { message: failure.message.clone(), times: failure.times };
        return vec![why(guard, reference(draft, pod), Frees::At(failure.retry_at))];
    }
    let older = Some(standing.older.len());
    vec![why(Guard::Restart { older }, rollout, Frees::Cluster)]
}

/// The restart that is asked for and not done.
fn wanted(draft: &Draft<'_>) -> Option<Time> {
    draft.spec().restart_at.filter(|at| Some(*at) != draft.status.restarted_at)
}

/// ReplicaSets that have, or are to have, pods.
fn with_pods(draft: &Draft<'_>) -> Vec<usize> {
    let has_pods = |at: &usize| draft.sets[*at].size > 0 || draft.sets[*at].replicas > 0;
    (0..draft.sets.len()).filter(has_pods).collect()
}

/// Lists the pods, again when the last list is too old to go on with.
fn want_pods<'w>(draft: Draft<'w>, roles: Roles, sets: &[usize]) -> Draft<'w> {
    sets.iter().fold(draft, |draft, at| {
        match pods::listed(&draft, roles, *at).map(|listed| expiry(&listed)) {
            None => pods::want(draft, roles, *at, None),
            Some(end) if draft.now < end => pods::want(draft, roles, *at, None).wake(end),
            Some(end) => pods::want(draft, roles, *at, Some(end)),
        }
    })
}

/// When a list is too old to go on with.
fn expiry(listed: &Listed) -> Timestamp {
    let is_leaving = listed.pods.iter().any(|pod| pod.terminating);
    listed.asked_at + if is_leaving { LAST_ONES } else { RETRY }
}

/// How far a restart has come.
struct RestartProgress {
    /// Pods from before the restart, by name.
    older: Vec<PodView>,
    /// How many of them may be missing beyond those that are.
    may_go: usize,
}

impl RestartProgress {
    /// `None` while the pods of a ReplicaSet are not known.
    fn of(draft: &Draft<'_>, roles: Roles, sets: &[usize], restart_at: Time) -> Option<Self> {
        let mut older = Vec::new();
        let mut available = 0;
        for at in sets {
            let set = &draft.sets[*at];
            let listed = pods::listed(draft, roles, *at)?;
            if expiry(&listed) <= draft.now {
                return None;
            }
            let serves = |pod: &&PodView| pod.is_available(set.min_ready_seconds, draft.now);
            let serving = listed.pods.iter().filter(serves).count();
            // Pods beyond the size are about to go by themselves, and some may have failed since
            // they were listed.
            available += i32::try_from(serving).unwrap_or(i32::MAX).min(set.available());
            let is_older =
                |pod: &&PodView| pod.created.is_some_and(|at| at < restart_at.timestamp());
            older.extend(listed.pods.iter().filter(is_older).cloned());
        }
        older.sort_by(|one, other| one.name.cmp(&other.name));
        let all: i32 = draft.sets.iter().map(|set| set.size).sum();
        let floor = draft.replicas().max(all) - max_unavailable(draft).max(1);
        Some(RestartProgress { older, may_go: usize::try_from(available - floor).unwrap_or(0) })
    }

    /// The eviction that was refused last and must wait. A budget speaks for all its pods: until
    /// its time no other pod is asked to go either.
    fn refused<'w>(&self, draft: &Draft<'w>) -> Option<(&PodView, &'w Failure)> {
        let refused = self.older.iter().filter_map(|pod| {
            let id = ChangeId::of("evict", &reference(draft, pod));
            let failure = draft.world.recall.failed.get(&id)?;
            (draft.now < failure.retry_at).then_some((pod, failure))
        });
        refused.max_by_key(|(_, failure)| failure.retry_at)
    }
}

/// How many pods may be missing.
fn max_unavailable(draft: &Draft<'_>) -> i32 {
    let replicas = draft.replicas();
    match &draft.spec().strategy.blue_green {
        Some(strategy) => {
            strategy.max_unavailable_or_default().resolve(replicas, Round::Down).min(replicas)
        }
        None => {
            let canary = draft.canary();
            let (surge, unavailable) =
                (canary.max_surge_or_default(), canary.max_unavailable_or_default());
            scale::resolve_limits(replicas, &surge, &unavailable).1
        }
    }
}

fn reference(draft: &Draft<'_>, pod: &PodView) -> ObjectRef {
    ObjectRef::new(kinds::POD, &draft.rollout().namespace, &pod.name)
}
