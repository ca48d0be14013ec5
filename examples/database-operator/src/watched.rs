//! What is watched for Databases, which of them does an event wake, and what is remembered?

use std::collections::BTreeMap;
use std::sync::Arc;

use gradus_controller::watched::{Key, Reach, Reporter, Watch, Watched};
use gradus_engine::ask::{Answer, AskId, Recall};
use gradus_engine::decision::{Event, Kind, ObjectRef};
use gradus_engine::frame::Frame;

use crate::api::{CLAIM, DATABASE, LABEL, SECRET, SERVICE, STATEFUL_SET};
use crate::children::place;
use crate::engine::Databases;
use crate::world::{Child, Database, World};

/// All Databases and everything with our label.
#[derive(Default)]
pub struct Index {
    databases: BTreeMap<Key, Arc<Database>>,
    /// With the name of the Database each belongs to.
    children: BTreeMap<ObjectRef, (Key, Arc<Child>)>,
    /// Kinds that cannot be read, and why.
    unreadable: BTreeMap<Kind, String>,
}

impl Watched for Databases {
    type Index = Index;

    const REPORTER: Reporter =
        Reporter { component: "database-operator", manager: "database-operator" };

    fn watches(_: &str) -> Vec<Watch> {
        let labelled = |kind| Watch { kind, labels: Some(LABEL.to_owned()) };
        let mut watches = vec![Watch { kind: DATABASE, labels: None }];
        watches.extend([SECRET, SERVICE, STATEFUL_SET, CLAIM].map(labelled));
        watches
    }

    fn needs_metadata_alone(kind: &Kind) -> bool {
        *kind == SECRET
    }

    fn reach(index: &mut Index, kind: &Kind, reach: Reach<'_>) -> Vec<Key> {
        match reach {
            Reach::Listed => index.unreadable.remove(kind),
            Reach::Unreadable(why) => index.unreadable.insert(kind.clone(), why.to_owned()),
        };
        index.databases.keys().cloned().collect()
    }

    fn apply(index: &mut Index, kind: &Kind, frame: &Frame) -> Vec<Key> {
        let (namespace, name) = (&frame.meta.namespace, &frame.meta.name);
        if *kind == DATABASE {
            let key = Key::new(namespace, name);
            index.databases.insert(key.clone(), Arc::new(Database::read(frame)));
            return vec![key];
        }
        let object = ObjectRef::new(kind.clone(), namespace, name);
        let owner = frame.meta.labels.get(LABEL).map_or("", String::as_str);
        let key = Key::new(namespace, &owner.into());
        let child = (key.clone(), Arc::new(Child::read(frame)));
        let earlier = index.children.insert(object, child).map(|(earlier, _)| earlier);
        earlier.into_iter().filter(|earlier| *earlier != key).chain([key.clone()]).collect()
    }

    fn remove(index: &mut Index, object: &ObjectRef) -> Vec<Key> {
        if object.kind == DATABASE {
            let key = Key::new(&object.namespace, &object.name);
            return index.databases.remove(&key).map(|_| key).into_iter().collect();
        }
        index.children.remove(object).map(|(key, _)| key).into_iter().collect()
    }

    fn version(index: &Index, object: &ObjectRef) -> Option<u64> {
        if object.kind == DATABASE {
            let key = Key::new(&object.namespace, &object.name);
            return index.databases.get(&key).map(|database| database.version);
        }
        index.children.get(object).map(|(_, child)| child.version)
    }

    fn objects(index: &Index, kind: &Kind) -> Vec<ObjectRef> {
        if *kind == DATABASE {
            return index.databases.values().map(|one| one.object.clone()).collect();
        }
        index.children.keys().filter(|object| object.kind == *kind).cloned().collect()
    }

    fn gather(
        index: &Index,
        key: &Key,
        answers: &BTreeMap<AskId, Answer>,
        recall: &Recall<()>,
    ) -> Option<World> {
        let database = Arc::clone(index.databases.get(key)?);
        let child = |kind| {
            let found = index.children.get(&place(&database, kind));
            found.filter(|(owner, _)| owner == key).map(|(_, child)| Arc::clone(child))
        };
        Some(World {
            secret: child(SECRET),
            service: child(SERVICE),
            stateful_set: child(STATEFUL_SET),
            claim: child(CLAIM),
            unreadable: index.unreadable.clone(),
            answers: answers.clone(),
            recall: recall.clone(),
            database,
        })
    }

    fn is_urgent(_: &World) -> bool {
        false
    }

    fn farewell(_: &ObjectRef) -> Option<Event> {
        None
    }
}
