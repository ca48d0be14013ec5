//! What may one decision look at? The Database, what belongs to it, answers and earlier failures.

use std::collections::BTreeMap;
use std::sync::Arc;

use gradus_engine::ask::{Answer, AskId, Recall, Reply};
use gradus_engine::decision::{Kind, ObjectRef};
use gradus_engine::frame::Frame;
use gradus_engine::uid::Uid;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::api::{DATABASE, Status};

/// A snapshot. What is `None` is not there, unless its kind cannot be read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct World {
    /// The object itself.
    pub database: Arc<Database>,
    /// Its Secret: metadata alone, what it holds is nobody's business.
    pub secret: Option<Arc<Child>>,
    /// Its Service.
    pub service: Option<Arc<Child>>,
    /// Its StatefulSet.
    pub stateful_set: Option<Arc<Child>>,
    /// Its volume claim.
    pub claim: Option<Arc<Child>>,
    /// Kinds that cannot be read, in the server's words: of them nothing is known.
    pub unreadable: BTreeMap<Kind, String>,
    /// What was asked and answered.
    pub answers: BTreeMap<AskId, Answer>,
    /// What failed.
    pub recall: Recall<()>,
}

/// A Database as it is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Database {
    /// Where it is.
    pub object: ObjectRef,
    /// Its identity.
    pub uid: Uid,
    /// Its `resourceVersion`.
    pub version: u64,
    /// Rises with its spec.
    pub generation: i64,
    /// Somebody wants it gone.
    pub is_deleting: bool,
    /// Who must act before it goes.
    pub finalizers: Vec<String>,
    /// What the user wrote, not read yet.
    pub spec: Arc<Value>,
    /// What we told.
    pub status: Status,
}

/// An object that belongs to a Database.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Child {
    /// Its `resourceVersion`.
    pub version: u64,
    /// Rises with its spec.
    pub generation: i64,
    /// Its owners.
    pub owners: Vec<Uid>,
    /// Labels, annotations and spec, as they would stand in a manifest.
    pub content: Value,
    /// Its status.
    pub status: Arc<Value>,
}

impl Database {
    /// A Database from its watch.
    pub fn read(frame: &Frame) -> Self {
        let meta = &frame.meta;
        Database {
            object: ObjectRef::new(DATABASE, &meta.namespace, &meta.name),
            uid: meta.uid,
            version: meta.version,
            generation: meta.generation,
            is_deleting: meta.deleting.is_some(),
            finalizers: meta.finalizers.clone(),
            spec: Arc::clone(&frame.spec),
            status: Status::deserialize(&*frame.status).unwrap_or_default(),
        }
    }
}

impl Child {
    /// A child from its watch.
    pub fn read(frame: &Frame) -> Self {
        let meta = &frame.meta;
        let mut content =
            json!({ "metadata": { "labels": meta.labels, "annotations": meta.annotations } });
        content["spec"] = Value::clone(&frame.spec);
        Child {
            version: meta.version,
            generation: meta.generation,
            owners: meta.owners.iter().map(|owner| owner.uid).collect(),
            content,
            status: Arc::clone(&frame.status),
        }
    }
}

impl World {
    /// Has a read shown that the Database is still there? Its watch may be late.
    pub fn is_confirmed(&self, id: &AskId) -> bool {
        let reply = self.answers.get(id).and_then(|answer| answer.reply.as_ref().ok());
        let Some(Reply::Object(Some(object))) = reply else { return false };
        let metadata = &object["metadata"];
        metadata["uid"] == json!(self.database.uid) && metadata["deletionTimestamp"].is_null()
    }

    /// The random bytes that were asked for under this id, once they are there.
    pub fn drawn(&self, id: &AskId) -> Option<&[u8]> {
        match self.answers.get(id)?.reply.as_ref().ok()? {
            Reply::Random(bytes) if !bytes.is_empty() => Some(bytes),
            _ => None,
        }
    }
}
