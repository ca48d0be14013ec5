//! What is read past the index or drawn by chance, and what becomes of the reply?

use std::sync::Arc;

use gradus_api::names::label::POD_TEMPLATE_HASH;
use gradus_engine::ask::{Answer, Ask, AskId, Effect, Failure, PodsOf, Question, Reply};
use gradus_engine::decision::ObjectRef;
use gradus_engine::frame::Frame;
use gradus_engine::kinds;
use gradus_engine::world::PodView;
use jiff::{SignedDuration, Timestamp};

use super::notes::Shown;
use super::{Alarm, Draw, Shell};
use crate::cluster::{Cluster, Listing, WriteError};
use crate::plugins;
use crate::watched::{Key, Watched};

/// Something to be read past the index.
#[derive(Clone, Debug, PartialEq)]
pub struct Read {
    /// For whom.
    pub key: Key,
    /// What.
    pub target: Target,
    /// Why.
    pub purpose: Purpose,
    asked_at: Timestamp,
    /// Changes of the key that were tried when it was asked.
    number: u64,
}

/// What is read.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// One object.
    Object(ObjectRef),
    /// The pods of a ReplicaSet.
    Pods(Box<PodsOf>),
    /// All Rollouts of a namespace.
    Rollouts(Arc<str>),
}

/// Why it is read.
#[derive(Clone, Debug, PartialEq)]
pub enum Purpose {
    /// To see a write of ours, or whether it was done.
    Settle,
    /// To answer an ask.
    Answer(AskId),
}

impl Read {
    /// Reads it; an object that is not there is none.
    pub async fn carry_out<C: Cluster>(&self, cluster: &C) -> Result<Vec<Frame>, WriteError> {
        match &self.target {
            Target::Object(object) => Ok(cluster.read(object).await?.into_iter().collect()),
            Target::Rollouts(namespace) => {
                let listing = Listing {
                    kind: kinds::ROLLOUT,
                    namespace: Arc::clone(namespace),
                    labels: String::new(),
                };
                cluster.list(&listing).await
            }
            Target::Pods(pods) => {
                let listing = Listing {
                    kind: kinds::POD,
                    namespace: Arc::clone(&pods.set.namespace),
                    labels: format!("{POD_TEMPLATE_HASH}={}", pods.hash),
                };
                cluster.list(&listing).await
            }
        }
    }
}

impl Target {
    /// The reply to the question for it.
    fn reply(&self, found: &[Frame]) -> Reply {
        match self {
            Target::Object(_) => Reply::Object(found.first().map(Frame::object).map(Arc::new)),
            Target::Rollouts(_) => {
                Reply::Objects(found.iter().map(Frame::object).map(Arc::new).collect())
            }
            Target::Pods(pods) => {
                let is_theirs =
                    |pod: &&Frame| pod.meta.controller().is_some_and(|owner| owner.uid == pods.uid);
                Reply::Pods(found.iter().filter(is_theirs).map(PodView::read).collect())
            }
        }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Target::Object(object) => object.fmt(f),
            Target::Pods(pods) => write!(f, "pods of {}", pods.set),
            Target::Rollouts(namespace) => write!(f, "Rollouts of {namespace}"),
        }
    }
}

impl<W: Watched> Shell<W> {
    /// Starts what is asked and not known; drops answers nobody wants any more.
    pub(super) fn start_asks(&mut self, key: &Key, asks: &[Ask], now: Timestamp) {
        let state = self.keys.entry(key.clone()).or_default();
        state.answers.retain(|id, _| asks.iter().any(|ask| ask.id == *id));
        state.asking.retain(|id| asks.iter().any(|ask| ask.id == *id));
        let mut started = Vec::new();
        for ask in asks.iter().filter(|ask| ask.effect == Effect::Reads) {
            let known = state.answers.get(&ask.id);
            let is_fresh = known.is_some_and(|answer| {
                ask.after.is_none_or(|after| after <= answer.asked_at)
                    && answer.reply.as_ref().err().is_none_or(|failed| now < failed.retry_at)
            });
            if is_fresh || state.asking.contains(&ask.id) {
                continue;
            }
            let target = match &ask.question {
                Question::Read(target) => Target::Object(target.clone()),
                Question::Pods(pods) => Target::Pods(Box::new(pods.clone())),
                Question::Rollouts(namespace) => Target::Rollouts(Arc::clone(namespace)),
                Question::Random(count) => {
                    state.asking.insert(ask.id.clone());
                    self.draws.push_back(Draw {
                        key: key.clone(),
                        count: *count,
                        id: ask.id.clone(),
                        asked_at: now,
                    });
                    continue;
                }
                // Plugins are called below; load balancers are never asked about, and no HTTP request
                // is sent yet: what waits for one goes on waiting.
                Question::Plugin(_) | Question::Weights(_) | Question::Http(_) => continue,
            };
            state.asking.insert(ask.id.clone());
            started.push((target, Purpose::Answer(ask.id.clone())));
        }
        for (target, purpose) in started {
            let read = self.read(key, target, purpose, now);
            self.reads.push_back(read);
        }
        self.make_calls(key, asks, now);
    }

    /// Calls that act outside. Today every plugin answers at once that it is not there.
    fn make_calls(&mut self, key: &Key, asks: &[Ask], now: Timestamp) {
        let state = self.keys.entry(key.clone()).or_default();
        for ask in asks {
            let Question::Plugin(call) = &ask.question else { continue };
            let known = state.answers.get(&ask.id).map(|answer| answer.asked_at);
            if known.is_some_and(|known| ask.after.is_none_or(|after| after <= known)) {
                continue;
            }
            let reply = Ok(Reply::Plugin(plugins::call(call)));
            let answer = Answer { asked_at: now, answered_at: now, reply };
            state.answers.insert(ask.id.clone(), answer);
            self.queue.add(key.clone(), now);
        }
    }

    /// Reads an object that a source shows before its key is decided.
    pub(super) fn settling(&mut self, key: &Key, shown: Shown<W::Source>, now: Timestamp) -> Read {
        let target = Target::Object(shown.1.clone());
        self.keys.entry(key.clone()).or_default().settling = Some(shown);
        self.read(key, target, Purpose::Settle, now)
    }

    pub(super) fn read(&self, key: &Key, target: Target, purpose: Purpose, now: Timestamp) -> Read {
        let number = self.keys.get(key).map_or(0, |state| state.tried);
        Read { key: key.clone(), target, purpose, asked_at: now, number }
    }

    /// Takes in the reply to a read.
    pub fn learn_read(
        &mut self,
        read: Read,
        reply: Result<Vec<Frame>, WriteError>,
        now: Timestamp,
    ) {
        match &read.purpose {
            Purpose::Settle => self.settle(&read, reply, now),
            Purpose::Answer(id) => {
                let id = id.clone();
                self.reads_under_way = self.reads_under_way.saturating_sub(1);
                self.answer(&read, id, reply, now);
            }
        }
    }

    /// Takes in random bytes. Unlike what was read, they do not grow old.
    pub fn learn_draw(&mut self, draw: Draw, drawn: Result<Vec<u8>, WriteError>, now: Timestamp) {
        let Draw { key, id, asked_at, .. } = draw;
        let reply = drawn.map(|bytes| Reply::Random(bytes.into()));
        self.take_answer(&key, id, asked_at, reply, now);
    }

    fn settle(&mut self, read: &Read, reply: Result<Vec<Frame>, WriteError>, now: Timestamp) {
        let key = &read.key;
        let settling = self.keys.get_mut(key).and_then(|state| state.settling.take());
        match reply {
            Ok(found) => {
                if let Some(shown) = settling {
                    match found.first() {
                        Some(frame) => self.take_in(&shown.0, frame, now),
                        None => self.forget(&shown, now),
                    }
                    self.notes.settle(key, &shown);
                }
                if let Some(state) = self.keys.get_mut(key) {
                    state.read_refused = 0;
                }
                self.queue.finish(key);
                self.queue.add(key.clone(), now);
            }
            Err(error) => {
                let state = self.keys.entry(key.clone()).or_default();
                state.read_refused = state.read_refused.saturating_add(1);
                let due = self.queue.failed(key.clone(), now);
                if let Some(asked) = error.asked_until(now) {
                    self.queue.hold(key.clone(), asked.max(due));
                }
                self.alarms.push(Alarm::Refused {
                    key: key.clone(),
                    change: format!("read {}", read.target),
                    class: error.class,
                    message: error.message,
                    times: state.read_refused,
                });
                self.queue.finish(key);
            }
        }
    }

    fn answer(
        &mut self,
        read: &Read,
        id: AskId,
        reply: Result<Vec<Frame>, WriteError>,
        now: Timestamp,
    ) {
        let Some(state) = self.keys.get_mut(&read.key) else { return };
        // An answer older than our own last change says nothing of the world after it.
        if state.tried != read.number {
            state.asking.remove(&id);
            state.settled = None; // It is to be asked again, also by a key that came to rest.
            self.queue.add(read.key.clone(), now);
            return;
        }
        let reply = reply.map(|found| read.target.reply(&found));
        self.take_answer(&read.key, id, read.asked_at, reply, now);
    }

    /// Keeps an answer that is still wanted, and wakes its key.
    fn take_answer(
        &mut self,
        key: &Key,
        id: AskId,
        asked_at: Timestamp,
        reply: Result<Reply, WriteError>,
        now: Timestamp,
    ) {
        let Some(state) = self.keys.get_mut(key) else { return };
        if !state.asking.remove(&id) {
            state.settled = None; // It may have come to rest on this answer: it must ask again.
            self.queue.add(key.clone(), now);
            return;
        }
        let times = match state.answers.get(&id).map(|answer| &answer.reply) {
            Some(Err(failed)) => failed.times + 1,
            _ => 1,
        };
        let back_off = now + SignedDuration::from_millis(1 << times.min(13));
        let reply = reply.map_err(|error| Failure {
            retry_at: error.asked_until(now).map_or(back_off, |asked| asked.max(back_off)),
            class: error.class,
            message: error.message,
            times,
        });
        state.settled = None;
        state.answers.insert(id, Answer { asked_at, answered_at: now, reply });
        self.queue.add(key.clone(), now);
    }
}
