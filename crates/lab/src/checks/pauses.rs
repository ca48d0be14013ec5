//! Where does a pause belong, and who has ended it: a person, or nobody yet?

use gradus_api::names::pause;
use serde_json::Value;

use super::told::Told;

/// The step whose pause a person has ended, to the end of that step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Resumed(Option<usize>);

impl Resumed {
    /// Has a person ended the pause of this step?
    pub(super) fn is_at(self, step: usize) -> bool {
        self.0 == Some(step)
    }

    /// Takes in a write of the status, whoever made it.
    pub(super) fn take_in(
        &mut self,
        spec: &Value,
        (old, new): (&Told<'_>, &Told<'_>),
        is_ours: bool,
    ) {
        if !old.is_same_update(new, spec) || old.index != new.index {
            self.0 = None;
        } else if !is_ours && ends(old, new) {
            self.0 = Some(new.index);
        }
    }
}

/// What is wrong with a pause that stands before and after a write of ours, if anything: it begins
/// once, and does not outlast its step or its update. `step` is the one that comes next, if it is
/// another.
pub(super) fn misplaced(
    old: &Told<'_>,
    new: &Told<'_>,
    step: Option<&Value>,
) -> Option<&'static str> {
    let starts =
        |reason: &str| Some((&old.pause(reason)?["startTime"], &new.pause(reason)?["startTime"]));
    let mut pauses = [pause::CANARY_PAUSE_STEP, pause::BLUE_GREEN_PAUSE].into_iter();
    let (was, is) = pauses.find_map(starts)?;
    match step {
        None => (was != is).then_some("a pause begins anew before it has ended"),
        Some(step) => (was == is && step.get("pause").is_none())
            .then_some("the pause of another step, or of another update, is kept"),
    }
}

/// Does the pause of a step end with this write?
pub(super) fn ends(old: &Told<'_>, new: &Told<'_>) -> bool {
    old.pause(pause::CANARY_PAUSE_STEP).is_some() && new.pause(pause::CANARY_PAUSE_STEP).is_none()
}
