//! What stands around a Rollout at the end, in words that two runs of one scenario agree on?

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gradus_engine::decision::Kind;
use gradus_engine::projection::{Revisions, named, plain};
use gradus_engine::{kinds, traffic};
use gradus_simkube::SimCluster;
use gradus_simkube::kinds::KindId;
use gradus_simkube::object::Object;
use serde_json::{Value, json};

use super::is_of_experiment;
use crate::deeds::NAMESPACE;

/// What of an object two runs must agree on.
type Side = fn(&Object) -> Value;

/// By kind and name, with revision numbers for hashes: whom each Service selects, what each
/// routing object says, how each run and Experiment stands, how many pods each of an Experiment's
/// ReplicaSets has; and the marks of Services and routing objects.
pub(super) fn around(cluster: &SimCluster, revisions: &Revisions) -> BTreeMap<String, Value> {
    let sides: [(&Kind, Side); 3] =
        [(&kinds::SERVICE, service), (&kinds::ANALYSIS_RUN, run), (&kinds::EXPERIMENT, run)];
    let routes = routes().into_iter().map(|kind| (kind, route as Side));
    let objects = sides.into_iter().chain(routes).flat_map(|(kind, side)| {
        let all = id_of(cluster, kind).into_iter().flat_map(|id| cluster.list(id, NAMESPACE));
        all.map(move |object| (kind, side, object))
    });
    let sets = experiment_sets(cluster).into_iter();
    let kind = &kinds::REPLICA_SET;
    let sets = sets.map(|set| (kind, size as Side, set));
    let seen = objects.chain(sets).map(|(kind, side, object)| {
        let name = format!("{} {}", kind.name, named(&object.meta.name, revisions));
        (name, plain(&side(object), revisions))
    });
    seen.collect()
}

/// The runs and Experiments of a cluster, each kind of them for itself.
pub(super) fn runs(cluster: &SimCluster) -> impl Iterator<Item = Vec<&Arc<Object>>> {
    let ids = [&kinds::ANALYSIS_RUN, &kinds::EXPERIMENT].map(|kind| id_of(cluster, kind));
    ids.into_iter().flatten().map(|id| cluster.list(id, NAMESPACE).collect())
}

/// The ReplicaSets of Experiments.
pub(super) fn experiment_sets(cluster: &SimCluster) -> Vec<&Arc<Object>> {
    let all = cluster.list(KindId::REPLICA_SET, NAMESPACE);
    all.filter(|set| is_of_experiment(set)).collect()
}

/// The Services of Experiments.
pub(super) fn experiment_services(cluster: &SimCluster) -> Vec<&Arc<Object>> {
    let all = cluster.list(KindId::SERVICE, NAMESPACE);
    all.filter(|service| is_of_experiment(service)).collect()
}

/// The routing objects of a cluster.
pub(super) fn all_routes(cluster: &SimCluster) -> Vec<&Arc<Object>> {
    let ids = routes().into_iter().filter_map(|kind| id_of(cluster, kind));
    ids.flat_map(|id| cluster.list(id, NAMESPACE)).collect()
}

/// The kinds that routers work on, each once.
fn routes() -> BTreeSet<&'static Kind> {
    traffic::accesses().map(|access| &access.kind).collect()
}

/// A cluster of another controller's scenarios need not know our kinds.
fn id_of(cluster: &SimCluster, kind: &Kind) -> Option<KindId> {
    cluster.kinds().by_plural(&kind.group, &kind.version, &kind.plural)
}

fn service(object: &Object) -> Value {
    json!({"selector": object.spec["selector"], "annotations": *object.meta.annotations})
}

fn route(object: &Object) -> Value {
    json!({"spec": *object.spec, "annotations": *object.meta.annotations})
}

fn run(object: &Object) -> Value {
    json!({"phase": object.status["phase"], "terminate": object.spec["terminate"]})
}

fn size(object: &Object) -> Value {
    json!({"size": object.spec["replicas"], "pods": object.status["replicas"]})
}
