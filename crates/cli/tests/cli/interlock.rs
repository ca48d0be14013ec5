//! `gradus explain` on a rollout that the interlock holds.

use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::plugin::Plugin;
use crate::program::{folder, gradus};

/// A blue-green rollout whose new revision failed its analysis; then somebody took the hash out of
/// the active Service, which is how a first deploy looks.
fn objects(uid: &str) -> Vec<Value> {
    let template = |image: &str| {
        json!({ "metadata": { "labels": { "app": "shop" } },
            "spec": { "containers": [{ "name": "shop", "image": image }] } })
    };
    let set = |hash: &str, image: &str, revision: &str, created: &str| {
        let owner = json!({ "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
            "name": "shop", "uid": uid, "controller": true });
        let notes = json!({ "rollout.argoproj.io/revision": revision,
            "rollout.argoproj.io/desired-replicas": "2" });
        json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": { "name": format!("shop-{hash}"), "namespace": "default", "uid": hash,
                "generation": 1, "creationTimestamp": created, "annotations": notes,
                "labels": { "app": "shop", "rollouts-pod-template-hash": hash },
                "ownerReferences": [owner] },
            "spec": { "replicas": 2, "template": template(image),
                "selector": { "matchLabels": { "app": "shop" } } },
            "status": { "replicas": 2, "readyReplicas": 2, "availableReplicas": 2,
                "observedGeneration": 1 } })
    };
    let analysis = json!({ "templates": [{ "templateName": "smoke" }] });
    let slot = json!({ "name": "shop-smoke", "status": "Running" });
    let held = json!({ "type": "Held", "status": "True", "reason": "InterlockI8",
        "message": "held by invariant I-8: …", "lastUpdateTime": "2026-03-09T11:00:00Z",
        "lastTransitionTime": "2026-03-09T11:00:00Z" });
    let rollout = json!({ "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
        "metadata": { "name": "shop", "namespace": "default", "uid": uid, "generation": 2,
            "annotations": { "rollout.argoproj.io/revision": "2" } },
        "spec": { "replicas": 2, "selector": { "matchLabels": { "app": "shop" } },
            "template": template("shop:2"),
            "strategy": { "blueGreen": { "activeService": "shop",
                "prePromotionAnalysis": analysis } } },
        "status": { "phase": "Progressing", "observedGeneration": "2", "stableRS": "aaa",
            "currentPodHash": "bbb", "replicas": 4, "updatedReplicas": 2,
            "blueGreen": { "activeSelector": "aaa", "prePromotionAnalysisRunStatus": slot },
            "conditions": [held] } });
    let metadata = |name: &str| json!({ "name": name, "namespace": "default", "uid": name });
    let owner = json!({ "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "shop",
        "uid": uid, "controller": true });
    let mut run = json!({ "apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisRun",
        "metadata": metadata("shop-smoke"), "spec": { "metrics": [] },
        "status": { "phase": "Failed" } });
    run["metadata"]["ownerReferences"] = json!([owner]);
    run["metadata"]["labels"] = json!({ "rollouts-pod-template-hash": "bbb" });
    vec![
        rollout,
        set("aaa", "shop:1", "1", "2026-03-08T12:00:00Z"),
        set("bbb", "shop:2", "2", "2026-03-09T10:00:00Z"),
        run,
        json!({ "apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisTemplate",
            "metadata": metadata("smoke"), "spec": { "metrics": [] } }),
        json!({ "apiVersion": "v1", "kind": "Service", "metadata": metadata("shop"),
            "spec": { "selector": { "app": "shop" }, "ports": [{ "port": 80 }] } }),
    ]
}

#[test]
fn what_the_interlock_holds_is_explained_with_its_invariant_and_not_promised() {
    let folder = folder("held-by-the-interlock");
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects("u-shop") });
    std::fs::write(folder.join("shop.yaml"), list.to_string()).unwrap();
    let folder = folder.to_str().unwrap();
    let now = "2026-03-09T12:00:00Z";
    let told = gradus(&["explain", "rollout", "shop", "--from-files", folder, "--at", now]);
    assert_eq!(told.code, Some(0), "{}{}", told.stdout, told.stderr);
    for expected in [
        "condition Held says InterlockI8",
        "invariant I-8 holds Service default/shop: Service shop would select revision bbb, which \
         shop-smoke has not found good (Failed)",
        "kubectl argo rollouts abort shop -n default",
    ] {
        assert!(told.stdout.contains(expected), "{expected:?} in:\n{}", told.stdout);
    }
    let promised = "it would patch Service default/shop";
    assert!(!told.stdout.contains(promised), "{promised:?} in:\n{}", told.stdout);
}

/// The same on the embedded cluster, whose own controllers run the pods.
#[test]
fn what_the_interlock_holds_is_explained_on_a_cluster() {
    let folder = folder("held-on-a-cluster");
    let cluster = Cluster::start(0, &folder);
    cluster.store(&objects("")[0]);
    let uid = cluster.rollout("shop")["metadata"]["uid"].as_str().unwrap().to_owned();
    objects(&uid).iter().skip(1).for_each(|object| cluster.store(object));
    let plugin = Plugin::install("held", &cluster.kubeconfig);
    let said = plugin.says("explain rollout shop");
    for expected in [
        "condition Held says InterlockI8",
        "invariant I-8 holds ",
        "kubectl argo rollouts abort shop -n default",
    ] {
        assert!(said.contains(expected), "{expected:?} in:\n{said}");
    }
}
