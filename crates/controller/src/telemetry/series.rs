//! Which series does an object have, so that they can be removed with it?

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::RolloutFigures;

/// The series of all objects.
#[derive(Default)]
pub(super) struct ObjectSeries {
    shown: BTreeMap<Key, ShownObject>,
    gone: BTreeMap<Key, Timestamp>,
    requests: BTreeSet<[String; 5]>,
    /// When the requests for objects that are gone are forgotten: by plural, namespace and name.
    gone_requests: BTreeMap<[String; 3], Timestamp>,
}

/// Namespace and name of a Rollout.
type Key = (String, String);

/// What is shown of one Rollout.
#[derive(Default)]
struct ShownObject {
    /// The gauges, if there are any.
    figures: Option<RolloutFigures>,
    /// The guard that holds it.
    guard: Option<String>,
    /// How many Events there were of each type and reason.
    events: BTreeMap<(Box<str>, Box<str>), u64>,
}

/// An object whose counters shall go.
pub(super) struct Gone {
    pub(super) namespace: String,
    pub(super) name: String,
}

impl ObjectSeries {
    /// Notes that the object has counters.
    pub(super) fn touch(&mut self, namespace: &str, name: &str) {
        self.entry(namespace, name);
    }

    /// Notes the gauges of a living object; returns those before.
    pub(super) fn show(
        &mut self,
        namespace: &str,
        name: &str,
        figures: RolloutFigures,
    ) -> Option<RolloutFigures> {
        self.gone.remove(&key(namespace, name));
        self.entry(namespace, name).figures.replace(figures)
    }

    /// Counts an Event.
    pub(super) fn event(&mut self, namespace: &str, name: &str, kind: &str, reason: &str) {
        let events = &mut self.entry(namespace, name).events;
        *events.entry((kind.into(), reason.into())).or_default() += 1;
    }

    /// The gauges of every living object, by namespace and name.
    pub(super) fn figures(&self) -> impl Iterator<Item = ([&str; 2], &RolloutFigures)> {
        self.shown.iter().filter_map(|((namespace, name), shown)| {
            Some(([namespace.as_str(), name], shown.figures.as_ref()?))
        })
    }

    /// How many Events there were: of which object, type and reason.
    pub(super) fn events(&self) -> impl Iterator<Item = ([&str; 2], (&str, &str), u64)> {
        self.shown.iter().flat_map(|((namespace, name), shown)| {
            let events = shown.events.iter();
            events.map(move |((kind, reason), count)| {
                ([namespace.as_str(), name], (&**kind, &**reason), *count)
            })
        })
    }

    /// Notes the guard; returns the one before if it was another.
    pub(super) fn held(
        &mut self,
        namespace: &str,
        name: &str,
        guard: Option<&str>,
    ) -> Option<String> {
        // Nothing is to be noted of one that is gone by now.
        if guard.is_none() && !self.shown.contains_key(&key(namespace, name)) {
            return None;
        }
        let held = &mut self.entry(namespace, name).guard;
        if held.as_deref() == guard {
            return None;
        }
        std::mem::replace(held, guard.map(str::to_owned))
    }

    /// May a request be counted under these labels? Not when there are too many already.
    pub(super) fn request(&mut self, labels: [&str; 5], limit: usize) -> bool {
        let labels = labels.map(str::to_owned);
        if self.requests.len() < limit {
            self.requests.insert(labels);
            return true;
        }
        self.requests.contains(&labels)
    }

    /// Notes that an object of any kind is gone. The requests for it are counted until then.
    pub(super) fn leave(&mut self, object: [&str; 3], until: Timestamp) {
        let object = object.map(str::to_owned);
        if self.requests_for(&object).next().is_some() {
            self.gone_requests.insert(object, until);
        }
    }

    /// Forgets the requests for objects whose time is over; returns their labels.
    pub(super) fn take_requests(&mut self, now: Timestamp) -> Vec<[String; 5]> {
        let is_over = |(_, until): &(&[String; 3], &Timestamp)| **until <= now;
        let expired: Vec<[String; 3]> =
            self.gone_requests.iter().filter(is_over).map(|(object, _)| object.clone()).collect();
        let mut taken = Vec::new();
        for object in expired {
            self.gone_requests.remove(&object);
            taken.extend(self.requests_for(&object).cloned());
        }
        for labels in &taken {
            self.requests.remove(labels);
        }
        taken
    }

    /// Those of one object lie side by side.
    fn requests_for(&self, object: &[String; 3]) -> impl Iterator<Item = &[String; 5]> {
        let [plural, namespace, name] = object.clone();
        let first = [plural, namespace, name, String::new(), String::new()];
        self.requests.range(first..).take_while(move |labels| labels[..3] == object[..])
    }

    /// Notes that the object is gone, and its gauges with it; returns the guard that held it. Its
    /// counters stay until then.
    pub(super) fn hide(&mut self, namespace: &str, name: &str, until: Timestamp) -> Option<String> {
        let shown = self.shown.get_mut(&key(namespace, name))?;
        self.gone.insert(key(namespace, name), until);
        shown.figures = None;
        shown.guard.take()
    }

    /// Every object of which something is shown.
    pub(super) fn shown(&self) -> Vec<Key> {
        self.shown.keys().cloned().collect()
    }

    /// Forgets the objects whose time is over.
    pub(super) fn take_expired(&mut self, now: Timestamp) -> Vec<Gone> {
        let expired: Vec<Key> = self
            .gone
            .iter()
            .filter(|(_, until)| **until <= now)
            .map(|(key, _)| key.clone())
            .collect();
        expired.into_iter().map(|key| self.take(key)).collect()
    }

    fn take(&mut self, key: Key) -> Gone {
        self.gone.remove(&key);
        self.shown.remove(&key);
        let (namespace, name) = key;
        Gone { namespace, name }
    }

    fn entry(&mut self, namespace: &str, name: &str) -> &mut ShownObject {
        self.shown.entry(key(namespace, name)).or_default()
    }
}

fn key(namespace: &str, name: &str) -> Key {
    (namespace.to_owned(), name.to_owned())
}
