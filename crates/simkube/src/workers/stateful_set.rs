//! The StatefulSet controller: pods with names and volumes of their own, started in order, replaced
//! one at a time.
//!
//! Of what a real one does two things are left out: a pod that is made anew always has the newest
//! template, and claims of pods that were scaled away stay.

mod status;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::replica_set::{is_active, ready_since};
use crate::SimCluster;
use crate::admit;
use crate::error::ApiError;
use crate::kinds::KindId;
use crate::object::{Key, Meta, Object, OwnerReference};
use crate::request::{Options, PatchKind, Verb};
use crate::selector::LabelSelector;

use status::SetCounts;

/// Which template a pod was made from.
const REVISION: &str = "controller-revision-hash";
/// How long a refused write waits before it is tried again.
const RETRY: SignedDuration = SignedDuration::from_secs(1);

/// What a StatefulSet's spec says.
struct Wanted {
    replicas: usize,
    /// Pods below this number keep their template.
    partition: usize,
    is_parallel: bool,
    replaces_pods: bool,
    /// Claims go with the set.
    takes_claims_along: bool,
    min_ready: SignedDuration,
    selector: LabelSelector,
    revision: String,
    owner: OwnerReference,
}

impl Wanted {
    fn read(set: &Object) -> Self {
        let spec = &set.spec;
        let number = |value: &Value| usize::try_from(value.as_u64().unwrap_or(0)).unwrap_or(0);
        let strategy = &spec["updateStrategy"];
        let retention = &spec["persistentVolumeClaimRetentionPolicy"];
        Self {
            replicas: number(&spec["replicas"]),
            partition: number(&strategy["rollingUpdate"]["partition"]),
            is_parallel: spec["podManagementPolicy"] == "Parallel",
            replaces_pods: strategy["type"] != "OnDelete",
            takes_claims_along: retention["whenDeleted"] == "Delete",
            min_ready: SignedDuration::from_secs(spec["minReadySeconds"].as_i64().unwrap_or(0)),
            selector: LabelSelector::from_json(&spec["selector"]).unwrap_or_default(),
            revision: format!("{}-{:08x}", set.meta.name, digest(set.template())),
            owner: OwnerReference {
                api_version: "apps/v1".into(),
                kind: "StatefulSet".into(),
                name: set.meta.name.clone(),
                uid: set.meta.uid.clone(),
                controller: Some(true),
                block_owner_deletion: Some(true),
            },
        }
    }
}

/// The StatefulSet that a pod of this name may belong to.
pub(super) fn set_of(pod: &Key) -> Option<Key> {
    let (name, ordinal) = pod.name.rsplit_once('-')?;
    let is_number = !ordinal.is_empty() && ordinal.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| Key::new(&*pod.namespace, name))
}

impl SimCluster {
    /// Brings one StatefulSet a step closer to what it wants, then writes its status.
    pub(super) fn sync_stateful_set(&mut self, key: &Key, now: Timestamp) {
        let Some(set) = self.store.get(KindId::STATEFUL_SET, key).cloned() else {
            self.work.stateful_sets.forget(key);
            return;
        };
        let wanted = Wanted::read(&set);
        let mut refused = None;
        if set.meta.deleting.is_none() {
            self.keep_claims(&set, &wanted);
            let pods = self.members(&set, &wanted);
            // What it writes wakes it again.
            refused = self.next_step(&set, &wanted, &pods, now).err();
        }
        let counts = SetCounts::of(&wanted, &self.members(&set, &wanted), now);
        self.write_set_status(&set, &wanted, &counts);
        let retry = refused.map(|_| now + RETRY);
        let next = [counts.next_available, retry].into_iter().flatten().min();
        self.work.stateful_sets.wake_at(key, next);
    }

    /// Its pods by number, after taking in those that fit and belong to nobody.
    fn members(&mut self, set: &Object, wanted: &Wanted) -> BTreeMap<usize, Arc<Object>> {
        let named: Vec<(usize, Arc<Object>)> = self
            .store
            .list(KindId::POD, &set.meta.namespace)
            .filter_map(|pod| Some((ordinal(&set.meta.name, &pod.meta.name)?, pod.clone())))
            .collect();
        let mut members = BTreeMap::new();
        for (number, pod) in named {
            match pod.controller() {
                Some(owner) if owner.uid == set.meta.uid => {
                    members.insert(number, pod);
                }
                Some(_) => {}
                None => {
                    let fits = wanted.selector.matches(&pod.meta.labels);
                    if fits && pod.meta.deleting.is_none() && set.meta.deleting.is_none() {
                        let mut owners = pod.meta.owners.clone();
                        owners.push(wanted.owner.clone());
                        members.insert(number, self.write_set_owners(&pod, owners));
                    }
                }
            }
        }
        members
    }

    fn write_set_owners(&mut self, object: &Object, owners: Vec<OwnerReference>) -> Arc<Object> {
        let meta = Meta { owners, ..Meta::clone(&object.meta) };
        let after = Object { meta: Arc::new(meta), ..Object::clone(object) };
        let user = self.work.users.stateful_sets.clone();
        self.put(after, Verb::Patch(PatchKind::Strategic), &user)
    }

    /// The first thing that is not as it should be is put right: pods from the lowest number up,
    /// then pods too many from the highest down, then old templates from the highest down.
    fn next_step(
        &mut self,
        set: &Object,
        wanted: &Wanted,
        pods: &BTreeMap<usize, Arc<Object>>,
        now: Timestamp,
    ) -> Result<(), ApiError> {
        for number in 0..wanted.replicas {
            match pods.get(&number) {
                None => self.make_pod(set, wanted, number, now)?,
                Some(pod) if pod.meta.deleting.is_some() => {}
                Some(pod) if !is_active(pod) => self.remove_pod(pod, now)?,
                Some(pod) if ready_since(pod).is_some() => continue,
                Some(_) => {}
            }
            if !wanted.is_parallel {
                return Ok(()); // The next waits for this one, and an update for all.
            }
        }
        for pod in pods.range(wanted.replicas..).rev().map(|(_, pod)| pod) {
            if pod.meta.deleting.is_none() {
                self.remove_pod(pod, now)?;
            }
            if !wanted.is_parallel {
                return Ok(());
            }
        }
        self.replace_outdated(wanted, pods, now)
    }

    /// Replaces the highest pod of an old template, once all above it are new and ready.
    fn replace_outdated(
        &mut self,
        wanted: &Wanted,
        pods: &BTreeMap<usize, Arc<Object>>,
        now: Timestamp,
    ) -> Result<(), ApiError> {
        if !wanted.replaces_pods {
            return Ok(());
        }
        for number in (wanted.partition..wanted.replicas).rev() {
            let Some(pod) = pods.get(&number).filter(|pod| pod.meta.deleting.is_none()) else {
                return Ok(()); // It is being replaced.
            };
            if pod.meta.labels.get(REVISION) != Some(&wanted.revision) {
                return self.remove_pod(pod, now);
            }
            if ready_since(pod).is_none() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn make_pod(
        &mut self,
        set: &Object,
        wanted: &Wanted,
        number: usize,
        now: Timestamp,
    ) -> Result<(), ApiError> {
        for claim in claims(set, number) {
            self.make_claim(set, wanted, claim, now)?;
        }
        let (kinds, options) = (self.kinds.clone(), self.set_options());
        let pod = pod(set, wanted, number);
        self.create_object(pod, None, kinds.get(KindId::POD), &options, now).map(drop)
    }

    fn remove_pod(&mut self, pod: &Arc<Object>, now: Timestamp) -> Result<(), ApiError> {
        let (kinds, options) = (self.kinds.clone(), self.set_options());
        self.delete_object(pod, kinds.get(KindId::POD), &options, now).map(drop)
    }

    /// A claim that is there already keeps what it holds.
    fn make_claim(
        &mut self,
        set: &Object,
        wanted: &Wanted,
        mut claim: Object,
        now: Timestamp,
    ) -> Result<(), ApiError> {
        if self.store.get(KindId::PERSISTENT_VOLUME_CLAIM, &claim.key()).is_some() {
            return Ok(());
        }
        let meta = Arc::make_mut(&mut claim.meta);
        let labels = Arc::make_mut(&mut meta.labels);
        labels.extend(texts(&set.spec["selector"]["matchLabels"]));
        if wanted.takes_claims_along {
            meta.owners.push(wanted.owner.clone());
        }
        let (kinds, options) = (self.kinds.clone(), self.set_options());
        self.create_object(claim, None, kinds.get(KindId::PERSISTENT_VOLUME_CLAIM), &options, now)
            .map(drop)
    }

    /// Claims of pods that are wanted belong to the set, or to nobody, as its policy says.
    fn keep_claims(&mut self, set: &Object, wanted: &Wanted) {
        for key in (0..wanted.replicas).flat_map(|number| claims(set, number)).map(|one| one.key())
        {
            let Some(claim) = self.store.get(KindId::PERSISTENT_VOLUME_CLAIM, &key) else {
                continue;
            };
            let is_ours = |owner: &OwnerReference| owner.uid == set.meta.uid;
            let has_owner = claim.meta.owners.iter().any(is_ours);
            if has_owner == wanted.takes_claims_along {
                continue;
            }
            let claim = claim.clone();
            let mut owners = claim.meta.owners.clone();
            owners.retain(|owner| !is_ours(owner));
            owners.extend(wanted.takes_claims_along.then(|| wanted.owner.clone()));
            self.write_set_owners(&claim, owners);
        }
    }

    fn set_options(&self) -> Options {
        Options { user: self.work.users.stateful_sets.clone(), ..Options::default() }
    }
}

/// The number of a pod of this set.
fn ordinal(set: &str, pod: &str) -> Option<usize> {
    pod.strip_prefix(set)?.strip_prefix('-')?.parse().ok()
}

fn pod(set: &Object, wanted: &Wanted, number: usize) -> Object {
    let template = set.template();
    let name = format!("{}-{number}", set.meta.name);
    let (mut meta, _) = Meta::from_json(template["metadata"].clone()).unwrap_or_default();
    meta.name = name.as_str().into();
    meta.namespace = set.meta.namespace.clone();
    meta.owners = vec![wanted.owner.clone()];
    let labels = Arc::make_mut(&mut meta.labels);
    labels.insert(REVISION.to_owned(), wanted.revision.clone());
    labels.insert("statefulset.kubernetes.io/pod-name".to_owned(), name.clone());
    labels.insert("apps.kubernetes.io/pod-index".to_owned(), number.to_string());
    let mut spec = Value::clone(&admit::pod_spec(template));
    spec["hostname"] = json!(name);
    spec["subdomain"] = set.spec["serviceName"].clone();
    let others = spec["volumes"].as_array().cloned().unwrap_or_default();
    let own: Vec<Value> = templates(set)
        .map(|template| {
            let volume = &template["metadata"]["name"];
            let claim = format!("{}-{name}", volume.as_str().unwrap_or_default());
            json!({ "name": volume, "persistentVolumeClaim": { "claimName": claim } })
        })
        .collect();
    let is_other = |volume: &Value| own.iter().all(|one| one["name"] != volume["name"]);
    let volumes: Vec<Value> =
        own.iter().cloned().chain(others.into_iter().filter(is_other)).collect();
    spec["volumes"] = json!(volumes);
    Object {
        kind: KindId::POD,
        version: 0,
        meta: Arc::new(meta),
        spec: Arc::new(spec),
        template: None,
        status: Arc::default(),
        rest: Arc::default(),
        pod: None,
    }
}

/// The claims of one pod.
fn claims(set: &Object, number: usize) -> impl Iterator<Item = Object> {
    templates(set).filter_map(move |template| {
        let mut claim =
            Object::from_json(KindId::PERSISTENT_VOLUME_CLAIM, template.clone()).ok()?;
        claim.status = Arc::default();
        let meta = Arc::make_mut(&mut claim.meta);
        meta.name = format!("{}-{}-{number}", meta.name, set.meta.name).into();
        meta.namespace = set.meta.namespace.clone();
        Some(claim)
    })
}

fn templates(set: &Object) -> impl Iterator<Item = &Value> {
    set.spec["volumeClaimTemplates"].as_array().into_iter().flatten()
}

fn texts(value: &Value) -> impl Iterator<Item = (String, String)> {
    let entries = value.as_object().into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
}

/// FNV-1a over the text of a template; its fields are sorted.
fn digest(template: &Value) -> u32 {
    let mix = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    template.to_string().bytes().fold(0x811c_9dc5, mix)
}
