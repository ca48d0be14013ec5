//! Which patch is a user's wish? Promote, abort, retry and the rest, as everybody sends them.

pub mod analysis_run;
pub mod image;
pub mod undo;

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

/// The merge patch that ends an AnalysisRun or an Experiment now.
pub fn terminate() -> Value {
    json!({ "spec": { "terminate": true } })
}

/// The merge patch that runs an Experiment again: it forgets how it stood.
pub fn retry_experiment() -> Value {
    json!({ "status": null })
}

/// What a user may want of a Rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Go on: end the pause, or skip the step.
    Promote,
    /// Skip everything that is left.
    PromoteFull,
    /// Skip the current step of a canary, paused or not.
    SkipStep,
    /// Skip all steps of a canary, but not its other guards.
    SkipAllSteps,
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
        Command::SkipStep => {
            let patch = json!({ "currentStepIndex": next_step(spec, status) });
            vec![Patch::Status(json!({ "status": patch }))]
        }
        Command::SkipAllSteps => {
            let patch = json!({ "currentStepIndex": step_count(spec) });
            vec![Patch::Status(json!({ "status": patch }))]
        }
        Command::Abort => vec![Patch::Status(json!({ "status": { "abort": true } }))],
        Command::Retry => vec![Patch::Status(json!({ "status": { "abort": false } }))],
        Command::Pause => vec![Patch::Main(json!({ "spec": { "paused": true } }))],
        Command::Restart(at) => {
            vec![Patch::Main(json!({ "spec": { "restartAt": Time::new(at) } }))]
        }
    }
}

/// Why a command makes no sense for a Rollout, in the words users know.
pub fn refusal(command: Command, spec: &RolloutSpec) -> Option<&'static str> {
    if !matches!(command, Command::SkipStep | Command::SkipAllSteps) {
        return None;
    }
    if spec.strategy.blue_green.is_some() {
        return Some("Cannot skip steps of a bluegreen rollout. Run without a flags");
    }
    (step_count(spec) == 0).then_some("Cannot skip steps of a rollout without steps")
}

/// The one patch of the main resource that stands for all patches of a command, where the
/// Rollout's kind has no status subresource.
pub fn main_patch(command: Command, spec: &RolloutSpec, status: &RolloutStatus) -> Value {
    let unpaused = json!({ "paused": false });
    match command {
        Command::Promote => {
            let mut patch = json!({ "pauseConditions": null });
            if status.pause_conditions.is_empty() && step_count(spec) > 0 {
                patch["currentStepIndex"] = json!(next_step(spec, status));
            }
            json!({ "spec": unpaused, "status": patch })
        }
        Command::PromoteFull => json!({ "spec": unpaused, "status": { "promoteFull": true } }),
        _ => match patches(command, spec, status).into_iter().next() {
            Some(Patch::Main(patch) | Patch::Status(patch)) => patch,
            None => json!({}),
        },
    }
}

fn step_count(spec: &RolloutSpec) -> i32 {
    let steps = spec.strategy.canary.as_ref().map_or(0, |canary| canary.steps.len());
    i32::try_from(steps).unwrap_or(i32::MAX)
}

/// The step after the current one, never past the last.
fn next_step(spec: &RolloutSpec, status: &RolloutStatus) -> i32 {
    status.current_step_index.unwrap_or(0).saturating_add(1).min(step_count(spec))
}

/// What a promote writes into the status: a pause ends, a canary's step is skipped.
fn promote(spec: &RolloutSpec, status: &RolloutStatus) -> Option<Value> {
    let (count, next) = (step_count(spec), next_step(spec, status));
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

    /// Command, spec, status, expected patches of the status, expected patches of the spec, each as
    /// JSON or nothing.
    const CASES: &str = r#"
a pause ends               | promote | {"steps":2} | {"pauseConditions":P,"controllerPause":true,"currentStepIndex":1} | {"pauseConditions":null} |
a step is skipped          | promote | {"steps":2} | {"currentStepIndex":0} | {"pauseConditions":null,"currentStepIndex":1} |
never past the last        | promote | {"steps":2} | {"currentStepIndex":2} | {"pauseConditions":null,"currentStepIndex":2} |
past an inconclusive run   | promote | {"steps":2} | {"pauseConditions":P,"controllerPause":true,"currentStepIndex":0,"canary":{"currentStepAnalysisRunStatus":{"name":"r","status":"Inconclusive"}}} | {"pauseConditions":null,"controllerPause":false,"currentStepIndex":1} |
blue-green paused by hand  | promote | {"paused":true} | {} | | {"paused":false}
everything that is left    | full    | {"steps":2} | {"currentPodHash":"a","stableRS":"b"} | {"promoteFull":true} |
nothing is left            | full    | {"steps":2} | {"currentPodHash":"a","stableRS":"a"} | |
one step, paused or not    | skip    | {"steps":2} | {"pauseConditions":P,"currentStepIndex":0} | {"currentStepIndex":1} |
all steps                  | skipall | {"steps":2} | {"currentStepIndex":0} | {"currentStepIndex":2} |
abort                      | abort   | {"steps":2} | {} | {"abort":true} |
retry                      | retry   | {"steps":2} | {} | {"abort":false} |
pause                      | pause   | {"steps":2} | {} | | {"paused":true}
restart, cut to seconds    | restart | {"steps":2} | {} | | {"restartAt":"2024-01-01T00:00:00Z"}
"#;

    #[test]
    fn a_wish_is_the_patch_everybody_sends() {
        let paused = r#"[{"reason":"CanaryPauseStep","startTime":"2024-01-01T00:00:00Z"}]"#;
        for row in CASES.trim().lines() {
            let cells: Vec<String> = row
                .split('|')
                .map(|cell| cell.trim().replace(":P", &format!(":{paused}")))
                .collect();
            let [what, command, spec, status, of_status, of_spec] = &cells[..] else {
                panic!("six cells: {row}");
            };
            let command = match command.as_str() {
                "promote" => Command::Promote,
                "full" => Command::PromoteFull,
                "skip" => Command::SkipStep,
                "skipall" => Command::SkipAllSteps,
                "abort" => Command::Abort,
                "retry" => Command::Retry,
                "pause" => Command::Pause,
                _ => Command::Restart("2024-01-01T00:00:00.7Z".parse().unwrap()),
            };
            let mut spec: Value = serde_json::from_str(spec).unwrap();
            if spec["steps"] == 2 {
                let steps = json!([{ "setWeight": 1 }, { "pause": {} }]);
                spec = json!({ "strategy": { "canary": { "steps": steps } } });
            }
            let (spec, status) = rollout(spec, serde_json::from_str(status).unwrap());
            let json = |text: &String| serde_json::from_str::<Value>(text).ok();
            let of_status = json(of_status).map(|patch| Patch::Status(json!({ "status": patch })));
            let of_spec = json(of_spec).map(|patch| Patch::Main(json!({ "spec": patch })));
            let expected: Vec<Patch> = of_status.into_iter().chain(of_spec).collect();
            assert_eq!(patches(command, &spec, &status), expected, "{what}");
        }
    }

    #[test]
    fn without_a_status_subresource_one_patch_says_it_all() {
        let canary = json!({ "strategy": { "canary": { "steps": [{ "setWeight": 1 }] } } });
        let paused = json!({ "pauseConditions": [
            { "reason": "CanaryPauseStep", "startTime": "2024-01-01T00:00:00Z" },
        ] });
        let unpaused = json!({ "paused": false });
        let cases = [
            (Command::Promote, &paused, json!({ "pauseConditions": null }), true),
            (
                Command::Promote,
                &json!({}),
                json!({ "pauseConditions": null, "currentStepIndex": 1 }),
                true,
            ),
            (Command::PromoteFull, &paused, json!({ "promoteFull": true }), true),
            (Command::SkipAllSteps, &paused, json!({ "currentStepIndex": 1 }), false),
            (Command::Abort, &paused, json!({ "abort": true }), false),
        ];
        for (command, status, of_status, unpauses) in cases {
            let (spec, status) = rollout(canary.clone(), status.clone());
            let mut expected = json!({ "status": of_status });
            if unpauses {
                expected["spec"] = unpaused.clone();
            }
            assert_eq!(main_patch(command, &spec, &status), expected, "{command:?}");
        }
    }

    #[test]
    fn only_steps_that_exist_can_be_skipped() {
        let spec = |strategy: Value| rollout(json!({ "strategy": strategy }), json!({})).0;
        let blue_green = spec(json!({ "blueGreen": { "activeService": "a" } }));
        assert!(refusal(Command::SkipStep, &blue_green).unwrap().contains("bluegreen"));
        assert!(refusal(Command::SkipAllSteps, &spec(json!({ "canary": {} }))).is_some());
        assert_eq!(refusal(Command::Promote, &blue_green), None);
    }
}
