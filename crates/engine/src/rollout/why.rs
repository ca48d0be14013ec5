//! For every thing that is not done now: which guard holds it, since when, and what would free it?

use gradus_api::names::{condition, event, pause};
use gradus_api::rollout::StepKind;
use jiff::Timestamp;

use super::blue_green;
use super::canary::pause_end;
use super::draft::Draft;
use super::replica_sets::{self, Roles};
use super::step::{self, Missing};
use super::weights;
use crate::decision::{Frees, Guard, Why};

/// What holds the rollout as the draft leaves it; empty when nothing does.
pub(super) fn explain(draft: &Draft<'_>) -> Vec<Why> {
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
    if let Some(known) = held.filter(|known| known.reason == event::TRAFFIC_ROUTING_ERROR) {
        found.push(Why {
            guard: Guard::Router { message: known.message.clone() },
            object: rollout.clone(),
            field: "spec.strategy.canary.trafficRouting".into(),
            since: Some(known.last_transition_time.timestamp()),
            frees: Frees::Cluster,
        });
    }
    if status.abort {
        let message = status.message.clone();
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
    if draft.is_blue_green() {
        found.extend(switch(draft, roles));
        return found;
    }
    found.extend(missing(draft, weights::missing(draft, roles)));
    found.extend(step_or_promotion(draft, roles));
    found
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
