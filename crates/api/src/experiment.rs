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
        /// The sets of pods.
        required templates: Vec<ExperimentTemplate>,
        /// How long; empty means until it is ended or its required analyses succeed.
        duration: String,
        /// How long a set of pods may stand still; missing means 600.
        progress_deadline_seconds: Option<i32>,
        /// Ends it.
        terminate: bool,
        /// The analyses during it.
        analyses: Vec<ExperimentAnalysis>,
        /// Seconds its pods stay after its end; missing means 30.
        scale_down_delay_seconds: Option<i32>,
        /// Metrics whose result does not count.
        dry_run: Vec<DryRun>,
        /// How many measurements to keep.
        measurement_retention: Vec<MeasurementRetention>,
        /// Labels and annotations for its runs.
        always analysis_run_metadata: Metadata,
    }

    /// One set of pods.
    pub struct ExperimentTemplate {
        /// Its name.
        required name: String,
        /// How many pods; missing means 1.
        replicas: Option<i32>,
        /// How long a pod must be ready before it counts as available.
        min_ready_seconds: i32,
        /// Which pods belong to it.
        required selector: Option<LabelSelector> => kubernetes::label_selector(),
        /// The pods to run.
        required template: Arc<Value> => kubernetes::pod_template(),
        /// Asks for a Service of its own.
        service: Option<TemplateService>,
    }

    /// One analysis of an Experiment.
    pub struct ExperimentAnalysis {
        /// Its name.
        required name: String,
        /// The template it is made of.
        required template_name: String,
        /// Whether that is a ClusterAnalysisTemplate.
        cluster_scope: bool,
        /// Values for the template's arguments.
        args: Vec<Argument>,
        /// Whether the Experiment ends when this succeeds.
        required_for_completion: bool,
    }

    /// What was observed and decided about an Experiment.
    pub struct ExperimentStatus {
        /// Pending, Running, Successful, Failed, Error or Inconclusive.
        phase: String,
        /// Why that phase.
        message: String,
        /// When all sets of pods were available.
        available_at: Option<Time>,
        /// How each set of pods stands.
        template_statuses: Vec<TemplateStatus>,
        /// The conditions.
        conditions: Vec<Condition>,
        /// How each analysis stands.
        analysis_runs: Vec<ExperimentRunStatus>,
    }

    /// How one set of pods stands.
    pub struct TemplateStatus {
        /// Its name.
        required name: String,
        /// Its pods.
        required replicas: i32,
        /// Its pods of the current template.
        required updated_replicas: i32,
        /// Its ready pods.
        required ready_replicas: i32,
        /// Its available pods.
        required available_replicas: i32,
        /// How often the hash had to be varied.
        collision_count: Option<i32>,
        /// Progressing, Running, Successful, Failed or Error.
        status: String,
        /// Why that status.
        message: String,
        /// When it last changed.
        last_transition_time: Option<Time>,
        /// Its Service.
        service_name: String,
        /// Its hash.
        pod_template_hash: String,
    }

    /// How one analysis stands.
    pub struct ExperimentRunStatus {
        /// Its name.
        required name: String,
        /// Name of the run.
        required analysis_run: String,
        /// Phase of the run.
        required phase: String,
        /// Message of the run.
        message: String,
    }
}
