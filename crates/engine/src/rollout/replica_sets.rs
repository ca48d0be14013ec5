//! Which ReplicaSet is new, stable or old; how is one made, and how does its revision follow?

use std::sync::Arc;

use gradus_api::names::{annotation, condition_status, event, reason};
use gradus_api::rollout::RolloutStatus;
use serde_json::{Map, Value, json};

use super::affinity;
use super::conditions::{self, Statement};
use super::metadata;
use super::objects::{Edit, Objects};
use super::plan::{Creation, Proposal};
use super::workload;
use crate::decision::{Change, ObjectRef};
use crate::replica_set_create::{self, NewReplicaSet, object};
use crate::world::{Deadline, ReplicaSetView, RolloutView};

/// Annotations of the Rollout that its ReplicaSets do not get.
const NOT_COPIED: [&str; 6] = [
    annotation::LAST_APPLIED,
    annotation::REVISION,
    annotation::REVISION_HISTORY,
    annotation::DESIRED_REPLICAS,
    annotation::NOTIFIED,
    // As it will be, not as it is stored.
    annotation::WORKLOAD_GENERATION,
];

/// The index of the ReplicaSet that runs the Rollout's template: by hash, by the hash Argo up to
/// 1.8 computed, else the first whose template is equal.
pub(super) fn find_new(rollout: &RolloutView, sets: &[Arc<ReplicaSetView>]) -> Option<usize> {
    let by_hash = |hash: &str| sets.iter().position(|set| &*set.hash == hash);
    by_hash(&rollout.hash)
        .or_else(|| by_hash(&rollout.legacy_hash))
        .or_else(|| sets.iter().position(|set| set.template == rollout.spec.template_digest))
}

/// The index of the ReplicaSet with this hash, if the hash is set.
pub(super) fn find_stable(stable: &str, sets: &[Arc<ReplicaSetView>]) -> Option<usize> {
    if stable.is_empty() { None } else { sets.iter().position(|set| &*set.hash == stable) }
}

/// Who is who among the ReplicaSets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Roles {
    /// Runs the current template.
    pub new: usize,
    /// Last promoted; the same as `new` when promoted, `None` on the first deploy.
    pub stable: Option<usize>,
}

impl Roles {
    /// The stable ReplicaSet where it is another one than the new one.
    pub fn separate_stable(&self) -> Option<usize> {
        self.stable.filter(|stable| *stable != self.new)
    }

    /// Neither new nor stable.
    pub fn others(self, objects: &Objects<'_>) -> impl Iterator<Item = usize> + use<> {
        (0..objects.sets.len()).filter(move |at| *at != self.new && Some(*at) != self.stable)
    }
}

/// Plans the ReplicaSet of a new template, with size 0 for now, and the revision on the Rollout.
pub(super) fn create(objects: &Objects<'_>) -> Proposal {
    let rollout = objects.rollout();
    let revision = next_revision(&objects.sets, None);
    let name: Arc<str> = format!("{}-{}", rollout.name, rollout.hash).into();
    let target = rollout.replica_set(&name);
    let change = Change::create(target.clone(), manifest(objects, &name, revision));
    let set = created(objects, &name, revision);
    let mut status = RolloutStatus::clone(&objects.status);
    let (truth, reason) = (condition_status::TRUE, reason::NEW_REPLICA_SET_CREATED);
    let words = format_args!("Created new replica set \"{name}\"");
    let statement = Statement::progressing(truth, reason, words);
    conditions::set(&mut status.conditions, objects.now, statement);
    let text = format!("Created ReplicaSet {name} (revision {revision})");
    Proposal::default()
        .write(change, Edit::NewSet(Arc::new(set)))
        .and(note_revision(objects, revision))
        .note(status)
        .tell_of(target, reason, text)
}

/// Resizes a ReplicaSet, or only refreshes its note of the desired number of pods.
pub(super) fn resize(objects: &Objects<'_>, at: usize, size: i32) -> Proposal {
    let (set, replicas) = (&objects.sets[at], objects.replicas());
    if set.size == size && set.desired_replicas == Some(replicas) {
        return Proposal::default();
    }
    let mut body = json!({ "metadata": { "annotations": {
        annotation::DESIRED_REPLICAS: replicas.to_string(),
    } } });
    if size == 0 && set.deadline != Deadline::None {
        body["metadata"]["annotations"][annotation::SCALE_DOWN_DEADLINE] = Value::Null;
    }
    if set.size != size {
        body["spec"] = json!({ "replicas": size });
    }
    let target = objects.rollout().replica_set(&set.name);
    let resized =
        Proposal::default().patch(target.clone(), body, set.version, Edit::Resize(at, size));
    if set.size == size {
        return resized;
    }
    let direction = if size > set.size { "up" } else { "down" };
    let revision = set.revision.unwrap_or(0);
    let message = format!(
        "Scaled {direction} ReplicaSet {} (revision {revision}) from {} to {size}",
        set.name, set.size
    );
    resized.tell_of(target, event::SCALING_REPLICA_SET, message)
}

/// Brings annotations, revision and minReadySeconds of the new ReplicaSet, and the revision of the
/// Rollout, up to date.
pub(super) fn sync_revision(objects: &Objects<'_>, creation: Creation, new: usize) -> Proposal {
    let set = Arc::clone(&objects.sets[new]);
    let rollout = objects.rollout();
    let mut notes = Map::new();
    for (key, value) in copied(rollout) {
        if !set.has_annotation(key, value) {
            notes.insert(key.to_owned(), json!(value));
        }
    }
    let due = next_revision(&objects.sets, Some(new));
    let revision = set.revision.unwrap_or(0).max(due);
    if set.revision != Some(revision) {
        notes.insert(annotation::REVISION.to_owned(), json!(revision.to_string()));
    }
    if let (Some(former), false) = (set.revision, notes.is_empty()) {
        let history = match set.rare.as_ref().and_then(|rare| rare.revision_history.as_ref()) {
            Some(history) => format!("{history},{former}"),
            None => former.to_string(),
        };
        notes.insert(annotation::REVISION_HISTORY.to_owned(), json!(history));
    }
    let mut spec = Map::new();
    let seconds = objects.spec().min_ready_seconds;
    if set.min_ready_seconds != seconds {
        spec.insert("minReadySeconds".into(), json!(seconds));
    }
    let is_touched = !notes.is_empty() || !spec.is_empty();
    let keeps_away_from = renewed_affinity(objects, &set, is_touched, &mut spec);
    if notes.is_empty() && spec.is_empty() || creation != Creation::None {
        return note_revision(objects, revision);
    }
    let is_respecified = !spec.is_empty();
    let mut body = Map::new();
    if !notes.is_empty() {
        body.insert("metadata".into(), object([("annotations", Value::Object(notes))]));
    }
    if is_respecified {
        body.insert("spec".into(), Value::Object(spec));
    }
    let (target, version) = (rollout.replica_set(&set.name), set.version);
    let mut set = set;
    let view = Arc::make_mut(&mut set);
    view.revision = Some(revision);
    view.generation += i64::from(is_respecified);
    view.min_ready_seconds = seconds;
    if let Some(rare) = &mut view.rare {
        rare.keeps_away_from = keeps_away_from;
    }
    view.with_annotations(copied(rollout));
    Proposal::default()
        .patch(target, Value::Object(body), version, Edit::Set(new, set))
        .and(note_revision(objects, revision))
}

/// An injected term that names another revision than the stable one is renewed. With the next
/// change, one that is no longer wanted goes, and one that is missing comes. Returns what the pods
/// keep away from afterwards.
fn renewed_affinity(
    objects: &Objects<'_>,
    set: &ReplicaSetView,
    is_touched: bool,
    spec: &mut Map<String, Value>,
) -> Option<String> {
    let known = set.keeps_away_from();
    let stable = &objects.status.stable_rs;
    let is_updated = **stable != *set.hash && !stable.is_empty();
    let is_outdated = known.is_some_and(|known| is_updated && *stable != known);
    if !is_outdated && !is_touched {
        return known.map(str::to_owned);
    }
    let template = parsed(objects.rollout());
    let wanted = affinity::wanted(objects, &set.hash, &template);
    let is_injected = wanted.as_ref().is_some_and(|wanted| {
        crate::template::injected_stable_hash(&json!({ "spec": { "affinity": wanted } })).is_some()
    });
    if known.is_none() && !is_injected {
        return None; // Nothing of ours is there, and nothing is wanted.
    }
    let replacement = affinity::replacement(wanted);
    spec.insert("template".into(), json!({ "spec": { "affinity": replacement } }));
    is_injected.then(|| stable.to_string())
}

/// The main resource of the Rollout: its revision, the generation of its workload, and 1 replica
/// where none is said, because an autoscaler reads it.
fn note_revision(objects: &Objects<'_>, revision: i32) -> Proposal {
    let text = revision.to_string();
    let rollout = objects.rollout();
    let mut noted = workload::note_generation(objects);
    if objects.spec().replicas.is_none() && objects.generation == rollout.generation {
        let body = json!({ "spec": { "replicas": 1 } });
        noted = noted.patch(rollout.reference(), body, rollout.version, Edit::Generation);
    }
    if objects.revision.as_ref() == Some(&text) {
        return noted;
    }
    let body = json!({ "metadata": { "annotations": { annotation::REVISION: text } } });
    let message = format!("Rollout updated to revision {revision}");
    noted.patch(rollout.reference(), body, rollout.version, Edit::Revision(text)).tell_of(
        rollout.reference(),
        event::ROLLOUT_UPDATED,
        message,
    )
}

/// One more than the highest revision of all but `except`.
fn next_revision(sets: &[Arc<ReplicaSetView>], except: Option<usize>) -> i32 {
    let others = sets.iter().enumerate().filter(|(at, _)| Some(*at) != except);
    others.filter_map(|(_, set)| set.revision).max().unwrap_or(0).saturating_add(1)
}

fn copied(rollout: &RolloutView) -> impl Iterator<Item = (&str, &str)> {
    let generation = rollout.spec.origin.generation();
    let all = rollout.annotations.iter().map(|(key, text)| (key.as_str(), text.as_str()));
    all.filter(|(key, _)| !NOT_COPIED.contains(key))
        .chain(generation.map(|generation| (annotation::WORKLOAD_GENERATION, &**generation)))
}

fn manifest(objects: &Objects<'_>, name: &str, revision: i32) -> Value {
    let rollout = objects.rollout();
    let mut template = parsed(rollout);
    if let Some(affinity) = affinity::wanted(objects, &rollout.hash, &template) {
        template["spec"]["affinity"] = affinity;
    }
    let mut notes: Map<String, Value> =
        copied(rollout).map(|(key, value)| (key.to_owned(), json!(value))).collect();
    notes.insert(annotation::REVISION.to_owned(), json!(revision.to_string()));
    notes.insert(annotation::DESIRED_REPLICAS.to_owned(), json!(objects.replicas().to_string()));
    let mut made = replica_set_create::manifest(NewReplicaSet {
        namespace: &rollout.namespace,
        name,
        owner: rollout.owner_reference(),
        hash: &rollout.hash,
        selector: json!(objects.spec().selector),
        template,
        annotations: notes,
        replicas: 0,
        min_ready_seconds: objects.spec().min_ready_seconds,
    });
    // After its own labels are made of the template's: the metadata of a role is for pods alone.
    if let Some(metadata) = metadata::of_created(objects) {
        let mut template = made["spec"]["template"].take();
        if let Value::Object(notes) = &mut made["metadata"]["annotations"] {
            metadata::inject(metadata, &mut template, notes);
        }
        made["spec"]["template"] = template;
    }
    made
}

fn parsed(rollout: &RolloutView) -> Value {
    serde_json::from_str(&rollout.spec.template).expect("it was printed from JSON")
}

/// The created ReplicaSet as later passes of this decision see it: no pods, not observed.
fn created(objects: &Objects<'_>, name: &Arc<str>, revision: i32) -> ReplicaSetView {
    let rollout = objects.rollout();
    let mut view = ReplicaSetView {
        name: Arc::clone(name),
        hash: Arc::clone(&rollout.hash),
        uid: crate::uid::Uid::default(),
        version: 0,
        generation: 1,
        observed_generation: 0,
        created: objects.now.as_second(),
        size: 0,
        min_ready_seconds: objects.spec().min_ready_seconds,
        replicas: 0,
        ready: 0,
        reported_available: 0,
        deleting: false,
        revision: Some(revision),
        desired_replicas: Some(objects.replicas()),
        deadline: Deadline::None,
        template: rollout.spec.template_digest,
        digests: Box::default(),
        rare: None,
    };
    view.with_annotations(copied(rollout));
    if let Some(metadata) = metadata::of_created(objects) {
        metadata::note(&mut view, metadata);
    }
    view
}

/// The create that this decision would make, as act names it.
pub(super) fn create_target(rollout: &RolloutView) -> ObjectRef {
    rollout.replica_set(&format!("{}-{}", rollout.name, rollout.hash).into())
}
