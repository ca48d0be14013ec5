//! Which run or Experiment is waited for, and since when?

use std::sync::Arc;

use gradus_api::names::pause;
use gradus_api::rollout::status::RunStatus;
use jiff::Timestamp;

use super::super::draft::Draft;
use crate::decision::{Frees, Guard, Kind, ObjectRef, Why};
use crate::kinds;
use crate::world::{TrialPhase, TrialView};

/// A trial ended without a verdict: a person must decide.
pub(super) fn undecided(draft: &Draft<'_>) -> Option<Why> {
    let status = &draft.status;
    let pause = |reason: &str| status.pause_condition(reason);
    let of_run = pause(pause::INCONCLUSIVE_ANALYSIS_RUN);
    let began = of_run.or_else(|| pause(pause::INCONCLUSIVE_EXPERIMENT))?;
    let trial = named(draft, |phase| phase == TrialPhase::Inconclusive);
    let object = trial.map_or_else(|| draft.rollout().reference(), |trial| trial.object);
    Some(Why {
        guard: Guard::Undecided,
        object,
        field: "status.phase".into(),
        since: Some(began.start_time.timestamp()),
        frees: Frees::Command("promote".into()),
    })
}

/// The trial whose verdict is awaited, since it was made.
pub(super) fn verdict(draft: &Draft<'_>) -> Option<Why> {
    let trial = named(draft, |phase| !phase.is_completed())?;
    Some(Why {
        guard: Guard::Verdict { phase: trial.phase.text().to_owned() },
        object: trial.object,
        field: "status.phase".into(),
        since: trial.began,
        frees: Frees::Cluster,
    })
}

/// A run or an Experiment that the status names.
struct Named {
    object: ObjectRef,
    phase: TrialPhase,
    /// When it was made, as far as it is known.
    began: Option<Timestamp>,
}

/// The first run or Experiment of the status that stands like this; a background run holds nothing
/// up while it goes on.
fn named(draft: &Draft<'_>, stands: impl Fn(TrialPhase) -> bool) -> Option<Named> {
    let (canary, blue_green) = (&draft.status.canary, &draft.status.blue_green);
    let slots = [
        &canary.current_step_analysis_run_status,
        &blue_green.pre_promotion_analysis_run_status,
        &blue_green.post_promotion_analysis_run_status,
    ];
    let phase = |run: &RunStatus| TrialPhase::of(&run.status);
    let background = canary.current_background_analysis_run_status.as_ref();
    let ended = background.filter(|run| phase(run).is_completed());
    let mut runs = slots.into_iter().flatten().chain(ended);
    let of = |kind: Kind, list: &[Arc<TrialView>], name: &str, phase: TrialPhase| Named {
        object: ObjectRef::new(kind, &draft.rollout().namespace, &name.into()),
        phase,
        began: list.iter().find(|trial| *trial.name == *name).and_then(began),
    };
    if let Some(run) = runs.find(|run| stands(phase(run))) {
        return Some(of(kinds::ANALYSIS_RUN, &draft.runs, &run.name, phase(run)));
    }
    let is_named = |trial: &&Arc<TrialView>| *trial.name == *canary.current_experiment;
    let trial = draft.experiments.iter().find(is_named).filter(|trial| stands(trial.phase))?;
    Some(of(kinds::EXPERIMENT, &draft.experiments, &trial.name, trial.phase))
}

/// When a trial was made; nobody knows where the server did not say.
fn began(trial: &Arc<TrialView>) -> Option<Timestamp> {
    Timestamp::from_second(trial.created).ok().filter(|_| trial.created != 0)
}
