//! Pods, Events and budgets, and the causes they lead to.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::ask::Recall;
use crate::frame::Frame;
use crate::world::{Known, ReplicaSetView, RolloutView};

fn frame(object: Value) -> Frame {
    serde_json::from_value(object).unwrap()
}

/// A rollout `web` with one ReplicaSet of three pods, which says what the status says.
fn world(spec: Value, set_status: Value) -> World {
    let rollout = json!({ "metadata": { "name": "web", "namespace": "shop" }, "spec": spec });
    let set = json!({ "metadata": { "name": "web-1", "uid": "set" }, "spec": { "replicas": 3 },
        "status": set_status });
    World {
        rollout: Arc::new(RolloutView::read(&frame(rollout), None)),
        replica_sets: Known::Present(vec![Arc::new(ReplicaSetView::read(&frame(set), None))]),
        services: BTreeMap::new(),
        routes: Vec::new(),
        orphans: Vec::new(),
        workload: None,
        runs: Known::Present(Vec::new()),
        experiments: Known::Present(Vec::new()),
        experiment_sets: Vec::new(),
        templates: Default::default(),
        verifies: false,
        answers: BTreeMap::new(),
        recall: Recall::default(),
    }
}

fn pod(name: &str, status: &str) -> Value {
    let status: Value = serde_json::from_str(status).unwrap();
    json!({ "metadata": { "name": name, "ownerReferences": [{ "uid": "set", "controller": true }] },
        "spec": { "nodeName": "n1", "initContainers": [{ "name": "i" }] }, "status": status })
}

/// What, status of the pod, words of the cause, words of the advice.
const PODS: &str = r#"
a wrong image        | {"containerStatuses":[{"name":"c","image":"web:9","state":{"waiting":{"reason":"ImagePullBackOff","message":"no such tag"}}}]} | image web:9 of container c cannot be pulled (no such tag) | imagePullSecrets
a crash              | {"containerStatuses":[{"name":"c","state":{"waiting":{"reason":"CrashLoopBackOff"}},"lastState":{"terminated":{"exitCode":3,"reason":"Error"}}}]} | container c crashes; its last exit code was 3 | kubectl logs web-1-a -c c --previous
too little memory    | {"containerStatuses":[{"name":"c","state":{"waiting":{"reason":"CrashLoopBackOff"}},"lastState":{"terminated":{"exitCode":137,"reason":"OOMKilled"}}}]} | more memory than its limit | resources.limits.memory
a crash in init      | {"initContainerStatuses":[{"name":"i","state":{"terminated":{"exitCode":1}}}]} | container i crashes | kubectl logs web-1-a -c i
a missing Secret     | {"containerStatuses":[{"name":"c","state":{"waiting":{"reason":"CreateContainerConfigError","message":"secret \"db\" not found"}}}]} | cannot be started (secret "db" not found) | create the Secret db, or name another one
a missing key        | {"containerStatuses":[{"name":"c","state":{"waiting":{"reason":"CreateContainerConfigError","message":"couldn't find key a in Secret shop/db"}}}]} | couldn't find key a | Secrets
a missing volume     | {"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/3 nodes are available: persistentvolumeclaim \"data\" not found"}]} | no node takes it | create the PersistentVolumeClaim data
an init that lasts   | {"initContainerStatuses":[{"name":"i","ready":false,"started":true,"state":{"running":{}}}]} | init container i runs and has not ended yet | kubectl logs web-1-a -c i -n shop
restarted by a probe | {"containerStatuses":[{"name":"c","ready":false,"restartCount":4,"state":{"running":{}},"lastState":{"terminated":{"exitCode":137,"reason":"Error"}}}]} | runs but is not ready; it has been restarted: its last exit code was 137 (probe failed: 503) | kubectl logs web-1-a -c c -n shop
an eviction          | {"phase":"Failed","reason":"Evicted","message":"The node was low on resource: memory."} | it has failed: Evicted (The node was low on resource: memory.) | resources.requests
a node that is away  | {"phase":"Running","conditions":[{"type":"Ready","status":"False","reason":"NodeNotReady","message":"kubelet stopped posting"}],"containerStatuses":[{"name":"c","ready":true,"state":{"running":{}}}]} | its condition Ready is False (NodeNotReady: kubelet stopped posting) | kubectl describe node n1
no node              | {"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/3 nodes are available"}]} | no node takes it (0/3 nodes are available) | resources
not ready            | {"containerStatuses":[{"name":"c","ready":false,"state":{"running":{}}}]} | runs but is not ready (probe failed: 503) | readinessProbe
"#;

#[test]
fn what_holds_a_pod_up_is_named_with_what_to_do() {
    let probe = json!({ "type": "Warning", "message": "probe failed: 503",
        "lastTimestamp": "2024-01-01T00:00:00Z",
        "involvedObject": { "kind": "Pod", "name": "web-1-a" } });
    for row in PODS.trim().lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [what, status, cause, advice] = cells[..] else { panic!("four cells: {row}") };
        let pods = [pod("web-1-a", status), pod("web-1-b", "{}")];
        let events = [probe.clone()];
        let evidence = Evidence { pods: &pods, events: &events, budgets: &[] };
        let found = causes(&world(json!({}), json!({ "replicas": 3 })), evidence);
        assert_eq!(found.len(), 1, "{what}: {found:?}");
        assert!(found[0].what.contains(cause), "{what}: {}", found[0].what);
        assert!(found[0].what.starts_with("pod web-1-a: "), "{what}: {}", found[0].what);
        let done = format!("{} {}", found[0].advice, found[0].commands.join(" "));
        assert!(done.contains(advice), "{what}: {done}");
    }
}

#[test]
fn pods_that_go_or_are_replaced_hold_nothing_up() {
    let unready = r#"{"containerStatuses":[{"name":"c","ready":false,"state":{"running":{}}}]}"#;
    let mut going = pod("web-1-a", unready);
    going["metadata"]["deletionTimestamp"] = json!("2024-01-01T00:00:00Z");
    let evicted = pod("web-1-b", r#"{"phase":"Failed","reason":"Evicted"}"#);
    let pods = [going, evicted];
    let evidence = Evidence { pods: &pods, ..Evidence::default() };
    let full = json!({ "replicas": 3, "readyReplicas": 3 });
    assert_eq!(causes(&world(json!({}), full), evidence), []);
    let short = json!({ "replicas": 3, "readyReplicas": 2 });
    assert_eq!(causes(&world(json!({}), short), evidence).len(), 1, "the eviction alone");
}

#[test]
fn many_pods_with_one_trouble_are_one_cause() {
    let status = |name: &str| {
        r#"{"containerStatuses":[{"name":"c","image":"x","state":{"waiting":{"reason":"ErrImagePull",
            "message":"POD"}}}]}"#
            .replace("POD", name)
    };
    let pods = ["web-1-a", "web-1-b", "web-1-c"].map(|name| pod(name, &status(name)));
    let evidence = Evidence { pods: &pods, ..Evidence::default() };
    let found = causes(&world(json!({}), json!({ "replicas": 3 })), evidence);
    assert_eq!(found.len(), 1);
    let named = "pod web-1-a and 2 more (web-1-b, web-1-c): ";
    assert!(found[0].what.starts_with(named), "{}", found[0].what);
}

#[test]
fn refused_pods_are_told_in_the_servers_words() {
    let failure = |message: &str| {
        json!({ "conditions": [{ "type": "ReplicaFailure", "status": "True",
            "reason": "FailedCreate", "message": message }] })
    };
    let cases = [
        ("a quota", "exceeded quota: pods=3", "ResourceQuota"),
        ("admission", "admission webhook \"policy\" denied the request", "admission"),
        ("no limits", "failed quota: small: must specify limits.cpu", "that the ResourceQuota"),
        ("limits of a pod", "maximum cpu usage per Pod is 1, but limit is 2", "LimitRange"),
        ("no answer", "failed calling webhook \"policy\": refused", "the webhook does not answer"),
        ("a policy", "ValidatingAdmissionPolicy 'a' with binding 'b' denied request", "admission"),
        (
            "pod security",
            "violates PodSecurity \"restricted:latest\"",
            "pod-security.kubernetes.io",
        ),
        (
            "no account",
            "error looking up service account shop/web: serviceaccount \"web\" not found",
            "create the ServiceAccount web",
        ),
        ("something else", "pods is forbidden", "API server's words"),
    ];
    for (what, message, advice) in cases {
        let found = causes(&world(json!({}), failure(message)), Evidence::default());
        assert!(found[0].what.contains(message), "{what}: {}", found[0].what);
        assert!(found[0].advice.contains(advice), "{what}: {}", found[0].advice);
    }
    let event = json!({ "type": "Warning", "message": "exceeded quota: pods=3",
        "involvedObject": { "kind": "ReplicaSet", "name": "web-1" } });
    let events = [event];
    let evidence = Evidence { events: &events, ..Evidence::default() };
    let found = causes(&world(json!({}), json!({})), evidence);
    assert!(found[0].what.contains("exceeded quota"), "an Event tells it too");
}

#[test]
fn a_budget_that_allows_no_eviction_holds_up_a_restart() {
    let budgets = [json!({ "metadata": { "name": "web-pdb" },
        "spec": { "selector": { "matchLabels": { "app": "web" } } },
        "status": { "disruptionsAllowed": 0 } })];
    let evidence = Evidence { budgets: &budgets, ..Evidence::default() };
    let mut spec = json!({ "selector": { "matchLabels": { "app": "web" } },
        "restartAt": "2024-01-01T00:00:00Z" });
    let found = causes(&world(spec.clone(), json!({ "replicas": 3 })), evidence);
    assert!(found[0].what.contains("web-pdb"), "{found:?}");
    spec["restartAt"] = Value::Null;
    assert_eq!(causes(&world(spec, json!({ "replicas": 3 })), evidence), []);
}
