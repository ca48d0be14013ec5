//! Which objects does a Rollout name?

use super::services;
use crate::decision::ObjectRef;
use crate::traffic;
use crate::world::RolloutView;

/// Every object whose change or appearance wakes the Rollout, besides those it controls.
pub fn of(rollout: &RolloutView) -> Vec<ObjectRef> {
    let named = services::references(&rollout.spec.fields).into_iter();
    let services = named.map(|reference| rollout.service(&reference.name.into()));
    services.chain(routes(rollout)).collect()
}

/// The objects that route its traffic: those it names, and those its routers make.
pub fn routes(rollout: &RolloutView) -> Vec<ObjectRef> {
    let routers = traffic::routers(rollout);
    let mut found: Vec<ObjectRef> = routers.iter().flat_map(|router| router.reads()).collect();
    found.sort();
    found.dedup();
    found
}
