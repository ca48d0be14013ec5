//! What holds a rollout, since when, and what frees it; and that whoever does not go on says why.

use gradus_api::rollout::RolloutStatus;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::at;
use super::fixture::Fixture;
use crate::decision::{Decision, Frees, Guard, Urgency, Why};
use crate::explain::sentence;
use crate::rollout::Memo;
use crate::world::{ReplicaSetView, World};

/// Of every decision in every scenario: where it says what holds the rollout, it names an object
/// and a field; and where nothing but counts is written it says so, unless the rollout is healthy,
/// waits for no time and has no older pods.
pub fn check(world: &World, decision: &Decision<RolloutStatus, Memo>, now: Timestamp) {
    let is_written = decision.status.is_some() && decision.urgency == Urgency::Now;
    let is_idle = decision.changes.is_empty() && !is_written;
    for why in &decision.why {
        let words = sentence(why);
        assert!(!why.object.name.is_empty() && !why.field.is_empty(), "where? {words}");
        assert!(why.since.is_none_or(|since| since <= now), "since later than now: {words}");
        let is_over = matches!(why.frees, Frees::At(end) if end <= now);
        assert!(!is_idle || !is_over, "its time has come, and nothing is done: {words}");
    }
    let status = decision.status.as_ref().unwrap_or(&world.rollout.status);
    let (stable, current) = (&status.stable_rs, &status.current_pod_hash);
    let is_old = |set: &ReplicaSetView| *set.hash != **stable && *set.hash != **current;
    let mut sets = world.replica_sets.present().into_iter().flatten();
    let is_done = status.phase == "Healthy"
        && decision.wake_at.is_none()
        && !sets.any(|set| is_old(set) && set.size > 0);
    let is_told = is_done || world.rollout.deleting || !decision.why.is_empty();
    let (phase, message, wake_at) = (&status.phase, &status.message, decision.wake_at);
    assert!(!is_idle || is_told, "why? {phase} {message}, woken at {wake_at:?}: {status:?}");
}

/// Guard, object, field, since when and what frees it. Hashes are shown as revisions, times as
/// seconds of the scenario.
fn told(fixture: &Fixture, why: &Why) -> String {
    let second = |time: Timestamp| (time.as_second() - at(0).as_second()).to_string();
    let since = why.since.map_or("?".to_owned(), second);
    let frees = match &why.frees {
        Frees::At(end) => format!("at {}", second(*end)),
        Frees::Command(command) => command.to_string(),
        other => format!("{other:?}"),
    };
    let (kind, name) = (&why.object.kind.name, &why.object.name);
    let text = format!("{:?} | {kind} {name} | {} | {since} | {frees}", why.guard, why.field);
    let count = fixture.sizes().len();
    (0..count).fold(text, |text, at| text.replace(&fixture.hash(at), &(at + 1).to_string()))
}

const DAYS: i64 = 300_000;
const DEADLINE: &str = "metadata.annotations.scale-down-deadline";
const ABORTED: &str = "Aborted { message: \"RolloutAborted: Rollout aborted update to revision 2\" } \
                       | Rollout web | status.abort | 20 | retry rollout";

/// The first revision is there from second 0 on; the update is as far as it gets at this second.
fn updated(fixture: Fixture, second: i64) -> Fixture {
    let mut fixture = fixture;
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(second));
    fixture
}

/// The same, but the pods of the new revision never become ready.
fn stuck(fixture: Fixture, second: i64) -> Fixture {
    let mut fixture = fixture;
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle_without_new_pods(at(second));
    fixture
}

/// An update of second 10 that is aborted in second 20, after this has happened.
fn aborted(fixture: Fixture, happens: fn(&mut Fixture)) -> Fixture {
    let mut fixture = updated(fixture, 10);
    happens(&mut fixture);
    fixture.patch_status(json!({ "abort": true }));
    for _ in 0..4 {
        fixture.reconcile(at(20));
    }
    fixture
}

fn half() -> Value {
    json!([{ "setWeight": 50 }, { "pause": {} }])
}

fn judged(steps: Value) -> Fixture {
    let metric = json!({ "name": "m", "provider": { "web": { "url": "x" } } });
    Fixture::canary(2, steps).with_template("once", json!({ "metrics": [metric] }))
}

/// A blue-green rollout whose new revision has the traffic and is judged.
fn after_promotion(strategy: Value) -> Fixture {
    let metric = json!({ "name": "m", "provider": { "web": { "url": "x" } } });
    let mut whole =
        json!({ "postPromotionAnalysis": { "templates": [{ "templateName": "once" }] } });
    whole.as_object_mut().unwrap().extend(strategy.as_object().unwrap().clone());
    Fixture::blue_green(3, whole).with_template("once", json!({ "metrics": [metric] }))
}

type Case = (&'static str, fn() -> Fixture, Vec<String>);

/// What the row shows, the scenario, and what is told at its end.
fn moving() -> Vec<Case> {
    let missing = |available: i32, wanted: i32, since: Option<i64>| {
        let since = since.map_or("?".to_owned(), |since| since.to_string());
        format!(
            "NotAvailable {{ available: {available}, wanted: {wanted} }} \
             | ReplicaSet web-2 | status.availableReplicas | {since} | Cluster"
        )
    };
    vec![
        (
            "pods are waited for since the update last moved, not since the first deploy",
            || stuck(Fixture::canary(2, half()), DAYS),
            vec![missing(0, 1, Some(DAYS))],
        ),
        (
            "and no less long after the deadline",
            || {
                let mut fixture = stuck(Fixture::canary(2, half()), DAYS);
                fixture.settle_without_new_pods(at(DAYS + 600));
                assert_eq!(fixture.status()["phase"], "Degraded");
                fixture
            },
            vec![missing(0, 1, Some(DAYS))],
        ),
        (
            "a verdict is awaited since the run was made",
            || {
                let templates = json!({ "templates": [{ "templateName": "once" }] });
                let mut fixture = updated(judged(json!([{ "analysis": templates }])), DAYS);
                fixture.settle(at(DAYS + 100));
                fixture
            },
            vec![format!(
                "Verdict {{ phase: \"\" }} | AnalysisRun web-2-2-0 | status.phase | {DAYS} | Cluster"
            )],
        ),
        (
            "a preview has its own size",
            || stuck(Fixture::blue_green(3, json!({ "previewReplicaCount": 1 })), 10),
            vec![missing(0, 1, Some(10))],
        ),
        (
            "a pause before the switch whose time is over waits for pods",
            || {
                let strategy = json!({ "autoPromotionSeconds": 30 });
                let mut fixture = updated(Fixture::blue_green(3, strategy), 10);
                fixture.size(1, 3, 2);
                fixture.reconcile(at(60));
                fixture.reconcile(at(60));
                fixture
            },
            vec![missing(2, 3, None)],
        ),
    ]
}

/// Steps that only a person moves.
fn steps() -> Vec<Case> {
    vec![(
        "an analysis without templates stands until a person skips it",
        || updated(Fixture::canary(2, json!([{ "analysis": { "templates": [] } }])), 10),
        vec![
            "NoTemplates { index: 0, count: 1 } | Rollout web \
                 | spec.strategy.canary.steps[0].analysis.templates | ? | promote"
                .to_owned(),
        ],
    )]
}

fn leaving() -> Vec<Case> {
    let delay =
        |set: usize, end: i64| format!("Delay | ReplicaSet web-{set} | {DEADLINE} | ? | at {end}");
    vec![
        (
            "what a canary has replaced stays for its delay",
            || updated(Fixture::nginx(2, json!({ "steps": [{ "setWeight": 50 }] })), 10),
            vec![delay(1, 40)],
        ),
        (
            "what a switch has replaced stays for its delay",
            || updated(Fixture::blue_green(2, json!({ "scaleDownDelaySeconds": 90 })), 10),
            vec![delay(1, 100)],
        ),
        (
            "an aborted canary stays for its delay",
            || aborted(Fixture::nginx(2, json!({ "steps": half() })), |_| {}),
            vec![ABORTED.to_owned(), delay(2, 50)],
        ),
        (
            "an aborted preview stays for its delay",
            || aborted(Fixture::blue_green(2, json!({ "autoPromotionEnabled": false })), |_| {}),
            vec![ABORTED.to_owned(), delay(2, 50)],
        ),
    ]
}

fn back() -> Vec<Case> {
    let stable = |available: i32, wanted: i32| {
        format!(
            "NotAvailable {{ available: {available}, wanted: {wanted} }} \
             | ReplicaSet web-1 | status.availableReplicas | 20 | Cluster"
        )
    };
    let kept = |strategy: &str| {
        format!(
            "Kept {{ set: \"web-2\" }} | Rollout web \
             | spec.strategy.{strategy}.abortScaleDownDelaySeconds | 20 | Edit"
        )
    };
    vec![
        (
            "an aborted canary that carries traffic waits for stable pods, not for the cluster",
            || {
                aborted(Fixture::nginx(2, json!({ "steps": half() })), |fixture| {
                    fixture.lose_pod(0)
                })
            },
            vec![ABORTED.to_owned(), stable(1, 2)],
        ),
        (
            "one that the spec keeps stays",
            || {
                let strategy = json!({ "abortScaleDownDelaySeconds": 0, "steps": half() });
                aborted(Fixture::nginx(2, strategy), |_| {})
            },
            vec![ABORTED.to_owned(), kept("canary")],
        ),
        (
            "and so does a preview",
            || {
                let strategy =
                    json!({ "abortScaleDownDelaySeconds": 0, "autoPromotionEnabled": false });
                aborted(Fixture::blue_green(2, strategy), |_| {})
            },
            vec![ABORTED.to_owned(), kept("blueGreen")],
        ),
        (
            "without a router the canary goes when stable pods are there to take over",
            || {
                let mut fixture = aborted(Fixture::canary(2, half()), |_| {});
                fixture.size(0, 2, 1);
                fixture.reconcile(at(20));
                fixture
            },
            vec![ABORTED.to_owned(), stable(1, 2)],
        ),
        (
            "a switch back waits for stable to have more than the new revision",
            || aborted(after_promotion(json!({})), |fixture| fixture.size(0, 3, 0)),
            vec![ABORTED.to_owned(), stable(0, 3)],
        ),
        (
            "which may be fewer than all",
            || {
                aborted(after_promotion(json!({})), |fixture| {
                    fixture.size(0, 3, 0);
                    fixture.size(1, 3, 1);
                })
            },
            vec![ABORTED.to_owned(), stable(0, 2)],
        ),
    ]
}

#[test]
fn every_wait_names_its_guard_object_field_beginning_and_end() {
    let all = moving().into_iter().chain(steps()).chain(leaving()).chain(back());
    for (what, play, expected) in all {
        let fixture = play();
        let whys = fixture.whys();
        let found: Vec<String> = whys.iter().map(|why| told(&fixture, why)).collect();
        assert_eq!(found, expected, "{what}: {}", fixture.status());
    }
}

#[test]
fn pods_that_the_spec_keeps_hold_nothing_up() {
    let cases = [
        (Guard::Delay, false),
        (Guard::Kept { set: "web-1".into() }, false),
        (Guard::NotAvailable { available: 0, wanted: 1 }, true),
        (Guard::SpecPaused, true),
    ];
    for (guard, holds_up) in cases {
        assert_eq!(guard.holds_up(), holds_up, "{guard:?}");
    }
}
