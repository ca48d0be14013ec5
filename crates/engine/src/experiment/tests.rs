//! Experiments from their first look to their end, in a cluster that does what each row says.

mod analyses;
mod ends;
mod lifecycle;
mod refused;

use gradus_api::experiment::{ExperimentRunStatus, TemplateStatus};
use serde::Deserialize;
use serde_json::{Value, json};

use super::*;
use crate::ask::{Question, Reply};
use crate::decision::{ChangeId, Op};
use crate::frame::Frame;
use crate::uid::Uid;
use crate::world::TemplateView;

const UID: &str = "00000000-0000-4000-8000-000000000001";

/// Most decisions at one moment: more means that it never comes to rest.
const STEPS: usize = 50;

/// An Experiment that is played: what a cluster would do, without one.
struct Play {
    world: ExperimentWorld,
    now: Timestamp,
    /// Objects as they are stored, by kind and name.
    objects: BTreeMap<(String, String), Value>,
    /// Do pods become available as soon as they are wanted?
    has_good_pods: bool,
    /// Events in order, as `reason message`; those about the Rollout begin with `Rollout:`.
    events: Vec<String>,
    /// Writes of other objects, in order.
    written: Vec<String>,
    /// Writes that fail, once each.
    refusals: BTreeMap<ChangeId, Failure>,
    /// What a read of an object finds that is not ours.
    foreign: BTreeMap<String, Value>,
}

impl Play {
    fn new(spec: Value) -> Self {
        Play::with_metadata(json!({}), spec)
    }

    fn with_metadata(metadata: Value, spec: Value) -> Self {
        let mut object = json!({ "metadata": metadata, "spec": spec });
        object["metadata"]["name"] = json!("study");
        object["metadata"]["namespace"] = json!("shop");
        object["metadata"]["uid"] = json!(UID);
        let experiment = ExperimentView::read(&Frame::deserialize(object).unwrap(), None);
        let mut play = Play {
            world: ExperimentWorld {
                experiment: Arc::new(experiment),
                replica_sets: Known::Present(Vec::new()),
                services: Known::Present(Vec::new()),
                runs: Known::Present(Vec::new()),
                templates: Templates::default(),
                answers: BTreeMap::new(),
                recall: Recall::default(),
            },
            now: Timestamp::from_second(1000).unwrap(),
            objects: BTreeMap::new(),
            has_good_pods: true,
            events: Vec::new(),
            written: Vec::new(),
            refusals: BTreeMap::new(),
            foreign: BTreeMap::new(),
        };
        play.template("errors", json!({ "metrics": [{ "name": "m" }] }));
        play
    }

    /// An AnalysisTemplate is there.
    fn template(&mut self, name: &str, spec: Value) {
        let frame = Frame::deserialize(json!({ "metadata": { "name": name }, "spec": spec }));
        let view = Arc::new(TemplateView::read(&frame.unwrap()));
        self.world.templates.namespaced.insert(name.into(), Known::Present(view));
    }

    fn status(&self) -> &ExperimentStatus {
        &self.world.experiment.status
    }

    fn pods(&self, template: &str) -> &TemplateStatus {
        self.status().template_statuses.iter().find(|one| one.name == template).unwrap()
    }

    fn run(&self, analysis: &str) -> &ExperimentRunStatus {
        self.status().analysis_runs.iter().find(|one| one.name == analysis).unwrap()
    }

    fn change(&mut self, change: impl FnOnce(&mut ExperimentView)) {
        change(Arc::make_mut(&mut self.world.experiment));
    }

    fn spec(&mut self, change: impl FnOnce(&mut gradus_api::experiment::ExperimentSpec)) {
        self.change(|experiment| change(Arc::make_mut(&mut experiment.spec)));
    }

    fn object(&self, kind: &str, name: &str) -> Option<&Value> {
        self.objects.get(&(kind.to_owned(), name.to_owned()))
    }

    /// Somebody changes an object.
    fn patch(&mut self, kind: &str, name: &str, patch: Value) {
        let object = self.objects.get_mut(&(kind.to_owned(), name.to_owned())).unwrap();
        gradus_api::patch::apply(object, &patch);
        self.look();
    }

    fn judge(&mut self, run: &str, phase: &str, message: &str) {
        self.patch("AnalysisRun", run, json!({ "status": { "phase": phase, "message": message } }));
    }

    /// The controller of ReplicaSets acts, and the watches show what there is.
    fn look(&mut self) {
        let has_good_pods = self.has_good_pods;
        for object in self.objects.values_mut().filter(|one| one["kind"] == "ReplicaSet") {
            let size = object["spec"]["replicas"].clone();
            let good = if has_good_pods { size.clone() } else { json!(0) };
            object["status"] = json!({ "replicas": size, "readyReplicas": good,
                "availableReplicas": good });
        }
        let frames = |kind: &str| -> Vec<Frame> {
            let all = self.objects.iter().filter(|((of, _), _)| of == kind);
            all.map(|(_, object)| Frame::deserialize(object).unwrap()).collect()
        };
        let sets = frames("ReplicaSet").into_iter();
        let sets = sets.map(|frame| Arc::new(ReplicaSetView::read(&frame, None))).collect();
        let services = frames("Service").into_iter();
        let services = services.map(|frame| Arc::new(ExperimentService::read(&frame))).collect();
        let runs = frames("AnalysisRun").into_iter();
        let runs = runs.map(|one| Arc::new(RunView::read(&kinds::ANALYSIS_RUN, &one))).collect();
        self.world.replica_sets = Known::Present(sets);
        self.world.services = Known::Present(services);
        self.world.runs = Known::Present(runs);
    }

    /// One decision, carried out. Says when to look again, or `None` if it changed something.
    fn step(&mut self) -> Option<Option<Timestamp>> {
        let decision = decide(&self.world, self.now);
        let mut is_moved = false;
        for change in &decision.changes {
            if let Some(failure) = self.refusals.remove(&change.id) {
                self.world.recall.failed.insert(change.id.clone(), failure);
                self.world.answers.clear();
                self.look();
                return None;
            }
            self.world.recall.failed.remove(&change.id);
            self.write(change);
            is_moved = true;
        }
        if let Some(status) = decision.status {
            assert_ne!(status, *self.world.experiment.status, "what is so already is not written");
            self.change(|experiment| experiment.status = Arc::new(status));
            is_moved = true;
        }
        let told = |event: &Event| {
            let of = if event.about.kind == kinds::ROLLOUT { "Rollout: " } else { "" };
            assert_eq!(of.is_empty(), event.uid.is_none(), "the Rollout's own uid is named");
            format!("{of}{} {}", event.reason, event.message)
        };
        self.events.extend(decision.events.iter().map(told));
        let listed: Vec<AskId> = decision.asks.iter().map(|ask| ask.id.clone()).collect();
        self.world.answers.retain(|id, _| listed.contains(id));
        for ask in decision.asks {
            is_moved |= self.answer(ask);
        }
        self.look();
        (!is_moved).then_some(decision.wake_at)
    }

    fn write(&mut self, change: &Change) {
        let ObjectRef { kind, name, .. } = &change.target;
        let key = (kind.name.to_string(), name.to_string());
        self.written.push(change.id.0.replace("shop/", ""));
        match &change.op {
            Op::Create(body) => {
                let mut body = Value::clone(body);
                body["metadata"]["uid"] = json!("00000000-0000-4000-8000-000000000009");
                assert!(self.objects.insert(key, body).is_none(), "its name is free");
            }
            Op::Merge(body) => gradus_api::patch::apply(self.objects.get_mut(&key).unwrap(), body),
            Op::Delete => drop(self.objects.remove(&key)),
            op => panic!("nothing else is written: {op:?}"),
        }
    }

    fn answer(&mut self, ask: Ask) -> bool {
        if self.world.answers.contains_key(&ask.id) {
            return false;
        }
        let Question::Read(target) = &ask.question else { panic!("{ask:?} is not asked here") };
        let found = self.foreign.get(&*target.name).cloned().map(Arc::new);
        let reply = Ok(Reply::Object(found));
        let answer = Answer { asked_at: self.now, answered_at: self.now, reply };
        self.world.answers.insert(ask.id, answer);
        true
    }

    /// A write fails once, and may be tried again after a second.
    fn refuse(&mut self, verb: &str, kind: Kind, name: &str, class: Class, message: &str) {
        let target = ObjectRef::new(kind, &"shop".into(), &name.into());
        let retry_at = self.now + SignedDuration::from_secs(1);
        let failure = Failure { class, message: message.to_owned(), times: 1, retry_at };
        self.refusals.insert(ChangeId::of(verb, &target), failure);
    }

    /// Until nothing moves at this moment. Says when to look again.
    fn settle(&mut self) -> Option<Timestamp> {
        for _ in 0..STEPS {
            if let Some(wake_at) = self.step() {
                return wake_at;
            }
        }
        panic!("it never comes to rest: {:?}", self.world.experiment.status);
    }

    /// For so many seconds, or until it comes to rest for good.
    fn go(&mut self, seconds: i64) {
        let end = self.now + SignedDuration::from_secs(seconds);
        for _ in 0..STEPS {
            match self.settle() {
                Some(wake_at) if wake_at <= end => self.now = wake_at.max(self.now),
                _ => {
                    self.now = end;
                    return;
                }
            }
        }
        panic!("it never comes to rest: {:?}", self.world.experiment.status);
    }

    /// A new process knows what is stored and nothing else.
    fn restart(&mut self) {
        self.world.answers.clear();
        self.world.recall = Recall::default();
    }
}

/// A set of pods of one container with a port.
fn template(name: &str, fields: Value) -> Value {
    let labels = json!({ "app": "web", "rollouts-pod-template-hash": "stale" });
    let mut template = json!({ "name": name, "selector": { "matchLabels": labels },
        "template": { "metadata": { "labels": labels }, "spec": { "containers": [{
            "name": "web", "image": "web:1",
            "ports": [{ "name": "http", "containerPort": 80, "protocol": "TCP" }] }] } } });
    for (key, value) in fields.as_object().unwrap() {
        template[key] = value.clone();
    }
    template
}

/// An Experiment with one set of pods and these fields.
fn one(fields: Value) -> Value {
    let mut spec = json!({ "templates": [template("a", json!({}))] });
    for (key, value) in fields.as_object().unwrap() {
        spec[key] = value.clone();
    }
    spec
}
