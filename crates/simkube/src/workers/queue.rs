//! Which objects has a worker to look at: those somebody wrote, and those whose time has come.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::object::Key;

/// Keys to look at now, and keys to look at later. A key is in each at most once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    marked: BTreeSet<Key>,
    due: BTreeSet<(Timestamp, Key)>,
    due_by_key: BTreeMap<Key, Timestamp>,
}

impl Queue {
    /// To be looked at as soon as possible.
    pub(crate) fn mark(&mut self, key: Key) {
        self.marked.insert(key);
    }

    /// To be looked at then, and not at any time set earlier.
    pub(crate) fn wake_at(&mut self, key: &Key, moment: Option<Timestamp>) {
        let old = match moment {
            Some(moment) => self.due_by_key.insert(key.clone(), moment),
            None => self.due_by_key.remove(key),
        };
        if old == moment {
            return;
        }
        if let Some(old) = old {
            self.due.remove(&(old, key.clone()));
        }
        if let Some(moment) = moment {
            self.due.insert((moment, key.clone()));
        }
    }

    /// Not to be looked at again.
    pub(crate) fn forget(&mut self, key: &Key) {
        self.marked.remove(key);
        self.wake_at(key, None);
    }

    /// Takes the mark of a key away, as it was before a worker's own write.
    pub(crate) fn unmark(&mut self, key: &Key) {
        self.marked.remove(key);
    }

    pub(crate) fn has_work(&self, now: Timestamp) -> bool {
        !self.marked.is_empty() || self.next_due().is_some_and(|due| due <= now)
    }

    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        self.due.first().map(|(moment, _)| *moment)
    }

    /// The next key to look at: marked ones first, then the one that is due longest.
    pub(crate) fn take(&mut self, now: Timestamp) -> Option<Key> {
        if let Some(key) = self.marked.pop_first() {
            return Some(key);
        }
        self.next_due().filter(|due| *due <= now)?;
        let (_, key) = self.due.pop_first()?;
        self.due_by_key.remove(&key);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn key(name: &str) -> Key {
        Key::new("a", name)
    }

    #[test]
    fn marked_keys_come_once_and_due_keys_at_their_time() {
        let mut queue = Queue::default();
        queue.mark(key("b"));
        queue.mark(key("b"));
        queue.wake_at(&key("c"), Some(at(9)));
        queue.wake_at(&key("c"), Some(at(5)));
        assert_eq!(queue.next_due(), Some(at(5)));
        assert_eq!(queue.take(at(4)), Some(key("b")));
        assert_eq!(queue.take(at(4)), None);
        assert_eq!(queue.take(at(5)), Some(key("c")));
        assert_eq!(queue.take(at(99)), None, "the later time was replaced");
    }

    #[test]
    fn what_is_forgotten_does_not_come_back() {
        let mut queue = Queue::default();
        queue.mark(key("a"));
        queue.wake_at(&key("a"), Some(at(1)));
        queue.forget(&key("a"));
        assert!(!queue.has_work(at(9)));
    }
}
