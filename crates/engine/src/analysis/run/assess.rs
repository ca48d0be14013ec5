//! What the measurements mean: for each metric, and for the whole run.

use gradus_api::analysis::{Metric, MetricResult, RunSummary};
use gradus_api::values::IntOrString;

use super::prepare::RunPlan;
use super::tasks::is_count_reached;
use super::view::AnalysisRunView;
use super::{RunDraft, event, stored};
use crate::decision::Event;
use crate::world::RunPhase;

/// Errors in a row that are too many, where the metric does not say.
const ERROR_LIMIT: i32 = 4;

/// Assesses every metric, then the run.
pub fn all(draft: &mut RunDraft<'_>, plan: &RunPlan, is_terminating: bool) {
    if draft.status.started_at.is_none() {
        draft.status.started_at = stored(draft.now);
    }
    let about = draft.run().reference();
    for planned in &plan.metrics {
        let name = &planned.metric.name;
        let results = &mut draft.status.metric_results;
        let Some(result) = results.iter_mut().find(|result| result.name == *name) else { continue };
        let phase = assess(&planned.metric, result, is_terminating);
        if phase.text() == result.phase {
            continue;
        }
        result.phase = phase.text().to_owned();
        result.message =
            result.measurements.last().map_or_else(String::new, |last| last.message.clone());
        if phase.is_completed() {
            let message = format!("Metric '{name}' Completed. Result: {}", phase.text());
            let reason = format!("Metric{}", phase.text());
            draft.events.push(event(about.clone(), phase, reason, message));
        }
    }
    let (phase, message) = assess_run(draft, plan, is_terminating);
    if phase.text() == draft.status.phase {
        return;
    }
    draft.status.phase = phase.text().to_owned();
    draft.status.message = message;
    if phase.is_completed() {
        draft.events.push(completion(draft.run(), phase));
        let now = draft.now;
        draft.status.completed_at.get_or_insert(gradus_api::values::Time::new(now));
    }
}

/// The Event that reports the end of a run.
pub fn completion(run: &AnalysisRunView, phase: RunPhase) -> Event {
    let reason = format!("AnalysisRun{}", phase.text());
    let message = format!("Analysis Completed. Result: {}", phase.text());
    event(run.reference(), phase, reason, message)
}

/// How a metric stands.
pub fn assess(metric: &Metric, result: &MetricResult, is_terminating: bool) -> RunPhase {
    let phase = RunPhase::of(&result.phase);
    if phase.is_completed() {
        return phase;
    }
    match result.measurements.last() {
        None if is_terminating => return RunPhase::Successful,
        None => return RunPhase::Pending,
        Some(last) if last.finished_at.is_none() => return RunPhase::Running,
        Some(_) => {}
    }
    if let Some((phase, _)) = broken_limit(metric, result, is_terminating) {
        return phase;
    }
    let successes = number(&metric.consecutive_success_limit, 0);
    if successes > 0 && result.consecutive_success >= successes {
        return RunPhase::Successful;
    }
    if is_count_reached(metric, result) {
        let has_failure_limit = number(&metric.failure_limit, 0) >= 0;
        return match (has_failure_limit, successes > 0) {
            (true, true) => RunPhase::Inconclusive,
            (false, true) => RunPhase::Failed,
            (_, false) => RunPhase::Successful,
        };
    }
    if is_terminating { RunPhase::Successful } else { RunPhase::Running }
}

/// The limit that the measurements exceed; a later one overrides an earlier one. A metric that is
/// ended before any measurement succeeded or failed has shown nothing, which is an error and never
/// a success.
fn broken_limit(
    metric: &Metric,
    result: &MetricResult,
    is_terminating: bool,
) -> Option<(RunPhase, String)> {
    let (failures, inconclusive) =
        (number(&metric.failure_limit, 0), number(&metric.inconclusive_limit, 0));
    let errors = number(&metric.consecutive_error_limit, ERROR_LIMIT);
    let mut broken = None;
    if failures >= 0 && result.failed > failures {
        let text = format!("failed ({}) > failureLimit ({failures})", result.failed);
        broken = Some((RunPhase::Failed, text));
    }
    if result.inconclusive > inconclusive {
        let found = result.inconclusive;
        let text = format!("inconclusive ({found}) > inconclusiveLimit ({inconclusive})");
        broken = Some((RunPhase::Inconclusive, text));
    }
    if result.consecutive_error > errors {
        let found = result.consecutive_error;
        let text = format!("consecutiveErrors ({found}) > consecutiveErrorLimit ({errors})");
        broken = Some((RunPhase::Error, text));
    }
    if broken.is_none() && is_terminating && result.count == 0 && result.error > 0 {
        let text = format!("errors ({}) and no other measurement", result.error);
        broken = Some((RunPhase::Error, text));
    }
    broken
}

/// How the run stands, and why. Counts the metrics by how they ended.
fn assess_run(
    draft: &mut RunDraft<'_>,
    plan: &RunPlan,
    is_terminating: bool,
) -> (RunPhase, String) {
    let mut message = if plan.is_ending { "Run Terminated".to_owned() } else { String::new() };
    let (mut summary, mut dry_summary) = (RunSummary::default(), RunSummary::default());
    let mut worst: Option<RunPhase> = None;
    let mut is_complete = true;
    for planned in &plan.metrics {
        let (metric, is_dry) = (&planned.metric, planned.is_dry);
        let counts = if is_dry { &mut dry_summary } else { &mut summary };
        counts.count += 1;
        let results = &mut draft.status.metric_results;
        let result = results.iter_mut().find(|result| result.name == metric.name);
        let Some(result) = result else {
            is_complete = false;
            continue;
        };
        let phase = RunPhase::of(&result.phase);
        if !phase.is_completed() {
            is_complete = false;
            continue;
        }
        let limit = broken_limit(metric, result, phase == RunPhase::Error);
        count(counts, limit.as_ref().map(|(phase, _)| *phase));
        if is_dry {
            worst = worst.or(Some(RunPhase::Successful));
            if let Some((phase, text)) = limit {
                result.message = format!("Metric assessed {} due to {text}", phase.text());
            }
        } else if worst.is_none_or(|worst| badness(worst) < badness(phase)) {
            worst = Some(phase);
            if let Some((phase, text)) = limit {
                message = of_metric(metric, phase, &text, &result.message);
            }
        }
    }
    draft.status.run_summary = summary;
    draft.status.dry_run_summary = Some(dry_summary);
    match worst {
        Some(worst) if is_terminating || is_complete => (worst, message),
        // It is told to end before anything was measured.
        None if is_terminating => (RunPhase::Successful, message),
        _ => (RunPhase::Running, String::new()),
    }
}

fn of_metric(metric: &Metric, phase: RunPhase, limit: &str, cause: &str) -> String {
    let message = format!("Metric \"{}\" assessed {} due to {limit}", metric.name, phase.text());
    match cause {
        "" => message,
        cause => format!("{message}: \"Error Message: {cause}\""),
    }
}

fn count(counts: &mut RunSummary, phase: Option<RunPhase>) {
    match phase {
        Some(RunPhase::Failed) => counts.failed += 1,
        Some(RunPhase::Inconclusive) => counts.inconclusive += 1,
        Some(RunPhase::Error) => counts.error += 1,
        _ => counts.successful += 1,
    }
}

/// How bad a phase is: the worst metric decides about the run.
fn badness(phase: RunPhase) -> u8 {
    match phase {
        RunPhase::Unstarted | RunPhase::Successful => 0,
        RunPhase::Running => 1,
        RunPhase::Pending => 2,
        RunPhase::Inconclusive => 3,
        RunPhase::Error => 4,
        RunPhase::Failed => 5,
    }
}

fn number(field: &Option<IntOrString>, otherwise: i32) -> i32 {
    field.as_ref().map_or(otherwise, IntOrString::int_value)
}
