//! What does a decision need of a ReplicaSet? A view of some 250 bytes; the template is a digest.

use std::sync::Arc;

use gradus_api::names;
use gradus_api::rollout::Metadata;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::digest::{Bearer, Pair, digest, is_key, is_of, sorted, template_digests};
use crate::frame::{Frame, Meta};
use crate::template::{self, TemplateSide};
use crate::uid::Uid;

/// A ReplicaSet as decisions see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplicaSetView {
    /// Name.
    pub name: Arc<str>,
    /// Value of the pod-template-hash label.
    pub hash: Arc<str>,
    /// Identity.
    pub uid: Uid,
    /// `resourceVersion`.
    pub version: u64,
    /// Rises with the spec.
    pub generation: i64,
    /// The generation the counts below belong to.
    pub observed_generation: i64,
    /// When it was made, in seconds since 1970; 0 where the server did not say.
    pub created: i64,
    /// `spec.replicas`.
    pub size: i32,
    /// `spec.minReadySeconds`.
    pub min_ready_seconds: i32,
    /// Pods there are.
    pub replicas: i32,
    /// Pods that are ready.
    pub ready: i32,
    /// Pods that are available. Arithmetic uses [`ReplicaSetView::available`].
    pub reported_available: i32,
    /// Is its deletion asked for?
    pub deleting: bool,
    /// The revision annotation, if it is a number.
    pub revision: Option<i32>,
    /// The desired-replicas annotation, if it is a number.
    pub desired_replicas: Option<i32>,
    /// The scale-down deadline annotation.
    pub deadline: Deadline,
    /// The template, normalised for equality.
    #[serde(with = "super::digest::hexadecimal")]
    pub template: u128,
    /// One digest per label and per annotation, its own and those it gives its pods; see
    /// `has_label`, `has_annotation` and `template_has`.
    pub digests: Box<[u64]>,
    /// What few ReplicaSets have.
    pub rare: Option<Box<Rare>>,
}

/// What few ReplicaSets have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rare {
    /// Former revisions, as annotated.
    pub revision_history: Option<String>,
    /// Its ReplicaFailure condition, when true.
    pub failure: Option<ReplicaFailure>,
    /// The stable revision its pods keep away from, where a term was injected.
    #[serde(default)]
    pub keeps_away_from: Option<String>,
    /// The metadata its annotation records as injected into its pods.
    #[serde(default)]
    pub injected: Option<Metadata>,
}

/// The scale-down deadline annotation of a ReplicaSet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Deadline {
    /// Not annotated.
    None,
    /// To be scaled down at this second since 1970.
    At(i64),
    /// Annotated with a text that is no time.
    Unreadable,
}

/// Why a ReplicaSet cannot make its pods, in the words of its condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaFailure {
    /// Reason.
    pub reason: String,
    /// Message.
    pub message: String,
}

impl ReplicaSetView {
    /// The view of a frame. `earlier` spares the digest while the template has not changed.
    pub fn read(frame: &Frame, earlier: Option<&ReplicaSetView>) -> Self {
        let meta = &frame.meta;
        let (notes, own) = Notes::read(meta);
        let spec = SpecFields::read(frame);
        let status = Counted::read(&frame.status);
        let same = earlier.filter(|view| view.has_template_of(meta, &notes));
        let (template, digests) = match same {
            Some(view) => (view.template, view.digests_with(&own)),
            None => {
                let given = template_digests(&spec.template["metadata"]);
                let digests = sorted(own.iter().copied().chain(given).collect());
                let digest =
                    template::normalized_digest(spec.template, notes.ephemeral, TemplateSide::Live);
                (digest, digests)
            }
        };
        let known_hash = earlier.map(|view| &view.hash).filter(|known| ***known == *notes.hash);
        ReplicaSetView {
            name: Arc::clone(&meta.name),
            hash: known_hash.map_or_else(|| notes.hash.into(), Arc::clone),
            uid: meta.uid,
            version: meta.version,
            generation: meta.generation,
            observed_generation: status.observed_generation,
            created: meta.created.map_or(0, Timestamp::as_second),
            size: spec.replicas.unwrap_or(1),
            min_ready_seconds: spec.min_ready_seconds,
            replicas: status.replicas,
            ready: status.ready,
            reported_available: status.available,
            deleting: meta.deleting.is_some(),
            revision: notes.revision.and_then(|text| text.parse().ok()),
            desired_replicas: notes.desired_replicas.and_then(|text| text.parse().ok()),
            deadline: deadline(notes.deadline),
            template,
            digests,
            rare: rare(Rare {
                revision_history: notes.revision_history.map(str::to_owned),
                failure: status.conditions.and_then(failure),
                keeps_away_from: match same {
                    Some(view) => view.keeps_away_from().map(str::to_owned),
                    None => template::injected_stable_hash(spec.template),
                },
                // What cannot be read is as if nothing were recorded.
                injected: notes.ephemeral.and_then(|text| serde_json::from_str(text).ok()),
            }),
        }
    }

    /// Available pods, never more than the size: pods about to go do not count.
    pub fn available(&self) -> i32 {
        self.reported_available.min(self.size)
    }

    /// Why it cannot make its pods, if it says so.
    pub fn failure(&self) -> Option<&ReplicaFailure> {
        self.rare.as_ref()?.failure.as_ref()
    }

    /// The stable revision its pods keep away from, where a term was injected.
    pub fn keeps_away_from(&self) -> Option<&str> {
        self.rare.as_ref()?.keeps_away_from.as_deref()
    }

    /// The metadata its annotation records as injected into its pods.
    pub fn injected(&self) -> Option<&Metadata> {
        self.rare.as_ref()?.injected.as_ref()
    }

    /// Has it this annotation with this value?
    pub fn has_annotation(&self, key: &str, value: &str) -> bool {
        self.has(Bearer::Object, Pair::Annotation, key, value)
    }

    /// Has it this label with this value?
    pub fn has_label(&self, key: &str, value: &str) -> bool {
        self.has(Bearer::Object, Pair::Label, key, value)
    }

    fn has(&self, bearer: Bearer, pair: Pair, key: &str, value: &str) -> bool {
        self.digests.binary_search(&digest(bearer, pair, key, value)).is_ok()
    }

    /// Does it give its pods this label or annotation with this value?
    pub fn template_has(&self, pair: Pair, key: &str, value: &str) -> bool {
        self.has(Bearer::Template, pair, key, value)
    }

    /// Notes what its pod template will carry, or not carry, once a planned change is made.
    pub fn note_template<'a>(
        &mut self,
        added: impl Iterator<Item = (Pair, &'a str, &'a str)>,
        removed: impl Iterator<Item = (Pair, &'a str, &'a str)>,
    ) {
        let of =
            |(pair, key, value): (Pair, &str, &str)| digest(Bearer::Template, pair, key, value);
        let removed: Vec<u64> = removed.map(of).collect();
        let kept = self.digests.iter().copied().filter(|known| !removed.contains(known));
        self.digests = sorted(kept.chain(added.map(of)).collect());
    }

    /// Notes what its annotation will record as injected.
    pub fn note_injected(&mut self, metadata: Option<Metadata>) {
        let mut known = self.rare.take().map_or_else(Rare::default, |rare| *rare);
        known.injected = metadata;
        self.rare = rare(known);
    }

    /// Has it this label, whatever its value?
    pub fn has_label_key(&self, key: &str) -> bool {
        let is_it = is_key(Pair::Label, key);
        self.digests.iter().any(|one| is_of(Bearer::Object, *one) && is_it(*one))
    }

    /// Notes annotations that it will have once a planned change is made.
    pub fn with_annotations<'a>(&mut self, pairs: impl Iterator<Item = (&'a str, &'a str)>) {
        let own = |(key, value)| digest(Bearer::Object, Pair::Annotation, key, value);
        self.digests = sorted(self.digests.iter().copied().chain(pairs.map(own)).collect());
    }

    /// Its digests if its own labels and annotations have these, and its template the same.
    fn digests_with(&self, own: &[u64]) -> Box<[u64]> {
        let known = |bearer| self.digests.iter().copied().filter(move |one| is_of(bearer, *one));
        if known(Bearer::Object).eq(own.iter().copied()) {
            return self.digests.clone();
        }
        sorted(own.iter().copied().chain(known(Bearer::Template)).collect())
    }

    /// Do the counts belong to the spec we last wrote?
    pub fn is_observed(&self) -> bool {
        self.observed_generation >= self.generation
    }

    /// Is the digest of the template still the one of this view? It depends on the template, of
    /// which a generation has one, and on what is recorded as injected into it.
    fn has_template_of(&self, meta: &Meta, notes: &Notes<'_>) -> bool {
        if self.uid != meta.uid || self.generation != meta.generation {
            return false;
        }
        let key = names::annotation::EPHEMERAL_METADATA;
        let is_it = is_key(Pair::Annotation, key);
        let recorded = self.digests.iter().copied();
        let recorded = recorded.filter(|one| is_of(Bearer::Object, *one) && is_it(*one));
        let now = notes.ephemeral.map(|text| digest(Bearer::Object, Pair::Annotation, key, text));
        recorded.eq(now)
    }
}

/// The label and the annotations that say something of a ReplicaSet.
#[derive(Default)]
struct Notes<'f> {
    hash: &'f str,
    revision: Option<&'f str>,
    revision_history: Option<&'f str>,
    desired_replicas: Option<&'f str>,
    deadline: Option<&'f str>,
    ephemeral: Option<&'f str>,
}

impl<'f> Notes<'f> {
    /// The notes, and the digests of all labels and annotations.
    fn read(meta: &'f Meta) -> (Self, Box<[u64]>) {
        let mut notes = Notes::default();
        let mut digests = Vec::with_capacity(meta.labels.len() + meta.annotations.len());
        for (key, value) in &*meta.labels {
            digests.push(digest(Bearer::Object, Pair::Label, key, value));
            if key == names::label::POD_TEMPLATE_HASH {
                notes.hash = value;
            }
        }
        for (key, value) in &*meta.annotations {
            digests.push(digest(Bearer::Object, Pair::Annotation, key, value));
            let note = match key.as_str() {
                names::annotation::REVISION => &mut notes.revision,
                names::annotation::REVISION_HISTORY => &mut notes.revision_history,
                names::annotation::DESIRED_REPLICAS => &mut notes.desired_replicas,
                names::annotation::SCALE_DOWN_DEADLINE => &mut notes.deadline,
                names::annotation::EPHEMERAL_METADATA => &mut notes.ephemeral,
                _ => continue,
            };
            *note = Some(value);
        }
        (notes, sorted(digests))
    }
}

/// What its spec says.
struct SpecFields<'f> {
    replicas: Option<i32>,
    min_ready_seconds: i32,
    template: &'f Value,
}

impl<'f> SpecFields<'f> {
    fn read(frame: &'f Frame) -> Self {
        let mut asked = SpecFields { replicas: None, min_ready_seconds: 0, template: &Value::Null };
        for (field, value) in frame.spec.as_object().into_iter().flatten() {
            match field.as_str() {
                "replicas" => asked.replicas = count(value),
                "minReadySeconds" => asked.min_ready_seconds = count(value).unwrap_or(0),
                "template" => asked.template = value,
                _ => {}
            }
        }
        asked
    }
}

/// What its status says.
#[derive(Default)]
struct Counted<'f> {
    observed_generation: i64,
    replicas: i32,
    ready: i32,
    available: i32,
    conditions: Option<&'f Value>,
}

impl<'f> Counted<'f> {
    fn read(status: &'f Value) -> Self {
        let mut counted = Counted::default();
        for (field, value) in status.as_object().into_iter().flatten() {
            match field.as_str() {
                "observedGeneration" => {
                    counted.observed_generation = value.as_i64().unwrap_or(0);
                }
                "replicas" => counted.replicas = count(value).unwrap_or(0),
                "readyReplicas" => counted.ready = count(value).unwrap_or(0),
                "availableReplicas" => counted.available = count(value).unwrap_or(0),
                "conditions" => counted.conditions = Some(value),
                _ => {}
            }
        }
        counted
    }
}

fn count(value: &Value) -> Option<i32> {
    value.as_i64().map(|number| i32::try_from(number).unwrap_or(i32::MAX))
}

fn deadline(text: Option<&str>) -> Deadline {
    match text.map(str::parse::<Timestamp>) {
        None => Deadline::None,
        Some(Ok(moment)) => Deadline::At(Timestamp::as_second(moment)),
        Some(Err(_)) => Deadline::Unreadable,
    }
}

fn rare(rare: Rare) -> Option<Box<Rare>> {
    (rare != Rare::default()).then(|| Box::new(rare))
}

fn failure(conditions: &Value) -> Option<ReplicaFailure> {
    let found = conditions.as_array()?.iter().find(|condition| {
        condition["type"] == names::condition::REPLICA_FAILURE && condition["status"] == "True"
    })?;
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    Some(ReplicaFailure { reason: text("reason"), message: text("message") })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// An `Arc<str>` has two counters before its text.
    fn heap_of(text: &Arc<str>) -> usize {
        2 * size_of::<usize>() + text.len()
    }

    #[test]
    fn a_view_takes_at_most_300_bytes_plus_8_per_label_and_annotation() {
        let frame: Frame = serde_json::from_value(json!({
            "metadata": {
                "name": "a-rollout-with-a-long-name-65774b4f85", "namespace": "default",
                "labels": { "app": "x", "rollouts-pod-template-hash": "65774b4f85" },
                "annotations": { "rollout.argoproj.io/revision": "3" },
            },
            "spec": { "replicas": 3, "template": { "spec": { "containers": [] } } },
        }))
        .unwrap();
        let view = ReplicaSetView::read(&frame, None);
        let heap = heap_of(&view.name) + heap_of(&view.hash);
        assert_eq!(size_of_val(&*view.digests), 8 * 3);
        let bytes = size_of::<ReplicaSetView>() + 2 * size_of::<usize>() + heap;
        assert!(bytes <= 300, "{bytes} bytes");
    }

    /// A ReplicaSet of this generation, with an image, annotations and the label of a pod.
    fn set(generation: i64, image: &str, annotations: Value) -> Frame {
        serde_json::from_value(json!({
            "metadata": { "name": "x", "generation": generation, "annotations": annotations },
            "spec": { "template": {
                "metadata": { "labels": { "tier": "web" } },
                "spec": { "containers": [{ "name": "c", "image": image }] },
            } },
        }))
        .unwrap()
    }

    #[test]
    fn the_digest_is_kept_while_the_template_is_the_same() {
        let first = ReplicaSetView::read(&set(1, "web:v1", json!({})), None);
        // The other image shows whether the template was looked at.
        let is_kept = |generation| {
            let frame = set(generation, "web:v2", json!({}));
            ReplicaSetView::read(&frame, Some(&first)).template == first.template
        };
        assert!(is_kept(1), "one generation has one template");
        assert!(!is_kept(2), "another generation may have another");
    }

    #[test]
    fn a_view_is_the_same_whatever_was_seen_before() {
        let injected = r#"{"labels":{"tier":"web"}}"#;
        let notes = [
            json!({}),
            json!({ "rollout.argoproj.io/revision": "2" }),
            json!({ names::annotation::EPHEMERAL_METADATA: injected }),
            json!({ names::annotation::EPHEMERAL_METADATA: "{}", "a": "b" }),
        ];
        for (before, after) in notes.iter().flat_map(|one| notes.iter().map(move |two| (one, two)))
        {
            let before = ReplicaSetView::read(&set(1, "web:v1", before.clone()), None);
            let frame = set(1, "web:v1", after.clone());
            let fresh = ReplicaSetView::read(&frame, None);
            assert_eq!(ReplicaSetView::read(&frame, Some(&before)), fresh, "{after}");
        }
    }
}
