//! The pods of a story: made from templates, listed when they are asked for, patched and evicted.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Story, merge};
use crate::ask::{
    Answer, Ask, Class, Effect, Failure, PluginReply, PodsOf, Question, Recall, Reply, WeightsSaid,
};
use crate::decision::ChangeId;
use crate::frame::Frame;
use crate::world::PodView;

impl Story {
    /// Every ReplicaSet has exactly the pods it should have, all available; those on their way out
    /// are gone.
    pub fn pods_follow(&mut self) {
        self.pods_follow_but(None);
    }

    /// The same, but the pods of one ReplicaSet are not ready.
    pub(super) fn pods_follow_but(&mut self, broken: Option<usize>) {
        self.pods.retain(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        for at in 0..self.sets.len() {
            let size = self.sets[at]["spec"]["replicas"].as_u64().unwrap() as usize;
            let mine = self.pods_of(at);
            if let Some(spare) = mine.len().checked_sub(size) {
                let gone: Vec<String> = mine.into_iter().take(spare).collect();
                self.pods.retain(|pod| !gone.iter().any(|name| pod["metadata"]["name"] == **name));
            }
            while self.pods_of(at).len() < size {
                self.make_pod(at);
            }
            self.ready(at, if Some(at) == broken { 0 } else { size });
        }
    }

    /// A pod that is made now.
    fn make_pod(&mut self, at: usize) {
        self.version += 1;
        let set = &self.sets[at];
        let name = format!("{}-{:04}", set["metadata"]["name"].as_str().unwrap(), self.version);
        let mut metadata = set["spec"]["template"]["metadata"].clone();
        let own = json!({
            "name": name, "uid": name, "resourceVersion": self.version.to_string(),
            "creationTimestamp": self.now,
            "ownerReferences": [{ "controller": true, "uid": set["metadata"]["uid"] }],
        });
        merge(&mut metadata, &own);
        let ready = json!({ "type": "Ready", "status": "True", "lastTransitionTime": self.now });
        self.pods.push(json!({ "metadata": metadata, "status": { "conditions": [ready] } }));
    }

    /// The ReplicaSet controller counts.
    fn count(&mut self, at: usize) {
        let mine = self.pods_of(at);
        let is_ready = |pod: &&Value| pod["status"]["conditions"][0]["status"] == "True";
        let named = |pod: &&Value| mine.iter().any(|name| pod["metadata"]["name"] == **name);
        let ready = self.pods.iter().filter(named).filter(is_ready).count();
        let set = &mut self.sets[at];
        let status = json!({
            "replicas": mine.len(), "readyReplicas": ready, "availableReplicas": ready,
            "observedGeneration": set["metadata"]["generation"],
        });
        if set["status"] != status {
            self.version += 1;
            set["status"] = status;
            set["metadata"]["resourceVersion"] = json!(self.version.to_string());
        }
    }

    /// Names of the pods of a ReplicaSet that stay.
    pub fn pods_of(&self, at: usize) -> Vec<String> {
        let uid = &self.sets[at]["metadata"]["uid"];
        let is_mine = |pod: &&Value| {
            pod["metadata"]["ownerReferences"][0]["uid"] == *uid
                && pod["metadata"]["deletionTimestamp"].is_null()
        };
        let mine = self.pods.iter().filter(is_mine);
        mine.map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }

    /// The value of a label or annotation of every pod of a ReplicaSet, and of its template.
    pub fn marked(&self, at: usize, field: &str, key: &str) -> Vec<String> {
        let names = self.pods_of(at);
        let mine =
            self.pods.iter().filter(|pod| names.iter().any(|n| pod["metadata"]["name"] == **n));
        let template = &self.sets[at]["spec"]["template"];
        let all = mine.chain([template]).map(|object| &object["metadata"][field][key]);
        all.map(|value| value.as_str().unwrap_or("-").to_owned()).collect()
    }

    /// The role label of every pod and of the template, ReplicaSet by ReplicaSet.
    pub fn roles(&self) -> String {
        let of = |at: usize| self.marked(at, "labels", "role").join(" ");
        (0..self.sets.len()).map(of).collect::<Vec<_>>().join("; ")
    }

    /// The controller starts anew: nothing is remembered.
    pub fn forget(&mut self) {
        self.answers.clear();
        self.recall = Recall::default();
    }

    /// Time passes.
    pub fn at(&mut self, now: jiff::Timestamp) {
        self.now = now;
    }

    /// Pods follow; true if that changed anything.
    pub fn follow(&mut self) -> bool {
        let before = self.sets.clone();
        self.pods_follow();
        before != self.sets
    }

    /// The annotation that records what was injected.
    pub fn record(&self, at: usize) -> Value {
        let annotations = &self.sets[at]["metadata"]["annotations"];
        annotations["rollout.argoproj.io/ephemeral-metadata"].clone()
    }

    /// Some pods of a ReplicaSet are not ready, or are again.
    pub fn ready(&mut self, at: usize, count: usize) {
        let names = self.pods_of(at);
        for (number, name) in names.iter().enumerate() {
            let named = |pod: &&mut Value| pod["metadata"]["name"] == **name;
            let pod = self.pods.iter_mut().find(named).unwrap();
            let status = if number < count { "True" } else { "False" };
            pod["status"]["conditions"][0]["status"] = json!(status);
        }
        self.count(at);
    }

    /// A disruption budget refuses evictions, or no longer does.
    pub fn refuse_evictions(&mut self, words: Option<&str>) {
        self.budget = words.map(str::to_owned);
    }

    /// Somebody changes the metadata of every pod of a ReplicaSet.
    pub fn patch_pods(&mut self, at: usize, metadata: Value) {
        for name in self.pods_of(at) {
            self.patch_pod(&name, &json!({ "metadata": metadata }));
        }
    }

    pub(super) fn patch_pod(&mut self, name: &str, patch: &Value) -> String {
        self.version += 1;
        let pod = self.pods.iter_mut().find(|pod| pod["metadata"]["name"] == name).unwrap();
        merge(pod, patch);
        pod["metadata"]["resourceVersion"] = json!(self.version.to_string());
        format!("mark pod {}", marks(patch))
    }

    pub(super) fn evict(&mut self, name: &str, id: &ChangeId) -> String {
        if let Some(words) = &self.budget {
            let retry_at = self.now + jiff::SignedDuration::from_secs(30);
            let (class, message) = (Class::Throttled, words.clone());
            let failure = Failure { class, message, times: 1, retry_at };
            self.recall.failed.insert(id.clone(), failure);
            return "evict refused".to_owned();
        }
        let now = self.now;
        let pod = self.pods.iter_mut().find(|pod| pod["metadata"]["name"] == name).unwrap();
        assert!(pod["metadata"]["deletionTimestamp"].is_null(), "{name} is evicted twice");
        pod["metadata"]["deletionTimestamp"] = json!(now);
        (0..self.sets.len()).for_each(|at| self.count(at));
        "evict".to_owned()
    }

    /// Answers at once what is asked of pods and plugins, and not known; false if all was.
    pub(super) fn answer_live(&mut self, asks: &[Ask]) -> bool {
        self.answers.retain(|id, _| asks.iter().any(|ask| ask.id == *id));
        let mut is_news = false;
        for ask in asks {
            let known = self.answers.get(&ask.id);
            if known.is_some_and(|known| ask.after.is_none_or(|after| after <= known.asked_at)) {
                continue;
            }
            let reply = match &ask.question {
                Question::Pods(pods) => Ok(Reply::Pods(self.list(pods))),
                Question::Weights(_) => match self.balancer.clone().flatten() {
                    Some(said) => said.map(Reply::Weights),
                    None => continue,
                },
                Question::Plugin(_) if self.replies.is_empty() => continue,
                Question::Plugin(call) => {
                    self.calls.push(format!("{} {}", call.operation, call.index));
                    Ok(Reply::Plugin(self.replies.remove(0)))
                }
                Question::Read(_) | Question::Rollouts(_) | Question::Random(_) => continue,
            };
            let answer = Answer { asked_at: self.now, answered_at: self.now, reply };
            self.answers.insert(ask.id.clone(), answer);
            self.lists += usize::from(ask.effect == Effect::Reads);
            is_news = true;
        }
        is_news
    }

    /// Load balancers are asked, and say this from now on; nothing while it is not known.
    pub fn balancers_say(&mut self, said: Option<Result<WeightsSaid, Failure>>) {
        self.balancer = Some(said);
        self.answers.retain(|_, answer| answer.reply.is_ok());
    }

    /// What step plugins will answer from now on, in this order; then nothing.
    pub fn plugin_answers(&mut self, replies: Vec<PluginReply>) {
        self.replies = replies;
    }

    /// What step plugins were told since the last call.
    pub fn take_calls(&mut self) -> Vec<String> {
        std::mem::take(&mut self.calls)
    }

    fn list(&self, of: &PodsOf) -> Arc<[PodView]> {
        let frames =
            self.pods.iter().map(|pod| serde_json::from_value::<Frame>(pod.clone()).unwrap());
        let mine = frames.filter(|frame| frame.meta.controller().is_some_and(|o| o.uid == of.uid));
        mine.map(|frame| PodView::read(&frame)).collect()
    }

    /// Lists of pods that were asked for since the last call.
    pub fn take_lists(&mut self) -> usize {
        std::mem::take(&mut self.lists)
    }
}

/// What a patch sets in metadata, as `key=value`, or `key-` for what it takes away.
pub(super) fn marks(patch: &Value) -> String {
    let of = |field: &str| patch["metadata"][field].as_object().cloned().unwrap_or_default();
    let all = of("labels").into_iter().chain(of("annotations"));
    let all = all.map(|(key, value)| match value.as_str() {
        Some(value) => format!("{key}={value}"),
        None => format!("{key}-"),
    });
    all.collect::<Vec<_>>().join(" ")
}
