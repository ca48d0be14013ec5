//! What did the metrics of a run measure, and what decided? In words for people, without secrets.

use gradus_api::analysis::{Measurement, Metric, MetricResult};

use super::prepare::{PlannedMetric, prepare};
use super::view::AnalysisRunView;
use crate::metrics;
use crate::world::RunPhase;

/// The most of a query or a value that is told, in characters.
const TOLD_LIMIT: usize = 300;

/// One metric, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToldMetric {
    /// Has it ended otherwise than well, and does it count?
    pub is_against: bool,
    /// Phase, deciding value, conditions and query.
    pub text: String,
}

/// Every metric of a run in the order of its spec. Nothing of a run whose spec cannot be carried out:
/// its message says why.
pub fn told(run: &AnalysisRunView) -> Vec<ToldMetric> {
    let Ok(plan) = prepare(run) else { return Vec::new() };
    let results = &run.status.metric_results;
    let of = |planned: &PlannedMetric| {
        let name = &planned.metric.name;
        metric(planned, results.iter().find(|result| result.name == *name))
    };
    plan.metrics.iter().map(of).collect()
}

fn metric(planned: &PlannedMetric, result: Option<&MetricResult>) -> ToldMetric {
    let phase = result.map_or(RunPhase::Unstarted, |result| RunPhase::of(&result.phase));
    let is_against = phase.is_bad() || phase == RunPhase::Inconclusive;
    let name = &planned.metric.name;
    let mut text = match result {
        Some(result) if !result.phase.is_empty() => {
            let counts = counts(result);
            format!("metric {name} is {}{counts}", result.phase)
        }
        _ => format!("metric {name} is not measured yet"),
    };
    if planned.is_dry {
        text.push_str(", which does not count (dryRun)");
    }
    if let Some(last) = result.and_then(|result| deciding(result, phase)) {
        text.push_str(&measured(last));
    }
    text.push_str(&conditions(&planned.metric));
    if let Some(provider) = metrics::provider(&planned.metric) {
        let (kind, address, query) = (provider.kind(), provider.address(), provider.query());
        let words = [kind, &address, &query];
        let words: Vec<String> =
            words.into_iter().filter(|word| !word.is_empty()).map(short).collect();
        text.push_str(&format!("; asked: {}", words.join(" ")));
    }
    ToldMetric { is_against: is_against && !planned.is_dry, text }
}

/// `, after 3 good and 1 bad`: what its measurements were.
fn counts(result: &MetricResult) -> String {
    let all = [
        (result.successful, "good"),
        (result.failed, "bad"),
        (result.inconclusive, "undecided"),
        (result.error, "out of order"),
    ];
    let some = all.iter().filter(|(count, _)| *count > 0);
    let some: Vec<String> = some.map(|(count, word)| format!("{count} {word}")).collect();
    if some.is_empty() { String::new() } else { format!(" ({})", some.join(", ")) }
}

/// The measurement that decided: the last one of the phase in which the metric ended.
fn deciding(result: &MetricResult, phase: RunPhase) -> Option<&Measurement> {
    let all = &result.measurements;
    let of_phase = all.iter().rev().find(|one| RunPhase::of(&one.phase) == phase);
    of_phase.or_else(|| all.last())
}

fn measured(last: &Measurement) -> String {
    let mut text = String::from(": ");
    match last.value.as_str() {
        "" => text.push_str("no value"),
        value => text.push_str(&format!("value {}", short(value))),
    }
    if let Some(at) = last.finished_at.or(last.started_at) {
        text.push_str(&format!(" at {at}"));
    }
    if !last.message.is_empty() {
        text.push_str(&format!(" ({})", short(last.message.trim())));
    }
    text
}

fn conditions(metric: &Metric) -> String {
    let all = [
        ("successCondition", &metric.success_condition),
        ("failureCondition", &metric.failure_condition),
    ];
    let some = all.iter().filter(|(_, condition)| !condition.is_empty());
    some.map(|(field, condition)| format!("; {field} {}", short(condition))).collect()
}

/// On one line, and not too long.
fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(TOLD_LIMIT) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
