//! How long does a ReplicaSet stay after it has lost its traffic? Deadlines on old and aborted ones.

use std::sync::Arc;

use gradus_api::defaults::AbortDelay;
use gradus_api::names::annotation::SCALE_DOWN_DEADLINE;
use gradus_api::values::Time;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::draft::Draft;
use crate::world::Deadline;

/// Takes a deadline off a ReplicaSet that is wanted again.
pub(super) fn without_deadline(draft: Draft<'_>, at: usize) -> Draft<'_> {
    if draft.sets[at].deadline == Deadline::None {
        return draft;
    }
    note_deadline(draft, at, None)
}

/// When a deadline stands in a ReplicaSet; what cannot be read has passed.
pub(super) fn moment(deadline: Deadline) -> Option<Timestamp> {
    match deadline {
        Deadline::None => None,
        Deadline::At(second) => Some(Timestamp::from_second(second).unwrap_or(Timestamp::MIN)),
        Deadline::Unreadable => Some(Timestamp::MIN),
    }
}

/// Gives a ReplicaSet a deadline from now, without touching its size.
pub(super) fn with_deadline(draft: Draft<'_>, at: usize, seconds: i32) -> Draft<'_> {
    let end = draft.now + SignedDuration::from_secs(i64::from(seconds));
    let draft = note_deadline(draft, at, Some(Time::new(end)));
    draft.wake(Time::new(end).timestamp())
}

fn note_deadline(draft: Draft<'_>, at: usize, deadline: Option<Time>) -> Draft<'_> {
    let set = Arc::clone(&draft.sets[at]);
    let body = json!({ "metadata": { "annotations": { SCALE_DOWN_DEADLINE: deadline } } });
    let target = draft.rollout().replica_set(&set.name);
    let mut draft = draft.patch(target, body, set.version);
    let second = deadline.map(|time| time.timestamp().as_second());
    Arc::make_mut(&mut draft.sets[at]).deadline = second.map_or(Deadline::None, Deadline::At);
    draft
}

/// What an abort does to the new ReplicaSet: it stays for a while after stable is complete.
pub(super) fn after_abort<'w>(
    draft: Draft<'w>,
    new: usize,
    stable: usize,
    delay: AbortDelay,
) -> Draft<'w> {
    let set = Arc::clone(&draft.sets[new]);
    let keep = |draft: Draft<'w>| {
        let size = set.size;
        draft.resize(new, size)
    };
    match (delay, moment(set.deadline)) {
        (AbortDelay::AtOnce, _) => draft.resize(new, 0),
        (AbortDelay::Forever, _) => keep(draft),
        (AbortDelay::Seconds(_), Some(end)) if end <= draft.now => draft.resize(new, 0),
        (AbortDelay::Seconds(_), Some(end)) => keep(draft).wake(end),
        (AbortDelay::Seconds(seconds), None) => {
            let is_complete = draft.sets[stable].available() >= draft.replicas();
            let draft = keep(draft);
            if is_complete && set.size > 0 { with_deadline(draft, new, seconds) } else { draft }
        }
    }
}

/// Old ReplicaSets, newest revision first: the first few stay until their deadline, the rest go.
pub(super) struct OldSets {
    /// Those nobody references, newest revision first.
    pub newest_first: Vec<usize>,
    /// How long one stays.
    pub delay_seconds: i32,
    /// How many may stay.
    pub limit: i32,
    /// The size one has while it stays; `None` keeps what it has.
    pub size_meanwhile: Option<i32>,
}

impl OldSets {
    /// Gives deadlines, keeps to them, and scales down what is past its own.
    pub fn retire(self, draft: Draft<'_>) -> Draft<'_> {
        let mut draft = draft;
        let mut staying = 0;
        for at in self.newest_first {
            let set = Arc::clone(&draft.sets[at]);
            if set.size == 0 {
                continue;
            }
            let may_stay = staying < self.limit && self.delay_seconds > 0;
            draft = match moment(set.deadline) {
                None if may_stay => {
                    staying += 1;
                    with_deadline(draft, at, self.delay_seconds)
                }
                Some(end) if may_stay && draft.now < end => {
                    staying += 1;
                    let size = self.size_meanwhile.unwrap_or(set.size);
                    draft.resize(at, size).wake(end)
                }
                _ => draft.resize(at, 0),
            };
        }
        draft
    }
}
