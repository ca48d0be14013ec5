//! The status of a ReplicaSet: counts of its pods, and whether the server refuses more.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{Refusal, Template, ready_since};
use crate::SimCluster;
use crate::object::{Object, whole_seconds};
use crate::request::Verb;

const FAILURE: &str = "ReplicaFailure";

/// What is counted, and when a count changes by itself.
#[derive(Default)]
pub(super) struct Counts {
    replicas: usize,
    fully_labeled: usize,
    ready: usize,
    available: usize,
    terminating: usize,
    /// When the next pod becomes available by itself.
    pub(super) next_available: Option<Timestamp>,
}

impl Counts {
    pub(super) fn of(
        template: &Template,
        active: &[Arc<Object>],
        terminating: usize,
        now: Timestamp,
    ) -> Self {
        let mut counts = Self { replicas: active.len(), terminating, ..Self::default() };
        for pod in active {
            let labels = &pod.meta.labels;
            let wanted = &template.pods.labels;
            let is_labeled = Arc::ptr_eq(wanted, labels)
                || wanted.iter().all(|(key, value)| labels.get(key) == Some(value));
            counts.fully_labeled += usize::from(is_labeled);
            let Some(since) = ready_since(pod) else { continue };
            counts.ready += 1;
            let available_at = since + template.min_ready;
            if available_at <= now {
                counts.available += 1;
            } else {
                let next =
                    counts.next_available.map_or(available_at, |next| next.min(available_at));
                counts.next_available = Some(next);
            }
        }
        counts
    }

    /// The fields that tell of it; a missing one says 0.
    fn fields(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let told = [("replicas", self.replicas), ("terminatingReplicas", self.terminating)];
        let told_above_zero = [
            ("fullyLabeledReplicas", self.fully_labeled),
            ("readyReplicas", self.ready),
            ("availableReplicas", self.available),
        ];
        told.into_iter().chain(told_above_zero.into_iter().filter(|(_, number)| *number > 0))
    }

    /// Does a status say just this, and nothing of refusals?
    fn is_told_by(&self, status: &Value, generation: i64) -> bool {
        let Some(map) = status.as_object() else { return false };
        let number = |field: &str| map.get(field).and_then(Value::as_u64);
        map.len() == self.fields().count() + 1
            && map.get("observedGeneration").and_then(Value::as_i64) == Some(generation)
            && self.fields().all(|(field, count)| number(field) == u64::try_from(count).ok())
    }

    fn to_json(&self, conditions: Vec<Value>, generation: i64) -> Value {
        let mut map = Map::new();
        for (field, number) in self.fields() {
            map.insert(field.to_owned(), json!(number));
        }
        map.insert("observedGeneration".to_owned(), json!(generation));
        if !conditions.is_empty() {
            map.insert("conditions".to_owned(), Value::Array(conditions));
        }
        Value::Object(map)
    }
}

impl SimCluster {
    /// Writes the status if it changed.
    pub(super) fn write_status(
        &mut self,
        replica_set: &Arc<Object>,
        counts: &Counts,
        refusal: Option<&Refusal>,
        now: Timestamp,
    ) {
        if refusal.is_none() && counts.is_told_by(&replica_set.status, replica_set.meta.generation)
        {
            return;
        }
        let conditions = conditions(&replica_set.status, refusal, now);
        let status = counts.to_json(conditions, replica_set.meta.generation);
        if status == *replica_set.status {
            return;
        }
        let key = replica_set.key();
        let was_marked = self.work.replica_sets.is_marked(&key);
        let after = Object { status: Arc::new(status), ..Object::clone(replica_set) };
        let user = self.work.users.replica_sets.clone();
        self.put(after, Verb::Update, &user);
        if !was_marked {
            // It knows what it wrote.
            self.work.replica_sets.unmark(&key);
        }
    }
}

/// Others' conditions stay. A failure is told once and taken back when it is over.
fn conditions(status: &Value, refusal: Option<&Refusal>, now: Timestamp) -> Vec<Value> {
    let old = status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_failure = |one: &&Value| one["type"] == FAILURE;
    let mut list: Vec<Value> = old.iter().filter(|one| !is_failure(one)).cloned().collect();
    match (refusal, old.iter().find(is_failure)) {
        (None, _) => {}
        (Some(_), Some(told)) => list.push(told.clone()),
        (Some(refusal), None) => list.push(json!({
            "type": FAILURE, "status": "True", "reason": refusal.reason,
            "message": refusal.error.message,
            "lastTransitionTime": whole_seconds(now).to_string(),
        })),
    }
    list
}
