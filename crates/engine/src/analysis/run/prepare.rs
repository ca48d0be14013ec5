//! Is a run carried out as it is written? Its metrics with their arguments, its rules matched to
//! them, or what is wrong.

use std::collections::BTreeSet;

use gradus_api::analysis::{AnalysisRunStatus, Metric, ON_NO_DATA};
use gradus_api::values::{IntOrString, parse_go_duration};
use regex_lite::Regex;
use thiserror::Error;

use super::substitute::{self, SubstituteError};
use super::view::AnalysisRunView;
use crate::analysis::condition;
use crate::metrics::provider_count;
use crate::world::RunPhase;

/// Measurements of a metric that are kept where no rule says otherwise.
const KEPT: usize = 10;

/// The same where a condition looks at the values before.
const KEPT_HISTORY: usize = 100;

/// A run that can be carried out.
pub struct RunPlan {
    /// The metrics, in the order of the spec.
    pub metrics: Vec<PlannedMetric>,
    /// Has somebody asked it to end?
    pub is_ending: bool,
}

/// A metric of a run.
pub struct PlannedMetric {
    /// The metric, with its arguments.
    pub metric: Metric,
    /// Its result does not count.
    pub is_dry: bool,
    /// Measurements that are kept.
    pub kept: usize,
}

/// Why a run cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PrepareError {
    /// Arguments cannot be filled in.
    #[error("Unable to resolve metric arguments: {0}")]
    Arguments(#[from] SubstituteError),
    /// The spec is wrong.
    #[error("Analysis spec invalid: {0}")]
    Invalid(String),
}

impl RunPlan {
    /// Is it to end, because somebody asked for it or because a metric that counts has ended badly?
    pub fn is_terminating(&self, status: &AnalysisRunStatus) -> bool {
        let is_over = |result: &gradus_api::analysis::MetricResult| {
            let phase = RunPhase::of(&result.phase);
            !result.dry_run && (phase.is_bad() || phase == RunPhase::Inconclusive)
        };
        self.is_ending || status.metric_results.iter().any(is_over)
    }
}

/// Reads a run.
pub fn prepare(run: &AnalysisRunView) -> Result<RunPlan, PrepareError> {
    let values = substitute::values(&run.spec.args)?;
    let raw = run.metrics.as_array().map_or(&[][..], Vec::as_slice);
    let mut metrics = Vec::new();
    for raw in raw {
        let metric = substitute::metric(raw, &values)?;
        let kept = if condition::uses_history(&metric) { KEPT_HISTORY } else { KEPT };
        metrics.push(PlannedMetric { metric, is_dry: false, kept });
    }
    check(&metrics).map_err(PrepareError::Invalid)?;
    for (index, rule) in run.spec.dry_run.iter().enumerate() {
        for place in matching(&metrics, &rule.metric_name, "dryRun", index)? {
            metrics[place].is_dry = true;
        }
    }
    for (index, rule) in run.spec.measurement_retention.iter().enumerate() {
        for place in matching(&metrics, &rule.metric_name, "measurementRetention", index)? {
            metrics[place].kept =
                usize::try_from(rule.limit).ok().filter(|limit| *limit > 0).unwrap_or(KEPT);
        }
    }
    Ok(RunPlan { metrics, is_ending: run.spec.terminate })
}

/// The metrics whose names a rule matches. A pattern that cannot be read matches none.
fn matching(
    metrics: &[PlannedMetric],
    pattern: &str,
    field: &str,
    index: usize,
) -> Result<Vec<usize>, PrepareError> {
    let regex = Regex::new(pattern).ok();
    let is_match = |(place, planned): (usize, &PlannedMetric)| {
        regex.as_ref().is_some_and(|regex| regex.is_match(&planned.metric.name)).then_some(place)
    };
    let found: Vec<usize> = metrics.iter().enumerate().filter_map(is_match).collect();
    if found.is_empty() {
        let message = format!("{field}[{index}]: Rule didn't match any metric name(s)");
        return Err(PrepareError::Invalid(message));
    }
    Ok(found)
}

fn check(metrics: &[PlannedMetric]) -> Result<(), String> {
    if metrics.is_empty() {
        return Err("no metrics specified".to_owned());
    }
    let mut names = BTreeSet::new();
    for (index, PlannedMetric { metric, .. }) in metrics.iter().enumerate() {
        let problem = match names.insert(&metric.name) {
            false => Some(format!("duplicate name '{}'", metric.name)),
            true => limits(metric)
                .or_else(|| times(metric))
                .or_else(|| no_data(metric))
                .or_else(|| provider(metric)),
        };
        if let Some(problem) = problem {
            return Err(format!("metrics[{index}]: {problem}"));
        }
    }
    Ok(())
}

fn number(field: &Option<IntOrString>) -> i32 {
    field.as_ref().map_or(0, IntOrString::int_value)
}

fn no_data(metric: &Metric) -> Option<String> {
    let text = metric.on_no_data.as_str();
    (!text.is_empty() && !ON_NO_DATA.contains(&text))
        .then(|| format!("onNoData must be one of {}, not \"{text}\"", ON_NO_DATA.join(", ")))
}

fn limits(metric: &Metric) -> Option<String> {
    let (count, failures) = (number(&metric.count), number(&metric.failure_limit));
    let successes = number(&metric.consecutive_success_limit);
    let inconclusive = number(&metric.inconclusive_limit);
    let problem = match () {
        () if successes < 0 => "consecutiveSuccessLimit must be >= 0",
        () if failures < -1 => "failureLimit must be >= 0, or -1 to be disabled",
        () if successes == 0 && failures == -1 => {
            "failureLimit and consecutiveSuccessLimit cannot both be disabled"
        }
        () if inconclusive < 0 => "inconclusiveLimit must be >= 0",
        () if number(&metric.consecutive_error_limit) < 0 => "consecutiveErrorLimit must be >= 0",
        () if count > 0
            && failures >= 0
            && i64::from(count) < i64::from(failures) + i64::from(successes) =>
        {
            return Some(format!(
                "count ({count}) must be >= failureLimit + consecutiveSuccessLimit ({failures} + \
                 {successes}) if both >= 0"
            ));
        }
        () if count > 0 && failures < 0 && count < successes => {
            "count must be >= consecutiveSuccessLimit"
        }
        () if count > 0 && count < inconclusive => "count must be >= inconclusiveLimit",
        () => return None,
    };
    Some(problem.to_owned())
}

fn times(metric: &Metric) -> Option<String> {
    if number(&metric.count) > 1 && metric.interval.is_empty() {
        return Some("interval must be specified when count > 1".to_owned());
    }
    let wrong = |text: &str, field: &str| {
        let parsed = (!text.is_empty()).then(|| parse_go_duration(text).err()).flatten();
        parsed.map(|error| format!("invalid {field} string: {error}"))
    };
    wrong(&metric.interval, "interval").or_else(|| wrong(&metric.initial_delay, "startDelay"))
}

fn provider(metric: &Metric) -> Option<String> {
    match provider_count(&metric.provider) {
        0 => Some("no provider specified".to_owned()),
        1 => None,
        _ => Some("multiple providers specified".to_owned()),
    }
}
