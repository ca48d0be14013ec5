//! Questions of one class that wait: whose is asked next? It costs no more where more of them wait.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use super::Inquiry;

/// Questions that wait. Plugins take turns, and so do the namespaces that wait for one of them; of a
/// namespace the question that came first is asked first. What is for no plugin waits as if for one.
#[derive(Default)]
pub(super) struct WaitingQuestions(Turns<Option<String>, Turns<Arc<str>, VecDeque<Inquiry>>>);

/// Lines that take turns: the one behind that which was served last is next.
struct Turns<K, L> {
    lines: BTreeMap<K, L>,
    last: Option<K>,
}

impl<K, L> Default for Turns<K, L> {
    fn default() -> Self {
        Turns { lines: BTreeMap::new(), last: None }
    }
}

impl<K: Ord, L> Turns<K, L> {
    /// All lines, whose turn is next first.
    fn in_turn(&self) -> impl Iterator<Item = (&K, &L)> {
        let after = self.last.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let before = self.last.iter().flat_map(|last| self.lines.range(..=last));
        self.lines.range((after, Bound::Unbounded)).chain(before)
    }
}

impl WaitingQuestions {
    /// One more waits, behind those of its namespace.
    pub(super) fn push(&mut self, inquiry: Inquiry) {
        let plugin = inquiry.question.plugin().map(str::to_owned);
        let namespaces = &mut self.0.lines.entry(plugin).or_default().lines;
        namespaces.entry(Arc::clone(&inquiry.key.namespace)).or_default().push_back(inquiry);
    }

    /// The next question whose plugin and namespace have room.
    pub(super) fn pop(
        &mut self,
        is_free: impl Fn(&str) -> bool,
        has_room: impl Fn(&Arc<str>) -> bool,
    ) -> Option<Inquiry> {
        let (plugin, namespace) = self.0.in_turn().find_map(|(plugin, line)| {
            if plugin.as_deref().is_some_and(|plugin| !is_free(plugin)) {
                return None;
            }
            let (namespace, _) = line.in_turn().find(|(namespace, _)| has_room(namespace))?;
            Some((plugin.clone(), Arc::clone(namespace)))
        })?;
        let line = self.0.lines.get_mut(&plugin)?;
        let questions = line.lines.get_mut(&namespace)?;
        let inquiry = questions.pop_front()?;
        if questions.is_empty() {
            line.lines.remove(&namespace);
        }
        line.last = Some(namespace);
        if line.lines.is_empty() {
            self.0.lines.remove(&plugin);
        }
        self.0.last = Some(plugin);
        Some(inquiry)
    }

    /// Does nobody wait?
    pub(super) fn is_empty(&self) -> bool {
        self.0.lines.is_empty()
    }
}
