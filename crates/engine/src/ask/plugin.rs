//! What plugins are told, and what they answer: those of steps, of metrics and of traffic.

use std::collections::BTreeMap;
use std::sync::Arc;

use gradus_api::analysis::Measurement;
use gradus_api::rollout::canary::{SetHeaderRoute, SetMirrorRoute};
use gradus_api::rollout::status::WeightDestination;
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::secret::SecretError;

/// What a step plugin is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PluginCall {
    /// The plugin.
    pub name: String,
    /// Run, Terminate or Abort; or [`PLUGIN_READY`].
    pub operation: String,
    /// The step, from 0.
    pub index: i32,
    /// What the step configures.
    pub config: Option<Arc<Value>>,
    /// What the plugin last wanted remembered.
    pub status: Option<Arc<Value>>,
}

/// The operation of a step plugin that only asks whether it can be called.
pub const PLUGIN_READY: &str = "Ready";

/// What came of a call of a step plugin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum PluginReply {
    /// It answered.
    Said(PluginSaid),
    /// It was called, but the call failed.
    Broken(String),
    /// It is switched off in the configuration.
    Disabled,
    /// It could not be called: it is not configured, or does not start.
    Unusable(String),
}

/// A step plugin's own words.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PluginSaid {
    /// Running, Successful, Failed, Error, or nothing for no change.
    pub phase: String,
    /// For people.
    pub message: String,
    /// When it wants to be called again.
    pub requeue_after: SignedDuration,
    /// What it wants remembered.
    pub status: Option<Arc<Value>>,
}

/// What a metric plugin is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricCall {
    /// The plugin.
    pub name: String,
    /// What it shall do.
    pub operation: MetricOperation,
    /// The metric with its arguments. Markers stand for secrets: only the executor sees these.
    pub metric: Arc<Value>,
}

/// What a metric plugin shall do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum MetricOperation {
    /// Measure anew.
    Run,
    /// Look again at this measurement.
    Resume(Box<Measurement>),
    /// End this measurement.
    Terminate(Box<Measurement>),
    /// Say what is to be known about the metric as a whole.
    GetMetadata,
    /// Clear away what belongs to measurements but the last so many.
    GarbageCollect(i32),
}

impl MetricOperation {
    /// The method of the plugin.
    pub fn method(&self) -> &'static str {
        match self {
            MetricOperation::Run => "Run",
            MetricOperation::Resume(_) => "Resume",
            MetricOperation::Terminate(_) => "Terminate",
            MetricOperation::GetMetadata => "GetMetadata",
            MetricOperation::GarbageCollect(_) => "GarbageCollect",
        }
    }
}

/// What came of a call of a metric plugin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum MetricReply {
    /// It measures, or has measured.
    Measured(Box<Measurement>),
    /// What is to be known about the metric.
    Metadata(BTreeMap<String, String>),
    /// It is done.
    Done,
    /// It was called, but the call failed.
    Broken(String),
    /// It could not be called: it is not configured, or does not start.
    Unusable(String),
    /// A Secret that the metric names is not there.
    NoSecret(SecretError),
}

/// What a traffic plugin is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RouterCall {
    /// The plugin.
    pub name: String,
    /// What it shall do.
    pub operation: RouterOperation,
    /// The new revision's part of the traffic.
    pub weight: i32,
    /// Further Services, and their parts.
    pub additional: Vec<WeightDestination>,
}

/// What a traffic plugin shall do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum RouterOperation {
    /// Split the traffic so.
    Split(Box<RouterGoal>),
    /// Say whether the traffic is split so.
    Verify,
}

/// How a traffic plugin shall split the traffic, beside the weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RouterGoal {
    /// Hash of the revision behind the canary side.
    pub canary_hash: String,
    /// Hash of the revision behind the stable side.
    pub stable_hash: String,
    /// The canary side has no pods: the weight goes before anything else moves.
    pub weight_first: bool,
    /// The routes of the steps; `None` where none of them may be left.
    pub routes: Option<RouterRoutes>,
}

/// The routes of steps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RouterRoutes {
    /// By header; one without a match is to go.
    pub headers: Vec<SetHeaderRoute>,
    /// Those that copy requests, likewise.
    pub mirrors: Vec<SetMirrorRoute>,
}

/// What came of a call of a traffic plugin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum RouterReply {
    /// It has been told.
    Told,
    /// Is the traffic split so? `None` where the plugin does not say.
    Verified(Option<bool>),
    /// It could not be called, or the call failed; why, in whole.
    Broken(String),
}
