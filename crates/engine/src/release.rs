//! Which marks of ours are left on an object that no Rollout names any more? One patch takes them off.
//!
//! Only the server's own word counts: the Rollout that a mark names is not there, or no longer names
//! the object. What is not answered, or cannot be read, changes nothing.

mod route;
mod service;

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ask::{Answer, Ask, AskId, Effect, ListOf, Question, Recall, Reply};
use crate::decision::{Change, Decision, Frees, Guard, Kind, ObjectRef, Why};
use crate::frame::Frame;
use crate::traffic::Undo;
use crate::uid::Uid;
use crate::{Engine, Head, StatusPlace, kinds};
pub use route::{ManagedIngress, ManagedRoute};

/// The engine of objects of one kind that carry our marks.
pub struct Releases<M>(PhantomData<M>);

/// What our marks on a kind of objects are, and how they come off.
pub trait Mark: Clone + Serialize + DeserializeOwned + 'static {
    /// The kind.
    const KIND: Kind;
    /// Where the marks are, for people.
    const FIELD: &'static str;
    /// Is the kind one that every cluster has? Objects of others are looked at once a Rollout names
    /// one.
    const IS_ALWAYS_THERE: bool;

    /// An object of the kind.
    fn read(frame: &Frame) -> Self;

    /// Its name.
    fn name(&self) -> &Arc<str>;

    /// Its identity.
    fn uid(&self) -> Uid;

    /// Its `resourceVersion`.
    fn version(&self) -> u64;

    /// Is there anything of ours on it?
    fn is_marked(&self) -> bool;

    /// The Rollouts that its marks name; none where a mark names nobody.
    fn managers(&self) -> Vec<Arc<str>>;

    /// How the marks of these Rollouts go, or those that name nobody.
    fn unmarked(&self, released: &[Arc<str>]) -> Undo;

    /// The objects of this kind that a Rollout uses, by its name and the JSON of its spec.
    fn named_in(rollout: &str, spec: &Value) -> Vec<String>;

    /// Does a Rollout with this spec select objects of the kind by their labels? Then it uses each of which
    /// a mark names it.
    fn is_selected_by(_spec: &Value) -> bool {
        false
    }

    /// May a Rollout with this spec have made such objects by a plugin? Then they are none of ours.
    fn is_kept_for(_spec: &Value) -> bool {
        false
    }
}

/// Everything one decision about a marked object may look at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Marked<M> {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// The object.
    pub object: Arc<M>,
    /// The Rollouts we know of that name it.
    pub users: Vec<Arc<str>>,
    /// Versions of the Rollouts that its marks name; 0 where we know of none.
    pub managers: BTreeMap<Arc<str>, u64>,
    /// What the outside has answered so far.
    pub answers: BTreeMap<AskId, Answer>,
    /// What the shell remembers of this object.
    pub recall: Recall<()>,
}

impl<M: Mark> Engine for Releases<M> {
    type World = Marked<M>;
    type Status = ();
    type Memo = ();

    const KIND: Kind = M::KIND;
    // Never written.
    const STATUS: StatusPlace = StatusPlace::Subresource;

    fn head(world: &Marked<M>) -> Head {
        let object = &world.object;
        Head { object: world.reference(), uid: object.uid(), version: object.version() }
    }

    fn decide(world: &Marked<M>, now: Timestamp) -> Decision<()> {
        decide(world, now)
    }

    fn stored_status(_: &Marked<M>) -> &() {
        &()
    }
}

impl<M: Mark> Marked<M> {
    fn reference(&self) -> ObjectRef {
        ObjectRef::new(M::KIND, &self.namespace, self.object.name())
    }

    fn why(&self, guard: Guard, frees: Frees) -> Why {
        let field = M::FIELD.into();
        Why { guard, object: self.reference(), field, since: None, frees }
    }
}

fn decide<M: Mark>(world: &Marked<M>, now: Timestamp) -> Decision<()> {
    let mut decision = Decision::default();
    let mut released = Vec::new();
    let questions = questions(world);
    let mut is_free = false;
    for (manager, ask) in questions {
        match heard(world, &ask) {
            Heard::Waits(why) => decision.why.push(*why),
            Heard::Named => {}
            Heard::Free => {
                is_free = true;
                released.extend(manager);
            }
        }
        decision.asks.push(ask);
    }
    if !is_free {
        return decision;
    }
    let change = unmark(world, &released);
    match world.recall.failed.get(&change.id).filter(|failed| now < failed.retry_at) {
        Some(failed) => {
            let guard = Guard::Refused { message: failed.message.clone(), times: failed.times };
            decision.why.push(world.why(guard, Frees::At(failed.retry_at)));
        }
        None => decision.changes.push(change),
    }
    decision
}

/// What must be asked before marks may go, and about whose; nothing while a Rollout we know of uses
/// the object.
fn questions<M: Mark>(world: &Marked<M>) -> Vec<(Option<Arc<str>>, Ask)> {
    let namespace = &world.namespace;
    let managers = world.object.managers();
    if managers.is_empty() {
        let ask = Ask {
            id: AskId(format!("rollouts of {namespace} for {}", world.object.version()).into()),
            question: Question::List(ListOf {
                kind: kinds::ROLLOUT,
                namespace: Arc::clone(namespace),
                labels: "".into(),
            }),
            effect: Effect::Reads,
            after: None,
        };
        return world.users.is_empty().then_some((None, ask)).into_iter().collect();
    }
    let strangers = managers.into_iter().filter(|manager| !world.users.contains(manager));
    let about = |manager: Arc<str>| {
        let target = ObjectRef::new(kinds::ROLLOUT, namespace, &manager);
        // What we know of that Rollout has changed: it is asked anew.
        let version = world.managers.get(&manager).copied().unwrap_or(0);
        let id = AskId(format!("read {target} after {version}").into());
        (Some(manager), Ask { id, ..Ask::read(target) })
    };
    strangers.map(about).collect()
}

/// What an answer says about a mark.
enum Heard {
    /// Nothing yet.
    Waits(Box<Why>),
    /// The object is still named.
    Named,
    /// Nobody names it.
    Free,
}

fn heard<M: Mark>(world: &Marked<M>, ask: &Ask) -> Heard {
    match world.answers.get(&ask.id).map(|answer| &answer.reply) {
        None => {
            let question = format!("does a Rollout name {}", world.reference());
            Heard::Waits(Box::new(world.why(Guard::Unanswered { question }, Frees::Cluster)))
        }
        Some(Err(failed)) => {
            let guard = Guard::Unreadable { message: failed.message.clone() };
            Heard::Waits(Box::new(world.why(guard, Frees::At(failed.retry_at))))
        }
        Some(Ok(reply)) if is_named_in::<M>(reply, world.object.name()) => Heard::Named,
        Some(Ok(_)) => Heard::Free,
    }
}

/// Does one of the Rollouts in a reply name this object?
fn is_named_in<M: Mark>(reply: &Reply, object: &str) -> bool {
    let names = |rollout: &Arc<Value>| {
        let name = rollout["metadata"]["name"].as_str().unwrap_or_default();
        let spec = &rollout["spec"];
        let is_kept = M::is_kept_for(spec) || M::is_selected_by(spec);
        is_kept || M::named_in(name, spec).iter().any(|named| named == object)
    };
    match reply {
        Reply::Object(found) => found.as_ref().is_some_and(names),
        Reply::Objects(found) => found.iter().any(names),
        // Not an answer to this question: nothing is taken off.
        _ => true,
    }
}

fn unmark<M: Mark>(world: &Marked<M>, released: &[Arc<str>]) -> Change {
    let object = &world.object;
    match object.unmarked(released) {
        Undo::Patch(patch) => Change::patch(world.reference(), patch, object.version()),
        Undo::Delete => Change::delete(world.reference(), object.uid()),
    }
}

#[cfg(test)]
mod tests;
