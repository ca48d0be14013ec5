//! A World that was saved on one machine is decided on again on another.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gradus_controller::rollouts::Source;
use gradus_controller::shell::{InterlockMode, Seen, Shell};
use gradus_controller::watched::{Key, Scope, Watched};
use gradus_engine::decision::Guard;
use gradus_engine::frame::Frame;
use gradus_engine::rollout::Rollouts;
use gradus_lab::saved::{Unsaved, replayed};
use jiff::Timestamp;
use serde_json::json;

fn file(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("the folder of this test can be written");
    path
}

/// What the health port shows of a new Rollout.
fn shown() -> String {
    let now = Timestamp::from_second(1_700_000_000).expect("a time");
    let template = json!({ "metadata": { "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "web", "image": "web:1" }] } });
    let rollout: Frame = serde_json::from_value(json!({
        "metadata": { "name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "5",
                      "generation": 1 },
        "spec": { "replicas": 2, "selector": { "matchLabels": { "app": "web" } },
                  "template": template, "strategy": { "canary": {} } },
    }))
    .expect("a Rollout");
    let mut shell = Shell::<Rollouts>::new(&Scope::default(), InterlockMode::default());
    for source in Rollouts::sources() {
        shell.observe(&source, &Seen::Init, now);
        if source == Source::Rollouts {
            shell.observe(&source, &Seen::InitApply(rollout.clone()), now);
        }
        shell.observe(&source, &Seen::InitDone, now);
    }
    let key = Key { namespace: "shop".into(), name: "web".into() };
    shell.inspect(&key, now).expect("it is listed").to_string()
}

#[test]
fn a_saved_world_is_decided_on_again_and_can_be_changed() {
    let mut replayed = replayed(&file("world.json", &shown())).unwrap();
    assert!(replayed.is_same(), "the same version decides the same");
    let decided = replayed.decide();
    let planned: Vec<&str> = decided.changes.iter().map(|change| &*change.id.0).collect();
    assert!(planned.iter().any(|id| id.starts_with("create ReplicaSet")), "{planned:?}");

    let rollout = Arc::make_mut(&mut replayed.world.rollout);
    Arc::make_mut(&mut rollout.spec).fields.paused = true;
    assert!(!replayed.is_same(), "another World");
    let why = replayed.decide().why;
    assert!(why.iter().any(|why| matches!(why.guard, Guard::SpecPaused)), "{why:?}");
}

#[test]
fn a_file_that_holds_no_world_is_named() {
    let cases = [
        ("no file", PathBuf::from("/nowhere/world.json"), "/nowhere/world.json: "),
        ("no World", file("none.json", "{}"), "none.json: not a World as /debug/world shows it"),
    ];
    for (what, path, words) in cases {
        let error: Unsaved = replayed(&path).unwrap_err();
        assert!(error.to_string().contains(words), "{what}: {error}");
    }
}
