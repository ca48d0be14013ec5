//! I-1 for evictions: does one leave as many available pods as a restart may leave?

use std::collections::BTreeMap;
use std::sync::Arc;

use gradus_api::names::label::POD_TEMPLATE_HASH;
use gradus_simkube::object::Object;
use gradus_simkube::{Change, Write};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::sizes::{hash_of, resolve};

/// The pods of a run, by uid: since when each one that stays is ready.
#[derive(Clone, Debug, Default)]
pub(super) struct Pods {
    ready_since: BTreeMap<Arc<str>, Option<Timestamp>>,
    /// As the spec is, as the watch has shown it, and as it was shown when the decision was made
    /// that is being carried out.
    allowed: Allowed,
    shown: Option<Allowed>,
    decided: Option<Allowed>,
    /// Available pods by the selector with which they were listed for the controller,
    listed: BTreeMap<String, i64>,
    /// and as many as it could count on when it decided.
    counted_on: i64,
}

/// What a Rollout's spec allows.
#[derive(Clone, Copy, Debug, Default)]
struct Allowed {
    replicas: i64,
    missing: i64,
    min_ready: SignedDuration,
}

impl Allowed {
    fn of(spec: &Value) -> Self {
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
        Allowed { replicas, missing: missing.clamp(1, replicas.max(1)), min_ready }
    }

    /// Fewest available pods of so many wanted ones.
    fn floor(self, wanted: i64) -> i64 {
        self.replicas.max(wanted) - self.missing
    }
}

impl Pods {
    /// Takes in the spec of the Rollout.
    pub(super) fn rollout(&mut self, spec: &Value) {
        self.allowed = Allowed::of(spec);
    }

    /// The watch has shown this spec to the controller.
    pub(super) fn shown(&mut self, spec: &Value) {
        self.shown = Some(Allowed::of(spec));
    }

    /// The controller has been told of these pods, which this selector selects.
    pub(super) fn listed(&mut self, selector: &str, pods: &[Arc<Object>], now: Timestamp) {
        let stays = |pod: &&Arc<Object>| pod.meta.deleting.is_none();
        let ready = pods.iter().filter(stays).filter_map(|pod| ready_since(pod));
        self.listed.insert(selector.to_owned(), self.available_of(ready, now));
    }

    /// The controller has decided on what it was shown so far; so many pods were available by that.
    pub(super) fn decided(&mut self, available: i64) {
        self.decided = self.shown;
        self.counted_on = self.listed.values().sum::<i64>().min(available);
    }

    /// The controller is another one, which was told nothing.
    pub(super) fn restarted(&mut self) {
        (self.shown, self.decided) = (None, None);
        self.listed.clear();
        self.counted_on = 0;
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
        let available = if is_ours && is_eviction(write) {
            // A pod that fails between decision and write is not the write's fault.
            let available = self.available(now).max(self.counted_on);
            self.counted_on -= 1;
            let hash = hash_of(&write.after.meta.labels);
            self.listed.entry(format!("{POD_TEMPLATE_HASH}={hash}")).and_modify(|pods| *pods -= 1);
            available
        } else {
            i64::MAX
        };
        let uid = &write.after.meta.uid;
        if write.change == Change::Deleted || write.after.meta.deleting.is_some() {
            self.ready_since.remove(uid);
        } else {
            self.ready_since.insert(Arc::clone(uid), ready_since(&write.after));
        }
        // A user may change the spec between decision and write.
        let decided = self.decided.unwrap_or(self.allowed);
        let floor = self.allowed.floor(sizes).min(decided.floor(sizes));
        (available <= floor).then(|| format!("{available} available before it, floor {floor}"))
    }

    fn available(&self, now: Timestamp) -> i64 {
        self.available_of(self.ready_since.values().flatten().copied(), now)
    }

    fn available_of(&self, ready: impl Iterator<Item = Timestamp>, now: Timestamp) -> i64 {
        let is_available = |since: &Timestamp| now.duration_since(*since) >= self.allowed.min_ready;
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
