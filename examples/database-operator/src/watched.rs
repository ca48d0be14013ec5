//! What is watched for Databases, and what becomes of it?

use std::collections::BTreeMap;

use gradus_controller::families::Families;
use gradus_controller::watched::{Key, Reach, Reporter, Watch, Watched};
use gradus_engine::ask::{Answer, AskId, Recall};
use gradus_engine::decision::{Kind, ObjectRef};
use gradus_engine::family::Family;
use gradus_engine::frame::Frame;

use crate::api::{CLAIM, DATABASE, LABEL, SECRET, SERVICE, STATEFUL_SET};
use crate::engine::Databases;

impl Watched for Databases {
    /// A Database and everything with its label.
    type Index = Families;

    const REPORTER: Reporter =
        Reporter { component: "database-operator", manager: "database-operator" };

    fn watches(_: &str) -> Vec<Watch> {
        let labelled = |kind| Watch { kind, labels: Some(LABEL.to_owned()) };
        let children = [SECRET, SERVICE, STATEFUL_SET, CLAIM].map(labelled);
        [Watch { kind: DATABASE, labels: None }].into_iter().chain(children).collect()
    }

    fn needs_metadata_alone(kind: &Kind) -> bool {
        *kind == SECRET
    }

    fn reach(families: &mut Families, kind: &Kind, reach: Reach<'_>) -> Vec<Key> {
        families.reach(kind, reach)
    }

    fn apply(families: &mut Families, kind: &Kind, frame: &Frame) -> Vec<Key> {
        families.apply(LABEL, kind, frame)
    }

    fn remove(families: &mut Families, object: &ObjectRef) -> Vec<Key> {
        families.remove(object)
    }

    fn version(families: &Families, object: &ObjectRef) -> Option<u64> {
        families.version(object)
    }

    fn objects(families: &Families, kind: &Kind) -> Vec<ObjectRef> {
        families.objects(kind)
    }

    fn gather(
        families: &Families,
        key: &Key,
        answers: &BTreeMap<AskId, Answer>,
        recall: &Recall<()>,
    ) -> Option<Family> {
        families.gather(DATABASE, key, answers, recall)
    }
}
