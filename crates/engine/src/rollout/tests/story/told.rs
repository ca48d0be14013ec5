//! A story as a file of `scenarios/` tells it: the same objects, deeds and expectations that
//! `simulate()`, the live lab and a real control plane read.

use std::collections::BTreeMap;

use gradus_api::decode::decode;
use gradus_api::rollout::RolloutSpec;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Story, bump, merge};
use crate::command::{Command, Patch, patches};
use crate::projection::project;
use crate::view::set_weight;

/// What the tables can tell of a scenario. A field that they cannot is an error, not left out.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Told {
    #[serde(rename = "name")]
    _name: String,
    #[serde(rename = "about")]
    _about: String,
    /// It is for those who tell it in real time.
    #[serde(rename = "timeScale")]
    _time_scale: u32,
    objects: Vec<Value>,
    pub steps: Vec<Step>,
    pub end: End,
}

/// Wait, look, act.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    pub when: When,
    pub expect: Option<Value>,
    pub r#do: Option<Deed>,
}

/// Where the rollout must stand.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct When {
    phase: String,
    weight: Option<i32>,
    revision: Option<i64>,
}

/// What is done then.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Deed {
    SetImage(String),
    Promote,
}

/// How it ends.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    pub expect: Value,
    pub sizes: BTreeMap<i64, i64>,
}

impl Told {
    /// The scenario of this text.
    pub fn read(text: &str) -> Self {
        serde_saphyr::from_str(text).unwrap()
    }

    /// Its Rollout, not yet seen.
    pub fn story(&self) -> Story {
        let [rollout] = &self.objects[..] else { panic!("expected a Rollout and nothing else") };
        assert_eq!(rollout["kind"], "Rollout");
        let mut story = Story::canary(0, json!([]));
        merge(&mut story.rollout["metadata"], &rollout["metadata"]);
        story.rollout["spec"] = rollout["spec"].clone();
        story
    }
}

impl Story {
    /// Takes a step of a scenario: it must stand as the step wants, then its deed is done.
    pub fn take(&mut self, step: &Step, what: &str) {
        let When { phase, weight, revision } = &step.when;
        let (metadata, status) = (&self.rollout["metadata"], &self.rollout["status"]);
        let generation = metadata["generation"].to_string();
        assert_eq!(status["observedGeneration"], generation, "{what}: the spec is observed");
        assert_eq!(status["phase"], **phase, "{what}: phase");
        if let Some(weight) = weight {
            assert_eq!(self.wanted_weight(), *weight, "{what}: weight");
        }
        if let Some(revision) = revision {
            let note = &metadata["annotations"]["rollout.argoproj.io/revision"];
            assert_eq!(*note, revision.to_string(), "{what}: revision");
        }
        if let Some(expected) = &step.expect {
            assert_eq!(self.projected(), *expected, "{what}: expect");
        }
        match &step.r#do {
            None => {}
            Some(Deed::SetImage(image)) => {
                let containers = &mut self.rollout["spec"]["template"]["spec"]["containers"];
                for container in containers.as_array_mut().unwrap() {
                    container["image"] = json!(image);
                }
                bump(&mut self.rollout);
                self.touch_rollout();
            }
            Some(Deed::Promote) => self.command(Command::Promote),
        }
    }

    /// The status, as everybody compares it.
    pub fn projected(&self) -> Value {
        let numbered = self.numbered().map(|(at, revision)| (self.hash(at), revision));
        project(&self.rollout["status"], &numbered.collect())
    }

    /// Sizes of the ReplicaSets, by revision.
    pub fn sizes_by_revision(&self) -> BTreeMap<i64, i64> {
        let sizes = self.sizes();
        self.numbered().map(|(at, revision)| (revision, sizes[at])).collect()
    }

    /// Each ReplicaSet's place and revision.
    fn numbered(&self) -> impl Iterator<Item = (usize, i64)> {
        let revision = |at| self.note(at, "rollout.argoproj.io/revision").as_str()?.parse().ok();
        (0..self.sets.len()).filter_map(move |at| Some((at, revision(at)?)))
    }

    /// The weight that the current step asks for.
    fn wanted_weight(&self) -> i32 {
        let spec: RolloutSpec = decode(&self.rollout["spec"]).0;
        let canary = spec.strategy.canary.unwrap();
        set_weight(&canary, &decode(&self.rollout["status"]).0)
    }

    /// A command of the plugin.
    fn command(&mut self, command: Command) {
        let (spec, status) = (decode(&self.rollout["spec"]).0, decode(&self.rollout["status"]).0);
        for patch in patches(command, &spec, &status) {
            match patch {
                Patch::Main(body) => self.patch_spec(body["spec"].clone()),
                Patch::Status(body) => self.patch_status(body["status"].clone()),
            }
        }
    }
}
