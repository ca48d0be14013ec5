//! What do AnalysisRuns and Experiments have in common? How one is obtained, ended and cleaned up.

use std::sync::Arc;

use gradus_api::names;
use serde_json::{Value, json};

use super::draft::Draft;
use super::replica_sets::Roles;
use crate::analysis::arguments::Subject;
use crate::ask::{Ask, Class, Reply};
use crate::decision::{Change, ChangeId, Kind, ObjectRef};
use crate::kinds;
use crate::uid::Uid;
use crate::world::{RunPhase, RunView};

/// An AnalysisRun or Experiment that should be there.
pub(super) struct Wanted {
    /// AnalysisRun or Experiment.
    pub kind: Kind,
    /// Its name, if that is free.
    pub base: String,
    /// What stands between the name and a number where it is not.
    pub joint: char,
    /// Labels and annotations.
    pub metadata: Value,
    /// What it tries.
    pub spec: Value,
}

/// An AnalysisRun or Experiment of ours that tries the same and has not ended is used; else one is planned under the first
/// free name. None while it is not known whether a name is free.
pub(super) fn obtain<'w>(
    draft: Draft<'w>,
    roles: Roles,
    wanted: Wanted,
) -> (Draft<'w>, Option<Arc<RunView>>) {
    let intent = RunView::intent(&wanted.kind, &wanted.spec);
    let mut draft = draft;
    for number in 0.. {
        let name: Arc<str> = match number {
            0 => wanted.base.as_str().into(),
            _ => format!("{}{}{number}", wanted.base, wanted.joint).into(),
        };
        let known = list(&draft, &wanted.kind).iter().find(|known| known.name == name).cloned();
        if let Some(known) = known {
            if known.is_usable() && known.intent == intent {
                return (draft, Some(known));
            }
            continue;
        }
        let target = reference(&draft, &wanted.kind, &name);
        match is_free(&draft, &target) {
            Free::Yes => return create(draft, roles, wanted, name, intent),
            Free::Unknown => return (wait_for(draft, target), None),
            Free::No => draft = draft.ask(Ask::read(target)),
        }
    }
    (draft, None)
}

/// Nothing goes on before this object is read.
pub(super) fn wait_for(draft: Draft<'_>, target: ObjectRef) -> Draft<'_> {
    let mut draft = draft.ask(Ask::read(target.clone()));
    draft.found.unread = Some(target);
    draft
}

/// Asks an AnalysisRun or Experiment to end, unless it has ended or was asked already.
pub(super) fn end<'w>(draft: Draft<'w>, kind: &Kind, run: &RunView) -> Draft<'w> {
    if !run.is_usable() {
        return draft;
    }
    let target = reference(&draft, kind, &run.name);
    let body = json!({ "spec": { "terminate": true } });
    let mut draft = draft;
    draft.changes.push(Change::patch(target, body, run.version).or_skip());
    let mut changed = run.clone();
    changed.is_ending = true;
    replace(&mut draft, kind, changed);
    draft
}

/// AnalysisRuns and Experiments that are nobody's any more end. They are deleted with the ReplicaSet they judged, and when
/// there are too many: the oldest of those that have ended go first.
pub(super) fn clean_up<'w>(draft: Draft<'w>, kind: &Kind, others: Vec<Arc<RunView>>) -> Draft<'w> {
    let mut newest_first = others;
    newest_first.sort_by(|one, other| (other.created, &other.name).cmp(&(one.created, &one.name)));
    let (mut successful, mut unsuccessful) = (0, 0);
    let mut draft = draft;
    for run in newest_first.iter().filter(|run| !run.deleting) {
        let is_judged =
            |at: &usize| *draft.sets[*at].hash == *run.hash && !draft.sets[*at].deleting;
        let is_orphan = run.hash.is_empty() || !(0..draft.sets.len()).any(|at| is_judged(&at));
        let is_beyond = match run.phase {
            RunPhase::Successful => {
                successful += 1;
                successful > draft.spec().successful_run_history_limit()
            }
            phase if phase.is_completed() => {
                unsuccessful += 1;
                unsuccessful > draft.spec().unsuccessful_run_history_limit()
            }
            _ => false,
        };
        draft = if is_orphan || is_beyond {
            let target = reference(&draft, kind, &run.name);
            draft.changes.push(Change::delete(target, run.uid).or_skip());
            let changed = RunView { deleting: true, ..(**run).clone() };
            replace(&mut draft, kind, changed);
            draft
        } else {
            end(draft, kind, run)
        };
    }
    draft
}

/// The words for a verdict that gives an update up.
pub(super) fn failure_text(what: &str, run: &RunView) -> String {
    match &*run.message {
        "" => format!("{what} error/failed"),
        message => format!("{what} error/failed: {message}"),
    }
}

/// What arguments may speak about.
pub(super) fn subject<'d>(draft: &'d Draft<'_>, roles: Roles) -> Subject<'d> {
    Subject {
        rollout: draft.rollout(),
        status: &draft.status,
        latest: &draft.sets[roles.new].hash,
        stable: roles.stable.map_or("", |stable| &draft.sets[stable].hash),
    }
}

fn reference(draft: &Draft<'_>, kind: &Kind, name: &Arc<str>) -> ObjectRef {
    ObjectRef::new(kind.clone(), &draft.rollout().namespace, name)
}

fn list<'d>(draft: &'d Draft<'_>, kind: &Kind) -> &'d [Arc<RunView>] {
    if *kind == kinds::EXPERIMENT { &draft.experiments } else { &draft.runs }
}

fn replace(draft: &mut Draft<'_>, kind: &Kind, run: RunView) {
    let list = if *kind == kinds::EXPERIMENT { &mut draft.experiments } else { &mut draft.runs };
    match list.iter_mut().find(|known| known.name == run.name) {
        Some(known) => *known = Arc::new(run),
        None => list.push(Arc::new(run)),
    }
}

/// Is a name free that no AnalysisRun or Experiment of ours has?
enum Free {
    Yes,
    No,
    Unknown,
}

/// A name is taken for free until a create is refused; then whoever has it is looked at.
fn is_free(draft: &Draft<'_>, target: &ObjectRef) -> Free {
    let refused = draft.world.recall.failed.get(&ChangeId::of("create", target));
    if refused.is_none_or(|failure| failure.class != Class::Exists) {
        return Free::Yes;
    }
    let answer = draft.world.answers.get(&Ask::read(target.clone()).id);
    match answer.map(|answer| &answer.reply) {
        // One of ours: the index will show it as any other.
        Some(Ok(Reply::Object(Some(object)))) if is_ours(draft, object) => Free::Unknown,
        Some(Ok(Reply::Object(Some(_)))) => Free::No,
        Some(Ok(_)) => Free::Yes,
        Some(Err(_)) | None => Free::Unknown,
    }
}

fn is_ours(draft: &Draft<'_>, object: &Value) -> bool {
    let mut owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    owners.any(|owner| {
        owner["controller"] == true
            && owner["uid"].as_str().map(Uid::parse) == Some(draft.rollout().uid)
    })
}

fn create<'w>(
    draft: Draft<'w>,
    roles: Roles,
    wanted: Wanted,
    name: Arc<str>,
    intent: u64,
) -> (Draft<'w>, Option<Arc<RunView>>) {
    let Wanted { kind, mut metadata, spec, .. } = wanted;
    let rollout = draft.rollout();
    let run = Arc::new(RunView {
        name: Arc::clone(&name),
        uid: Uid::default(),
        version: 0,
        created: draft.now.as_second(),
        deleting: false,
        hash: Arc::clone(&draft.sets[roles.new].hash),
        step: step_of(&metadata),
        phase: RunPhase::Unstarted,
        message: "".into(),
        is_ending: false,
        intent,
        parts: Vec::new(),
    });
    metadata["name"] = json!(&*name);
    metadata["namespace"] = json!(&*rollout.namespace);
    metadata["ownerReferences"] = json!([rollout.owner_reference()]);
    let body = json!({
        "apiVersion": names::API_VERSION,
        "kind": kind.name,
        "metadata": metadata,
        "spec": spec,
    });
    let target = reference(&draft, &kind, &name);
    let mut draft = draft;
    draft.changes.push(Change::create(target, body));
    replace(&mut draft, &kind, (*run).clone());
    (draft, Some(run))
}

fn step_of(metadata: &Value) -> Option<usize> {
    metadata["labels"][names::label::STEP_INDEX].as_str()?.parse().ok()
}
