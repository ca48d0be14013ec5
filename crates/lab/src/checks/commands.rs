//! Is what a user has written into the status still there, or carried out?

use super::told::Told;

/// Which command of a user a status write of ours has lost, if any.
pub(super) fn judge(old: &Told<'_>, new: &Told<'_>) -> Option<String> {
    if !(old.is_aborted || old.promotes_fully || old.controller_pause) {
        return None;
    }
    if !old.is_same_update(new) || new.is_promoted() {
        return None;
    }
    // Beside an abort that was not answered yet, nobody can tell which wish came first: the abort
    // wins. One that was answered is older than the wish to promote.
    let is_fresh_abort = old.is_aborted && !old.is_abort_noted;
    let is_overruled = old.promotes_fully && !is_fresh_abort;
    if old.is_aborted && !new.is_aborted && !is_overruled {
        return Some("an abort is taken back although the update is not over".to_owned());
    }
    if old.promotes_fully && !new.promotes_fully && !is_fresh_abort {
        return Some("a full promote is taken back although the update is not over".to_owned());
    }
    let was_ended = old.controller_pause && old.step_pause().is_none() && !old.is_aborted;
    if was_ended && old.index == new.index && new.step_pause().is_some() {
        return Some("a pause begins again although a promote has ended it".to_owned());
    }
    None
}
