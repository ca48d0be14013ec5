//! The Rollout's status: what was observed and decided. Written exactly as Go would write it.

use std::sync::Arc;

use serde_json::Value;

use crate::schema::free_form_object;
use crate::values::Time;
use crate::view::view;

view! {
    /// What was observed and decided about a Rollout.
    pub struct RolloutStatus {
        /// True if the update is aborted: by the controller after a failure, or by `kubectl argo
        /// rollouts abort`. `kubectl argo rollouts retry` clears it.
        abort: bool,
        /// Reasons why the update is paused. `kubectl argo rollouts promote` removes them to resume
        /// it.
        pause_conditions: Vec<PauseCondition>,
        /// True if the controller paused the update. Without `pauseConditions` it means that a
        /// person has resumed it.
        controller_pause: bool,
        /// Time at which the abort was first observed.
        aborted_at: Option<Time>,
        /// Pod template hash of the new revision, as in the label `rollouts-pod-template-hash`.
        current_pod_hash: String,
        /// Hash of the canary steps. If it changes, the update starts again with the first step.
        current_step_hash: String,
        /// Number of pods of all revisions.
        replicas: i32,
        /// Number of pods of the new revision.
        updated_replicas: i32,
        /// Number of ready pods: of all revisions with canary, of the active revision with
        /// blue-green.
        ready_replicas: i32,
        /// Number of pods that have been ready for `minReadySeconds`: of all revisions with canary,
        /// of the active revision with blue-green.
        available_replicas: i32,
        /// Index of the current step, counted from 0. It is the number of steps when all are done,
        /// and missing without steps.
        current_step_index: Option<i32>,
        /// Number of collisions of the pod template hash that were resolved so far.
        collision_count: Option<i32>,
        /// Value of `metadata.generation` that this status is about, as text.
        observed_generation: String,
        /// Latest observations: Available, Progressing, Paused, Healthy, Completed, InvalidSpec,
        /// ReplicaFailure.
        conditions: Vec<Condition>,
        /// State of a canary update.
        always canary: CanaryStatus,
        /// State of a blue-green update.
        always blue_green: BlueGreenStatus,
        /// Number of pods that a HorizontalPodAutoscaler counts, read through the scale
        /// subresource.
        hpa_replicas: i32 as "HPAReplicas",
        /// Label selector, as text, of the pods that a HorizontalPodAutoscaler measures, read
        /// through the scale subresource.
        selector: String,
        /// Pod template hash of the revision that was last promoted completely.
        stable_rs: String as "stableRS",
        /// Time of the last restart that was carried out completely, as `spec.restartAt` named it.
        restarted_at: Option<Time>,
        /// True if all remaining steps, pauses and analyses are to be skipped. Set by `kubectl argo
        /// rollouts promote --full`.
        promote_full: bool,
        /// Summary of the state. One of `Healthy`, `Progressing`, `Paused`, `Degraded`.
        phase: String,
        /// Reason for the phase, for people.
        message: String,
        /// Generation of the referenced workload that this status is about, as text. Empty without
        /// `workloadRef`.
        workload_observed_generation: String,
        /// Load balancer and target groups behind the Ingress, with `alb.ingress` and weight
        /// verification.
        alb: Option<Box<AlbStatus>>,
        /// Load balancers and target groups behind each Ingress, with `alb.ingresses` and weight
        /// verification.
        albs: Vec<AlbStatus>,
        /// Start, pauses and end of the current or last update.
        duration: Option<Box<DurationStatus>>,
    }

    /// Why the update waits, and since when.
    pub struct PauseCondition {
        /// Reason for the pause. One of `CanaryPauseStep`, `BlueGreenPause`,
        /// `InconclusiveAnalysisRun`, `InconclusiveExperiment`.
        required reason: String,
        /// Time at which the pause began.
        required start_time: Time,
    }

    /// One statement about an object, with its history.
    pub struct Condition {
        /// Kind of observation, for example `Available` or `Progressing`.
        required r#type: String,
        /// State of the observation. One of `True`, `False`, `Unknown`.
        required status: String,
        /// Time at which the condition was last written.
        required last_update_time: Time,
        /// Time at which `status` last changed.
        required last_transition_time: Time,
        /// Machine-readable reason for the last transition, in CamelCase.
        required reason: String,
        /// Human-readable reason for the last transition.
        required message: String,
    }

    /// What only canaries have.
    pub struct CanaryStatus {
        /// Name, phase and message of the current step's AnalysisRun.
        current_step_analysis_run_status: Option<Box<RunStatus>>,
        /// Name, phase and message of the AnalysisRun in the background.
        current_background_analysis_run_status: Option<Box<RunStatus>>,
        /// Name of the Experiment of the current step.
        current_experiment: String,
        /// Traffic weights that the router was last told. Missing without traffic routing.
        weights: Option<Box<TrafficWeights>>,
        /// Service that is the stable one, with `pingPong`. One of `ping`, `pong`.
        stable_ping_pong: String,
        /// Results of the step plugins that were called in this update.
        step_plugin_statuses: Vec<StepPluginStatus>,
    }

    /// How a run stands.
    pub struct RunStatus {
        /// Name of the AnalysisRun.
        required name: String,
        /// Phase of the AnalysisRun. One of `Running`, `Successful`, `Failed`, `Error`,
        /// `Inconclusive`, or empty before it has started.
        required status: String,
        /// Message of the AnalysisRun, which says why it has its phase.
        message: String,
    }

    /// How the traffic is split.
    pub struct TrafficWeights {
        /// Weight and target of the new revision.
        required canary: WeightDestination,
        /// Weight and target of the stable revision.
        required stable: WeightDestination,
        /// Weights and targets of the pods of an Experiment.
        additional: Vec<WeightDestination>,
        /// True if the router has confirmed the weights, false if it has not yet. Missing where it
        /// cannot be asked.
        verified: Option<bool>,
    }

    /// Who gets how much traffic.
    pub struct WeightDestination {
        /// Percentage of traffic sent there, or the part of `maxTrafficWeight`.
        required weight: i32,
        /// Name of the Service that gets the traffic.
        service_name: String,
        /// Pod template hash of the revision that gets the traffic.
        pod_template_hash: String,
    }

    /// What a step plugin said about one operation.
    pub struct StepPluginStatus {
        /// Index of the step, counted from 0.
        required index: i32,
        /// Name of the step plugin that was called.
        required name: String,
        /// State that the plugin returned, passed to it with the next call.
        status: Option<Arc<Value>> => free_form_object(),
        /// Operation that the plugin was called for. One of `Run`, `Terminate`, `Abort`.
        required operation: String,
        /// Result of the last call. One of `Running`, `Successful`, `Failed`, `Error`.
        phase: String,
        /// Message that the plugin returned with the last call.
        message: String,
        /// Time of the first call.
        started_at: Option<Time>,
        /// Time of the last call.
        updated_at: Option<Time>,
        /// Time of the call that ended the operation.
        finished_at: Option<Time>,
        /// Time to wait before the next call, as a duration such as `30s`.
        backoff: String,
        /// Number of calls so far.
        executions: i32,
        /// True if the plugin is disabled in the controller's configuration; the step counts as
        /// done.
        disabled: bool,
    }

    /// What only blue-green rollouts have.
    pub struct BlueGreenStatus {
        /// Pod template hash that the preview Service selects.
        preview_selector: String,
        /// Pod template hash that the active Service selects.
        active_selector: String,
        /// True if the new revision is to be scaled from `previewReplicaCount` to its full size.
        scale_up_preview_check_point: bool,
        /// AnalysisRun of the analysis before the promotion.
        pre_promotion_analysis_run_status: Option<Box<RunStatus>>,
        /// AnalysisRun of the analysis after the promotion.
        post_promotion_analysis_run_status: Option<Box<RunStatus>>,
    }

    /// The load balancer behind an ALB Ingress.
    pub struct AlbStatus {
        /// Load balancer of AWS behind the Ingress.
        always load_balancer: AwsResource,
        /// Target group of the new revision.
        always canary_target_group: AwsResource,
        /// Target group of the stable revision.
        always stable_target_group: AwsResource,
        /// Name of the Ingress that the load balancer belongs to.
        ingress: String,
    }

    /// A resource of AWS.
    pub struct AwsResource {
        /// Name of the resource in AWS.
        required name: String,
        /// Amazon Resource Name (ARN) of the resource.
        required arn: String,
        /// Last part of the ARN, as CloudWatch names the resource.
        full_name: String,
    }

    /// How long an update takes and took.
    pub struct DurationStatus {
        /// Time at which the current or last update began.
        rollout_started_at: Option<Time>,
        /// Time since which the update waits for a person. Missing while it does not.
        manual_pause_started_at: Option<Time>,
        /// Seconds that the update has waited for a person, without the pause that lasts.
        total_manual_pause_duration_seconds: Option<i64>,
        /// Time at which the update was promoted completely or aborted.
        finished_at: Option<Time>,
        /// Result of the update. One of `Promoted`, `FastPromoted`, `Aborted`, `Superseded`,
        /// `RolledBack`, `FastRolledBack`.
        completion_status: Option<String>,
    }
}

impl RolloutStatus {
    /// The condition of this type.
    pub fn condition(&self, r#type: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.r#type == r#type)
    }

    /// Is there a stable revision, and is it the current one?
    pub fn is_promoted(&self) -> bool {
        !self.stable_rs.is_empty() && self.stable_rs == self.current_pod_hash
    }

    /// The pause with this reason.
    pub fn pause_condition(&self, reason: &str) -> Option<&PauseCondition> {
        self.pause_conditions.iter().find(|pause| pause.reason == reason)
    }
}
