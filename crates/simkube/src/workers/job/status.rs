//! The status of a Job: how many of its pods ended how, and whether that is its end.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{FIRST_RETRY, LONGEST_RETRY, Wanted, ended_at, failures};
use crate::SimCluster;
use crate::behave::Phase;
use crate::object::Object;
use crate::request::Verb;
use crate::workers::replica_set::{is_active, phase, ready_since};

/// How a Job stands.
pub(super) struct Standing {
    started: Timestamp,
    pub(super) active: usize,
    ready: usize,
    succeeded: usize,
    failed: usize,
    /// Its end, if this is it.
    pub(super) end: Option<End>,
    /// Not before this moment another pod.
    pub(super) next_pod: Timestamp,
    /// When it has taken too long.
    pub(super) deadline: Option<Timestamp>,
}

/// How a Job ends.
pub(super) enum End {
    Complete,
    Failed { reason: &'static str, message: &'static str },
}

impl Standing {
    pub(super) fn of(job: &Object, wanted: &Wanted, pods: &[Arc<Object>], now: Timestamp) -> Self {
        let started = job.status["startTime"].as_str().and_then(|text| text.parse().ok());
        let started = started.unwrap_or(now);
        let of = |wanted: Phase| pods.iter().filter(move |pod| phase(pod) == wanted);
        let active = pods.iter().filter(|pod| is_active(pod));
        let ready = active.clone().filter(|pod| ready_since(pod).is_some()).count();
        let times: u32 = pods.iter().map(|pod| failures(pod)).sum();
        let last_failure = of(Phase::Failed).filter_map(|pod| ended_at(pod)).max();
        let pause = (FIRST_RETRY * (1 << times.saturating_sub(1).min(16))).min(LONGEST_RETRY);
        let deadline = wanted.deadline.map(|time| started + time);
        let (succeeded, failed) = (of(Phase::Succeeded).count(), of(Phase::Failed).count());
        let end = match () {
            () if succeeded >= wanted.completions => Some(End::Complete),
            () if times > wanted.back_off_limit => Some(End::Failed {
                reason: "BackoffLimitExceeded",
                message: "Job has reached the specified backoff limit",
            }),
            () if deadline.is_some_and(|deadline| deadline <= now) => Some(End::Failed {
                reason: "DeadlineExceeded",
                message: "Job was active longer than specified deadline",
            }),
            () => None,
        };
        Self {
            started,
            active: active.count(),
            ready,
            succeeded,
            failed,
            end,
            next_pod: last_failure.map_or(started, |at| at + pause),
            deadline,
        }
    }
}

/// When a Job ended, if it has.
pub(super) fn ended(job: &Object) -> Option<Timestamp> {
    let conditions = job.status["conditions"].as_array()?;
    let is_end = |one: &&Value| matches!(one["type"].as_str(), Some("Complete" | "Failed"));
    conditions.iter().find(is_end)?["lastTransitionTime"].as_str()?.parse().ok()
}

impl SimCluster {
    /// Writes the status if it changed.
    pub(super) fn write_job_status(
        &mut self,
        job: &Arc<Object>,
        standing: &Standing,
        now: Timestamp,
    ) {
        let second = |moment: Timestamp| {
            let cut = Timestamp::from_second(moment.as_second()).unwrap_or(moment);
            json!(cut.to_string())
        };
        let mut status = Map::new();
        let mut put = |field: &str, value: Value| status.insert(field.to_owned(), value);
        let is_over = standing.end.is_some();
        let numbers = [
            ("active", if is_over { 0 } else { standing.active }),
            ("succeeded", standing.succeeded),
            ("failed", standing.failed + if is_over { standing.active } else { 0 }),
        ];
        for (field, number) in numbers.into_iter().filter(|(_, number)| *number > 0) {
            put(field, json!(number));
        }
        put("ready", json!(if is_over { 0 } else { standing.ready }));
        put("terminating", json!(0));
        put("uncountedTerminatedPods", json!({}));
        put("startTime", second(standing.started));
        let condition = |kind: &str, reason: &str, message: &str| {
            json!({ "type": kind, "status": "True", "reason": reason, "message": message,
                "lastProbeTime": second(now), "lastTransitionTime": second(now) })
        };
        match &standing.end {
            None => {}
            Some(End::Complete) => {
                let (reason, message) =
                    ("CompletionsReached", "Reached expected number of succeeded pods");
                put("completionTime", second(now));
                put(
                    "conditions",
                    json!([
                        condition("SuccessCriteriaMet", reason, message),
                        condition("Complete", reason, message)
                    ]),
                );
            }
            Some(End::Failed { reason, message }) => {
                put(
                    "conditions",
                    json!([
                        condition("FailureTarget", reason, message),
                        condition("Failed", reason, message)
                    ]),
                );
            }
        }
        let status = Value::Object(status);
        if status == *job.status {
            return;
        }
        let after = Object { status: Arc::new(status), ..Object::clone(job) };
        let user = self.work.users.jobs.clone();
        self.put_own(after, Verb::Update, &user);
    }
}
