//! Which run or Experiment is waited for, and since when?

use std::sync::Arc;

use gradus_api::names::pause;
use gradus_api::rollout::status::RunStatus;
use jiff::Timestamp;

use super::super::objects::Objects;
use crate::decision::{Frees, Guard, Kind, ObjectRef, Why};
use crate::kinds;
use crate::world::{RunPhase, RunView};

/// An AnalysisRun or Experiment ended without a verdict: a person must decide.
pub(super) fn undecided(objects: &Objects<'_>) -> Option<Why> {
    let status = &objects.status;
    let pause = |reason: &str| status.pause_condition(reason);
    let of_run = pause(pause::INCONCLUSIVE_ANALYSIS_RUN);
    let began = of_run.or_else(|| pause(pause::INCONCLUSIVE_EXPERIMENT))?;
    let run = named(objects, |phase| phase == RunPhase::Inconclusive);
    let object = run.map_or_else(|| objects.rollout().reference(), |run| run.object);
    Some(Why {
        guard: Guard::Undecided,
        object,
        field: "status.phase".into(),
        since: Some(began.start_time.timestamp()),
        frees: Frees::Command("promote".into()),
    })
}

/// The AnalysisRun or Experiment that is waited for, since it was made.
pub(super) fn verdict(objects: &Objects<'_>) -> Option<Why> {
    let run = named(objects, |phase| !phase.is_completed())?;
    Some(Why {
        guard: Guard::Verdict { phase: run.phase.text().to_owned() },
        object: run.object,
        field: "status.phase".into(),
        since: run.began,
        frees: Frees::Cluster,
    })
}

/// A run or an Experiment that the status names.
struct Named {
    object: ObjectRef,
    phase: RunPhase,
    /// When it was made, as far as it is known.
    began: Option<Timestamp>,
}

/// The first run or Experiment of the status that stands like this; a background run holds nothing
/// up while it goes on.
fn named(objects: &Objects<'_>, stands: impl Fn(RunPhase) -> bool) -> Option<Named> {
    let (canary, blue_green) = (&objects.status.canary, &objects.status.blue_green);
    let slots = [
        &canary.current_step_analysis_run_status,
        &blue_green.pre_promotion_analysis_run_status,
        &blue_green.post_promotion_analysis_run_status,
    ];
    let phase = |run: &RunStatus| RunPhase::of(&run.status);
    let background = canary.current_background_analysis_run_status.as_ref();
    let ended = background.filter(|run| phase(run).is_completed());
    let mut runs = slots.into_iter().flatten().chain(ended);
    let of = |kind: Kind, list: &[Arc<RunView>], name: &str, phase: RunPhase| Named {
        object: ObjectRef::new(kind, &objects.rollout().namespace, &name.into()),
        phase,
        began: list.iter().find(|run| *run.name == *name).and_then(began),
    };
    if let Some(run) = runs.find(|run| stands(phase(run))) {
        return Some(of(kinds::ANALYSIS_RUN, &objects.runs, &run.name, phase(run)));
    }
    let is_named = |run: &&Arc<RunView>| *run.name == *canary.current_experiment;
    let run = objects.experiments.iter().find(is_named).filter(|run| stands(run.phase))?;
    Some(of(kinds::EXPERIMENT, &objects.experiments, &run.name, run.phase))
}

/// When an AnalysisRun or Experiment was made; nobody knows where the server did not say.
fn began(run: &Arc<RunView>) -> Option<Timestamp> {
    Timestamp::from_second(run.created).ok().filter(|_| run.created != 0)
}
