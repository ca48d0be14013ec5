//! The AnalysisRuns, Experiments and templates of a story, and what happens to them.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Story, merge};
use crate::ask::{Answer, Ask, Class, Failure, Question, Reply};
use crate::decision::{Change, ChangeId, Kind, ObjectRef, Op};
use crate::frame::Frame;
use crate::kinds;
use crate::world::{Known, TemplateView, Templates, TrialView};

/// AnalysisRuns, Experiments and templates, as a cluster would hold them, by name.
#[derive(Clone, Default)]
pub struct Trials {
    runs: Vec<Value>,
    experiments: Vec<Value>,
    templates: Vec<Value>,
    cluster_templates: Vec<Value>,
}

fn frame(value: &Value) -> Frame {
    serde_json::from_value(value.clone()).unwrap()
}

/// The end of a trial's name: revision and what follows it.
fn short(name: &str) -> &str {
    name.splitn(3, '-').last().unwrap()
}

impl Trials {
    pub fn runs(&self) -> Vec<Arc<TrialView>> {
        let view = |run| Arc::new(TrialView::read(&kinds::ANALYSIS_RUN, &frame(run)));
        self.runs.iter().map(view).collect()
    }

    pub fn experiments(&self) -> Vec<Arc<TrialView>> {
        let view = |one| Arc::new(TrialView::read(&kinds::EXPERIMENT, &frame(one)));
        self.experiments.iter().map(view).collect()
    }

    pub fn templates(&self) -> Templates {
        let views = |list: &[Value]| {
            let view = |one| Arc::new(TemplateView::read(&frame(one)));
            let pair = |view: Arc<TemplateView>| (Arc::clone(&view.name), Known::Present(view));
            list.iter().map(view).map(pair).collect()
        };
        Templates { namespaced: views(&self.templates), cluster: views(&self.cluster_templates) }
    }

    fn list(&mut self, kind: &Kind) -> Option<(&'static str, &mut Vec<Value>)> {
        if *kind == kinds::ANALYSIS_RUN {
            Some(("run", &mut self.runs))
        } else if *kind == kinds::EXPERIMENT {
            Some(("experiment", &mut self.experiments))
        } else {
            None
        }
    }

    /// Does what a decision wants with a trial; `None` if it is about something else.
    pub fn apply(&mut self, change: &Change, version: u64, now: Timestamp) -> Option<String> {
        let (what, list) = self.list(&change.target.kind)?;
        let name = &*change.target.name;
        let at = list.iter().position(|one| one["metadata"]["name"] == name);
        let done = match &change.op {
            Op::Create(body) => {
                assert_eq!(at, None, "{name} is there already");
                let mut object = (**body).clone();
                object["metadata"]["creationTimestamp"] = json!(now);
                object["metadata"]["uid"] = json!(format!("{what}-{version}"));
                object["metadata"]["resourceVersion"] = json!(version.to_string());
                list.push(object);
                "start"
            }
            Op::Merge(patch) => {
                let object = &mut list[at.unwrap()];
                merge(object, patch);
                object["metadata"]["resourceVersion"] = json!(version.to_string());
                assert_eq!(**patch, json!({ "spec": { "terminate": true } }));
                "end"
            }
            Op::Delete => {
                list.remove(at.unwrap());
                "delete"
            }
            Op::Evict => panic!("only pods are evicted"),
        };
        Some(format!("{done} {what} {}", short(name)))
    }
}

impl Story {
    /// Adds an AnalysisTemplate.
    pub fn with_template(mut self, name: &str, spec: Value) -> Self {
        self.add_template(name, spec);
        self
    }

    /// Somebody creates an AnalysisTemplate.
    pub fn add_template(&mut self, name: &str, spec: Value) {
        let version = self.trials.templates.len() + 1;
        let meta = json!({ "name": name, "resourceVersion": version.to_string() });
        self.trials.templates.push(json!({ "metadata": meta, "spec": spec }));
    }

    /// Somebody replaces an AnalysisTemplate, or creates it.
    pub fn replace_template(&mut self, name: &str, spec: Value) {
        self.trials.templates.retain(|template| template["metadata"]["name"] != name);
        self.add_template(name, spec);
    }

    /// Somebody creates a ClusterAnalysisTemplate.
    pub fn add_cluster_template(&mut self, name: &str, spec: Value) {
        self.trials.cluster_templates.push(json!({ "metadata": { "name": name }, "spec": spec }));
    }

    /// The run or Experiment whose name ends like this gets a phase and a message.
    pub fn trial_turns(&mut self, short_name: &str, phase: &str, message: &str) {
        self.version += 1;
        let version = self.version.to_string();
        let trial = self.trial(short_name);
        merge(trial, &json!({ "status": { "phase": phase, "message": message } }));
        trial["metadata"]["resourceVersion"] = json!(version);
    }

    /// The run or Experiment whose name ends like this.
    pub fn trial(&mut self, short_name: &str) -> &mut Value {
        let named =
            |one: &&mut Value| short(one["metadata"]["name"].as_str().unwrap()) == short_name;
        let Trials { runs, experiments, .. } = &mut self.trials;
        runs.iter_mut().chain(experiments).find(named).unwrap_or_else(|| panic!("no {short_name}"))
    }

    /// Every run and Experiment: end of its name, phase, and `ending` if it was asked to.
    pub fn trials(&self) -> Vec<String> {
        let all = self.trials.runs.iter().chain(&self.trials.experiments);
        let text = |one: &Value| {
            let phase = one["status"]["phase"].as_str().unwrap_or("-");
            let ending = if one["spec"]["terminate"] == true { " ending" } else { "" };
            format!("{} {phase}{ending}", short(one["metadata"]["name"].as_str().unwrap()))
        };
        all.map(text).collect()
    }

    /// The status does not name any run, as after a crash between a create and the status.
    pub fn forget_runs(&mut self) {
        self.patch_status(json!({ "canary": null }));
    }

    /// The server refuses to create an object of this kind and name.
    pub fn refuse_trial(&mut self, kind: &Kind, name: &str, class: Class, retry_at: Timestamp) {
        let target = ObjectRef::new(kind.clone(), &"default".into(), &name.into());
        let failure = Failure { class, message: "no".into(), times: 1, retry_at };
        self.recall.failed.insert(ChangeId::of("create", &target), failure);
    }

    /// What is read is known at the next decision; answers nobody wants are forgotten.
    pub(super) fn answer(&mut self, asks: &[Ask], now: Timestamp) {
        self.answers.retain(|id, _| asks.iter().any(|ask| ask.id == *id));
        for ask in asks {
            let Question::Read(target) = &ask.question else { continue };
            let named = |set: &&Value| set["metadata"]["name"] == *target.name;
            let mut found = self.sets.iter().find(named).cloned();
            if target.kind != kinds::REPLICA_SET {
                found = Some(json!({ "metadata": { "name": &*target.name } })); // Somebody else's.
            }
            let reply = Ok(Reply::Object(found.map(Arc::new)));
            self.answers.insert(ask.id.clone(), Answer { asked_at: now, answered_at: now, reply });
        }
    }
}
