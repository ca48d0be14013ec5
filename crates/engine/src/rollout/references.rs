//! Which objects does a Rollout name?

use std::sync::Arc;

use super::{analyses, services};
use crate::decision::ObjectRef;
use crate::kinds;
use crate::world::RolloutView;

/// Every object whose change or appearance wakes the Rollout, besides those it controls.
pub fn of(rollout: &RolloutView) -> Vec<ObjectRef> {
    let named = services::references(&rollout.spec.fields).into_iter();
    let services = named.map(|reference| rollout.service(&reference.name.into()));
    services.chain(routes(rollout)).chain(templates(rollout)).collect()
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
