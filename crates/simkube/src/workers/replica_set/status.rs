//! The status of a ReplicaSet: counts of its pods, and whether the server refuses more.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Number, Value, json};

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

    /// The fields that tell of it, sorted by name, and whether each stands there: most are left
    /// out where they would say 0.
    fn fields(&self, generation: i64) -> [(&'static str, Number, bool); 6] {
        let number = |field, number: usize| (field, Number::from(number), true);
        let above_zero = |field, number: usize| (field, Number::from(number), number > 0);
        [
            above_zero("availableReplicas", self.available),
            above_zero("fullyLabeledReplicas", self.fully_labeled),
            ("observedGeneration", Number::from(generation), true),
            above_zero("readyReplicas", self.ready),
            number("replicas", self.replicas),
            number("terminatingReplicas", self.terminating),
        ]
    }

    /// What it makes of a status, if that is not what the status says already.
    fn told(
        &self,
        status: &Value,
        refusal: Option<&Refusal>,
        generation: i64,
        now: Timestamp,
    ) -> Option<Value> {
        let fields = self.fields(generation);
        if let Value::Object(old) = status
            && refusal.is_none()
            && has_fields(old, &fields)
        {
            return with_numbers(old, &fields);
        }
        let conditions = conditions(status, refusal, now);
        let there = fields.into_iter().filter(|(_, _, is_there)| *is_there);
        let mut map: Map<String, Value> =
            there.map(|(name, number, _)| (name.to_owned(), Value::Number(number))).collect();
        if !conditions.is_empty() {
            map.insert("conditions".to_owned(), Value::Array(conditions));
        }
        Some(Value::Object(map)).filter(|new| new != status)
    }
}

/// Does a status have just these fields?
fn has_fields(old: &Map<String, Value>, fields: &[(&str, Number, bool)]) -> bool {
    let mut names = old.keys();
    fields
        .iter()
        .filter(|(_, _, is_there)| *is_there)
        .all(|(name, _, _)| names.next().is_some_and(|old| old == name))
        && names.next().is_none()
}

/// A status with the same fields and these numbers, if they are others. It is sooner copied than
/// built.
fn with_numbers(old: &Map<String, Value>, fields: &[(&str, Number, bool)]) -> Option<Value> {
    let numbers = || fields.iter().filter(|(_, _, is_there)| *is_there);
    let is_same = |(old, (_, new, _)): (&Value, &(&str, Number, bool))| matches!(old, Value::Number(old) if old == new);
    if old.values().zip(numbers()).all(is_same) {
        return None;
    }
    let mut map = old.clone();
    for (value, (_, number, _)) in map.values_mut().zip(numbers()) {
        *value = Value::Number(number.clone());
    }
    Some(Value::Object(map))
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
        let generation = replica_set.meta.generation;
        let Some(status) = counts.told(&replica_set.status, refusal, generation, now) else {
            return;
        };
        let after = Object { status: Arc::new(status), ..Object::clone(replica_set) };
        let user = self.work.users.replica_sets.clone();
        self.put_own(after, Verb::Update, &user);
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
