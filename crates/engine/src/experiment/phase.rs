//! How does an Experiment stand, given its sets of pods and its analyses, and when does it end?

use gradus_api::experiment::{ExperimentStatus, TemplateStatus};
use gradus_api::names::{analysis_phase, condition_status, event as reason_of, reason};
use gradus_api::values::Time;

use super::view::ExperimentView;
use super::{Pass, Plan, event, event_kind, is_completed, transition};
use crate::rollout::conditions::{self, Statement};
use crate::world::RunPhase;

const REQUIRED_DONE: &str = "Required AnalysisRuns completed";

/// Is it to end, or has it ended? As far as it is stored.
pub(super) fn is_terminating(experiment: &ExperimentView) -> bool {
    let (spec, status) = (&experiment.spec, &experiment.status);
    let is_bad_template = |one: &TemplateStatus| RunPhase::of(&one.status).is_bad();
    spec.terminate
        || is_completed(&status.phase)
        || status.template_statuses.iter().any(is_bad_template)
        || status.analysis_runs.iter().any(|run| is_unfavourable(RunPhase::of(&run.phase)))
        || has_required_success(experiment, status)
}

/// Has it ended otherwise than well?
fn is_unfavourable(phase: RunPhase) -> bool {
    phase.is_completed() && phase != RunPhase::Successful
}

/// The status with its phase and condition, and the Event that tells of it.
pub(super) fn settle(pass: &Pass<'_>, status: ExperimentStatus) -> (ExperimentStatus, Plan) {
    let experiment = pass.experiment;
    let before = RunPhase::of(&experiment.status.phase);
    let mut status = status;
    let templates = worst_template(&status);
    if templates.0 == RunPhase::Running && status.available_at.is_none() {
        status.available_at = Some(Time::new(pass.now));
    }
    let next = match before {
        RunPhase::Unstarted => Some((RunPhase::Pending, String::new())),
        RunPhase::Pending | RunPhase::Running => Some(assess(experiment, &status, templates)),
        _ => None,
    };
    let mut plan = Plan::default();
    if let Some((phase, message)) = next {
        if phase != before {
            let name = format!("{}{}", reason_of::EXPERIMENT_PREFIX, phase.text());
            let text = transition("Experiment", before.text(), phase.text(), "");
            let kind = event_kind(is_unfavourable(phase));
            plan = Plan::event(event(experiment.reference(), kind, name, text));
        }
        status.phase = phase.text().to_owned();
        status.message = message;
    }
    condition(pass, &mut status);
    let is_going_on = !pass.is_terminating && !is_completed(&status.phase);
    let wake_at = pass.ends_at().filter(|end| is_going_on && pass.now < *end);
    (status, plan.waking(wake_at))
}

/// The phase of an Experiment that has not ended.
fn assess(
    experiment: &ExperimentView,
    status: &ExperimentStatus,
    templates: (RunPhase, String),
) -> (RunPhase, String) {
    let analyses = worst_analysis(experiment, status);
    let is_required = experiment.spec.analyses.iter().any(|one| one.required_for_completion);
    let (of_pods, of_runs) = (templates.0, analyses.0);
    let by_runs = match of_pods {
        RunPhase::Successful => of_runs.is_completed() || is_required,
        phase if phase.is_completed() => false,
        _ => is_unfavourable(of_runs) || has_required_success(experiment, status),
    };
    if by_runs { analyses } else { templates }
}

/// The worst of the sets of pods, as a phase, with its message.
fn worst_template(status: &ExperimentStatus) -> (RunPhase, String) {
    let badness = |one: &TemplateStatus| match one.status.as_str() {
        analysis_phase::SUCCESSFUL => 0,
        analysis_phase::RUNNING => 1,
        analysis_phase::ERROR => 3,
        analysis_phase::FAILED => 4,
        _ => 2,
    };
    let worst = status.template_statuses.iter().rev().max_by_key(|one| badness(one));
    let Some(worst) = worst else { return (RunPhase::Successful, String::new()) };
    let phase = match RunPhase::of(&worst.status) {
        RunPhase::Unstarted => RunPhase::Pending,
        phase => phase,
    };
    (phase, worst.message.clone())
}

/// The worst of the analyses with its message. One that has not begun says nothing.
fn worst_analysis(experiment: &ExperimentView, status: &ExperimentStatus) -> (RunPhase, String) {
    let badness = |phase: RunPhase| match phase {
        RunPhase::Unstarted | RunPhase::Successful => 0,
        RunPhase::Running => 1,
        RunPhase::Pending => 2,
        RunPhase::Inconclusive => 3,
        RunPhase::Error => 4,
        RunPhase::Failed => 5,
    };
    let runs = status.analysis_runs.iter().rev();
    let worst = runs.max_by_key(|run| badness(RunPhase::of(&run.phase)));
    let (phase, message) = match worst {
        Some(run) => (RunPhase::of(&run.phase), run.message.clone()),
        None => (RunPhase::Successful, String::new()),
    };
    match phase {
        phase if is_unfavourable(phase) => (phase, message),
        _ if has_required_success(experiment, status) => {
            (RunPhase::Successful, REQUIRED_DONE.to_owned())
        }
        RunPhase::Unstarted => (RunPhase::Successful, String::new()),
        RunPhase::Pending => (RunPhase::Running, message),
        phase => (phase, message),
    }
}

/// Are there analyses that it must wait for, and have all of them ended well?
fn has_required_success(experiment: &ExperimentView, status: &ExperimentStatus) -> bool {
    let mut required =
        experiment.spec.analyses.iter().filter(|one| one.required_for_completion).peekable();
    let has_succeeded = |name: &str| {
        let mut named = status.analysis_runs.iter().filter(|run| run.name == name);
        named.any(|run| run.phase == analysis_phase::SUCCESSFUL)
    };
    required.peek().is_some() && required.all(|one| has_succeeded(&one.name))
}

/// What the condition Progressing says. After a bad end it keeps what it said before.
fn condition(pass: &Pass<'_>, status: &mut ExperimentStatus) {
    let name = &pass.experiment.name;
    let is_running = !pass.has_passed_duration() && worst_template(status).0 == RunPhase::Running;
    let statement = if status.phase == analysis_phase::SUCCESSFUL {
        let text = format!("Experiment \"{name}\" has successfully ran and completed.");
        (condition_status::FALSE, reason::EXPERIMENT_COMPLETED, text)
    } else if is_completed(&status.phase) {
        return;
    } else if has_progressed(pass.experiment, status) {
        let text = format!("Experiment \"{name}\" is progressing.");
        (condition_status::TRUE, reason::REPLICA_SET_UPDATED, text)
    } else if is_running {
        let text = format!("Experiment \"{name}\" is running.");
        (condition_status::TRUE, reason::NEW_REPLICA_SET_AVAILABLE, text)
    } else {
        return;
    };
    let (truth, reason, text) = statement;
    let text = format_args!("{text}");
    conditions::set(&mut status.conditions, pass.now, Statement::progressing(truth, reason, text));
}

/// Has the number of pods of a set changed?
fn has_progressed(experiment: &ExperimentView, status: &ExperimentStatus) -> bool {
    let counts = |one: &TemplateStatus| {
        [one.replicas, one.updated_replicas, one.ready_replicas, one.available_replicas]
    };
    let known = &experiment.status.template_statuses;
    status.template_statuses.iter().any(|one| {
        let before = known.iter().find(|known| known.name == one.name);
        before.is_none_or(|before| counts(before) != counts(one))
    })
}
