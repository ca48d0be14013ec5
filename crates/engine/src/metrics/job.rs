//! A Job whose end is the verdict. It is created as a change and observed in the World.

mod manifest;

use std::sync::Arc;

use gradus_api::analysis::{Measurement, Metric};
use gradus_api::metrics::JobMetric;
use gradus_api::names::{annotation, label};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Call, ListOf, MetricFault, Next, Observed, Provider, Reading, TextMap};
use crate::ask::Class;
use crate::frame::Frame;
use crate::kinds;
use crate::uid::Uid;
use crate::world::RunPhase;

/// A metric that is measured by a Job.
pub struct JobProvider<'a> {
    /// The Job.
    pub spec: &'a JobMetric,
    /// The whole metric.
    pub metric: &'a Metric,
}

/// Where the name of the Job is kept.
const NAME: &str = "job-name";
/// Where the namespace of the Job is kept.
const NAMESPACE: &str = "job-namespace";

/// A Job as decisions see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobView {
    /// Name.
    pub name: Arc<str>,
    /// Identity.
    pub uid: Uid,
    /// `resourceVersion`.
    pub version: u64,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// Is its deletion asked for?
    pub deleting: bool,
    /// The run that it belongs to, as its label says.
    pub run: Arc<str>,
    /// The metric that it measures, as its annotation says.
    pub metric: Arc<str>,
    /// How it stands: Running, Successful or Failed.
    pub phase: RunPhase,
    /// What its Failed condition says.
    pub message: Arc<str>,
}

impl JobView {
    /// The view of a frame of a Job.
    pub fn read(frame: &Frame) -> Self {
        let conditions = frame.status["conditions"].as_array().map_or(&[][..], Vec::as_slice);
        let of = |kind: &str| conditions.iter().find(|condition| condition["type"] == kind);
        let (phase, condition) = match (of("Complete"), of("Failed")) {
            (Some(condition), _) => (RunPhase::Successful, Some(condition)),
            (None, Some(condition)) => (RunPhase::Failed, Some(condition)),
            (None, None) => (RunPhase::Running, None),
        };
        let annotated = frame.meta.annotations.get(annotation::ANALYSIS_RUN_METRIC);
        let message = condition.and_then(|condition| condition["message"].as_str());
        JobView {
            name: Arc::clone(&frame.meta.name),
            uid: frame.meta.uid,
            version: frame.meta.version,
            created: frame.meta.created,
            deleting: frame.meta.deleting.is_some(),
            run: frame.meta.labels.get(label::ANALYSIS_RUN_UID).map_or("", String::as_str).into(),
            metric: annotated.map_or("", String::as_str).into(),
            phase,
            message: message.unwrap_or_default().into(),
        }
    }
}

impl Provider for JobProvider<'_> {
    fn kind(&self) -> &'static str {
        "Job"
    }

    fn next(&self, call: Call<'_>, seen: &Observed<'_>) -> Next {
        match call {
            Call::Run => self.start(seen),
            Call::Resume(measurement) => look(measurement, seen),
            Call::Terminate(measurement) => end(measurement, seen),
        }
    }
}

impl JobProvider<'_> {
    fn start(&self, seen: &Observed<'_>) -> Next {
        let name = self.name(seen);
        let started = || {
            let metadata: TextMap = [
                (NAME.to_owned(), name.to_string()),
                (NAMESPACE.to_owned(), seen.run.job_namespace.to_string()),
            ]
            .into();
            Reading::InFlight { resume_at: seen.now, metadata }
        };
        let is_ours = |job: &Arc<JobView>| *job.run == *seen.run.uid.to_string();
        if seen.jobs.get(&name).is_some_and(is_ours) {
            return Next::Done(started());
        }
        match seen.refused {
            Some(refused) if matches!(refused.class, Class::Exists | Class::Denied) => {
                Next::Done(Reading::Error(MetricFault::new(refused.message.clone(), "")))
            }
            _ => match manifest::of(self.spec, &self.metric.name, &name, seen.run) {
                Ok(job) => {
                    Next::Create { name: Arc::clone(&name), job: Box::new(job), then: started() }
                }
                Err(message) => Next::refused(message),
            },
        }
    }

    /// `<uid of the run>.<metric>.<number>`, of at most 63 characters.
    fn name(&self, seen: &Observed<'_>) -> Arc<str> {
        let (before, after) = (seen.run.uid.to_string(), seen.number.to_string());
        let room = NAME_LIMIT.saturating_sub(before.len() + after.len() + 2);
        let metric: String = self.metric.name.chars().take(room).collect();
        format!("{before}.{metric}.{after}").into()
    }
}

/// The most characters of a Job's name: its pods carry it in a label.
const NAME_LIMIT: usize = 63;

/// The Job of a measurement.
pub fn name_of(measurement: &Measurement) -> Option<&str> {
    measurement.metadata.get(NAME).map(String::as_str)
}

fn named<'a>(measurement: &Measurement, seen: &Observed<'a>) -> Option<&'a Arc<JobView>> {
    seen.jobs.get(name_of(measurement)?)
}

fn look(measurement: &Measurement, seen: &Observed<'_>) -> Next {
    let Some(name) = name_of(measurement) else {
        return Next::refused("job metadata reference missing");
    };
    let Some(job) = seen.jobs.get(name) else {
        return Next::refused(format!("job.batch \"{name}\" not found"));
    };
    let judged = |phase: RunPhase, message: String| {
        let metadata = measurement.metadata.clone();
        Next::Done(Reading::Judged { phase, text: String::new(), message, metadata })
    };
    if job.phase != RunPhase::Running {
        return judged(job.phase, String::new());
    }
    let began = measurement.started_at.map_or(seen.now, |time| time.timestamp());
    let (look, end) = look_at(began, seen.now);
    let until = next_look(began, seen.now).min(end);
    match seen.pods.map(|pods| pods.iter().find_map(|pod| no_image(pod))) {
        None => {
            let labels = format!("{POD_LABEL}={}", job.name).into();
            let namespace = Arc::clone(&seen.run.job_namespace);
            Next::Pods { of: ListOf { kind: kinds::POD, namespace, labels }, look, until }
        }
        Some(None) => Next::Wait(Some(until)),
        Some(Some(message)) => judged(RunPhase::Inconclusive, message),
    }
}

/// The label by which the pods of a Job are found, in every version of Kubernetes.
const POD_LABEL: &str = "job-name";

/// Reasons for which a container waits that no waiting mends.
const NO_IMAGE: [&str; 3] = ["ErrImagePull", "ImagePullBackOff", "InvalidImageName"];

/// Why a pod will never run: the image of a container cannot be had.
fn no_image(pod: &Value) -> Option<String> {
    let of = |list: &str| pod["status"][list].as_array().map_or(&[][..], Vec::as_slice);
    let (first, second) = (of("initContainerStatuses"), of("containerStatuses"));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    first.iter().chain(second).find_map(|container| {
        let waiting = &container["state"]["waiting"];
        let reason = text(&waiting["reason"]);
        NO_IMAGE.contains(&reason.as_str()).then(|| {
            let (pod, container) = (text(&pod["metadata"]["name"]), text(&container["name"]));
            let message = text(&waiting["message"]);
            format!("Pod {pod}, container {container} has terminal error ({reason}): {message}\n")
        })
    })
}

/// Which look at the pods it is, and when it ends: the first ones last 1, 2, 4, … seconds, later
/// ones a minute.
fn look_at(began: Timestamp, now: Timestamp) -> (i64, Timestamp) {
    let elapsed = now.duration_since(began).as_secs().max(0);
    let (look, end) = match elapsed {
        0..DOUBLING_UNTIL => {
            let look = i64::from((elapsed + 1).ilog2());
            (look, (2 << look) - 1)
        }
        _ => {
            let look = (elapsed - DOUBLING_UNTIL) / LONGEST_LOOK;
            (
                i64::from((DOUBLING_UNTIL + 1).ilog2()) + look,
                DOUBLING_UNTIL + LONGEST_LOOK * (look + 1),
            )
        }
    };
    (look, began + SignedDuration::from_secs(end))
}

/// The seconds in which looks double, and how long each of the later ones is.
const DOUBLING_UNTIL: i64 = 63;
const LONGEST_LOOK: i64 = 60;

/// When to look again although the watch has shown nothing: less often the longer it takes.
fn next_look(began: Timestamp, now: Timestamp) -> Timestamp {
    let elapsed = now.duration_since(began).as_secs_f64().max(0.0);
    let pause = (2.0 * elapsed).sqrt().ceil().clamp(1.0, LONGEST_PAUSE);
    now + SignedDuration::from_secs(pause as i64)
}

/// The longest time between two looks, in seconds.
const LONGEST_PAUSE: f64 = 600.0;

fn end(measurement: &Measurement, seen: &Observed<'_>) -> Next {
    let ended = Reading::Judged {
        phase: RunPhase::Inconclusive,
        text: String::new(),
        message: String::new(),
        metadata: measurement.metadata.clone(),
    };
    match named(measurement, seen).filter(|job| !job.deleting) {
        Some(job) => Next::Delete { job: Arc::clone(job), then: ended },
        None => Next::Done(ended),
    }
}

/// The Jobs beyond the limit, oldest first.
pub fn superfluous<'a>(
    jobs: impl Iterator<Item = &'a Arc<JobView>>,
    limit: usize,
) -> Vec<&'a Arc<JobView>> {
    let mut jobs: Vec<&Arc<JobView>> = jobs.collect();
    jobs.sort_by(|one, other| (one.created, &one.name).cmp(&(other.created, &other.name)));
    let count = jobs.len().saturating_sub(limit);
    jobs.truncate(count);
    jobs.retain(|job| !job.deleting);
    jobs
}

#[cfg(test)]
mod tests;
