//! What can only the outside tell, how is it asked, and what is remembered between two passes?

pub mod http;
mod plugin;
pub mod secret;

use std::collections::BTreeMap;
use std::sync::Arc;

use gradus_api::rollout::status::AlbStatus;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::http::{HttpOutcome, HttpRequest};
use crate::decision::{ChangeId, Kind, ObjectRef};
use crate::uid::Uid;
use crate::world::PodView;
pub use plugin::{
    MetricCall, MetricOperation, MetricReply, PLUGIN_READY, PluginCall, PluginReply, PluginSaid,
    RouterCall, RouterGoal, RouterOperation, RouterReply, RouterRoutes,
};

/// A question a decision wants answered. Listed in every pass that wants or uses the answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    /// The same for the same question.
    pub id: AskId,
    /// What is asked.
    pub question: Question,
    /// Does asking change anything outside?
    pub effect: Effect,
    /// An answer to a question asked before this moment does not count.
    pub after: Option<Timestamp>,
}

impl Ask {
    /// Reads one object by name, past the index.
    pub fn read(target: ObjectRef) -> Self {
        Ask {
            id: AskId(format!("read {target}").into()),
            question: Question::Read(target),
            effect: Effect::Reads,
            after: None,
        }
    }

    /// Draws so many random bytes, once for as long as they are asked for.
    pub fn random(purpose: &str, count: usize) -> Self {
        Ask {
            id: AskId(format!("random {purpose}").into()),
            question: Question::Random(count),
            effect: Effect::Reads,
            after: None,
        }
    }

    /// Asks a load balancer how it splits the traffic.
    pub fn weights(weights: WeightsOf) -> Self {
        let names: Vec<&str> = weights.ingresses.iter().map(|ingress| &*ingress.name).collect();
        let also = weights.additional.iter().map(|(name, weight)| format!(" {name} {weight}"));
        let also: String = also.collect();
        let WeightsOf { canary, stable, weight, .. } = &weights;
        Ask {
            id: AskId(format!("{canary} {weight} of {stable} on {}{also}", names.join(" ")).into()),
            question: Question::Weights(weights),
            effect: Effect::Reads,
            after: None,
        }
    }

    /// Asks whether the pods of a revision are registered behind a Service.
    pub fn targets(targets: TargetsOf, hash: &str) -> Self {
        Ask {
            id: AskId(format!("targets of {} at {hash}", targets.service).into()),
            question: Question::Targets(targets),
            effect: Effect::Reads,
            after: None,
        }
    }

    /// Lists the pods of a ReplicaSet. `state` names what another list may answer otherwise.
    pub fn pods(pods: PodsOf, state: &str) -> Self {
        Ask {
            id: AskId(format!("pods of {} {} {state}", pods.set, pods.uid).into()),
            question: Question::Pods(pods),
            effect: Effect::Reads,
            after: None,
        }
    }
}

/// Names an ask within its key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AskId(pub Arc<str>);

/// What is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Question {
    /// One object, live and whole; of a Secret its keys alone.
    Read(ObjectRef),
    /// The pods of one ReplicaSet, live.
    Pods(PodsOf),
    /// One call of a step plugin.
    Plugin(PluginCall),
    /// One call of a metric plugin.
    MetricPlugin(Box<MetricCall>),
    /// Calls of a traffic plugin.
    RouterPlugin(Box<RouterCall>),
    /// Whether load balancers split the traffic as they were told.
    Weights(WeightsOf),
    /// Whether the pods of a Service are registered in the target groups that are bound to it. The
    /// reply is that about weights, without load balancers.
    Targets(TargetsOf),
    /// All objects of a kind with certain labels in a namespace, live.
    List(ListOf),
    /// Who answers requests to a URL.
    Probe(ProbeOf),
    /// So many random bytes.
    Random(usize),
    /// One HTTP request to a metric provider.
    Http(Box<HttpRequest>),
}

impl Question {
    /// The plugin that is asked.
    pub fn plugin(&self) -> Option<&str> {
        Some(match self {
            Question::Plugin(call) => &call.name,
            Question::MetricPlugin(call) => &call.name,
            Question::RouterPlugin(call) => &call.name,
            _ => return None,
        })
    }

    /// The traffic plugin that is told of a split. What it is told last counts, so an object tells it
    /// one thing after the other.
    pub fn tells(&self) -> Option<&str> {
        match self {
            Question::RouterPlugin(call) => {
                matches!(call.operation, RouterOperation::Split(_)).then_some(&*call.name)
            }
            _ => None,
        }
    }
}

/// Which objects are asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListOf {
    /// Of this kind.
    pub kind: Kind,
    /// In this namespace.
    pub namespace: Arc<str>,
    /// With labels that this selector matches; empty for all.
    pub labels: Arc<str>,
}

/// Whose pods are asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodsOf {
    /// The ReplicaSet.
    pub set: ObjectRef,
    /// Its identity: pods of another controller do not count.
    pub uid: Uid,
    /// The value of the hash label that all its pods carry.
    pub hash: Arc<str>,
}

/// How load balancers should split the traffic by now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeightsOf {
    /// The Ingresses whose load balancers are asked.
    pub ingresses: Vec<ObjectRef>,
    /// The Service of the new revision.
    pub canary: String,
    /// The Service of the stable revision.
    pub stable: String,
    /// The port of both.
    pub port: i32,
    /// The part of the new revision.
    pub weight: i32,
    /// Further Services, and their parts.
    pub additional: Vec<(String, i32)>,
}

/// Whose pods should be registered by now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetsOf {
    /// The Service.
    pub service: ObjectRef,
    /// The ReplicaSet of the pods; others that the Service still leads to do not count.
    pub set: Arc<str>,
}

/// Requests that show how the traffic is split.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeOf {
    /// Where they go.
    pub url: String,
    /// The header of an answer that names who gave it.
    pub header: String,
    /// How many there are.
    pub requests: u32,
}

/// Who answered them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeSaid {
    /// Answers by the value of the header.
    pub answers: BTreeMap<String, u32>,
    /// Requests without an answer, or with one that has no such header.
    pub lost: u32,
    /// Why, of the first of them.
    pub reason: String,
}

/// What load balancers say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WeightsSaid {
    /// How they split the traffic.
    pub split: Split,
    /// For people.
    pub message: String,
    /// The load balancers that were found.
    pub load_balancers: Vec<AlbStatus>,
}

/// How load balancers split the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Split {
    /// As they were told.
    AsTold,
    /// Otherwise, for now.
    Otherwise,
    /// There is no load balancer yet.
    Nowhere,
    /// Nobody can tell: a target group cannot be read.
    Unreadable,
}

/// Does asking change anything outside?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Effect {
    /// No: it may be asked at any time, also by `explain` and under `--dry-run`.
    Reads,
    /// Yes: it is started after the writes, behind the same door.
    Acts,
}

/// What came back. Failure is an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// When it was asked.
    pub asked_at: Timestamp,
    /// When the answer arrived.
    pub answered_at: Timestamp,
    /// The reply, or why there is none.
    pub reply: Result<Reply, Failure>,
}

/// A reply, by question.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// The object, or `None` where there is none of that name.
    Object(Option<Arc<Value>>),
    /// The pods, by name.
    Pods(Arc<[PodView]>),
    /// What came of a call of a step plugin.
    Plugin(PluginReply),
    /// What came of a call of a metric plugin.
    MetricPlugin(MetricReply),
    /// What came of calls of a traffic plugin.
    RouterPlugin(RouterReply),
    /// What load balancers say.
    Weights(WeightsSaid),
    /// Who answered requests to a URL.
    Probe(ProbeSaid),
    /// All objects that were asked for.
    Objects(Vec<Arc<Value>>),
    /// Random bytes. Left out of every printed or saved World, where none are left.
    Random(#[serde(with = "hidden")] Arc<[u8]>),
    /// What came of an HTTP request. That it failed is an answer too, and is not asked again by
    /// itself.
    Http(HttpOutcome),
}

/// What is neither printed nor saved.
mod hidden {
    use std::sync::Arc;

    use serde::{Deserializer, Serializer, de::IgnoredAny};

    pub fn serialize<S: Serializer>(_: &Arc<[u8]>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_unit()
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<[u8]>, D::Error> {
        deserializer.deserialize_any(IgnoredAny).map(|_| Arc::default())
    }
}

impl std::fmt::Debug for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Reply::Object(object) => f.debug_tuple("Object").field(object).finish(),
            Reply::Pods(pods) => f.debug_tuple("Pods").field(pods).finish(),
            Reply::Plugin(reply) => f.debug_tuple("Plugin").field(reply).finish(),
            Reply::MetricPlugin(reply) => f.debug_tuple("MetricPlugin").field(reply).finish(),
            Reply::RouterPlugin(reply) => f.debug_tuple("RouterPlugin").field(reply).finish(),
            Reply::Weights(said) => f.debug_tuple("Weights").field(said).finish(),
            Reply::Probe(said) => f.debug_tuple("Probe").field(said).finish(),
            Reply::Objects(objects) => f.debug_tuple("Objects").field(objects).finish(),
            Reply::Http(outcome) => f.debug_tuple("Http").field(outcome).finish(),
            Reply::Random(bytes) => write!(f, "Random({} bytes, not shown)", bytes.len()),
        }
    }
}

/// What the shell remembers of one key between two passes. Losing it costs time, never safety.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Recall<M> {
    /// Changes that failed and have neither succeeded nor been dropped since.
    pub failed: BTreeMap<ChangeId, Failure>,
    /// The engine's own.
    pub memo: M,
}

/// Most failed changes remembered per key; a pass plans far fewer.
pub const FAILED_LIMIT: usize = 16;

/// A write or a question that failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// What it means for the next pass.
    pub class: Class,
    /// The server's words.
    pub message: String,
    /// How often in a row.
    pub times: u32,
    /// Not before this moment again.
    pub retry_at: Timestamp,
}

/// Why a write failed, sorted by what the engine does about it next time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Class {
    /// Our picture was old. Decide again from the newer one.
    Stale,
    /// Something of that name is there already: read it, then reuse it or step aside.
    Exists,
    /// The object is gone. Decide again without it.
    Gone,
    /// Quota, admission, permission: tell the user in the server's words, try again later.
    Denied,
    /// The server asks us to wait.
    Throttled,
    /// It did not reach the server.
    Unreachable,
    /// No answer: it may have been done. Read before deciding again.
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_bytes_are_neither_printed_nor_saved() {
        let reply = Reply::Random(Arc::from(*b"secret"));
        assert_eq!(format!("{reply:?}"), "Random(6 bytes, not shown)");
        let saved = serde_json::to_string(&reply).unwrap();
        assert_eq!(saved, r#"{"Random":null}"#);
        let read: Reply = serde_json::from_str(&saved).unwrap();
        assert_eq!(read, Reply::Random(Arc::default()), "a saved World can be read");
    }
}
