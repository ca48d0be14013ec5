//! What a StatefulSet does with its pods and claims, in virtual time.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::SimCluster;
use crate::behave::Behaviours;
use crate::kinds::KindId;
use crate::request::{Request, Verb};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

/// A cluster with one set; every pod takes three seconds to start and one to stop.
fn cluster(change: Value) -> SimCluster {
    let behaviours = json!([{"image": "*", "startUpSeconds": 3, "terminationSeconds": 1}]);
    let behaviours: Behaviours = serde_json::from_value(behaviours).unwrap();
    let mut cluster = SimCluster::new(behaviours, at(0));
    let set = json!({
        "metadata": {"name": "db"},
        "spec": {
            "replicas": 3, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
            "template": {
                "metadata": {"labels": {"app": "db"}},
                "spec": {"containers": [{"name": "c", "image": "db:1"}]},
            },
            "volumeClaimTemplates": [{
                "metadata": {"name": "data"},
                "spec": {"resources": {"requests": {"storage": "1Gi"}}},
            }],
        },
    });
    let set = crate::patch::merged(&set, change);
    let request = Request::create(KindId::STATEFUL_SET, "default", set);
    cluster.call(&request, at(0)).unwrap();
    cluster.settle(at(0));
    cluster
}

fn patch(cluster: &mut SimCluster, spec: Value, now: Timestamp) {
    let request = Request::merge(KindId::STATEFUL_SET, "default", "db", json!({ "spec": spec }));
    cluster.call(&request, now).unwrap();
    cluster.settle(now);
}

fn with_image(image: &str) -> Value {
    json!({"template": {"spec": {"containers": [{"name": "c", "image": image}]}}})
}

/// Pods that are there and not on their way out, with their image.
fn pods(cluster: &SimCluster) -> Vec<String> {
    let stays = cluster.list(KindId::POD, "default").filter(|pod| pod.meta.deleting.is_none());
    stays
        .map(|pod| {
            let image = pod.spec["containers"][0]["image"].as_str().unwrap_or_default();
            format!("{} {image}", pod.meta.name)
        })
        .collect()
}

fn claims(cluster: &SimCluster) -> Vec<String> {
    let claims = cluster.list(KindId::PERSISTENT_VOLUME_CLAIM, "default");
    claims.map(|claim| claim.meta.name.to_string()).collect()
}

fn count(cluster: &SimCluster, field: &str) -> Value {
    cluster.get(KindId::STATEFUL_SET, "default", "db").unwrap().status[field].clone()
}

#[test]
fn pods_start_in_order_each_with_its_own_claim() {
    let mut cluster = cluster(json!({}));
    assert_eq!(pods(&cluster), ["db-0 db:1"], "the second waits for the first");
    cluster.settle(at(3));
    assert_eq!(pods(&cluster), ["db-0 db:1", "db-1 db:1"]);
    cluster.settle(at(6));
    cluster.settle(at(9));
    assert_eq!(claims(&cluster), ["data-db-0", "data-db-1", "data-db-2"]);
    assert_eq!(count(&cluster, "readyReplicas"), 3);
    assert_eq!(cluster.next_due(), None, "nothing is left to happen");
    let pod = cluster.get(KindId::POD, "default", "db-1").unwrap();
    let volume = json!({"name": "data", "persistentVolumeClaim": {"claimName": "data-db-1"}});
    assert_eq!(pod.spec["volumes"][0], volume);
    assert_eq!(pod.spec["hostname"], "db-1");
}

#[test]
fn an_update_replaces_one_pod_at_a_time_from_the_last() {
    let mut cluster = cluster(json!({"spec": {"podManagementPolicy": "Parallel"}}));
    cluster.settle(at(3));
    patch(&mut cluster, with_image("db:2"), at(10));
    let steps: [(i64, &[&str]); 4] = [
        (10, &["db-0 db:1", "db-1 db:1"]),
        (11, &["db-0 db:1", "db-1 db:1", "db-2 db:2"]),
        (14, &["db-0 db:1", "db-2 db:2"]),
        (15, &["db-0 db:1", "db-1 db:2", "db-2 db:2"]),
    ];
    for (second, expected) in steps {
        cluster.settle(at(second));
        assert_eq!(pods(&cluster), expected, "after {second} s");
    }
    for second in [18, 19, 22] {
        cluster.settle(at(second));
    }
    assert_eq!(pods(&cluster), ["db-0 db:2", "db-1 db:2", "db-2 db:2"]);
    assert_eq!(count(&cluster, "currentRevision"), count(&cluster, "updateRevision"));
}

#[test]
fn a_pod_that_never_starts_holds_up_an_ordered_update_and_no_other() {
    for (policy, expected) in [("OrderedReady", "db-0 db:1"), ("Parallel", "db-0 db:2")] {
        let mut cluster = cluster(json!({"spec": {"replicas": 1, "podManagementPolicy": policy}}));
        patch(&mut cluster, with_image("db:2"), at(1));
        cluster.settle(at(2));
        assert_eq!(pods(&cluster), [expected], "{policy}");
    }
}

#[test]
fn a_set_that_shrinks_loses_its_last_pods_and_keeps_their_claims() {
    let mut cluster = cluster(json!({"spec": {"podManagementPolicy": "Parallel"}}));
    cluster.settle(at(3));
    patch(&mut cluster, json!({"replicas": 0}), at(10));
    cluster.settle(at(11));
    assert_eq!(pods(&cluster), Vec::<String>::new());
    assert_eq!(claims(&cluster).len(), 3);
    assert_eq!(count(&cluster, "replicas"), 0);
    patch(&mut cluster, json!({"replicas": 1}), at(20));
    assert_eq!(pods(&cluster), ["db-0 db:1"], "under its old name");
}

#[test]
fn claims_go_with_the_set_only_if_its_policy_says_so() {
    for (policy, left) in [("Delete", 0), ("Retain", 3)] {
        let mut cluster = cluster(json!({"spec": {"podManagementPolicy": "Parallel"}}));
        let retention = json!({"whenDeleted": policy, "whenScaled": "Retain"});
        patch(&mut cluster, json!({"persistentVolumeClaimRetentionPolicy": retention}), at(5));
        let delete = Request::new(Verb::Delete, KindId::STATEFUL_SET, "default", "db");
        cluster.call(&delete, at(6)).unwrap();
        for second in 6..9 {
            cluster.settle(at(second));
        }
        assert_eq!(pods(&cluster), Vec::<String>::new(), "{policy}");
        assert_eq!(claims(&cluster).len(), left, "{policy}");
    }
}

#[test]
fn pods_without_an_owner_are_taken_in() {
    let mut cluster = cluster(json!({"spec": {"replicas": 1}}));
    cluster.settle(at(3));
    let uid = cluster.get(KindId::POD, "default", "db-0").unwrap().meta.uid.clone();
    let orphan = json!({"metadata": {"ownerReferences": null}});
    cluster.call(&Request::merge(KindId::POD, "default", "db-0", orphan), at(4)).unwrap();
    cluster.settle(at(4));
    let pod = cluster.get(KindId::POD, "default", "db-0").unwrap();
    assert_eq!(pod.meta.uid, uid, "the same pod");
    assert_eq!(pod.controller().map(|owner| &*owner.kind), Some("StatefulSet"));
}
