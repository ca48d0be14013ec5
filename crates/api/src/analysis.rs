//! AnalysisTemplate, ClusterAnalysisTemplate and AnalysisRun: what is measured, and the results.

use std::collections::BTreeMap;

use crate::metrics::MetricProvider;
use crate::rollout::{DryRun, FieldRef, MeasurementRetention};
use crate::values::{IntOrString, Time};
use crate::view::view;

view! {
    /// A reusable set of metrics; the same for both kinds of template.
    pub struct AnalysisTemplateSpec {
        /// What is measured.
        metrics: Vec<Metric>,
        /// The arguments it takes.
        args: Vec<Argument>,
        /// Metrics whose result does not count.
        dry_run: Vec<DryRun>,
        /// How many measurements to keep.
        measurement_retention: Vec<MeasurementRetention>,
        /// Templates whose metrics belong to this one too.
        templates: Vec<NestedTemplateRef>,
    }

    /// A reference from a template to another one.
    pub struct NestedTemplateRef {
        /// Its name.
        always template_name: String,
        /// Whether it is a ClusterAnalysisTemplate.
        cluster_scope: bool,
    }

    /// What is measured in one run.
    pub struct AnalysisRunSpec {
        /// The metrics.
        required metrics: Vec<Metric>,
        /// The arguments, with their values.
        args: Vec<Argument>,
        /// Ends it.
        terminate: bool,
        /// Metrics whose result does not count.
        dry_run: Vec<DryRun>,
        /// How many measurements to keep.
        measurement_retention: Vec<MeasurementRetention>,
        /// When it is deleted after its end.
        ttl_strategy: Option<TtlStrategy>,
    }

    /// When a run is deleted after its end; missing means never.
    pub struct TtlStrategy {
        /// Seconds, where nothing more special is set.
        seconds_after_completion: Option<i32>,
        /// Seconds after a failure.
        seconds_after_failure: Option<i32>,
        /// Seconds after a success.
        seconds_after_success: Option<i32>,
    }

    /// An argument of a template or run.
    pub struct Argument {
        /// Its name.
        required name: String,
        /// Its value, or default.
        value: Option<String>,
        /// Where its value comes from.
        value_from: Option<ArgumentSource>,
    }

    /// Where an argument's value comes from; exactly one.
    pub struct ArgumentSource {
        /// A key of a Secret.
        secret_key_ref: Option<SecretKeyRef>,
        /// A field of the object at hand.
        field_ref: Option<FieldRef>,
    }

    /// A key of a Secret.
    pub struct SecretKeyRef {
        /// The Secret.
        required name: String,
        /// The key.
        required key: String,
    }

    /// One thing that is measured, and what its values mean.
    pub struct Metric {
        /// Its name, unique in a run.
        required name: String,
        /// Time between measurements; empty means one measurement.
        interval: String,
        /// Time before the first measurement.
        initial_delay: String,
        /// How many measurements; missing means one, or no end where there is an interval.
        count: Option<IntOrString>,
        /// When a value is good.
        success_condition: String,
        /// When a value is bad.
        failure_condition: String,
        /// How many bad values are too many.
        failure_limit: Option<IntOrString>,
        /// How many undecided values are too many.
        inconclusive_limit: Option<IntOrString>,
        /// How many errors in a row are too many; missing means 4.
        consecutive_error_limit: Option<IntOrString>,
        /// Who measures.
        required provider: MetricProvider,
        /// How many good values in a row are enough.
        consecutive_success_limit: Option<IntOrString>,
    }

    /// How a run stands.
    pub struct AnalysisRunStatus {
        /// Empty, Running, Successful, Failed, Error or Inconclusive.
        required phase: String,
        /// Why that phase.
        message: String,
        /// Results per metric.
        metric_results: Vec<MetricResult>,
        /// When it began.
        started_at: Option<Time>,
        /// How the metrics that count ended.
        always run_summary: RunSummary,
        /// How the metrics that do not count ended.
        dry_run_summary: Option<RunSummary>,
        /// When it ended.
        completed_at: Option<Time>,
    }

    /// How many metrics ended how.
    pub struct RunSummary {
        /// All of them.
        count: i32,
        /// Successful ones.
        successful: i32,
        /// Failed ones.
        failed: i32,
        /// Undecided ones.
        inconclusive: i32,
        /// Those that could not be measured.
        error: i32,
    }

    /// Results of one metric.
    pub struct MetricResult {
        /// The metric.
        required name: String,
        /// How it stands.
        required phase: String,
        /// The latest measurements.
        measurements: Vec<Measurement>,
        /// Why that phase.
        message: String,
        /// Measurements without an error.
        count: i32,
        /// Good ones.
        successful: i32,
        /// Bad ones.
        failed: i32,
        /// Undecided ones.
        inconclusive: i32,
        /// Errors.
        error: i32,
        /// Errors in a row, up to now.
        consecutive_error: i32,
        /// Its result does not count.
        dry_run: bool,
        /// What the provider says about the metric.
        metadata: BTreeMap<String, String>,
        /// Good ones in a row, up to now.
        consecutive_success: i32,
    }

    /// One measurement; in flight while it has no `finishedAt`.
    pub struct Measurement {
        /// How it stands.
        required phase: String,
        /// Why that phase.
        message: String,
        /// When it began.
        started_at: Option<Time>,
        /// When it ended.
        finished_at: Option<Time>,
        /// The value, as text.
        value: String,
        /// What the provider needs to go on.
        metadata: BTreeMap<String, String>,
        /// When the provider is asked again.
        resume_at: Option<Time>,
    }
}
