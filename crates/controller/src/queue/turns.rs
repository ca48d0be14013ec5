//! Keys that are due, by group. Groups take turns; within a group the place in the queue decides.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;

use super::{Grouped, QueuePlace};

/// Keys that may be handed out now.
#[derive(Clone, Debug)]
pub(super) struct GroupTurns<K: Grouped> {
    /// The keys of each group that has some, in order.
    groups: BTreeMap<K::Group, BTreeSet<(QueuePlace, K)>>,
    /// Each of these groups once: whose turn is next comes first.
    turns: VecDeque<K::Group>,
    /// How many keys there are.
    count: usize,
}

impl<K: Grouped> Default for GroupTurns<K> {
    fn default() -> Self {
        GroupTurns { groups: BTreeMap::new(), turns: VecDeque::new(), count: 0 }
    }
}

impl<K: Grouped> GroupTurns<K> {
    /// Adds a key; a group that had none takes its turn after all others.
    pub fn insert(&mut self, place: QueuePlace, key: K) {
        let group = key.group();
        let keys = self.groups.entry(group.clone()).or_default();
        if keys.is_empty() {
            self.turns.push_back(group);
        }
        self.count += usize::from(keys.insert((place, key)));
    }

    /// Takes a key out. Was it there?
    pub fn remove(&mut self, place: QueuePlace, key: &K) -> bool {
        let group = key.group();
        let Some(keys) = self.groups.get_mut(&group) else { return false };
        let was_there = keys.remove(&(place, key.clone()));
        self.count -= usize::from(was_there);
        if keys.is_empty() {
            self.groups.remove(&group);
            self.turns.retain(|other| *other != group);
        }
        was_there
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// The place of the key that [`GroupTurns::pop`] would hand out.
    pub fn next(&self, has_room: impl Fn(&K::Group) -> bool) -> Option<QueuePlace> {
        let group = self.turns.iter().find(|group| has_room(group))?;
        self.groups.get(group)?.first().map(|(place, _)| *place)
    }

    /// Hands out the first key of the first group that has room. That group is then the last; those
    /// without room keep their turn.
    pub fn pop(&mut self, now: Timestamp, has_room: impl Fn(&K::Group) -> bool) -> Option<K> {
        let first = |group| self.groups.get(group).and_then(BTreeSet::first);
        let is_due = |group| first(group).is_some_and(|(place, _)| place.due <= now);
        let at = self.turns.iter().position(|group| has_room(group) && is_due(group))?;
        let group = self.turns.remove(at)?;
        let keys = self.groups.get_mut(&group)?;
        let (_, key) = keys.pop_first()?;
        self.count -= 1;
        if keys.is_empty() {
            self.groups.remove(&group);
        } else {
            self.turns.push_back(group);
        }
        Some(key)
    }
}
