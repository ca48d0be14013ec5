//! Which old ReplicaSets are no longer kept?

use std::sync::Arc;

use super::objects::{Edit, Objects};
use super::plan::Proposal;
use super::replica_sets::Roles;
use crate::decision::Change;

/// Plans the end of the oldest ReplicaSets beyond `revisionHistoryLimit`. One that still has pods,
/// or whose last resize nobody has seen, is left for later; no younger one goes in its stead.
pub(super) fn clean_up(objects: &Objects<'_>, roles: Roles) -> Proposal {
    let limit = objects.spec().revision_history_limit_or_default();
    let mut old: Vec<usize> =
        roles.others(objects).filter(|at| !objects.sets[*at].deleting).collect();
    old.sort_by_key(|at| (objects.sets[*at].created, Arc::clone(&objects.sets[*at].name)));
    let excess = old.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
    let mut deleted = Proposal::default();
    for at in old.into_iter().take(excess) {
        let set = &objects.sets[at];
        if set.size == 0 && set.replicas == 0 && set.is_observed() {
            let target = objects.rollout().replica_set(&set.name);
            let change = Change::delete(target, set.uid).or_skip();
            deleted = deleted.write_if_free(change, Edit::DeleteSet(at));
        }
    }
    deleted
}
