//! Rows that tell a scenario: what somebody does, then how things stand once they have come to
//! rest.

use serde_json::{Value, json};

use super::at;
use super::fixture::Fixture;

/// Plays rows of: second | deeds, separated by commas | sizes | step | phase and message | what the
/// row shows. In a row with the deed `stuck` the pods of the newest ReplicaSet do not become ready.
pub fn tell(fixture: &mut Fixture, rows: &str) {
    for row in rows.trim().lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [second, deeds, sizes, step, phase, what] = cells[..] else {
            panic!("six cells: {row}");
        };
        let now = at(second.parse().unwrap());
        for deed in deeds.split(", ") {
            act(fixture, deed);
        }
        if deeds.split(", ").any(|deed| deed == "stuck") {
            fixture.settle_without_new_pods(now);
        } else {
            fixture.settle(now);
        }
        assert_eq!(stands(fixture), format!("{sizes} | {step} | {phase}"), "{what}");
        assert_eq!(fixture.reconcile(now), [""; 0], "{what}: settled");
    }
}

/// How a rollout stands: sizes, step, phase and message.
fn stands(fixture: &Fixture) -> String {
    let sizes: Vec<String> = fixture.sizes().iter().map(ToString::to_string).collect();
    let status = fixture.status();
    let text = |field: &str| status[field].as_str().unwrap_or_default().to_owned();
    let says = format!("{} {}", text("phase"), text("message"));
    format!("{} | {} | {}", sizes.join(" "), status["currentStepIndex"], says.trim())
}

/// Does what the words say.
pub fn act(fixture: &mut Fixture, deed: &str) {
    let parsed = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
    match deed.split_once(' ').unwrap_or((deed, "")) {
        ("" | "stuck", _) => {}
        ("image", tag) => fixture.set_image(tag),
        ("scale", size) => fixture.patch_spec(json!({ "replicas": parsed(size) })),
        ("promote", _) => fixture.promote(),
        ("full", _) => fixture.patch_status(json!({ "promoteFull": true })),
        ("abort", _) => fixture.patch_status(json!({ "abort": true })),
        ("retry", _) => fixture.patch_status(json!({ "abort": false })),
        ("pause", _) => fixture.patch_spec(json!({ "paused": true })),
        ("resume", _) => fixture.patch_spec(json!({ "paused": false })),
        ("spec", patch) => fixture.patch_spec(parsed(patch)),
        ("canary", patch) => {
            fixture.patch_spec(json!({ "strategy": { "canary": parsed(patch) } }));
        }
        ("blueGreen", patch) => {
            fixture.patch_spec(json!({ "strategy": { "blueGreen": parsed(patch) } }));
        }
        ("turns", words) => {
            let mut words = words.splitn(3, ' ');
            let [name, phase] = [words.next().unwrap(), words.next().unwrap()];
            fixture.run_turns(name, phase, words.next().unwrap_or_default());
        }
        ("status", patch) => fixture.patch_status(parsed(patch)),
        _ => panic!("nobody knows {deed:?}"),
    }
}
