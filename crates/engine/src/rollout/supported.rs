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

/// The first router that is not there yet.
fn unsupported_router(routing: &TrafficRouting) -> Option<String> {
    let routers = [
        ("spec.strategy.canary.trafficRouting.istio", routing.istio.is_some()),
        ("spec.strategy.canary.trafficRouting.smi", routing.smi.is_some()),
        ("spec.strategy.canary.trafficRouting.ambassador", routing.ambassador.is_some()),
        ("spec.strategy.canary.trafficRouting.appMesh", routing.app_mesh.is_some()),
        ("spec.strategy.canary.trafficRouting.traefik", routing.traefik.is_some()),
        ("spec.strategy.canary.trafficRouting.apisix", routing.apisix.is_some()),
        ("spec.strategy.canary.trafficRouting.plugins", !routing.plugins.is_empty()),
    ];
    routers.into_iter().find(|(_, is_used)| *is_used).map(|(path, _)| path.to_owned())
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
