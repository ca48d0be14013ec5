//! Which marks of ours are left on a Service that no Rollout names any more? One patch takes them
//! off: the Service selects pods of every revision again.
//!
//! Only the server's own word counts: the Rollout that the mark names is not there, or no longer
//! names the Service. What is not answered, or cannot be read, changes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use gradus_api::names::{annotation, label};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::ask::{Answer, Ask, AskId, Effect, Question, Recall, Reply};
use crate::decision::{Change, Decision, Frees, Guard, Kind, ObjectRef, Why};
use crate::rollout::services;
use crate::world::ServiceView;
use crate::{Engine, Head, StatusPlace, kinds};

/// The engine of Services that carry our marks.
pub struct Releases;

/// Everything one decision about a marked Service may look at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Marked {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// The Service.
    pub service: Arc<ServiceView>,
    /// The Rollouts we know of that name it.
    pub users: Vec<Arc<str>>,
    /// Version of the Rollout that manages it by its mark; 0 where we know of none.
    pub manager: u64,
    /// What the outside has answered so far.
    pub answers: BTreeMap<AskId, Answer>,
    /// What the shell remembers of this Service.
    pub recall: Recall<()>,
}

impl Engine for Releases {
    type World = Marked;
    type Status = ();
    type Memo = ();

    const KIND: Kind = kinds::SERVICE;
    // Never written.
    const STATUS: StatusPlace = StatusPlace::Subresource;

    fn head(world: &Marked) -> Head {
        let service = &world.service;
        Head { object: world.object(), uid: service.uid, version: service.version }
    }

    fn decide(world: &Marked, now: Timestamp) -> Decision<()> {
        decide(world, now)
    }

    fn stored_status(_: &Marked) -> &() {
        &()
    }

    fn fingerprint(world: &Marked) -> u64 {
        let answered =
            world.answers.values().map(|answer| answer.answered_at.as_nanosecond() as u64);
        let failed = world.recall.failed.values().map(|failure| u64::from(failure.times));
        let numbers = [world.service.version, world.users.len() as u64, world.manager];
        crate::fingerprint(numbers.into_iter().chain(answered).chain(failed))
    }
}

impl Marked {
    fn object(&self) -> ObjectRef {
        ObjectRef::new(kinds::SERVICE, &self.namespace, &self.service.name)
    }
}

/// Is there anything of ours on a Service?
pub fn is_marked(service: &ServiceView) -> bool {
    service.hash.is_some() || service.managed_by.is_some()
}

fn decide(world: &Marked, now: Timestamp) -> Decision<()> {
    let Some(ask) = question(world) else { return Decision::default() };
    let waits = |guard: Guard, frees: Frees| Why {
        guard,
        object: world.object(),
        field: "spec.selector".into(),
        since: None,
        frees,
    };
    let answer = world.answers.get(&ask.id).map(|answer| &answer.reply);
    let (changes, why) = match answer {
        None => {
            let question = format!("does a Rollout name {}", world.object());
            (None, Some(waits(Guard::Unanswered { question }, Frees::Cluster)))
        }
        Some(Err(failed)) => {
            let guard = Guard::Unreadable { message: failed.message.clone() };
            (None, Some(waits(guard, Frees::At(failed.retry_at))))
        }
        Some(Ok(reply)) if is_named_in(reply, &world.service.name) => (None, None),
        Some(Ok(_)) => {
            let change = unmark(world);
            match world.recall.failed.get(&change.id).filter(|failed| now < failed.retry_at) {
                Some(failed) => {
                    let message = failed.message.clone();
                    let guard = Guard::Refused { message, times: failed.times };
                    (None, Some(waits(guard, Frees::At(failed.retry_at))))
                }
                None => (Some(change), None),
            }
        }
    };
    Decision {
        changes: changes.into_iter().collect(),
        asks: vec![ask],
        why: why.into_iter().collect(),
        ..Decision::default()
    }
}

/// What must be asked before the marks may go; nothing while a Rollout we know of uses the Service.
fn question(world: &Marked) -> Option<Ask> {
    let (namespace, service) = (&world.namespace, &world.service);
    match &service.managed_by {
        Some(manager) if world.users.contains(manager) => None,
        Some(manager) => {
            let target = ObjectRef::new(kinds::ROLLOUT, namespace, manager);
            // What we know of that Rollout has changed: it is asked anew.
            let id = AskId(format!("read {target} after {}", world.manager).into());
            Some(Ask { id, ..Ask::read(target) })
        }
        None if !world.users.is_empty() => None,
        None => Some(Ask {
            id: AskId(format!("rollouts of {namespace} for {}", service.version).into()),
            question: Question::Rollouts(Arc::clone(namespace)),
            effect: Effect::Reads,
            after: None,
        }),
    }
}

/// Does one of the Rollouts in a reply name this Service?
fn is_named_in(reply: &Reply, service: &str) -> bool {
    let names = |rollout: &Arc<Value>| services::names_in(&rollout["spec"]).contains(&service);
    match reply {
        Reply::Object(found) => found.as_ref().is_some_and(names),
        Reply::Objects(found) => found.iter().any(names),
        // Not an answer to this question: nothing is taken off.
        _ => true,
    }
}

fn unmark(world: &Marked) -> Change {
    let service = &world.service;
    let mut body = json!({});
    if service.hash.is_some() {
        body["spec"] = json!({ "selector": { label::POD_TEMPLATE_HASH: null } });
    }
    if service.managed_by.is_some() {
        body["metadata"] = json!({ "annotations": { annotation::MANAGED_BY: null } });
    }
    Change::patch(world.object(), body, service.version)
}

#[cfg(test)]
mod tests;
