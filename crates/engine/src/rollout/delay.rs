//! How long does a ReplicaSet stay after it has lost its traffic? Deadlines on old and aborted ones.

use gradus_api::defaults::AbortDelay;
use gradus_api::names::annotation::SCALE_DOWN_DEADLINE;
use gradus_api::values::Time;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::objects::{Edit, Objects};
use super::plan::Proposal;
use super::replica_sets::resize;
use crate::world::Deadline;

/// Takes a deadline off a ReplicaSet that is wanted again.
pub(super) fn without_deadline(objects: &Objects<'_>, at: usize) -> Proposal {
    if objects.sets[at].deadline == Deadline::None {
        return Proposal::default();
    }
    note_deadline(objects, at, None)
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
pub(super) fn with_deadline(objects: &Objects<'_>, at: usize, seconds: i32) -> Proposal {
    let end = Time::new(objects.now + SignedDuration::from_secs(i64::from(seconds)));
    note_deadline(objects, at, Some(end)).wake(end.timestamp())
}

fn note_deadline(objects: &Objects<'_>, at: usize, deadline: Option<Time>) -> Proposal {
    let set = &objects.sets[at];
    let body = json!({ "metadata": { "annotations": { SCALE_DOWN_DEADLINE: deadline } } });
    let target = objects.rollout().replica_set(&set.name);
    let second = deadline.map(|time| time.timestamp().as_second());
    let edit = Edit::Deadline(at, second.map_or(Deadline::None, Deadline::At));
    Proposal::default().patch(target, body, set.version, edit)
}

/// What an abort does to the new ReplicaSet: it stays for a while after stable is complete.
pub(super) fn after_abort(
    objects: &Objects<'_>,
    new: usize,
    stable: usize,
    delay: AbortDelay,
) -> Proposal {
    let set = &objects.sets[new];
    let kept = || resize(objects, new, set.size);
    match (delay, moment(set.deadline)) {
        (AbortDelay::AtOnce, _) => resize(objects, new, 0),
        (AbortDelay::Forever, _) => kept(),
        (AbortDelay::Seconds(_), Some(end)) if end <= objects.now => resize(objects, new, 0),
        (AbortDelay::Seconds(_), Some(end)) => kept().wake(end),
        (AbortDelay::Seconds(seconds), None) => {
            let is_complete = objects.sets[stable].available() >= objects.replicas();
            match is_complete && set.size > 0 {
                true => kept().and(with_deadline(objects, new, seconds)),
                false => kept(),
            }
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
    pub fn retire(self, objects: &Objects<'_>) -> Proposal {
        let mut staying = 0;
        let each = self.newest_first.into_iter().filter(|at| objects.sets[*at].size > 0);
        let retired = each.map(|at| {
            let set = &objects.sets[at];
            let may_stay = staying < self.limit && self.delay_seconds > 0;
            match moment(set.deadline) {
                None if may_stay => {
                    staying += 1;
                    with_deadline(objects, at, self.delay_seconds)
                }
                Some(end) if may_stay && objects.now < end => {
                    staying += 1;
                    resize(objects, at, self.size_meanwhile.unwrap_or(set.size)).wake(end)
                }
                _ => resize(objects, at, 0),
            }
        });
        retired.collect()
    }
}
