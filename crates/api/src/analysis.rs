//! AnalysisTemplate, ClusterAnalysisTemplate and AnalysisRun: what is measured, and the results.

use std::collections::BTreeMap;

use serde_json::json;

use crate::metrics::MetricProvider;
use crate::rollout::{DryRun, FieldRef, MeasurementRetention};
use crate::schema::with;
use crate::values::{IntOrString, Time};
use crate::view::view;

/// What a metric may do about a measurement without data.
pub const ON_NO_DATA: [&str; 4] = ["wait", "inconclusive", "pass", "fail"];

view! {
    /// A reusable set of metrics; the same for both kinds of template.
    pub struct AnalysisTemplateSpec {
        /// Metrics to measure, with unique names. At least one is required, here or in `templates`.
        metrics: Vec<Metric>,
        /// Arguments that the metrics use as `{{args.NAME}}`, with their default values. Default:
        /// none.
        args: Vec<Argument>,
        /// Metrics that are measured and reported without affecting the result. Default: none.
        dry_run: Vec<DryRun>,
        /// Number of measurements to keep in the status, per metric. Default: the latest 10 of
        /// each.
        measurement_retention: Vec<MeasurementRetention>,
        /// Further templates whose metrics and arguments are added to this one's. Default: none.
        templates: Vec<NestedTemplateRef>,
    }

    /// A reference from a template to another one.
    pub struct NestedTemplateRef {
        /// Name of the AnalysisTemplate, in the same namespace, or of the ClusterAnalysisTemplate.
        /// Required.
        always template_name: String,
        /// True if `templateName` is the name of a ClusterAnalysisTemplate. Default: false, it is
        /// an AnalysisTemplate.
        cluster_scope: bool,
    }

    /// What is measured in one run.
    pub struct AnalysisRunSpec {
        /// Metrics to measure, at least one, with unique names. Required.
        required metrics: Vec<Metric>,
        /// Arguments that the metrics use as `{{args.NAME}}`, each with a value. Default: none.
        args: Vec<Argument>,
        /// Ends the AnalysisRun: measurements in flight are stopped and no new ones are taken.
        /// Default: false.
        terminate: bool,
        /// Metrics that are measured and reported without affecting the result. Default: none.
        dry_run: Vec<DryRun>,
        /// Number of measurements to keep in the status, per metric. Default: the latest 10 of
        /// each.
        measurement_retention: Vec<MeasurementRetention>,
        /// Time after which the completed AnalysisRun is deleted. Default: none, it is kept.
        ttl_strategy: Option<TtlStrategy>,
    }

    /// When a run is deleted after its end; missing means never.
    pub struct TtlStrategy {
        /// Seconds after the end of an AnalysisRun after which it is deleted, where neither of the
        /// other two fields applies. Default: never.
        seconds_after_completion: Option<i32>,
        /// Seconds after the end of an AnalysisRun in phase Failed after which it is deleted.
        /// Default: `secondsAfterCompletion`.
        seconds_after_failure: Option<i32>,
        /// Seconds after the end of an AnalysisRun in phase Successful after which it is deleted.
        /// Default: `secondsAfterCompletion`.
        seconds_after_success: Option<i32>,
    }

    /// An argument of a template or run.
    pub struct Argument {
        /// Name of the argument, used in metrics as `{{args.NAME}}`. Required.
        required name: String,
        /// Value of the argument, as text; in a template the value where none is supplied. Default:
        /// none, it must then be supplied.
        value: Option<String>,
        /// Source of the value, instead of `value`. Default: none.
        value_from: Option<ArgumentSource>,
    }

    /// Where an argument's value comes from; exactly one.
    pub struct ArgumentSource {
        /// Takes the value from a Secret in the namespace of the AnalysisRun. It is read for each
        /// measurement and stored nowhere. Default: none.
        secret_key_ref: Option<SecretKeyRef>,
        /// Takes a field of the Rollout that starts the analysis as the value. Default: none.
        field_ref: Option<FieldRef>,
    }

    /// A key of a Secret.
    pub struct SecretKeyRef {
        /// Name of the Secret, in the namespace of the AnalysisRun. Required.
        required name: String,
        /// Key in the data of the Secret whose value is used. Required.
        required key: String,
    }

    /// One thing that is measured, and what its values mean.
    pub struct Metric {
        /// Name of the metric, unique within an AnalysisRun. Required.
        required name: String,
        /// Time between two measurements, as a duration such as `30s` or `5m`. Required if `count`
        /// is greater than 1. Default: none, a single measurement.
        interval: String,
        /// Time before the first measurement, as a duration such as `30s` or `5m`. Default: none.
        initial_delay: String,
        /// Number of measurements. Default: 1 without `interval`; with it, measuring lasts until
        /// the AnalysisRun is ended.
        count: Option<IntOrString>,
        /// Expression over `result`, for example `result[0] >= 0.95`. If it is true, the
        /// measurement is Successful; if not, it is Failed, or Inconclusive with a
        /// `failureCondition`. Default: none.
        success_condition: String,
        /// Expression over `result`. If it is true, the measurement is Failed; if not,
        /// `successCondition` decides, and without one it is Successful. Default: none; without
        /// both conditions every measurement is Successful.
        failure_condition: String,
        /// Number of Failed measurements that are tolerated; one more fails the metric. -1 disables
        /// the limit. Default: 0.
        failure_limit: Option<IntOrString>,
        /// Number of Inconclusive measurements that are tolerated, 0 or more; one more makes the
        /// metric Inconclusive. Default: 0.
        inconclusive_limit: Option<IntOrString>,
        /// Number of Error measurements in a row that are tolerated, 0 or more; one more makes the
        /// metric Error. Default: 4.
        consecutive_error_limit: Option<IntOrString>,
        /// Metric provider that takes the measurements. Exactly one is required.
        required provider: MetricProvider,
        /// Number of Successful measurements in a row that make the metric Successful, 0 or more; 0
        /// disables the limit. Default: 0.
        consecutive_success_limit: Option<IntOrString>,
        /// Meaning of a measurement without data: no value, an empty list, or nothing but NaN. One of
        /// `wait` (it is not counted, and measured again after `interval`, or after 10 seconds
        /// without one), `inconclusive`, `pass`, `fail`. Default: the conditions decide; a condition
        /// that needs a value is then an Error.
        on_no_data: String => with(String::schema(), json!({ "enum": ON_NO_DATA })),
    }

    /// How a run stands.
    pub struct AnalysisRunStatus {
        /// State of the AnalysisRun. One of `Running`, `Successful`, `Failed`, `Error`,
        /// `Inconclusive`, or empty before it has started.
        required phase: String,
        /// Reason for the phase, for people.
        message: String,
        /// Results of each metric that was measured so far.
        metric_results: Vec<MetricResult>,
        /// Time at which the first measurements were assessed.
        started_at: Option<Time>,
        /// Number of metrics by result, without those of `dryRun`.
        always run_summary: RunSummary,
        /// Number of metrics of `dryRun` by result.
        dry_run_summary: Option<RunSummary>,
        /// Time at which the AnalysisRun ended.
        completed_at: Option<Time>,
    }

    /// How many metrics ended how.
    pub struct RunSummary {
        /// Number of metrics altogether.
        count: i32,
        /// Number of metrics that ended Successful.
        successful: i32,
        /// Number of metrics that ended Failed: more measurements failed than `failureLimit`
        /// tolerates.
        failed: i32,
        /// Number of metrics that ended Inconclusive: more measurements than `inconclusiveLimit`
        /// tolerates.
        inconclusive: i32,
        /// Number of metrics that ended with Error: they could not be measured.
        error: i32,
    }

    /// Results of one metric.
    pub struct MetricResult {
        /// Name of the metric.
        required name: String,
        /// State of the metric. One of `Pending`, `Running`, `Successful`, `Failed`, `Error`,
        /// `Inconclusive`.
        required phase: String,
        /// Latest measurements, oldest first, as many as `measurementRetention` keeps.
        measurements: Vec<Measurement>,
        /// Reason for the phase, for people.
        message: String,
        /// Number of measurements so far that ended without Error.
        count: i32,
        /// Number of measurements that were Successful.
        successful: i32,
        /// Number of measurements that were Failed.
        failed: i32,
        /// Number of measurements that were Inconclusive.
        inconclusive: i32,
        /// Number of measurements that ended with Error.
        error: i32,
        /// Number of measurements with Error since the last one without.
        consecutive_error: i32,
        /// True if the metric does not affect the result of the AnalysisRun.
        dry_run: bool,
        /// Information that the provider gives about the metric, for example the resolved query.
        metadata: BTreeMap<String, String>,
        /// Number of Successful measurements since the last one that was not.
        consecutive_success: i32,
    }

    /// One measurement; in flight while it has no `finishedAt`.
    pub struct Measurement {
        /// State of the measurement. One of `Running`, `Successful`, `Failed`, `Error`,
        /// `Inconclusive`.
        required phase: String,
        /// Reason for the phase, for people; with Error what the provider reported.
        message: String,
        /// Time at which the measurement began.
        started_at: Option<Time>,
        /// Time at which the measurement ended. Missing while it is in flight.
        finished_at: Option<Time>,
        /// Measured value, as text.
        value: String,
        /// Information of the provider about the measurement, for example the name of its Job.
        metadata: BTreeMap<String, String>,
        /// Time at which the provider is asked again for a measurement in flight.
        resume_at: Option<Time>,
    }
}
