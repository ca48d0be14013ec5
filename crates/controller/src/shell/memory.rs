//! What is remembered of one key between two passes?

use std::collections::{BTreeMap, BTreeSet};

use gradus_engine::ask::{Answer, Ask, AskId, Question, Recall, Reply};
use gradus_engine::decision::{ChangeId, Decision, Frees, ObjectRef, Why};
use gradus_engine::explain::sentence;
use jiff::{SignedDuration, Timestamp};

use super::asking::Open;
use super::notes::Shown;
use crate::watched::Watched;

/// How long the same guard may hold a key before the operator hears of it.
const WORTH_A_WORD: SignedDuration = SignedDuration::from_mins(5);

/// What is remembered of one key. Losing it costs time, never safety.
pub(super) struct KeyState<W: Watched> {
    pub recall: Recall<W::Memo>,
    pub answers: BTreeMap<AskId, Answer>,
    /// Asks under way.
    pub asking: BTreeMap<AskId, Open>,
    /// Changes that were tried, for telling old answers from new ones.
    pub tried: u64,
    /// The memo of the decision that is being carried out: kept once its status is stored.
    pub pending_memo: Option<W::Memo>,
    /// What is being read before the key is decided, and the source that shows it.
    pub settling: Option<Shown<W::Source>>,
    /// Since when a status of counts alone waits to be written.
    pub deferred: Option<Timestamp>,
    /// Status fields that did not survive a write: the CRD is older than ours.
    pub pruned: BTreeSet<String>,
    /// How often in a row the status was refused for good reason.
    pub status_refused: u32,
    /// How often in a row a read that must come first has failed.
    pub read_refused: u32,
    held: Option<Holding>,
}

struct Holding {
    why: Why,
    since: Timestamp,
    is_told: bool,
}

/// A key that is held, and for how long we have known it.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// Which guard, as a short word.
    pub guard: &'static str,
    /// The whole reason.
    pub why: Why,
    /// The object at fault.
    pub object: ObjectRef,
    /// What frees it.
    pub frees: Frees,
    /// Seconds since it was first seen held so.
    pub seconds: i64,
    /// Has it just become worth a word in the log?
    pub is_news: bool,
}

/// What is new about who holds a key up.
#[derive(Clone, Debug, PartialEq)]
pub enum HoldChange {
    /// A guard holds it up now.
    Held {
        /// Which guard, as a short word.
        guard: &'static str,
        /// The whole reason, in a sentence.
        detail: String,
    },
    /// Nothing does any more.
    Freed {
        /// The guard that did.
        guard: &'static str,
        /// For how long, as far as we have seen it.
        seconds: i64,
    },
}

impl<W: Watched> Default for KeyState<W> {
    fn default() -> Self {
        KeyState {
            recall: Recall::default(),
            answers: BTreeMap::new(),
            asking: BTreeMap::new(),
            tried: 0,
            pending_memo: None,
            settling: None,
            deferred: None,
            pruned: BTreeSet::new(),
            status_refused: 0,
            read_refused: 0,
            held: None,
        }
    }
}

impl<W: Watched> KeyState<W> {
    /// Forgets all but what is under way and what the server has told of its CRD.
    pub fn forget(&mut self) {
        let KeyState { asking, tried, settling, pruned, .. } = std::mem::take(self);
        *self = KeyState { asking, tried, settling, pruned, ..KeyState::default() };
    }

    /// Notes which guard holds the key up, and since when: the first that does. Returns what is new
    /// about that.
    pub fn watch_guard(&mut self, why: &[Why], now: Timestamp) -> Option<HoldChange> {
        let Some(why) = why.iter().find(|why| why.guard.holds_up()) else {
            let held = self.held.take()?;
            let seconds = now.duration_since(held.since).as_secs();
            return Some(HoldChange::Freed { guard: held.why.guard.name(), seconds });
        };
        let guard = why.guard.name();
        let is_other =
            |held: &Holding| held.why.guard.name() != guard || held.why.object != why.object;
        let is_news = self.held.as_ref().is_none_or(is_other);
        match &mut self.held {
            Some(held) if is_same_guard(&held.why, why) => held.why = why.clone(),
            held => *held = Some(Holding { why: why.clone(), since: now, is_told: false }),
        }
        is_news.then(|| HoldChange::Held { guard, detail: sentence(why) })
    }

    /// How the key is held, if it is; news once, after five minutes. Whoever decided knows better
    /// since when: it may have moved meanwhile, and waits for the same again.
    pub fn held_for(&mut self, now: Timestamp) -> Option<Held> {
        let held = self.held.as_mut()?;
        let since = held.why.since.unwrap_or(held.since);
        let elapsed = now.duration_since(since);
        let is_news = elapsed >= WORTH_A_WORD && !held.is_told;
        held.is_told |= is_news;
        Some(Held {
            guard: held.why.guard.name(),
            object: held.why.object.clone(),
            frees: held.why.frees.clone(),
            why: held.why.clone(),
            seconds: elapsed.as_secs().max(0),
            is_news,
        })
    }

    /// Changes were tried: what was read before says nothing of the world after them. What a
    /// plugin has said, and what was drawn, stays.
    pub fn tried(&mut self, changes: usize) {
        if changes > 0 {
            self.tried += changes as u64;
            let is_read = |reply: &Reply| {
                matches!(
                    reply,
                    Reply::Object(_) | Reply::Objects(_) | Reply::Pods(_) | Reply::Weights(_)
                )
            };
            self.answers.retain(|_, answer| !answer.reply.as_ref().is_ok_and(is_read));
        }
    }

    /// The next moment at which something that failed may be tried again: a read, or a change. The
    /// engine that waits for it need not say so.
    pub fn next_retry(&self, now: Timestamp) -> Option<Timestamp> {
        let reads = self.answers.values().filter_map(|answer| answer.reply.as_ref().err());
        let failures = reads.chain(self.recall.failed.values());
        failures.map(|failure| failure.retry_at).filter(|retry_at| now < *retry_at).min()
    }

    /// Forgets failed changes that a decision made at or after their time no longer plans.
    pub fn forget_failed(&mut self, decision: &Decision<W::Status, W::Memo>, now: Timestamp) {
        let is_planned = |id: &ChangeId| decision.changes.iter().any(|change| change.id == *id);
        let is_read = |ask: &Ask| matches!(ask.question, Question::Read(_));
        let is_asked = decision.asks.iter().any(is_read);
        self.recall
            .failed
            .retain(|id, failure| is_asked || now < failure.retry_at || is_planned(id));
    }
}

/// Is it the same guard, and has nothing moved since?
fn is_same_guard(one: &Why, other: &Why) -> bool {
    std::mem::discriminant(&one.guard) == std::mem::discriminant(&other.guard)
        && one.object == other.object
        && one.field == other.field
        && one.since == other.since
}
