//! The blue-green strategy: two full sets of pods and a switch between them.

use crate::rollout::{AntiAffinity, Metadata, RolloutAnalysis};
use crate::values::IntOrPercent;
use crate::view::view;

view! {
    /// Runs the new revision beside the active one, then switches the active Service.
    pub struct BlueGreenStrategy {
        /// The Service users reach.
        required active_service: String,
        /// The Service of the new revision before the switch.
        preview_service: String,
        /// Pods of the new revision before the switch; missing means all.
        preview_replica_count: Option<i32>,
        /// Whether the switch needs no person; missing means true.
        auto_promotion_enabled: Option<bool>,
        /// Seconds to wait before the switch; 0 means not to wait.
        auto_promotion_seconds: i32,
        /// Pods that may be missing while pods are restarted.
        max_unavailable: Option<IntOrPercent>,
        /// Seconds an old ReplicaSet stays after the switch; missing means 30.
        scale_down_delay_seconds: Option<i32>,
        /// How many old ReplicaSets may stay that long; missing means all.
        scale_down_delay_revision_limit: Option<i32>,
        /// Analysis before the switch.
        pre_promotion_analysis: Option<Box<RolloutAnalysis>>,
        /// Keeps new pods away from active ones.
        anti_affinity: Option<AntiAffinity>,
        /// Analysis after the switch.
        post_promotion_analysis: Option<Box<RolloutAnalysis>>,
        /// Metadata of the new revision's pods before the switch.
        preview_metadata: Option<Metadata>,
        /// Metadata of the active pods.
        active_metadata: Option<Metadata>,
        /// Seconds the new revision stays after an abort; missing means 30, 0 for ever.
        abort_scale_down_delay_seconds: Option<i32>,
    }
}
