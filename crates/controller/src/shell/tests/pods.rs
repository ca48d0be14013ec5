//! Pods are listed when they matter, and a refused eviction waits: shown with a Rollout's restart.

use gradus_engine::ask::{Class, Reply};
use gradus_engine::decision::Op;
use gradus_engine::frame::Frame;
use gradus_engine::rollout::Rollouts;
use gradus_engine::template::{pod_template_hash, step_hash};
use gradus_engine::world::PodView;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::super::*;
use super::at;
use crate::act::Acted;
use crate::cluster::WriteError;
use crate::rollouts::Source;
use crate::watched::Watched;

fn object(value: Value) -> Frame {
    serde_json::from_value(value).unwrap()
}

/// A shell that has listed a Rollout with one pod, due to be restarted.
fn restarting() -> Shell<Rollouts> {
    let template = json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "c", "image": "i" }] },
    });
    let hash = pod_template_hash(&template, None);
    let rollout = object(json!({
        "metadata": { "name": "web", "namespace": "home", "uid": "web", "resourceVersion": "5",
                      "generation": 1, "annotations": { "rollout.argoproj.io/revision": "1" } },
        "status": { "currentPodHash": hash, "stableRS": hash, "observedGeneration": "1",
                    "currentStepHash": step_hash(&Value::Null) },
        "spec": {
            "replicas": 1, "selector": { "matchLabels": { "app": "web" } }, "template": template,
            "strategy": { "canary": {} }, "restartAt": at(-1_000),
        },
    }));
    let set = object(json!({
        "metadata": {
            "name": "web-1", "namespace": "home", "uid": "set", "resourceVersion": "6",
            "generation": 1, "labels": { "app": "web", "rollouts-pod-template-hash": hash },
            "annotations": { "rollout.argoproj.io/desired-replicas": "1",
                             "rollout.argoproj.io/revision": "1" },
            "ownerReferences": [{ "kind": "Rollout", "name": "web", "uid": "web", "controller": true }],
        },
        "spec": { "replicas": 1, "template": template },
        "status": { "replicas": 1, "readyReplicas": 1, "availableReplicas": 1, "observedGeneration": 1 },
    }));
    let mut shell = Shell::new(&Scope::default(), InterlockMode::default());
    for source in Rollouts::sources() {
        shell.observe(&source, &Seen::Init, at(0));
        for (of, frame) in [(Source::Rollouts, &rollout), (Source::ReplicaSets, &set)] {
            if of == source {
                shell.observe(&source, &Seen::InitApply(frame.clone()), at(0));
            }
        }
        shell.observe(&source, &Seen::InitDone, at(0));
    }
    shell
}

fn pod(name: &str, owner: &str) -> Frame {
    object(json!({
        "metadata": {
            "name": name, "uid": name, "resourceVersion": "7", "creationTimestamp": at(-60_000),
            "ownerReferences": [{ "kind": "ReplicaSet", "uid": owner, "controller": true }],
        },
        "status": { "conditions": [
            { "type": "Ready", "status": "True", "lastTransitionTime": at(-50_000) },
        ] },
    }))
}

/// The next eviction that is due now; lists of pods are answered on the way.
fn eviction(shell: &mut Shell<Rollouts>, now: Timestamp) -> Option<Box<Job>> {
    shell.wake_all(now);
    while let Some(work) = shell.next_work(now) {
        match work {
            Work::Act(job) if job.changes.iter().any(|change| change.op == Op::Evict) => {
                return Some(job);
            }
            Work::Act(job) => shell.decline(&job.key, now),
            Work::Settle(read) => panic!("unexpected read of {}", read.object),
            Work::Survey(listing) => panic!("unexpected {listing:?}"),
            Work::Ask(inquiry) => {
                let pods: Vec<PodView> = [pod("mine", "set")].iter().map(PodView::read).collect();
                shell.learn_answer(*inquiry, Ok(Reply::Pods(pods.into())), now);
            }
        }
    }
    None
}

#[test]
fn a_refused_eviction_waits_half_a_minute_where_a_budget_says_so() {
    let cases = [
        ("a budget", Class::Throttled, 30_000),
        ("the server failed", Class::Unknown, 1_000),
        ("not reached", Class::Unreachable, 1_000),
        ("not allowed", Class::Denied, 1_000),
        ("no longer so", Class::Stale, 1_000),
    ];
    for (what, class, again_at) in cases {
        let mut shell = restarting();
        let job = eviction(&mut shell, at(0)).expect("its time has come");
        let evicted: Vec<&str> = job.changes.iter().map(|change| &*change.target.name).collect();
        assert_eq!(evicted.last(), Some(&"mine"), "{evicted:?}");
        let change = job.changes.last().unwrap();
        let refusal = Refusal {
            id: Some(change.id.clone()),
            object: change.target.clone(),
            rested_on: change.expect.version(),
            error: WriteError { class, message: what.to_owned(), retry_after_secs: None },
            again_after: Some(SignedDuration::from_secs(30)),
        };
        let (written, pruned) = (Vec::new(), Vec::new());
        let (changes, failures) = (job.changes.len(), vec![refusal]);
        shell.learn(Acted { job, changes, written, failures, pruned }, at(0));
        for now in [1_000, 15_000, 29_000].into_iter().filter(|now| *now < again_at) {
            assert!(eviction(&mut shell, at(now)).is_none(), "{what}: after {now} ms");
        }
        assert!(eviction(&mut shell, at(again_at)).is_some(), "{what}");
    }
}
