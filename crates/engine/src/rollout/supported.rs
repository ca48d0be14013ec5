//! Which parts of the API does this version not carry out yet? They are refused, never ignored.

use gradus_api::rollout::{CanaryStep, RolloutSpec, StepKind};

use crate::traffic::{self, NOT_YET, RouteFault};

/// The first field that asks for something this version cannot do.
pub fn first_unsupported(spec: &RolloutSpec) -> Option<RouteFault> {
    traffic::unsupported(spec).or_else(|| {
        let steps = spec.strategy.canary.as_ref().map_or(&[][..], |canary| &canary.steps);
        let at = steps.iter().position(|step| !is_supported(step))?;
        let path = format!("spec.strategy.canary.steps[{at}]");
        Some(RouteFault::configuration(path, NOT_YET))
    })
}

fn is_supported(step: &CanaryStep) -> bool {
    match step.kind() {
        StepKind::Pause(_)
        | StepKind::SetWeight(_)
        | StepKind::SetCanaryScale(_)
        | StepKind::SetHeaderRoute(_)
        | StepKind::SetMirrorRoute(_)
        | StepKind::Analysis(_)
        | StepKind::Experiment(_)
        | StepKind::Plugin(_) => true,
        StepKind::Empty => false,
    }
}
