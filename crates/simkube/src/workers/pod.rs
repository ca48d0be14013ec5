//! The kubelet: starts and stops pods as their images behave.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::SimCluster;
use crate::behave::{Behaviours, Phase, PodState, Timeline};
use crate::kinds::KindId;
use crate::object::{Key, Object, whole_seconds};
use crate::pod_status::PodStatus;
use crate::request::{PatchKind, Verb};

/// How many specs are remembered with their timeline. Pods of one template share their spec.
const TIMELINES_KEPT: usize = 64;

/// How the pods behave: decided when the kubelet first sees a pod, then kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timelines {
    by_pod: BTreeMap<Key, Arc<Timeline>>,
    by_spec: Vec<(Arc<Value>, Arc<Timeline>)>,
}

impl Timelines {
    /// Pods seen from now on behave by other rules.
    pub(crate) fn forget_specs(&mut self) {
        self.by_spec.clear();
    }

    pub(crate) fn forget_pod(&mut self, key: &Key) {
        self.by_pod.remove(key);
    }

    fn of(&mut self, key: &Key, spec: &Arc<Value>, behaviours: &Behaviours) -> Arc<Timeline> {
        if let Some(found) = self.by_pod.get(key) {
            return found.clone();
        }
        let timeline = self.of_spec(spec, behaviours);
        self.by_pod.insert(key.clone(), timeline.clone());
        timeline
    }

    fn of_spec(&mut self, spec: &Arc<Value>, behaviours: &Behaviours) -> Arc<Timeline> {
        if let Some((_, found)) = self.by_spec.iter().find(|(one, _)| Arc::ptr_eq(one, spec)) {
            return found.clone();
        }
        let timeline = Arc::new(Timeline::of(spec, behaviours.of_pod(spec)));
        if self.by_spec.len() == TIMELINES_KEPT {
            self.by_spec.remove(0);
        }
        self.by_spec.push((spec.clone(), timeline.clone()));
        timeline
    }
}

impl SimCluster {
    /// Brings one pod to where it should be at `now`.
    pub(super) fn sync_pod(&mut self, key: &Key, now: Timestamp) {
        let Some(pod) = self.store.get(KindId::POD, key).cloned() else {
            self.work.pods.forget(key);
            return;
        };
        let timeline = self.work.timelines.of(key, &pod.spec, &self.behaviours);
        if pod.meta.deleting.is_some() {
            self.stop_pod(&pod, &timeline, now);
            return;
        }
        if pod.pod.as_ref().is_some_and(|status| status.state.phase.has_ended()) {
            self.work.pods.wake_at(key, None);
            return;
        }
        let started = pod.pod.as_ref().map_or(now, |status| status.started);
        let plan = timeline.at(started, now);
        self.work.pods.wake_at(key, plan.next);
        let status = self.next_status(&pod, plan.state, &timeline, now);
        self.write_pod(&pod, status);
    }

    fn next_status(
        &mut self,
        pod: &Object,
        state: PodState,
        timeline: &Timeline,
        now: Timestamp,
    ) -> PodStatus {
        let mut status = match &pod.pod {
            Some(status) => PodStatus { state, ..PodStatus::clone(status) },
            None => PodStatus {
                node: match pod.spec.get("nodeName").and_then(Value::as_str) {
                    _ if !timeline.unschedulable().is_empty() => "".into(),
                    Some(name) => name.into(),
                    None => self.work.users.node.clone(),
                },
                address: u32::try_from(self.count() & 0x00ff_ffff).unwrap_or_default(),
                started: now,
                state,
                ready: false,
                ready_since: whole_seconds(now),
                foreign: Arc::new(PodStatus::foreign_conditions(&pod.status)),
                crash: timeline.ends_in().cloned(),
                unschedulable: Arc::clone(timeline.unschedulable()),
            },
        };
        let ready = state.ready && status.gates_open(timeline.gates());
        if ready != status.ready {
            status.ready = ready;
            status.ready_since = whole_seconds(now);
        }
        status
    }

    fn write_pod(&mut self, pod: &Arc<Object>, status: PodStatus) {
        if pod.pod.as_deref() == Some(&status) {
            return;
        }
        let mut after = Object::clone(pod);
        after.pod = Some(Arc::new(status));
        after.status = Arc::default();
        let user = self.work.users.pods.clone();
        self.put_own(after, Verb::Patch(PatchKind::Strategic), &user);
    }

    /// A deleted pod goes once it has stopped; one that never ran goes at once.
    fn stop_pod(&mut self, pod: &Arc<Object>, timeline: &Timeline, now: Timestamp) {
        let key = pod.key();
        let grace = pod.meta.grace_seconds.unwrap_or_default();
        let asked = pod.meta.deleting.map(|end| end - jiff::SignedDuration::from_secs(grace));
        let ran = pod.pod.as_ref().is_some_and(|status| status.state.phase == Phase::Running);
        let end = match (asked, pod.meta.deleting) {
            (Some(asked), Some(deadline)) if ran => (asked + timeline.stops_within()).min(deadline),
            _ => now,
        };
        if now < end {
            self.work.pods.wake_at(&key, Some(end));
            return;
        }
        self.work.pods.wake_at(&key, None);
        let user = self.work.users.pods.clone();
        if pod.meta.finalizers.is_empty() {
            self.take(pod, Verb::Delete, &user);
        } else if pod.meta.grace_seconds != Some(0) {
            let mut after = Object::clone(pod);
            Arc::make_mut(&mut after.meta).grace_seconds = Some(0);
            self.put(after, Verb::Delete, &user);
        }
    }
}
