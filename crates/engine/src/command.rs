//! Which patch is a user's wish? Promote, abort, retry and the rest, as everybody sends them.

use gradus_api::names::analysis_phase;
use gradus_api::rollout::{RolloutSpec, RolloutStatus};
use gradus_api::values::Time;
use jiff::Timestamp;
use serde_json::{Value, json};

/// One merge patch of a Rollout.
#[derive(Clone, Debug, PartialEq)]
pub enum Patch {
    /// Of the main resource.
    Main(Value),
    /// Of the status subresource.
    Status(Value),
}

/// What a user may want of a Rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Go on: end the pause, or skip the step.
    Promote,
    /// Skip everything that is left.
    PromoteFull,
    /// Give the update up.
    Abort,
    /// Try an aborted update again.
    Retry,
    /// Halt.
    Pause,
    /// Restart every pod made before this moment.
    Restart(Timestamp),
}

/// The patches of a command on a Rollout as it stands, in order; none where it is so already.
pub fn patches(command: Command, spec: &RolloutSpec, status: &RolloutStatus) -> Vec<Patch> {
    let unpaused = || spec.paused.then(|| Patch::Main(json!({ "spec": { "paused": false } })));
    match command {
        Command::Promote => {
            let promoted =
                promote(spec, status).map(|patch| Patch::Status(json!({ "status": patch })));
            promoted.into_iter().chain(unpaused()).collect()
        }
        Command::PromoteFull => {
            let is_updating = status.current_pod_hash != status.stable_rs;
            let full =
                is_updating.then(|| Patch::Status(json!({ "status": { "promoteFull": true } })));
            full.into_iter().chain(unpaused()).collect()
        }
        Command::Abort => vec![Patch::Status(json!({ "status": { "abort": true } }))],
        Command::Retry => vec![Patch::Status(json!({ "status": { "abort": false } }))],
        Command::Pause => vec![Patch::Main(json!({ "spec": { "paused": true } }))],
        Command::Restart(at) => {
            vec![Patch::Main(json!({ "spec": { "restartAt": Time::new(at) } }))]
        }
    }
}

/// What a promote writes into the status: a pause ends, a canary's step is skipped.
fn promote(spec: &RolloutSpec, status: &RolloutStatus) -> Option<Value> {
    let steps = spec.strategy.canary.as_ref().map_or(0, |canary| canary.steps.len());
    let count = i32::try_from(steps).unwrap_or(i32::MAX);
    let next = (status.current_step_index.unwrap_or(0) + 1).min(count);
    let is_paused = !status.pause_conditions.is_empty();
    let run = status.canary.current_step_analysis_run_status.as_ref();
    let is_inconclusive = run.is_some_and(|run| run.status == analysis_phase::INCONCLUSIVE);
    if is_paused && is_inconclusive && status.controller_pause && count > 0 {
        return Some(json!({
            "pauseConditions": null, "controllerPause": false, "currentStepIndex": next,
        }));
    }
    if is_paused {
        return Some(json!({ "pauseConditions": null }));
    }
    (count > 0).then(|| json!({ "pauseConditions": null, "currentStepIndex": next }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rollout(spec: Value, status: Value) -> (RolloutSpec, RolloutStatus) {
        (serde_json::from_value(spec).unwrap(), serde_json::from_value(status).unwrap())
    }

    #[test]
    fn a_wish_is_the_patch_everybody_sends() {
        let steps =
            json!({ "strategy": { "canary": { "steps": [{ "setWeight": 1 }, { "pause": {} }] } } });
        let paused = json!([{ "reason": "CanaryPauseStep", "startTime": "2024-01-01T00:00:00Z" }]);
        let status = |patch| Patch::Status(json!({ "status": patch }));
        let main = |patch| Patch::Main(json!({ "spec": patch }));
        let by_hand =
            json!({ "paused": true, "strategy": { "blueGreen": { "activeService": "a" } } });
        let cases = [
            (
                "a pause ends",
                Command::Promote,
                steps.clone(),
                json!({ "pauseConditions": paused, "controllerPause": true, "currentStepIndex": 1 }),
                vec![status(json!({ "pauseConditions": null }))],
            ),
            (
                "a step is skipped",
                Command::Promote,
                steps.clone(),
                json!({ "currentStepIndex": 0 }),
                vec![status(json!({ "pauseConditions": null, "currentStepIndex": 1 }))],
            ),
            (
                "never past the last",
                Command::Promote,
                steps.clone(),
                json!({ "currentStepIndex": 2 }),
                vec![status(json!({ "pauseConditions": null, "currentStepIndex": 2 }))],
            ),
            (
                "an inconclusive analysis is passed",
                Command::Promote,
                steps.clone(),
                json!({ "pauseConditions": paused, "controllerPause": true, "currentStepIndex": 0,
                    "canary": { "currentStepAnalysisRunStatus": { "name": "r", "status": "Inconclusive" } } }),
                vec![status(json!({
                    "pauseConditions": null, "controllerPause": false, "currentStepIndex": 1 }))],
            ),
            (
                "blue-green paused by hand",
                Command::Promote,
                by_hand,
                json!({}),
                vec![main(json!({ "paused": false }))],
            ),
            (
                "everything that is left",
                Command::PromoteFull,
                steps.clone(),
                json!({ "currentPodHash": "a", "stableRS": "b" }),
                vec![status(json!({ "promoteFull": true }))],
            ),
            (
                "nothing is left",
                Command::PromoteFull,
                steps.clone(),
                json!({ "currentPodHash": "a", "stableRS": "a" }),
                vec![],
            ),
            (
                "abort",
                Command::Abort,
                steps.clone(),
                json!({}),
                vec![status(json!({ "abort": true }))],
            ),
            (
                "retry",
                Command::Retry,
                steps.clone(),
                json!({}),
                vec![status(json!({ "abort": false }))],
            ),
            (
                "pause",
                Command::Pause,
                steps.clone(),
                json!({}),
                vec![main(json!({ "paused": true }))],
            ),
            (
                "restart, cut to seconds",
                Command::Restart("2024-01-01T00:00:00.7Z".parse().unwrap()),
                steps,
                json!({}),
                vec![main(json!({ "restartAt": "2024-01-01T00:00:00Z" }))],
            ),
        ];
        for (what, command, spec, status, expected) in cases {
            let (spec, status) = rollout(spec, status);
            assert_eq!(patches(command, &spec, &status), expected, "{what}");
        }
    }
}
