//! What has carrying a decision out shown, and when is its key looked at again?

use gradus_engine::ask::{Class, FAILED_LIMIT, Failure};
use gradus_engine::decision::{ChangeId, ObjectRef};
use jiff::{SignedDuration, Timestamp};

use super::{Alarm, Shell};
use crate::act::{Acted, Job};
use crate::cluster::WriteError;
use crate::queue::back_off_of_denied;
use crate::watched::{Key, Watched};

/// A write that failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The change, or `None` for the status.
    pub id: Option<ChangeId>,
    /// The object it was meant for.
    pub object: ObjectRef,
    /// The version of it that had to be there still.
    pub rested_on: Option<u64>,
    /// Why.
    pub error: WriteError,
    /// Not again before so long; `None` for the back-off.
    pub again_after: Option<SignedDuration>,
}

impl Refusal {
    /// Is it a change that the user must hear of, in the server's words? Then it is decided at once,
    /// for when the change is due again there is only the change to be made.
    fn is_to_be_told(&self) -> bool {
        self.id.is_some() && self.error.class == Class::Denied
    }
}

impl<W: Watched> Shell<W> {
    /// Takes in what carrying a decision out has shown.
    pub fn learn(&mut self, acted: Acted, now: Timestamp) {
        let Acted { job, changes, written, failures, pruned } = acted;
        let Job { key, wake_at, status, .. } = *job;
        self.release(&key);
        let has_failed = !failures.is_empty();
        let is_to_be_told = failures.iter().any(Refusal::is_to_be_told);
        // A change that failed is part of the next World, which is told at once. Of a status that
        // failed there is nothing to tell.
        let status_failed = failures.iter().find(|failed| failed.id.is_none());
        let fixed = status_failed.and_then(|failed| W::retry_after(failed.error.class));
        let due = if let Some(delay) = fixed {
            self.queue.add(key.clone(), now + delay);
            now + delay
        } else if has_failed {
            self.queue.failed(key.clone(), now)
        } else {
            self.queue.succeeded(&key);
            now
        };
        let state = self.keys.entry(key.clone()).or_default();
        state.tried(changes);
        for id in written.iter().filter_map(|write| write.id.as_ref()) {
            state.recall.failed.remove(id);
        }
        // What the memo compares with is the stored status, so it is kept only with that.
        let is_stored = status.is_none() || written.iter().any(|write| write.id.is_none());
        let memo = state.pending_memo.take();
        if let Some(memo) = memo.filter(|_| is_stored && !has_failed) {
            state.recall.memo = memo;
        }
        let fields: Vec<String> =
            pruned.into_iter().filter(|field| state.pruned.insert(field.clone())).collect();
        if !fields.is_empty() {
            self.alarms.push(Alarm::Pruned { key: key.clone(), fields });
        }
        if is_stored && status.is_some() {
            state.status_refused = 0;
        }
        for write in written {
            if let Some(source) = self.watching.source_of(&write.object.kind) {
                let seen = (W::shelf(source).version)(&self.index, &write.object);
                let shown = (source.clone(), write.object);
                self.notes.expect(&key, shown, write.version, seen, now);
            }
        }
        // After those: where the object itself was written and its status then refused, the refusal
        // says more.
        for failure in failures {
            self.remember_failure(&key, failure, due, now);
        }
        self.queue.finish(&key, now);
        if !has_failed || is_to_be_told {
            self.queue.add(key.clone(), now);
        }
        if let Some(wake_at) = wake_at {
            self.queue.add(key, wake_at);
        }
    }

    /// A job was not carried out on purpose: the key rests until something wakes it.
    pub fn decline(&mut self, key: &Key, now: Timestamp) {
        self.release(key);
        let state = self.keys.entry(key.clone()).or_default();
        state.pending_memo = None;
        let wake_at = state.next_retry(now);
        self.rest(key, wake_at, now);
    }

    /// Carrying a job out panicked: what was done is not known, so the key is read and retried.
    pub fn abandon(&mut self, key: &Key, now: Timestamp) {
        self.release(key);
        if let Some(state) = self.keys.get_mut(key) {
            state.pending_memo = None;
        }
        let object = ObjectRef::new(W::KIND, &key.namespace, &key.name);
        if let Some(source) = self.watching.source_of(&W::KIND) {
            self.notes.read_first(key, (source.clone(), object), now);
        }
        self.queue.failed(key.clone(), now);
        self.queue.finish(key, now);
    }

    /// A job of this key has ended: its place is free.
    fn release(&mut self, key: &Key) {
        if let Some(busy) = self.busy.get_mut(&key.namespace) {
            *busy = busy.saturating_sub(1);
            if *busy == 0 {
                self.busy.remove(&key.namespace);
            }
        }
    }

    fn remember_failure(&mut self, key: &Key, failed: Refusal, due: Timestamp, now: Timestamp) {
        let Refusal { id, object, rested_on, error, again_after } = failed;
        let state = self.keys.entry(key.clone()).or_default();
        let times = match &id {
            Some(id) => state.recall.failed.get(id).map_or(0, |failed| failed.times) + 1,
            // Somebody else wrote: that is ordinary, and nothing stays.
            None if matches!(error.class, Class::Stale | Class::Gone) => 1,
            None => {
                state.status_refused = state.status_refused.saturating_add(1);
                state.status_refused
            }
        };
        self.alarms.push(Alarm::Refused {
            key: key.clone(),
            change: id.as_ref().map_or("status".to_owned(), |id| id.0.to_string()),
            class: error.class,
            message: error.message.clone(),
            times,
        });
        let (is_status, asked) = (id.is_none(), error.asked_until(now));
        // Only who was asked to wait does: a disruption budget speaks so. All else is tried again.
        let again_after = again_after.filter(|_| error.class == Class::Throttled);
        let fixed = again_after.or_else(|| W::retry_after(error.class)).map(|delay| now + delay);
        // A change has a back-off of its own: what is told meanwhile must not shorten it.
        let is_denied = error.class == Class::Denied && !is_status;
        let own = is_denied.then(|| now + back_off_of_denied(times - 1));
        let retry_at = fixed.or(own).unwrap_or(due);
        let retry_at = asked.map_or(retry_at, |asked| asked.max(retry_at));
        let source = self.watching.source_of(&object.kind).cloned();
        match error.class {
            // A newer object, or none, comes by the watch, unless it is shown already.
            Class::Stale | Class::Gone => {
                if let Some(source) = source
                    && let Some(shown) = (W::shelf(&source).version)(&self.index, &object)
                {
                    let refused = rested_on.unwrap_or(shown);
                    if shown <= refused {
                        self.notes.refused(key, (source, object), refused, now);
                    }
                }
            }
            // What is not watched is read by whoever asks for it, not into the index.
            Class::Unknown if source.is_some() => {
                let shown = source.map(|source| (source, object));
                shown.into_iter().for_each(|shown| self.notes.read_first(key, shown, now));
            }
            _ => {
                let failed = &mut state.recall.failed;
                let has_room =
                    |id: &ChangeId| failed.len() < FAILED_LIMIT || failed.contains_key(id);
                if let Some(id) = id.filter(has_room) {
                    let WriteError { class, message, .. } = error;
                    failed.insert(id, Failure { class, message, times, retry_at });
                }
            }
        }
        if is_status && asked.is_some() {
            // Nothing in the World says that a status was refused, so the key itself waits.
            self.queue.hold(key.clone(), retry_at);
        } else {
            self.queue.add(key.clone(), retry_at);
        }
    }
}
