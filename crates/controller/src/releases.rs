//! What does the controller remember of objects that carry our marks, and of who names them?

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gradus_engine::ask::{Answer, AskId, Recall};
use gradus_engine::decision::Kind;
use gradus_engine::frame::Frame;
use gradus_engine::kinds;
use gradus_engine::release::{Mark, Marked, Releases};

use crate::watched::{Key, Scope, Selection, Shelf, Watched, references_to};

/// Objects of one kind with our marks, and which of them each Rollout names.
pub struct ReleaseIndex<M> {
    /// Those that carry a mark, or did once: a late event must not bring a mark back.
    marked: BTreeMap<Key, Arc<M>>,
    rollouts: BTreeMap<Key, Names>,
    /// Which Rollouts name an object.
    users: BTreeMap<Key, BTreeSet<Arc<str>>>,
    /// Has a Rollout ever named an object of the kind, or did one with a mark stand there at the start?
    is_wanted: bool,
}

/// What is watched for marked objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Objects that may carry our marks.
    Marked,
    /// Rollouts, which name them.
    Rollouts,
}

/// What a Rollout names.
struct Names {
    version: u64,
    objects: Vec<Key>,
    /// Does it select further ones?
    selects: bool,
}

impl<M> Default for ReleaseIndex<M> {
    fn default() -> Self {
        ReleaseIndex {
            marked: BTreeMap::new(),
            rollouts: BTreeMap::new(),
            users: BTreeMap::new(),
            is_wanted: false,
        }
    }
}

impl<M: Mark> ReleaseIndex<M> {
    fn apply_rollout(&mut self, frame: &Frame) -> Vec<Key> {
        let key = Key::new(&frame.meta.namespace, &frame.meta.name);
        let named = M::named_in(&key.name, &frame.spec).into_iter();
        let objects: Vec<Key> = named
            .map(|name| Key { namespace: Arc::clone(&key.namespace), name: name.into() })
            .collect();
        let selects = M::is_selected_by(&frame.spec);
        self.is_wanted |= !objects.is_empty() || selects;
        let before = self.rollouts.get(&key);
        let is_same = before.is_some_and(|known| known.objects == objects);
        let lets_go = before.is_some_and(|known| known.selects && !selects);
        let version = frame.meta.version;
        if is_same && !lets_go {
            self.rollouts.insert(key, Names { version, objects, selects });
            return Vec::new();
        }
        let mut woken = self.remove_rollout(&key);
        for object in &objects {
            self.users.entry(object.clone()).or_default().insert(Arc::clone(&key.name));
        }
        woken.extend(objects.iter().cloned());
        self.rollouts.insert(key, Names { version, objects, selects });
        woken
    }

    /// Forgets a Rollout; wakes the objects it named, and those with a mark that it may have selected.
    fn remove_rollout(&mut self, key: &Key) -> Vec<Key> {
        let Some(Names { mut objects, selects, .. }) = self.rollouts.remove(key) else {
            return Vec::new();
        };
        for object in &objects {
            if let Some(users) = self.users.get_mut(object) {
                users.remove(&key.name);
                if users.is_empty() {
                    self.users.remove(object);
                }
            }
        }
        if selects {
            let is_marked_by = |object: &Arc<M>| object.managers().contains(&key.name);
            let marked = self.marked.iter().filter(|(one, _)| one.namespace == key.namespace);
            let marked = marked.filter(|(_, object)| is_marked_by(object));
            objects.extend(marked.map(|(key, _)| key.clone()));
        }
        objects
    }

    fn apply_object(&mut self, frame: &Frame) -> Vec<Key> {
        let key = Key::new(&frame.meta.namespace, &frame.meta.name);
        let object = M::read(frame);
        if !object.is_marked() && !self.marked.contains_key(&key) {
            return Vec::new();
        }
        self.marked.insert(key.clone(), Arc::new(object));
        vec![key]
    }
}

impl<M: Mark> Watched for Releases<M> {
    type Index = ReleaseIndex<M>;

    type Source = Source;

    fn sources() -> Vec<Source> {
        let always = M::IS_ALWAYS_THERE.then_some(Source::Marked);
        always.into_iter().chain([Source::Rollouts]).collect()
    }

    fn demands(index: &ReleaseIndex<M>) -> Vec<Source> {
        let is_demanded = index.is_wanted && !M::IS_ALWAYS_THERE;
        is_demanded.then_some(Source::Marked).into_iter().collect()
    }

    fn surveys() -> Vec<Source> {
        (!M::IS_ALWAYS_THERE).then_some(Source::Marked).into_iter().collect()
    }

    fn survey(index: &mut ReleaseIndex<M>, _: &Source, objects: &[Frame]) {
        index.is_wanted |= objects.iter().any(|object| M::read(object).is_marked());
    }

    fn kind_of(source: &Source) -> Kind {
        match source {
            Source::Marked => M::KIND,
            Source::Rollouts => kinds::ROLLOUT,
        }
    }

    fn selection(source: &Source, scope: &Scope) -> Option<Selection> {
        match source {
            Source::Marked => Some(scope.all(M::KIND)),
            Source::Rollouts => Some(scope.of_instance(kinds::ROLLOUT)),
        }
    }

    fn shelf(source: &Source) -> Shelf<ReleaseIndex<M>> {
        match source {
            Source::Marked => Shelf {
                apply: |index, _, frame| index.apply_object(frame),
                remove: |index, object| {
                    let key = Key::of(object);
                    index.marked.remove(&key).map(|_| key).into_iter().collect()
                },
                version: |index, object| Some(index.marked.get(&Key::of(object))?.version()),
                objects: |index, kind| references_to(kind, index.marked.keys()),
            },
            Source::Rollouts => Shelf {
                apply: |index, _, frame| index.apply_rollout(frame),
                remove: |index, object| index.remove_rollout(&Key::of(object)),
                version: |index, object| Some(index.rollouts.get(&Key::of(object))?.version),
                objects: |index, kind| references_to(kind, index.rollouts.keys()),
            },
        }
    }

    fn gather(
        index: &ReleaseIndex<M>,
        key: &Key,
        answers: &BTreeMap<AskId, Answer>,
        recall: &Recall<()>,
    ) -> Option<Marked<M>> {
        let object = index.marked.get(key).filter(|object| object.is_marked())?;
        let version = |name: &Arc<str>| {
            let manager = Key { namespace: Arc::clone(&key.namespace), name: Arc::clone(name) };
            index.rollouts.get(&manager).map_or(0, |names| names.version)
        };
        let managers = object.managers().into_iter();
        let selects = |name: &Arc<str>| {
            let manager = Key { namespace: Arc::clone(&key.namespace), name: Arc::clone(name) };
            index.rollouts.get(&manager).is_some_and(|names| names.selects)
        };
        let named = index.users.get(key).into_iter().flatten().cloned();
        let selected_by = object.managers().into_iter().filter(selects);
        Some(Marked {
            namespace: Arc::clone(&key.namespace),
            object: Arc::clone(object),
            users: named.chain(selected_by).collect(),
            managers: managers.map(|name| (Arc::clone(&name), version(&name))).collect(),
            answers: answers.clone(),
            recall: recall.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use gradus_api::names::annotation;
    use gradus_engine::ask::Class;
    use gradus_engine::release::ManagedRoute;
    use gradus_engine::world::ServiceView;
    use jiff::Timestamp;
    use serde_json::{Value, json};

    use super::*;
    use crate::cluster::WriteError;
    use crate::shell::{InterlockMode, Seen, Shell, Work};

    fn frame(name: &str, version: u64, spec: Value) -> Frame {
        let meta = json!({ "name": name, "namespace": "default",
            "resourceVersion": version.to_string() });
        serde_json::from_value(json!({ "metadata": meta, "spec": spec })).unwrap()
    }

    fn key(name: &str) -> Key {
        Key { namespace: "default".into(), name: name.into() }
    }

    #[test]
    fn a_service_is_looked_at_when_it_is_marked_and_when_a_rollout_lets_go_of_it() {
        let mut index = ReleaseIndex::<ServiceView>::default();
        let plain = frame("active", 1, json!({ "selector": { "app": "web" } }));
        assert_eq!(index.apply_object(&plain), [], "nothing of ours is on it");
        let uses =
            |service: &str| json!({ "strategy": { "blueGreen": { "activeService": service } } });
        assert_eq!(index.apply_rollout(&frame("web", 2, uses("active"))), [key("active")]);
        let hash = json!({ "selector": { "rollouts-pod-template-hash": "h" } });
        assert_eq!(index.apply_object(&frame("active", 3, hash)), [key("active")]);
        let users = |index: &ReleaseIndex<ServiceView>| {
            let none = BTreeMap::new();
            Releases::<ServiceView>::gather(index, &key("active"), &none, &Recall::default())
                .unwrap()
                .users
        };
        assert_eq!(users(&index).len(), 1);
        assert_eq!(index.apply_rollout(&frame("web", 4, uses("active"))), [], "as before");
        let woken = index.apply_rollout(&frame("web", 5, uses("other")));
        assert_eq!(woken, [key("active"), key("other")]);
        assert_eq!(users(&index).len(), 0);
        assert_eq!(index.remove_rollout(&key("web")), [key("other")]);
    }

    #[test]
    fn few_lists_of_an_engine_are_under_way_at_once() {
        let namespaces = (0..20).map(|number| format!("team-{number}")).collect();
        let scope = Scope { namespaces, ..Scope::default() };
        let mut shell = Shell::<Releases<ManagedRoute<6>>>::new(&scope, InterlockMode::default());
        let now = Timestamp::UNIX_EPOCH;
        for watch in shell.selections() {
            let part = shell.part(&watch).expect("it is one of its own");
            shell.observe_part(&part, &Seen::Init, now);
            shell.observe_part(&part, &Seen::InitDone, now);
        }
        let begun = |shell: &mut Shell<_>| -> Vec<_> {
            std::iter::from_fn(|| match shell.next_work(now)? {
                Work::Survey(listing) => Some(listing),
                _ => None,
            })
            .collect()
        };
        let first = begun(&mut shell);
        assert_eq!((first.len(), shell.next_due()), (4, None), "nothing is due beside them");
        shell.learn_survey(&first[0], Ok(Vec::new()), now);
        assert_eq!(shell.next_due(), Some(Timestamp::MIN));
        assert_eq!(begun(&mut shell).len(), 1, "one has ended");
    }

    #[test]
    fn a_kind_that_nobody_names_is_watched_where_a_mark_stands_there_at_the_start() {
        let at = |seconds: i64| Timestamp::from_second(seconds).unwrap();
        let begun = || {
            let (scope, interlock) = (Scope::default(), InterlockMode::default());
            let mut shell = Shell::<Releases<ManagedRoute<6>>>::new(&scope, interlock);
            shell.observe(&Source::Rollouts, &Seen::Init, at(0));
            shell.observe(&Source::Rollouts, &Seen::InitDone, at(0));
            shell
        };
        let listing = |shell: &mut Shell<_>, now: Timestamp| match shell.next_work(now) {
            Some(Work::Survey(listing)) => Some(listing),
            _ => None,
        };
        let mut shell = begun();
        let wanted = listing(&mut shell, at(0)).expect("each kind is listed once");
        assert_eq!((wanted.kind.name.as_ref(), &*wanted.namespace), ("VirtualService", ""));
        let refused =
            |class: Class| WriteError { class, message: "no".to_owned(), retry_after_secs: None };
        shell.learn_survey(&wanted, Err(refused(Class::Unreachable)), at(0));
        assert_eq!((listing(&mut shell, at(4)), shell.next_due()), (None, Some(at(5))));
        assert!(listing(&mut shell, at(5)).is_some(), "it is tried again");
        assert_eq!(shell.take_demands(), [], "nothing is known of a mark");
        let mut marked = frame("web", 3, json!({}));
        let note = json!({ "web": { "stable": "s", "canary": "c" } }).to_string();
        Arc::make_mut(&mut marked.meta.annotations).insert(annotation::TRAFFIC.to_owned(), note);
        shell.learn_survey(&wanted, Ok(vec![marked]), at(6));
        assert_eq!(shell.take_demands().len(), 1);
        for (what, reply) in [
            ("nothing is marked", Ok(vec![frame("web", 3, json!({}))])),
            ("we may not look", Err(refused(Class::Denied))),
        ] {
            let mut shell = begun();
            assert!(listing(&mut shell, at(0)).is_some());
            shell.learn_survey(&wanted, reply, at(0));
            assert_eq!(shell.take_demands(), [], "{what}");
            assert_eq!((listing(&mut shell, at(3600)), shell.next_due()), (None, None), "{what}");
        }
    }
}
