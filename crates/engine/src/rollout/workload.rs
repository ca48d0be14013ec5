//! What does a Rollout take from the workload it refers to, and what becomes of that workload's own
//! pods?

use gradus_api::names::{annotation, condition, phase, value};
use gradus_api::rollout::{RolloutStatus, WorkloadRef};
use jiff::SignedDuration;
use serde_json::json;

use super::objects::{Edit, Objects};
use super::plan::Proposal;
use super::replica_sets::Roles;
use crate::decision::{Change, Expect, Kind, ObjectRef};
use crate::kinds;
use crate::world::{Known, Origin, RolloutView, Unusable, WorkloadView, World};

/// How long until a workload that cannot be used is looked at again, even if nothing is heard of it.
pub(super) const RETRY: SignedDuration = SignedDuration::from_secs(20);

/// The kinds a Rollout may refer to, as it names them, and as the server does.
const KINDS: [(&str, &str, Kind); 3] = [
    ("", "PodTemplate", kinds::POD_TEMPLATE),
    ("apps", "Deployment", kinds::DEPLOYMENT),
    ("apps", "ReplicaSet", kinds::REPLICA_SET),
];

/// The workload a Rollout refers to, if it is of a kind that can be referred to.
pub fn reference(rollout: &RolloutView) -> Option<ObjectRef> {
    let named = rollout.spec.fields.workload_ref.as_ref()?;
    let kind = kind_of(named).ok()?;
    Some(ObjectRef::new(kind, &rollout.namespace, &named.name.as_str().into()))
}

/// The kind that is named, or why it cannot be referred to.
pub fn kind_of(named: &WorkloadRef) -> Result<Kind, String> {
    let (group, version) = named.api_version.rsplit_once('/').unwrap_or(("", &named.api_version));
    let is_named =
        |(in_group, kind, _): &(&str, &str, Kind)| (*in_group, *kind) == (group, &named.kind);
    match KINDS.into_iter().find(is_named) {
        None => Err(format!("workload of type {group}/{} is not supported", named.kind)),
        Some((_, _, kind)) if kind.version == version => Ok(kind),
        Some(_) => Err(format!(
            "no matches for kind \"{}\" in version \"{}\"",
            named.kind, named.api_version
        )),
    }
}

/// What keeps a Rollout from using the workload it refers to.
pub(super) fn check(world: &World) -> Option<Unusable> {
    let spec = &world.rollout.spec;
    let named = spec.fields.workload_ref.as_ref()?;
    if spec.origin == Origin::Both {
        let error = "template must be empty for workload reference rollout";
        return Some(Unusable::Invalid(error.to_owned()));
    }
    let kind = match kind_of(named) {
        Ok(kind) => kind,
        Err(error) => return Some(Unusable::Invalid(error)),
    };
    match world.workload.as_ref() {
        Some(Known::Present(_)) => None,
        Some(Known::Absent) => {
            let group = if kind.group.is_empty() { "" } else { "." };
            let resource = format!("{}{group}{}", kind.plural, kind.group);
            Some(Unusable::Invalid(format!("{resource} \"{}\" not found", named.name)))
        }
        Some(Known::Unknown(message)) => Some(Unusable::Unreadable(message.clone())),
        None => Some(Unusable::Unreadable(String::new())),
    }
}

/// Notes on the Rollout which generation of the workload it uses: readers of its health compare that
/// with the status.
pub(super) fn note_generation(objects: &Objects<'_>) -> Proposal {
    let rollout = objects.rollout();
    let noted = rollout.annotations.get(annotation::WORKLOAD_GENERATION);
    match rollout.spec.origin.generation() {
        Some(generation) if noted.is_none_or(|noted| **noted != **generation) => {
            let notes = json!({ annotation::WORKLOAD_GENERATION: &**generation });
            let body = json!({ "metadata": { "annotations": notes } });
            Proposal::default().patch(rollout.reference(), body, rollout.version, Edit::Unseen)
        }
        _ => Proposal::default(),
    }
}

/// The generation of the workload that a status is about; empty without one.
pub(super) fn observed_generation(objects: &Objects<'_>) -> String {
    let generation = objects.rollout().spec.origin.generation();
    generation.map(ToString::to_string).unwrap_or_default()
}

/// While a Rollout takes over from a Deployment, that is while it is at its first revision, the
/// Deployment gives up its pods: all when the Rollout has been healthy, or one for each ready pod.
/// Where that is refused, the Rollout goes on.
pub(super) fn scale_down(objects: &Objects<'_>, roles: Roles) -> Proposal {
    let Some(deployment) = deployment(objects) else { return Proposal::default() };
    let wanted = wanted_size(objects, roles).filter(|size| *size != deployment.replicas);
    let Some(size) = wanted else { return Proposal::default() };
    let body = json!({ "spec": { "replicas": size } });
    let change = Change::patch(deployment.object.clone(), body, deployment.version);
    // Its status changes all the time, and its size is ours now: the object itself is enough.
    let change = change.expecting(Expect::Uid(deployment.uid)).or_skip();
    Proposal::default().write_if_free(change, Edit::Unseen)
}

fn deployment<'w>(objects: &Objects<'w>) -> Option<&'w WorkloadView> {
    let found = objects.world.workload.as_ref().and_then(Known::present);
    found.filter(|workload| workload.object.kind == kinds::DEPLOYMENT)
}

/// The size the Deployment should have; `None` where it is left alone.
fn wanted_size(objects: &Objects<'_>, roles: Roles) -> Option<i32> {
    let new = &objects.sets[roles.new];
    if new.revision != Some(1) {
        return None;
    }
    let named = objects.spec().workload_ref.as_ref()?;
    let has_taken_over = has_been_healthy(&objects.rollout().status);
    match named.scale_down.as_str() {
        value::ON_SUCCESS | value::PROGRESSIVELY if has_taken_over => Some(0),
        value::PROGRESSIVELY if !objects.spec().paused && new.ready > 0 => {
            Some((objects.replicas() - new.ready).max(0))
        }
        _ => None,
    }
}

/// The Healthy condition appears when a rollout is healthy for the first time, and stays.
fn has_been_healthy(stored: &RolloutStatus) -> bool {
    stored.phase == phase::HEALTHY || stored.condition(condition::HEALTHY).is_some()
}
