//! What stands in a namespace, to be compared before and after, and who holds the Lease.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use gradus_api::names;
use k8s_openapi::api::{apps::v1::ReplicaSet, coordination::v1::Lease, core::v1::Pod};
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use thiserror::Error;

use crate::{Failure, real::resource};

const LEASE: &str = "argo-rollouts-controller-lock";
const LEASE_NAMESPACE: &str = "argo-rollouts";
const LOOK_EVERY: Duration = Duration::from_millis(50);

#[derive(Debug, Error)]
pub enum SeenError {
    #[error("expected {what} within {} s, found {found}", within.as_secs())]
    NotReached { what: String, within: Duration, found: Value },
    #[error("{0}: expected everything to stay as it was, found {1}")]
    Changed(&'static str, String),
    #[error("{0}")]
    Other(String),
}

/// What must stay: the pods by uid and restarts, the sizes of ReplicaSets, the course of Rollouts.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    pub pods: BTreeMap<String, i32>,
    pub sets: BTreeMap<String, i32>,
    pub rollouts: BTreeMap<String, Value>,
}

impl Standing {
    /// How things stand in a namespace.
    pub async fn of(client: &Client, namespace: &str) -> Result<Self, Failure> {
        let all = ListParams::default();
        let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
        let pods = pods.list(&all).await?.into_iter().map(|pod| {
            let containers = pod.status.and_then(|status| status.container_statuses);
            let restarts = containers.iter().flatten().map(|one| one.restart_count).sum();
            (pod.metadata.uid.unwrap_or_default(), restarts)
        });
        let sets: Api<ReplicaSet> = Api::namespaced(client.clone(), namespace);
        let sets = sets.list(&all).await?.into_iter().map(|set| {
            let size = set.spec.replicas.unwrap_or(1);
            (set.metadata.uid.unwrap_or_default(), size)
        });
        let (pods, sets) = (pods.collect(), sets.collect());
        let rollouts = rollouts(client, namespace).list(&all).await?.into_iter();
        let rollouts = rollouts.map(|one| {
            let status = &one.data["status"];
            let course = json!({
                "phase": status["phase"], "step": status["currentStepIndex"],
                "pauses": status["pauseConditions"], "abort": status["abort"],
                "new": status["currentPodHash"], "stable": status["stableRS"],
                "blueGreen": status["blueGreen"],
            });
            (one.metadata.name.unwrap_or_default(), course)
        });
        Ok(Self { pods, sets, rollouts: rollouts.collect() })
    }

    /// An error that names the difference, if there is one.
    pub fn is_kept(&self, when: &'static str, now: &Self) -> Result<(), SeenError> {
        let part = |name: &str, was: String, is: String| {
            (was != is).then(|| format!("{name} {is} instead of {was}"))
        };
        let found: Vec<String> = [
            part("pods", format!("{:?}", self.pods), format!("{:?}", now.pods)),
            part("ReplicaSets", format!("{:?}", self.sets), format!("{:?}", now.sets)),
            part("Rollouts", format!("{:?}", self.rollouts), format!("{:?}", now.rollouts)),
        ]
        .into_iter()
        .flatten()
        .collect();
        if found.is_empty() { Ok(()) } else { Err(SeenError::Changed(when, found.join("; "))) }
    }
}

/// The Rollouts of a namespace.
pub fn rollouts(client: &Client, namespace: &str) -> Api<DynamicObject> {
    let kind = resource(names::API_VERSION, names::kind::ROLLOUT);
    Api::namespaced_with(client.clone(), namespace, &kind)
}

/// Waits until the status of a Rollout is as wanted. The server may be away meanwhile.
pub async fn reached(
    client: &Client,
    (namespace, name): (&str, &str),
    (what, within): (&str, Duration),
    is_wanted: impl Fn(&Value) -> bool,
) -> Result<(), Failure> {
    let (api, began) = (rollouts(client, namespace), Instant::now());
    let mut found = Value::Null;
    while began.elapsed() < within {
        if let Ok(rollout) = api.get(name).await {
            found = rollout.data["status"].clone();
            if is_wanted(&found) {
                return Ok(());
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let what = format!("{namespace}/{name}: {what}");
    Err(SeenError::NotReached { what, within, found }.into())
}

/// Gives a Rollout another image.
pub async fn set_image(
    client: &Client,
    namespace: &str,
    name: &str,
    image: &str,
) -> Result<(), Failure> {
    let containers = json!([{ "name": "web", "image": image }]);
    let patch = json!({ "spec": { "template": { "spec": { "containers": containers } } } });
    let api = rollouts(client, namespace);
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

/// Who holds the Lease; nothing where nobody does.
pub async fn holder(client: &Client) -> Result<String, Failure> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), LEASE_NAMESPACE);
    let lease = leases.get_opt(LEASE).await?;
    let spec = lease.and_then(|lease| lease.spec);
    Ok(spec.and_then(|spec| spec.holder_identity).unwrap_or_default())
}

/// Gives the Lease to somebody.
pub async fn steal(client: &Client, holder: &str) -> Result<(), Failure> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), LEASE_NAMESPACE);
    let patch = json!({ "spec": { "holderIdentity": holder } });
    leases.patch(LEASE, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

/// Waits until somebody holds the Lease who is neither nobody nor `not`; says who, and after how long.
pub async fn next_holder(
    client: &Client,
    not: &str,
    within: Duration,
) -> Result<(String, Duration), Failure> {
    let began = Instant::now();
    while began.elapsed() < within {
        let holder = holder(client).await?;
        if !holder.is_empty() && holder != not {
            return Ok((holder, began.elapsed()));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let (what, found) = (format!("a holder other than {not:?}"), json!(holder(client).await?));
    Err(SeenError::NotReached { what, within, found }.into())
}

/// A Rollout with these steps, or of the blue-green strategy.
pub fn rollout(name: &str, strategy: &Value) -> Value {
    let labels = json!({ "app": name });
    json!({
        "apiVersion": names::API_VERSION, "kind": names::kind::ROLLOUT, "metadata": { "name": name },
        "spec": {
            "replicas": 4, "selector": { "matchLabels": labels }, "strategy": strategy,
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "web", "image": "example.com/web:1" }] },
            },
        },
    })
}
