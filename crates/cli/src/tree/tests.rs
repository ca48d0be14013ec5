//! Trees on narrow terminals.

use gradus_engine::view::{self, NamespaceObjects};
use serde_json::{Value, json};

use super::*;

fn summary() -> RolloutSummary {
    let rollout = json!({ "metadata": { "name": "checkout", "namespace": "shop", "uid": "r" },
        "spec": { "strategy": { "canary": {} } }, "status": { "stableRS": "a1b2c3d4e5" } });
    let set = json!({ "metadata": { "name": "checkout-a1b2c3d4e5", "namespace": "shop", "uid": "s",
            "labels": { "rollouts-pod-template-hash": "a1b2c3d4e5" },
            "ownerReferences": [{ "uid": "r", "controller": true }] },
        "spec": { "replicas": 0 } });
    let objects = NamespaceObjects { replica_sets: vec![set], ..NamespaceObjects::default() };
    view::rollout(&rollout, &objects)
}

fn lines(width: Option<usize>, paint: Paint) -> Vec<String> {
    let look = Look { paint, width, now: Timestamp::UNIX_EPOCH };
    let text = tree(&summary().tree, look);
    text.lines().map(|line| line.trim_end().to_owned()).collect()
}

#[test]
fn a_narrow_terminal_gets_shorter_names_and_straight_columns() {
    let wide = lines(None, Paint::PLAIN);
    assert!(wide[3].contains("checkout-a1b2c3d4e5"), "{wide:?}");
    assert_eq!(lines(Some(200), Paint::PLAIN), wide, "there is room enough");
    let narrow = lines(Some(64), Paint::PLAIN);
    assert!(narrow.iter().all(|line| line.chars().count() <= 64), "{narrow:?}");
    assert!(narrow[3].contains("checkou…"), "{narrow:?}");
    let column = |line: &str, text: &str| line[..line.find(text).unwrap()].chars().count();
    assert_eq!(column(&narrow[0], "KIND"), column(&narrow[3], "ReplicaSet"), "{narrow:?}");
    let coloured = lines(Some(64), Paint::BRIGHT);
    assert!(coloured[3].contains("\x1b[32mcheckou…"), "colours stay: {coloured:?}");
}

#[test]
fn even_the_narrowest_terminal_shows_beginning_and_end_of_a_name() {
    assert_eq!(shortened("checkout-65d596c8bc-wnt5l", 11), "check…wnt5l");
    assert_eq!(shortened("checkout", 8), "checkout");
    assert_eq!(shortened("checkout", 0), "ch…ut");
}

#[test]
fn a_plugin_of_a_step_is_shown_until_the_update_is_through() {
    let entry = |fields: Value| {
        let mut entry = json!({ "index": 1, "name": "a/check", "operation": "Run",
            "startedAt": "1970-01-01T00:00:00Z" });
        for (name, value) in fields.as_object().unwrap() {
            entry[name] = value.clone();
        }
        entry
    };
    let running = entry(json!({ "phase": "Running", "message": "20 s left", "executions": 1,
        "updatedAt": "1970-01-01T00:00:30Z", "backoff": "30s" }));
    let done = entry(json!({ "phase": "Successful", "executions": 2 }));
    let undone = entry(json!({ "operation": "Abort", "phase": "Failed", "message": "a\nb" }));
    let asked = entry(json!({}));
    let held = json!([{ "type": "Held", "status": "True", "reason": "ReconciliationError",
        "message": "not configured", "lastTransitionTime": "1970-01-01T00:00:10Z" }]);
    let cases = [
        (
            "at work",
            "Progressing",
            json!([running]),
            json!([]),
            vec!["a/check (step 2) Running: 20 s left (for 40s, called again in 20s)"],
        ),
        (
            "stored, not answered",
            "Progressing",
            json!([asked]),
            json!([]),
            vec!["a/check (step 2) not called yet (for 40s)"],
        ),
        (
            "done, taken back",
            "Degraded",
            json!([done, undone]),
            json!([]),
            vec![
                "a/check (step 2) Successful (for 40s)",
                "a/check (step 2) Abort Failed: a b (for 40s)",
            ],
        ),
        (
            "cannot be called",
            "Progressing",
            json!([]),
            held,
            vec!["a/check (step 2) not called yet: not configured (for 30s)"],
        ),
        ("through", "Healthy", json!([done]), json!([]), vec![]),
    ];
    for (what, phase, entries, conditions, expected) in cases {
        let rollout = json!({ "metadata": { "name": "web", "namespace": "shop", "uid": "r" },
            "spec": { "strategy": { "canary": { "steps": [{ "setWeight": 5 },
                { "plugin": { "name": "a/check" } }] } } },
            "status": { "phase": phase, "currentStepIndex": 1, "conditions": conditions,
                "canary": { "stepPluginStatuses": entries } } });
        let now = Timestamp::from_second(40).unwrap();
        let look = Look { paint: Paint::PLAIN, width: None, now };
        let text = super::rollout(&view::rollout(&rollout, &NamespaceObjects::default()), look);
        let shown: Vec<&str> = text.lines().filter(|line| line.contains("a/check")).collect();
        let shown: Vec<&str> = shown.iter().map(|line| line[LABEL..].trim()).collect();
        assert_eq!(shown, expected, "{what}: {text}");
    }
}
