//! What is due for one metric now, and when the run must be looked at again.

use gradus_api::analysis::{AnalysisRunStatus, Measurement, Metric, MetricResult};
use gradus_api::values::{IntOrString, Time, parse_go_duration};
use jiff::{SignedDuration, Timestamp};

use super::prepare::RunPlan;
use super::{RunDraft, later};
use crate::world::RunPhase;

/// Pause after a measurement that could not be made, and between those of a metric without an
/// interval.
const RETRY: SignedDuration = SignedDuration::from_secs(10);

/// The shortest pause between two measurements: times are stored in whole seconds, so a shorter one
/// would be none at all.
const SHORTEST: SignedDuration = SignedDuration::from_secs(1);

/// What is due for a metric.
#[derive(Clone, Debug, PartialEq)]
pub enum MetricTask {
    /// Nothing, ever.
    Nothing,
    /// Nothing before this moment.
    Until(Timestamp),
    /// Nothing before the run has begun.
    Begin,
    /// A new measurement.
    Measure,
    /// Another look at the last measurement.
    Resume,
    /// The end of the last measurement.
    Terminate,
}

/// What is due for a metric.
pub fn due(
    metric: &Metric,
    status: &AnalysisRunStatus,
    is_terminating: bool,
    now: Timestamp,
) -> MetricTask {
    let result = status.metric_results.iter().find(|result| result.name == metric.name);
    if result.is_some_and(|result| RunPhase::of(&result.phase).is_completed()) {
        return MetricTask::Nothing;
    }
    let last = result.and_then(|result| result.measurements.last());
    match (last, result) {
        (Some(last), _) if last.finished_at.is_none() => in_flight(last, is_terminating, now),
        _ if is_terminating => MetricTask::Nothing,
        (Some(last), Some(result)) if !is_count_reached(metric, result) => {
            until(later(finished(last), pause_after(metric, last)), now)
        }
        (Some(_), _) => MetricTask::Nothing,
        (None, _) => match (initial_delay(metric), status.started_at) {
            (None, _) => MetricTask::Measure,
            (Some(_), None) => MetricTask::Begin,
            (Some(delay), Some(began)) => until(later(began.timestamp(), delay), now),
        },
    }
}

/// When the run must be looked at again although nothing happens.
pub fn wake(draft: &mut RunDraft<'_>, plan: &RunPlan) {
    if draft.is_completed() {
        draft.wake_at = None;
        return;
    }
    let is_terminating = plan.is_terminating(&draft.status);
    for planned in &plan.metrics {
        match due(&planned.metric, &draft.status, is_terminating, draft.now) {
            MetricTask::Until(moment) => draft.wake(moment),
            MetricTask::Begin
            | MetricTask::Measure
            | MetricTask::Resume
            | MetricTask::Terminate
            | MetricTask::Nothing => {}
        }
    }
}

/// How many measurements a metric has at most; `None` where it goes on until it is ended.
pub fn effective_count(metric: &Metric) -> Option<i32> {
    match metric.count.as_ref().map_or(0, IntOrString::int_value) {
        0 if metric.interval.is_empty() => Some(1),
        0 => None,
        count => Some(count),
    }
}

/// Has the metric all its measurements? Errors do not count.
pub fn is_count_reached(metric: &Metric, result: &MetricResult) -> bool {
    effective_count(metric).is_some_and(|count| result.count >= count)
}

fn in_flight(last: &Measurement, is_terminating: bool, now: Timestamp) -> MetricTask {
    match last.resume_at.map(Time::timestamp) {
        _ if is_terminating => MetricTask::Terminate,
        Some(moment) if now < moment => MetricTask::Until(moment),
        _ => MetricTask::Resume,
    }
}

fn until(moment: Timestamp, now: Timestamp) -> MetricTask {
    if moment <= now { MetricTask::Measure } else { MetricTask::Until(moment) }
}

fn finished(last: &Measurement) -> Timestamp {
    last.finished_at.map(Time::timestamp).unwrap_or_default()
}

fn pause_after(metric: &Metric, last: &Measurement) -> SignedDuration {
    if RunPhase::of(&last.phase) == RunPhase::Error {
        return RETRY;
    }
    interval(metric)
}

/// The pause between two measurements.
pub fn interval(metric: &Metric) -> SignedDuration {
    parse_go_duration(&metric.interval).unwrap_or(RETRY).max(SHORTEST)
}

fn initial_delay(metric: &Metric) -> Option<SignedDuration> {
    parse_go_duration(&metric.initial_delay).ok()
}
