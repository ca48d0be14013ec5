//! The Rollout's status: what was observed and decided. Written exactly as Go would write it.

use std::sync::Arc;

use serde_json::Value;

use crate::schema::free_form_object;
use crate::values::Time;
use crate::view::view;

view! {
    /// What was observed and decided about a Rollout.
    pub struct RolloutStatus {
        /// The update is given up; a person clears it to retry.
        abort: bool,
        /// Why the update waits; a person clears them to resume.
        pause_conditions: Vec<PauseCondition>,
        /// The controller paused the update itself.
        controller_pause: bool,
        /// When the abort was first seen.
        aborted_at: Option<Time>,
        /// Hash of the new revision.
        current_pod_hash: String,
        /// Hash of the canary steps.
        current_step_hash: String,
        /// Pods of all revisions.
        replicas: i32,
        /// Pods of the new revision.
        updated_replicas: i32,
        /// Ready pods.
        ready_replicas: i32,
        /// Available pods.
        available_replicas: i32,
        /// The step that is being carried out; the number of steps when all are done.
        current_step_index: Option<i32>,
        /// How often the hash had to be varied.
        collision_count: Option<i32>,
        /// The generation this status is about, as text.
        observed_generation: String,
        /// The conditions.
        conditions: Vec<Condition>,
        /// What only canaries have.
        always canary: CanaryStatus,
        /// What only blue-green rollouts have.
        always blue_green: BlueGreenStatus,
        /// Pods a HorizontalPodAutoscaler counts.
        hpa_replicas: i32 as "HPAReplicas",
        /// Selector of the pods a HorizontalPodAutoscaler measures.
        selector: String,
        /// Hash of the stable revision.
        stable_rs: String as "stableRS",
        /// The last `restartAt` that was carried out.
        restarted_at: Option<Time>,
        /// A person wants the rest of the steps skipped.
        promote_full: bool,
        /// Healthy, Degraded, Progressing or Paused.
        phase: String,
        /// Why that phase.
        message: String,
        /// The generation of the referenced workload this status is about, as text.
        workload_observed_generation: String,
        /// The load balancer behind the one ALB Ingress.
        alb: Option<Box<AlbStatus>>,
        /// The load balancers behind several ALB Ingresses.
        albs: Vec<AlbStatus>,
        /// How long the update takes and took.
        duration: Option<Box<DurationStatus>>,
    }

    /// Why the update waits, and since when.
    pub struct PauseCondition {
        /// The reason.
        required reason: String,
        /// Since when.
        required start_time: Time,
    }

    /// One statement about an object, with its history.
    pub struct Condition {
        /// What it is about.
        required r#type: String,
        /// True, False or Unknown.
        required status: String,
        /// When it was last written.
        required last_update_time: Time,
        /// When `status` last changed.
        required last_transition_time: Time,
        /// Why, for machines.
        required reason: String,
        /// Why, for people.
        required message: String,
    }

    /// What only canaries have.
    pub struct CanaryStatus {
        /// The run of the current analysis step.
        current_step_analysis_run_status: Option<Box<RunStatus>>,
        /// The run during the whole update.
        current_background_analysis_run_status: Option<Box<RunStatus>>,
        /// Name of the Experiment of the current step.
        current_experiment: String,
        /// How the traffic is split.
        weights: Option<Box<TrafficWeights>>,
        /// Which of the two Services is stable: `ping` or `pong`.
        stable_ping_pong: String,
        /// What the step plugins said.
        step_plugin_statuses: Vec<StepPluginStatus>,
    }

    /// How a run stands.
    pub struct RunStatus {
        /// Its name.
        required name: String,
        /// Its phase.
        required status: String,
        /// Its message.
        message: String,
    }

    /// How the traffic is split.
    pub struct TrafficWeights {
        /// The new revision's part.
        required canary: WeightDestination,
        /// The stable revision's part.
        required stable: WeightDestination,
        /// The parts of experiments.
        additional: Vec<WeightDestination>,
        /// Whether the router confirmed it; missing where it cannot.
        verified: Option<bool>,
    }

    /// Who gets how much traffic.
    pub struct WeightDestination {
        /// How much.
        required weight: i32,
        /// Which Service.
        service_name: String,
        /// Which revision.
        pod_template_hash: String,
    }

    /// What a step plugin said about one operation.
    pub struct StepPluginStatus {
        /// The step.
        required index: i32,
        /// The plugin.
        required name: String,
        /// What it is told when called again.
        status: Option<Arc<Value>> => free_form_object(),
        /// Run, Terminate or Abort.
        required operation: String,
        /// Running, Successful, Failed or Error.
        phase: String,
        /// What the plugin says.
        message: String,
        /// When it was first called.
        started_at: Option<Time>,
        /// When it was last called.
        updated_at: Option<Time>,
        /// When it was done.
        finished_at: Option<Time>,
        /// How long to wait before calling it again.
        backoff: String,
        /// How often it was called.
        executions: i32,
        /// It is switched off, so the step counts as done.
        disabled: bool,
    }

    /// What only blue-green rollouts have.
    pub struct BlueGreenStatus {
        /// Hash the preview Service selects.
        preview_selector: String,
        /// Hash the active Service selects.
        active_selector: String,
        /// The preview is to be brought to full size.
        scale_up_preview_check_point: bool,
        /// The run before the switch.
        pre_promotion_analysis_run_status: Option<Box<RunStatus>>,
        /// The run after the switch.
        post_promotion_analysis_run_status: Option<Box<RunStatus>>,
    }

    /// The load balancer behind an ALB Ingress.
    pub struct AlbStatus {
        /// The load balancer.
        always load_balancer: AwsResource,
        /// Targets of the new revision.
        always canary_target_group: AwsResource,
        /// Targets of the stable revision.
        always stable_target_group: AwsResource,
        /// The Ingress.
        ingress: String,
    }

    /// A resource of AWS.
    pub struct AwsResource {
        /// Its name.
        required name: String,
        /// Its ARN.
        required arn: String,
        /// Its full name.
        full_name: String,
    }

    /// How long an update takes and took.
    pub struct DurationStatus {
        /// When the attempt began.
        rollout_started_at: Option<Time>,
        /// Since when it waits for a person.
        manual_pause_started_at: Option<Time>,
        /// How long it waited for people before that.
        total_manual_pause_duration_seconds: Option<i64>,
        /// When it ended.
        finished_at: Option<Time>,
        /// How it ended.
        completion_status: Option<String>,
    }
}

impl RolloutStatus {
    /// The condition of this type.
    pub fn condition(&self, r#type: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.r#type == r#type)
    }

    /// The pause with this reason.
    pub fn pause_condition(&self, reason: &str) -> Option<&PauseCondition> {
        self.pause_conditions.iter().find(|pause| pause.reason == reason)
    }
}
