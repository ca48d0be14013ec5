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
        /// Number of desired pods, 0 or more. Default: 1. The controller writes the default into
        /// the spec, so that a HorizontalPodAutoscaler can change it.
        replicas: Option<i32>,
        /// Label selector of the pods that belong to this Rollout. It must match the labels of
        /// `template`, must not be empty, and cannot be changed. Required unless `workloadRef` is
        /// set.
        selector: Option<LabelSelector> => immutable_selector(),
        /// Pod template of the pods to run, as in a Deployment; `kubectl explain pod.spec`
        /// documents its fields. A change of it starts an update. Required, but empty with
        /// `workloadRef`.
        template: Arc<Value> => kubernetes::pod_template(),
        /// Workload whose pod template and selector this Rollout uses instead of its own. Default:
        /// none.
        workload_ref: Option<WorkloadRef>,
        /// Seconds that a new pod must be ready before it counts as available, 0 or more. Default:
        /// 0.
        min_ready_seconds: i32,
        /// Revisions to which a rollback skips the steps and the analysis. Default: none, every
        /// rollback runs all steps.
        rollback_window: Option<RollbackWindow>,
        /// Strategy by which an update replaces the old pods. Exactly one of `blueGreen` and
        /// `canary` is required.
        strategy: Strategy,
        /// Number of old ReplicaSets to keep for a rollback, 0 or more. Default: 10.
        revision_history_limit: Option<i32>,
        /// Halts the update: no step is taken and nothing is promoted until it is false again. Set
        /// by `kubectl argo rollouts pause`. Default: false.
        paused: bool,
        /// Seconds within which an update must make progress before it is reported as Degraded, 0
        /// or more and greater than `minReadySeconds`. Default: 600.
        progress_deadline_seconds: Option<i32>,
        /// Aborts the update when `progressDeadlineSeconds` has passed without progress. Default:
        /// false, the failure is only reported.
        progress_deadline_abort: bool,
        /// Time in RFC 3339 format. Every pod that was created before it is deleted and created
        /// again, at most `maxUnavailable` at a time. Set by `kubectl argo rollouts restart`.
        /// Default: none.
        restart_at: Option<Time>,
        /// Number of finished AnalysisRuns and Experiments of this Rollout to keep. Default: 5
        /// successful and 5 unsuccessful ones.
        analysis: Option<RunHistory>,
    }

    /// A workload whose template a Rollout uses.
    pub struct WorkloadRef {
        /// API group and version of the workload, for example `apps/v1`. Required.
        api_version: String,
        /// Kind of the workload. Allowed: `Deployment`, `ReplicaSet`, `PodTemplate`. Required.
        kind: String,
        /// Name of the workload, in the namespace of the Rollout. Required.
        name: String,
        /// Mode in which a referenced Deployment is scaled to 0 while the first revision of the
        /// Rollout starts. Allowed: `never`, `onsuccess` (when the Rollout is Healthy),
        /// `progressively` (as pods of the Rollout become ready). Default: `never`.
        scale_down: String,
    }

    /// How far back a rollback skips the steps.
    pub struct RollbackWindow {
        /// Number of revisions before the current one that count as within the window, 0 or more. A
        /// rollback to one of them skips steps and analysis. Default: 0.
        revisions: i32,
    }

    /// Exactly one of the two.
    pub struct Strategy {
        /// Blue-green strategy: runs the new revision beside the active one, then switches the
        /// active Service to it. Exactly one of `blueGreen` and `canary` is required.
        blue_green: Option<Box<BlueGreenStrategy>>,
        /// Canary strategy: replaces the stable revision step by step. Exactly one of `blueGreen`
        /// and `canary` is required.
        canary: Option<Box<CanaryStrategy>>,
    }

    /// How many finished runs and experiments to keep.
    pub struct RunHistory {
        /// Number of AnalysisRuns, and of Experiments, in phase Successful to keep, 0 or more. The
        /// oldest are deleted first. Default: 5.
        successful_run_history_limit: Option<i32>,
        /// Number of AnalysisRuns, and of Experiments, in phase Failed, Error or Inconclusive to
        /// keep, 0 or more. The oldest are deleted first. Default: 5.
        unsuccessful_run_history_limit: Option<i32>,
    }

    /// Which objects are meant, by their labels.
    pub struct LabelSelector {
        /// Labels that an object must have with exactly these values. All of them must match.
        /// Default: none.
        match_labels: BTreeMap<String, String>,
        /// Further requirements on labels. All of them must match. Default: none.
        match_expressions: Vec<LabelRequirement>,
    }

    /// One requirement on a label.
    pub struct LabelRequirement {
        /// Key of the label that the requirement is about. Required.
        required key: String,
        /// Relation between the label and `values`. Allowed: `In`, `NotIn`, `Exists`,
        /// `DoesNotExist`. Required.
        required operator: String,
        /// Values that the operator compares the label with. Required with `In` and `NotIn`, must
        /// be empty with `Exists` and `DoesNotExist`.
        values: Vec<String>,
    }

    /// Labels and annotations that are added to pods or runs.
    pub struct Metadata {
        /// Labels to add, by key. Default: none.
        labels: BTreeMap<String, String>,
        /// Annotations to add, by key. Default: none.
        annotations: BTreeMap<String, String>,
    }

    /// Keeps new pods away from the nodes of the stable ones; exactly one of the two.
    pub struct AntiAffinity {
        /// Prefers nodes without pods of the other revision when new pods are scheduled. Exactly
        /// one of the two kinds is required.
        preferred_during_scheduling_ignored_during_execution: Option<PreferredAntiAffinity>,
        /// Schedules new pods only on nodes without pods of the other revision. Exactly one of the
        /// two kinds is required.
        required_during_scheduling_ignored_during_execution: Option<RequiredAntiAffinity>,
    }

    /// How much a separate node is preferred.
    pub struct PreferredAntiAffinity {
        /// Weight of the preference among the scheduler's others, 1 to 100. Required.
        required weight: i32,
    }

    /// A separate node is a must; there is nothing to configure.
    pub struct RequiredAntiAffinity {
    }

    /// The analysis a Rollout starts.
    pub struct RolloutAnalysis {
        /// AnalysisTemplates and ClusterAnalysisTemplates whose metrics make up the AnalysisRun.
        /// Without any, no AnalysisRun is started. Default: none.
        templates: Vec<TemplateRef>,
        /// Values for the arguments that the templates declare. They replace the templates' own
        /// values; arguments that no template declares are ignored. Default: none.
        args: Vec<RolloutArgument>,
        /// Metrics that are measured and reported without affecting the result. Default: none.
        dry_run: Vec<DryRun>,
        /// Number of measurements to keep in the status, per metric. Default: the latest 10 of
        /// each.
        measurement_retention: Vec<MeasurementRetention>,
        /// Labels and annotations to add to the AnalysisRun. Default: none.
        analysis_run_metadata: Option<Metadata>,
    }

    /// A reference to an AnalysisTemplate or ClusterAnalysisTemplate.
    pub struct TemplateRef {
        /// Name of the AnalysisTemplate, in the namespace of the Rollout, or of the
        /// ClusterAnalysisTemplate. Required.
        always template_name: String,
        /// True if `templateName` is the name of a ClusterAnalysisTemplate. Default: false, it is
        /// an AnalysisTemplate.
        cluster_scope: Option<bool>,
    }

    /// A value for an argument of an analysis.
    pub struct RolloutArgument {
        /// Name of the argument, as the templates declare it. Required.
        required name: String,
        /// Value of the argument, as text. Ignored with `valueFrom`. Default: the empty text.
        value: String,
        /// Source of the value. It takes precedence over `value`. Default: none.
        value_from: Option<RolloutArgumentSource>,
    }

    /// Where an argument's value comes from; exactly one.
    pub struct RolloutArgumentSource {
        /// Takes the pod template hash of a revision as the value. Allowed: `Stable`, `Latest`.
        /// Default: none. It takes precedence over `fieldRef`.
        pod_template_hash_value: Option<String>,
        /// Takes a field of the Rollout as the value. Default: none.
        field_ref: Option<FieldRef>,
    }

    /// A field of the object at hand.
    pub struct FieldRef {
        /// Path of a field, for example `metadata.labels['region']` or
        /// `status.canary.weights.canary.weight`. It must lead to a text, a number or a boolean.
        /// Required.
        required field_path: String,
    }

    /// Metrics whose result does not count.
    pub struct DryRun {
        /// Regular expression, not anchored, that selects metrics by their names: `.*` selects all.
        /// Required.
        required metric_name: String,
    }

    /// How many measurements of some metrics to keep.
    pub struct MeasurementRetention {
        /// Regular expression, not anchored, that selects metrics by their names. Of several rules
        /// that match a metric the last one counts. Required.
        required metric_name: String,
        /// Number of measurements to keep of each selected metric. The latest are kept; 0 or less
        /// means 10. Required.
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
