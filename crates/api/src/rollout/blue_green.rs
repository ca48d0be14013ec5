//! The blue-green strategy: two full sets of pods and a switch between them.

use crate::rollout::{AntiAffinity, Metadata, RolloutAnalysis};
use crate::values::IntOrPercent;
use crate::view::view;

view! {
    /// Runs the new revision beside the active one, then switches the active Service.
    pub struct BlueGreenStrategy {
        /// Name of the Service that users reach. The controller points its selector at the promoted
        /// revision. Required, and different from `previewService`.
        required active_service: String,
        /// Name of the Service whose selector the controller points at the new revision before the
        /// promotion. Default: none.
        preview_service: String,
        /// Number of pods of the new revision before the promotion, 0 or more. Default: `replicas`.
        preview_replica_count: Option<i32>,
        /// Promotes the new revision as soon as its pods are available. False pauses until a person
        /// runs `kubectl argo rollouts promote`. Default: true.
        auto_promotion_enabled: Option<bool>,
        /// Seconds to pause before the new revision is promoted; 0 does not pause. Ignored if
        /// `autoPromotionEnabled` is false. Default: 0.
        auto_promotion_seconds: i32,
        /// Number of pods, or percentage of `replicas` such as `25%` (rounded down), that may be
        /// unavailable during a restart. Default: 25%.
        max_unavailable: Option<IntOrPercent>,
        /// Seconds before the former active ReplicaSet is scaled down after a promotion, so that
        /// clients can follow the Service. Default: 30.
        scale_down_delay_seconds: Option<i32>,
        /// Number of former ReplicaSets that may wait for `scaleDownDelaySeconds` at a time, at
        /// most `revisionHistoryLimit`. Default: no limit.
        scale_down_delay_revision_limit: Option<i32>,
        /// Analysis before the active Service is switched. The promotion waits for its AnalysisRun;
        /// if that fails, the update is aborted. Default: none.
        pre_promotion_analysis: Option<Box<RolloutAnalysis>>,
        /// Keeps pods of the new revision off the nodes of active pods. Default: none.
        anti_affinity: Option<AntiAffinity>,
        /// Analysis after the active Service is switched. If its AnalysisRun fails, the Service is
        /// switched back and the update is aborted. Default: none.
        post_promotion_analysis: Option<Box<RolloutAnalysis>>,
        /// Labels and annotations that the pods of the new revision have before the promotion. Pods
        /// are not restarted for them. Default: none.
        preview_metadata: Option<Metadata>,
        /// Labels and annotations that the pods of the active revision have. Pods are not restarted
        /// for them. Default: none.
        active_metadata: Option<Metadata>,
        /// Seconds before the new ReplicaSet is scaled down after an abort; 0 keeps it. Default:
        /// 30.
        abort_scale_down_delay_seconds: Option<i32>,
    }
}
