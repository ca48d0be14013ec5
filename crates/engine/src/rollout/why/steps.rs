//! What keeps the current canary step, or the promotion after the last, from being done?

use gradus_api::names::{label, pause};
use gradus_api::rollout::StepKind;

use super::super::canary::pause_end;
use super::super::objects::Objects;
use super::super::replica_sets::Roles;
use super::super::step;
use super::super::{plugin, weights};
use super::{runs, sets};
use crate::decision::{Frees, Guard, ObjectRef, Why};

/// What the current step waits for; after the last one, what the promotion waits for.
pub(super) fn or_promotion(objects: &Objects<'_>, roles: Roles) -> Vec<Why> {
    let status = &objects.status;
    let current = objects.current_step().filter(|_| !objects.is_promoted() && !status.promote_full);
    let Some((index, current)) = current else {
        let waits = step::missing_promotion(objects, roles)
            .or_else(|| step::missing_counts(objects, roles));
        return sets::missing(objects, waits);
    };
    let about = |what: &str| format!("spec.strategy.canary.steps[{index}].{what}");
    let why = |guard: Guard, field: String, frees: Frees| Why {
        guard,
        object: objects.rollout().reference(),
        field: field.into(),
        since: None,
        frees,
    };
    let count = objects.steps().len();
    match current.kind() {
        StepKind::Pause(_) => {
            let began = status.pause_condition(pause::CANARY_PAUSE_STEP);
            let end = pause_end(objects).filter(|end| objects.now < *end);
            let frees = end.map_or(Frees::Command("promote".into()), Frees::At);
            let since = began.map(|pause| pause.start_time.timestamp());
            vec![Why { since, ..why(Guard::PauseStep { index, count }, about("pause"), frees) }]
        }
        StepKind::Analysis(analysis) if analysis.templates.is_empty() => {
            let guard = Guard::NoTemplates { index, count };
            let frees = Frees::Command("promote".into());
            vec![why(guard, about("analysis.templates"), frees)]
        }
        StepKind::Analysis(_) | StepKind::Experiment(_) => {
            let is_analysis = matches!(current.kind(), StepKind::Analysis(_));
            let what = if is_analysis { "analysis" } else { "experiment" };
            let unstarted = Guard::Verdict { phase: String::new() };
            let unstarted = || why(unstarted, about(what), Frees::Cluster);
            vec![runs::verdict(objects).unwrap_or_else(unstarted)]
        }
        StepKind::Plugin(_) => plugin::explain(objects),
        StepKind::SetHeaderRoute(_) => route(objects, roles, index, about("setHeaderRoute")),
        StepKind::SetMirrorRoute(_) => route(objects, roles, index, about("setMirrorRoute")),
        _ => sets::missing(objects, step::missing_counts(objects, roles)),
    }
}

/// What a route of its own waits for: pods of the new revision, the Service that leads to them, or
/// the router.
fn route(objects: &Objects<'_>, roles: Roles, index: usize, field: String) -> Vec<Why> {
    if let Some(missing) = step::missing_counts(objects, roles) {
        return sets::missing(objects, Some(missing));
    }
    if weights::is_reached(objects, roles) {
        return Vec::new();
    }
    let rollout = objects.rollout();
    let why = |object: ObjectRef, field: String| Why {
        guard: Guard::RouteStep { index, count: objects.steps().len() },
        object,
        field: field.into(),
        since: sets::unmoved_since(objects),
        frees: Frees::Cluster,
    };
    let new = &objects.sets[roles.new];
    let service = objects.service(weights::backends(objects).canary);
    match service.filter(|service| service.hash_text() != &*new.hash) {
        Some(service) => {
            let field = format!("spec.selector.{}", label::POD_TEMPLATE_HASH);
            vec![why(rollout.service(&service.name), field)]
        }
        None => vec![why(rollout.reference(), field)],
    }
}
