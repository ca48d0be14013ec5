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
        /// The Service that selects the new revision.
        canary_service: String,
        /// The Service that selects the stable revision.
        stable_service: String,
        /// The steps, in order.
        steps: Vec<CanaryStep>,
        /// Who splits the traffic; missing means the number of pods does.
        traffic_routing: Option<Box<TrafficRouting>>,
        /// Pods that may be missing during the update; missing means 25 %.
        max_unavailable: Option<IntOrPercent>,
        /// Pods that may be too many during the update; missing means 25 %.
        max_surge: Option<IntOrPercent>,
        /// Analysis during the whole update.
        analysis: Option<Box<BackgroundAnalysis>>,
        /// Keeps new pods away from stable ones.
        anti_affinity: Option<AntiAffinity>,
        /// Metadata of the new revision's pods during the update.
        canary_metadata: Option<Metadata>,
        /// Metadata of the stable pods.
        stable_metadata: Option<Metadata>,
        /// Seconds an old ReplicaSet stays; only with traffic routing, where missing means 30.
        scale_down_delay_seconds: Option<i32>,
        /// How many old ReplicaSets may stay that long; missing means all.
        scale_down_delay_revision_limit: Option<i32>,
        /// Seconds the new revision stays after an abort; only with traffic routing.
        abort_scale_down_delay_seconds: Option<i32>,
        /// Whether the stable revision shrinks as traffic moves away from it.
        dynamic_stable_scale: bool,
        /// Two Services that take turns in being the stable one.
        ping_pong: Option<PingPong>,
        /// At least that many pods per revision; only with traffic routing.
        min_pods_per_replica_set: Option<i32>,
        /// How complete a revision must be; missing means 100 %.
        replica_progress_threshold: Option<ReplicaProgressThreshold>,
    }

    /// Analysis during the whole update: [`RolloutAnalysis`] with a step to start at.
    pub struct BackgroundAnalysis {
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
        /// Index of the step at which it starts; missing means 0.
        starting_step: Option<i32>,
    }

    /// Two Services that take turns in being the stable one.
    pub struct PingPong {
        /// The first.
        required ping_service: String,
        /// The second.
        required pong_service: String,
    }

    /// How complete a revision must be before it counts as complete.
    pub struct ReplicaProgressThreshold {
        /// `Percent` or `Pods`.
        required r#type: String,
        /// How much.
        required value: i32,
    }

    /// One step. A valid one has exactly one member; [`CanaryStep::kind`] says which counts.
    pub struct CanaryStep {
        /// Gives the new revision this share of the traffic.
        set_weight: Option<i32>,
        /// Waits for time or a person.
        pause: Option<PauseStep>,
        /// Runs an Experiment and waits for its end.
        experiment: Option<Box<ExperimentStep>>,
        /// Runs an analysis and waits for its end.
        analysis: Option<Box<RolloutAnalysis>>,
        /// Sizes the new revision regardless of its traffic.
        set_canary_scale: Option<SetCanaryScale>,
        /// Sends requests with certain headers to the new revision.
        set_header_route: Option<Box<SetHeaderRoute>>,
        /// Sends copies of requests to the new revision.
        set_mirror_route: Option<Box<SetMirrorRoute>>,
        /// Lets a plugin do something.
        plugin: Option<Box<PluginStep>>,
    }

    /// Waits for time or a person.
    pub struct PauseStep {
        /// How long; missing means until a person promotes.
        duration: Option<DurationText>,
    }

    /// Sizes the new revision regardless of its traffic.
    pub struct SetCanaryScale {
        /// As if it had this share of the traffic.
        weight: Option<i32>,
        /// That many pods.
        replicas: Option<i32>,
        /// Back to following the traffic.
        match_traffic_weight: bool,
    }

    /// Sends requests with certain headers to the new revision.
    pub struct SetHeaderRoute {
        /// Name of the route, one of the managed routes.
        name: String,
        /// Headers that must all match; none removes the route.
        r#match: Vec<HeaderMatch>,
    }

    /// A header and the value it must have.
    pub struct HeaderMatch {
        /// The header.
        required header_name: String,
        /// Its value.
        required header_value: Option<StringMatch>,
    }

    /// How a text must look; exactly one.
    pub struct StringMatch {
        /// Equal to this.
        exact: String,
        /// Beginning with this.
        prefix: String,
        /// Matching this regular expression.
        regex: String,
    }

    /// Sends copies of requests to the new revision.
    pub struct SetMirrorRoute {
        /// Name of the route, one of the managed routes.
        required name: String,
        /// Requests of which any must match; none removes the route.
        r#match: Vec<MirrorMatch>,
        /// Share of the matching requests.
        percentage: Option<i32>,
    }

    /// What a request must look like to be copied.
    pub struct MirrorMatch {
        /// Its method.
        method: Option<StringMatch>,
        /// Its path.
        path: Option<StringMatch>,
        /// Its headers.
        headers: BTreeMap<String, StringMatch>,
    }

    /// Lets a plugin do something.
    pub struct PluginStep {
        /// Which one.
        required name: String,
        /// What it is told.
        config: Option<Arc<Value>> => free_form_object(),
    }

    /// Runs an Experiment and waits for its end.
    pub struct ExperimentStep {
        /// What runs in it.
        required templates: Vec<ExperimentStepTemplate>,
        /// How long; empty means until its analyses end.
        duration: String,
        /// The analyses during it.
        analyses: Vec<ExperimentStepAnalysis>,
        /// Metrics whose result does not count.
        dry_run: Vec<DryRun>,
        /// Labels and annotations for its runs.
        always analysis_run_metadata: Metadata,
        /// Seconds its pods stay after its end; missing means 30.
        scale_down_delay_seconds: Option<i32>,
    }

    /// One set of pods of an experiment step.
    pub struct ExperimentStepTemplate {
        /// Its name.
        required name: String,
        /// Which revision's template it takes: `canary` or `stable`.
        required spec_ref: String,
        /// How many pods; missing means 1.
        replicas: Option<i32>,
        /// Labels and annotations for its pods.
        always metadata: Metadata,
        /// Its selector instead of the revision's.
        selector: Option<LabelSelector> => kubernetes::label_selector(),
        /// The share of the traffic it gets.
        weight: Option<i32>,
        /// Asks for a Service of its own.
        service: Option<TemplateService>,
    }

    /// The Service of one set of pods of an Experiment.
    pub struct TemplateService {
        /// Its name; empty means the ReplicaSet's.
        name: String,
    }

    /// One analysis of an experiment step.
    pub struct ExperimentStepAnalysis {
        /// Its name.
        required name: String,
        /// The template it is made of.
        required template_name: String,
        /// Whether that is a ClusterAnalysisTemplate.
        cluster_scope: Option<bool>,
        /// Values for the template's arguments.
        args: Vec<RolloutArgument>,
        /// Whether the Experiment ends when this succeeds.
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
