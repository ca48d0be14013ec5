//! Rollouts that Argo Rollouts deployed: they are gone on with, nothing is made or restarted.

use serde_json::{Value, json};

use super::at;
use super::story::Story;

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
            let mut story = left(strategy, place, form);
            let (sizes, status) = (story.sizes(), story.status());
            let pods: Vec<Vec<String>> = (0..sizes.len()).map(|at| story.pods_of(at)).collect();
            let written = story.rest(at(100));
            assert!(written.iter().all(|write| write == "status"), "{what}: {written:?}");
            assert_eq!(story.sizes(), sizes, "{what}");
            for (set, before) in pods.iter().enumerate() {
                assert_eq!(story.pods_of(set), *before, "{what}");
            }
            let now = story.status();
            assert_eq!(now["phase"], phase, "{what}");
            for kept in ["currentPodHash", "stableRS", "currentStepIndex", "pauseConditions"] {
                assert_eq!(now[kept], status[kept], "{what}: {kept}");
            }
            if place == "pause" {
                story.promote();
                story.settle(at(101));
                assert_eq!(story.status()["stableRS"], status["currentPodHash"], "{what}");
            }
        }
    }
}

#[test]
fn a_canary_is_gone_on_with_at_its_step_whatever_the_hash_of_its_steps() {
    let steps = json!([{ "setWeight": 50 }, { "pause": {} },
        { "experiment": { "templates": [{ "name": "a", "specRef": "stable" }] } }]);
    let mut story = Story::canary(2, steps);
    story.settle(at(0));
    story.set_image("v2");
    story.settle(at(1));
    let now = story.status()["currentStepHash"].clone();
    let older = story.world().rollout.spec.older_step_hashes.clone();
    assert!(!older.is_empty(), "releases differ in the hash of these steps");
    let mut past_the_pause = story.clone();
    past_the_pause.promote();
    past_the_pause.settle(at(2));
    for hash in older {
        for (left, index) in [(&story, 1), (&past_the_pause, 2)] {
            let mut story = left.clone();
            story.patch_status(json!({ "currentStepHash": hash }));
            story.forget();
            story.settle(at(3));
            assert_eq!(story.status()["currentStepIndex"], index, "{hash}");
            assert_eq!(story.status()["currentStepHash"], now, "{hash}");
        }
    }
    story.patch_status(json!({ "currentStepHash": "other" }));
    story.settle(at(3));
    assert!(story.take_events().contains(&"RolloutStepCompleted".to_owned()), "from the beginning");
}

/// A rollout as Argo Rollouts leaves it.
fn left(strategy: &str, place: &str, form: Form) -> Story {
    let steps = json!([{ "setWeight": 50 }, { "pause": {} }]);
    let mut story = match strategy {
        "canary" => Story::canary(2, steps),
        "nginx" => Story::nginx(2, json!({ "steps": steps })),
        _ => Story::blue_green(2, json!({ "autoPromotionEnabled": false })),
    };
    story.settle(at(0));
    rehash(&mut story, 0, form);
    if place == "pause" {
        story.set_image("v2");
        story.settle(at(1));
        rehash(&mut story, 1, form);
    }
    (0..story.sizes().len()).for_each(|set| story.default_template(set));
    story.note_all();
    // Only the newest releases track how long an update takes.
    story.patch_status(json!({ "duration": Value::Null }));
    story.forget();
    story.take_events();
    story
}

fn rehash(story: &mut Story, at: usize, form: Form) {
    match form {
        Form::New => {}
        Form::Old => {
            let hash = story.legacy_hash();
            story.rehash(at, &hash);
        }
        Form::Other => story.rehash(at, &format!("other{at}")),
    }
}
