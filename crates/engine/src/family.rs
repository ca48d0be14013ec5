//! What may a decision look at whose object owns a handful of others, told by a label?

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::ask::{Answer, AskId, Class, Failure, Recall, Reply};
use crate::decision::{
    After, Change, Decision, Event, EventKind, Frees, Guard, Kind, ObjectRef, Why,
};
use crate::frame::Frame;
use crate::patch::{Difference, overlay};
use crate::{Engine, Head, StatusPlace};

/// One condition: its type, whether it is so, a reason in one word, and a message for people.
pub type ToldCondition = (&'static str, bool, &'static str, String);

/// An object with everything that belongs to it: the World of a small engine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Family<M = ()> {
    /// Kind of the object itself.
    pub kind: Kind,
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

/// A small mind: all of an engine whose World is a Family and that recalls nothing.
pub trait Mind: 'static {
    /// The kind it decides about; its status is a subresource.
    const KIND: Kind;

    /// What should happen next.
    fn decide(family: &Family, now: Timestamp) -> Decision<Value>;

    /// A fixed delay before a failure of this class is tried again; `None` for the back-off.
    fn retry_after(_class: Class) -> Option<SignedDuration> {
        None
    }
}

impl<T: Mind> Engine for T {
    type World = Family;
    type Status = Value;
    type Memo = ();

    const KIND: Kind = T::KIND;
    const STATUS: StatusPlace = StatusPlace::Subresource;

    fn head(family: &Family) -> Head {
        family.head()
    }

    fn decide(family: &Family, now: Timestamp) -> Decision<Value> {
        T::decide(family, now)
    }

    fn stored_status(family: &Family) -> &Value {
        &family.head.status
    }

    fn retry_after(class: Class) -> Option<SignedDuration> {
        T::retry_after(class)
    }
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
    pub fn head(&self) -> Head {
        let meta = &self.head.meta;
        let object = self.place(&self.kind, &meta.name);
        Head { object, uid: meta.uid, version: meta.version }
    }

    /// Where a member of this kind and name is, or would be.
    pub fn place(&self, kind: &Kind, name: &str) -> ObjectRef {
        ObjectRef::new(kind.clone(), &self.head.meta.namespace, &name.into())
    }

    /// What makes a member; if it is owned, it goes with the object.
    pub fn create(&self, kind: &Kind, name: &str, mut body: Value, is_owned: bool) -> Change {
        body["metadata"]["ownerReferences"] = self.owners(is_owned);
        Change::create(self.place(kind, name), body)
    }

    /// Makes a member that is missing, or repairs the one that is there; `fixed` are fields of its
    /// spec that cannot be changed later.
    pub fn bring(
        &self,
        kind: &Kind,
        name: &str,
        mut body: Value,
        fixed: &[&str],
    ) -> Option<Change> {
        if self.member(kind, name).is_none() {
            return Some(self.create(kind, name, body, true));
        }
        if let Some(fields) = body["spec"].as_object_mut() {
            fields.retain(|field, _| !fixed.contains(&field.as_str()));
        }
        self.repair(kind, name, &body, true)
    }

    /// One patch of what is wanted of a member and is not so; everything else is left alone.
    pub fn repair(
        &self,
        kind: &Kind,
        name: &str,
        wanted: &Value,
        is_owned: bool,
    ) -> Option<Change> {
        let found = self.member(kind, name)?;
        let Frame { meta, spec, .. } = &**found;
        let metadata = json!({ "labels": meta.labels, "annotations": meta.annotations });
        let content = json!({ "metadata": metadata, "spec": &**spec });
        let mut better = overlay(&content, wanted);
        // A selector is owned whole: one more requirement would select nothing.
        if let Some(selector) = wanted["spec"].get("selector") {
            better["spec"]["selector"] = selector.clone();
        }
        let mut patch = content.difference(&better).unwrap_or(Value::Null);
        if self.owns(found) != is_owned {
            patch["metadata"]["ownerReferences"] = self.owners(is_owned);
        }
        (!patch.is_null()).then(|| Change::patch(self.place(kind, name), patch, meta.version))
    }

    /// The owner references that make the garbage collector remove a member with the object.
    pub fn owners(&self, is_owned: bool) -> Value {
        let meta = &self.head.meta;
        let owner = json!({
            "apiVersion": self.kind.api_version(), "kind": self.kind.name, "name": meta.name,
            "uid": meta.uid, "controller": true, "blockOwnerDeletion": true,
        });
        if is_owned { json!([owner]) } else { json!([]) }
    }

    /// Does another object belong to this one?
    pub fn owns(&self, other: &Frame) -> bool {
        other.meta.owners.iter().any(|owner| owner.uid == self.head.meta.uid)
    }

    /// What puts a finalizer on the object itself or takes it off, if that is to be done.
    pub fn finalizer(&self, name: &str, is_wanted: bool) -> Option<Change> {
        let mut finalizers = self.head.meta.finalizers.clone();
        if finalizers.iter().any(|one| one == name) == is_wanted {
            return None;
        }
        finalizers.retain(|one| one != name);
        finalizers.extend(is_wanted.then(|| name.to_owned()));
        let Head { object, version, .. } = self.head();
        let patch = json!({ "metadata": { "finalizers": finalizers } });
        Some(Change::patch(object, patch, version))
    }

    /// Conditions as everywhere in Kubernetes: type, is it so, reason, message. The time of one
    /// moves only when its status does.
    pub fn conditions(&self, told: Vec<ToldCondition>, now: Timestamp) -> Value {
        let stored = self.head.status["conditions"].as_array().map_or(&[][..], Vec::as_slice);
        let condition = |(name, is_true, reason, message): ToldCondition| {
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

    /// An Event about the object itself.
    pub fn event(&self, kind: EventKind, reason: &str, message: String, after: After) -> Event {
        let about = self.head().object;
        Event { about, uid: None, kind, reason: reason.to_owned().into(), message, after }
    }

    /// Why nothing more is done: what its conditions say. That passes with the cluster, or else
    /// somebody must edit the object.
    pub fn held(&self, message: String, passes: bool) -> Why {
        Why {
            guard: Guard::InvalidSpec { message },
            object: self.head().object,
            field: "status.conditions".into(),
            since: None,
            frees: if passes { Frees::Cluster } else { Frees::Edit },
        }
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

    /// The first of these changes that failed last time, and how.
    pub fn first_failure(&self, changes: &[Change]) -> Option<(usize, &Failure)> {
        let failed = |change: &Change| self.recall.failed.get(&change.id);
        changes.iter().enumerate().find_map(|(at, change)| Some((at, failed(change)?)))
    }

    fn reply(&self, id: &AskId) -> Option<&Reply> {
        self.answers.get(id)?.reply.as_ref().ok()
    }
}
