//! What do AnalysisRuns and Experiments have in common? How one is obtained, ended and cleaned up.

use std::sync::Arc;

use serde_json::json;

use super::objects::{Edit, Objects};
use super::plan::Proposal;
use super::replica_sets::Roles;
use crate::analysis::arguments::Subject;
use crate::ask::Ask;
use crate::decision::{Change, Kind, ObjectRef};
use crate::obtain::{KnownRuns, Obtained, RunOutcome, RunOwner};
use crate::world::{ReplicaSetView, RunPhase, RunView};

/// A run that was wanted: what getting it takes, and how that stands.
pub(super) struct Started {
    pub proposal: Proposal,
    pub outcome: StartOutcome,
}

/// How the start of a run or an Experiment stands.
pub(super) enum StartOutcome {
    /// It is there, or will be by what is proposed.
    Run(Arc<RunView>),
    /// Whether a name is free, or what it is made of, is known once this is read.
    Unread(ObjectRef),
    /// The spec makes none, as a field error.
    Broken(String),
}

/// What was obtained, as a proposal: a create, the questions it rests on, or the wait for an answer.
pub(super) fn started(obtained: Obtained) -> Started {
    let asked = obtained.asks.into_iter().fold(Proposal::default(), Proposal::ask);
    match obtained.outcome {
        RunOutcome::Exists(run) => Started { proposal: asked, outcome: StartOutcome::Run(run) },
        RunOutcome::Create(run, change) => {
            let proposal = asked.write(change, Edit::Run(Arc::clone(&run)));
            Started { proposal, outcome: StartOutcome::Run(run) }
        }
        RunOutcome::Read(target) => unread(asked, target),
    }
}

/// Nothing goes on before this object is read.
pub(super) fn unread(proposal: Proposal, target: ObjectRef) -> Started {
    let proposal = proposal.ask(Ask::read(target.clone()));
    Started { proposal, outcome: StartOutcome::Unread(target) }
}

/// The Rollout as the owner of what it starts.
pub(super) fn owner<'w>(objects: &Objects<'w>) -> RunOwner<'w> {
    let rollout = objects.rollout();
    RunOwner {
        namespace: &rollout.namespace,
        uid: rollout.uid,
        reference: rollout.owner_reference(),
    }
}

/// What is known of the objects of a kind.
pub(super) fn known<'d>(objects: &'d Objects<'_>, kind: &Kind) -> KnownRuns<'d> {
    KnownRuns {
        existing: objects.runs_of(kind),
        answers: &objects.world.answers,
        failed: &objects.world.recall.failed,
        now: objects.now,
    }
}

/// Asks an AnalysisRun or Experiment to end, unless it has ended or was asked already.
pub(super) fn end(objects: &Objects<'_>, kind: &Kind, run: &RunView) -> Proposal {
    if !run.is_usable() {
        return Proposal::default();
    }
    let target = reference(objects, kind, &run.name);
    let body = json!({ "spec": { "terminate": true } });
    let change = Change::patch(target, body, run.version).or_skip();
    let ending = RunView { is_ending: true, ..run.clone() };
    Proposal::default().write(change, Edit::Run(Arc::new(ending)))
}

/// AnalysisRuns and Experiments that are nobody's any more end. They are deleted with the ReplicaSet they judged, and when
/// there are too many: the oldest of those that have ended go first.
pub(super) fn clean_up(
    objects: &Objects<'_>,
    kind: &Kind,
    is_other: impl Fn(&RunView) -> bool,
) -> Proposal {
    let runs = objects.runs_of(kind).iter().filter(|run| is_other(run));
    let mut newest_first: Vec<&Arc<RunView>> = runs.collect();
    newest_first.sort_by(|one, other| (other.created, &other.name).cmp(&(one.created, &one.name)));
    let (mut successful, mut unsuccessful) = (0, 0);
    let left = newest_first.into_iter().filter(|run| !run.deleting).map(|run| {
        let is_judged = |set: &Arc<ReplicaSetView>| *set.hash == *run.hash && !set.deleting;
        let is_orphan = run.hash.is_empty() || !objects.sets.iter().any(is_judged);
        let is_beyond = match run.phase {
            RunPhase::Successful => {
                successful += 1;
                successful > objects.spec().successful_run_history_limit()
            }
            phase if phase.is_completed() => {
                unsuccessful += 1;
                unsuccessful > objects.spec().unsuccessful_run_history_limit()
            }
            _ => false,
        };
        if !is_orphan && !is_beyond {
            return end(objects, kind, run);
        }
        let target = reference(objects, kind, &run.name);
        let gone = RunView { deleting: true, ..(**run).clone() };
        let change = Change::delete(target, run.uid).or_skip();
        Proposal::default().write(change, Edit::Run(Arc::new(gone)))
    });
    left.collect()
}

/// The words for a verdict that gives an update up.
pub(super) fn failure_text(what: &str, run: &RunView) -> String {
    match &*run.message {
        "" => format!("{what} error/failed"),
        message => format!("{what} error/failed: {message}"),
    }
}

/// What arguments may speak about.
pub(super) fn subject<'d>(objects: &'d Objects<'_>, roles: Roles) -> Subject<'d> {
    Subject {
        rollout: objects.rollout(),
        status: &objects.status,
        latest: &objects.sets[roles.new].hash,
        stable: roles.stable.map_or("", |stable| &objects.sets[stable].hash),
    }
}

fn reference(objects: &Objects<'_>, kind: &Kind, name: &Arc<str>) -> ObjectRef {
    ObjectRef::new(kind.clone(), &objects.rollout().namespace, name)
}
