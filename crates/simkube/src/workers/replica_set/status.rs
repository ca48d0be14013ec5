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
struct Counts {
    replicas: usize,
    fully_labeled: usize,
    ready: usize,
    available: usize,
    next_available: Option<Timestamp>,
}

impl SimCluster {
    /// Writes the status if it changed. Returns when a pod becomes available by itself.
    pub(super) fn write_status(
        &mut self,
        replica_set: &Arc<Object>,
        template: &Template,
        active: &[Arc<Object>],
        refusal: Option<&Refusal>,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let counts = count(template, active, now);
        let conditions = conditions(&replica_set.status, refusal, now);
        let status = to_json(&counts, conditions, replica_set.meta.generation);
        if status != *replica_set.status {
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
        counts.next_available
    }
}

fn count(template: &Template, active: &[Arc<Object>], now: Timestamp) -> Counts {
    let mut counts = Counts { replicas: active.len(), ..Counts::default() };
    for pod in active {
        let labels = &pod.meta.labels;
        let is_labeled = template.labels.iter().all(|(key, value)| labels.get(key) == Some(value));
        counts.fully_labeled += usize::from(is_labeled);
        let Some(since) = ready_since(pod) else { continue };
        counts.ready += 1;
        let available_at = since + template.min_ready;
        if available_at <= now {
            counts.available += 1;
        } else {
            let next = counts.next_available.map_or(available_at, |next| next.min(available_at));
            counts.next_available = Some(next);
        }
    }
    counts
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

fn to_json(counts: &Counts, conditions: Vec<Value>, generation: i64) -> Value {
    let mut map = Map::new();
    map.insert("replicas".to_owned(), json!(counts.replicas));
    for (field, number) in [
        ("fullyLabeledReplicas", counts.fully_labeled),
        ("readyReplicas", counts.ready),
        ("availableReplicas", counts.available),
    ] {
        if number > 0 {
            map.insert(field.to_owned(), json!(number));
        }
    }
    map.insert("observedGeneration".to_owned(), json!(generation));
    if !conditions.is_empty() {
        map.insert("conditions".to_owned(), Value::Array(conditions));
    }
    Value::Object(map)
}
