//! Is this update a way back, and does it skip the steps?

use super::draft::Draft;
use super::replica_sets::Roles;

/// What kind of way back an update is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rollback {
    /// None: forward, or back without a shortcut.
    None,
    /// Back to the stable revision in mid-update, or at rest on it.
    ToStable,
    /// Back to an older revision that is recent enough.
    WithinWindow,
}

/// Goes by creation times, not by revision numbers, which rise when a revision is used again.
pub(super) fn classify(draft: &Draft<'_>, roles: Roles) -> Rollback {
    let Some(stable) = roles.stable else { return Rollback::None };
    if stable == roles.new {
        return Rollback::ToStable;
    }
    let window = draft.spec().rollback_window.as_ref().map_or(0, |window| window.revisions);
    let (from, to) = (draft.sets[roles.new].created, draft.sets[stable].created);
    if from >= to || window <= 0 {
        return Rollback::None;
    }
    let between = draft.sets.iter().filter(|set| from < set.created && set.created < to);
    let is_recent = i32::try_from(between.count()).is_ok_and(|between| between < window);
    if is_recent { Rollback::WithinWindow } else { Rollback::None }
}

/// Is the new revision the stable one, or older than it?
pub(super) fn is_rollback(draft: &Draft<'_>, roles: Roles) -> bool {
    roles.stable.is_some_and(|stable| {
        stable == roles.new || draft.sets[roles.new].created < draft.sets[stable].created
    })
}
