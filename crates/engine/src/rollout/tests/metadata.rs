//! Metadata that pods carry while their revision has a role, as tables.

use serde_json::{Value, json};

use super::at;
use super::story::Story;

fn canary() -> Story {
    let mut story = Story::canary(2, json!([{ "setWeight": 50 }, { "pause": {} }]));
    story.patch_spec(json!({ "strategy": { "canary": {
        "canaryMetadata": { "labels": { "role": "canary" }, "annotations": { "note": "new" } },
        "stableMetadata": { "labels": { "role": "stable" } },
    } } }));
    story
}

fn blue_green() -> Story {
    Story::blue_green(
        2,
        json!({
            "autoPromotionEnabled": false,
            "previewMetadata": { "labels": { "role": "preview" }, "annotations": { "note": "new" } },
            "activeMetadata": { "labels": { "role": "active" } },
        }),
    )
}

/// What happens, writes up to the next rest, roles of the pods and template of each revision.
const CANARY: &str = "
deploy  | create 1 size 2, revision 1, status, status | stable stable stable
image   | create 2 size 1, revision 2, status, resize 1 to 1, status | stable stable; canary canary
promote | status, resize 2 to 2, resize 1 to 0, status, mark 1 role-, mark 2 role=stable note-, mark pod role=stable note-, mark pod role=stable note-, annotate 2, status | -; stable stable stable";

#[test]
fn a_canary_swaps_its_pods_labels_when_it_is_promoted() {
    let mut story = canary();
    for row in CANARY.trim().lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [happens, writes, roles] = cells[..] else { panic!("three cells: {row}") };
        match happens {
            "image" => story.set_image("v2"),
            "promote" => story.promote(),
            _ => {}
        }
        assert_eq!(settle(&mut story).join(", "), writes, "{happens}");
        assert_eq!(story.roles(), roles, "{happens}");
    }
    assert_eq!(story.record(0), Value::Null, "nothing is left of the old role");
    assert_eq!(story.record(1), r#"{"labels":{"role":"stable"}}"#);
    assert_eq!(story.marked(1, "annotations", "note"), ["-", "-", "-"]);
    assert_eq!(story.status()["phase"], "Healthy");
    assert_eq!(story.sizes(), [0, 2], "the same ReplicaSets: the hash is of the user's template");
}

#[test]
fn a_blue_green_switch_swaps_them_too() {
    let mut story = blue_green();
    settle(&mut story);
    assert_eq!(story.roles(), "active active active");
    story.set_image("v2");
    settle(&mut story);
    assert_eq!(story.roles(), "active active active; preview preview preview");
    assert_eq!(story.marked(1, "annotations", "note"), ["new", "new", "new"]);
    story.promote();
    settle(&mut story);
    assert_eq!(story.roles(), "- - -; active active active", "while the old one has its delay");
    assert_eq!(story.marked(1, "annotations", "note"), ["-", "-", "-"]);
}

#[test]
fn a_canary_is_healthy_only_when_its_pods_carry_what_their_role_wants() {
    let mut story = canary();
    settle(&mut story);
    story.set_image("v2");
    settle(&mut story);
    story.promote();
    let mut messages = Vec::new();
    for _ in 0..20 {
        let made = story.reconcile(at(1));
        let status = story.status();
        let is_right = story.marked(1, "labels", "role").iter().all(|role| role == "stable");
        assert!(is_right || status["phase"] != "Healthy", "after {made:?}");
        let healthy = status["conditions"]
            .as_array()
            .unwrap()
            .iter()
            .any(|condition| condition["type"] == "Healthy" && condition["status"] == "True");
        assert!(is_right || !healthy, "after {made:?}");
        let message = status["message"].as_str().unwrap_or_default().to_owned();
        messages.push(message);
        story.pods_follow();
    }
    messages.dedup();
    assert_eq!(messages.pop().unwrap(), "", "healthy in the end: {messages:?}");
    let waits = "pods are still getting their labels and annotations";
    assert_eq!(messages.pop().unwrap(), waits, "it says what it waits for: {messages:?}");
}

#[test]
fn a_healthy_rollout_stays_so_while_other_metadata_is_given_to_its_pods() {
    let mut story = canary();
    settle(&mut story);
    let metadata = json!({ "labels": { "role": "gold" } });
    story.patch_spec(json!({ "strategy": { "canary": { "stableMetadata": metadata } } }));
    for _ in 0..6 {
        story.reconcile(at(1));
        assert_eq!(story.status()["phase"], "Healthy");
        story.pods_follow();
    }
    assert_eq!(story.roles(), "gold gold gold");
}

#[test]
fn pods_are_listed_once_per_state_of_their_replica_set_and_not_at_rest() {
    let mut story = canary();
    settle(&mut story);
    assert_eq!(story.take_lists(), 1, "one list for the pods that came");
    assert_eq!(settle(&mut story), [""; 0]);
    assert_eq!(story.take_lists(), 0, "none at rest");
    story.patch_spec(json!({ "replicas": 0 }));
    settle(&mut story);
    assert_eq!(story.take_lists(), 0, "none where there are no pods");
    story.forget();
    settle(&mut story);
    assert_eq!(story.take_lists(), 0);

    let mut story = Story::canary(2, json!([]));
    settle(&mut story);
    assert_eq!(story.take_lists(), 0, "none where no metadata is named");
}

/// What was changed behind our back, as a patch of the metadata of all pods; expected writes.
const CHANGED: &str = r#"
another value       | {"labels":{"role":"x"}}      | mark pod role=stable, mark pod role=stable
taken away          | {"labels":{"role":null}}     | mark pod role=stable, mark pod role=stable
somebody else's key | {"annotations":{"cni":"10"}} |"#;

#[test]
fn pods_that_differ_are_brought_back_and_foreign_keys_stay() {
    for row in CHANGED.trim().lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [what, patch, writes] = cells[..] else { panic!("three cells: {row}") };
        let mut story = canary();
        settle(&mut story);
        story.patch_pods(0, serde_json::from_str(patch).unwrap());
        story.forget();
        assert_eq!(settle(&mut story).join(", "), writes, "{what}");
        assert_eq!(story.roles(), "stable stable stable", "{what}");
    }
}

#[test]
fn a_crash_between_template_and_pods_leaves_nothing_behind() {
    let mut story = canary();
    settle(&mut story);
    let other = json!({ "labels": { "tier": "gold" } });
    story.patch_spec(json!({ "strategy": { "canary": { "stableMetadata": null } } }));
    story.patch_spec(json!({ "strategy": { "canary": { "stableMetadata": other } } }));
    assert_eq!(story.reconcile(at(1)), ["mark 1 role- tier=gold", "status"]);
    let record = r#"{"labels":{"role":"stable","tier":"gold"}}"#;
    assert_eq!(story.record(0), record, "what pods may still carry stays recorded");
    story.forget();
    story.pods_follow();
    let marked = "mark pod role- tier=gold";
    assert_eq!(settle(&mut story), [marked, marked, "annotate 1"]);
    assert_eq!(story.record(0), r#"{"labels":{"tier":"gold"}}"#);
    assert_eq!(story.marked(0, "labels", "role"), ["-", "-", "-"]);
    assert_eq!(story.marked(0, "labels", "tier"), ["gold", "gold", "gold"]);
}

#[test]
fn what_the_template_says_already_is_not_taken_over() {
    let mut story = Story::canary(1, json!([]));
    story.patch_spec(json!({ "template": { "metadata": { "labels": { "role": "stable" } } } }));
    settle(&mut story);
    let metadata = json!({ "labels": { "role": "stable" } });
    story.patch_spec(json!({ "strategy": { "canary": { "stableMetadata": metadata } } }));
    assert_eq!(settle(&mut story), ["status"]);
    assert_eq!(story.record(0), Value::Null);
}

/// All writes up to the next rest.
fn settle(story: &mut Story) -> Vec<String> {
    let mut writes = Vec::new();
    for _ in 0..20 {
        let made = story.reconcile(at(1));
        if made.is_empty() && !story.follow() {
            return writes;
        }
        writes.extend(made);
        story.pods_follow();
    }
    panic!("it does not come to rest: {writes:?}");
}
