//! For every thing that is not done now: which guard holds it, since when, and what would free it?

use std::sync::Arc;

use gradus_api::names::{condition, event, pause};
use gradus_api::rollout::StepKind;
use gradus_api::rollout::status::RunStatus;
use jiff::Timestamp;

use super::blue_green;
use super::canary::pause_end;
use super::draft::Draft;
use super::metadata;
use super::plugin;
use super::replica_sets::{self, Roles};
use super::restart;
use super::step::{self, Missing};
use super::verify;
use super::weights;
use crate::decision::{Frees, Guard, ObjectRef, Why};
use crate::kinds;
use crate::world::{TrialPhase, TrialView};

/// What holds the rollout as the draft leaves it; empty when nothing does.
pub(super) fn explain(draft: &Draft<'_>) -> Vec<Why> {
    let mut found = update(draft);
    if let Some(new) = replica_sets::find_new(draft.rollout(), &draft.sets) {
        let stable = replica_sets::find_stable(&draft.status.stable_rs, &draft.sets);
        let roles = Roles { new, stable };
        found.extend(restart::explain(draft, roles));
        found.extend(metadata::explain(draft, roles));
    }
    found
}

/// What holds the update itself.
fn update(draft: &Draft<'_>) -> Vec<Why> {
    let rollout = draft.rollout().reference();
    let status = &draft.status;
    let mut found = Vec::new();
    if draft.spec().paused {
        found.push(Why {
            guard: Guard::SpecPaused,
            object: rollout.clone(),
            field: "spec.paused".into(),
            since: transition(draft, condition::PAUSED),
            frees: Frees::Command("promote".into()),
        });
    }
    let Some(new) = replica_sets::find_new(draft.rollout(), &draft.sets) else { return found };
    let roles = Roles { new, stable: replica_sets::find_stable(&status.stable_rs, &draft.sets) };
    let held = status.condition(condition::HELD);
    let is_routing =
        |reason: &str| reason == event::TRAFFIC_ROUTING_ERROR || verify::is_reason(reason);
    if let Some(known) = held.filter(|known| is_routing(&known.reason)) {
        found.push(Why {
            guard: Guard::Router { message: known.message.to_string() },
            object: rollout.clone(),
            field: "spec.strategy.canary.trafficRouting".into(),
            since: Some(known.last_transition_time.timestamp()),
            frees: Frees::Cluster,
        });
    }
    if status.abort {
        let message = status.message.to_string();
        found.push(Why {
            guard: Guard::Aborted { message },
            object: rollout,
            field: "status.abort".into(),
            since: status.aborted_at.map(|time| time.timestamp()),
            frees: Frees::Command("retry rollout".into()),
        });
        if !draft.is_blue_green() {
            found.extend(missing(draft, step::missing_counts(draft, roles)));
        }
        return found;
    }
    if let Some(unread) = &draft.found.unread {
        found.push(unanswered(unread));
    } else if let Some(undecided) = undecided(draft) {
        found.push(undecided);
    } else if draft.is_blue_green() {
        found.extend(switch(draft, roles));
    } else {
        found.extend(missing(draft, weights::missing(draft, roles)));
        found.extend(verify::explain(draft));
        found.extend(step_or_promotion(draft, roles));
    }
    found
}

fn unanswered(target: &ObjectRef) -> Why {
    Why {
        guard: Guard::Unanswered { question: format!("read {target}") },
        object: target.clone(),
        field: "".into(),
        since: None,
        frees: Frees::Cluster,
    }
}

/// A trial ended without a verdict: a person must decide.
fn undecided(draft: &Draft<'_>) -> Option<Why> {
    let status = &draft.status;
    let pause = |reason: &str| status.pause_condition(reason);
    let of_run = pause(pause::INCONCLUSIVE_ANALYSIS_RUN);
    let began = of_run.or_else(|| pause(pause::INCONCLUSIVE_EXPERIMENT))?;
    let run = status_of_run(draft, |phase| phase == TrialPhase::Inconclusive);
    let object = run.map_or_else(|| draft.rollout().reference(), |(object, _)| object);
    Some(Why {
        guard: Guard::Undecided,
        object,
        field: "status.phase".into(),
        since: Some(began.start_time.timestamp()),
        frees: Frees::Command("promote".into()),
    })
}

/// The trial whose verdict is awaited.
fn verdict(draft: &Draft<'_>) -> Option<Why> {
    let (object, phase) = status_of_run(draft, |phase| !phase.is_completed())?;
    Some(Why {
        guard: Guard::Verdict { phase: phase.text().to_owned() },
        object,
        field: "status.phase".into(),
        since: transition(draft, condition::PROGRESSING),
        frees: Frees::Cluster,
    })
}

/// The first run or Experiment of the status that stands like this; a background run holds nothing
/// up while it goes on.
fn status_of_run(
    draft: &Draft<'_>,
    stands: impl Fn(TrialPhase) -> bool,
) -> Option<(ObjectRef, TrialPhase)> {
    let (canary, blue_green) = (&draft.status.canary, &draft.status.blue_green);
    let slots = [
        &canary.current_step_analysis_run_status,
        &blue_green.pre_promotion_analysis_run_status,
        &blue_green.post_promotion_analysis_run_status,
    ];
    let background = canary.current_background_analysis_run_status.as_ref();
    let ended = |run: &&RunStatus| TrialPhase::of(&run.status).is_completed();
    let runs = slots.into_iter().flatten().chain(background.filter(ended));
    let phase = |run: &RunStatus| TrialPhase::of(&run.status);
    let of = |kind, name: &str| ObjectRef::new(kind, &draft.rollout().namespace, &name.into());
    let run = runs.into_iter().find(|run| stands(phase(run)));
    let run = run.map(|run| (of(kinds::ANALYSIS_RUN, &run.name), phase(run)));
    run.or_else(|| {
        let named = |trial: &&Arc<TrialView>| *trial.name == *canary.current_experiment;
        let trial = draft.experiments.iter().find(named).filter(|trial| stands(trial.phase))?;
        Some((of(kinds::EXPERIMENT, &trial.name), trial.phase))
    })
}

/// What keeps a blue-green rollout from switching.
fn switch(draft: &Draft<'_>, roles: Roles) -> Vec<Why> {
    if let Some(began) = draft.status.pause_condition(pause::BLUE_GREEN_PAUSE) {
        let end = blue_green::pause_end(draft);
        return vec![Why {
            guard: Guard::SwitchPause,
            object: draft.rollout().reference(),
            field: "spec.strategy.blueGreen.autoPromotionEnabled".into(),
            since: Some(began.start_time.timestamp()),
            frees: end.map_or(Frees::Command("promote".into()), Frees::At),
        }];
    }
    let (at, wanted) = (roles.new, draft.replicas());
    if let Some(verdict) = verdict(draft) {
        return vec![verdict];
    }
    let waits = if !draft.sets[at].is_observed() {
        Some(Missing::Observation(at))
    } else if draft.sets[at].size != wanted {
        Some(Missing::Size { at, wanted })
    } else if draft.sets[at].available() < wanted {
        Some(Missing::Available { at, wanted })
    } else {
        None
    };
    missing(draft, waits)
}

fn step_or_promotion(draft: &Draft<'_>, roles: Roles) -> Vec<Why> {
    let status = &draft.status;
    let is_promoted = status.stable_rs == status.current_pod_hash;
    let current = draft.current_step().filter(|_| !is_promoted && !status.promote_full);
    let Some((index, current)) = current else {
        let waits =
            step::missing_promotion(draft, roles).or_else(|| step::missing_counts(draft, roles));
        return missing(draft, waits);
    };
    match current.kind() {
        StepKind::Pause(_) => {
            let began = status.pause_condition(pause::CANARY_PAUSE_STEP);
            vec![Why {
                guard: Guard::PauseStep { index, count: draft.steps().len() },
                object: draft.rollout().reference(),
                field: format!("spec.strategy.canary.steps[{index}].pause").into(),
                since: began.map(|pause| pause.start_time.timestamp()),
                frees: pause_end(draft).map_or(Frees::Command("promote".into()), Frees::At),
            }]
        }
        StepKind::Analysis(_) | StepKind::Experiment(_) => verdict(draft).into_iter().collect(),
        StepKind::Plugin(_) => plugin::explain(draft),
        _ => missing(draft, step::missing_counts(draft, roles)),
    }
}

fn missing(draft: &Draft<'_>, missing: Option<Missing>) -> Vec<Why> {
    let since = transition(draft, condition::PROGRESSING);
    let about = |at: usize, guard: Guard, field: &'static str| Why {
        guard,
        object: draft.rollout().replica_set(&draft.sets[at].name),
        field: field.into(),
        since,
        frees: Frees::Cluster,
    };
    let why = match missing {
        None => return Vec::new(),
        Some(Missing::Observation(at)) => {
            about(at, Guard::NotObserved, "status.observedGeneration")
        }
        Some(Missing::Size { at, wanted }) => {
            let replicas = draft.sets[at].size;
            about(at, Guard::NotScaled { replicas, wanted }, "spec.replicas")
        }
        Some(Missing::Available { at, wanted }) => {
            let available = draft.sets[at].available();
            about(at, Guard::NotAvailable { available, wanted }, "status.availableReplicas")
        }
        Some(Missing::Pods { at, wanted }) => {
            let replicas = draft.sets[at].replicas;
            about(at, Guard::NotScaled { replicas, wanted }, "status.replicas")
        }
        Some(Missing::Others { available }) => {
            let at = old_with_pods(draft);
            about(at, Guard::OldReplicas { available }, "status.availableReplicas")
        }
    };
    vec![why]
}

/// The first older ReplicaSet that still has pods.
fn old_with_pods(draft: &Draft<'_>) -> usize {
    let status = &draft.status;
    let is_other = |hash: &str| hash != status.current_pod_hash && hash != status.stable_rs;
    let found = draft.sets.iter().position(|set| is_other(&set.hash) && set.reported_available > 0);
    found.unwrap_or(0)
}

fn transition(draft: &Draft<'_>, r#type: &str) -> Option<Timestamp> {
    draft.status.condition(r#type).map(|known| known.last_transition_time.timestamp())
}
