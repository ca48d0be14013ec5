//! Why do pods not come up, and why does nothing happen? `explain` on exported objects, one cause
//! each, as a person would run it.

use gradus_api::names::{annotation, label};
use serde_json::{Value, json};

use crate::cluster::sample;
use crate::program::{folder, gradus};

/// What | what stands beside the rollout, as fields of its pod, its own or its ReplicaSet's
/// status, its spec, an Event about its ReplicaSet, or a budget | what is said | what to do.
const CASES: &str = r#"
an image that is not there | pod    | {"containerStatuses":[{"name":"c","image":"web:9","state":{"waiting":{"reason":"ImagePullBackOff","message":"no such tag"}}}]} | pod web-1-a: image web:9 of container c cannot be pulled (no such tag) | check the image's name and tag
a container that crashes   | pod    | {"containerStatuses":[{"name":"c","state":{"waiting":{"reason":"CrashLoopBackOff"}},"lastState":{"terminated":{"exitCode":3}}}]} | pod web-1-a: container c crashes; its last exit code was 3 | kubectl logs web-1-a -c c --previous
too little memory          | pod    | {"containerStatuses":[{"name":"c","state":{"waiting":{"reason":"CrashLoopBackOff"}},"lastState":{"terminated":{"exitCode":137,"reason":"OOMKilled"}}}]} | it used more memory than its limit | raise resources.limits.memory
a Secret that is missing   | pod    | {"containerStatuses":[{"name":"c","state":{"waiting":{"reason":"CreateContainerConfigError","message":"secret \"db\" not found"}}}]} | container c cannot be started (secret "db" not found) | create the Secret db, or name another one
no node takes it           | pod    | {"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/3 nodes are available"}]} | no node takes it (0/3 nodes are available) | free or add nodes
a quota                    | set    | {"conditions":[{"type":"ReplicaFailure","status":"True","reason":"FailedCreate","message":"exceeded quota: pods=3"}]} | ReplicaSet web-1: its pods are refused (exceeded quota: pods=3) | raise the ResourceQuota
an admission policy        | event  | admission webhook "policy" denied the request | its pods are refused (admission webhook "policy" denied the request) | change the pod template
a disruption budget        | budget | {"disruptionsAllowed":0} | PodDisruptionBudget web allows no eviction now | wait until all its pods are ready
held by the interlock      | status | {"conditions":[{"type":"Held","status":"True","reason":"InterlockI1","message":"it would leave 1 of 3 pods","lastTransitionTime":"2026-01-01T00:00:00Z"}]} | condition Held says InterlockI1: it would leave 1 of 3 pods | (since
a wrong spec               | spec   | {"replicas":-1} | spec.replicas: Invalid value: -1 | an edit of that field frees it
"#;

/// The rollout `web` at its first revision, waiting for its pods.
fn rollout() -> Value {
    let mut rollout = sample("rolling-update.yaml");
    rollout["metadata"] = json!({ "name": "web", "namespace": "default", "uid": "rollout",
        "generation": 1, "annotations": { annotation::REVISION: "1" } });
    rollout["spec"]["selector"] = json!({ "matchLabels": { "app": "web" } });
    rollout["spec"]["template"]["metadata"] = json!({ "labels": { "app": "web" } });
    rollout
}

fn owned(kind: &str, uid: &str) -> Value {
    json!([{ "apiVersion": "x/v1", "kind": kind, "name": "o", "uid": uid, "controller": true }])
}

/// The objects of a row.
fn objects(place: &str, given: &str) -> Value {
    let fields = serde_json::from_str::<Value>(given).unwrap_or_default();
    let labels = json!({ "app": "web", label::POD_TEMPLATE_HASH: "1" });
    let mut rollout = rollout();
    let mut set = json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": { "name": "web-1", "namespace": "default", "uid": "set", "labels": labels,
            "ownerReferences": owned("Rollout", "rollout") },
        "spec": { "replicas": 3, "selector": { "matchLabels": labels },
            "template": rollout["spec"]["template"] },
        "status": { "replicas": 0 } });
    let mut more = Vec::new();
    match place {
        "set" => set["status"] = fields,
        "status" => rollout["status"] = fields,
        "spec" => rollout["spec"]["replicas"] = fields["replicas"].clone(),
        "pod" => more.push(json!({ "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": "web-1-a", "namespace": "default", "labels": labels,
                "ownerReferences": owned("ReplicaSet", "set") }, "status": fields })),
        "event" => more.push(json!({ "apiVersion": "v1", "kind": "Event", "type": "Warning",
            "metadata": { "name": "web-1.1", "namespace": "default" }, "message": given,
            "involvedObject": { "kind": "ReplicaSet", "name": "web-1" } })),
        _ => {
            rollout["spec"]["restartAt"] = "2026-01-01T00:00:00Z".into();
            more.push(json!({ "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                "metadata": { "name": "web", "namespace": "default" },
                "spec": { "selector": { "matchLabels": { "app": "web" } } }, "status": fields }));
        }
    }
    more.extend([rollout, set]);
    json!({ "apiVersion": "v1", "kind": "List", "items": more })
}

#[test]
fn each_cause_is_named_with_what_to_do() {
    for (number, row) in CASES.trim().lines().enumerate() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [what, place, given, expected, advice] = cells[..] else { panic!("five: {row}") };
        let folder = folder(&format!("cause-{number}"));
        std::fs::write(folder.join("all.json"), objects(place, given).to_string()).unwrap();
        let files = folder.to_str().unwrap();
        let said = gradus(&["explain", "rollout", "web", "--from-files", files]);
        assert_eq!(said.code, Some(0), "{what}: {}", said.stderr);
        assert!(!said.stdout.contains("not answered"), "{what}: pods are read: {}", said.stdout);
        for words in [expected, advice] {
            assert!(said.stdout.contains(words), "{what}: {words:?} in\n{}", said.stdout);
        }
    }
}
