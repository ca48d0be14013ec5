//! What does a decision need of a ReplicaSet? A view of some 250 bytes; the template is a digest.

use std::sync::Arc;

use gradus_api::names;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::digest::pair_digests;
use crate::frame::Frame;
use crate::template::{self, Side};
use crate::uid::Uid;

/// A ReplicaSet as decisions see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplicaSetView {
    /// Name.
    pub name: Arc<str>,
    /// Value of the pod-template-hash label.
    pub hash: Arc<str>,
    /// Identity.
    pub uid: Uid,
    /// Uid of the controlling owner.
    pub owner: Option<Uid>,
    /// `resourceVersion`.
    pub version: u64,
    /// Rises with the spec.
    pub generation: i64,
    /// The generation the counts below belong to.
    pub observed_generation: i64,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// `spec.replicas`.
    pub size: i32,
    /// `spec.minReadySeconds`.
    pub min_ready_seconds: i32,
    /// Pods there are.
    pub replicas: i32,
    /// Pods that are ready.
    pub ready: i32,
    /// Pods that are available. Arithmetic uses [`ReplicaSetView::available`].
    pub reported_available: i32,
    /// Is its deletion asked for?
    pub deleting: bool,
    /// The revision annotation, if it is a number.
    pub revision: Option<i64>,
    /// The desired-replicas annotation, if it is a number.
    pub desired_replicas: Option<i32>,
    /// Former revisions, as annotated.
    pub revision_history: Option<Arc<str>>,
    /// The scale-down deadline annotation.
    pub deadline: Deadline,
    /// The template, normalised for equality.
    pub template: u128,
    /// One digest per label.
    pub labels: Box<[u64]>,
    /// One digest per annotation.
    pub annotations: Box<[u64]>,
    /// Its ReplicaFailure condition, when true.
    pub failure: Option<Arc<ReplicaFailure>>,
}

/// The scale-down deadline annotation of a ReplicaSet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Deadline {
    /// Not annotated.
    None,
    /// To be scaled down at this moment.
    At(Timestamp),
    /// Annotated with a text that is no time.
    Unreadable,
}

/// Why a ReplicaSet cannot make its pods, in the words of its condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaFailure {
    /// Reason.
    pub reason: String,
    /// Message.
    pub message: String,
}

impl ReplicaSetView {
    /// The view of a frame. `earlier` spares the digest while the spec has not changed.
    pub fn read(frame: &Frame, earlier: Option<&ReplicaSetView>) -> Self {
        let meta = &frame.meta;
        let (spec, status) = (&frame.spec, &frame.status);
        let note = |key: &str| meta.annotations.get(key).map(String::as_str);
        let ephemeral = note(names::annotation::EPHEMERAL_METADATA);
        let annotations = pair_digests(meta.annotations.iter());
        let same = earlier.filter(|view| {
            view.uid == meta.uid
                && view.generation == meta.generation
                && view.annotations == annotations
        });
        let template = same.map_or_else(
            || template::normalized_digest(&spec["template"], ephemeral, Side::Live),
            |view| view.template,
        );
        ReplicaSetView {
            name: Arc::clone(&meta.name),
            hash: meta.labels.get(names::label::POD_TEMPLATE_HASH).map_or("", |text| text).into(),
            uid: meta.uid,
            owner: meta.controller().map(|owner| owner.uid),
            version: meta.version,
            generation: meta.generation,
            observed_generation: status["observedGeneration"].as_i64().unwrap_or(0),
            created: meta.created,
            size: count(spec, "replicas", 1),
            min_ready_seconds: count(spec, "minReadySeconds", 0),
            replicas: count(status, "replicas", 0),
            ready: count(status, "readyReplicas", 0),
            reported_available: count(status, "availableReplicas", 0),
            deleting: meta.deleting.is_some(),
            revision: note(names::annotation::REVISION).and_then(|text| text.parse().ok()),
            desired_replicas: note(names::annotation::DESIRED_REPLICAS)
                .and_then(|text| text.parse().ok()),
            revision_history: note(names::annotation::REVISION_HISTORY).map(Arc::from),
            deadline: deadline(note(names::annotation::SCALE_DOWN_DEADLINE)),
            template,
            labels: pair_digests(meta.labels.iter()),
            annotations,
            failure: failure(status),
        }
    }

    /// Available pods, never more than the size: pods about to go do not count.
    pub fn available(&self) -> i32 {
        self.reported_available.min(self.size)
    }

    /// Do the counts belong to the spec we last wrote?
    pub fn is_observed(&self) -> bool {
        self.observed_generation >= self.generation
    }
}

fn count(part: &Value, field: &str, absent: i32) -> i32 {
    part[field].as_i64().map_or(absent, |n| i32::try_from(n).unwrap_or(i32::MAX))
}

fn deadline(text: Option<&str>) -> Deadline {
    match text.map(str::parse) {
        None => Deadline::None,
        Some(Ok(moment)) => Deadline::At(moment),
        Some(Err(_)) => Deadline::Unreadable,
    }
}

fn failure(status: &Value) -> Option<Arc<ReplicaFailure>> {
    let conditions = status["conditions"].as_array()?;
    let found = conditions.iter().find(|condition| {
        condition["type"] == names::condition::REPLICA_FAILURE && condition["status"] == "True"
    })?;
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    Some(Arc::new(ReplicaFailure { reason: text("reason"), message: text("message") }))
}
