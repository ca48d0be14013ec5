//! The ReplicaSet controller: makes as many pods as are wanted, and counts them.

mod status;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::SimCluster;
use crate::admit;
use crate::behave::Phase;
use crate::error::ApiError;
use crate::kinds::KindId;
use crate::object::{Key, Meta, Object, OwnerReference, Texts};
use crate::request::{Options, PatchKind, Verb};
use crate::selector::LabelSelector;

use status::Counts;

/// The first wait after a refused write; it doubles up to the longest.
const FIRST_RETRY: SignedDuration = SignedDuration::from_secs(1);
const LONGEST_RETRY: SignedDuration = SignedDuration::from_secs(300);
/// The most pods made or deleted in one go, as on a real cluster.
const BURST: usize = 500;

/// What the controller remembers between two looks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Replicas {
    templates: BTreeMap<Arc<str>, Arc<Template>>,
    orphans: BTreeSet<Key>,
    failures: BTreeMap<Key, u32>,
}

/// What a ReplicaSet's spec says, read once for each spec.
#[derive(Debug)]
struct Template {
    source: Arc<Object>,
    replicas: usize,
    min_ready: SignedDuration,
    selector: Arc<LabelSelector>,
    pods: Arc<PodTemplate>,
    /// Whether the selector accepts the pods made from here.
    selects_own: bool,
}

/// What all pods of a template share, read once for each template.
#[derive(Debug)]
struct PodTemplate {
    generate_name: Arc<str>,
    labels: Arc<Texts>,
    annotations: Arc<Texts>,
    finalizers: Vec<String>,
    owner: OwnerReference,
    spec: Arc<Value>,
    /// What a pod that nobody has looked at says of itself.
    status: Arc<Value>,
}

/// A write the server refused.
struct Refusal {
    reason: &'static str,
    error: ApiError,
}

impl Replicas {
    pub(super) fn forget(&mut self, uid: &str) {
        self.templates.remove(uid);
    }

    pub(super) fn note_orphan(&mut self, pod: Key, is_orphan: bool) {
        if is_orphan {
            self.orphans.insert(pod);
        } else if !self.orphans.is_empty() {
            self.orphans.remove(&pod);
        }
    }

    fn template(&mut self, replica_set: &Arc<Object>) -> Arc<Template> {
        let old = self.templates.get(&replica_set.meta.uid);
        if let Some(old) = old.filter(|old| old.is_of(replica_set)) {
            return old.clone();
        }
        let template = Arc::new(Template::read(replica_set, old.map(|old| &**old)));
        self.templates.insert(replica_set.meta.uid.clone(), template.clone());
        template
    }
}

impl Template {
    fn is_of(&self, replica_set: &Object) -> bool {
        Arc::ptr_eq(&self.source.spec, &replica_set.spec)
            && self.source.shares_template(replica_set)
    }

    fn read(replica_set: &Arc<Object>, old: Option<&Self>) -> Self {
        // Who writes an equal template stores the one that is there.
        let same = old.filter(|old| old.source.shares_template(replica_set));
        let pods = same.map(|same| same.pods.clone());
        let pods = pods.unwrap_or_else(|| Arc::new(PodTemplate::read(replica_set)));
        let spec = &replica_set.spec;
        let same = old.filter(|old| old.source.spec["selector"] == spec["selector"]);
        let selector = same.map(|same| same.selector.clone());
        let selector = selector.unwrap_or_else(|| {
            Arc::new(LabelSelector::from_json(&spec["selector"]).unwrap_or_default())
        });
        let selects_own = match same.filter(|same| Arc::ptr_eq(&same.pods, &pods)) {
            Some(same) => same.selects_own,
            None => selector.matches(&pods.labels),
        };
        let replicas = spec["replicas"].as_u64().unwrap_or(1);
        let min_ready = spec["minReadySeconds"].as_i64().unwrap_or(0);
        Self {
            source: replica_set.clone(),
            replicas: usize::try_from(replicas).unwrap_or(usize::MAX),
            min_ready: SignedDuration::from_secs(min_ready),
            selector,
            pods,
            selects_own,
        }
    }
}

impl PodTemplate {
    fn read(replica_set: &Object) -> Self {
        let template = replica_set.template();
        let (meta, _) = Meta::from_json(template["metadata"].clone()).unwrap_or_default();
        let spec = admit::pod_spec(template);
        Self {
            generate_name: format!("{}-", replica_set.meta.name).into(),
            labels: meta.labels,
            annotations: meta.annotations,
            finalizers: meta.finalizers,
            owner: OwnerReference {
                api_version: "apps/v1".into(),
                kind: "ReplicaSet".into(),
                name: replica_set.meta.name.clone(),
                uid: replica_set.meta.uid.clone(),
                controller: Some(true),
                block_owner_deletion: Some(true),
            },
            status: admit::first_pod_status(&spec),
            spec,
        }
    }

    fn pod(&self, namespace: &Arc<str>) -> Object {
        let meta = Meta {
            name: Arc::default(),
            namespace: namespace.clone(),
            uid: Arc::default(),
            generate_name: self.generate_name.clone(),
            generation: 0,
            created: Timestamp::UNIX_EPOCH,
            deleting: None,
            grace_seconds: None,
            labels: self.labels.clone(),
            annotations: self.annotations.clone(),
            owners: vec![self.owner.clone()],
            finalizers: self.finalizers.clone(),
        };
        Object {
            kind: KindId::POD,
            version: 0,
            meta: Arc::new(meta),
            spec: self.spec.clone(),
            template: None,
            status: self.status.clone(),
            rest: Arc::default(),
            pod: None,
        }
    }
}

impl SimCluster {
    /// Brings one ReplicaSet closer to what it wants: pods first, then one status write.
    pub(super) fn sync_replica_set(&mut self, key: &Key, now: Timestamp) {
        let Some(replica_set) = self.store.get(KindId::REPLICA_SET, key).cloned() else {
            self.work.replica_sets.forget(key);
            return;
        };
        let template = self.work.replicas.template(&replica_set);
        let pods = self.claim(&replica_set, &template);
        let terminating = pods.iter().filter(|pod| is_terminating(pod)).count();
        let active: Vec<Arc<Object>> = pods.into_iter().filter(|pod| is_active(pod)).collect();
        let refusal = if replica_set.meta.deleting.is_none() {
            self.resize(&replica_set, &template, &active, now).err()
        } else {
            None
        };
        let counts = Counts::of(&template, &active, terminating, now);
        self.write_status(&replica_set, &counts, refusal.as_ref(), now);
        let retry = self.retry_at(key, refusal.is_some(), now);
        self.work
            .replica_sets
            .wake_at(key, [counts.next_available, retry].into_iter().flatten().min());
    }

    /// The pods that belong to a ReplicaSet, after taking in those that fit and letting go those
    /// that no longer do.
    fn claim(&mut self, replica_set: &Object, template: &Template) -> Vec<Arc<Object>> {
        let uid = &replica_set.meta.uid;
        let mut pods = Vec::with_capacity(template.replicas.min(BURST));
        let mut strangers = Vec::new();
        // Pods of one template share their labels.
        let mut last = (&template.pods.labels, template.selects_own);
        for pod in self.store.dependents(uid).filter(|one| one.kind == KindId::POD) {
            if pod.controller().is_none_or(|owner| owner.uid != *uid) {
                continue;
            }
            let labels = &pod.meta.labels;
            if !Arc::ptr_eq(last.0, labels) {
                last = (labels, template.selector.matches(labels));
            }
            if last.1 {
                pods.push(pod.clone());
            } else if pod.meta.deleting.is_none() {
                strangers.push(pod.clone());
            }
        }
        if replica_set.meta.deleting.is_some() {
            return pods;
        }
        for pod in strangers {
            let mut meta = Meta::clone(&pod.meta);
            meta.owners.retain(|owner| owner.uid != *uid);
            self.write_owners(&pod, meta);
        }
        for pod in self.orphans_for(replica_set, template) {
            let mut meta = Meta::clone(&pod.meta);
            meta.owners.push(template.pods.owner.clone());
            pods.push(self.write_owners(&pod, meta));
        }
        pods
    }

    fn orphans_for(&self, replica_set: &Object, template: &Template) -> Vec<Arc<Object>> {
        let orphans = self.work.replicas.orphans.iter();
        orphans
            .filter(|key| key.namespace == replica_set.meta.namespace)
            .filter_map(|key| self.store.get(KindId::POD, key))
            .filter(|pod| pod.meta.deleting.is_none())
            .filter(|pod| template.selector.matches(&pod.meta.labels) && is_active(pod))
            .cloned()
            .collect()
    }

    fn write_owners(&mut self, pod: &Arc<Object>, meta: Meta) -> Arc<Object> {
        let after = Object { meta: Arc::new(meta), ..Object::clone(pod) };
        let user = self.work.users.replica_sets.clone();
        self.put(after, Verb::Patch(PatchKind::Strategic), &user)
    }

    /// Makes or deletes pods until their number is right, or the server refuses.
    fn resize(
        &mut self,
        replica_set: &Object,
        template: &Template,
        active: &[Arc<Object>],
        now: Timestamp,
    ) -> Result<(), Refusal> {
        let missing = template.replicas.saturating_sub(active.len()).min(BURST);
        let spare = active.len().saturating_sub(template.replicas).min(BURST);
        if missing == 0 && spare == 0 {
            return Ok(());
        }
        let kinds = self.kinds.clone();
        let kind = kinds.get(KindId::POD);
        let user = self.work.users.replica_sets.clone();
        let options = Options { user, ..Options::default() };
        let mut like = active.first().cloned();
        for _ in 0..missing {
            let pod = template.pods.pod(&replica_set.meta.namespace);
            match self.create_object(pod, like.as_deref(), kind, &options, now) {
                Ok(pod) => like = Some(pod),
                Err(error) if is_namespace_terminating(&error) => break,
                Err(error) => return Err(Refusal { reason: "FailedCreate", error }),
            }
        }
        if spare > 0 {
            for pod in least_wanted(active, spare) {
                let deleted = self.delete_object(&pod, kind, &options, now);
                deleted.map_err(|error| Refusal { reason: "FailedDelete", error })?;
            }
        }
        Ok(())
    }

    fn retry_at(&mut self, key: &Key, has_failed: bool, now: Timestamp) -> Option<Timestamp> {
        if !has_failed {
            self.work.replicas.failures.remove(key);
            return None;
        }
        let times = self.work.replicas.failures.entry(key.clone()).or_default();
        let wait = FIRST_RETRY * (1 << (*times).min(16));
        *times += 1;
        Some(now + wait.min(LONGEST_RETRY))
    }
}

fn is_namespace_terminating(error: &ApiError) -> bool {
    let causes = error.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating")
}

/// A pod that counts: neither ended nor on its way out.
pub(super) fn is_active(pod: &Object) -> bool {
    pod.meta.deleting.is_none() && !phase(pod).has_ended()
}

/// A pod on its way out that has not ended yet.
fn is_terminating(pod: &Object) -> bool {
    pod.meta.deleting.is_some() && !phase(pod).has_ended()
}

pub(super) fn phase(pod: &Object) -> Phase {
    if let Some(status) = &pod.pod {
        return status.state.phase;
    }
    match pod.status["phase"].as_str() {
        Some("Running") => Phase::Running,
        Some("Succeeded") => Phase::Succeeded,
        Some("Failed") => Phase::Failed,
        _ => Phase::Pending,
    }
}

/// Since when a pod is ready, if it is.
pub(super) fn ready_since(pod: &Object) -> Option<Timestamp> {
    if let Some(status) = &pod.pod {
        return status.ready.then_some(status.ready_since);
    }
    let conditions = pod.status["conditions"].as_array()?;
    let ready = conditions.iter().find(|one| one["type"] == "Ready" && one["status"] == "True")?;
    ready["lastTransitionTime"].as_str()?.parse().ok()
}

/// The pods to delete first: without a node, pending, not ready, cheap to lose, ready for the
/// shortest time, restarted most often, youngest.
fn least_wanted(active: &[Arc<Object>], count: usize) -> Vec<Arc<Object>> {
    let mut pods: Vec<&Arc<Object>> = active.iter().collect();
    pods.sort_by_cached_key(|pod| {
        let cost = pod.meta.annotations.get("controller.kubernetes.io/pod-deletion-cost");
        let cost = cost.and_then(|text| text.parse::<i32>().ok()).unwrap_or_default();
        let has_node = pod.pod.is_some() || pod.spec["nodeName"].is_string();
        let ready = ready_since(pod);
        let restarts = pod.pod.as_ref().map_or(0, |status| status.state.restarts);
        (
            has_node,
            phase(pod),
            ready.is_some(),
            cost,
            Reverse(ready),
            Reverse(restarts),
            Reverse(pod.meta.created),
            pod.meta.name.clone(),
        )
    });
    pods.into_iter().take(count).cloned().collect()
}
