//! An AnalysisRun or Experiment that an owner wants: one that is there already is used, else one is
//! created under the first free name. The same for whoever owns it, a Rollout or an Experiment.

use std::collections::BTreeMap;
use std::sync::Arc;

use gradus_api::names;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::ask::{Answer, Ask, AskId, Class, Failure, Reply};
use crate::decision::{Change, ChangeId, Kind, ObjectRef};
use crate::uid::Uid;
use crate::world::{RunPhase, RunView};

/// Who wants it.
#[derive(Clone, Debug)]
pub struct RunOwner<'a> {
    /// The namespace of both.
    pub namespace: &'a Arc<str>,
    /// The owner's uid.
    pub uid: Uid,
    /// The owner reference.
    pub reference: Value,
}

/// What is known when it is wanted.
#[derive(Clone, Copy, Debug)]
pub struct KnownRuns<'a> {
    /// The objects of the wanted kind that the owner controls.
    pub existing: &'a [Arc<RunView>],
    /// What the outside has answered.
    pub answers: &'a BTreeMap<AskId, Answer>,
    /// Changes that were refused.
    pub failed: &'a BTreeMap<ChangeId, Failure>,
    /// The time of this decision.
    pub now: Timestamp,
}

/// What is wanted.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// AnalysisRun or Experiment.
    pub kind: Kind,
    /// Its name, if that is free.
    pub base: String,
    /// What stands between the name and a number where it is not.
    pub joint: char,
    /// The revision it is about; empty where it is about none.
    pub hash: Arc<str>,
    /// Labels and annotations.
    pub metadata: Value,
    /// Its spec.
    pub spec: Value,
}

/// What came of it, and what must be asked for it.
#[derive(Clone, Debug)]
pub struct Obtained {
    /// The object, or what is missing.
    pub outcome: RunOutcome,
    /// Questions that this rests on, to be asked in every pass that comes here.
    pub asks: Vec<Ask>,
}

/// The wanted object, or what is missing.
#[derive(Clone, Debug)]
pub enum RunOutcome {
    /// It is there: it has the wanted spec, has not ended and is not being ended.
    Exists(Arc<RunView>),
    /// It is to be created by this change; the view is how it will look.
    Create(Arc<RunView>, Change),
    /// Whether a name is free is known once this object is read.
    Read(ObjectRef),
}

/// Finds or plans the wanted object.
pub fn obtain(owner: &RunOwner<'_>, known: &KnownRuns<'_>, wanted: Wanted) -> Obtained {
    let intent = RunView::intent(&wanted.kind, &wanted.spec);
    let mut asks = Vec::new();
    let mut number = 0;
    loop {
        let name: Arc<str> = match number {
            0 => wanted.base.as_str().into(),
            _ => format!("{}{}{number}", wanted.base, wanted.joint).into(),
        };
        number += 1;
        if let Some(existing) = known.existing.iter().find(|existing| existing.name == name) {
            if existing.is_usable() && existing.intent == intent {
                return Obtained { outcome: RunOutcome::Exists(Arc::clone(existing)), asks };
            }
            continue;
        }
        let target = ObjectRef::new(wanted.kind.clone(), owner.namespace, &name);
        match is_free(owner, known, &target) {
            Free::Yes => {
                let (view, change) = create(owner, known.now, wanted, target, intent);
                return Obtained { outcome: RunOutcome::Create(view, change), asks };
            }
            Free::Unknown => {
                asks.push(Ask::read(target.clone()));
                return Obtained { outcome: RunOutcome::Read(target), asks };
            }
            Free::No => asks.push(Ask::read(target)),
        }
    }
}

/// Is a name free that no object of the owner has?
enum Free {
    Yes,
    No,
    Unknown,
}

/// A name counts as free until a create is refused; then the object of that name is read.
fn is_free(owner: &RunOwner<'_>, known: &KnownRuns<'_>, target: &ObjectRef) -> Free {
    let refused = known.failed.get(&ChangeId::of("create", target));
    if refused.is_none_or(|failure| failure.class != Class::Exists) {
        return Free::Yes;
    }
    let answer = known.answers.get(&Ask::read(target.clone()).id);
    match answer.map(|answer| &answer.reply) {
        // One of ours: the index will show it as any other.
        Some(Ok(Reply::Object(Some(object)))) if is_controlled_by(object, owner.uid) => {
            Free::Unknown
        }
        Some(Ok(Reply::Object(Some(_)))) => Free::No,
        Some(Ok(_)) => Free::Yes,
        Some(Err(_)) | None => Free::Unknown,
    }
}

/// Is this the uid of the object's controller?
pub(crate) fn is_controlled_by(object: &Value, uid: Uid) -> bool {
    let mut owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    owners.any(|owner| {
        owner["controller"] == true && owner["uid"].as_str().map(Uid::parse) == Some(uid)
    })
}

fn create(
    owner: &RunOwner<'_>,
    now: Timestamp,
    wanted: Wanted,
    target: ObjectRef,
    intent: u64,
) -> (Arc<RunView>, Change) {
    let Wanted { kind, mut metadata, spec, hash, .. } = wanted;
    let view = Arc::new(RunView {
        name: Arc::clone(&target.name),
        uid: Uid::default(),
        version: 0,
        created: now.as_second(),
        deleting: false,
        hash,
        step: step_of(&metadata),
        phase: RunPhase::Unstarted,
        message: "".into(),
        is_ending: false,
        intent,
        parts: Vec::new(),
    });
    metadata["name"] = json!(&*target.name);
    metadata["namespace"] = json!(&**owner.namespace);
    metadata["ownerReferences"] = json!([owner.reference]);
    let body = json!({
        "apiVersion": names::API_VERSION,
        "kind": kind.name,
        "metadata": metadata,
        "spec": spec,
    });
    (view, Change::create(target, body))
}

fn step_of(metadata: &Value) -> Option<usize> {
    metadata["labels"][names::label::STEP_INDEX].as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    /// What is there | what was refused | what the read said | what comes of it.
    #[test]
    fn a_name_is_taken_that_is_free_and_a_run_that_does_the_same_is_used() {
        let namespace: Arc<str> = "shop".into();
        let uid = Uid::parse("00000000-0000-4000-8000-000000000001");
        let owner = RunOwner { namespace: &namespace, uid, reference: json!({ "name": "web" }) };
        let spec = json!({ "metrics": [] });
        let wanted = || Wanted {
            kind: kinds::ANALYSIS_RUN,
            base: "web-1".to_owned(),
            joint: '.',
            hash: "abc".into(),
            metadata: json!({ "labels": { names::label::STEP_INDEX: "2" } }),
            spec: spec.clone(),
        };
        let now = Timestamp::UNIX_EPOCH;
        let (answers, failed) = (BTreeMap::new(), BTreeMap::new());
        let nothing = KnownRuns { existing: &[], answers: &answers, failed: &failed, now };
        let RunOutcome::Create(first, change) = obtain(&owner, &nothing, wanted()).outcome else {
            panic!("nothing is there: it is created");
        };
        assert_eq!((&*first.name, first.step, &*first.hash), ("web-1", Some(2), "abc"));
        let crate::decision::Op::Create(body) = &change.op else { panic!("a create") };
        assert_eq!(body["metadata"]["ownerReferences"], json!([{ "name": "web" }]));
        assert_eq!(body["spec"], spec);

        let existing = [Arc::clone(&first)];
        let there = KnownRuns { existing: &existing, ..nothing };
        let found = obtain(&owner, &there, wanted()).outcome;
        assert!(matches!(found, RunOutcome::Exists(run) if run == first), "the same is used");

        let ended = [Arc::new(RunView { is_ending: true, ..(*first).clone() })];
        let found = obtain(&owner, &KnownRuns { existing: &ended, ..nothing }, wanted()).outcome;
        assert!(
            matches!(&found, RunOutcome::Create(run, _) if &*run.name == "web-1.1"),
            "one that is being ended is not used: {found:?}"
        );
        let other = Wanted { spec: json!({ "metrics": [{}] }), ..wanted() };
        let found = obtain(&owner, &there, other).outcome;
        assert!(
            matches!(&found, RunOutcome::Create(run, _) if &*run.name == "web-1.1"),
            "one that measures something else is not used: {found:?}"
        );
    }
}
