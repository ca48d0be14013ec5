//! The status of a StatefulSet: counts of its pods by readiness and by template.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{REVISION, Wanted};
use crate::SimCluster;
use crate::object::Object;
use crate::request::Verb;
use crate::workers::replica_set::ready_since;

/// What is counted, and when a count changes by itself.
#[derive(Default)]
pub(super) struct SetCounts {
    replicas: usize,
    ready: usize,
    available: usize,
    updated: usize,
    /// When the next pod becomes available by itself.
    pub(super) next_available: Option<Timestamp>,
}

impl SetCounts {
    pub(super) fn of(wanted: &Wanted, pods: &BTreeMap<usize, Arc<Object>>, now: Timestamp) -> Self {
        let mut counts = Self { replicas: pods.len(), ..Self::default() };
        for pod in pods.values() {
            let is_new = pod.meta.labels.get(REVISION) == Some(&wanted.revision);
            counts.updated += usize::from(is_new && pod.meta.deleting.is_none());
            let Some(since) = ready_since(pod) else { continue };
            counts.ready += 1;
            let available_at = since + wanted.min_ready;
            if available_at <= now {
                counts.available += 1;
            } else {
                let next = counts.next_available.map_or(available_at, |one| one.min(available_at));
                counts.next_available = Some(next);
            }
        }
        counts
    }
}

impl SimCluster {
    /// Writes the status if it changed.
    pub(super) fn write_set_status(
        &mut self,
        set: &Arc<Object>,
        wanted: &Wanted,
        counts: &SetCounts,
    ) {
        let earlier = set.status["currentRevision"].as_str();
        let is_done = counts.updated == wanted.replicas
            && counts.ready == wanted.replicas
            && counts.replicas == wanted.replicas;
        let current = earlier.filter(|_| !is_done).unwrap_or(&wanted.revision).to_owned();
        let old = counts.replicas - counts.updated;
        let of_current = if current == wanted.revision { counts.updated } else { old };
        let mut status = Map::new();
        let mut put = |field: &str, value: Value| status.insert(field.to_owned(), value);
        put("replicas", json!(counts.replicas));
        put("availableReplicas", json!(counts.available));
        let numbers = [
            ("readyReplicas", counts.ready),
            ("currentReplicas", of_current),
            ("updatedReplicas", counts.updated),
        ];
        for (field, number) in numbers.into_iter().filter(|(_, number)| *number > 0) {
            put(field, json!(number));
        }
        put("currentRevision", json!(current));
        put("updateRevision", json!(wanted.revision));
        put("observedGeneration", json!(set.meta.generation));
        put("collisionCount", json!(0));
        let status = Value::Object(status);
        if status == *set.status {
            return;
        }
        let after = Object { status: Arc::new(status), ..Object::clone(set) };
        let user = self.work.users.stateful_sets.clone();
        self.put_own(after, Verb::Update, &user);
    }
}
