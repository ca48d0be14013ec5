//! What may a decision look at whose object owns a handful of others, told by a label?

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Head;
use crate::ask::{Answer, AskId, Recall, Reply};
use crate::decision::{Change, Kind, ObjectRef};
use crate::frame::Frame;

/// One condition: its type, whether it is so, a reason in one word, and a message for people.
pub type Told = (&'static str, bool, &'static str, String);

/// An object with everything that belongs to it: the World of a small engine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Family<M = ()> {
    /// The object itself.
    pub head: Arc<Frame>,
    /// What belongs to it, by kind and name.
    pub members: BTreeMap<String, Arc<Frame>>,
    /// Kinds that cannot be read, in the server's words: of them nothing is known.
    pub unreadable: BTreeMap<String, String>,
    /// What was asked and answered.
    pub answers: BTreeMap<AskId, Answer>,
    /// What the shell recalls.
    pub recall: Recall<M>,
}

impl<M> Family<M> {
    /// The name of a member within its family.
    pub fn name_of(kind: &Kind, name: &str) -> String {
        format!("{} {name}", kind.name)
    }

    /// The member of this kind and name.
    pub fn member(&self, kind: &Kind, name: &str) -> Option<&Arc<Frame>> {
        self.members.get(&Self::name_of(kind, name))
    }

    /// The object itself, for writing it.
    pub fn head(&self, kind: Kind) -> Head {
        let meta = &self.head.meta;
        let object = ObjectRef::new(kind, &meta.namespace, &meta.name);
        Head { object, uid: meta.uid, version: meta.version }
    }

    /// The owner reference that makes the garbage collector remove an object with this one.
    pub fn owner_reference(&self, kind: &Kind) -> Value {
        let meta = &self.head.meta;
        json!({
            "apiVersion": kind.api_version(), "kind": kind.name, "name": meta.name,
            "uid": meta.uid, "controller": true, "blockOwnerDeletion": true,
        })
    }

    /// Does another object belong to this one?
    pub fn owns(&self, other: &Frame) -> bool {
        other.meta.owners.iter().any(|owner| owner.uid == self.head.meta.uid)
    }

    /// What puts a finalizer on the object itself or takes it off, if that is to be done.
    pub fn finalizer(&self, kind: Kind, name: &str, is_wanted: bool) -> Option<Change> {
        let mut finalizers = self.head.meta.finalizers.clone();
        if finalizers.iter().any(|one| one == name) == is_wanted {
            return None;
        }
        finalizers.retain(|one| one != name);
        finalizers.extend(is_wanted.then(|| name.to_owned()));
        let Head { object, version, .. } = self.head(kind);
        let patch = json!({ "metadata": { "finalizers": finalizers } });
        Some(Change::patch(object, patch, version))
    }

    /// Conditions as everywhere in Kubernetes: type, is it so, reason, message. The time of one
    /// moves only when its status does.
    pub fn conditions(&self, told: Vec<Told>, now: Timestamp) -> Value {
        let stored = self.head.status["conditions"].as_array().map_or(&[][..], Vec::as_slice);
        let condition = |(name, is_true, reason, message): Told| {
            let status = if is_true { "True" } else { "False" };
            let same = stored.iter().find(|one| one["type"] == name && one["status"] == status);
            // Times that are stored are cut to seconds, or a status would never equal itself.
            let cut = || json!(Timestamp::from_second(now.as_second()).unwrap_or(now));
            let since = same.map_or_else(cut, |one| one["lastTransitionTime"].clone());
            json!({ "type": name, "status": status, "reason": reason, "message": message,
                    "lastTransitionTime": since })
        };
        told.into_iter().map(condition).collect()
    }

    /// The random bytes that were asked for, once they are there.
    pub fn drawn(&self, id: &AskId) -> Option<&[u8]> {
        match self.reply(id)? {
            Reply::Random(bytes) if !bytes.is_empty() => Some(bytes),
            _ => None,
        }
    }

    /// Has a read of the object itself shown that it is still there and stays? Its watch may lag.
    pub fn is_confirmed(&self, id: &AskId) -> bool {
        let Some(Reply::Object(Some(object))) = self.reply(id) else { return false };
        let metadata = &object["metadata"];
        metadata["uid"] == json!(self.head.meta.uid) && metadata["deletionTimestamp"].is_null()
    }

    /// The same for families that decide the same while no time matters.
    pub fn fingerprint(&self) -> u64 {
        let members = self.members.values().map(|member| member.meta.version);
        let failures = self.recall.failed.values().map(|failure| u64::from(failure.times));
        let counts = [self.members.len(), self.answers.len(), self.unreadable.len()];
        let numbers = [self.head.meta.version].into_iter().chain(counts.map(|count| count as u64));
        let mix = |hash: u64, number: u64| (hash ^ number).wrapping_mul(0x0000_0100_0000_01b3);
        numbers.chain(members).chain(failures).fold(0xcbf2_9ce4_8422_2325, mix)
    }

    fn reply(&self, id: &AskId) -> Option<&Reply> {
        self.answers.get(id)?.reply.as_ref().ok()
    }
}
