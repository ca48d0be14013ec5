//! Which Events were posted before, so that the same one again is counted up?

use std::collections::BTreeMap;
use std::hash::Hash;

use jiff::Timestamp;
use siphasher::sip128::{Hasher128, SipHasher13};

use crate::cluster::PostedEvent;
use crate::shell::Outgoing;

/// Events remembered; who repeats one that was forgotten makes a new one.
pub(super) const KNOWN_LIMIT: usize = 10_000;

/// Posted Events, those used last kept longest.
#[derive(Debug, Default)]
pub(super) struct KnownEvents {
    events: BTreeMap<Key, Earlier>,
    by_use: BTreeMap<u64, Key>,
    uses: u64,
}

/// A digest of object, reason and message: ten thousand of these texts would be megabytes.
type Key = u128;

/// An Event that was posted.
#[derive(Clone, Debug)]
pub(super) struct Earlier {
    pub(super) name: Box<str>,
    pub(super) first: Timestamp,
    pub(super) count: u32,
    use_number: u64,
}

impl KnownEvents {
    /// The earlier Event that this one repeats.
    pub(super) fn get(&self, outgoing: &Outgoing) -> Option<&Earlier> {
        self.events.get(&key(outgoing))
    }

    /// Remembers an Event that was posted.
    pub(super) fn note(&mut self, outgoing: &Outgoing, posted: &PostedEvent) {
        let key = key(outgoing);
        self.uses += 1;
        let earlier = Earlier {
            name: posted.name.as_str().into(),
            first: posted.first,
            count: posted.count,
            use_number: self.uses,
        };
        if let Some(before) = self.events.insert(key, earlier) {
            self.by_use.remove(&before.use_number);
        }
        self.by_use.insert(self.uses, key);
        if self.events.len() > KNOWN_LIMIT
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.events.remove(&oldest);
        }
    }
}

fn key(outgoing: &Outgoing) -> Key {
    let mut hasher = SipHasher13::new();
    (outgoing.uid, &outgoing.event.reason, &outgoing.event.message).hash(&mut hasher);
    hasher.finish128().as_u128()
}
