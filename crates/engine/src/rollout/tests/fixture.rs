//! A rollout told step by step: decisions are applied to plain JSON objects, pods follow on
//! request.

mod left;
mod pods;
mod routes;
mod runs;
pub mod told;

use std::collections::BTreeMap;
use std::sync::Arc;

use gradus_api::rollout::RolloutStatus;
use jiff::Timestamp;
use serde_json::{Value, json};

use self::pods::marks;
use crate::ask::{
    Answer, AskId, Class, Failure, PluginReply, Recall, Reply, RouterReply, Split, WeightsSaid,
};
use crate::decision::{Change, ChangeId, Decision, Event, ObjectRef, Op, Why};
use crate::frame::Frame;
use crate::interlock;
use crate::rollout::{Memo, decide, workload};
use crate::world::{Known, ReplicaSetView, RolloutView, ServiceView, WorkloadView, World};

/// A Rollout and its ReplicaSets, as a cluster would hold them.
#[derive(Clone)]
pub struct Fixture {
    rollout: Value,
    sets: Vec<Value>,
    services: Vec<Value>,
    runs: runs::Runs,
    answers: BTreeMap<AskId, Answer>,
    /// Routing objects of every kind.
    routes: Vec<Value>,
    pods: Vec<Value>,
    /// Why evictions are refused, if they are.
    budget: Option<String>,
    lists: usize,
    /// What step plugins will answer, in this order.
    replies: Vec<PluginReply>,
    /// What traffic plugins answer next.
    routed: Option<Vec<RouterReply>>,
    calls: Vec<String>,
    /// What load balancers say when they are asked, if they are; nothing while it is not known.
    balancer: Option<Option<Result<WeightsSaid, Failure>>>,
    /// The same of the pods that should be registered; see `targets_say`.
    targets: Option<Option<Split>>,
    /// So many of a thousand requests the newest revision answers, where a URL is measured.
    probed: Option<u32>,
    deployment: Option<Value>,
    recall: Recall<Memo>,
    events: Vec<String>,
    told: Vec<Event>,
    version: u64,
    now: Timestamp,
}

impl Fixture {
    /// A canary named `web` with image v1, maxSurge 1 and maxUnavailable 0, not yet seen.
    pub fn canary(replicas: i32, steps: Value) -> Self {
        let rollout = json!({
            "metadata": {
                "name": "web", "namespace": "default", "generation": 1, "resourceVersion": "1",
                "uid": "00000000-0000-4000-8000-000000000001",
            },
            "spec": {
                "replicas": replicas,
                "selector": { "matchLabels": { "app": "web" } },
                "template": {
                    "metadata": { "labels": { "app": "web" } },
                    "spec": { "containers": [{ "name": "web", "image": "web:v1" }] },
                },
                "strategy": {
                    "canary": { "maxSurge": 1, "maxUnavailable": 0, "steps": steps },
                },
            },
        });
        Fixture {
            rollout,
            sets: Vec::new(),
            services: Vec::new(),
            runs: runs::Runs::default(),
            answers: BTreeMap::new(),
            routes: Vec::new(),
            pods: Vec::new(),
            budget: None,
            lists: 0,
            replies: Vec::new(),
            routed: Some(Vec::new()),
            calls: Vec::new(),
            balancer: None,
            targets: None,
            probed: None,
            deployment: None,
            recall: Recall::default(),
            events: Vec::new(),
            told: Vec::new(),
            version: 1,
            now: Timestamp::UNIX_EPOCH,
        }
    }

    /// The same as a blue-green rollout with the Services `active` and `preview`.
    pub fn blue_green(replicas: i32, strategy: Value) -> Self {
        let mut fixture = Fixture::canary(replicas, json!([]));
        let mut whole = json!({ "activeService": "active", "previewService": "preview" });
        merge(&mut whole, &strategy);
        fixture.rollout["spec"]["strategy"] = json!({ "blueGreen": whole });
        fixture.with_services(&["active", "preview"])
    }

    /// The same as a canary whose traffic nginx splits, with the Services `stable` and `canary`.
    pub fn nginx(replicas: i32, strategy: Value) -> Self {
        let routing = json!({ "nginx": { "stableIngress": "web" } });
        Fixture::routed(replicas, routing, strategy).with_ingress("stable")
    }

    /// A ReplicaSet has this size, and so many available pods.
    pub fn size(&mut self, at: usize, size: i64, available: i64) {
        let (replicas, set) = (self.rollout["spec"]["replicas"].to_string(), &mut self.sets[at]);
        set["spec"]["replicas"] = json!(size);
        set["metadata"]["annotations"]["rollout.argoproj.io/desired-replicas"] = json!(replicas);
        set["status"] = json!({
            "replicas": size, "readyReplicas": available, "availableReplicas": available,
            "observedGeneration": set["metadata"]["generation"],
        });
    }

    /// The hash of a ReplicaSet.
    pub fn hash(&self, at: usize) -> String {
        let label = &self.sets[at]["metadata"]["labels"]["rollouts-pod-template-hash"];
        label.as_str().unwrap().to_owned()
    }

    /// An annotation of a ReplicaSet.
    pub fn note(&self, at: usize, key: &str) -> &Value {
        &self.sets[at]["metadata"]["annotations"][key]
    }

    /// The same canary, whose template and selector are those of a Deployment of this size.
    pub fn referring(replicas: i32, scale_down: &str, deployment_size: i32) -> Self {
        let mut fixture = Fixture::canary(replicas, json!([{ "setWeight": 20 }, { "pause": {} }]));
        let spec = fixture.rollout["spec"].as_object_mut().unwrap();
        let template = spec.remove("template").unwrap();
        let selector = spec.remove("selector").unwrap();
        let named = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "web",
            "scaleDown": scale_down });
        spec.insert("workloadRef".to_owned(), named);
        fixture.deployment = Some(json!({
            "metadata": { "name": "web", "namespace": "default", "uid": "deployment",
                "resourceVersion": "1", "generation": 1 },
            "spec": { "replicas": deployment_size, "template": template, "selector": selector },
        }));
        fixture
    }

    /// The Deployment that the Rollout refers to; somebody edits or deletes it.
    pub fn deployment(&mut self) -> &mut Option<Value> {
        &mut self.deployment
    }

    /// Somebody edits the spec of the Deployment.
    pub fn patch_deployment(&mut self, patch: Value) {
        let deployment = self.deployment.as_mut().unwrap();
        merge(&mut deployment["spec"], &patch);
        bump(deployment);
    }

    /// What the shell remembers.
    pub fn recall(&mut self) -> &mut Recall<Memo> {
        &mut self.recall
    }

    /// The Rollout as it is stored.
    pub fn rollout(&self) -> &Value {
        &self.rollout
    }

    /// The Rollout has a label.
    pub fn label(&mut self, key: &str, value: &str) {
        self.rollout["metadata"]["labels"][key] = json!(value);
    }

    /// A ReplicaSet as it is stored.
    pub fn set(&mut self, at: usize) -> &mut Value {
        &mut self.sets[at]
    }

    /// Adds Services that select the Rollout's pods of every revision.
    pub fn with_services(mut self, names: &[&str]) -> Self {
        for name in names {
            self.services.push(json!({
                "metadata": { "name": name, "namespace": "default", "resourceVersion": "1" },
                "spec": { "selector": { "app": "web" } },
            }));
        }
        self
    }

    /// Somebody deletes a ReplicaSet, and its pods go with it.
    pub fn lose_set(&mut self, at: usize) {
        let uid = self.sets.remove(at)["metadata"]["uid"].clone();
        self.pods.retain(|pod| pod["metadata"]["ownerReferences"][0]["uid"] != uid);
    }

    /// Somebody deletes a Service.
    pub fn lose_service(&mut self, name: &str) {
        self.services.retain(|service| service["metadata"]["name"] != name);
    }

    /// Somebody edits a Service.
    pub fn patch_service(&mut self, name: &str, patch: Value) {
        let named = |service: &&mut Value| service["metadata"]["name"] == name;
        merge(self.services.iter_mut().find(named).unwrap(), &patch);
    }

    /// Which revision a Service selects: 1 for the first ReplicaSet, 0 for none.
    pub fn selects(&self, name: &str) -> usize {
        let named = |service: &&Value| service["metadata"]["name"] == name;
        let service = self.services.iter().find(named).unwrap();
        let hash = &service["spec"]["selector"]["rollouts-pod-template-hash"];
        let has = |set: &Value| set["metadata"]["labels"]["rollouts-pod-template-hash"] == *hash;
        self.sets.iter().position(has).map_or(0, |at| at + 1)
    }

    /// The World as it is now.
    pub fn world(&self) -> World {
        let frame = |value: &Value| -> Frame { serde_json::from_value(value.clone()).unwrap() };
        let view = |set: &Value| Arc::new(ReplicaSetView::read(&frame(set), None));
        let controlled = |set: &&Value| frame(set).meta.controller().is_some();
        let sets = self.sets.iter().filter(controlled).map(view);
        let orphans = self.sets.iter().filter(|set| !controlled(set)).map(view);
        let stored = RolloutView::read(&frame(&self.rollout), None);
        let workload = workload::reference(&stored).map(|object| match &self.deployment {
            Some(found) => Known::Present(WorkloadView::read(object, found)),
            None => Known::Absent,
        });
        let rollout = match &self.deployment {
            Some(found) if workload.is_some() => stored.resolved(found, None),
            _ => stored,
        };
        let rollout = Arc::new(rollout);
        World {
            routes: self.routes_of(&rollout),
            rollout,
            workload,
            replica_sets: Known::Present(sets.collect()),
            orphans: orphans.collect(),
            services: self
                .services
                .iter()
                .map(|service| Arc::new(ServiceView::read(&frame(service))))
                .map(|view| (Arc::clone(&view.name), Known::Present(view)))
                .collect(),
            runs: Known::Present(self.runs.runs()),
            experiments: Known::Present(self.runs.experiments()),
            experiment_sets: Vec::new(),
            templates: self.runs.templates(),
            verifies: self.balancer.is_some(),
            answers: self.answers.clone(),
            recall: self.recall.clone(),
        }
    }

    /// Decides once and applies what is decided; says what was written. A status that may wait is
    /// written too when nothing else is.
    pub fn reconcile(&mut self, now: Timestamp) -> Vec<String> {
        self.now = now;
        let decision = self.decide();
        if !decision.changes.is_empty() {
            self.answers.retain(|_, answer| {
                matches!(answer.reply, Ok(Reply::Plugin(_) | Reply::RouterPlugin(_)))
            });
        }
        let mut writes: Vec<String> =
            decision.changes.iter().map(|change| self.apply(change, now)).collect();
        self.answer(&decision.asks, now);
        let may_wait = decision.urgency != crate::decision::Urgency::Now;
        if let Some(status) = decision.status.filter(|_| !may_wait || writes.is_empty()) {
            self.rollout["status"] = serde_json::to_value(status).unwrap();
            self.recall.memo = decision.memo;
            self.touch_rollout();
            writes.push("status".to_owned());
        }
        self.recall.failed.retain(|_, failure| now < failure.retry_at);
        for event in decision.events {
            self.events.push(event.reason.to_string());
            self.told.push(event);
        }
        writes
    }

    /// The decision once everything it asks for is answered. The interlock has nothing to cut from
    /// it.
    pub fn decide(&mut self) -> Decision<RolloutStatus, Memo> {
        for _ in 0..8 {
            let world = self.world();
            let decision = decide(&world, self.now);
            let harm = interlock::check(&world, &decision, self.now);
            assert!(harm.is_none(), "the interlock holds it: {:?}", harm.map(|harm| harm.message));
            super::why::check(&world, &decision, self.now);
            if !self.answer_live(&decision.asks) {
                return decision;
            }
        }
        panic!("it never stops asking");
    }

    /// A ReplicaSet with the Rollout's template that nobody controls, made by somebody else.
    pub fn with_orphan(mut self, labels: Value, size: i32) -> Self {
        let mut template = self.rollout["spec"]["template"].clone();
        merge(&mut template["metadata"]["labels"], &labels);
        let number = self.sets.len();
        self.sets.push(json!({
            "metadata": {
                "name": format!("found-{number}"), "namespace": "default", "generation": 1,
                "uid": format!("00000000-0000-4000-8000-00000000010{number}"),
                "resourceVersion": "1", "labels": labels,
            },
            "spec": { "replicas": size, "template": template },
        }));
        self.pods_follow();
        self
    }

    /// Reconciles and lets pods come and go until nothing happens any more.
    pub fn settle(&mut self, now: Timestamp) {
        self.run(now, Fixture::pods_follow);
    }

    /// The same, but the newest ReplicaSet's pods never become ready.
    pub fn settle_without_new_pods(&mut self, now: Timestamp) {
        self.run(now, |fixture| {
            fixture.pods_follow_but(fixture.sets.len().checked_sub(1));
        });
    }

    /// The same, but the pods of the first ReplicaSet are not ready.
    pub fn settle_without_first_pods(&mut self, now: Timestamp) {
        self.run(now, |fixture| fixture.pods_follow_but(Some(0)));
    }

    /// Settles, and says what was written.
    pub fn rest(&mut self, now: Timestamp) -> Vec<String> {
        self.run(now, Fixture::pods_follow)
    }

    fn run(&mut self, now: Timestamp, pods: fn(&mut Fixture)) -> Vec<String> {
        let mut written = Vec::new();
        for _ in 0..60 {
            let asked = self.answers.clone();
            let writes = self.reconcile(now);
            let before = self.sets.clone();
            pods(self);
            if writes.is_empty() && before == self.sets && asked == self.answers {
                return written;
            }
            written.extend(writes);
        }
        panic!("it does not come to rest: {}", self.status());
    }

    fn apply(&mut self, change: &Change, now: Timestamp) -> String {
        self.version += 1;
        if let Some(done) = self.runs.apply(change, self.version, now) {
            return done;
        }
        if crate::traffic::routes(&change.target.kind) {
            return self.apply_route(change);
        }
        match &change.op {
            Op::Create(body) => {
                let mut set = (**body).clone();
                set["metadata"]["generation"] = json!(1);
                set["metadata"]["creationTimestamp"] = json!(now);
                set["metadata"]["uid"] = json!(format!("set-{}", self.sets.len()));
                set["metadata"]["resourceVersion"] = json!(self.version.to_string());
                self.sets.push(set);
                format!("create {} size {}", self.sets.len(), body["spec"]["replicas"])
            }
            Op::Merge(patch) if *change.target.kind.name == *"Rollout" => {
                merge(&mut self.rollout, patch);
                if patch["spec"].is_object() {
                    bump(&mut self.rollout);
                }
                self.touch_rollout();
                noted(patch)
            }
            Op::Merge(patch) if *change.target.kind.name == *"Deployment" => {
                self.patch_deployment(patch["spec"].clone());
                format!("deployment to {}", patch["spec"]["replicas"])
            }
            Op::Merge(patch) if *change.target.kind.name == *"Service" => {
                let named =
                    |service: &&mut Value| service["metadata"]["name"] == *change.target.name;
                let service = self.services.iter_mut().find(named).unwrap();
                merge(service, patch);
                service["metadata"]["resourceVersion"] = json!(self.version.to_string());
                format!("switch {} to {}", change.target.name, self.selects(&change.target.name))
            }
            Op::Merge(patch) if *change.target.kind.name == *"Pod" => {
                self.patch_pod(&change.target.name, patch)
            }
            Op::Evict => self.evict(&change.target.name, &change.id),
            Op::Merge(patch) => self.patch_set(&change.target.name, patch),
            Op::Delete => {
                let named = |set: &Value| set["metadata"]["name"] == *change.target.name;
                let at = self.sets.iter().position(named).unwrap();
                self.sets.remove(at);
                format!("delete {}", at + 1)
            }
        }
    }

    fn patch_set(&mut self, name: &str, patch: &Value) -> String {
        let at = self.sets.iter().position(|set| set["metadata"]["name"] == name).unwrap();
        let set = &mut self.sets[at];
        merge(set, patch);
        set["metadata"]["resourceVersion"] = json!(self.version.to_string());
        if patch["spec"].is_object() {
            bump(set);
        }
        match (&patch["spec"]["replicas"], &patch["spec"]["template"]) {
            (Value::Null, Value::Null) => format!("annotate {}", at + 1),
            (Value::Null, template) => format!("mark {} {}", at + 1, marks(template)),
            (size, _) => format!("resize {} to {size}", at + 1),
        }
    }

    /// One pod of a ReplicaSet is not available any more.
    pub fn lose_pod(&mut self, at: usize) {
        let available = self.sets[at]["status"]["availableReplicas"].as_i64().unwrap();
        self.sets[at]["status"]["availableReplicas"] = json!(available - 1);
    }

    /// A user sets another image.
    pub fn set_image(&mut self, tag: &str) {
        let image = format!("web:{tag}");
        self.rollout["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
        bump(&mut self.rollout);
        self.touch_rollout();
    }

    /// A user edits the spec.
    pub fn patch_spec(&mut self, patch: Value) {
        merge(&mut self.rollout["spec"], &patch);
        bump(&mut self.rollout);
        self.touch_rollout();
    }

    /// A user's command arrives in the status.
    pub fn patch_status(&mut self, patch: Value) {
        merge(&mut self.rollout["status"], &patch);
        self.touch_rollout();
    }

    /// Nothing that was decided so far has been stored in the status.
    pub fn lose_status(&mut self) {
        self.rollout["status"] = json!({});
        self.touch_rollout();
    }

    /// A user promotes.
    pub fn promote(&mut self) {
        self.patch_status(json!({ "pauseConditions": null }));
    }

    /// The server refuses the next create, with these words, until that time.
    pub fn refuse(&mut self, words: &str, retry_at: Timestamp) {
        let target = super::super::replica_sets::create_target(&self.world().rollout);
        let failure =
            Failure { class: Class::Denied, message: words.to_owned(), times: 1, retry_at };
        self.recall.failed.insert(ChangeId::of("create", &target), failure);
    }

    /// The server refuses this write of a routing object, with these words, until that time.
    pub fn refuse_route(&mut self, verb: &str, object: &ObjectRef, retry_at: Timestamp) {
        let message = "no".to_owned();
        let failure = Failure { class: Class::Denied, message, times: 1, retry_at };
        self.recall.failed.insert(ChangeId::of(verb, object), failure);
    }

    /// What holds the rollout.
    pub fn whys(&self) -> Vec<Why> {
        decide(&self.world(), self.now).why
    }

    /// The same in words.
    pub fn why(&self) -> String {
        self.whys().iter().map(crate::explain::sentence).collect::<Vec<_>>().join("; ")
    }

    /// The status as stored.
    pub fn status(&self) -> Value {
        self.rollout["status"].clone()
    }

    /// A condition of the status.
    pub fn condition(&self, r#type: &str) -> Value {
        let status = self.status();
        let conditions = status["conditions"].as_array().unwrap();
        conditions.iter().find(|known| known["type"] == r#type).unwrap().clone()
    }

    /// The affinity of a ReplicaSet's pods.
    pub fn affinity(&self, at: usize) -> Value {
        self.sets[at]["spec"]["template"]["spec"]["affinity"].clone()
    }

    /// Sizes of the ReplicaSets, oldest first.
    pub fn sizes(&self) -> Vec<i64> {
        self.sets.iter().map(|set| set["spec"]["replicas"].as_i64().unwrap()).collect()
    }

    /// Reasons of all Events so far.
    pub fn events(&self) -> &[String] {
        &self.events
    }

    /// Reasons of the Events since the last call.
    pub fn take_events(&mut self) -> Vec<String> {
        std::mem::take(&mut self.events)
    }

    /// Messages of the Events since the last call.
    pub fn take_messages(&mut self) -> Vec<String> {
        self.take_told().into_iter().map(|event| event.message).collect()
    }

    /// The Events since the last call, or since their messages were taken.
    pub fn take_told(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.told)
    }

    fn touch_rollout(&mut self) {
        self.version += 1;
        self.rollout["metadata"]["resourceVersion"] = json!(self.version.to_string());
    }
}

/// What a patch of the Rollout notes.
fn noted(patch: &Value) -> String {
    let notes = &patch["metadata"]["annotations"];
    match notes["rollout.argoproj.io/revision"].as_str() {
        Some(revision) => format!("revision {revision}"),
        None => format!("annotate {notes}"),
    }
}

fn bump(object: &mut Value) {
    let generation = object["metadata"]["generation"].as_i64().unwrap();
    object["metadata"]["generation"] = json!(generation + 1);
}

fn merge(into: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    for (key, value) in patch {
        if value.is_null() {
            into.as_object_mut().unwrap().remove(key);
        } else {
            merge(&mut into[key], value);
        }
    }
}
