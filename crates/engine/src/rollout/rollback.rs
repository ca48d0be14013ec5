//! Is this update a way back, and does it skip the steps?

use gradus_api::names::completion;

use super::delay;
use super::objects::Objects;
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
pub(super) fn classify(objects: &Objects<'_>, roles: Roles) -> Rollback {
    let Some(stable) = roles.stable else { return Rollback::None };
    if stable == roles.new {
        return Rollback::ToStable;
    }
    let window = objects.spec().rollback_window.as_ref().map_or(0, |window| window.revisions);
    let (from, to) = (objects.sets[roles.new].created, objects.sets[stable].created);
    if from >= to || window <= 0 {
        return Rollback::None;
    }
    let between = objects.sets.iter().filter(|set| from < set.created && set.created < to);
    let is_recent = i32::try_from(between.count()).is_ok_and(|between| between < window);
    if is_recent { Rollback::WithinWindow } else { Rollback::None }
}

/// Is the new revision the stable one, or older than it?
pub(super) fn is_rollback(objects: &Objects<'_>, roles: Roles) -> bool {
    roles.stable.is_some_and(|stable| {
        stable == roles.new || objects.sets[roles.new].created < objects.sets[stable].created
    })
}

/// Does this update skip pause and analysis? Back to stable, within the window, or, for a blue-green
/// rollout, to a ReplicaSet that waits for its end. That deadline goes once the status that begins the update
/// is stored, so the fast track is recalled to the end of the attempt: in memory, and after a restart from
/// the duration in that status.
pub(super) fn is_fast(objects: &Objects<'_>, roles: Roles) -> bool {
    classify(objects, roles) != Rollback::None
        || objects.is_blue_green()
            && is_rollback(objects, roles)
            && (awaits_end(objects, roles) || is_recalled(objects, roles))
}

/// Does the new ReplicaSet still wait for the end of its delay?
pub(super) fn awaits_end(objects: &Objects<'_>, roles: Roles) -> bool {
    let deadline = delay::moment(objects.sets[roles.new].deadline);
    !objects.status.abort && deadline.is_some_and(|end| objects.now < end)
}

fn is_recalled(objects: &Objects<'_>, roles: Roles) -> bool {
    let hash = &*objects.sets[roles.new].hash;
    let open = objects.status.duration.as_ref().filter(|known| known.finished_at.is_none());
    let is_noted = open
        .is_some_and(|it| it.completion_status.as_deref() == Some(completion::FAST_ROLLED_BACK));
    objects.memo.fast_track.as_deref() == Some(hash) || is_noted && objects.has_begun(roles.new)
}
