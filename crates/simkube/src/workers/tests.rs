//! What the workers do together, in virtual time.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::behave::Behaviours;
use crate::kinds::KindId;
use crate::object::Key;
use crate::request::{Options, Propagation, Request, Subresource, Verb};
use crate::{Actor, SimCluster};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn cluster(behaviours: Value) -> SimCluster {
    let behaviours: Behaviours = serde_json::from_value(behaviours).unwrap();
    SimCluster::new(behaviours, at(0))
}

fn replica_set(replicas: i64, image: &str) -> Value {
    json!({
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": image}]},
            },
        },
    })
}

/// Makes an object and lets the workers react.
fn create(cluster: &mut SimCluster, kind: KindId, body: Value, now: Timestamp) {
    cluster.call(&Request::create(kind, "default", body), now).unwrap();
    cluster.settle(now);
}

fn scale(cluster: &mut SimCluster, replicas: i64, now: Timestamp) {
    let patch = json!({"spec": {"replicas": replicas}});
    cluster.call(&Request::merge(KindId::REPLICA_SET, "default", "web", patch), now).unwrap();
}

fn status(cluster: &SimCluster) -> Value {
    Value::clone(&cluster.get(KindId::REPLICA_SET, "default", "web").unwrap().status)
}

fn pods(cluster: &SimCluster) -> Vec<Value> {
    cluster.list(KindId::POD, "default").map(|pod| pod.to_json(cluster.kinds())).collect()
}

/// Lets time pass, stopping wherever something changes by itself.
fn run_until(cluster: &mut SimCluster, end: Timestamp) {
    while let Some(due) = cluster.next_due().filter(|due| *due <= end) {
        cluster.settle(due);
    }
    cluster.settle(end);
}

#[test]
fn a_replica_set_of_five_becomes_available() {
    let mut cluster = cluster(json!([{"image": "*", "startUpSeconds": 3}]));
    create(&mut cluster, KindId::REPLICA_SET, replica_set(5, "web:1"), at(0));
    assert_eq!(
        status(&cluster),
        json!({"replicas": 5, "fullyLabeledReplicas": 5, "observedGeneration": 1,
            "terminatingReplicas": 0})
    );
    assert_eq!(cluster.next_due(), Some(at(3)));
    cluster.settle(at(3));
    assert_eq!(
        status(&cluster),
        json!({"replicas": 5, "fullyLabeledReplicas": 5, "readyReplicas": 5,
            "availableReplicas": 5, "observedGeneration": 1, "terminatingReplicas": 0})
    );
    assert_eq!(cluster.next_due(), None, "nothing is left to happen");
    assert_eq!(cluster.runnable(at(9_999)).count(), 0);
    let pod = &pods(&cluster)[0];
    assert_eq!(pod["status"]["phase"], "Running");
    assert_eq!(pod["spec"]["nodeName"], crate::NODE);
    assert_eq!(pod["metadata"]["ownerReferences"][0]["name"], "web");
}

#[test]
fn pods_of_one_template_share_one_spec_also_after_scaling() {
    let mut cluster = cluster(json!([]));
    create(&mut cluster, KindId::REPLICA_SET, replica_set(1, "web:1"), at(0));
    scale(&mut cluster, 2, at(1));
    cluster.settle(at(1));
    let specs: Vec<_> = cluster.list(KindId::POD, "default").map(|pod| &pod.spec).collect();
    assert_eq!(specs.len(), 2);
    assert!(std::sync::Arc::ptr_eq(specs[0], specs[1]));
}

#[test]
fn availability_waits_for_min_ready_seconds() {
    let mut cluster = cluster(json!([]));
    let mut body = replica_set(1, "web:1");
    body["spec"]["minReadySeconds"] = json!(10);
    create(&mut cluster, KindId::REPLICA_SET, body, at(0));
    run_until(&mut cluster, at(5));
    assert_eq!(status(&cluster)["readyReplicas"], 1);
    assert_eq!(status(&cluster).get("availableReplicas"), None);
    assert_eq!(cluster.next_due(), Some(at(11)), "ready at 1, available 10 later");
    run_until(&mut cluster, at(11));
    assert_eq!(status(&cluster)["availableReplicas"], 1);
}

#[test]
fn scaling_down_takes_what_is_not_ready_first() {
    let mut cluster = cluster(json!([{"image": "*", "startUpSeconds": 5}]));
    create(&mut cluster, KindId::REPLICA_SET, replica_set(2, "web:1"), at(0));
    run_until(&mut cluster, at(10));
    let old: Vec<Key> = cluster.list(KindId::POD, "default").map(|pod| pod.key()).collect();
    scale(&mut cluster, 4, at(20));
    cluster.settle(at(20));
    scale(&mut cluster, 2, at(21));
    run_until(&mut cluster, at(60));
    let left: Vec<Key> = cluster.list(KindId::POD, "default").map(|pod| pod.key()).collect();
    assert_eq!(left, old);
    assert_eq!(status(&cluster)["observedGeneration"], 3);
}

#[test]
fn bad_images_never_count_as_ready() {
    for behaviour in [
        json!({"image": "*", "neverReady": true}),
        json!({"image": "*", "pullError": true}),
        json!({"image": "*", "crash": {"afterSeconds": 0.5}}),
    ] {
        let mut cluster = cluster(json!([behaviour]));
        create(&mut cluster, KindId::REPLICA_SET, replica_set(2, "web:1"), at(0));
        run_until(&mut cluster, at(600));
        assert_eq!(status(&cluster)["replicas"], 2, "{behaviour}");
        assert_eq!(status(&cluster).get("readyReplicas"), None, "{behaviour}");
    }
}

#[test]
fn new_behaviours_are_for_new_pods() {
    let mut cluster = cluster(json!([]));
    create(&mut cluster, KindId::REPLICA_SET, replica_set(1, "web:1"), at(0));
    run_until(&mut cluster, at(5));
    let list = json!([{"image": "*", "neverReady": true}]);
    cluster.set_behaviours(serde_json::from_value(list).unwrap());
    scale(&mut cluster, 2, at(10));
    run_until(&mut cluster, at(60));
    assert_eq!(status(&cluster)["replicas"], 2);
    assert_eq!(status(&cluster)["readyReplicas"], 1, "the old pod is as good as before");
}

#[test]
fn a_readiness_gate_holds_the_pod_until_somebody_opens_it() {
    let mut cluster = cluster(json!([]));
    let mut body = replica_set(1, "web:1");
    body["spec"]["template"]["spec"]["readinessGates"] = json!([{"conditionType": "a/gate"}]);
    create(&mut cluster, KindId::REPLICA_SET, body, at(0));
    run_until(&mut cluster, at(30));
    assert_eq!(status(&cluster).get("readyReplicas"), None);
    let name = pods(&cluster)[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let patch = json!({"status": {"conditions": [{"type": "a/gate", "status": "True"}]}});
    let request = Request::merge(KindId::POD, "default", &name, patch).on(Subresource::Status);
    cluster.call(&request, at(40)).unwrap();
    run_until(&mut cluster, at(40));
    assert_eq!(status(&cluster)["readyReplicas"], 1);
    let conditions = pods(&cluster)[0]["status"]["conditions"].clone();
    let types: Vec<_> = conditions.as_array().unwrap().iter().map(|one| &one["type"]).collect();
    assert_eq!(types, ["PodScheduled", "Initialized", "ContainersReady", "Ready", "a/gate"]);
}

#[test]
fn a_pod_is_given_time_to_stop() {
    let mut cluster = cluster(json!([{"image": "*", "terminationSeconds": 7}]));
    create(&mut cluster, KindId::REPLICA_SET, replica_set(1, "web:1"), at(0));
    run_until(&mut cluster, at(5));
    scale(&mut cluster, 0, at(10));
    cluster.settle(at(10));
    let pod = &pods(&cluster)[0];
    assert_eq!(pod["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(status(&cluster)["replicas"], 0, "a pod on its way out does not count");
    assert_eq!(status(&cluster)["terminatingReplicas"], 1, "but it is told");
    assert_eq!(cluster.next_due(), Some(at(17)));
    cluster.settle(at(17));
    assert_eq!(pods(&cluster).len(), 0);
}

#[test]
fn pods_are_taken_in_and_let_go_by_their_labels() {
    let mut cluster = cluster(json!([]));
    let stray = json!({"metadata": {"name": "stray", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "web:1"}]}});
    create(&mut cluster, KindId::POD, stray, at(0));
    create(&mut cluster, KindId::REPLICA_SET, replica_set(1, "web:1"), at(0));
    run_until(&mut cluster, at(5));
    assert_eq!(pods(&cluster).len(), 1, "the stray pod is enough");
    let patch = json!({"metadata": {"labels": {"app": "other"}}});
    cluster.call(&Request::merge(KindId::POD, "default", "stray", patch), at(6)).unwrap();
    run_until(&mut cluster, at(10));
    let stray = cluster.get(KindId::POD, "default", "stray").unwrap();
    assert!(stray.meta.owners.is_empty(), "it was let go");
    assert_eq!(pods(&cluster).len(), 2, "and replaced");
}

#[test]
fn a_quota_is_told_in_a_condition_and_tried_again() {
    let mut cluster = cluster(json!([]));
    let quota = json!({"metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}}});
    create(&mut cluster, KindId::RESOURCE_QUOTA, quota, at(0));
    create(&mut cluster, KindId::REPLICA_SET, replica_set(2, "web:1"), at(0));
    let condition = &status(&cluster)["conditions"][0];
    assert_eq!(condition["type"], "ReplicaFailure");
    assert_eq!(condition["reason"], "FailedCreate");
    let message = condition["message"].as_str().unwrap();
    assert!(
        message.ends_with(
            "is forbidden: exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1"
        ),
        "{message}"
    );
    let delete = Request::new(Verb::Delete, KindId::RESOURCE_QUOTA, "default", "few");
    cluster.call(&delete, at(10)).unwrap();
    run_until(&mut cluster, at(60));
    assert_eq!(status(&cluster)["availableReplicas"], 2);
    assert_eq!(status(&cluster).get("conditions"), None, "the condition is taken back");
}

fn delete_replica_set(propagation: Propagation) -> SimCluster {
    let mut cluster = cluster(json!([]));
    create(&mut cluster, KindId::REPLICA_SET, replica_set(3, "web:1"), at(0));
    run_until(&mut cluster, at(5));
    let mut request = Request::new(Verb::Delete, KindId::REPLICA_SET, "default", "web");
    request.options = Options { propagation: Some(propagation), ..Options::default() };
    cluster.call(&request, at(10)).unwrap();
    cluster
}

#[test]
fn a_deletion_in_the_background_takes_the_pods_afterwards() {
    let mut cluster = delete_replica_set(Propagation::Background);
    assert!(cluster.get(KindId::REPLICA_SET, "default", "web").is_none());
    run_until(&mut cluster, at(10));
    assert_eq!(pods(&cluster).len(), 0);
}

#[test]
fn a_deletion_in_the_foreground_takes_the_pods_first() {
    let mut cluster = delete_replica_set(Propagation::Foreground);
    let waiting = cluster.get(KindId::REPLICA_SET, "default", "web").unwrap();
    assert_eq!(waiting.meta.finalizers, ["foregroundDeletion"]);
    run_until(&mut cluster, at(10));
    assert_eq!(pods(&cluster).len(), 0);
    assert!(cluster.get(KindId::REPLICA_SET, "default", "web").is_none());
    let last = cluster.last_write().unwrap();
    assert_eq!(last.after.kind, KindId::REPLICA_SET, "it went last");
}

#[test]
fn a_deletion_that_orphans_leaves_the_pods() {
    let mut cluster = delete_replica_set(Propagation::Orphan);
    run_until(&mut cluster, at(10));
    assert!(cluster.get(KindId::REPLICA_SET, "default", "web").is_none());
    let left = pods(&cluster);
    assert_eq!(left.len(), 3);
    assert!(left.iter().all(|pod| pod["metadata"].get("ownerReferences").is_none()));
}

#[test]
fn an_object_whose_owner_never_was_is_collected() {
    let mut cluster = cluster(json!([]));
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "nobody"});
    let lost = json!({"metadata": {"name": "lost", "ownerReferences": [owner]}});
    create(&mut cluster, KindId::CONFIG_MAP, lost, at(0));
    assert!(cluster.get(KindId::CONFIG_MAP, "default", "lost").is_none());
}

#[test]
fn owners_are_looked_for_where_their_reference_says() {
    let mut cluster = cluster(json!([]));
    let namespace = json!({"metadata": {"name": "other"}});
    create(&mut cluster, KindId::NAMESPACE, namespace, at(0));
    for namespace in ["default", "other"] {
        let owner = json!({"metadata": {"name": "owner"}});
        cluster.call(&Request::create(KindId::SECRET, namespace, owner), at(0)).unwrap();
    }
    let uid = |namespace: &str| {
        let owner = cluster.get(KindId::SECRET, namespace, "owner").unwrap();
        owner.meta.uid.to_string()
    };
    let (here, elsewhere) = (uid("default"), uid("other"));
    let node = cluster.get(KindId::NODE, "", crate::NODE).unwrap().meta.uid.to_string();
    let secret = |name: &str, uid: &str| {
        let (version, kind) = ("v1", "Secret");
        json!({"apiVersion": version, "kind": kind, "name": name, "uid": uid})
    };
    let cases = [
        ("beside it", vec![secret("owner", &here)], Some(1)),
        ("in another namespace", vec![secret("owner", &elsewhere)], None),
        ("under another name", vec![secret("other", &here)], None),
        ("one of two", vec![secret("owner", &here), secret("owner", "nobody")], Some(1)),
        (
            "outside of all namespaces",
            vec![json!({"apiVersion": "v1", "kind": "Node", "name": crate::NODE, "uid": node})],
            Some(1),
        ),
        (
            "of a kind that nobody knows",
            vec![json!({"apiVersion": "frob.dev/v1", "kind": "Frob", "name": "x", "uid": "x"})],
            Some(1),
        ),
    ];
    for (what, owners, expected) in cases {
        let body = json!({"metadata": {"name": "child", "ownerReferences": owners}});
        create(&mut cluster, KindId::CONFIG_MAP, body, at(1));
        let child = cluster.get(KindId::CONFIG_MAP, "default", "child");
        assert_eq!(child.map(|child| child.meta.owners.len()), expected, "{what}");
        let delete = Request::new(Verb::Delete, KindId::CONFIG_MAP, "default", "child");
        cluster.call(&delete, at(1)).ok();
    }
    let owners = [secret("owner", &here)];
    let body = json!({"metadata": {"name": "wide", "ownerReferences": owners}});
    create(&mut cluster, KindId::NAMESPACE, body, at(1));
    let delete = Request::new(Verb::Delete, KindId::SECRET, "default", "owner");
    cluster.call(&delete, at(2)).unwrap();
    cluster.settle(at(2));
    let wide = cluster.get(KindId::NAMESPACE, "", "wide").unwrap();
    assert!(wide.meta.deleting.is_none(), "nobody knows in which namespace its owner would be");
}

#[test]
fn a_deleted_namespace_empties_itself_and_goes() {
    let mut cluster = cluster(json!([]));
    create(&mut cluster, KindId::NAMESPACE, json!({"metadata": {"name": "shop"}}), at(0));
    let config_map = json!({"metadata": {"name": "c"}});
    for (kind, body) in
        [(KindId::REPLICA_SET, replica_set(3, "web:1")), (KindId::CONFIG_MAP, config_map)]
    {
        cluster.call(&Request::create(kind, "shop", body), at(0)).unwrap();
    }
    run_until(&mut cluster, at(5));
    assert_eq!(cluster.list(KindId::POD, "shop").count(), 3);
    let delete = Request::new(Verb::Delete, KindId::NAMESPACE, "", "shop");
    cluster.call(&delete, at(6)).unwrap();
    let namespace = cluster.get(KindId::NAMESPACE, "", "shop").unwrap();
    assert_eq!(namespace.status["phase"], "Terminating");
    let refusal = cluster
        .call(
            &Request::create(KindId::CONFIG_MAP, "shop", json!({"metadata": {"name": "d"}})),
            at(6),
        )
        .unwrap_err();
    assert_eq!((refusal.code, refusal.reason), (403, "Forbidden"));
    run_until(&mut cluster, at(40));
    assert!(cluster.get(KindId::NAMESPACE, "", "shop").is_none());
    assert_eq!(cluster.list(KindId::POD, "").count(), 0);
}

#[test]
fn one_step_handles_one_object() {
    let mut cluster = cluster(json!([]));
    let request = Request::create(KindId::REPLICA_SET, "default", replica_set(3, "web:1"));
    cluster.call(&request, at(0)).unwrap();
    assert_eq!(cluster.runnable(at(0)).collect::<Vec<_>>(), [Actor::ReplicaSets]);
    assert!(cluster.step(Actor::ReplicaSets, at(0)));
    let before = cluster.version();
    assert!(cluster.step(Actor::Pods, at(0)));
    assert_eq!(cluster.version(), before + 1, "one pod of three was started");
    assert!(!cluster.step(Actor::Garbage, at(0)), "nothing to collect");
}

#[test]
fn two_equal_runs_write_the_same() {
    let run = || {
        let mut cluster = cluster(json!([{"image": "*", "startUpSeconds": 3}]));
        create(&mut cluster, KindId::REPLICA_SET, replica_set(5, "web:1"), at(0));
        run_until(&mut cluster, at(9));
        scale(&mut cluster, 2, at(10));
        run_until(&mut cluster, at(60));
        let writes: Vec<_> = cluster.writes_after(0).cloned().collect();
        writes
    };
    assert_eq!(run(), run());
}

#[test]
fn a_deployment_moves_its_pods_to_a_new_template_within_its_limits() {
    let mut cluster = cluster(json!([{"image": "*", "startUpSeconds": 3}]));
    let mut body = replica_set(4, "web:1");
    body["spec"]["strategy"] = json!({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
    create(&mut cluster, KindId::DEPLOYMENT, body, at(0));
    run_until(&mut cluster, at(3));
    let status = |cluster: &SimCluster| {
        Value::clone(&cluster.get(KindId::DEPLOYMENT, "default", "web").unwrap().status)
    };
    assert_eq!(
        status(&cluster),
        json!({"observedGeneration": 1, "replicas": 4, "updatedReplicas": 4, "readyReplicas": 4,
            "availableReplicas": 4})
    );
    let patch = json!({"spec": {"template": {"spec": {
        "containers": [{"name": "c", "image": "web:2"}]}}}});
    cluster.call(&Request::merge(KindId::DEPLOYMENT, "default", "web", patch), at(4)).unwrap();
    cluster.settle(at(4));
    assert_eq!(pods(&cluster).len(), 5, "one more than wanted, not twice as many");
    run_until(&mut cluster, at(60));
    assert_eq!(status(&cluster)["updatedReplicas"], 4);
    let sizes = cluster.list(KindId::REPLICA_SET, "default").map(|set| &set.spec["replicas"]);
    let mut sizes: Vec<i64> = sizes.map(|size| size.as_i64().unwrap()).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [0, 4]);
    let none = json!({"spec": {"replicas": 0}});
    cluster.call(&Request::merge(KindId::DEPLOYMENT, "default", "web", none), at(61)).unwrap();
    run_until(&mut cluster, at(120));
    assert_eq!(pods(&cluster).len(), 0);
    assert_eq!(cluster.runnable(at(9_999)).count(), 0, "nothing is left to do");
}
