//! What does one pass want, whatever the strategy? Create, conditions, revision, then the strategy.

use std::sync::Arc;

use gradus_api::names::{condition, condition_status, reason};

use super::draft::Draft;
use super::replica_sets::{self, Roles};
use super::{blue_green, canary, conditions, status, workload};

/// One pass, as the contract orders it.
pub(super) fn pass(draft: Draft<'_>) -> Draft<'_> {
    let Some(new) = replica_sets::find_new(draft.rollout(), &draft.sets) else {
        return replica_sets::create(draft);
    };
    let is_paused = draft.spec().paused || !draft.status.pause_conditions.is_empty();
    if draft.is_observed()
        && let Some(found) = conditions::follow_pause(&draft.status, is_paused, draft.now)
    {
        return status::with_conditions(draft, found);
    }
    let draft = found_new(replica_sets::sync_revision(draft, new), new);
    let roles =
        Roles { new, stable: replica_sets::find_stable(&draft.status.stable_rs, &draft.sets) };
    let draft = match (draft.is_blue_green(), is_scaling_event(&draft, roles)) {
        (true, true) => blue_green::scale_only(draft, roles),
        (true, false) => blue_green::update(draft, roles),
        (false, true) => canary::scale_only(draft, roles),
        (false, false) => canary::update(draft, roles),
    };
    workload::scale_down(draft, roles)
}

/// A ReplicaSet that was there before us is noted once in the Progressing condition.
fn found_new(draft: Draft<'_>, new: usize) -> Draft<'_> {
    if draft.status.condition(condition::PROGRESSING).is_some() {
        return draft;
    }
    let mut draft = draft;
    let (truth, reason) = (condition_status::TRUE, reason::FOUND_NEW_REPLICA_SET);
    let words = format_args!("Found new replica set \"{}\"", draft.sets[new].name);
    let statement = conditions::Statement::progressing(truth, reason, words);
    let status = Arc::make_mut(&mut draft.status);
    conditions::set(&mut status.conditions, draft.now, statement);
    draft
}

/// Did somebody change the number of replicas since these ReplicaSets were last sized?
fn is_scaling_event(draft: &Draft<'_>, roles: Roles) -> bool {
    let replicas = draft.replicas();
    [Some(roles.new), roles.separate_stable()].into_iter().flatten().any(|at| {
        let set = &draft.sets[at];
        set.size > 0 && set.desired_replicas.is_some_and(|desired| desired != replicas)
    })
}
