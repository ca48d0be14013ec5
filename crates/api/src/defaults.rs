//! What a missing field means.

use crate::experiment::{ExperimentSpec, ExperimentTemplate};
use crate::rollout::canary::CanaryStrategy;
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

/// How long the new revision stays after an abort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbortDelay {
    /// It is scaled down without delay.
    AtOnce,
    /// It is scaled down after these seconds.
    Seconds(i32),
    /// It stays until somebody decides.
    Forever,
}

impl AbortDelay {
    /// What the field says: missing means 30 seconds, 0 means for ever.
    fn of(seconds: Option<i32>) -> Self {
        match seconds.unwrap_or(SCALE_DOWN_DELAY_SECONDS) {
            0 => Self::Forever,
            seconds => Self::Seconds(seconds),
        }
    }
}

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

    /// How long the new revision stays after an abort. Without a router its pods are the
    /// traffic, so they go at once.
    pub fn abort_delay(&self) -> AbortDelay {
        match &self.traffic_routing {
            Some(_) => AbortDelay::of(self.abort_scale_down_delay_seconds),
            None => AbortDelay::AtOnce,
        }
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

    /// How long the new revision stays after an abort.
    pub fn abort_delay(&self) -> AbortDelay {
        AbortDelay::of(self.abort_scale_down_delay_seconds)
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::decode::decode;

    fn canary(value: Value) -> CanaryStrategy {
        decode(&value).0
    }

    #[test]
    fn a_missing_field_means_what_the_contract_says() {
        let spec = RolloutSpec::default();
        assert_eq!(spec.replicas_or_default(), 1);
        assert_eq!(spec.revision_history_limit_or_default(), 10);
        assert_eq!(spec.progress_deadline_seconds_or_default(), 600);
        assert_eq!(spec.successful_run_history_limit(), 5);
        assert_eq!(spec.unsuccessful_run_history_limit(), 5);
        let blue_green = BlueGreenStrategy::default();
        assert!(blue_green.auto_promotion_enabled_or_default());
        assert_eq!(blue_green.scale_down_delay_seconds_or_default(), 30);
        assert_eq!(blue_green.max_unavailable_or_default(), IntOrPercent::from("25%"));
        assert_eq!(canary(json!({})).max_surge_or_default(), IntOrPercent::from("25%"));
        assert_eq!(canary(json!({})).max_weight(), 100);
        assert_eq!(ExperimentSpec::default().scale_down_delay_seconds_or_default(), 30);
    }

    #[test]
    fn zero_is_not_missing() {
        let spec: RolloutSpec = decode(&json!({ "replicas": 0, "revisionHistoryLimit": 0 })).0;
        assert_eq!(spec.replicas_or_default(), 0);
        assert_eq!(spec.revision_history_limit_or_default(), 0);
    }

    #[test]
    fn delays_of_a_canary_need_a_router() {
        let cases = [
            ("no router", json!({}), 0, AbortDelay::AtOnce),
            ("a router", json!({ "trafficRouting": {} }), 30, AbortDelay::Seconds(30)),
            (
                "its own delays",
                json!({ "trafficRouting": {}, "scaleDownDelaySeconds": 0,
                    "abortScaleDownDelaySeconds": 7 }),
                0,
                AbortDelay::Seconds(7),
            ),
            (
                "never after an abort",
                json!({ "trafficRouting": {}, "abortScaleDownDelaySeconds": 0 }),
                30,
                AbortDelay::Forever,
            ),
        ];
        for (what, value, delay, abort) in cases {
            let strategy = canary(value);
            assert_eq!(strategy.scale_down_delay_seconds_or_default(), delay, "{what}");
            assert_eq!(strategy.abort_delay(), abort, "{what}");
        }
    }
}
