//! What is there to see? The rollouts of a cluster with their ReplicaSets and pods.

use std::sync::Arc;

use gradus_api::names;
use gradus_lab::sight::Sight;
use gradus_simkube::SimCluster;
use gradus_simkube::behave::ContainerState;
use gradus_simkube::kinds::KindId;
use gradus_simkube::object::Object;
use serde_json::{Value, json};

use super::cluster::NAMESPACE;

/// One rollout with all that belongs to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// How it stands.
    pub standing: RolloutState,
    /// Its ReplicaSets that have pods or should have, the newest first.
    pub sets: Vec<SetScene>,
}

impl Scene {
    /// What it is called: its name, after its namespace where that is not the usual one.
    pub fn title(&self) -> String {
        match self.namespace.as_str() {
            NAMESPACE => self.name.clone(),
            other => format!("{other}/{}", self.name),
        }
    }
}

/// How a rollout stands, in the words of its status.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RolloutState {
    /// `status.phase`, empty before the first.
    pub phase: String,
    /// `status.message`.
    pub message: String,
    /// Revision that is rolled out.
    pub revision: i64,
    /// The image that is rolled out.
    pub image: String,
    /// Steps that are done, `status.currentStepIndex`: as many as there are when all are.
    pub step: usize,
    /// How many steps there are.
    pub steps: usize,
    /// What the current step does.
    pub doing: String,
    /// The part of the pods that the step wants to be new, in percent.
    pub weight: i64,
    /// The part of the traffic that the new pods get, in percent, where a router splits it.
    pub traffic: Option<i64>,
    /// Pods of the new revision.
    pub updated: i64,
    /// Available pods.
    pub available: i64,
    /// Pods that should be.
    pub desired: i64,
    /// Does the status speak about the spec as it is?
    pub is_observed: bool,
    /// Is the new revision the stable one?
    pub is_promoted: bool,
}

/// One ReplicaSet.
#[derive(Clone, Debug, PartialEq)]
pub struct SetScene {
    /// Its name.
    pub name: String,
    /// Its revision.
    pub revision: i64,
    /// What it is to its rollout.
    pub role: Role,
    /// Its pods, by name.
    pub pods: Vec<PodScene>,
}

/// What a ReplicaSet is to its rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The revision that served before and serves if all goes wrong.
    Stable,
    /// The revision that is rolled out beside it, in a canary.
    Canary,
    /// The revision that is rolled out beside it, in a blue-green rollout.
    Preview,
    /// An earlier one.
    Old,
}

/// One pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodScene {
    /// The end of its name.
    pub suffix: String,
    /// What it does.
    pub state: PodLook,
}

/// What a pod does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodLook {
    /// Not running yet.
    Starting,
    /// Running, but not ready.
    NotReady,
    /// Ready.
    Ready,
    /// On its way out.
    Ending,
}

/// The kind of Rollouts, unless somebody has deleted it.
pub fn rollouts(cluster: &SimCluster) -> Option<KindId> {
    cluster.kinds().by_name(names::API_VERSION, names::kind::ROLLOUT)
}

/// A Rollout, if it is there.
pub fn rollout<'a>(
    cluster: &'a SimCluster,
    namespace: &str,
    name: &str,
) -> Option<&'a Arc<Object>> {
    cluster.get(rollouts(cluster)?, namespace, name)
}

/// Everything there is to see in a cluster.
pub fn look(cluster: &SimCluster) -> Vec<Scene> {
    let Some(kind) = rollouts(cluster) else { return Vec::new() };
    cluster.list(kind, "").map(|rollout| scene(cluster, rollout)).collect()
}

/// How a stored Rollout stands.
pub fn standing(rollout: &Object) -> RolloutState {
    let document = document(rollout);
    let sight = Sight::of(&document);
    let (spec, status) = (sight.spec, sight.status);
    let steps = sight.steps();
    let number = |value: &Value| value.as_i64().unwrap_or(0);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let index = usize::try_from(number(&status["currentStepIndex"])).unwrap_or(0);
    RolloutState {
        phase: text(&status["phase"]),
        message: text(&status["message"]),
        revision: sight.revision.unwrap_or(0),
        image: text(&spec["template"]["spec"]["containers"][0]["image"]),
        step: index,
        steps: steps.len(),
        doing: steps.get(index).map_or_else(String::new, doing),
        weight: sight.weight(),
        traffic: status["canary"]["weights"]["canary"]["weight"].as_i64(),
        updated: number(&status["updatedReplicas"]),
        available: number(&status["availableReplicas"]),
        desired: number(&spec["replicas"]),
        is_observed: sight.is_observed(),
        is_promoted: sight.is_observed()
            && status["stableRS"].is_string()
            && status["stableRS"] == status["currentPodHash"],
    }
}

/// A Rollout as [`Sight`] reads it.
pub fn document(rollout: &Object) -> Value {
    json!({
        "metadata": {
            "generation": rollout.meta.generation,
            "annotations": rollout.meta.annotations,
        },
        "spec": *rollout.spec,
        "status": *rollout.status,
    })
}

fn doing(step: &Value) -> String {
    if let Some(weight) = step["setWeight"].as_i64() {
        return format!("set weight {weight}");
    }
    if let Some(templates) = step["analysis"]["templates"].as_array() {
        let names = templates.iter().filter_map(|one| one["templateName"].as_str());
        return format!("analysis {}", names.collect::<Vec<_>>().join(", "));
    }
    match (&step["pause"], &step["pause"]["duration"]) {
        (_, Value::String(duration)) => format!("pause {duration}"),
        (_, Value::Number(seconds)) => format!("pause {seconds}s"),
        (Value::Object(_), _) => "pause until promoted".to_owned(),
        // Steps of rollouts that others bring along.
        _ => step.as_object().into_iter().flat_map(|step| step.keys()).cloned().collect(),
    }
}

fn scene(cluster: &SimCluster, rollout: &Object) -> Scene {
    let hash = |field: &str| rollout.status[field].as_str().unwrap_or_default();
    let (stable, current) = (hash("stableRS"), hash("currentPodHash"));
    let is_blue_green = rollout.spec["strategy"]["blueGreen"].is_object();
    let owned = cluster.owned_by(&rollout.meta.uid);
    let mut sets: Vec<SetScene> = owned
        .filter(|object| object.kind == KindId::REPLICA_SET)
        .map(|set| {
            let label = set.meta.labels.get(names::label::POD_TEMPLATE_HASH);
            let role = match label.map(String::as_str).unwrap_or_default() {
                hash if hash == stable => Role::Stable,
                hash if hash == current && is_blue_green => Role::Preview,
                hash if hash == current => Role::Canary,
                _ => Role::Old,
            };
            set_scene(cluster, set, role)
        })
        .filter(|set| set.role == Role::Stable || !set.pods.is_empty())
        .collect();
    sets.sort_by_key(|set| std::cmp::Reverse(set.revision));
    Scene {
        namespace: rollout.meta.namespace.to_string(),
        name: rollout.meta.name.to_string(),
        standing: standing(rollout),
        sets,
    }
}

fn set_scene(cluster: &SimCluster, set: &Arc<Object>, role: Role) -> SetScene {
    let revision = set.meta.annotations.get(names::annotation::REVISION);
    let pods = cluster.owned_by(&set.meta.uid).filter(|object| object.kind == KindId::POD);
    let mut pods: Vec<PodScene> = pods.map(|pod| pod_scene(pod)).collect();
    pods.sort_by(|one, other| one.suffix.cmp(&other.suffix));
    SetScene {
        name: set.meta.name.to_string(),
        revision: revision.and_then(|text| text.parse().ok()).unwrap_or(0),
        role,
        pods,
    }
}

fn pod_scene(pod: &Object) -> PodScene {
    let suffix = pod.meta.name.rsplit('-').next().unwrap_or_default().to_owned();
    let state = match &pod.pod {
        _ if pod.meta.deleting.is_some() => PodLook::Ending,
        Some(status) if status.ready => PodLook::Ready,
        Some(status) if matches!(status.state.container, ContainerState::Running(_)) => {
            PodLook::NotReady
        }
        _ => PodLook::Starting,
    };
    PodScene { suffix, state }
}
