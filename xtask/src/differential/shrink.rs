//! The shortest case that still shows a mismatch: every case that is a little smaller, and the search
//! among them.

use serde_json::{Value, json};

use super::case::{After, Case};

/// How many smaller cases are played for one mismatch; each takes about half a minute.
pub const PLAYS_AT_MOST: usize = 60;

/// Every case that is one part smaller, those with fewer actions first.
pub fn smaller(case: &Case) -> Vec<Case> {
    let mut found = Vec::new();
    for at in (0..case.steps.len()).rev() {
        let mut less = case.clone();
        less.steps.remove(at);
        found.push(less);
    }
    for at in 0..case.steps.len() {
        if case.steps[at].after != After::Settled {
            let mut calmer = case.clone();
            calmer.steps[at].after = After::Settled;
            found.push(calmer);
        }
    }
    for spec in simpler_specs(&case.rollout()["spec"]) {
        found.push(with_spec(case, spec));
    }
    found
}

/// Without the actions that were not taken when the mismatch was seen.
pub fn until(case: &Case, actions: usize) -> Case {
    let mut less = case.clone();
    less.steps.truncate(actions);
    less
}

fn with_spec(case: &Case, spec: Value) -> Case {
    let mut simpler = case.clone();
    for object in &mut simpler.objects {
        if object["kind"] == "Rollout" {
            object["spec"] = spec.clone();
        }
    }
    simpler
}

/// Fields that can be left out of a spec, and of either strategy.
const OPTIONAL: [&str; 24] = [
    "rollbackWindow",
    "revisionHistoryLimit",
    "minReadySeconds",
    "maxSurge",
    "maxUnavailable",
    "canaryMetadata",
    "stableMetadata",
    "previewMetadata",
    "activeMetadata",
    "dynamicStableScale",
    "replicaProgressThreshold",
    "previewReplicaCount",
    "previewService",
    "autoPromotionSeconds",
    "autoPromotionEnabled",
    "scaleDownDelayRevisionLimit",
    "prePromotionAnalysis",
    "postPromotionAnalysis",
    "analysis",
    "antiAffinity",
    "minPodsPerReplicaSet",
    "progressDeadlineAbort",
    "progressDeadlineSeconds",
    "steps",
];

fn simpler_specs(spec: &Value) -> Vec<Value> {
    let mut found = Vec::new();
    let strategy = match spec["strategy"]["canary"].is_object() {
        true => "/strategy/canary",
        false => "/strategy/blueGreen",
    };
    for pointer in ["", strategy] {
        for field in OPTIONAL {
            let mut simpler = spec.clone();
            let part = simpler.pointer_mut(pointer).and_then(Value::as_object_mut);
            if part.is_some_and(|part| part.remove(field).is_some()) {
                found.push(simpler);
            }
        }
    }
    let steps = spec["strategy"]["canary"]["steps"].as_array().map_or(0, Vec::len);
    for at in 0..steps {
        let mut simpler = spec.clone();
        if let Some(list) = simpler["strategy"]["canary"]["steps"].as_array_mut() {
            list.remove(at);
        }
        found.push(simpler);
    }
    if let Some(replicas) = spec["replicas"].as_u64().filter(|replicas| *replicas > 1) {
        let mut simpler = spec.clone();
        simpler["replicas"] = json!(replicas - 1);
        found.push(simpler);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::differential::{case::Step, generate};

    #[test]
    fn shrinking_ends() {
        for seed in 0..50 {
            let mut case = generate::case(seed, seed);
            for _ in 0..100 {
                let Some(next) = smaller(&case).into_iter().next() else { break };
                assert_ne!(next, case, "seed {seed}");
                case = next;
            }
            assert_eq!(smaller(&case), [], "seed {seed}");
        }
    }

    #[test]
    fn actions_go_first_then_haste_then_fields() {
        let rollout = json!({ "kind": "Rollout", "metadata": { "name": "case1" }, "spec": {
            "replicas": 2, "strategy": { "canary": { "steps": [{ "pause": {} }] } },
        } });
        let promote = Step { after: After::Milliseconds(5), r#do: json!("promote") };
        let case = Case { seed: 1, objects: vec![rollout], steps: vec![promote] };
        let found = smaller(&case);
        assert_eq!(found[0].steps, []);
        assert_eq!(found[1].steps, [Step::settled(json!("promote"))]);
        assert_eq!(found[2].rollout()["spec"]["strategy"]["canary"], json!({}));
        assert_eq!(found.last().unwrap().rollout()["spec"]["replicas"], 1);
        assert_eq!(until(&case, 0).steps, []);
    }
}
