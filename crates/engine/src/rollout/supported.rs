//! Which parts of the API does this version not carry out yet? They are refused, never ignored.

use gradus_api::rollout::{CanaryStep, RolloutSpec, StepKind};

/// The first field that asks for something this version cannot do, as a field error.
pub(super) fn first_unsupported(spec: &RolloutSpec) -> Option<String> {
    let canary = spec.strategy.canary.as_ref();
    let green = spec.strategy.blue_green.as_ref();
    let checks = [
        ("spec.workloadRef", spec.workload_ref.is_some()),
        ("spec.restartAt", spec.restart_at.is_some()),
        (
            "spec.strategy.blueGreen.previewMetadata",
            green.is_some_and(|b| b.preview_metadata.is_some()),
        ),
        (
            "spec.strategy.blueGreen.activeMetadata",
            green.is_some_and(|b| b.active_metadata.is_some()),
        ),
        (
            "spec.strategy.canary.trafficRouting",
            canary.is_some_and(|c| c.traffic_routing.is_some()),
        ),
        ("spec.strategy.canary.pingPong", canary.is_some_and(|c| c.ping_pong.is_some())),
        (
            "spec.strategy.canary.canaryMetadata",
            canary.is_some_and(|c| c.canary_metadata.is_some()),
        ),
        (
            "spec.strategy.canary.stableMetadata",
            canary.is_some_and(|c| c.stable_metadata.is_some()),
        ),
    ];
    let fields = checks.into_iter().find(|(_, is_used)| *is_used).map(|(path, _)| path.to_owned());
    let found = fields.or_else(|| {
        let steps = canary.map_or(&[][..], |c| &c.steps);
        let at = steps.iter().position(|step| !is_supported(step))?;
        Some(format!("spec.strategy.canary.steps[{at}]"))
    })?;
    Some(format!("{found}: Forbidden: this version of Gradus does not support it yet"))
}

fn is_supported(step: &CanaryStep) -> bool {
    matches!(
        step.kind(),
        StepKind::Pause(_)
            | StepKind::SetWeight(_)
            | StepKind::Analysis(_)
            | StepKind::Experiment(_)
    )
}
