//! What does a Rollout's status say of what its writes are judged by?

use gradus_engine::template::older_step_hashes;
use serde_json::Value;

/// A status, read in one walk: every write of ours is judged by the one before and the one after.
#[derive(Debug)]
pub(super) struct Told<'s> {
    /// Hashes of the revision that is rolled out, of its steps, and of the stable revision; empty
    /// where there is none.
    pub hash: &'s str,
    pub step_hash: &'s str,
    pub stable: &'s str,
    /// The step it is at.
    pub index: usize,
    pub is_aborted: bool,
    /// The controller has noted when the update was given up.
    pub is_abort_noted: bool,
    pub promotes_fully: bool,
    /// The controller has begun a pause.
    pub controller_pause: bool,
    pauses: &'s [Value],
    /// `status.canary`.
    pub canary: &'s Value,
    /// `status.blueGreen`.
    pub blue_green: &'s Value,
}

impl Default for Told<'_> {
    fn default() -> Self {
        Told {
            hash: "",
            step_hash: "",
            stable: "",
            index: 0,
            is_aborted: false,
            is_abort_noted: false,
            promotes_fully: false,
            controller_pause: false,
            pauses: &[],
            canary: &Value::Null,
            blue_green: &Value::Null,
        }
    }
}

impl<'s> Told<'s> {
    pub(super) fn read(status: &'s Value) -> Self {
        let mut told = Told::default();
        let text = |value: &'s Value| value.as_str().unwrap_or_default();
        for (field, value) in status.as_object().into_iter().flatten() {
            match field.as_str() {
                "currentPodHash" => told.hash = text(value),
                "currentStepHash" => told.step_hash = text(value),
                "stableRS" => told.stable = text(value),
                "currentStepIndex" => {
                    let index = value.as_u64().and_then(|index| usize::try_from(index).ok());
                    told.index = index.unwrap_or(0);
                }
                "abort" => told.is_aborted = *value == true,
                "abortedAt" => told.is_abort_noted = !value.is_null(),
                "promoteFull" => told.promotes_fully = *value == true,
                "controllerPause" => told.controller_pause = *value == true,
                "pauseConditions" => {
                    told.pauses = value.as_array().map(Vec::as_slice).unwrap_or_default();
                }
                "canary" => told.canary = value,
                "blueGreen" => told.blue_green = value,
                _ => {}
            }
        }
        told
    }

    /// Is it about the same update as the next one, which was made by this spec? The same steps had
    /// other hashes in older releases.
    pub(super) fn is_same_update(&self, next: &Told<'_>, spec: &Value) -> bool {
        let are_same_steps = || {
            let older = older_step_hashes(&spec["strategy"]["canary"]["steps"]);
            older.iter().any(|hash| hash == self.step_hash)
        };
        self.hash == next.hash && (self.step_hash == next.step_hash || are_same_steps())
    }

    /// Is the revision that is rolled out the stable one?
    pub(super) fn is_promoted(&self) -> bool {
        self.stable == self.hash && !self.stable.is_empty()
    }

    /// The pause that has begun for this reason.
    pub(super) fn pause(&self, reason: &str) -> Option<&'s Value> {
        self.pauses.iter().find(|one| one["reason"] == reason)
    }

    /// Is there no pause, although the controller has begun one? Then a person has ended it.
    pub(super) fn is_resumed(&self) -> bool {
        self.controller_pause && self.pauses.is_empty()
    }
}
