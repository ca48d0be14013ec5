//! Which object is it that cannot be read, and what is it read for?

use std::sync::Arc;

use super::{analyses, services, workload};
use crate::decision::{Kind, ObjectRef};
use crate::kinds;
use crate::world::{Known, World};

/// The first object that nobody knows about, in the order in which they are looked at, and the field
/// that is wanted of it. Of a kind of which none is known the name is `*`.
pub(super) fn first(world: &World) -> (ObjectRef, &'static str) {
    let rollout = &world.rollout;
    let of = |kind: Kind, name: &Arc<str>| ObjectRef::new(kind, &rollout.namespace, name);
    let all = |kind: Kind| of(kind, &"*".into());
    if is_unknown(&world.replica_sets) {
        return (all(kinds::REPLICA_SET), "metadata.ownerReferences");
    }
    let is_referring = |known: &Option<Known<_>>| known.as_ref().is_none_or(is_unknown);
    if let Some(named) = workload::reference(rollout).filter(|_| is_referring(&world.workload)) {
        return (named, "spec.template");
    }
    let mut services = services::references(&rollout.spec.fields);
    let service = services.find_map(|named| {
        let (name, known) = world.services.get_key_value(named.name)?;
        is_unknown(known).then(|| of(kinds::SERVICE, name))
    });
    if let Some(service) = service {
        return (service, "spec.selector");
    }
    if let Some(judge) = judge(world, all) {
        return judge;
    }
    let route = world.routes.iter().find(|route| is_unknown(&route.known));
    route.map_or_else(
        || (rollout.reference(), "spec"),
        |route| (route.object.clone(), "metadata.annotations"),
    )
}

/// The runs, Experiments or templates that an update may have to wait for.
fn judge(world: &World, all: impl Fn(Kind) -> ObjectRef) -> Option<(ObjectRef, &'static str)> {
    let spec = &world.rollout.spec.fields;
    let mut steps = spec.strategy.canary.iter().flat_map(|canary| &canary.steps);
    if is_unknown(&world.runs) && !analyses::of(spec).is_empty() {
        return Some((all(kinds::ANALYSIS_RUN), "status.phase"));
    }
    if is_unknown(&world.experiments) && steps.any(|step| step.experiment.is_some()) {
        return Some((all(kinds::EXPERIMENT), "status.phase"));
    }
    let templates = &world.templates;
    let namespaced = templates.namespaced.iter().map(|known| (kinds::ANALYSIS_TEMPLATE, known));
    let cluster = templates.cluster.iter().map(|known| (kinds::CLUSTER_ANALYSIS_TEMPLATE, known));
    let (kind, (name, _)) = namespaced.chain(cluster).find(|(_, (_, known))| is_unknown(*known))?;
    Some((ObjectRef { name: Arc::clone(name), ..all(kind) }, "spec.metrics"))
}

fn is_unknown<T>(known: &Known<T>) -> bool {
    matches!(known, Known::Unknown(_))
}
