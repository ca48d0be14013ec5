//! What do AnalysisRuns and Experiments have in common? How one is obtained, ended and cleaned up.

use std::sync::Arc;

use serde_json::json;

use super::draft::{Draft, Scratch};
use super::replica_sets::Roles;
use crate::analysis::arguments::Subject;
use crate::ask::Ask;
use crate::decision::{Change, Kind, ObjectRef};
use crate::kinds;
use crate::obtain::{Known, Obtained, Outcome, Owner};
use crate::world::{RunPhase, RunView};

/// Puts what was obtained into the plan: a create, the questions it rests on, or the wait for an
/// answer. None while it is not known whether a name is free.
pub(super) fn plan<'w>(
    draft: Draft<'w>,
    kind: &Kind,
    obtained: Obtained,
) -> (Draft<'w>, Option<Arc<RunView>>) {
    let mut draft = obtained.asks.into_iter().fold(draft, Scratch::ask);
    match obtained.outcome {
        Outcome::Exists(run) => (draft, Some(run)),
        Outcome::Create(run, change) => {
            draft.changes.push(change);
            replace(&mut draft, kind, (*run).clone());
            (draft, Some(run))
        }
        Outcome::Read(target) => (wait_for(draft, target), None),
    }
}

/// The Rollout as the owner of what it starts.
pub(super) fn owner<'w>(draft: &Draft<'w>) -> Owner<'w> {
    let rollout = draft.rollout();
    Owner { namespace: &rollout.namespace, uid: rollout.uid, reference: rollout.owner_reference() }
}

/// What is known of the objects of a kind.
pub(super) fn known<'d>(draft: &'d Draft<'_>, kind: &Kind) -> Known<'d> {
    Known {
        existing: list(draft, kind),
        answers: &draft.world.answers,
        failed: &draft.world.recall.failed,
        now: draft.now,
    }
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
