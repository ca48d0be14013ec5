//! A live run in which somebody writes in our name what we must never write is told.

use std::path::Path;

use gradus_simkube::request::{Request, Subresource};
use serde_json::json;

use super::*;
use crate::scenario::Scenario;

/// The first scenario, changed.
fn scenario(change: impl FnOnce(&mut Scenario)) -> Prepared {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/canary_pause_promote.yaml");
    let mut scenario = crate::load(&path).unwrap();
    change(&mut scenario);
    Prepared::new(scenario).unwrap()
}

impl Lab {
    /// Makes a write in the controller's name.
    fn forge(&self, mut request: Request) {
        request.options.user = CONTROLLER.into();
        self.server.with(|cluster, now| cluster.call(&request, now)).unwrap();
    }

    fn forge_status(&self, status: Value) {
        let (kind, patch) = (self.rollout.kind, json!({ "status": status }));
        self.forge(Request::merge(kind, NAMESPACE, "web", patch).on(Subresource::Status));
    }

    fn first_set(&self) -> String {
        let name = |set: &Arc<Object>| set.meta.name.to_string();
        self.server
            .with(|cluster, _| cluster.list(KindId::REPLICA_SET, NAMESPACE).next().map(name))
            .unwrap()
    }
}

async fn found(prepared: &Prepared, forge: impl AsyncFnOnce(&Lab)) -> String {
    let told = live(prepared, async |lab| {
        lab.until(|sight| sight.status["phase"] == "Healthy").await.unwrap();
        forge(lab).await;
        lab.tell(prepared).await
    });
    told.await.unwrap_err().to_string()
}

#[tokio::test(start_paused = true)]
async fn a_resize_that_is_too_large_is_told() {
    let prepared = scenario(|_| {});
    let found = found(&prepared, async |lab| {
        let patch = json!({"spec": {"replicas": 9}});
        lab.forge(Request::merge(KindId::REPLICA_SET, NAMESPACE, &lab.first_set(), patch));
    });
    let found = found.await;
    assert!(found.starts_with("I-2 violated by our write"), "{found}");
    assert!(found.ends_with("5 → 9 makes 9 pods, ceiling 6"), "{found}");
}

/// Pauses are judged by the time of the write, not by when somebody looks.
#[tokio::test(start_paused = true)]
async fn a_pause_that_ends_a_moment_too_soon_is_told() {
    let passes = async |early: Duration| {
        let prepared = scenario(|_| {});
        live(&prepared, async |lab| {
            lab.until(|sight| sight.status["phase"] == "Healthy").await.unwrap();
            lab.act(&Action::SetImage("example.com/web:2".to_owned())).unwrap();
            lab.until(|sight| sight.status["phase"] == "Paused").await.unwrap();
            let began = lab.server.with(|cluster, _| {
                let status = &cluster.at(&lab.rollout).unwrap().status;
                status["pauseConditions"][0]["startTime"].as_str().unwrap().parse::<Timestamp>()
            });
            // The controller is gone: nobody but who forges ends the pause.
            lab.controller.take().unwrap().abort();
            let ends = lab.clock.instant(began.unwrap() + SignedDuration::from_mins(30));
            tokio::time::sleep_until(ends - early).await;
            lab.forge_status(json!({"currentStepIndex": 2, "pauseConditions": null}));
            lab.pass(MOMENT).await;
            lab.witness.violation().map(|found| found.invariant)
        })
        .await
    };
    assert_eq!(passes(Duration::from_millis(1)).await, Some("I-7"));
    assert_eq!(passes(Duration::ZERO).await, None);
}

#[tokio::test(start_paused = true)]
async fn pods_that_are_left_at_the_end_are_told() {
    // The scenario's own words do not speak against them.
    let prepared = scenario(|scenario| scenario.end.sizes.extend([(0, 2)]));
    let found = found(&prepared, async |lab| {
        let owner = json!({"metadata": {"name": "owner"}});
        lab.forge(Request::create(KindId::CONFIG_MAP, NAMESPACE, owner));
        let uid = lab.server.with(|cluster, _| {
            let owner = cluster.get(KindId::CONFIG_MAP, NAMESPACE, "owner").unwrap();
            owner.meta.uid.to_string()
        });
        let labels = json!({"app": "other", "rollouts-pod-template-hash": "other"});
        let set = json!({
            "metadata": {"name": "other", "labels": labels, "ownerReferences": [{
                "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid,
                "controller": true,
            }]},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "other", "image": "other:1"}]},
                },
            },
        });
        lab.forge(Request::create(KindId::REPLICA_SET, NAMESPACE, set));
    });
    let expected = "I-13 violated by the end of other: an old ReplicaSet is left at 2";
    assert_eq!(found.await, expected);
}
