//! Do pods live as their images behave, before anything is built on them?

use std::time::Duration;

use gradus_simkube::behave::{Behaviour, Behaviours};
use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Pod};
use kube::{
    Api,
    api::{DeleteParams, ListParams, PostParams},
    runtime::{conditions, wait::await_condition},
};
use serde_json::json;
use thiserror::Error;

use super::deeds;
use crate::{Failure, plane::User, stage::Stage};

const NAMESPACE: &str = "ground";

/// Longer than any of these pods takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Error)]
enum GroundError {
    #[error("ReplicaSet {name}: {what} did not come within {} s", PATIENCE.as_secs())]
    Impatient { name: &'static str, what: &'static str },
    #[error("ReplicaSet bad: {0} pods are ready, expected none")]
    ReadyWithoutImage(i32),
}

/// Good images become available, bad ones never, and deleted pods go.
pub async fn pods_live_as_they_behave(stage: &Stage) -> Result<(), Failure> {
    let client = stage.plane.client(User::Person).await?;
    deeds::create_namespace(&client, NAMESPACE).await?;
    let bad = Behaviour { image: "bad".to_owned(), pull_error: true, ..Behaviour::default() };
    stage.kubelet.behave(NAMESPACE, Behaviours::new(vec![bad]));
    let replica_sets: Api<ReplicaSet> = Api::namespaced(client.clone(), NAMESPACE);
    for name in ["good", "bad"] {
        replica_sets.create(&PostParams::default(), &replica_set(name)).await?;
    }
    let has_three = |set: Option<&ReplicaSet>| {
        set.and_then(|set| set.status.as_ref()?.available_replicas) == Some(3)
    };
    within("good", "3 available pods", await_condition(replica_sets.clone(), "good", has_three))
        .await?;
    let status = replica_sets.get("bad").await?.status;
    let ready = status.and_then(|status| status.ready_replicas).unwrap_or(0);
    if ready != 0 {
        return Err(GroundError::ReadyWithoutImage(ready).into());
    }
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let labelled = ListParams::default().labels("app=good");
    let mut leaving = Vec::new();
    for pod in pods.list(&labelled).await? {
        leaving.push((pod.metadata.name.unwrap_or_default(), pod.metadata.uid.unwrap_or_default()));
    }
    replica_sets.delete("good", &DeleteParams::background()).await?;
    for (name, uid) in &leaving {
        let gone = await_condition(pods.clone(), name, conditions::is_deleted(uid));
        within("good", "the removal of its pods", gone).await?;
    }
    Ok(deeds::remove_namespace(&client, NAMESPACE).await?)
}

fn replica_set(name: &str) -> ReplicaSet {
    let labels = json!({ "app": name });
    let object = json!({
        "metadata": { "name": name },
        "spec": {
            "replicas": 3,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "main", "image": name }] },
            },
        },
    });
    serde_json::from_value(object).expect("a ReplicaSet has this form")
}

async fn within<T, E: Into<Failure>>(
    name: &'static str,
    what: &'static str,
    change: impl Future<Output = Result<T, E>>,
) -> Result<T, Failure> {
    match tokio::time::timeout(PATIENCE, change).await {
        Ok(result) => result.map_err(Into::into),
        Err(_) => Err(GroundError::Impatient { name, what }.into()),
    }
}
