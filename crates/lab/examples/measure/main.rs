//! What does one operation cost? Runs it N times and nothing else, for callgrind, or fills an index
//! and says how much memory it holds. `cargo xtask bench` subtracts two runs of different N. One
//! program for all figures, because what is shipped takes minutes to link.

mod runs;
mod scenario;
mod tryout;

use std::error::Error;
use std::hint::black_box;
use std::process::ExitCode;

use gradus_api::names;
use gradus_controller::rollouts::{RolloutIndex, Source};
use gradus_controller::shell::{InterlockMode, Seen, Shell};
use gradus_controller::watched::{Key, Scope, Watched};
use gradus_engine::ask::Recall;
use gradus_engine::frame::Frame;
use gradus_engine::rollout::{Rollouts, decide};
use gradus_engine::world::World;
use gradus_engine::{kinds, template};
use jiff::Timestamp;
use serde_json::{Value, json};

const USAGE: &str =
    "usage: measure decide|decide-settled|reconcile-settled|hash|decode|index|runs N
       measure scenario FILE [RUNS]
       measure hours|pods [RUNS]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<usize>().ok();
    match arguments[..] {
        ["scenario", file, ref runs @ ..] if runs.len() < 2 => {
            let runs = runs.first().map_or(Some(1_000), |runs| number(runs));
            return runs.map_or_else(usage, |runs| told(scenario::tell(file, runs)));
        }
        ["hours"] => tryout::hours(5),
        ["pods"] => tryout::pods(5),
        [what, times] => {
            let Some(times) = number(times) else { return usage() };
            match what {
                "decide" => repeat_decide(&mid_canary(), times),
                "decide-settled" => repeat_decide(&settled(), times),
                "reconcile-settled" => reconcile_settled(times),
                "hash" => hash(times),
                "decode" => decode(times),
                "index" => fill_index(times),
                "runs" => runs::measure(times),
                "hours" => tryout::hours(times),
                "pods" => tryout::pods(times),
                _ => return usage(),
            }
        }
        _ => return usage(),
    }
    ExitCode::SUCCESS
}

fn told(result: Result<(), Box<dyn Error>>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::FAILURE
}

fn now() -> Timestamp {
    Timestamp::from_second(1_700_000_100).expect("in range")
}

fn repeat_decide(world: &World, times: usize) {
    for _ in 0..times {
        black_box(decide(black_box(world), now()));
    }
}

/// A key woken for nothing: it is decided, and nothing is to be done.
fn reconcile_settled(times: usize) {
    let mut shell = Shell::<Rollouts>::new(&Scope::default(), InterlockMode::default());
    for source in Rollouts::sources() {
        shell.observe(&source, &Seen::Init, now());
        for (_, frame) in settled_frames(0).into_iter().filter(|(of, _)| *of == source) {
            shell.observe(&source, &Seen::InitApply(frame), now());
        }
        shell.observe(&source, &Seen::InitDone, now());
    }
    assert!(shell.is_synced(), "before that nothing is decided");
    assert!(shell.next_work(now()).is_none(), "the rollout is settled");
    let key = Key { namespace: "shop".into(), name: "web-0".into() };
    for _ in 0..times {
        shell.wake(key.clone(), now());
        assert!(black_box(shell.next_work(now())).is_none());
    }
}

fn hash(times: usize) {
    let pod = template_of("web:v1");
    for _ in 0..times {
        black_box(template::pod_template_hash(black_box(&pod), None));
    }
}

/// From the text of a watch frame to the slim view.
fn decode(times: usize) {
    let text = rollout(0, "web:v2", json!({})).to_string();
    for _ in 0..times {
        let mut index = RolloutIndex::default();
        let frame: Frame = serde_json::from_str(black_box(&text)).expect("it is a frame");
        let apply = Rollouts::shelf(&Source::Rollouts).apply;
        black_box(apply(&mut index, &kinds::ROLLOUT, &frame));
    }
}

/// N rollouts with two ReplicaSets each; prints what they hold in resident memory.
fn fill_index(times: usize) {
    let before = resident_kilobytes();
    let mut index = RolloutIndex::default();
    for number in 0..times {
        for (source, frame) in settled_frames(number) {
            (Rollouts::shelf(&source).apply)(&mut index, &Rollouts::kind_of(&source), &frame);
        }
    }
    let after = resident_kilobytes();
    println!(
        "{}",
        json!({ "rollouts": index.rollouts().count(), "before_kb": before, "after_kb": after })
    );
}

fn resident_kilobytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn mid_canary() -> World {
    let hash = |image: &str| template::pod_template_hash(&template_of(image), None);
    let steps = template::step_hash(&steps());
    let status = json!({
        "currentPodHash": hash("web:v2"), "stableRS": hash("web:v1"), "currentStepIndex": 2,
        "currentStepHash": steps, "observedGeneration": "2", "replicas": 6, "updatedReplicas": 2,
        "readyReplicas": 6, "availableReplicas": 6, "phase": "Progressing",
        "message": "more replicas need to be updated", "selector": "app=web", "HPAReplicas": 6,
        "conditions": conditions("ReplicaSetUpdated", "False"), "canary": {}, "blueGreen": {},
    });
    world(vec![
        (Source::Rollouts, frame(rollout(0, "web:v2", status))),
        (Source::ReplicaSets, frame(replica_set(0, "web:v1", 1, 4))),
        (Source::ReplicaSets, frame(replica_set(0, "web:v2", 2, 2))),
    ])
}

fn settled() -> World {
    world(settled_frames(0))
}

fn world(frames: Vec<(Source, Frame)>) -> World {
    let mut index = RolloutIndex::default();
    for (source, frame) in frames {
        (Rollouts::shelf(&source).apply)(&mut index, &Rollouts::kind_of(&source), &frame);
    }
    let key = Key { namespace: "shop".into(), name: "web-0".into() };
    let recall = Recall::default();
    Rollouts::gather(&index, &key, &std::collections::BTreeMap::new(), &recall)
        .expect("the rollout is there")
}

fn settled_frames(number: usize) -> Vec<(Source, Frame)> {
    let hash = template::pod_template_hash(&template_of("web:v2"), None);
    let status = json!({
        "currentPodHash": hash, "stableRS": hash, "currentStepIndex": 5,
        "currentStepHash": template::step_hash(&steps()), "observedGeneration": "2",
        "replicas": 5, "updatedReplicas": 5, "readyReplicas": 5, "availableReplicas": 5,
        "phase": "Healthy", "selector": "app=web", "HPAReplicas": 5,
        "conditions": conditions("NewReplicaSetAvailable", "True"), "canary": {}, "blueGreen": {},
    });
    vec![
        (Source::Rollouts, frame(rollout(number, "web:v2", status))),
        (Source::ReplicaSets, frame(replica_set(number, "web:v1", 1, 0))),
        (Source::ReplicaSets, frame(replica_set(number, "web:v2", 2, 5))),
    ]
}

fn conditions(progressing: &str, done: &str) -> Value {
    let condition = |r#type: &str, status: &str, reason: &str, message: &str| {
        json!({ "type": r#type, "status": status, "reason": reason, "message": message,
                "lastUpdateTime": "2023-11-14T22:14:00Z", "lastTransitionTime": "2023-11-14T22:14:00Z" })
    };
    json!([
        condition("Healthy", done, "RolloutHealthy", "Rollout is healthy"),
        condition("Completed", done, "RolloutCompleted", "RolloutCompleted"),
        condition(
            "Progressing",
            "True",
            progressing,
            "ReplicaSet \"web\" has successfully progressed."
        ),
        condition("Available", "True", "AvailableReason", "Rollout has minimum availability"),
    ])
}

fn frame(object: Value) -> Frame {
    serde_json::from_str(&object.to_string()).expect("it is a frame")
}

fn steps() -> Value {
    json!([{ "setWeight": 20 }, { "setWeight": 40 }, { "setWeight": 60 }, { "setWeight": 80 }, { "setWeight": 100 }])
}

fn template_of(image: &str) -> Value {
    json!({
        "metadata": { "labels": { "app": "web" }, "annotations": { "team": "shop" } },
        "spec": { "containers": [{
            "name": "web", "image": image, "ports": [{ "containerPort": 8080, "protocol": "TCP" }],
            "env": [{ "name": "MODE", "value": "live" }, { "name": "REGION", "value": "eu" }],
            "resources": { "requests": { "cpu": "100m", "memory": "128Mi" }, "limits": { "memory": "256Mi" } },
            "readinessProbe": { "httpGet": { "path": "/ready", "port": 8080 }, "periodSeconds": 5 },
        }] },
    })
}

fn rollout(number: usize, image: &str, status: Value) -> Value {
    json!({
        "metadata": {
            "name": format!("web-{number}"), "namespace": "shop", "generation": 2,
            "uid": uid(number, 0), "resourceVersion": (number * 3 + 10).to_string(),
            "creationTimestamp": "2023-11-14T22:00:00Z",
            "labels": { "app": "web" },
            "annotations": { names::annotation::REVISION: "2" },
        },
        "spec": {
            "replicas": 5, "selector": { "matchLabels": { "app": "web" } },
            "template": template_of(image),
            "strategy": { "canary": { "maxSurge": 1, "maxUnavailable": 0, "steps": steps() } },
        },
        "status": status,
    })
}

fn replica_set(number: usize, image: &str, revision: usize, size: usize) -> Value {
    let mut template = template_of(image);
    let hash = template::pod_template_hash(&template, None);
    template["metadata"]["labels"]["rollouts-pod-template-hash"] = json!(hash);
    json!({
        "metadata": {
            "name": format!("web-{number}-{hash}"), "namespace": "shop", "generation": 3,
            "uid": uid(number, revision), "resourceVersion": (number * 3 + 10 + revision).to_string(),
            "creationTimestamp": "2023-11-14T22:00:00Z",
            "labels": { "app": "web", "rollouts-pod-template-hash": hash },
            "annotations": {
                names::annotation::REVISION: revision.to_string(),
                names::annotation::DESIRED_REPLICAS: "5",
            },
            "ownerReferences": [{ "apiVersion": names::API_VERSION, "kind": names::kind::ROLLOUT,
                "name": format!("web-{number}"), "uid": uid(number, 0), "controller": true }],
        },
        "spec": { "replicas": size, "template": template },
        "status": { "replicas": size, "readyReplicas": size, "availableReplicas": size, "observedGeneration": 3 },
    })
}

fn uid(number: usize, part: usize) -> String {
    format!("{number:08x}-0000-4000-8000-{part:012x}")
}
