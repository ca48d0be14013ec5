//! The Job controller: one pod after another, until enough have ended well or too many have failed.
//! Of what a real one does, parallel pods, indexes and failure policies are left out.

mod status;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::replica_set::{is_active, phase};
use crate::SimCluster;
use crate::admit;
use crate::behave::{ContainerState, Phase};
use crate::error::ApiError;
use crate::kinds::KindId;
use crate::object::{Key, Meta, Object, OwnerReference};
use crate::request::Options;

use status::Standing;

/// The first wait after a pod that failed; it doubles up to the longest.
const FIRST_RETRY: SignedDuration = SignedDuration::from_secs(10);
const LONGEST_RETRY: SignedDuration = SignedDuration::from_secs(600);
/// How long a refused write waits before it is tried again.
const REFUSED_RETRY: SignedDuration = SignedDuration::from_secs(1);

/// What a Job's spec says.
struct Wanted {
    completions: usize,
    back_off_limit: u32,
    deadline: Option<SignedDuration>,
    time_to_live: Option<SignedDuration>,
    is_suspended: bool,
}

impl Wanted {
    fn read(job: &Object) -> Self {
        let seconds = |field: &str| job.spec[field].as_i64().map(SignedDuration::from_secs);
        let number = |field: &str, or: u64| job.spec[field].as_u64().unwrap_or(or);
        Self {
            completions: usize::try_from(number("completions", 1)).unwrap_or(usize::MAX),
            back_off_limit: u32::try_from(number("backoffLimit", 6)).unwrap_or(u32::MAX),
            deadline: seconds("activeDeadlineSeconds"),
            time_to_live: seconds("ttlSecondsAfterFinished"),
            is_suspended: job.spec["suspend"] == true,
        }
    }
}

impl SimCluster {
    /// Brings one Job a step closer to its end, then writes its status.
    pub(super) fn sync_job(&mut self, key: &Key, now: Timestamp) {
        let Some(job) = self.store.get(KindId::JOB, key).cloned() else {
            self.work.jobs.forget(key);
            return;
        };
        let wanted = Wanted::read(&job);
        if job.meta.deleting.is_some() {
            return;
        }
        if let Some(ended) = status::ended(&job) {
            let due = wanted.time_to_live.map(|time| ended + time);
            let is_due = due.is_some_and(|due| due <= now);
            if is_due && self.remove_of_job(&job, KindId::JOB, now).is_ok() {
                return;
            }
            self.work.jobs.wake_at(key, due);
            return;
        }
        let pods = self.pods_of(&job);
        let mut standing = Standing::of(&job, &wanted, &pods, now);
        let mut retry = None;
        if standing.end.is_some() || wanted.is_suspended {
            for pod in pods.iter().filter(|pod| is_active(pod)) {
                let refused = self.remove_of_job(pod, KindId::POD, now).is_err();
                retry = retry.or(refused.then_some(now + REFUSED_RETRY));
            }
        } else if standing.active == 0 && standing.next_pod <= now {
            match self.make_job_pod(&job, now) {
                Ok(()) => standing.active = 1,
                Err(_) => retry = Some(now + REFUSED_RETRY),
            }
        }
        let next_pod = (standing.active == 0 && standing.end.is_none() && !wanted.is_suspended)
            .then_some(standing.next_pod)
            .filter(|next| *next > now);
        let deadline = standing.deadline.filter(|_| standing.end.is_none());
        let gone = wanted.time_to_live.filter(|_| standing.end.is_some()).map(|time| now + time);
        let next = [retry, next_pod, deadline, gone].into_iter().flatten().min();
        self.write_job_status(&job, &standing, now);
        self.work.jobs.wake_at(key, next);
    }

    fn pods_of(&self, job: &Object) -> Vec<Arc<Object>> {
        let uid = &job.meta.uid;
        let is_own = |pod: &&Arc<Object>| {
            pod.kind == KindId::POD && pod.controller().is_some_and(|owner| owner.uid == *uid)
        };
        self.store.dependents(uid).filter(is_own).cloned().collect()
    }

    fn make_job_pod(&mut self, job: &Object, now: Timestamp) -> Result<(), ApiError> {
        let (kinds, options) = (self.kinds.clone(), self.job_options());
        self.create_object(pod(job), None, kinds.get(KindId::POD), &options, now).map(drop)
    }

    fn remove_of_job(
        &mut self,
        object: &Arc<Object>,
        kind: KindId,
        now: Timestamp,
    ) -> Result<(), ApiError> {
        let (kinds, options) = (self.kinds.clone(), self.job_options());
        self.delete_object(object, kinds.get(kind), &options, now).map(drop)
    }

    fn job_options(&self) -> Options {
        Options { user: self.work.users.jobs.clone(), ..Options::default() }
    }
}

/// When a pod ended, if it has.
fn ended_at(pod: &Object) -> Option<Timestamp> {
    match pod.pod.as_ref()?.state.container {
        ContainerState::Terminated { finished, .. } => Some(finished),
        ContainerState::Waiting(_) | ContainerState::Running(_) => None,
    }
}

/// How often the containers of a pod have failed.
fn failures(pod: &Object) -> u32 {
    let restarts = pod.pod.as_ref().map_or(0, |status| status.state.restarts);
    restarts + u32::from(phase(pod) == Phase::Failed)
}

fn pod(job: &Object) -> Object {
    let template = job.template();
    let (mut meta, _) = Meta::from_json(template["metadata"].clone()).unwrap_or_default();
    meta.generate_name = format!("{}-", job.meta.name).into();
    meta.namespace = job.meta.namespace.clone();
    meta.owners = vec![OwnerReference {
        api_version: "batch/v1".into(),
        kind: "Job".into(),
        name: job.meta.name.clone(),
        uid: job.meta.uid.clone(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }];
    let spec: Arc<Value> = admit::pod_spec(template);
    Object {
        kind: KindId::POD,
        version: 0,
        meta: Arc::new(meta),
        status: admit::first_pod_status(&spec),
        spec,
        template: None,
        rest: Arc::default(),
        pod: None,
    }
}
