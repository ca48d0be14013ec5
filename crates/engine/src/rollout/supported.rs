//! Which parts of the API does this version not carry out yet? They are refused, never ignored.

use gradus_api::rollout::{CanaryStep, RolloutSpec, StepKind};
use gradus_api::traffic::TrafficRouting;

/// The first field that asks for something this version cannot do, as a field error.
pub fn first_unsupported(spec: &RolloutSpec) -> Option<String> {
    let canary = spec.strategy.canary.as_ref();
    let routing = || unsupported_router(canary?.traffic_routing.as_deref()?);
    let found = routing().or_else(|| {
        let steps = canary.map_or(&[][..], |c| &c.steps);
        let at = steps.iter().position(|step| !is_supported(step))?;
        Some(format!("spec.strategy.canary.steps[{at}]"))
    })?;
    Some(format!("{found}: Forbidden: this version of Gradus does not support it yet"))
}

/// The routers that are there.
const ROUTERS: [&str; 2] = ["nginx", "alb"];

/// The first router that is not there yet.
fn unsupported_router(routing: &TrafficRouting) -> Option<String> {
    let mut asked_for = routing.routers().into_iter().filter(|router| router.is_used);
    let missing = asked_for.find(|router| !ROUTERS.contains(&router.name))?;
    Some(format!("spec.strategy.canary.trafficRouting.{}", missing.name))
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
