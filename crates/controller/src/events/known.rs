//! Which Events were posted before, so that the same one again is counted up?

use std::collections::BTreeMap;
use std::sync::Arc;

use gradus_engine::uid::Uid;
use jiff::Timestamp;

use crate::cluster::PostedEvent;
use crate::shell::Outgoing;

/// Events remembered; who repeats one that was forgotten makes a new one.
pub(super) const KNOWN_LIMIT: usize = 10_000;

/// Posted Events, those used last kept longest.
#[derive(Debug, Default)]
pub(super) struct KnownEvents {
    events: BTreeMap<Arc<Key>, Earlier>,
    by_use: BTreeMap<u64, Arc<Key>>,
    uses: u64,
}

/// Object, reason and message.
type Key = (Uid, String, String);

/// An Event that was posted.
#[derive(Clone, Debug)]
pub(super) struct Earlier {
    pub(super) name: String,
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
        let key = Arc::new(key(outgoing));
        self.uses += 1;
        let earlier = Earlier {
            name: posted.name.clone(),
            first: posted.first,
            count: posted.count,
            use_number: self.uses,
        };
        if let Some(before) = self.events.insert(Arc::clone(&key), earlier) {
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
    (outgoing.uid, outgoing.event.reason.to_string(), outgoing.event.message.clone())
}
