//! What does a person do, and which writes is that? The same writes as the `kubectl` plugin makes.

use gradus_api::decode::decode;
use gradus_api::names;
use gradus_engine::command::{Command, Patch, patches};
use gradus_simkube::behave::Behaviours;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::sight::Sight;

/// Something a person does.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// Goes on from a pause, or skips the current step.
    Promote,
    /// Skips all that is left.
    PromoteFull,
    /// Gives the update up.
    Abort,
    /// Tries an aborted update again.
    Retry,
    /// Sets `spec.paused`.
    Pause,
    /// Clears `spec.paused`.
    Resume,
    /// Restarts every pod there is.
    Restart,
    /// Gives every container this image.
    SetImage(String),
    /// Sets `spec.replicas`.
    Scale(u32),
    /// Creates an object, or lays it over the one that is there.
    Apply(Value),
    /// Lays a merge patch over an object named by its `kind` and `metadata.name`.
    Patch(Value),
    /// Lays a merge patch over the status of an object named by its `kind` and `metadata.name`.
    PatchStatus(Value),
    /// Deletes an object named by its `kind` and `metadata.name`.
    Delete(Value),
    /// The run of this purpose that the status names gets a phase, as by whoever measures.
    Run(RunVerdict),
    /// The Experiment that the status names gets a phase, as by whoever carries it out.
    Experiment(NewPhase),
    /// Changes how images behave, for pods that start from now on.
    Behave(Behaviours),
    /// Ends the controller and starts another.
    RestartController,
}

/// How a run stands from now on.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunVerdict {
    /// Step, Background, PrePromotion or PostPromotion.
    pub r#type: String,
    /// `status.phase`.
    pub phase: String,
    /// `status.message`.
    #[serde(default)]
    pub message: String,
}

/// How an Experiment stands from now on.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewPhase {
    /// `status.phase`.
    pub phase: String,
    /// `status.message`.
    #[serde(default)]
    pub message: String,
}

/// One write of a person.
#[derive(Clone, Debug, PartialEq)]
pub struct PersonalWrite {
    /// `apiVersion` of the object.
    pub api_version: String,
    /// `kind` of the object.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// What is done to it.
    pub deed: Deed,
}

/// What a write does.
#[derive(Clone, Debug, PartialEq)]
pub enum Deed {
    /// Creates it, or lays it over the one that is there.
    Apply(Value),
    /// Lays a merge patch over it.
    Merge(Value),
    /// Lays a merge patch over its status.
    MergeStatus(Value),
    /// Deletes it.
    Delete,
}

impl Action {
    /// A good verdict on what the update waits for, as by whoever measures or carries it out.
    pub(crate) fn good_verdict(sight: &Sight<'_>) -> Option<Self> {
        let (phase, message) = (names::analysis_phase::SUCCESSFUL.to_owned(), String::new());
        if sight.has_experiment() {
            return Some(Action::Experiment(NewPhase { phase, message }));
        }
        let r#type = sight.awaited_run()?.to_owned();
        Some(Action::Run(RunVerdict { r#type, phase, message }))
    }

    /// The writes that are this action, on the Rollout as it stands now. What is no write of the
    /// cluster (`Behave`, `RestartController`) has none.
    pub fn writes(&self, rollout: &str, sight: &Sight<'_>, now: Timestamp) -> Vec<PersonalWrite> {
        let on_rollout = |deed: Deed| PersonalWrite {
            api_version: names::API_VERSION.to_owned(),
            kind: names::kind::ROLLOUT.to_owned(),
            name: rollout.to_owned(),
            deed,
        };
        let spec = |spec: Value| on_rollout(Deed::Merge(json!({ "spec": spec })));
        let commanded = |command: Command| -> Vec<PersonalWrite> {
            let (spec, status) = (decode(sight.spec).0, decode(sight.status).0);
            let deeds = patches(command, &spec, &status).into_iter().map(|patch| match patch {
                Patch::Main(body) => Deed::Merge(body),
                Patch::Status(body) => Deed::MergeStatus(body),
            });
            deeds.map(on_rollout).collect()
        };
        match self {
            Action::Promote => commanded(Command::Promote),
            Action::PromoteFull => commanded(Command::PromoteFull),
            Action::Abort => commanded(Command::Abort),
            Action::Retry => commanded(Command::Retry),
            Action::Pause => commanded(Command::Pause),
            Action::Restart => commanded(Command::Restart(now)),
            Action::Resume => vec![spec(json!({"paused": false}))],
            Action::SetImage(image) => vec![spec(with_image(sight.spec, image))],
            Action::Scale(replicas) => vec![spec(json!({ "replicas": replicas }))],
            Action::Apply(object) => vec![named(object, Deed::Apply(object.clone()))],
            Action::Patch(object) => vec![named(object, Deed::Merge(object.clone()))],
            Action::PatchStatus(object) => vec![named(object, Deed::MergeStatus(object.clone()))],
            Action::Delete(object) => vec![named(object, Deed::Delete)],
            Action::Run(verdict) => {
                let name = sight.run(&verdict.r#type).map(|run| &run["name"]);
                let status = json!({ "phase": verdict.phase, "message": verdict.message });
                judged(names::kind::ANALYSIS_RUN, name, status)
            }
            Action::Experiment(verdict) => {
                let name = Some(&sight.status["canary"]["currentExperiment"]);
                let status = json!({ "phase": verdict.phase, "message": verdict.message });
                judged(names::kind::EXPERIMENT, name, status)
            }
            Action::Behave(_) | Action::RestartController => Vec::new(),
        }
    }
}

/// The status of a run or an Experiment is a part of its main resource. None where none is named.
fn judged(kind: &str, name: Option<&Value>, status: Value) -> Vec<PersonalWrite> {
    let name = name.and_then(Value::as_str).filter(|name| !name.is_empty());
    let write = name.map(|name| PersonalWrite {
        api_version: names::API_VERSION.to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        deed: Deed::Merge(json!({ "status": status })),
    });
    write.into_iter().collect()
}

fn with_image(spec: &Value, image: &str) -> Value {
    let mut containers = spec["template"]["spec"]["containers"].clone();
    for container in containers.as_array_mut().into_iter().flatten() {
        container["image"] = json!(image);
    }
    json!({ "template": { "spec": { "containers": containers } } })
}

fn named(object: &Value, deed: Deed) -> PersonalWrite {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    PersonalWrite {
        api_version: text(&object["apiVersion"]),
        kind: text(&object["kind"]),
        name: text(&object["metadata"]["name"]),
        deed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promote_of_a_paused_spec_clears_that_too() {
        let (spec, status) = (json!({"paused": true}), json!({}));
        let sight = Sight { generation: 1, revision: None, spec: &spec, status: &status };
        let writes = Action::Promote.writes("web", &sight, Timestamp::UNIX_EPOCH);
        assert_eq!(writes.len(), 1);
        assert_eq!(writes[0].deed, Deed::Merge(json!({"spec": {"paused": false}})));
    }
}
