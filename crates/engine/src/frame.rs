//! What does one object look like as it arrives from a watch, before it becomes a slim view?

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use crate::uid::Uid;

/// Labels or annotations by name.
pub type TextMap = BTreeMap<String, String>;

/// One object of a watch, a list or a read, with `managedFields` never kept.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Frame {
    /// Its metadata.
    #[serde(rename = "metadata")]
    pub meta: Meta,
    /// Its `spec`, as sent.
    pub spec: Arc<Value>,
    /// Its `status`, as sent.
    pub status: Arc<Value>,
}

impl Frame {
    /// The object as an answer or a World carries it: what a frame keeps.
    pub fn object(&self) -> Value {
        let owners: Vec<Value> = self
            .meta
            .owners
            .iter()
            .map(|owner| {
                json!({ "apiVersion": &*owner.api_version, "kind": &*owner.kind, "name": &*owner.name,
                        "uid": owner.uid.to_string(), "controller": owner.controller,
                        "blockOwnerDeletion": owner.block_owner_deletion })
            })
            .collect();
        json!({
            "metadata": {
                "name": &*self.meta.name,
                "namespace": &*self.meta.namespace,
                "uid": self.meta.uid.to_string(),
                "resourceVersion": self.meta.version.to_string(),
                "generation": self.meta.generation,
                "deletionTimestamp": self.meta.deleting,
                "labels": self.meta.labels,
                "annotations": self.meta.annotations,
                "ownerReferences": owners,
            },
            "spec": &*self.spec,
            "status": &*self.status,
        })
    }
}

/// Metadata as every kind has it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Meta {
    /// Namespace, empty for cluster-scoped kinds.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// Identity over the object's life.
    pub uid: Uid,
    /// `resourceVersion` as the number it is; 0 where the server sent none.
    #[serde(rename = "resourceVersion")]
    #[serde(serialize_with = "as_text", deserialize_with = "version")]
    pub version: u64,
    /// Rises with the spec.
    pub generation: i64,
    /// When it was made.
    #[serde(rename = "creationTimestamp")]
    pub created: Option<Timestamp>,
    /// When its deletion was asked for.
    #[serde(rename = "deletionTimestamp")]
    pub deleting: Option<Timestamp>,
    /// Labels.
    #[serde(deserialize_with = "or_empty")]
    pub labels: Arc<TextMap>,
    /// Annotations.
    #[serde(deserialize_with = "or_empty")]
    pub annotations: Arc<TextMap>,
    /// Its owners.
    #[serde(rename = "ownerReferences", deserialize_with = "or_empty")]
    pub owners: Vec<Owner>,
    /// Who must act before it may go.
    #[serde(deserialize_with = "or_empty")]
    pub finalizers: Vec<String>,
}

/// One owner reference.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Owner {
    /// Group and version of the owner's kind.
    pub api_version: Arc<str>,
    /// Kind of the owner.
    pub kind: Arc<str>,
    /// Name of the owner.
    pub name: Arc<str>,
    /// Identity of the owner.
    pub uid: Uid,
    /// Is it the managing controller?
    pub controller: bool,
    /// Does its foreground deletion wait for this object?
    pub block_owner_deletion: bool,
}

impl Meta {
    /// The owner that manages this object.
    pub fn controller(&self) -> Option<&Owner> {
        self.owners.iter().find(|owner| owner.controller)
    }
}

fn as_text<S: Serializer>(version: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(version)
}

fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?.unwrap_or_default();
    Ok(text.parse().unwrap_or(0))
}

/// `null` where a map or list may stand.
fn or_empty<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_without_managed_fields() {
        let frame: Frame = serde_json::from_str(
            r#"{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"web-1","namespace":"default",
            "uid":"3f2a1c5e-0001-4abc-8def-00112233445a","resourceVersion":"42","generation":3,"labels":null,
            "managedFields":[{"manager":"x"}],"ownerReferences":[{"kind":"Rollout","name":"web","uid":"u","controller":true}]},
            "spec":{"replicas":2}}"#,
        )
        .unwrap();
        assert_eq!(frame.meta.version, 42);
        assert_eq!(frame.meta.controller().map(|owner| &*owner.name), Some("web"));
        assert_eq!(frame.spec["replicas"], 2);
        assert_eq!(*frame.status, Value::Null);
    }
}
