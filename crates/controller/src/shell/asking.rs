//! What is read past the index or drawn by chance, and what becomes of the reply?

use std::sync::Arc;

use gradus_engine::ask::{Answer, Ask, AskId, Effect, Failure, Question, Reply};
use gradus_engine::decision::ObjectRef;
use gradus_engine::frame::Frame;
use jiff::{SignedDuration, Timestamp};

use super::{Alarm, Draw, Purpose, Read, Shell};
use crate::cluster::WriteError;
use crate::watched::{Key, Watched};

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
            state.asking.insert(ask.id.clone());
            match &ask.question {
                Question::Read(target) => {
                    started.push((target.clone(), Purpose::Answer(ask.id.clone())));
                }
                Question::Random(count) => self.draws.push_back(Draw {
                    key: key.clone(),
                    count: *count,
                    id: ask.id.clone(),
                    asked_at: now,
                }),
            }
        }
        for (target, purpose) in started {
            let read = self.read(key, target, purpose, now);
            self.reads.push_back(read);
        }
    }

    pub(super) fn read(
        &self,
        key: &Key,
        target: ObjectRef,
        purpose: Purpose,
        now: Timestamp,
    ) -> Read {
        let number = self.keys.get(key).map_or(0, |state| state.acknowledged);
        Read { key: key.clone(), target, purpose, asked_at: now, number }
    }

    /// Takes in the reply to a read.
    pub fn learn_read(
        &mut self,
        read: Read,
        reply: Result<Option<Frame>, WriteError>,
        now: Timestamp,
    ) {
        match &read.purpose {
            Purpose::Settle => self.settle(&read, reply, now),
            Purpose::Answer(id) => {
                let id = id.clone();
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

    fn settle(&mut self, read: &Read, reply: Result<Option<Frame>, WriteError>, now: Timestamp) {
        let key = &read.key;
        match reply {
            Ok(found) => {
                match found {
                    Some(frame) => self.take_in(&read.target.kind, &frame, now),
                    None => self.forget(&read.target, now),
                }
                self.notes.settle(key, &read.target);
                self.queue.finish(key);
                self.queue.add(key.clone(), now);
            }
            Err(error) => {
                self.alarms.push(Alarm::Refused {
                    key: key.clone(),
                    change: format!("read {}", read.target),
                    class: error.class,
                    message: error.message,
                    times: 1,
                });
                self.queue.failed(key.clone(), now);
                self.queue.finish(key);
            }
        }
    }

    fn answer(
        &mut self,
        read: &Read,
        id: AskId,
        reply: Result<Option<Frame>, WriteError>,
        now: Timestamp,
    ) {
        let Some(state) = self.keys.get_mut(&read.key) else { return };
        // An answer older than our own last change says nothing of the world after it.
        if state.acknowledged != read.number {
            state.asking.remove(&id);
            state.settled = None; // It is to be asked again, also by a key that came to rest.
            self.queue.add(read.key.clone(), now);
            return;
        }
        let reply = reply.map(|found| Reply::Object(found.map(|frame| Arc::new(frame.object()))));
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
        let reply = reply.map_err(|error| Failure {
            class: error.class,
            message: error.message,
            times,
            retry_at: now + SignedDuration::from_millis(1 << times.min(13)),
        });
        if let Err(failed) = &reply {
            self.queue.add(key.clone(), failed.retry_at);
        }
        state.settled = None;
        state.answers.insert(id, Answer { asked_at, answered_at: now, reply });
        self.queue.add(key.clone(), now);
    }
}
