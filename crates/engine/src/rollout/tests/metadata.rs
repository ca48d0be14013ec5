//! Metadata that pods carry while their revision has a role, as tables.

use serde_json::{Value, json};

use super::at;
use super::fixture::Fixture;

fn canary() -> Fixture {
    let mut fixture = Fixture::canary(2, json!([{ "setWeight": 50 }, { "pause": {} }]));
    fixture.patch_spec(json!({ "strategy": { "canary": {
        "canaryMetadata": { "labels": { "role": "canary" }, "annotations": { "note": "new" } },
        "stableMetadata": { "labels": { "role": "stable" } },
    } } }));
    fixture
}

fn blue_green() -> Fixture {
    Fixture::blue_green(
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
    let mut fixture = canary();
    for row in CANARY.trim().lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [happens, writes, roles] = cells[..] else { panic!("three cells: {row}") };
        match happens {
            "image" => fixture.set_image("v2"),
            "promote" => fixture.promote(),
            _ => {}
        }
        assert_eq!(settle(&mut fixture).join(", "), writes, "{happens}");
        assert_eq!(fixture.roles(), roles, "{happens}");
    }
    for at in [0, 1] {
        let own = &fixture.set(at)["metadata"]["labels"]["role"];
        assert_eq!(*own, Value::Null, "a role is a label of pods, not of their ReplicaSet");
    }
    assert_eq!(fixture.record(0), Value::Null, "nothing is left of the old role");
    assert_eq!(fixture.record(1), r#"{"labels":{"role":"stable"}}"#);
    assert_eq!(fixture.marked(1, "annotations", "note"), ["-", "-", "-"]);
    assert_eq!(fixture.status()["phase"], "Healthy");
    assert_eq!(fixture.sizes(), [0, 2], "the same ReplicaSets: the hash is of the user's template");
}

#[test]
fn a_blue_green_switch_swaps_them_too() {
    let mut fixture = blue_green();
    settle(&mut fixture);
    assert_eq!(fixture.roles(), "active active active");
    fixture.set_image("v2");
    settle(&mut fixture);
    assert_eq!(fixture.roles(), "active active active; preview preview preview");
    assert_eq!(fixture.marked(1, "annotations", "note"), ["new", "new", "new"]);
    fixture.promote();
    settle(&mut fixture);
    assert_eq!(fixture.roles(), "- - -; active active active", "while the old one has its delay");
    assert_eq!(fixture.marked(1, "annotations", "note"), ["-", "-", "-"]);
}

#[test]
fn a_canary_is_healthy_only_when_its_pods_carry_what_their_role_wants() {
    let mut fixture = canary();
    settle(&mut fixture);
    fixture.set_image("v2");
    settle(&mut fixture);
    fixture.promote();
    let mut messages = Vec::new();
    for _ in 0..20 {
        let made = fixture.reconcile(at(1));
        let status = fixture.status();
        let is_right = fixture.marked(1, "labels", "role").iter().all(|role| role == "stable");
        assert!(is_right || status["phase"] != "Healthy", "after {made:?}");
        let healthy = status["conditions"]
            .as_array()
            .unwrap()
            .iter()
            .any(|condition| condition["type"] == "Healthy" && condition["status"] == "True");
        assert!(is_right || !healthy, "after {made:?}");
        let message = status["message"].as_str().unwrap_or_default().to_owned();
        messages.push(message);
        fixture.pods_follow();
    }
    messages.dedup();
    assert_eq!(messages.pop().unwrap(), "", "healthy in the end: {messages:?}");
    let waits = "pods are still getting their labels and annotations";
    assert_eq!(messages.pop().unwrap(), waits, "it says what it waits for: {messages:?}");
}

#[test]
fn a_healthy_rollout_stays_so_while_other_metadata_is_given_to_its_pods() {
    let mut fixture = canary();
    settle(&mut fixture);
    let metadata = json!({ "labels": { "role": "gold" } });
    fixture.patch_spec(json!({ "strategy": { "canary": { "stableMetadata": metadata } } }));
    for _ in 0..6 {
        fixture.reconcile(at(1));
        assert_eq!(fixture.status()["phase"], "Healthy");
        fixture.pods_follow();
    }
    assert_eq!(fixture.roles(), "gold gold gold");
}

#[test]
fn pods_are_listed_once_per_state_of_their_replica_set_and_not_at_rest() {
    let mut fixture = canary();
    settle(&mut fixture);
    assert_eq!(fixture.take_lists(), 1, "one list for the pods that came");
    assert_eq!(settle(&mut fixture), [""; 0]);
    assert_eq!(fixture.take_lists(), 0, "none at rest");
    fixture.patch_spec(json!({ "replicas": 0 }));
    settle(&mut fixture);
    assert_eq!(fixture.take_lists(), 0, "none where there are no pods");
    fixture.forget();
    settle(&mut fixture);
    assert_eq!(fixture.take_lists(), 0);

    let mut fixture = Fixture::canary(2, json!([]));
    settle(&mut fixture);
    assert_eq!(fixture.take_lists(), 0, "none where no metadata is named");
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
        let mut fixture = canary();
        settle(&mut fixture);
        fixture.patch_pods(0, serde_json::from_str(patch).unwrap());
        fixture.forget();
        assert_eq!(settle(&mut fixture).join(", "), writes, "{what}");
        assert_eq!(fixture.roles(), "stable stable stable", "{what}");
    }
}

#[test]
fn a_crash_between_template_and_pods_leaves_nothing_behind() {
    let mut fixture = canary();
    settle(&mut fixture);
    let other = json!({ "labels": { "tier": "gold" } });
    fixture.patch_spec(json!({ "strategy": { "canary": { "stableMetadata": null } } }));
    fixture.patch_spec(json!({ "strategy": { "canary": { "stableMetadata": other } } }));
    assert_eq!(fixture.reconcile(at(1)), ["mark 1 role- tier=gold", "status"]);
    let record = r#"{"labels":{"role":"stable","tier":"gold"}}"#;
    assert_eq!(fixture.record(0), record, "what pods may still carry stays recorded");
    fixture.forget();
    fixture.pods_follow();
    let marked = "mark pod role- tier=gold";
    assert_eq!(settle(&mut fixture), [marked, marked, "annotate 1"]);
    assert_eq!(fixture.record(0), r#"{"labels":{"tier":"gold"}}"#);
    assert_eq!(fixture.marked(0, "labels", "role"), ["-", "-", "-"]);
    assert_eq!(fixture.marked(0, "labels", "tier"), ["gold", "gold", "gold"]);
}

#[test]
fn what_the_template_says_already_is_not_taken_over() {
    let mut fixture = Fixture::canary(1, json!([]));
    fixture.patch_spec(json!({ "template": { "metadata": { "labels": { "role": "stable" } } } }));
    settle(&mut fixture);
    let metadata = json!({ "labels": { "role": "stable" } });
    fixture.patch_spec(json!({ "strategy": { "canary": { "stableMetadata": metadata } } }));
    assert_eq!(settle(&mut fixture), ["status"]);
    assert_eq!(fixture.record(0), Value::Null);
}

/// All writes up to the next rest.
fn settle(fixture: &mut Fixture) -> Vec<String> {
    let mut writes = Vec::new();
    for _ in 0..20 {
        let made = fixture.reconcile(at(1));
        if made.is_empty() && !fixture.follow() {
            return writes;
        }
        writes.extend(made);
        fixture.pods_follow();
    }
    panic!("it does not come to rest: {writes:?}");
}
