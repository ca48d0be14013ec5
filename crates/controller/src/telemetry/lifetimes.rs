//! Until when are counters of an object kept? For one more scrape after its end, also where a pass ends
//! after its object: nothing may stay for ever.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::KEPT_AFTER_DELETE;

/// Namespace and name.
pub(super) type ObjectKey = (String, String);

/// The objects of one kind that have counters.
#[derive(Default)]
pub(super) struct Lifetimes {
    living: BTreeSet<ObjectKey>,
    counted: BTreeSet<ObjectKey>,
    /// When the counters of those that are gone go.
    gone: BTreeMap<ObjectKey, Timestamp>,
}

impl Lifetimes {
    /// An object is there.
    pub(super) fn lives(&mut self, key: ObjectKey) {
        self.gone.remove(&key);
        self.living.insert(key);
    }

    /// A counter of an object was raised.
    pub(super) fn counts(&mut self, key: ObjectKey) {
        self.counted.insert(key);
    }

    /// An object is gone, or is no longer told of.
    pub(super) fn ends(&mut self, key: &ObjectKey, now: Timestamp) {
        if self.living.remove(key) && self.counted.contains(key) {
            self.gone.insert(key.clone(), now + KEPT_AFTER_DELETE);
        }
    }

    /// The objects whose counters go now.
    pub(super) fn take_expired(&mut self, now: Timestamp) -> Vec<ObjectKey> {
        let Lifetimes { living, counted, gone } = self;
        // A pass has ended after its object.
        let late = counted.difference(living).filter(|key| !gone.contains_key(*key));
        let late: Vec<ObjectKey> = late.cloned().collect();
        gone.extend(late.into_iter().map(|key| (key, now + KEPT_AFTER_DELETE)));
        let is_over = |(_, until): &(&ObjectKey, &Timestamp)| **until <= now;
        let expired: Vec<ObjectKey> =
            gone.iter().filter(is_over).map(|(key, _)| key.clone()).collect();
        for key in &expired {
            gone.remove(key);
            counted.remove(key);
        }
        expired
    }
}

#[test]
fn counters_outlive_their_object_for_one_scrape_and_no_longer() {
    let at = |second| Timestamp::from_second(second).unwrap();
    let key = |name: &str| ("shop".to_owned(), name.to_owned());
    let mut lifetimes = Lifetimes::default();
    for name in ["stays", "goes", "comes back"] {
        lifetimes.lives(key(name));
        lifetimes.counts(key(name));
    }
    lifetimes.ends(&key("goes"), at(100));
    lifetimes.ends(&key("comes back"), at(100));
    lifetimes.lives(key("comes back"));
    assert_eq!(lifetimes.take_expired(at(164)), Vec::<ObjectKey>::new());
    assert_eq!(lifetimes.take_expired(at(165)), [key("goes")]);
    // Its last pass ends when it is gone already.
    lifetimes.counts(key("goes"));
    assert_eq!(lifetimes.take_expired(at(170)), Vec::<ObjectKey>::new());
    assert_eq!(lifetimes.take_expired(at(235)), [key("goes")]);
    assert_eq!(lifetimes.take_expired(at(999)), Vec::<ObjectKey>::new());
}
