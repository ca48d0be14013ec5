//! The one node all pods run on: there from the start, and alive.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

/// Its name.
pub const NODE: &str = "real-node";

/// The node controller evicts the pods of a node that is silent for longer than 50 s.
const BEAT_EVERY: Duration = Duration::from_secs(15);

/// Creates the node and reports it ready.
pub async fn register(client: &Client) -> Result<(), kube::Error> {
    let nodes: Api<Node> = Api::all(client.clone());
    let mut node = Node::default();
    node.metadata.name = Some(NODE.to_owned());
    node.metadata.labels = Some([("kubernetes.io/hostname".to_owned(), NODE.to_owned())].into());
    match nodes.create(&PostParams::default(), &node).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => {}
        created => drop(created?),
    }
    beat(&nodes).await
}

/// Reports the node ready again and again.
pub async fn keep_alive(client: Client) {
    let nodes: Api<Node> = Api::all(client);
    loop {
        tokio::time::sleep(BEAT_EVERY).await;
        if let Err(error) = beat(&nodes).await {
            eprintln!("kubelet: node {NODE}: {error}");
        }
    }
}

async fn beat(nodes: &Api<Node>) -> Result<(), kube::Error> {
    let patch = Patch::Strategic(status(Timestamp::now()));
    nodes.patch_status(NODE, &PatchParams::default(), &patch).await.map(drop)
}

fn status(now: Timestamp) -> Value {
    let room = json!({ "cpu": "10000", "memory": "10000Gi", "pods": "100000" });
    json!({ "status": {
        "capacity": room,
        "allocatable": room,
        "conditions": [{
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "kubelet without containers",
            "lastHeartbeatTime": now,
        }],
    } })
}
