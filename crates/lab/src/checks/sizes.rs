//! I-1 and I-2: does a resize leave enough available pods, and not too many in all?

use std::collections::BTreeMap;
use std::sync::Arc;

use gradus_api::names;
use gradus_simkube::kinds::KindId;
use gradus_simkube::object::Object;
use gradus_simkube::{Change, Write};
use serde_json::Value;

/// Sizes and available pods of a rollout's ReplicaSets: as they are, as the watch has shown them,
/// and as they were shown when the decision was made that is being carried out.
#[derive(Clone, Debug, Default)]
pub(super) struct Sizes {
    sets: BTreeMap<Arc<str>, Set>,
    limits: Option<Limits>,
    shown_limits: Option<Limits>,
    decided_limits: Option<Limits>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Set {
    size: i64,
    available: i64,
    shown: i64,
    decided: i64,
}

impl Set {
    /// Pods available by the server or, as it was decided, by what the controller could know: a pod
    /// that fails between decision and write is not the write's fault.
    fn available_of(self, size: i64) -> i64 {
        self.available.max(self.decided).min(size)
    }
}

/// The fewest available pods and the most pods that a canary without traffic routing may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) floor: i64,
    pub(crate) ceiling: i64,
}

impl Limits {
    /// The limits of a Rollout's spec; `None` where other invariants rule.
    pub(crate) fn of(spec: &Value) -> Option<Self> {
        let canary = spec["strategy"].get("canary")?;
        if canary.get("trafficRouting").is_some_and(|routing| !routing.is_null()) {
            return None;
        }
        let replicas = spec["replicas"].as_i64().unwrap_or(1);
        let surge = resolve(canary.get("maxSurge"), replicas, 99);
        let unavailable = resolve(canary.get("maxUnavailable"), replicas, 0);
        let unavailable = if surge == 0 && unavailable == 0 { 1 } else { unavailable };
        Some(Limits { floor: replicas - unavailable.min(replicas), ceiling: replicas + surge })
    }
}

/// A number or a percentage (25 % if left out) of the replicas; `up` is 99 to round up, 0 down.
fn resolve(limit: Option<&Value>, replicas: i64, up: i64) -> i64 {
    let percent = match limit {
        None | Some(Value::Null) => 25,
        Some(Value::Number(number)) => return number.as_i64().unwrap_or(0),
        Some(other) => {
            let text = other.as_str().unwrap_or_default();
            match text.strip_suffix('%') {
                Some(percent) => percent.parse().unwrap_or(0),
                None => return text.parse().unwrap_or(0),
            }
        }
    };
    (replicas * percent + up) / 100
}

impl Sizes {
    /// Takes in a write of a ReplicaSet; of ours, says what is wrong with it.
    pub(super) fn replica_set(
        &mut self,
        write: &Write,
        is_ours: bool,
    ) -> Vec<(&'static str, String)> {
        if !is_of_rollout(&write.after) {
            return Vec::new();
        }
        let uid = Arc::clone(&write.after.meta.uid);
        let before = self.sets.get(&uid).copied().unwrap_or_default();
        let size = match write.change {
            Change::Deleted => 0,
            _ => write.after.spec["replicas"].as_i64().unwrap_or(1),
        };
        let found = if is_ours && size != before.size {
            self.judge(&uid, before.size, size)
        } else {
            Vec::new()
        };
        if write.change == Change::Deleted {
            self.sets.remove(&uid);
        } else {
            let available = available_in(&write.after);
            self.sets.insert(uid, Set { size, available, ..before });
        }
        found
    }

    /// Takes in a write of the Rollout.
    pub(super) fn rollout(&mut self, write: &Write) {
        let is_same =
            write.before.as_ref().is_some_and(|one| Arc::ptr_eq(&one.spec, &write.after.spec));
        if !is_same {
            self.limits = Limits::of(&write.after.spec);
        }
    }

    pub(super) fn shown(&mut self, object: &Object) {
        if object.kind != KindId::REPLICA_SET {
            self.shown_limits = Limits::of(&object.spec);
        } else if let Some(set) = self.sets.get_mut(&object.meta.uid) {
            set.shown = available_in(object);
        }
    }

    pub(super) fn decided(&mut self) {
        self.decided_limits = self.shown_limits;
        self.sets.values_mut().for_each(|set| set.decided = set.shown);
    }

    pub(super) fn restarted(&mut self) {
        self.shown_limits = None;
        self.sets.values_mut().for_each(|set| set.shown = 0);
        self.decided();
    }

    fn judge(&self, uid: &Arc<str>, size: i64, next: i64) -> Vec<(&'static str, String)> {
        let Some(limits) = self.limits else { return Vec::new() };
        // A user may change the spec between decision and write.
        let decided = self.decided_limits.unwrap_or(limits);
        let floor = limits.floor.min(decided.floor);
        let ceiling = limits.ceiling.max(decided.ceiling);
        let resized = |id: &Arc<str>, set: &Set| if id == uid { next } else { set.size };
        let old = |set: &Set| set.available_of(set.size);
        let available: i64 = self.sets.values().map(old).sum();
        let left: i64 = self
            .sets
            .iter()
            .map(|(id, set)| set.available_of(set.size.min(resized(id, set))))
            .sum();
        let others: i64 =
            self.sets.iter().filter(|(id, _)| *id != uid).map(|(_, set)| set.size).sum();
        let mut found = Vec::new();
        if left < available.min(floor) {
            found.push((
                "I-1",
                format!("{size} → {next} leaves {left} available of {available}, floor {floor}"),
            ));
        }
        if others + next > (others + size).max(ceiling) {
            found.push((
                "I-2",
                format!("{size} → {next} makes {} pods, ceiling {ceiling}", others + next),
            ));
        }
        found
    }
}

fn available_in(set: &Object) -> i64 {
    set.status["availableReplicas"].as_i64().unwrap_or(0)
}

fn is_of_rollout(set: &Object) -> bool {
    set.controller().is_some_and(|owner| &*owner.kind == names::kind::ROLLOUT)
}
