//! I-1 for evictions: does one leave as many available pods as a restart may leave?

use std::collections::BTreeMap;
use std::sync::Arc;

use gradus_simkube::object::Object;
use gradus_simkube::{Change, Write};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::sizes::resolve;

/// The pods of a run, by uid: since when each one that stays is ready.
#[derive(Clone, Debug, Default)]
pub(super) struct Pods {
    ready_since: BTreeMap<Arc<str>, Option<Timestamp>>,
    allowed: Allowed,
}

/// What a Rollout's spec allows.
#[derive(Clone, Copy, Debug, Default)]
struct Allowed {
    replicas: i64,
    missing: i64,
    min_ready: SignedDuration,
}

impl Pods {
    /// Takes in the spec of the Rollout.
    pub(super) fn rollout(&mut self, spec: &Value) {
        let replicas = spec["replicas"].as_i64().unwrap_or(1);
        let strategy = &spec["strategy"];
        let limit = |strategy: &str, up: i64, field: &str| {
            resolve(spec["strategy"][strategy].get(field), replicas, up)
        };
        let missing = if strategy["blueGreen"].is_object() {
            limit("blueGreen", 0, "maxUnavailable")
        } else {
            limit("canary", 0, "maxUnavailable")
        };
        let min_ready = SignedDuration::from_secs(spec["minReadySeconds"].as_i64().unwrap_or(0));
        self.allowed = Allowed { replicas, missing: missing.clamp(1, replicas.max(1)), min_ready };
    }

    /// Takes in a write of a pod; of ours, says what is wrong with it. `sizes` is what all
    /// ReplicaSets together are to have.
    pub(super) fn judge(
        &mut self,
        write: &Write,
        is_ours: bool,
        sizes: i64,
        now: Timestamp,
    ) -> Option<String> {
        let available = if is_ours && is_eviction(write) { self.available(now) } else { i64::MAX };
        let uid = &write.after.meta.uid;
        if write.change == Change::Deleted || write.after.meta.deleting.is_some() {
            self.ready_since.remove(uid);
        } else {
            self.ready_since.insert(Arc::clone(uid), ready_since(&write.after));
        }
        let floor = self.allowed.replicas.max(sizes) - self.allowed.missing;
        (available <= floor).then(|| format!("{available} available before it, floor {floor}"))
    }

    fn available(&self, now: Timestamp) -> i64 {
        let is_available =
            |since: &&Timestamp| now.duration_since(**since) >= self.allowed.min_ready;
        let ready = self.ready_since.values().flatten();
        i64::try_from(ready.filter(is_available).count()).unwrap_or(i64::MAX)
    }
}

/// Is this how a pod begins to go?
pub(super) fn is_eviction(write: &Write) -> bool {
    let was_going = write.before.as_ref().is_some_and(|pod| pod.meta.deleting.is_some());
    !was_going && (write.change == Change::Deleted || write.after.meta.deleting.is_some())
}

fn ready_since(pod: &Object) -> Option<Timestamp> {
    pod.pod.as_ref().filter(|status| status.ready).map(|status| status.ready_since)
}
