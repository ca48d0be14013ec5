//! Which objects does a Rollout name, and can it use them?

use std::sync::Arc;

use super::{analyses, services, workload};
use crate::decision::ObjectRef;
use crate::kinds;
use crate::traffic::{self, RoutingObjects};
use crate::world::{RolloutView, Unusable, World};

/// Every object whose change or appearance wakes the Rollout, besides those it controls.
pub fn of(rollout: &RolloutView, seen: &RoutingObjects) -> Vec<ObjectRef> {
    let named = services::references(&rollout.spec.fields);
    let services = named.map(|reference| rollout.service(&reference.name.into()));
    let others = templates(rollout).into_iter().chain(workload::reference(rollout));
    services.chain(routes(rollout, seen)).chain(others).collect()
}

/// The templates of its analyses.
pub fn templates(rollout: &RolloutView) -> Vec<ObjectRef> {
    let analyses = analyses::of(&rollout.spec.fields);
    let named = analyses.iter().flat_map(|analysis| analysis.named());
    named.map(|(name, is_cluster)| template(&rollout.namespace, name, is_cluster)).collect()
}

/// A template as one of a namespace names it.
pub fn template(namespace: &Arc<str>, name: &str, is_cluster: bool) -> ObjectRef {
    if is_cluster {
        ObjectRef::new(kinds::CLUSTER_ANALYSIS_TEMPLATE, &"".into(), &name.into())
    } else {
        ObjectRef::new(kinds::ANALYSIS_TEMPLATE, namespace, &name.into())
    }
}

/// The objects that route its traffic: those it names, those its routers make, and those that the
/// ones that are there name.
pub fn routes(rollout: &RolloutView, seen: &RoutingObjects) -> Vec<ObjectRef> {
    let routers = traffic::routers(rollout);
    let needs =
        routers.iter().flat_map(|router| router.needs().into_iter().chain(router.leads_to(seen)));
    let mut found: Vec<ObjectRef> = needs.map(|need| need.object).collect();
    found.sort();
    found.dedup();
    found
}

/// The first thing that keeps a Rollout from using what it names: whether everything is there is asked
/// before what it says.
pub(super) fn check(world: &World) -> Option<Unusable> {
    let looks: [fn(&World) -> Option<Unusable>; 7] = [
        services::missing,
        analyses::missing,
        traffic::misconfigured,
        traffic::missing,
        services::unfit,
        analyses::unfit,
        traffic::unfit,
    ];
    looks.into_iter().find_map(|look| look(world))
}
