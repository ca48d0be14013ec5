//! What keeps the current canary step, or the promotion after the last, from being done?

use gradus_api::names::{label, pause};
use gradus_api::rollout::StepKind;

use super::super::canary::pause_end;
use super::super::draft::Draft;
use super::super::replica_sets::Roles;
use super::super::step;
use super::super::{plugin, weights};
use super::{runs, sets};
use crate::decision::{Frees, Guard, ObjectRef, Why};

/// What the current step waits for; after the last one, what the promotion waits for.
pub(super) fn or_promotion(draft: &Draft<'_>, roles: Roles) -> Vec<Why> {
    let status = &draft.status;
    let current = draft.current_step().filter(|_| !draft.is_promoted() && !status.promote_full);
    let Some((index, current)) = current else {
        let waits =
            step::missing_promotion(draft, roles).or_else(|| step::missing_counts(draft, roles));
        return sets::missing(draft, waits);
    };
    let about = |what: &str| format!("spec.strategy.canary.steps[{index}].{what}");
    let why = |guard: Guard, field: String, frees: Frees| Why {
        guard,
        object: draft.rollout().reference(),
        field: field.into(),
        since: None,
        frees,
    };
    let count = draft.steps().len();
    match current.kind() {
        StepKind::Pause(_) => {
            let began = status.pause_condition(pause::CANARY_PAUSE_STEP);
            let end = pause_end(draft).filter(|end| draft.now < *end);
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
            vec![runs::verdict(draft).unwrap_or_else(unstarted)]
        }
        StepKind::Plugin(_) => plugin::explain(draft),
        StepKind::SetHeaderRoute(_) => route(draft, roles, index, about("setHeaderRoute")),
        StepKind::SetMirrorRoute(_) => route(draft, roles, index, about("setMirrorRoute")),
        _ => sets::missing(draft, step::missing_counts(draft, roles)),
    }
}

/// What a route of its own waits for: pods of the new revision, the Service that leads to them, or
/// the router.
fn route(draft: &Draft<'_>, roles: Roles, index: usize, field: String) -> Vec<Why> {
    if let Some(missing) = step::missing_counts(draft, roles) {
        return sets::missing(draft, Some(missing));
    }
    if weights::is_reached(draft, roles) {
        return Vec::new();
    }
    let rollout = draft.rollout();
    let why = |object: ObjectRef, field: String| Why {
        guard: Guard::RouteStep { index, count: draft.steps().len() },
        object,
        field: field.into(),
        since: sets::unmoved_since(draft),
        frees: Frees::Cluster,
    };
    let new = &draft.sets[roles.new];
    let service = draft.service(weights::backends(draft).canary);
    match service.filter(|service| service.hash_text() != &*new.hash) {
        Some(service) => {
            let field = format!("spec.selector.{}", label::POD_TEMPLATE_HASH);
            vec![why(rollout.service(&service.name), field)]
        }
        None => vec![why(rollout.reference(), field)],
    }
}
