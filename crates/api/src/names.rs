//! Every fixed text of the API: keys, kinds, condition types, reasons, phases. Each once.

/// API group of all kinds.
pub const GROUP: &str = "argoproj.io";
/// The one version of the group.
pub const VERSION: &str = "v1alpha1";
/// Group and version as objects carry them.
pub const API_VERSION: &str = "argoproj.io/v1alpha1";
/// `source.component` of our Events.
pub const EVENT_SOURCE: &str = "rollouts-controller";
/// ConfigMap that lists the plugins.
pub const CONFIG_MAP: &str = "argo-rollouts-config";

/// The kinds of the group.
pub mod kind {
    /// A progressively delivered workload.
    pub const ROLLOUT: &str = "Rollout";
    /// One run of an analysis.
    pub const ANALYSIS_RUN: &str = "AnalysisRun";
    /// A template for runs, in a namespace.
    pub const ANALYSIS_TEMPLATE: &str = "AnalysisTemplate";
    /// A template for runs, for the whole cluster.
    pub const CLUSTER_ANALYSIS_TEMPLATE: &str = "ClusterAnalysisTemplate";
    /// ReplicaSets beside a Rollout, for comparison.
    pub const EXPERIMENT: &str = "Experiment";
}

/// The plural names of the kinds, as in URLs.
pub mod plural {
    /// Plural of Rollout.
    pub const ROLLOUTS: &str = "rollouts";
    /// Plural of AnalysisRun.
    pub const ANALYSIS_RUNS: &str = "analysisruns";
    /// Plural of AnalysisTemplate.
    pub const ANALYSIS_TEMPLATES: &str = "analysistemplates";
    /// Plural of ClusterAnalysisTemplate.
    pub const CLUSTER_ANALYSIS_TEMPLATES: &str = "clusteranalysistemplates";
    /// Plural of Experiment.
    pub const EXPERIMENTS: &str = "experiments";
}

/// Label keys.
pub mod label {
    /// Marks a Gateway API route while a canary has traffic, unless the configuration of the router
    /// says otherwise.
    pub const GATEWAY_CANARY: &str = "rollouts.argoproj.io/gatewayapi-canary";
    /// Hash of the pod template: on ReplicaSets, their selectors and pods, Service selectors,
    /// runs and experiments.
    pub const POD_TEMPLATE_HASH: &str = "rollouts-pod-template-hash";
    /// Which controller instance serves the object.
    pub const INSTANCE_ID: &str = "argo-rollouts.argoproj.io/controller-instance-id";
    /// What a run was started for: one of [`super::run_type`].
    pub const RUN_TYPE: &str = "rollout-type";
    /// Index of the canary step a run belongs to.
    pub const STEP_INDEX: &str = "step-index";
    /// Uid of the run a Job measures for; on the Job and its pods.
    pub const ANALYSIS_RUN_UID: &str = "analysisrun.argoproj.io/uid";
}

/// Annotation keys.
pub mod annotation {
    /// Revision number; on Rollouts, ReplicaSets, runs and experiments.
    pub const REVISION: &str = "rollout.argoproj.io/revision";
    /// kubectl's copy of what was last applied, as large as the object itself.
    pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
    /// Former revision numbers of a ReplicaSet, separated by commas.
    pub const REVISION_HISTORY: &str = "rollout.argoproj.io/revision-history";
    /// `spec.replicas` of the Rollout when the ReplicaSet was last scaled.
    pub const DESIRED_REPLICAS: &str = "rollout.argoproj.io/desired-replicas";
    /// Generation of the workload a Rollout refers to.
    pub const WORKLOAD_GENERATION: &str = "rollout.argoproj.io/workload-generation";
    /// The metadata injected into a ReplicaSet's pods, as JSON.
    pub const EPHEMERAL_METADATA: &str = "rollout.argoproj.io/ephemeral-metadata";
    /// When a ReplicaSet may be scaled down, RFC 3339 UTC.
    pub const SCALE_DOWN_DEADLINE: &str = "scale-down-deadline";
    /// Name of the Rollout that manages a Service or DestinationRule.
    pub const MANAGED_BY: &str = "argo-rollouts.argoproj.io/managed-by-rollouts";
    /// Name of the Experiment a ReplicaSet or Service belongs to.
    pub const EXPERIMENT_NAME: &str = "experiment.argoproj.io/name";
    /// Name of the Experiment's template a ReplicaSet or Service belongs to.
    pub const EXPERIMENT_TEMPLATE_NAME: &str = "experiment.argoproj.io/template-name";
    /// Name of the run a Job measures for.
    pub const ANALYSIS_RUN_NAME: &str = "analysisrun.argoproj.io/name";
    /// Namespace of the run a Job measures for.
    pub const ANALYSIS_RUN_NAMESPACE: &str = "analysisrun.argoproj.io/namespace";
    /// Metric a Job measures.
    pub const ANALYSIS_RUN_METRIC: &str = "analysisrun.argoproj.io/metric-name";
    /// Which Rollouts have moved traffic on a route, and between whom, as JSON; there only meanwhile.
    pub const TRAFFIC: &str = "gradus.dev/traffic";
    /// Through which URL a Rollout's split is measured before a weight counts as in force.
    pub const VERIFY_URL: &str = "gradus.dev/verify-url";
    /// The header of an answer there that names the revision; see [`super::DEFAULT_VERIFY_HEADER`].
    pub const VERIFY_HEADER: &str = "gradus.dev/verify-header";
    /// Where the API of the Traefik is that says whether a weight is in force.
    pub const TRAEFIK_API: &str = "gradus.dev/traefik-api";
    /// Which annotations of an ALB Ingress each Rollout manages, as JSON.
    pub const MANAGED_ALB: &str = "rollouts.argoproj.io/managed-alb-annotations";
    /// Which actions of an Ingress were whose, as older versions wrote it.
    pub const MANAGED_ALB_ACTIONS: &str = "rollouts.argoproj.io/managed-alb-actions";
    /// What the notification engine has already sent.
    pub const NOTIFIED: &str = "notified.notifications.argoproj.io";
}

/// The header of an answer that names the revision, unless [`annotation::VERIFY_HEADER`] says
/// otherwise.
pub const DEFAULT_VERIFY_HEADER: &str = "rollouts-pod-template-hash";

/// Values of the label [`label::RUN_TYPE`].
pub mod run_type {
    /// Started by an analysis step.
    pub const STEP: &str = "Step";
    /// Runs during the whole update.
    pub const BACKGROUND: &str = "Background";
    /// Before a blue-green switch.
    pub const PRE_PROMOTION: &str = "PrePromotion";
    /// After a blue-green switch.
    pub const POST_PROMOTION: &str = "PostPromotion";
}

/// Types of conditions.
pub mod condition {
    /// Something is not done although it is due; ours alone.
    pub const HELD: &str = "Held";
    /// The spec cannot be worked with.
    pub const INVALID_SPEC: &str = "InvalidSpec";
    /// The update moves, or why it does not.
    pub const PROGRESSING: &str = "Progressing";
    /// Enough pods are available.
    pub const AVAILABLE: &str = "Available";
    /// Somebody or some step halts the update.
    pub const PAUSED: &str = "Paused";
    /// The current revision is the stable one.
    pub const COMPLETED: &str = "Completed";
    /// Fully promoted and available.
    pub const HEALTHY: &str = "Healthy";
    /// Pods could not be created or deleted.
    pub const REPLICA_FAILURE: &str = "ReplicaFailure";
}

/// Values of a condition's `status`.
pub mod condition_status {
    /// It holds.
    pub const TRUE: &str = "True";
    /// It does not hold.
    pub const FALSE: &str = "False";
    /// It cannot be said.
    pub const UNKNOWN: &str = "Unknown";
}

/// Reasons that stand in conditions; many are reasons of Events as well.
pub mod reason {
    /// A kind that is needed cannot be read.
    pub const UNREADABLE: &str = "Unreadable";
    /// The server refuses a write that the update needs.
    pub const REFUSED: &str = "Refused";
    /// The plugin of a step was called in vain.
    pub const STEP_PLUGIN_ERROR: &str = "StepPluginError";
    /// The spec cannot be worked with.
    pub const INVALID_SPEC: &str = "InvalidSpec";
    /// Whether enough pods are available.
    pub const AVAILABLE: &str = "AvailableReason";
    /// Paused by a person or a step.
    pub const ROLLOUT_PAUSED: &str = "RolloutPaused";
    /// No longer paused.
    pub const ROLLOUT_RESUMED: &str = "RolloutResumed";
    /// Whether the current revision is the stable one.
    pub const ROLLOUT_COMPLETED: &str = "RolloutCompleted";
    /// Whether the rollout is healthy.
    pub const ROLLOUT_HEALTHY: &str = "RolloutHealthy";
    /// The update was given up.
    pub const ROLLOUT_ABORTED: &str = "RolloutAborted";
    /// The update is tried again after an abort.
    pub const ROLLOUT_RETRY: &str = "RolloutRetry";
    /// A ReplicaSet was created for the new revision.
    pub const NEW_REPLICA_SET_CREATED: &str = "NewReplicaSetCreated";
    /// A ReplicaSet of the new revision was already there.
    pub const FOUND_NEW_REPLICA_SET: &str = "FoundNewReplicaSet";
    /// The ReplicaSet of the new revision could not be created.
    pub const REPLICA_SET_CREATE_ERROR: &str = "ReplicaSetCreateError";
    /// The new revision is complete.
    pub const NEW_REPLICA_SET_AVAILABLE: &str = "NewReplicaSetAvailable";
    /// Counts moved towards the goal.
    pub const REPLICA_SET_UPDATED: &str = "ReplicaSetUpdated";
    /// The stable revision lost pods.
    pub const REPLICA_SET_NOT_AVAILABLE: &str = "ReplicaSetNotAvailable";
    /// No progress for longer than `progressDeadlineSeconds`.
    pub const PROGRESS_DEADLINE_EXCEEDED: &str = "ProgressDeadlineExceeded";
    /// An Experiment ended well.
    pub const EXPERIMENT_COMPLETED: &str = "ExperimentCompleted";
}

/// Reasons that stand in Events only.
pub mod event {
    /// First seen by a controller.
    pub const ROLLOUT_ADDED: &str = "RolloutAddedToInformer";
    /// Gone.
    pub const ROLLOUT_DELETED: &str = "RolloutDeleted";
    /// Has a new revision.
    pub const ROLLOUT_UPDATED: &str = "RolloutUpdated";
    /// A ReplicaSet got another size.
    pub const SCALING_REPLICA_SET: &str = "ScalingReplicaSet";
    /// An Experiment's ReplicaSet could not be scaled.
    pub const REPLICA_SET_UPDATE_ERROR: &str = "ReplicaSetUpdateError";
    /// An update began.
    pub const ROLLOUT_NOT_COMPLETED: &str = "RolloutNotCompleted";
    /// A step is done.
    pub const ROLLOUT_STEP_COMPLETED: &str = "RolloutStepCompleted";
    /// A rollback skips the steps.
    pub const SKIP_STEPS: &str = "SkipSteps";
    /// A Service selects another revision.
    pub const SWITCH_SERVICE: &str = "SwitchService";
    /// The router carries another weight.
    pub const TRAFFIC_WEIGHT_UPDATED: &str = "TrafficWeightUpdated";
    /// The router could not be told.
    pub const TRAFFIC_ROUTING_ERROR: &str = "TrafficRoutingError";
    /// The router could not confirm the weight.
    pub const WEIGHT_VERIFY_ERROR: &str = "WeightVerifyError";
    /// The load balancer's targets are the right pods.
    pub const TARGET_GROUP_VERIFIED: &str = "TargetGroupVerified";
    /// The load balancer's targets are not yet the right pods.
    pub const TARGET_GROUP_UNVERIFIED: &str = "TargetGroupUnverified";
    /// The load balancer's targets could not be read.
    pub const TARGET_GROUP_VERIFY_ERROR: &str = "TargetGroupVerifyError";
    /// The load balancer could not be found.
    pub const LOAD_BALANCER_NOT_FOUND: &str = "LoadBalancerNotFound";
    /// An Experiment was created.
    pub const EXPERIMENT_CREATED: &str = "ExperimentCreated";
    /// A run of an Experiment is being ended.
    pub const ANALYSIS_RUN_TERMINATING: &str = "AnalysisRunTerminating";
    /// A step plugin changed its phase.
    pub const STEP_PLUGIN_TRANSITION: &str = "StepPluginTransition";
    /// A step plugin could not be handled.
    pub const RECONCILIATION_ERROR: &str = "ReconciliationError";
    /// Followed by a phase: a run changed.
    pub const ANALYSIS_RUN_PREFIX: &str = "AnalysisRun";
    /// Followed by a phase: an Experiment changed.
    pub const EXPERIMENT_PREFIX: &str = "Experiment";
    /// Followed by a status: a template of an Experiment changed.
    pub const TEMPLATE_PREFIX: &str = "Template";
}

/// Reasons for which the interlock holds a decision, one for each invariant: the contract has none.
pub mod interlock {
    /// Too few pods would be left.
    pub const AVAILABILITY_FLOOR: &str = "InterlockI1";
    /// Users would be sent where no pod is.
    pub const NO_TRAFFIC_TO_NOTHING: &str = "InterlockI3";
    /// More users would be sent than the pods can serve.
    pub const ENOUGH_BEHIND_THE_WEIGHT: &str = "InterlockI4";
    /// The weights would not add up.
    pub const WEIGHTS_WELL_FORMED: &str = "InterlockI5";
    /// Pods would go before their traffic.
    pub const TRAFFIC_BEFORE_TEARDOWN: &str = "InterlockI6";
    /// A step would be left that is not done.
    pub const STEPS_GO_FORWARD: &str = "InterlockI7";
    /// A verdict would be disobeyed.
    pub const VERDICTS_ARE_OBEYED: &str = "InterlockI8";
    /// Deciding would not come to an end.
    pub const DECISIONS_SETTLE: &str = "InterlockI10";
}

/// Reasons of Events about one traffic router.
pub mod router_event {
    /// An ALB Ingress gets new weights.
    pub const PATCHING_ALB_INGRESS: &str = "PatchingALBIngress";
    /// The canary Ingress is made.
    pub const CREATING_CANARY_INGRESS: &str = "CreatingCanaryIngress";
    /// The canary Ingress gets a new weight.
    pub const PATCHING_CANARY_INGRESS: &str = "PatchingCanaryIngress";
    /// An Istio VirtualService got new weights.
    pub const UPDATED_VIRTUAL_SERVICE: &str = "Updated VirtualService";
    /// An Istio DestinationRule got new subsets.
    pub const UPDATED_DESTINATION_RULE: &str = "UpdatedDestinationRule";
    /// An SMI TrafficSplit was made.
    pub const TRAFFIC_SPLIT_CREATED: &str = "TrafficSplitCreated";
    /// An SMI TrafficSplit could not be made.
    pub const TRAFFIC_SPLIT_NOT_CREATED: &str = "TrafficSplitNotCreated";
    /// An Ambassador canary Mapping got a weight.
    pub const CANARY_MAPPING_WEIGHT_UPDATE: &str = "CanaryMappingWeightUpdate";
    /// The VirtualService is missing.
    pub const VIRTUAL_SERVICE_NOT_FOUND: &str = "VirtualServiceNotFound";
    /// The DestinationRule is missing.
    pub const DESTINATION_RULE_NOT_FOUND: &str = "DestinationRuleNotFound";
    /// The App Mesh VirtualRouter is missing.
    pub const VIRTUAL_ROUTER_NOT_FOUND: &str = "VirtualRouterNotFound";
    /// The App Mesh VirtualNode is missing.
    pub const VIRTUAL_NODE_NOT_FOUND: &str = "VirtualNodeNotFound";
    /// The canary Mapping could not be made.
    pub const CANARY_MAPPING_CREATION_ERROR: &str = "CanaryMappingCreationError";
    /// The canary Mapping could not be changed.
    pub const CANARY_MAPPING_UPDATE_ERROR: &str = "CanaryMappingUpdateError";
    /// The canary Mapping could not be removed.
    pub const CANARY_MAPPING_CLEANUP_ERROR: &str = "CanaryMappingCleanupError";
    /// The Mapping is missing.
    pub const AMBASSADOR_MAPPING_NOT_FOUND: &str = "AmbassadorMappingNotFound";
    /// The Mapping cannot be used.
    pub const AMBASSADOR_MAPPING_CONFIG_ERROR: &str = "AmbassadorMappingConfigError";
    /// The TraefikService could not be changed.
    pub const TRAEFIK_SERVICE_UPDATE_ERROR: &str = "TraefikServiceUpdateError";
    /// The ApisixRoute could not be changed.
    pub const APISIX_ROUTE_UPDATE_ERROR: &str = "ApisixRouteUpdateError";
    /// The ApisixRoute could not be made.
    pub const APISIX_ROUTE_CREATE_ERROR: &str = "ApisixRouteCreateError";
    /// The ApisixRoute could not be removed.
    pub const APISIX_ROUTE_DELETE_ERROR: &str = "ApisixRouteDeleteError";
}

/// Types of Events.
pub mod event_type {
    /// Nothing to worry about.
    pub const NORMAL: &str = "Normal";
    /// Somebody should look.
    pub const WARNING: &str = "Warning";
}

/// Reasons of `status.pauseConditions`.
pub mod pause {
    /// A run of an analysis ended without a verdict.
    pub const INCONCLUSIVE_ANALYSIS_RUN: &str = "InconclusiveAnalysisRun";
    /// An Experiment ended without a verdict.
    pub const INCONCLUSIVE_EXPERIMENT: &str = "InconclusiveExperiment";
    /// A pause step.
    pub const CANARY_PAUSE_STEP: &str = "CanaryPauseStep";
    /// Before the blue-green switch.
    pub const BLUE_GREEN_PAUSE: &str = "BlueGreenPause";
}

/// Values of a Rollout's `status.phase`.
pub mod phase {
    /// The stable revision runs in full.
    pub const HEALTHY: &str = "Healthy";
    /// Given up, stuck or invalid.
    pub const DEGRADED: &str = "Degraded";
    /// On its way.
    pub const PROGRESSING: &str = "Progressing";
    /// Waits for a person or for time.
    pub const PAUSED: &str = "Paused";
}

/// Phases of runs, measurements, experiments and step plugins; statuses of an Experiment's
/// templates.
pub mod analysis_phase {
    /// Not started (experiments alone).
    pub const PENDING: &str = "Pending";
    /// Going on.
    pub const RUNNING: &str = "Running";
    /// Ended well.
    pub const SUCCESSFUL: &str = "Successful";
    /// Ended badly.
    pub const FAILED: &str = "Failed";
    /// Could not be carried out.
    pub const ERROR: &str = "Error";
    /// Ended without a verdict.
    pub const INCONCLUSIVE: &str = "Inconclusive";
    /// On its way (an Experiment's template alone).
    pub const PROGRESSING: &str = "Progressing";
}

/// Can a plugin have this name: a namespace, a slash and a name?
pub fn is_plugin_name(name: &str) -> bool {
    let Some((namespace, name)) = name.split_once('/') else { return false };
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    !namespace.is_empty()
        && namespace.chars().all(is_plain)
        && !name.is_empty()
        && name.chars().all(|letter| is_plain(letter) || letter == '_' || letter == '.')
}

/// Operations of a step plugin.
pub mod plugin_operation {
    /// Do the step.
    pub const RUN: &str = "Run";
    /// End it early, the update goes on.
    pub const TERMINATE: &str = "Terminate";
    /// Take it back, the update was given up.
    pub const ABORT: &str = "Abort";
}

/// Why an update became the stable revision, as the Event RolloutCompleted says it.
pub mod promotion {
    /// There was no stable revision.
    pub const INITIAL_DEPLOY: &str = "Initial deploy";
    /// A person asked for it.
    pub const FULL: &str = "Full promotion requested";
    /// To a recent revision.
    pub const ROLLBACK_WITHIN_WINDOW: &str = "Rollback within window";
    /// To a revision that still runs.
    pub const FAST_ROLLBACK: &str = "Fast rollback";
    /// The switch is done.
    pub const BLUE_GREEN: &str = "Completed blue-green update";
}

/// Values of `status.duration.completionStatus`.
pub mod completion {
    /// All steps were done.
    pub const PROMOTED: &str = "Promoted";
    /// The steps were skipped by a full promotion.
    pub const FAST_PROMOTED: &str = "FastPromoted";
    /// Given up.
    pub const ABORTED: &str = "Aborted";
    /// A newer revision took over.
    pub const SUPERSEDED: &str = "Superseded";
    /// Back to the stable revision.
    pub const ROLLED_BACK: &str = "RolledBack";
    /// Back to a recent revision.
    pub const FAST_ROLLED_BACK: &str = "FastRolledBack";
}

/// Messages of conditions that most Rollouts have.
pub mod message {
    /// Available: enough pods are.
    pub const AVAILABLE: &str = "Rollout has minimum availability";
    /// Available: too few pods are.
    pub const UNAVAILABLE: &str = "Rollout does not have minimum availability";
    /// Healthy: it is.
    pub const HEALTHY: &str = "Rollout is healthy";
    /// Healthy: it is not.
    pub const UNHEALTHY: &str = "Rollout is not healthy";
    /// Paused, and Progressing while it is.
    pub const PAUSED: &str = "Rollout is paused";
}

/// Other values of fields that are enumerations.
pub mod value {
    /// `stablePingPong`: the ping Service is stable.
    pub const PING: &str = "ping";
    /// `stablePingPong`: the pong Service is stable.
    pub const PONG: &str = "pong";
    /// `replicaProgressThreshold.type`: a share.
    pub const PERCENT: &str = "Percent";
    /// `replicaProgressThreshold.type`: a number.
    pub const PODS: &str = "Pods";
    /// `workloadRef.scaleDown`: leave the Deployment alone.
    pub const NEVER: &str = "never";
    /// `workloadRef.scaleDown`: when the Rollout is healthy.
    pub const ON_SUCCESS: &str = "onsuccess";
    /// `workloadRef.scaleDown`: pod by pod.
    pub const PROGRESSIVELY: &str = "progressively";
    /// `podTemplateHashValue`: the hash of the stable revision.
    pub const STABLE: &str = "Stable";
    /// `podTemplateHashValue`: the hash of the new revision.
    pub const LATEST: &str = "Latest";
    /// `experiment.templates[].specRef`: the template of the new revision.
    pub const CANARY_REF: &str = "canary";
    /// `experiment.templates[].specRef`: the template of the stable revision.
    pub const STABLE_REF: &str = "stable";
}
