//! How is a decision carried out? Changes in order, then the status; each Event after its write.

use std::collections::VecDeque;
use std::sync::Arc;

use gradus_engine::decision::{After, Change, ChangeId, Event, Expect, ObjectRef, OnRefusal, Op};
use gradus_engine::{Head, StatusPlace};
use jiff::Timestamp;
use serde_json::Value;

use crate::cluster::{Cluster, Lane, ResourcePart, Write};
use crate::shell::Refusal;
use crate::watched::{Key, Standing};

#[cfg(test)]
mod tests;

/// A decision on its way out.
pub struct Job {
    /// Whose.
    pub key: Key,
    /// The object itself, as decided on.
    pub head: Head,
    /// Changes, in order.
    pub changes: Vec<Change>,
    /// The status write, last.
    pub status: Option<StatusWrite>,
    /// Events, in order.
    pub events: Vec<Event>,
    /// When to look again.
    pub wake_at: Option<Timestamp>,
    /// How far its update is once it is carried out.
    pub standing: Standing,
    /// When it was decided.
    pub decided_at: Timestamp,
    /// Before whom its writes go.
    pub lane: Lane,
}

/// One write of a status.
#[derive(Clone, Debug, PartialEq)]
pub struct StatusWrite {
    /// The patch of the object: what differs in its `status`, with explicit nulls.
    pub patch: Arc<Value>,
    /// Where the status lives.
    pub place: StatusPlace,
}

/// What carrying a decision out has shown.
pub struct Acted {
    /// The job. Its changes, its patch of the status and its Events are used up.
    pub job: Box<Job>,
    /// How many changes it had.
    pub changes: usize,
    /// Writes the server has acknowledged.
    pub written: Vec<Acknowledged>,
    /// Writes that failed.
    pub failures: Vec<Refusal>,
    /// Status fields that did not survive.
    pub pruned: Vec<String>,
}

/// A write the server has acknowledged.
#[derive(Clone, Debug, PartialEq)]
pub struct Acknowledged {
    /// The change, or `None` for the status.
    pub id: Option<ChangeId>,
    /// The object.
    pub object: ObjectRef,
    /// Its version afterwards; `None` for a delete or an eviction.
    pub version: Option<u64>,
}

/// Carries a decision out. Every write goes through the one door, `cluster`; an Event is told as soon
/// as its write and those of the Events before it are acknowledged.
pub async fn act<C: Cluster>(cluster: &C, job: Box<Job>, tell: impl Fn(Event)) -> Acted {
    let mut job = job;
    let mut news = News { events: std::mem::take(&mut job.events).into(), tell };
    let (changes, status) = (std::mem::take(&mut job.changes), job.status.as_mut());
    let status = status.map(|status| (status.place, std::mem::take(&mut status.patch)));
    let mut acted = Acted {
        changes: changes.len(),
        job,
        written: Vec::new(),
        failures: Vec::new(),
        pruned: Vec::new(),
    };
    let (mut version, lane) = (acted.job.head.version, acted.job.lane);
    let mut has_stopped = false;
    for Change { id, target, op, expect, on_refusal } in changes {
        let is_end = matches!(op, Op::Delete | Op::Evict);
        let rested_on = expect.version();
        let write = Write { target: target.clone(), part: ResourcePart::Main, op, expect, lane };
        match cluster.write(write).await {
            Ok(written) => {
                let after = written.version;
                if target == acted.job.head.object {
                    version = after;
                }
                let after = (!is_end).then_some(after);
                acted.written.push(Acknowledged { id: Some(id), object: target, version: after });
                news.tell_next(&acted.written);
            }
            Err(error) => {
                let again_after = match on_refusal {
                    OnRefusal::SkipFor(delay) => Some(delay),
                    OnRefusal::Stop | OnRefusal::Skip => None,
                };
                let (id, object) = (Some(id), target);
                acted.failures.push(Refusal { id, object, rested_on, error, again_after });
                if on_refusal == OnRefusal::Stop {
                    has_stopped = true;
                    break;
                }
            }
        }
    }
    if !has_stopped && let Some((place, patch)) = status {
        let object = acted.job.head.object.clone();
        let sent = filled_fields(&patch["status"]);
        let write = Write { lane, ..status_write(&object, place, patch, version) };
        match cluster.write(write).await {
            Ok(written) => {
                let version = Some(written.version);
                acted.pruned = lost_fields(sent, &written.status);
                acted.written.push(Acknowledged { id: None, object, version });
            }
            Err(error) => {
                let (id, rested_on, again_after) = (None, Some(version), None);
                acted.failures.push(Refusal { id, object, rested_on, error, again_after });
            }
        }
    }
    news.tell_next(&acted.written);
    if acted.failures.iter().all(|failure| failure.id.is_none()) {
        news.tell_rest(&acted.written);
    }
    acted
}

fn status_write(object: &ObjectRef, place: StatusPlace, patch: Arc<Value>, version: u64) -> Write {
    let part = match place {
        StatusPlace::Subresource => ResourcePart::Status,
        StatusPlace::Main => ResourcePart::Main,
    };
    let (target, op, expect) = (object.clone(), Op::Merge(patch), Expect::Version(version));
    Write { target, part, op, expect, lane: Lane::default() }
}

/// Top-level fields that a patch fills, in order. The patch itself is given away: who takes it in
/// need not copy it.
fn filled_fields(patch: &Value) -> Vec<String> {
    let is_filled = |value: &Value| {
        !value.is_null() && !value.as_object().is_some_and(serde_json::Map::is_empty)
    };
    let fields = patch.as_object().into_iter().flatten();
    fields.filter(|(_, value)| is_filled(value)).map(|(field, _)| field.clone()).collect()
}

/// Those of them that are not there: a CRD that does not know them.
fn lost_fields(sent: Vec<String>, stored: &Value) -> Vec<String> {
    // Both are in order, so that one walk along both finds them all where none is lost.
    let mut known = stored.as_object().into_iter().flatten().map(|(field, _)| field);
    if sent.iter().all(|field| known.any(|known| known == field)) {
        return Vec::new();
    }
    sent.into_iter().filter(|field| stored.get(field).is_none()).collect()
}

/// Events that are not told yet.
struct News<T> {
    events: VecDeque<Event>,
    tell: T,
}

impl<T: Fn(Event)> News<T> {
    /// In order, up to the first whose write is not acknowledged.
    fn tell_next(&mut self, written: &[Acknowledged]) {
        while let Some(event) = self.events.pop_front_if(|event| is_done(event, written)) {
            (self.tell)(event);
        }
    }

    /// Where no change failed, only the status is missing: what does not report it is still told.
    fn tell_rest(self, written: &[Acknowledged]) {
        self.events.into_iter().filter(|event| is_done(event, written)).for_each(self.tell);
    }
}

fn is_done(event: &Event, written: &[Acknowledged]) -> bool {
    let id = match &event.after {
        After::Change(id) => Some(id),
        After::Status => None,
    };
    written.iter().any(|one| one.id.as_ref() == id)
}
