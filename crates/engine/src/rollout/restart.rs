//! Which pods are restarted now? Those made before `spec.restartAt`, by eviction, never more at once
//! than may be missing.

use gradus_api::rollout::RolloutStatus;
use gradus_api::values::{Round, Time};
use jiff::{SignedDuration, Timestamp};

use super::objects::{Edit, Objects};
use super::plan::{Creation, Proposal};
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
pub(super) fn apply(objects: &Objects<'_>, creation: Creation, roles: Roles) -> Proposal {
    let Some(restart_at) = wanted(objects) else { return Proposal::default() };
    if objects.now < restart_at.timestamp() {
        return Proposal::default().wake(restart_at.timestamp());
    }
    let sets = with_pods(objects);
    let asked = want_pods(objects, roles, &sets);
    let Some(standing) = RestartProgress::of(objects, roles, &sets, restart_at) else {
        return asked;
    };
    if standing.older.is_empty() {
        let status = RolloutStatus::clone(&objects.status);
        return asked.note(RolloutStatus { restarted_at: Some(restart_at), ..status });
    }
    if let Some((_, failure)) = standing.refused(objects) {
        return asked.wake(failure.retry_at);
    }
    if creation != Creation::None {
        return asked; // How many pods must stay is known when the new ReplicaSet has its size.
    }
    let staying = standing.older.iter().filter(|pod| !pod.terminating);
    staying.take(standing.may_go).fold(asked, |evicted, pod| {
        let eviction = Change::evict(reference(objects, pod), pod.uid).or_skip_for(RETRY);
        evicted.write_if_free(eviction, Edit::Unseen)
    })
}

/// Is a restart wanted, not done, and is its time here?
pub(super) fn is_due(objects: &Objects<'_>) -> bool {
    wanted(objects).is_some_and(|at| at.timestamp() <= objects.now)
}

/// What keeps a restart from being done.
pub(super) fn explain(objects: &Objects<'_>, roles: Roles) -> Vec<Why> {
    let Some(restart_at) = wanted(objects) else { return Vec::new() };
    let why = |guard: Guard, object: ObjectRef, frees: Frees| Why {
        guard,
        object,
        field: "spec.restartAt".into(),
        since: Some(restart_at.timestamp()).filter(|at| *at <= objects.now),
        frees,
    };
    let rollout = objects.rollout().reference();
    if objects.now < restart_at.timestamp() {
        let waits = Frees::At(restart_at.timestamp());
        return vec![why(Guard::Restart { older: None }, rollout, waits)];
    }
    let sets = with_pods(objects);
    let Some(standing) = RestartProgress::of(objects, roles, &sets, restart_at) else {
        return sets.iter().take(1).map(|at| pods::unknown(objects, roles, *at)).collect();
    };
    if let Some((pod, failure)) = standing.refused(objects) {
        let guard = Guard::Refused { message: failure.message.clone(), times: failure.times };
        return vec![why(guard, reference(objects, pod), Frees::At(failure.retry_at))];
    }
    let older = Some(standing.older.len());
    vec![why(Guard::Restart { older }, rollout, Frees::Cluster)]
}

/// The restart that is asked for and not done.
fn wanted(objects: &Objects<'_>) -> Option<Time> {
    objects.spec().restart_at.filter(|at| Some(*at) != objects.status.restarted_at)
}

/// ReplicaSets that have, or are to have, pods.
fn with_pods(objects: &Objects<'_>) -> Vec<usize> {
    let has_pods = |at: &usize| objects.sets[*at].size > 0 || objects.sets[*at].replicas > 0;
    (0..objects.sets.len()).filter(has_pods).collect()
}

/// Lists the pods, again when the last list is too old to go on with.
fn want_pods(objects: &Objects<'_>, roles: Roles, sets: &[usize]) -> Proposal {
    let each = sets.iter().map(|at| {
        match pods::listed(objects, roles, *at).map(|listed| expiry(&listed)) {
            None => pods::want(objects, roles, *at, None),
            Some(end) if objects.now < end => pods::want(objects, roles, *at, None).wake(end),
            Some(end) => pods::want(objects, roles, *at, Some(end)),
        }
    });
    each.collect()
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
    fn of(objects: &Objects<'_>, roles: Roles, sets: &[usize], restart_at: Time) -> Option<Self> {
        let mut older = Vec::new();
        let mut available = 0;
        for at in sets {
            let set = &objects.sets[*at];
            let listed = pods::listed(objects, roles, *at)?;
            if expiry(&listed) <= objects.now {
                return None;
            }
            let serves = |pod: &&PodView| pod.is_available(set.min_ready_seconds, objects.now);
            let serving = listed.pods.iter().filter(serves).count();
            // Pods beyond the size are about to go by themselves, and some may have failed since
            // they were listed.
            available += i32::try_from(serving).unwrap_or(i32::MAX).min(set.available());
            let is_older =
                |pod: &&PodView| pod.created.is_some_and(|at| at < restart_at.timestamp());
            older.extend(listed.pods.iter().filter(is_older).cloned());
        }
        older.sort_by(|one, other| one.name.cmp(&other.name));
        let all: i32 = objects.sets.iter().map(|set| set.size).sum();
        let floor = objects.replicas().max(all) - max_unavailable(objects).max(1);
        Some(RestartProgress { older, may_go: usize::try_from(available - floor).unwrap_or(0) })
    }

    /// The eviction that was refused last and must wait. A budget speaks for all its pods: until
    /// its time no other pod is asked to go either.
    fn refused<'w>(&self, objects: &Objects<'w>) -> Option<(&PodView, &'w Failure)> {
        let refused = self.older.iter().filter_map(|pod| {
            let id = ChangeId::of("evict", &reference(objects, pod));
            let failure = objects.world.recall.failed.get(&id)?;
            (objects.now < failure.retry_at).then_some((pod, failure))
        });
        refused.max_by_key(|(_, failure)| failure.retry_at)
    }
}

/// How many pods may be missing.
fn max_unavailable(objects: &Objects<'_>) -> i32 {
    let replicas = objects.replicas();
    match &objects.spec().strategy.blue_green {
        Some(strategy) => {
            strategy.max_unavailable_or_default().resolve(replicas, Round::Down).min(replicas)
        }
        None => {
            let canary = objects.canary();
            let (surge, unavailable) =
                (canary.max_surge_or_default(), canary.max_unavailable_or_default());
            scale::resolve_limits(replicas, &surge, &unavailable).1
        }
    }
}

fn reference(objects: &Objects<'_>, pod: &PodView) -> ObjectRef {
    ObjectRef::new(kinds::POD, &objects.rollout().namespace, &pod.name)
}
