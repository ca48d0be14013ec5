//! Which labels and annotations do pods carry while their revision has a role? The template of the
//! ReplicaSet gets them first, then its live pods; no pod is restarted for it.
//!
//! The annotation of a ReplicaSet records what was injected. What is no longer wanted stays recorded
//! until no pod carries it, so that a crash on the way leaves nothing behind that nobody knows of.

use std::sync::Arc;

use gradus_api::names::annotation::EPHEMERAL_METADATA;
use gradus_api::rollout::Metadata;
use serde_json::{Map, Value, json};

use super::draft::Draft;
use super::objects::{Edit, Objects};
use super::plan::Proposal;
use super::pods;
use super::replica_sets::Roles;
use crate::decision::{Change, ObjectRef, Why};
use crate::kinds;
use crate::world::{Pair, PodView, ReplicaSetView};

/// Pods changed in one decision: an abort waits for those under way.
const PODS_PER_DECISION: usize = 50;

/// A label or an annotation with its value.
type Mark<'m> = (Pair, &'m str, &'m str);

/// Brings templates, then pods, of all ReplicaSets to what their roles want.
pub(super) fn apply(draft: Draft<'_>, roles: Roles) -> Draft<'_> {
    if !is_configured(&draft.objects) {
        return draft;
    }
    (0..draft.objects.sets.len()).fold(draft, |draft, at| match draft.objects.sets[at].deleting {
        true => draft,
        false => draft
            .then(|objects| mark_set(objects, roles, at))
            .then(|objects| mark_pods(objects, roles, at)),
    })
}

/// Does the strategy name any metadata? If it never did, nothing is looked at.
fn is_configured(objects: &Objects<'_>) -> bool {
    let [new, stable] = blocks(objects);
    new.is_some() || stable.is_some()
}

/// What the pods of a ReplicaSet should carry in its role.
pub(super) fn wanted<'w>(objects: &Objects<'w>, roles: Roles, at: usize) -> Option<&'w Metadata> {
    wanted_beside(objects, roles, at, &objects.status.stable_rs)
}

/// The same while this is the stable revision.
fn wanted_beside<'w>(
    objects: &Objects<'w>,
    roles: Roles,
    at: usize,
    stable: &str,
) -> Option<&'w Metadata> {
    let [of_new, of_stable] = blocks(objects);
    let is_whole = stable.is_empty() || *stable == *objects.sets[roles.new].hash;
    match at {
        _ if at == roles.new => {
            if is_whole {
                of_stable
            } else {
                of_new
            }
        }
        _ if Some(at) == roles.stable => of_stable,
        _ => None,
    }
}

/// What the pods of a ReplicaSet carry that is about to be created.
pub(super) fn of_created<'w>(objects: &Objects<'w>) -> Option<&'w Metadata> {
    let [of_new, of_stable] = blocks(objects);
    let stable = &*objects.status.stable_rs;
    let is_whole = stable.is_empty() || *stable == *objects.rollout().hash;
    let metadata = if is_whole { of_stable } else { of_new };
    metadata.filter(|metadata| marks(Some(metadata)).next().is_some())
}

/// Puts metadata into the manifest of a ReplicaSet.
pub(super) fn inject(metadata: &Metadata, template: &mut Value, notes: &mut Map<String, Value>) {
    for (pair, key, value) in marks(Some(metadata)) {
        template["metadata"][field(pair)][key] = json!(value);
    }
    notes.insert(EPHEMERAL_METADATA.to_owned(), json!(text(metadata)));
}

/// The view of a ReplicaSet that was created with metadata.
pub(super) fn note(view: &mut ReplicaSetView, metadata: &Metadata) {
    view.note_template(marks(Some(metadata)), std::iter::empty());
    view.note_injected(Some(metadata.clone()));
}

/// A number that is the same for equal metadata.
pub(super) fn digest(metadata: Option<&Metadata>) -> u64 {
    let bytes = |(pair, key, value): Mark<'_>| {
        let text = format!("{}\u{0}{key}\u{0}{value}\u{0}", field(pair));
        text.into_bytes()
    };
    marks(metadata).flat_map(bytes).fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Are there pods of the new revision that are not known to carry what its role wants once this is
/// the stable revision? A rollout does not become healthy before they do.
pub(super) fn is_awaited(objects: &Objects<'_>, roles: Roles, stable: &str) -> bool {
    let at = roles.new;
    let set = &objects.sets[at];
    if !is_configured(objects) || set.size == 0 {
        return false;
    }
    let wanted = wanted_beside(objects, roles, at, stable);
    if marks(wanted).chain(marks(set.injected())).next().is_none() {
        return false;
    }
    let is_template_right =
        stale(set, wanted).is_empty() && marks(wanted).all(|mark| in_template(set, mark));
    let is_right = |pod: &PodView| pod.terminating || missing(pod, wanted, &[]).is_none();
    let listed =
        pods::listed(objects, roles, at).filter(|_| is_template_right && set.is_observed());
    !listed.is_some_and(|listed| listed.pods.iter().all(is_right))
}

/// Pods that are not known, where it matters.
pub(super) fn explain(objects: &Objects<'_>, roles: Roles) -> Vec<Why> {
    let is_unknown = |at: &usize| {
        is_configured(objects)
            && needs_pods(objects, roles, *at)
            && pods::listed(objects, roles, *at).is_none()
    };
    let sets = (0..objects.sets.len()).filter(is_unknown);
    sets.map(|at| pods::unknown(objects, roles, at)).collect()
}

/// Metadata of the new and of the stable revision.
fn blocks<'w>(objects: &Objects<'w>) -> [Option<&'w Metadata>; 2] {
    let strategy = &objects.spec().strategy;
    match (&strategy.canary, &strategy.blue_green) {
        (Some(canary), _) => [canary.canary_metadata.as_ref(), canary.stable_metadata.as_ref()],
        (None, Some(green)) => [green.preview_metadata.as_ref(), green.active_metadata.as_ref()],
        (None, None) => [None, None],
    }
}

/// The template of one ReplicaSet, and the record of what was injected.
fn mark_set(objects: &Objects<'_>, roles: Roles, at: usize) -> Proposal {
    let set = &objects.sets[at];
    let wanted = wanted(objects, roles, at);
    let stale = stale(set, wanted);
    let lacking: Vec<Mark<'_>> = marks(wanted).filter(|mark| !in_template(set, *mark)).collect();
    let left: Vec<Mark<'_>> = stale.iter().copied().filter(|m| in_template(set, *m)).collect();
    let is_template_right = lacking.is_empty() && left.is_empty();
    let is_record_right =
        stale.is_empty() || set.size > 0 && !are_clean(objects, roles, at, &stale);
    if is_template_right && is_record_right {
        return Proposal::default();
    }
    let keeps_stale = set.size > 0 && !is_template_right;
    let recorded = record(wanted, if keeps_stale { &stale } else { &[] });
    let mut body = json!({ "metadata": { "annotations": {
        EPHEMERAL_METADATA: recorded.as_ref().map(text),
    } } });
    if !is_template_right {
        body["spec"]["template"]["metadata"] = difference(&lacking, &left);
    }
    let target = objects.rollout().replica_set(&set.name);
    let mut view = ReplicaSetView::clone(set);
    view.generation += i64::from(!is_template_right);
    view.note_template(lacking.into_iter(), left.into_iter());
    view.note_injected(recorded);
    Proposal::default().patch(target, body, set.version, Edit::Set(at, Arc::new(view)))
}

/// Live pods that differ from what the template gives new ones.
fn mark_pods(objects: &Objects<'_>, roles: Roles, at: usize) -> Proposal {
    if !needs_pods(objects, roles, at) {
        return Proposal::default();
    }
    let asked = pods::want(objects, roles, at, None);
    let Some(listed) = pods::listed(objects, roles, at) else { return asked };
    let wanted = wanted(objects, roles, at);
    let stale = stale(&objects.sets[at], wanted);
    let staying = listed.pods.iter().filter(|pod| !pod.terminating);
    let due = staying.filter_map(|pod| Some((pod, missing(pod, wanted, &stale)?)));
    due.take(PODS_PER_DECISION).fold(asked, |marked, (pod, body)| {
        let target = ObjectRef::new(kinds::POD, &objects.rollout().namespace, &pod.name);
        let change = Change::patch(target, body, pod.version).or_skip();
        marked.write_if_free(change, Edit::Unseen)
    })
}

/// The patch that a pod still needs.
fn missing(pod: &PodView, wanted: Option<&Metadata>, stale: &[Mark<'_>]) -> Option<Value> {
    let lacking: Vec<Mark<'_>> = marks(wanted).filter(|mark| !has(pod, *mark)).collect();
    let left: Vec<Mark<'_>> = stale.iter().copied().filter(|mark| has(pod, *mark)).collect();
    let is_right = lacking.is_empty() && left.is_empty();
    (!is_right).then(|| json!({ "metadata": difference(&lacking, &left) }))
}

/// Do the pods of a ReplicaSet matter: are there any, made by the spec as it is now, that should
/// carry something or no longer carry it?
fn needs_pods(objects: &Objects<'_>, roles: Roles, at: usize) -> bool {
    let set = &objects.sets[at];
    let concerns = marks(wanted(objects, roles, at)).chain(marks(set.injected())).next().is_some();
    concerns && set.size > 0 && set.is_observed()
}

/// Does no pod carry any of these, as far as can be known?
fn are_clean(objects: &Objects<'_>, roles: Roles, at: usize, stale: &[Mark<'_>]) -> bool {
    let listed = pods::listed(objects, roles, at).filter(|_| objects.sets[at].is_observed());
    let is_clean = |pod: &PodView| pod.terminating || !stale.iter().any(|mark| has(pod, *mark));
    listed.is_some_and(|listed| listed.pods.iter().all(is_clean))
}

/// What was injected and is no longer wanted. A key with another value is only overwritten.
fn stale<'m>(set: &'m ReplicaSetView, wanted: Option<&Metadata>) -> Vec<Mark<'m>> {
    let is_wanted = |(pair, key, _): &Mark<'_>| {
        marks(wanted).any(|(other, wanted, _)| other == *pair && wanted == *key)
    };
    marks(set.injected()).filter(|mark| !is_wanted(mark)).collect()
}

/// What the annotation says: all that is wanted, and what must still be taken off pods.
fn record(wanted: Option<&Metadata>, stale: &[Mark<'_>]) -> Option<Metadata> {
    let mut all = wanted.cloned().unwrap_or_default();
    for (pair, key, value) in stale {
        let texts = match pair {
            Pair::Label => &mut all.labels,
            Pair::Annotation => &mut all.annotations,
        };
        texts.insert((*key).to_owned(), (*value).to_owned());
    }
    (all != Metadata::default()).then_some(all)
}

/// A merge patch of `metadata`.
fn difference(added: &[Mark<'_>], removed: &[Mark<'_>]) -> Value {
    let mut metadata = json!({});
    for (pair, key, _) in removed {
        metadata[field(*pair)][*key] = Value::Null;
    }
    for (pair, key, value) in added {
        metadata[field(*pair)][*key] = json!(value);
    }
    metadata
}

fn marks(metadata: Option<&Metadata>) -> impl Iterator<Item = Mark<'_>> {
    metadata.into_iter().flat_map(|metadata| {
        let labels = metadata.labels.iter().map(|(key, value)| (Pair::Label, &**key, &**value));
        let annotations = metadata.annotations.iter();
        labels.chain(annotations.map(|(key, value)| (Pair::Annotation, &**key, &**value)))
    })
}

fn in_template(set: &ReplicaSetView, (pair, key, value): Mark<'_>) -> bool {
    set.template_has(pair, key, value)
}

fn has(pod: &PodView, (pair, key, value): Mark<'_>) -> bool {
    pod.has(pair, key, value)
}

fn field(pair: Pair) -> &'static str {
    match pair {
        Pair::Label => "labels",
        Pair::Annotation => "annotations",
    }
}

/// The annotation as Argo Rollouts writes it: labels before annotations.
fn text(metadata: &Metadata) -> String {
    serde_json::to_string(metadata).expect("maps of texts are JSON")
}
