//! The Rollout's spec: what should run, how many, and by which strategy it changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::crd::kubernetes;
use crate::schema::with;
use crate::values::Time;
use crate::view::view;

pub mod blue_green;
pub mod canary;
pub mod status;

pub use blue_green::BlueGreenStrategy;
pub use canary::{CanaryStep, CanaryStrategy, StepKind};
pub use status::RolloutStatus;

view! {
    /// What a user asks of a Rollout.
    pub struct RolloutSpec {
        /// Desired pods; missing means 1.
        replicas: Option<i32>,
        /// Which pods belong to it. Immutable.
        selector: Option<LabelSelector> => immutable_selector(),
        /// The pods to run.
        template: Arc<Value> => kubernetes::pod_template(),
        /// Takes the template from another workload instead.
        workload_ref: Option<WorkloadRef>,
        /// How long a pod must be ready before it counts as available.
        min_ready_seconds: i32,
        /// How far back a rollback skips the steps.
        rollback_window: Option<RollbackWindow>,
        /// How a change is carried out.
        strategy: Strategy,
        /// Old ReplicaSets to keep; missing means 10.
        revision_history_limit: Option<i32>,
        /// A person halts the update.
        paused: bool,
        /// How long an update may stand still; missing means 600.
        progress_deadline_seconds: Option<i32>,
        /// Whether standing still that long gives the update up.
        progress_deadline_abort: bool,
        /// Restart every pod created before this time.
        restart_at: Option<Time>,
        /// How many runs and experiments to keep.
        analysis: Option<RunHistory>,
    }

    /// A workload whose template a Rollout uses.
    pub struct WorkloadRef {
        /// Group and version.
        api_version: String,
        /// Deployment, ReplicaSet or PodTemplate.
        kind: String,
        /// Name in the Rollout's namespace.
        name: String,
        /// When the workload's own pods go: `never`, `onsuccess` or `progressively`.
        scale_down: String,
    }

    /// How far back a rollback skips the steps.
    pub struct RollbackWindow {
        /// Number of revisions.
        revisions: i32,
    }

    /// Exactly one of the two.
    pub struct Strategy {
        /// Two full sets of pods and a switch.
        blue_green: Option<Box<BlueGreenStrategy>>,
        /// Step by step.
        canary: Option<Box<CanaryStrategy>>,
    }

    /// How many finished runs and experiments to keep.
    pub struct RunHistory {
        /// Successful ones; missing means 5.
        successful_run_history_limit: Option<i32>,
        /// All others; missing means 5.
        unsuccessful_run_history_limit: Option<i32>,
    }

    /// Which objects are meant, by their labels.
    pub struct LabelSelector {
        /// Labels that must be equal.
        match_labels: BTreeMap<String, String>,
        /// Further requirements.
        match_expressions: Vec<LabelRequirement>,
    }

    /// One requirement on a label.
    pub struct LabelRequirement {
        /// The label's key.
        required key: String,
        /// In, NotIn, Exists or DoesNotExist.
        required operator: String,
        /// What the operator compares with.
        values: Vec<String>,
    }

    /// Labels and annotations that are added to pods or runs.
    pub struct Metadata {
        /// Labels.
        labels: BTreeMap<String, String>,
        /// Annotations.
        annotations: BTreeMap<String, String>,
    }

    /// Keeps new pods away from the nodes of the stable ones; exactly one of the two.
    pub struct AntiAffinity {
        /// If possible.
        preferred_during_scheduling_ignored_during_execution: Option<PreferredAntiAffinity>,
        /// Always.
        required_during_scheduling_ignored_during_execution: Option<RequiredAntiAffinity>,
    }

    /// How much a separate node is preferred.
    pub struct PreferredAntiAffinity {
        /// From 1 to 100.
        required weight: i32,
    }

    /// A separate node is a must; there is nothing to configure.
    pub struct RequiredAntiAffinity {
    }

    /// The analysis a Rollout starts.
    pub struct RolloutAnalysis {
        /// The templates that make up the run.
        templates: Vec<TemplateRef>,
        /// Values for the templates' arguments.
        args: Vec<RolloutArgument>,
        /// Metrics whose result does not count.
        dry_run: Vec<DryRun>,
        /// How many measurements to keep.
        measurement_retention: Vec<MeasurementRetention>,
        /// Labels and annotations for the run.
        analysis_run_metadata: Option<Metadata>,
    }

    /// A reference to an AnalysisTemplate or ClusterAnalysisTemplate.
    pub struct TemplateRef {
        /// Its name.
        always template_name: String,
        /// Whether it is a ClusterAnalysisTemplate.
        cluster_scope: Option<bool>,
    }

    /// A value for an argument of an analysis.
    pub struct RolloutArgument {
        /// The argument's name.
        required name: String,
        /// The value itself.
        value: String,
        /// Where the value comes from.
        value_from: Option<RolloutArgumentSource>,
    }

    /// Where an argument's value comes from; exactly one.
    pub struct RolloutArgumentSource {
        /// The hash of a revision: `Stable` or `Latest`.
        pod_template_hash_value: Option<String>,
        /// A field of the Rollout.
        field_ref: Option<FieldRef>,
    }

    /// A field of the object at hand.
    pub struct FieldRef {
        /// Its path.
        required field_path: String,
    }

    /// Metrics whose result does not count.
    pub struct DryRun {
        /// Matches the metrics' names: a regular expression, not anchored.
        required metric_name: String,
    }

    /// How many measurements of some metrics to keep.
    pub struct MeasurementRetention {
        /// Matches the metrics' names: a regular expression, not anchored.
        required metric_name: String,
        /// How many.
        required limit: i32,
    }
}

fn immutable_selector() -> Value {
    with(
        kubernetes::label_selector(),
        json!({
            "x-kubernetes-validations": [
                { "rule": "self == oldSelf", "message": ".spec.selector is immutable" },
            ],
        }),
    )
}

#[cfg(test)]
mod tests;
