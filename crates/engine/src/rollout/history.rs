//! Which old ReplicaSets are no longer kept?

use std::sync::Arc;

use super::draft::Draft;
use super::replica_sets::Roles;
use crate::decision::Change;

/// Plans the end of the oldest ReplicaSets beyond `revisionHistoryLimit`. One that still has pods,
/// or whose last resize nobody has seen, is left for later; no younger one goes in its stead.
pub(super) fn clean_up<'w>(draft: Draft<'w>, roles: Roles) -> Draft<'w> {
    let limit = draft.spec().revision_history_limit_or_default();
    let mut old: Vec<usize> = roles.others(&draft).filter(|at| !draft.sets[*at].deleting).collect();
    old.sort_by_key(|at| (draft.sets[*at].created, Arc::clone(&draft.sets[*at].name)));
    let excess = old.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
    let mut draft = draft;
    for at in old.into_iter().take(excess) {
        let set = Arc::clone(&draft.sets[at]);
        if set.size != 0 || set.replicas != 0 || !set.is_observed() {
            continue;
        }
        let target = draft.rollout().replica_set(&set.name);
        if draft.changes.iter().any(|change| change.target == target) {
            continue;
        }
        draft.changes.push(Change::delete(target, set.uid).or_skip());
        Arc::make_mut(&mut draft.sets[at]).deleting = true;
    }
    draft
}
