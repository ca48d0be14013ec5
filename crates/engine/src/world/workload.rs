//! What does a decision need of the workload that a Rollout refers to? Its size; template and selector
//! are already in the Rollout's view.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::decision::ObjectRef;
use crate::uid::Uid;

/// A Deployment, ReplicaSet or PodTemplate as decisions see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadView {
    /// Which object.
    pub object: ObjectRef,
    /// Identity.
    pub uid: Uid,
    /// `resourceVersion`.
    pub version: u64,
    /// `spec.replicas`; 1 where nothing is said.
    pub replicas: i32,
}

impl WorkloadView {
    /// The view of an object as the index keeps it.
    pub fn read(object: ObjectRef, value: &Value) -> Self {
        let meta = &value["metadata"];
        let version = meta["resourceVersion"].as_str().and_then(|text| text.parse().ok());
        let replicas = value["spec"]["replicas"].as_i64().unwrap_or(1);
        WorkloadView {
            object,
            uid: meta["uid"].as_str().map_or_else(Uid::default, Uid::parse),
            version: version.unwrap_or(0),
            replicas: i32::try_from(replicas).unwrap_or(i32::MAX),
        }
    }
}
