//! Which objects does a Rollout name?

use super::services;
use crate::decision::ObjectRef;
use crate::kinds;
use crate::world::RolloutView;

/// Every object whose change or appearance wakes the Rollout, besides those it controls.
pub fn of(rollout: &RolloutView) -> Vec<ObjectRef> {
    let named = services::references(&rollout.spec.fields).into_iter();
    let services = named.map(|reference| rollout.service(&reference.name.into()));
    services.chain(routes(rollout)).collect()
}

/// The objects that route its traffic.
pub fn routes(rollout: &RolloutView) -> Vec<ObjectRef> {
    let canary = rollout.spec.fields.strategy.canary.as_ref();
    let Some(routing) = canary.and_then(|canary| canary.traffic_routing.as_ref()) else {
        return Vec::new();
    };
    let nginx = routing
        .nginx
        .iter()
        .flat_map(|nginx| std::iter::once(&nginx.stable_ingress).chain(&nginx.stable_ingresses));
    let alb =
        routing.alb.iter().flat_map(|alb| std::iter::once(&alb.ingress).chain(&alb.ingresses));
    let named = nginx.chain(alb).filter(|name| !name.is_empty());
    named
        .map(|name| ObjectRef::new(kinds::INGRESS, &rollout.namespace, &name.as_str().into()))
        .collect()
}
