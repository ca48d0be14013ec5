//! What does one pass want, whatever the strategy? Create, conditions, revision, then the strategy.

use gradus_api::names::{condition, condition_status, reason};
use gradus_api::rollout::RolloutStatus;

use super::draft::{Draft, Passed};
use super::objects::Objects;
use super::plan::Proposal;
use super::replica_sets::{self, Roles};
use super::{blue_green, canary, conditions, status, workload};

/// One pass, as the contract orders it.
pub(super) fn pass(draft: Draft<'_>) -> Passed<'_> {
    let objects = &draft.objects;
    let Some(new) = replica_sets::find_new(objects.rollout(), &objects.sets) else {
        return draft.then(replica_sets::create).passed();
    };
    let is_paused = objects.spec().paused || !objects.status.pause_conditions.is_empty();
    if objects.is_observed()
        && let Some(found) = conditions::follow_pause(&objects.status, is_paused, objects.now)
    {
        return draft.then(|objects| status::with_conditions(objects, found)).passed();
    }
    let creation = draft.plan.creation;
    let draft = draft
        .then(|objects| replica_sets::sync_revision(objects, creation, new))
        .then(|objects| found_new(objects, new));
    let objects = &draft.objects;
    let stable = replica_sets::find_stable(&objects.status.stable_rs, &objects.sets);
    let roles = Roles { new, stable };
    let Passed { draft, found } = match (objects.is_blue_green(), is_scaling_event(objects, roles))
    {
        (true, true) => blue_green::scale_only(draft, roles),
        (true, false) => blue_green::update(draft, roles),
        (false, true) => canary::scale_only(draft, roles),
        (false, false) => canary::update(draft, roles),
    };
    Passed { draft: draft.then(|objects| workload::scale_down(objects, roles)), found }
}

/// A ReplicaSet that was there before us is noted once in the Progressing condition.
fn found_new(objects: &Objects<'_>, new: usize) -> Proposal {
    if objects.status.condition(condition::PROGRESSING).is_some() {
        return Proposal::default();
    }
    let (truth, reason) = (condition_status::TRUE, reason::FOUND_NEW_REPLICA_SET);
    let words = format_args!("Found new replica set \"{}\"", objects.sets[new].name);
    let statement = conditions::Statement::progressing(truth, reason, words);
    let mut status = RolloutStatus::clone(&objects.status);
    conditions::set(&mut status.conditions, objects.now, statement);
    Proposal::default().note(status)
}

/// Did somebody change the number of replicas since these ReplicaSets were last sized?
fn is_scaling_event(objects: &Objects<'_>, roles: Roles) -> bool {
    let replicas = objects.replicas();
    [Some(roles.new), roles.separate_stable()].into_iter().flatten().any(|at| {
        let set = &objects.sets[at];
        set.size > 0 && set.desired_replicas.is_some_and(|desired| desired != replicas)
    })
}
