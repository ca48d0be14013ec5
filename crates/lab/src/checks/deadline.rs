//! I-22: does the progress deadline pass although all pods are there and nothing that is missing is
//! named?

use gradus_api::names::{condition, reason};
use serde_json::Value;

use super::sizes::Sizes;
use crate::sight::{Sight, steps};

/// What is wrong with a status that says for the first time that the deadline has passed.
pub(super) fn judge(spec: &Value, (old, new): (&Value, &Value), sizes: &Sizes) -> Option<String> {
    let has_passed = |status: &Value| {
        let progressing = find(status, condition::PROGRESSING);
        progressing.is_some_and(|it| it["reason"] == reason::PROGRESS_DEADLINE_EXCEEDED)
    };
    if has_passed(old) || !has_passed(new) || is_named(spec, new) || !sizes.are_all_there() {
        return None;
    }
    Some(format!("all pods are there, and yet {}", new["message"]))
}

/// Is something other than pods waited for, which conditions, the status or the step names?
fn is_named(spec: &Value, status: &Value) -> bool {
    let sight = Sight { generation: 0, revision: None, spec, status };
    let index = status["currentStepIndex"].as_u64().and_then(|index| usize::try_from(index).ok());
    let step = index.and_then(|index| steps(spec).get(index));
    find(status, condition::HELD).is_some()
        || sight.awaits_verdict()
        || !sight.is_restarted()
        || step.is_some_and(|step| step.get("plugin").is_some())
}

fn find<'s>(status: &'s Value, kind: &str) -> Option<&'s Value> {
    status["conditions"].as_array()?.iter().find(|known| known["type"] == kind)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_deadline_that_passes_with_all_pods_is_named() {
        let progressing = |reason: &str| json!([{ "type": "Progressing", "reason": reason }]);
        let spec = json!({ "replicas": 0, "strategy": { "canary": { "steps": [
            { "pause": {} }, { "plugin": { "name": "p" } },
        ] } } });
        let late = reason::PROGRESS_DEADLINE_EXCEEDED;
        let held = json!([
            { "type": "Progressing", "reason": late }, { "type": "Held", "reason": "Refused" },
        ]);
        let cases = [
            ("it has passed", json!({ "conditions": progressing(late) }), true),
            ("it has not", json!({ "conditions": progressing("ReplicaSetUpdated") }), false),
            ("something is held", json!({ "conditions": held }), false),
            (
                "a plugin is waited for",
                json!({ "conditions": progressing(late), "currentStepIndex": 1 }),
                false,
            ),
            (
                "an Experiment is waited for",
                json!({ "conditions": progressing(late), "canary": { "currentExperiment": "e" } }),
                false,
            ),
        ];
        for (what, status, expected) in cases {
            let found = judge(&spec, (&Value::Null, &status), &Sizes::default());
            assert_eq!(found.is_some(), expected, "{what}");
            let again = judge(&spec, (&status, &status), &Sizes::default());
            assert_eq!(again, None, "{what}: once");
        }
    }
}
