//! Specs that nobody expected: the index takes them in, decisions are made, nothing panics.

use gradus_engine::Engine;
use gradus_engine::ask::Recall;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{at, frame};
use crate::rollouts::*;

fn key() -> Key {
    Key { namespace: "default".into(), name: "web".into() }
}

#[test]
fn a_rollout_that_cannot_be_read_says_so_in_its_status() {
    let mut index = RolloutIndex::default();
    let odd = frame(&kinds::ROLLOUT, "web", 5, json!({ "replicas": 2 }));
    let woken = Rollouts::refuse(&mut index, &Source::Rollouts, &odd, "index out of bounds");
    assert_eq!(woken, [key()]);
    let world = Rollouts::gather(&index, &key(), &BTreeMap::new(), &Recall::default()).unwrap();
    let decision = Rollouts::decide(&world, at(0));
    let status = decision.status.unwrap();
    let invalid = status.condition(names::condition::INVALID_SPEC).unwrap();
    assert!(invalid.message.contains("index out of bounds"), "{invalid:?}");
    assert_eq!(status.phase, "Degraded");
    assert!(decision.changes.is_empty(), "and nothing is touched");
}

/// What may stand where something else was expected.
fn odd_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        Just(json!(true)),
        any::<i64>().prop_map(|number| json!(number)),
        any::<f64>().prop_map(|number| json!(number)),
        "\\PC{0,80}".prop_map(|text| json!(text)),
        Just(json!("\u{e9}".repeat(300))),
        Just(json!("-1%")),
        Just(json!("99999999999%")),
        Just(json!([])),
        Just(json!([null, {}, [[]]])),
        Just(json!({})),
        Just(json!({ "a": { "b": ["c"] } })),
    ]
}

/// Puts a value in place of the one that is met after so many steps.
fn replace(value: &mut Value, steps: &mut usize, with: &Value) {
    if *steps == 0 {
        *value = with.clone();
    }
    *steps = steps.wrapping_sub(1);
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, steps, with)),
        Value::Object(fields) => fields.values_mut().for_each(|one| replace(one, steps, with)),
        _ => {}
    }
}

fn spec() -> Value {
    let container =
        json!({ "name": "web", "image": "web:1", "env": [{ "name": "A", "value": "b" }] });
    let analysis = json!({ "templates": [{ "templateName": "ok" }],
        "args": [{ "name": "a", "value": "b" }] });
    json!({
        "replicas": 3, "minReadySeconds": 5, "progressDeadlineSeconds": 600,
        "revisionHistoryLimit": 2, "selector": { "matchLabels": { "app": "web" } },
        "template": { "metadata": { "labels": { "app": "web" } },
            "spec": { "containers": [container] } },
        "strategy": { "canary": { "maxSurge": "25%", "maxUnavailable": 0,
            "canaryService": "canary", "stableService": "stable",
            "trafficRouting": { "nginx": { "stableIngress": "front", "annotationPrefix": "a.b" } },
            "analysis": analysis,
            "steps": [{ "setWeight": 20 }, { "pause": { "duration": "1h" } },
                { "setCanaryScale": { "weight": 10 } }, { "analysis": analysis }] } },
    })
}

proptest! {
    #[test]
    fn no_spec_and_no_status_makes_it_panic(
        (first, second) in (0usize..70, 0usize..70),
        (one, two, status) in (odd_value(), odd_value(), odd_value()),
    ) {
        let mut spec = spec();
        for (mut steps, with) in [(first, &one), (second, &two)] {
            replace(&mut spec, &mut steps, with);
        }
        let mut index = RolloutIndex::default();
        for source in Rollouts::sources().into_iter().chain([
            Source::Named(kinds::INGRESS),
            Source::Named(kinds::DEPLOYMENT),
        ]) {
            let kind = Rollouts::kind_of(&source);
            let mut odd = frame(&kind, "web", 5, spec.clone());
            odd.status = Arc::new(status.clone());
            (Rollouts::shelf(&source).apply)(&mut index, &kind, &odd);
        }
        let world = Rollouts::gather(&index, &key(), &BTreeMap::new(), &Recall::default()).unwrap();
        Rollouts::decide(&world, at(0));
    }
}
