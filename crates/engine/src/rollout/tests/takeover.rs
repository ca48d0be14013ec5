//! Rollouts that Argo Rollouts deployed: they are gone on with, nothing is made or restarted.

use serde_json::{Value, json};

use super::at;
use super::fixture::Fixture;

/// How its releases hash a template.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    /// From 1.9 on.
    New,
    /// Up to 1.8: an empty creation time is part of it.
    Old,
    /// By none of these: a release, or a webhook, that nobody knows.
    Other,
}

/// Strategy | where it was left: at rest, or in a pause | the phase it stays in.
const LEFT: &str = "
canary     | rest  | Healthy
canary     | pause | Paused
blue-green | rest  | Healthy
blue-green | pause | Paused
nginx      | rest  | Healthy
nginx      | pause | Paused";

#[test]
fn what_argo_deployed_is_gone_on_with_whatever_its_hashes() {
    for row in LEFT.trim().lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [strategy, place, phase] = cells[..] else { panic!("three cells: {row}") };
        for form in [Form::New, Form::Old, Form::Other] {
            let what = format!("{strategy} at {place}, {form:?}");
            let mut fixture = left(strategy, place, form);
            let (sizes, status) = (fixture.sizes(), fixture.status());
            let pods: Vec<Vec<String>> = (0..sizes.len()).map(|at| fixture.pods_of(at)).collect();
            let written = fixture.rest(at(100));
            assert!(written.iter().all(|write| write == "status"), "{what}: {written:?}");
            assert_eq!(fixture.sizes(), sizes, "{what}");
            for (set, before) in pods.iter().enumerate() {
                assert_eq!(fixture.pods_of(set), *before, "{what}");
            }
            let now = fixture.status();
            assert_eq!(now["phase"], phase, "{what}");
            for kept in ["currentPodHash", "stableRS", "currentStepIndex", "pauseConditions"] {
                assert_eq!(now[kept], status[kept], "{what}: {kept}");
            }
            if place == "pause" {
                fixture.promote();
                fixture.settle(at(101));
                assert_eq!(fixture.status()["stableRS"], status["currentPodHash"], "{what}");
            }
        }
    }
}

#[test]
fn a_canary_is_gone_on_with_at_its_step_whatever_the_hash_of_its_steps() {
    let steps = json!([{ "setWeight": 50 }, { "pause": {} },
        { "experiment": { "templates": [{ "name": "a", "specRef": "stable" }] } }]);
    let mut fixture = Fixture::canary(2, steps);
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(1));
    let now = fixture.status()["currentStepHash"].clone();
    let older = fixture.world().rollout.spec.older_step_hashes.clone();
    assert!(!older.is_empty(), "releases differ in the hash of these steps");
    let mut past_the_pause = fixture.clone();
    past_the_pause.promote();
    past_the_pause.settle(at(2));
    for hash in older {
        for (left, index) in [(&fixture, 1), (&past_the_pause, 2)] {
            let mut fixture = left.clone();
            fixture.patch_status(json!({ "currentStepHash": hash }));
            fixture.forget();
            fixture.settle(at(3));
            assert_eq!(fixture.status()["currentStepIndex"], index, "{hash}");
            assert_eq!(fixture.status()["currentStepHash"], now, "{hash}");
        }
    }
    fixture.patch_status(json!({ "currentStepHash": "other" }));
    fixture.settle(at(3));
    assert!(
        fixture.take_events().contains(&"RolloutStepCompleted".to_owned()),
        "from the beginning"
    );
}

/// A rollout as Argo Rollouts leaves it.
fn left(strategy: &str, place: &str, form: Form) -> Fixture {
    let steps = json!([{ "setWeight": 50 }, { "pause": {} }]);
    let mut fixture = match strategy {
        "canary" => Fixture::canary(2, steps),
        "nginx" => Fixture::nginx(2, json!({ "steps": steps })),
        _ => Fixture::blue_green(2, json!({ "autoPromotionEnabled": false })),
    };
    fixture.settle(at(0));
    rehash(&mut fixture, 0, form);
    if place == "pause" {
        fixture.set_image("v2");
        fixture.settle(at(1));
        rehash(&mut fixture, 1, form);
    }
    (0..fixture.sizes().len()).for_each(|set| fixture.default_template(set));
    fixture.note_all();
    // Only the newest releases track how long an update takes.
    fixture.patch_status(json!({ "duration": Value::Null }));
    fixture.forget();
    fixture.take_events();
    fixture
}

fn rehash(fixture: &mut Fixture, at: usize, form: Form) {
    match form {
        Form::New => {}
        Form::Old => {
            let hash = fixture.legacy_hash();
            fixture.rehash(at, &hash);
        }
        Form::Other => fixture.rehash(at, &format!("other{at}")),
    }
}
