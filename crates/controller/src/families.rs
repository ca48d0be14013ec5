//! What does the loop remember for an engine whose objects own others, told by a label?

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gradus_engine::Engine;
use gradus_engine::ask::{Answer, AskId, Recall};
use gradus_engine::decision::{Kind, ObjectRef};
use gradus_engine::family::Family;
use gradus_engine::frame::Frame;

use crate::watched::{Key, Reach, Scope, Selection, Shelf, Watched};

/// An engine whose World is a [`Family`]: what belongs to an object carries a label with its name.
/// That is all the loop must know of it.
pub trait OfFamily: Engine<World = Family<<Self as Engine>::Memo>, Memo: Clone> {
    /// On everything that belongs to an object: its name.
    const LABEL: &'static str;
    /// The kinds of what belongs to it.
    const MEMBERS: &'static [Kind];
    /// Kinds of which nothing is needed but metadata.
    const METADATA_ALONE: &'static [Kind] = &[];
}

impl<E: OfFamily> Watched for E {
    type Index = Families;

    type Source = Source;

    fn sources() -> Vec<Source> {
        let members = E::MEMBERS.iter().cloned().map(Source::Member);
        std::iter::once(Source::Head).chain(members).collect()
    }

    fn kind_of(source: &Source) -> Kind {
        match source {
            Source::Head => E::KIND,
            Source::Member(kind) => kind.clone(),
        }
    }

    fn selection(source: &Source, scope: &Scope) -> Option<Selection> {
        let kind = Self::kind_of(source);
        let metadata_alone = E::METADATA_ALONE.contains(&kind);
        let selection = match source {
            Source::Head => scope.all(kind),
            Source::Member(_) => scope.labelled(kind, E::LABEL),
        };
        Some(Selection { metadata_alone, ..selection })
    }

    fn shelf(source: &Source) -> Shelf<Families> {
        match source {
            Source::Head | Source::Member(_) => Shelf {
                apply: |families, kind, frame| families.apply(E::LABEL, kind, frame),
                remove: Families::remove,
                version: Families::version,
                objects: Families::objects,
            },
        }
    }

    fn reach(families: &mut Families, source: &Source, reach: Reach<'_>) -> Vec<Key> {
        families.reach(&Self::kind_of(source), reach)
    }

    fn gather(
        families: &Families,
        key: &Key,
        answers: &BTreeMap<AskId, Answer>,
        recall: &Recall<E::Memo>,
    ) -> Option<E::World> {
        families.gather(E::KIND, key, answers, recall)
    }
}

/// What is watched for a family.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The objects that the engine decides about.
    Head,
    /// Objects of this kind that belong to them.
    Member(Kind),
}

/// Objects and what belongs to them: an index for engines whose World is a [`Family`].
#[derive(Default)]
pub struct Families {
    /// Each with the family it belongs to.
    objects: BTreeMap<ObjectRef, (Key, Arc<Frame>)>,
    members: BTreeMap<Key, BTreeSet<ObjectRef>>,
    unreadable: BTreeMap<String, String>,
}

impl Families {
    /// Takes in an object. It belongs to the family that its label names, or else heads its own.
    pub fn apply(&mut self, label: &str, kind: &Kind, frame: &Frame) -> Vec<Key> {
        let (namespace, name) = (&frame.meta.namespace, &frame.meta.name);
        let object = ObjectRef::new(kind.clone(), namespace, name);
        let head = frame.meta.labels.get(label).map_or(Arc::clone(name), |head| head[..].into());
        let key = Key::new(namespace, &head);
        let mut woken = self.remove(&object);
        self.objects.insert(object.clone(), (key.clone(), Arc::new(frame.clone())));
        self.members.entry(key.clone()).or_default().insert(object);
        woken.retain(|earlier| *earlier != key);
        woken.push(key);
        woken
    }

    /// Forgets an object.
    pub fn remove(&mut self, object: &ObjectRef) -> Vec<Key> {
        let Some((key, _)) = self.objects.remove(object) else { return Vec::new() };
        if let Some(members) = self.members.get_mut(&key) {
            members.remove(object);
            if members.is_empty() {
                self.members.remove(&key);
            }
        }
        vec![key]
    }

    /// Takes in that a kind is listed, or cannot be read: every family may need it.
    pub fn reach(&mut self, kind: &Kind, reach: Reach<'_>) -> Vec<Key> {
        match reach {
            Reach::Listed => self.unreadable.remove(&*kind.plural),
            Reach::Unreadable(why) => {
                self.unreadable.insert(kind.plural.to_string(), why.to_owned())
            }
        };
        self.members.keys().cloned().collect()
    }

    /// The version of an object.
    pub fn version(&self, object: &ObjectRef) -> Option<u64> {
        self.objects.get(object).map(|(_, frame)| frame.meta.version)
    }

    /// All objects of a kind.
    pub fn objects(&self, kind: &Kind) -> Vec<ObjectRef> {
        self.objects.keys().filter(|object| object.kind == *kind).cloned().collect()
    }

    /// A family, if its head is there.
    pub fn gather<M: Clone>(
        &self,
        kind: Kind,
        key: &Key,
        answers: &BTreeMap<AskId, Answer>,
        recall: &Recall<M>,
    ) -> Option<Family<M>> {
        let head = ObjectRef::new(kind.clone(), &key.namespace, &key.name);
        let frame = |object: &ObjectRef| Some(Arc::clone(&self.objects.get(object)?.1));
        let others = self.members.get(key)?.iter().filter(|object| **object != head);
        let named = |object: &ObjectRef| {
            Some((Family::<M>::name_of(&object.kind, &object.name), frame(object)?))
        };
        Some(Family {
            kind,
            head: frame(&head)?,
            members: others.filter_map(named).collect(),
            unreadable: self.unreadable.clone(),
            answers: answers.clone(),
            recall: recall.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const HEAD: Kind = Kind::new("example.dev", "v1", "House", "houses");
    const ROOM: Kind = Kind::new("example.dev", "v1", "Room", "rooms");

    fn frame(name: &str, house: Option<&str>) -> Frame {
        let labels = house.map_or(json!({}), |house| json!({ "house": house }));
        let meta = json!({ "name": name, "namespace": "a", "labels": labels });
        serde_json::from_value(json!({ "metadata": meta })).unwrap()
    }

    fn key(name: &str) -> Key {
        Key { namespace: "a".into(), name: name.into() }
    }

    #[test]
    fn what_a_label_names_belongs_together_and_wakes_both_when_it_moves() {
        let mut families = Families::default();
        let (none, recall) = (BTreeMap::new(), Recall::<()>::default());
        assert_eq!(families.apply("house", &HEAD, &frame("one", None)), [key("one")]);
        assert_eq!(families.apply("house", &ROOM, &frame("attic", Some("one"))), [key("one")]);
        let family = families.gather(HEAD, &key("one"), &none, &recall).unwrap();
        assert!(family.member(&ROOM, "attic").is_some());
        let moved = families.apply("house", &ROOM, &frame("attic", Some("two")));
        assert_eq!(moved, [key("one"), key("two")]);
        let family = families.gather(HEAD, &key("one"), &none, &recall).unwrap();
        assert!(family.members.is_empty());
        assert!(families.gather(HEAD, &key("two"), &none, &recall).is_none(), "without a head");
    }
}
