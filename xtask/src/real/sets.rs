//! The ReplicaSets of a namespace, by revision.

use std::collections::{BTreeMap, BTreeSet};

use gradus_api::names;
use gradus_engine::projection::Revisions;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client, ResourceExt, api::ListParams};

/// All that are a Rollout's; Deployments and Experiments have theirs, too.
pub async fn list(client: &Client, namespace: &str) -> Result<Vec<ReplicaSet>, kube::Error> {
    let sets: Api<ReplicaSet> = Api::namespaced(client.clone(), namespace);
    let labelled = ListParams::default().labels(names::label::POD_TEMPLATE_HASH);
    let found = sets.list(&labelled).await?.items;
    Ok(found.into_iter().filter(|set| !is_of_experiment(set)).collect())
}

fn is_of_experiment(set: &ReplicaSet) -> bool {
    set.owner_references().iter().any(|owner| owner.kind == names::kind::EXPERIMENT)
}

/// Revision numbers by pod template hash.
pub fn revisions(sets: &[ReplicaSet]) -> Revisions {
    let pairs = sets.iter().filter_map(|set| {
        let hash = set.labels().get(names::label::POD_TEMPLATE_HASH)?;
        Some((hash.clone(), revision(set)?))
    });
    pairs.collect()
}

/// Wanted pods, by revision.
pub fn sizes(sets: &[ReplicaSet]) -> BTreeMap<i64, i64> {
    let size = |set: &ReplicaSet| i64::from(set.spec.replicas.unwrap_or(1));
    sets.iter().map(|set| (revision(set).unwrap_or(0), size(set))).collect()
}

/// Labels and annotations of the pods of each revision, each text once.
pub async fn marks(
    client: &Client,
    namespace: &str,
    sets: &[ReplicaSet],
) -> Result<BTreeMap<i64, BTreeSet<String>>, kube::Error> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let revisions = revisions(sets);
    let mut found = BTreeMap::<i64, BTreeSet<String>>::new();
    for pod in pods.list(&ListParams::default()).await?.items {
        let hash = pod.labels().get(names::label::POD_TEMPLATE_HASH);
        if let Some(revision) = hash.and_then(|hash| revisions.get(hash)) {
            let marks = gradus_lab::ends::marks(pod.labels(), pod.annotations());
            found.entry(*revision).or_default().insert(marks);
        }
    }
    Ok(found)
}

fn revision(set: &ReplicaSet) -> Option<i64> {
    set.annotations().get(names::annotation::REVISION)?.parse().ok()
}

#[test]
fn sets_are_known_by_their_revision() {
    let set = |hash: &str, revision: &str, size: i32| {
        let mut set = ReplicaSet::default();
        set.spec.replicas = Some(size);
        let label = (names::label::POD_TEMPLATE_HASH.to_owned(), hash.to_owned());
        set.metadata.labels = Some([label].into());
        let annotation = (names::annotation::REVISION.to_owned(), revision.to_owned());
        set.metadata.annotations = Some([annotation].into());
        set
    };
    let sets = [set("aaa", "1", 0), set("bbb", "2", 5)];
    assert_eq!(sizes(&sets), BTreeMap::from([(1, 0), (2, 5)]));
    let expected = Revisions::from([("aaa".to_owned(), 1), ("bbb".to_owned(), 2)]);
    assert_eq!(revisions(&sets), expected);
}
