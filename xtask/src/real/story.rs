//! What is played on the control plane, and what does it leave behind?

use gradus_simkube::behave::Behaviours;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, api::PostParams};
use serde_json::Value;

use crate::{Failure, plane::User, stage::Stage};

/// One scenario, ready to be played in any namespace.
pub struct Story {
    pub name: String,
    /// How its images behave.
    pub behaviours: Behaviours,
}

/// Every scenario of the repository.
pub fn all() -> Result<Vec<Story>, Failure> {
    Ok(Vec::new())
}

impl Story {
    /// Plays it in a new namespace and returns how everything stands at the end, without names and
    /// times that differ between two runs.
    pub async fn play(&self, stage: &Stage, namespace: &str) -> Result<Value, Failure> {
        let client = stage.plane.client(User::Person).await?;
        create(&client, namespace).await?;
        stage.kubelet.behave(namespace, self.behaviours.clone());
        Ok(Value::Null)
    }

    /// A namespace of its own; `run` tells several runs of one story apart.
    pub fn namespace(&self, run: &str) -> String {
        let name = self.name.replace('_', "-");
        if run.is_empty() { name } else { format!("{name}-{run}") }
    }
}

/// Creates a namespace.
pub async fn create(client: &Client, namespace: &str) -> Result<(), kube::Error> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let mut object = Namespace::default();
    object.metadata.name = Some(namespace.to_owned());
    namespaces.create(&PostParams::default(), &object).await.map(drop)
}

/// Begins the removal of a namespace with everything in it.
pub async fn remove(client: &Client, namespace: &str) -> Result<(), kube::Error> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces.delete(namespace, &Default::default()).await.map(drop)
}
