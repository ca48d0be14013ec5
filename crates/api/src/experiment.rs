//! The Experiment: some sets of pods side by side, for a while, under analysis.

use std::sync::Arc;

use serde_json::Value;

use crate::analysis::Argument;
use crate::crd::kubernetes;
use crate::rollout::canary::TemplateService;
use crate::rollout::status::Condition;
use crate::rollout::{DryRun, LabelSelector, MeasurementRetention, Metadata};
use crate::values::Time;
use crate::view::view;

view! {
    /// What a user asks of an Experiment.
    pub struct ExperimentSpec {
        /// Sets of pods to run side by side, at least one, with unique names. Required.
        required templates: Vec<ExperimentTemplate>,
        /// Length of the Experiment from the time that all its pods are available, as a duration
        /// such as `5m`. Default: none, it lasts until it is terminated or its required analyses
        /// succeed.
        duration: String,
        /// Seconds within which a set of pods must make progress before it fails, at least
        /// `minReadySeconds`. Default: 600.
        progress_deadline_seconds: Option<i32>,
        /// Ends the Experiment: its pods are removed and its AnalysisRuns terminated. Default:
        /// false.
        terminate: bool,
        /// Analyses that run while the pods are available. If one fails, the Experiment fails.
        /// Default: none.
        analyses: Vec<ExperimentAnalysis>,
        /// Seconds before the pods are removed after the end of the Experiment. Default: 30.
        scale_down_delay_seconds: Option<i32>,
        /// Metrics that are measured and reported without affecting the result. Default: none.
        dry_run: Vec<DryRun>,
        /// Number of measurements to keep in the status, per metric. Default: the latest 10 of
        /// each.
        measurement_retention: Vec<MeasurementRetention>,
        /// Labels and annotations to add to the AnalysisRuns. Default: none.
        always analysis_run_metadata: Metadata,
    }

    /// One set of pods.
    pub struct ExperimentTemplate {
        /// Name of the set of pods, unique within the Experiment. Required.
        required name: String,
        /// Number of pods, 0 or more. Default: 1.
        replicas: Option<i32>,
        /// Seconds that a new pod must be ready before it counts as available, at most
        /// `progressDeadlineSeconds`. Default: 0.
        min_ready_seconds: i32,
        /// Label selector of the pods. It must match the labels of `template` and must not be
        /// empty. Required.
        required selector: Option<LabelSelector> => kubernetes::label_selector(),
        /// Pod template of the pods to run, as in a Deployment; `kubectl explain pod.spec`
        /// documents its fields. Required.
        required template: Arc<Value> => kubernetes::pod_template(),
        /// Creates a Service for these pods, with all container ports. Default: none.
        service: Option<TemplateService>,
    }

    /// One analysis of an Experiment.
    pub struct ExperimentAnalysis {
        /// Name of the analysis, unique within the Experiment. Required.
        required name: String,
        /// Name of the AnalysisTemplate, in the namespace of the Experiment, or of the
        /// ClusterAnalysisTemplate. Required.
        required template_name: String,
        /// True if `templateName` is the name of a ClusterAnalysisTemplate. Default: false, it is
        /// an AnalysisTemplate.
        cluster_scope: bool,
        /// Values for the arguments that the template declares. Default: none.
        args: Vec<Argument>,
        /// Ends the Experiment when this analysis has succeeded, and every other that is required.
        /// Default: false.
        required_for_completion: bool,
    }

    /// What was observed and decided about an Experiment.
    pub struct ExperimentStatus {
        /// State of the Experiment. One of `Pending`, `Running`, `Successful`, `Failed`, `Error`,
        /// `Inconclusive`.
        phase: String,
        /// Reason for the phase, for people.
        message: String,
        /// Time at which all pods were first available. `duration` counts from here.
        available_at: Option<Time>,
        /// State of each set of pods.
        template_statuses: Vec<TemplateStatus>,
        /// Latest observations: Progressing, InvalidSpec.
        conditions: Vec<Condition>,
        /// State of each analysis.
        analysis_runs: Vec<ExperimentRunStatus>,
    }

    /// How one set of pods stands.
    pub struct TemplateStatus {
        /// Name of the set of pods.
        required name: String,
        /// Number of pods that exist.
        required replicas: i32,
        /// Number of pods of the current template.
        required updated_replicas: i32,
        /// Number of pods that are ready.
        required ready_replicas: i32,
        /// Number of pods that have been ready for `minReadySeconds`.
        required available_replicas: i32,
        /// Number of collisions of the pod template hash that were resolved so far.
        collision_count: Option<i32>,
        /// State of the set of pods. One of `Progressing`, `Running`, `Successful`, `Failed`,
        /// `Error`.
        status: String,
        /// Reason for the status, for people.
        message: String,
        /// Time at which the status or a number of pods last changed.
        last_transition_time: Option<Time>,
        /// Name of the Service of these pods, if there is one.
        service_name: String,
        /// Pod template hash of these pods.
        pod_template_hash: String,
    }

    /// How one analysis stands.
    pub struct ExperimentRunStatus {
        /// Name of the analysis.
        required name: String,
        /// Name of the AnalysisRun that was created for it.
        required analysis_run: String,
        /// Phase of the AnalysisRun. One of `Pending`, `Running`, `Successful`, `Failed`, `Error`,
        /// `Inconclusive`, or empty.
        required phase: String,
        /// Message of the AnalysisRun, which says why it has its phase.
        message: String,
    }
}
