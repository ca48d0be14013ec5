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

use crate::deeds::NAMESPACE;

/// What of an object two runs must agree on.
type Side = fn(&Object) -> Value;

/// By kind and name, with revision numbers for hashes: whom each Service selects, what each
/// routing object says, how each run and Experiment stands; and the marks of Services and routing
/// objects.
pub(super) fn around(cluster: &SimCluster, revisions: &Revisions) -> BTreeMap<String, Value> {
    let sides: [(&Kind, Side); 3] =
        [(&kinds::SERVICE, service), (&kinds::ANALYSIS_RUN, run), (&kinds::EXPERIMENT, run)];
    let routes = routes().into_iter().map(|kind| (kind, route as Side));
    let objects = sides.into_iter().chain(routes).flat_map(|(kind, side)| {
        let all = id_of(cluster, kind).into_iter().flat_map(|id| cluster.list(id, NAMESPACE));
        all.map(move |object| (kind, side, object))
    });
    let seen = objects.map(|(kind, side, object)| {
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
