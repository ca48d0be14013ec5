//! The canary strategy and its steps.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::crd::kubernetes;
use crate::rollout::{
    AntiAffinity, DryRun, LabelSelector, MeasurementRetention, Metadata, RolloutAnalysis,
    RolloutArgument, TemplateRef,
};
use crate::schema::free_form_object;
use crate::traffic::TrafficRouting;
use crate::values::{DurationText, IntOrPercent};
use crate::view::view;

view! {
    /// Replaces the stable revision step by step.
    pub struct CanaryStrategy {
        /// Name of the Service whose selector the controller points at the new revision. Required
        /// by most traffic routers, and different from `stableService`. Default: none.
        canary_service: String,
        /// Name of the Service whose selector the controller points at the stable revision.
        /// Required by most traffic routers, and different from `canaryService`. Default: none.
        stable_service: String,
        /// Steps of an update, taken in order. Default: none, the update is carried out at once
        /// within `maxSurge` and `maxUnavailable`.
        steps: Vec<CanaryStep>,
        /// Traffic router that splits requests between the revisions by weight. Default: none, the
        /// split follows from the number of pods of each revision.
        traffic_routing: Option<Box<TrafficRouting>>,
        /// Number of pods, or percentage of `replicas` such as `25%` (rounded down), that may be
        /// unavailable during an update or a restart. It cannot be 0 if `maxSurge` is 0. Default:
        /// 25%.
        max_unavailable: Option<IntOrPercent>,
        /// Number of pods, or percentage of `replicas` such as `25%` (rounded up), that may exist
        /// beyond `replicas` during an update without traffic routing. It cannot be 0 if
        /// `maxUnavailable` is 0. Default: 25%.
        max_surge: Option<IntOrPercent>,
        /// Analysis in the background: an AnalysisRun that lasts as long as the update. If it
        /// fails, the update is aborted. Default: none.
        analysis: Option<Box<BackgroundAnalysis>>,
        /// Keeps pods of the new revision off the nodes of stable pods. Default: none.
        anti_affinity: Option<AntiAffinity>,
        /// Labels and annotations that the pods of the new revision have during an update. Pods are
        /// not restarted for them. Default: none.
        canary_metadata: Option<Metadata>,
        /// Labels and annotations that the pods of the stable revision have. Pods are not restarted
        /// for them. Default: none.
        stable_metadata: Option<Metadata>,
        /// Seconds before the former stable ReplicaSet is scaled down after a promotion. Only with
        /// `trafficRouting`, and not with `dynamicStableScale`. Default: 30.
        scale_down_delay_seconds: Option<i32>,
        /// Number of former ReplicaSets that may wait for `scaleDownDelaySeconds` at a time;
        /// further ones are scaled down at once. Default: no limit.
        scale_down_delay_revision_limit: Option<i32>,
        /// Seconds before the new ReplicaSet is scaled down after an abort; 0 keeps it. Only with
        /// `trafficRouting`, ignored without. Default: 30.
        abort_scale_down_delay_seconds: Option<i32>,
        /// Scales the stable ReplicaSet down as traffic moves to the new revision, instead of
        /// keeping it at full size. Only with `trafficRouting`. Default: false.
        dynamic_stable_scale: bool,
        /// Two Services that take turns in being the stable one, so that a promotion changes no
        /// selector. Only with ALB, Istio or plugins. Default: none.
        ping_pong: Option<PingPong>,
        /// Number of pods that each revision with traffic has at least. Only with `trafficRouting`.
        /// Default: none.
        min_pods_per_replica_set: Option<i32>,
        /// Number or percentage of a revision's pods that must be available before an update goes
        /// on. Default: 100 percent.
        replica_progress_threshold: Option<ReplicaProgressThreshold>,
    }

    /// Analysis during the whole update: [`RolloutAnalysis`] with a step to start at.
    pub struct BackgroundAnalysis {
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
        /// Index of the step, counted from 0, from which the AnalysisRun is started. Default: 0,
        /// with the first step.
        starting_step: Option<i32>,
    }

    /// Two Services that take turns in being the stable one.
    pub struct PingPong {
        /// Name of the first Service. It is the stable one at first. Different from `pongService`.
        /// Required.
        required ping_service: String,
        /// Name of the second Service. Different from `pingService`. Required.
        required pong_service: String,
    }

    /// How complete a revision must be before it counts as complete.
    pub struct ReplicaProgressThreshold {
        /// Unit of `value`. Allowed: `Percent` (of the revision's desired pods), `Pods`. Required.
        required r#type: String,
        /// Number of pods that must be available, in the unit that `type` names: 1 to 100 percent,
        /// or pods. Required.
        required value: i32,
    }

    /// One step. A valid one has exactly one member; [`CanaryStep::kind`] says which counts.
    pub struct CanaryStep {
        /// Sets the percentage of traffic sent to the new revision, 0 to `maxTrafficWeight`
        /// (default 100), and scales it accordingly. Exactly one kind per step is required.
        set_weight: Option<i32>,
        /// Pauses the update, for a time or until a person runs `kubectl argo rollouts promote`.
        /// Exactly one kind per step is required.
        pause: Option<PauseStep>,
        /// Runs an Experiment. The step ends when it succeeds; if it fails, the update is aborted.
        /// Exactly one kind per step is required.
        experiment: Option<Box<ExperimentStep>>,
        /// Runs an AnalysisRun. The step ends when it succeeds; if it fails, the update is aborted.
        /// Exactly one kind per step is required.
        analysis: Option<Box<RolloutAnalysis>>,
        /// Sets the size of the new revision independently of its traffic. Only with
        /// `trafficRouting`. Exactly one kind per step is required.
        set_canary_scale: Option<SetCanaryScale>,
        /// Routes requests with certain headers to the new revision, or removes that route. Only
        /// with Istio, ALB, APISIX or plugins. Exactly one kind per step is required.
        set_header_route: Option<Box<SetHeaderRoute>>,
        /// Mirrors requests to the new revision, or removes that route. Only with Istio or plugins.
        /// Exactly one kind per step is required.
        set_mirror_route: Option<Box<SetMirrorRoute>>,
        /// Calls a step plugin. The step ends when the plugin reports success. Exactly one kind per
        /// step is required.
        plugin: Option<Box<PluginStep>>,
    }

    /// Waits for time or a person.
    pub struct PauseStep {
        /// Length of the pause, in seconds or as a duration such as `30s`, `5m` or `1h30m`, 0 or
        /// more. Default: none, the pause lasts until a person promotes the Rollout.
        duration: Option<DurationText>,
    }

    /// Sizes the new revision regardless of its traffic.
    pub struct SetCanaryScale {
        /// Percentage of `replicas` that the new revision has, 0 or more; above 100 it has more
        /// pods than `replicas`. Default: none.
        weight: Option<i32>,
        /// Number of pods that the new revision has, 0 or more. Takes precedence over `weight`.
        /// Default: none.
        replicas: Option<i32>,
        /// Returns to a size that follows the traffic weight; the other two fields are then
        /// ignored. Default: false.
        match_traffic_weight: bool,
    }

    /// Sends requests with certain headers to the new revision.
    pub struct SetHeaderRoute {
        /// Name of the route. It must be listed in `trafficRouting.managedRoutes`. Required.
        name: String,
        /// Headers that select a request; with ALB all of them must match, with Istio one is
        /// enough. Default: none, which removes the route.
        r#match: Vec<HeaderMatch>,
    }

    /// A header and the value it must have.
    pub struct HeaderMatch {
        /// Name of the HTTP header. Required.
        required header_name: String,
        /// Condition on the value of the header. ALB supports `exact` only. Required.
        required header_value: Option<StringMatch>,
    }

    /// How a text must look; exactly one.
    pub struct StringMatch {
        /// Matches a value that is equal to this text. Exactly one of `exact`, `prefix` and `regex`
        /// is required.
        exact: String,
        /// Matches a value that begins with this text. Exactly one of `exact`, `prefix` and `regex`
        /// is required.
        prefix: String,
        /// Matches a value by a regular expression in the syntax of the traffic router. Exactly one
        /// of `exact`, `prefix` and `regex` is required.
        regex: String,
    }

    /// Sends copies of requests to the new revision.
    pub struct SetMirrorRoute {
        /// Name of the route. It must be listed in `trafficRouting.managedRoutes`. Required.
        required name: String,
        /// Conditions that select a request; it is mirrored if one of them matches. Default: none,
        /// which removes the route.
        r#match: Vec<MirrorMatch>,
        /// Percentage of the matching requests that are mirrored, 0 to 100. Default: 100.
        percentage: Option<i32>,
    }

    /// What a request must look like to be copied.
    pub struct MirrorMatch {
        /// Condition on the HTTP method of the request. Default: any method.
        method: Option<StringMatch>,
        /// Condition on the path of the request. Default: any path.
        path: Option<StringMatch>,
        /// Conditions on the headers of the request, by name. All of them must match. Default:
        /// none.
        headers: BTreeMap<String, StringMatch>,
    }

    /// Lets a plugin do something.
    pub struct PluginStep {
        /// Name of the step plugin, as the ConfigMap `argo-rollouts-config` lists it. Required.
        required name: String,
        /// Configuration that is passed to the plugin as it is. Its fields are those that the
        /// plugin documents. Default: none.
        config: Option<Arc<Value>> => free_form_object(),
    }

    /// Runs an Experiment and waits for its end.
    pub struct ExperimentStep {
        /// Sets of pods that the Experiment runs, at least one. Required.
        required templates: Vec<ExperimentStepTemplate>,
        /// Length of the Experiment from the time that all its pods are available, as a duration
        /// such as `5m`. Default: none, it ends with its required analyses.
        duration: String,
        /// Analyses that run during the Experiment. If one fails, the Experiment fails. Default:
        /// none.
        analyses: Vec<ExperimentStepAnalysis>,
        /// Metrics that are measured and reported without affecting the result. Default: none.
        dry_run: Vec<DryRun>,
        /// Labels and annotations to add to the AnalysisRuns of the Experiment. Default: none.
        always analysis_run_metadata: Metadata,
        /// Seconds before the pods of the Experiment are removed after its end. Default: 30.
        scale_down_delay_seconds: Option<i32>,
    }

    /// One set of pods of an experiment step.
    pub struct ExperimentStepTemplate {
        /// Name of the set of pods, unique within the Experiment. Required.
        required name: String,
        /// Revision whose pod template is used. Allowed: `canary`, `stable`. Required.
        required spec_ref: String,
        /// Number of pods, 0 or more. Default: 1.
        replicas: Option<i32>,
        /// Labels and annotations to add to the pods. The labels are added to the selector, too.
        /// Default: none.
        always metadata: Metadata,
        /// Label selector of the pods. Default: the selector of the revision's ReplicaSet.
        selector: Option<LabelSelector> => kubernetes::label_selector(),
        /// Percentage of traffic sent to these pods, taken from the stable revision's, 0 to 100.
        /// Only with ALB, Istio, SMI or plugins. Default: none, they get no traffic.
        weight: Option<i32>,
        /// Creates a Service for these pods. Default: none, unless `weight` is set.
        service: Option<TemplateService>,
    }

    /// The Service of one set of pods of an Experiment.
    pub struct TemplateService {
        /// Name of the Service to create. Default: the name of the ReplicaSet.
        name: String,
    }

    /// One analysis of an experiment step.
    pub struct ExperimentStepAnalysis {
        /// Name of the analysis, unique within the Experiment. Required.
        required name: String,
        /// Name of the AnalysisTemplate, in the namespace of the Rollout, or of the
        /// ClusterAnalysisTemplate. Required.
        required template_name: String,
        /// True if `templateName` is the name of a ClusterAnalysisTemplate. Default: false, it is
        /// an AnalysisTemplate.
        cluster_scope: Option<bool>,
        /// Values for the arguments that the template declares. Default: none.
        args: Vec<RolloutArgument>,
        /// Ends the Experiment when this analysis has succeeded, and every other that is required.
        /// Default: false.
        required_for_completion: bool,
    }
}

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StepKind<'a> {
    /// Waits.
    Pause(&'a PauseStep),
    /// Sizes the new revision.
    SetCanaryScale(&'a SetCanaryScale),
    /// Gives the new revision a share of the traffic.
    SetWeight(i32),
    /// Runs an Experiment.
    Experiment(&'a ExperimentStep),
    /// Runs an analysis.
    Analysis(&'a RolloutAnalysis),
    /// Routes by header.
    SetHeaderRoute(&'a SetHeaderRoute),
    /// Copies requests.
    SetMirrorRoute(&'a SetMirrorRoute),
    /// Calls a plugin.
    Plugin(&'a PluginStep),
    /// Nothing: an invalid step.
    Empty,
}

impl CanaryStep {
    /// What the step does; of several members the one that decides when it is done.
    pub fn kind(&self) -> StepKind<'_> {
        if let Some(pause) = &self.pause {
            StepKind::Pause(pause)
        } else if let Some(scale) = &self.set_canary_scale {
            StepKind::SetCanaryScale(scale)
        } else if let Some(weight) = self.set_weight {
            StepKind::SetWeight(weight)
        } else if let Some(experiment) = &self.experiment {
            StepKind::Experiment(experiment)
        } else if let Some(analysis) = &self.analysis {
            StepKind::Analysis(analysis)
        } else if let Some(route) = &self.set_header_route {
            StepKind::SetHeaderRoute(route)
        } else if let Some(route) = &self.set_mirror_route {
            StepKind::SetMirrorRoute(route)
        } else if let Some(plugin) = &self.plugin {
            StepKind::Plugin(plugin)
        } else {
            StepKind::Empty
        }
    }

    /// The step in the words of Events; of several members the first of an order of its own.
    pub fn text(&self) -> String {
        if let Some(weight) = self.set_weight {
            format!("setWeight: {weight}")
        } else if let Some(pause) = &self.pause {
            pause.text()
        } else if self.experiment.is_some() {
            "experiment".into()
        } else if self.analysis.is_some() {
            "analysis".into()
        } else if let Some(scale) = &self.set_canary_scale {
            scale.text()
        } else if let Some(plugin) = &self.plugin {
            format!("plugin: {}", plugin.name)
        } else if let Some(route) = &self.set_header_route {
            format!("setHeaderRoute: {}", route.name)
        } else if let Some(route) = &self.set_mirror_route {
            format!("setMirrorRoute: {}", route.name)
        } else {
            "invalid".into()
        }
    }
}

impl PauseStep {
    fn text(&self) -> String {
        match &self.duration {
            Some(duration) => format!("pause: {duration}"),
            None => "pause".into(),
        }
    }
}

impl SetCanaryScale {
    fn text(&self) -> String {
        if let Some(weight) = self.weight {
            format!("setCanaryScale{{weight: {weight}}}")
        } else if self.match_traffic_weight {
            "setCanaryScale{matchTrafficWeight: true}".into()
        } else if let Some(replicas) = self.replicas {
            format!("setCanaryScale{{replicas: {replicas}}}")
        } else {
            "invalid".into()
        }
    }
}
