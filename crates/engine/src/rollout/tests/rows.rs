//! Rows that tell a story: what somebody does, then how things stand once they have come to rest.

use serde_json::{Value, json};

use super::at;
use super::story::Story;

/// Plays rows of: second | deeds, separated by commas | sizes | step | phase and message | what the
/// row shows. In a row with the deed `stuck` the pods of the newest ReplicaSet do not become ready.
pub fn tell(story: &mut Story, rows: &str) {
    for row in rows.trim().lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [second, deeds, sizes, step, phase, what] = cells[..] else {
            panic!("six cells: {row}");
        };
        let now = at(second.parse().unwrap());
        for deed in deeds.split(", ") {
            act(story, deed);
        }
        if deeds.split(", ").any(|deed| deed == "stuck") {
            story.settle_without_new_pods(now);
        } else {
            story.settle(now);
        }
        assert_eq!(stands(story), format!("{sizes} | {step} | {phase}"), "{what}");
        assert_eq!(story.reconcile(now), [""; 0], "{what}: settled");
    }
}

/// How a rollout stands: sizes, step, phase and message.
fn stands(story: &Story) -> String {
    let sizes: Vec<String> = story.sizes().iter().map(ToString::to_string).collect();
    let status = story.status();
    let text = |field: &str| status[field].as_str().unwrap_or_default().to_owned();
    let says = format!("{} {}", text("phase"), text("message"));
    format!("{} | {} | {}", sizes.join(" "), status["currentStepIndex"], says.trim())
}

/// Does what the words say.
pub fn act(story: &mut Story, deed: &str) {
    let parsed = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
    match deed.split_once(' ').unwrap_or((deed, "")) {
        ("" | "stuck", _) => {}
        ("image", tag) => story.set_image(tag),
        ("scale", size) => story.patch_spec(json!({ "replicas": parsed(size) })),
        ("promote", _) => story.promote(),
        ("full", _) => story.patch_status(json!({ "promoteFull": true })),
        ("abort", _) => story.patch_status(json!({ "abort": true })),
        ("retry", _) => story.patch_status(json!({ "abort": false })),
        ("pause", _) => story.patch_spec(json!({ "paused": true })),
        ("resume", _) => story.patch_spec(json!({ "paused": false })),
        ("spec", patch) => story.patch_spec(parsed(patch)),
        ("canary", patch) => {
            story.patch_spec(json!({ "strategy": { "canary": parsed(patch) } }));
        }
        ("blueGreen", patch) => {
            story.patch_spec(json!({ "strategy": { "blueGreen": parsed(patch) } }));
        }
        ("turns", words) => {
            let mut words = words.splitn(3, ' ');
            let [name, phase] = [words.next().unwrap(), words.next().unwrap()];
            story.trial_turns(name, phase, words.next().unwrap_or_default());
        }
        ("status", patch) => story.patch_status(parsed(patch)),
        _ => panic!("nobody knows {deed:?}"),
    }
}
