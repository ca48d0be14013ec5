//! What a missing field means.

use crate::experiment::{ExperimentSpec, ExperimentTemplate};
use crate::names::value;
use crate::rollout::canary::{CanaryStrategy, ReplicaProgressThreshold};
use crate::rollout::{BlueGreenStrategy, RolloutSpec};
use crate::traffic::TrafficRouting;
use crate::values::IntOrPercent;

/// Pods of a Rollout or a template that says nothing.
pub const REPLICAS: i32 = 1;
/// Old ReplicaSets that are kept.
pub const REVISION_HISTORY_LIMIT: i32 = 10;
/// Seconds an update may stand still.
pub const PROGRESS_DEADLINE_SECONDS: i32 = 600;
/// Share of the pods that may be missing or too many.
pub const SURGE_PERCENT: u32 = 25;
/// Seconds an old ReplicaSet stays after a switch of traffic, and a new one after an abort.
pub const SCALE_DOWN_DELAY_SECONDS: i32 = 30;
/// Finished runs that are kept of each outcome.
pub const RUN_HISTORY_LIMIT: i32 = 5;
/// What the whole traffic counts as.
pub const MAX_TRAFFIC_WEIGHT: i32 = 100;

impl RolloutSpec {
    /// Desired pods.
    pub fn replicas_or_default(&self) -> i32 {
        self.replicas.unwrap_or(REPLICAS)
    }

    /// Old ReplicaSets to keep.
    pub fn revision_history_limit_or_default(&self) -> i32 {
        self.revision_history_limit.unwrap_or(REVISION_HISTORY_LIMIT)
    }

    /// Seconds an update may stand still.
    pub fn progress_deadline_seconds_or_default(&self) -> i32 {
        self.progress_deadline_seconds.unwrap_or(PROGRESS_DEADLINE_SECONDS)
    }

    /// Successful runs and experiments to keep.
    pub fn successful_run_history_limit(&self) -> i32 {
        let limit = self.analysis.as_ref().and_then(|history| history.successful_run_history_limit);
        limit.unwrap_or(RUN_HISTORY_LIMIT)
    }

    /// Other finished runs and experiments to keep.
    pub fn unsuccessful_run_history_limit(&self) -> i32 {
        let limit = self.analysis.as_ref();
        let limit = limit.and_then(|history| history.unsuccessful_run_history_limit);
        limit.unwrap_or(RUN_HISTORY_LIMIT)
    }
}

impl CanaryStrategy {
    /// Pods that may be too many.
    pub fn max_surge_or_default(&self) -> IntOrPercent {
        self.max_surge.clone().unwrap_or_else(|| IntOrPercent::percent(SURGE_PERCENT))
    }

    /// Pods that may be missing.
    pub fn max_unavailable_or_default(&self) -> IntOrPercent {
        self.max_unavailable.clone().unwrap_or_else(|| IntOrPercent::percent(SURGE_PERCENT))
    }

    /// What the whole traffic counts as.
    pub fn max_weight(&self) -> i32 {
        self.traffic_routing.as_ref().map_or(MAX_TRAFFIC_WEIGHT, |it| it.max_weight())
    }

    /// Seconds an old ReplicaSet stays: none where no router needs time to follow.
    pub fn scale_down_delay_seconds_or_default(&self) -> i32 {
        match &self.traffic_routing {
            Some(_) => self.scale_down_delay_seconds.unwrap_or(SCALE_DOWN_DELAY_SECONDS),
            None => 0,
        }
    }

    /// How many old ReplicaSets may stay that long.
    pub fn scale_down_delay_revision_limit_or_default(&self) -> i32 {
        self.scale_down_delay_revision_limit.unwrap_or(i32::MAX)
    }

    /// Seconds the new revision stays after an abort. `None`: it goes with its traffic
    /// (no routing), or stays for ever (0, with routing).
    pub fn abort_scale_down_delay(&self) -> Option<i32> {
        self.traffic_routing.as_ref()?;
        let seconds = self.abort_scale_down_delay_seconds.unwrap_or(SCALE_DOWN_DELAY_SECONDS);
        (seconds != 0).then_some(seconds)
    }

    /// How complete a revision must be.
    pub fn replica_progress_threshold_or_default(&self) -> ReplicaProgressThreshold {
        self.replica_progress_threshold.clone().unwrap_or_else(|| ReplicaProgressThreshold {
            r#type: value::PERCENT.into(),
            value: 100,
        })
    }
}

impl TrafficRouting {
    /// What the whole traffic counts as.
    pub fn max_weight(&self) -> i32 {
        self.max_traffic_weight.unwrap_or(MAX_TRAFFIC_WEIGHT)
    }
}

impl BlueGreenStrategy {
    /// Pods that may be missing while pods are restarted.
    pub fn max_unavailable_or_default(&self) -> IntOrPercent {
        self.max_unavailable.clone().unwrap_or_else(|| IntOrPercent::percent(SURGE_PERCENT))
    }

    /// Whether the switch needs no person.
    pub fn auto_promotion_enabled_or_default(&self) -> bool {
        self.auto_promotion_enabled.unwrap_or(true)
    }

    /// Seconds an old ReplicaSet stays after the switch.
    pub fn scale_down_delay_seconds_or_default(&self) -> i32 {
        self.scale_down_delay_seconds.unwrap_or(SCALE_DOWN_DELAY_SECONDS)
    }

    /// How many old ReplicaSets may stay that long.
    pub fn scale_down_delay_revision_limit_or_default(&self) -> i32 {
        self.scale_down_delay_revision_limit.unwrap_or(i32::MAX)
    }

    /// Seconds the new revision stays after an abort; `None` for ever.
    pub fn abort_scale_down_delay(&self) -> Option<i32> {
        let seconds = self.abort_scale_down_delay_seconds.unwrap_or(SCALE_DOWN_DELAY_SECONDS);
        (seconds != 0).then_some(seconds)
    }
}

impl ExperimentSpec {
    /// Seconds a template may stand still.
    pub fn progress_deadline_seconds_or_default(&self) -> i32 {
        self.progress_deadline_seconds.unwrap_or(PROGRESS_DEADLINE_SECONDS)
    }

    /// Seconds its pods stay after its end.
    pub fn scale_down_delay_seconds_or_default(&self) -> i32 {
        self.scale_down_delay_seconds.unwrap_or(SCALE_DOWN_DELAY_SECONDS)
    }
}

impl ExperimentTemplate {
    /// Desired pods.
    pub fn replicas_or_default(&self) -> i32 {
        self.replicas.unwrap_or(REPLICAS)
    }
}
