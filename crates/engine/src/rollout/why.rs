//! For every thing that is not done now: which guard holds it, since when, and what would free it?

mod runs;
mod sets;
mod steps;

use gradus_api::names::{condition, event, pause, phase};
use jiff::Timestamp;

use super::blue_green;
use super::metadata;
use super::objects::Objects;
use super::plan::Plan;
use super::replica_sets::{self, Roles};
use super::restart;
use super::runs::Findings;
use super::step::Missing;
use super::verify;
use super::weights;
use crate::decision::{Frees, Guard, ObjectRef, Why};
use crate::kinds;

/// What holds the rollout as the plan leaves it; empty when nothing does.
pub(super) fn explain(objects: &Objects<'_>, plan: &Plan, findings: &Findings) -> Vec<Why> {
    let mut found = halted(objects);
    let Some(new) = replica_sets::find_new(objects.rollout(), &objects.sets) else { return found };
    let stable = replica_sets::find_stable(&objects.status.stable_rs, &objects.sets);
    let roles = Roles { new, stable };
    found.extend(router(objects));
    found.extend(update(objects, plan, findings, roles));
    found.extend(restart::explain(objects, roles));
    found.extend(metadata::explain(objects, roles));
    if found.is_empty() && objects.status.phase != phase::HEALTHY {
        found.extend(sets::left(objects, roles));
    }
    found.extend(sets::leaving(objects, roles));
    found
}

/// A person has halted it.
fn halted(objects: &Objects<'_>) -> Vec<Why> {
    let status = &objects.status;
    let why = objects.spec().paused.then(|| Why {
        guard: Guard::SpecPaused,
        object: objects.rollout().reference(),
        field: "spec.paused".into(),
        // A pause that stands beside it began the condition, and nobody noted what came later.
        since: transition(objects, condition::PAUSED)
            .filter(|_| status.pause_conditions.is_empty()),
        frees: Frees::Command("promote".into()),
    });
    why.into_iter().collect()
}

/// A router cannot be told what to do, or does not do it.
fn router(objects: &Objects<'_>) -> Option<Why> {
    let is_routing =
        |reason: &str| reason == event::TRAFFIC_ROUTING_ERROR || verify::is_reason(reason);
    let held = objects.status.condition(condition::HELD);
    held.filter(|known| is_routing(&known.reason)).map(|known| Why {
        guard: Guard::Router { message: known.message.to_string() },
        object: objects.rollout().reference(),
        field: "spec.strategy.canary.trafficRouting".into(),
        since: Some(known.last_transition_time.timestamp()),
        frees: Frees::Cluster,
    })
}

/// What holds the update itself.
fn update(objects: &Objects<'_>, plan: &Plan, findings: &Findings, roles: Roles) -> Vec<Why> {
    let status = &objects.status;
    if status.abort {
        let aborted = Why {
            guard: Guard::Aborted { message: status.message.to_string() },
            object: objects.rollout().reference(),
            field: "status.abort".into(),
            since: aborted_at(objects),
            frees: Frees::Command("retry rollout".into()),
        };
        return std::iter::once(aborted).chain(sets::way_back(objects, roles)).collect();
    }
    if let Some(unread) = &findings.unread {
        return vec![unanswered(unread)];
    }
    if let Some(undecided) = runs::undecided(objects) {
        return vec![undecided];
    }
    if objects.is_blue_green() {
        let asked = verify::explain(objects, plan);
        return asked.into_iter().chain(switch(objects, roles)).collect();
    }
    let mut found = sets::missing(objects, weights::missing(objects, roles));
    found.extend(verify::explain(objects, plan));
    found.extend(verify::explain_report(objects));
    found.extend(steps::or_promotion(objects, roles));
    found
}

fn unanswered(target: &ObjectRef) -> Why {
    let is_set = target.kind == kinds::REPLICA_SET;
    Why {
        guard: Guard::Unanswered { question: format!("read {target}") },
        object: target.clone(),
        // Of a ReplicaSet the template is wanted; of an AnalysisRun or Experiment, who has its name.
        field: if is_set { "spec.template" } else { "metadata.name" }.into(),
        since: None,
        frees: Frees::Cluster,
    }
}

/// What keeps a blue-green rollout from switching, and from being done with it.
fn switch(objects: &Objects<'_>, roles: Roles) -> Vec<Why> {
    let mut found = Vec::new();
    let end = blue_green::pause_end(objects);
    let began = objects.status.pause_condition(pause::BLUE_GREEN_PAUSE);
    // One that is over stands until the pods are there: then they are what is waited for.
    if let Some(began) = began.filter(|_| end.is_none_or(|end| objects.now < end)) {
        let field = if end.is_some() { "autoPromotionSeconds" } else { "autoPromotionEnabled" };
        found.push(Why {
            guard: Guard::SwitchPause,
            object: objects.rollout().reference(),
            field: format!("spec.strategy.blueGreen.{field}").into(),
            since: Some(began.start_time.timestamp()),
            frees: end.map_or(Frees::Command("promote".into()), Frees::At),
        });
    } else if let Some(verdict) = runs::verdict(objects).filter(|_| !objects.is_promoted()) {
        found.push(verdict);
    }
    let (at, wanted) = (roles.new, blue_green::new_target(objects, roles));
    let set = &objects.sets[at];
    let waits = if !set.is_observed() {
        Some(Missing::Observation(at))
    } else if set.size != wanted {
        Some(Missing::Size { at, wanted })
    } else {
        (set.available() < wanted).then_some(Missing::Available { at, wanted })
    };
    found.extend(sets::missing(objects, waits));
    found
}

fn transition(objects: &Objects<'_>, r#type: &str) -> Option<Timestamp> {
    objects.status.condition(r#type).map(|known| known.last_transition_time.timestamp())
}

fn aborted_at(objects: &Objects<'_>) -> Option<Timestamp> {
    objects.status.aborted_at.map(|time| time.timestamp())
}
