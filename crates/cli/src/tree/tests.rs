//! Trees on narrow terminals.

use gradus_engine::view::{self, Objects};
use serde_json::json;

use super::*;

fn summary() -> RolloutSummary {
    let rollout = json!({ "metadata": { "name": "checkout", "namespace": "shop", "uid": "r" },
        "spec": { "strategy": { "canary": {} } }, "status": { "stableRS": "a1b2c3d4e5" } });
    let set = json!({ "metadata": { "name": "checkout-a1b2c3d4e5", "namespace": "shop", "uid": "s",
            "labels": { "rollouts-pod-template-hash": "a1b2c3d4e5" },
            "ownerReferences": [{ "uid": "r", "controller": true }] },
        "spec": { "replicas": 0 } });
    let objects = Objects { replica_sets: vec![set], ..Objects::default() };
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
