//! One analysis of an Experiment: its AnalysisRun is started once the pods are available, watched and
//! ended with the Experiment.

use std::sync::Arc;

use gradus_api::experiment::{ExperimentAnalysis, ExperimentRunStatus};
use gradus_api::names::{analysis_phase, event as reason_of, label};
use serde_json::{Map, Value, json};

use super::{Pass, Plan, Tried, arguments, event, event_kind, is_completed, transition};
use crate::analysis::merge::{self, FindError};
use crate::analysis::start::{self, NewRun};
use crate::ask::{Ask, Class, Reply};
use crate::decision::{After, Change, EventKind, Frees, Guard, ObjectRef, Why};
use crate::kinds;
use crate::obtain::{KnownRuns, RunOutcome, RunOwner};
use crate::world::{RunPhase, RunView};

/// The next status of an analysis, and what is to be done for it.
pub(super) fn next(pass: &Pass<'_>, analysis: &ExperimentAnalysis) -> (ExperimentRunStatus, Plan) {
    let stored = &pass.experiment.status.analysis_runs;
    let stored = stored.iter().find(|run| run.name == analysis.name).cloned();
    let name = analysis.name.clone();
    let before =
        stored.unwrap_or_else(|| ExperimentRunStatus { name, ..ExperimentRunStatus::default() });
    if is_completed(&before.phase) {
        return (before, Plan::default());
    }
    let begun = pass.experiment.status.available_at.is_some();
    let (next, plan) = match before.analysis_run.as_str() {
        "" if pass.is_terminating => (before.clone(), Plan::default()),
        "" if !begun => verify(pass, analysis, &before),
        "" => begin(pass, analysis, &before),
        _ => follow(pass, analysis, &before),
    };
    let told = tell(pass, &before, &next);
    (next, plan.and(told))
}

fn tell(pass: &Pass<'_>, before: &ExperimentRunStatus, next: &ExperimentRunStatus) -> Plan {
    // How a run ends that is terminated after the Experiment's end is no news about that.
    let has_ended = is_completed(&pass.experiment.status.phase);
    if before.phase == next.phase || next.phase.is_empty() || has_ended {
        return Plan::default();
    }
    let what = format!("AnalysisRun '{}'", next.name);
    let text = transition(&what, &before.phase, &next.phase, &next.message);
    let phase = RunPhase::of(&next.phase);
    let reason = format!("{}{}", reason_of::ANALYSIS_RUN_PREFIX, next.phase);
    let is_bad = phase.is_completed() && phase != RunPhase::Successful;
    let (experiment, kind) = (pass.experiment, event_kind(is_bad));
    let own = Plan::event(event(experiment.reference(), kind, reason.clone(), text.clone()));
    let Some((name, uid)) = &experiment.rollout else { return own };
    let rollout = ObjectRef::new(kinds::ROLLOUT, &experiment.namespace, name);
    let mut told = event(rollout, EventKind::Warning, reason, text);
    told.uid = Some(*uid);
    own.and(Plan::event(told))
}

/// The same analysis, which has gone wrong for good.
fn broken(before: &ExperimentRunStatus, message: String) -> (ExperimentRunStatus, Plan) {
    let phase = analysis_phase::ERROR.to_owned();
    (ExperimentRunStatus { phase, message, ..before.clone() }, Plan::default())
}

/// Are the templates there? Known before any pod is, so that nobody waits in vain.
fn verify(
    pass: &Pass<'_>,
    analysis: &ExperimentAnalysis,
    before: &ExperimentRunStatus,
) -> (ExperimentRunStatus, Plan) {
    match missing_template(pass, analysis) {
        None => (before.clone(), Plan::default()),
        Some(MissingTemplate::Unknown(plan)) => (before.clone(), plan),
        Some(MissingTemplate::Gone { is_cluster, name }) => {
            let kind = merge::kind_name(analysis.cluster_scope);
            let singular = merge::kind_name(is_cluster).to_lowercase();
            let group = gradus_api::names::GROUP;
            let of = &analysis.name;
            broken(
                before,
                format!(
                    "{kind} verification failed for analysis '{of}': {singular}.{group} \
                     \"{name}\" not found"
                ),
            )
        }
    }
}

/// Why a template cannot be used.
enum MissingTemplate {
    /// Whether it is there is known once this is done.
    Unknown(Plan),
    /// It is not there.
    Gone { is_cluster: bool, name: String },
}

/// The first template of an analysis that is missing. What no watch has shown is read first: a watch may
/// be late, and an Experiment that has ended stays so.
fn missing_template(pass: &Pass<'_>, analysis: &ExperimentAnalysis) -> Option<MissingTemplate> {
    let named = (analysis.template_name.as_str(), analysis.cluster_scope);
    match merge::find(&pass.world.templates, [named]) {
        Ok(_) => None,
        Err(FindError::Unreadable(message)) => {
            Some(MissingTemplate::Unknown(unreadable(pass, message)))
        }
        Err(FindError::Absent { is_cluster, name }) => {
            let target = template(pass, is_cluster, &name);
            Some(match is_known_to_be_gone(pass, &target) {
                true => MissingTemplate::Gone { is_cluster, name },
                false => MissingTemplate::Unknown(Plan::read(pass.experiment, target)),
            })
        }
    }
}

fn template(pass: &Pass<'_>, is_cluster: bool, name: &str) -> ObjectRef {
    match is_cluster {
        true => ObjectRef::new(kinds::CLUSTER_ANALYSIS_TEMPLATE, &"".into(), &name.into()),
        false => {
            let namespace = &pass.experiment.namespace;
            ObjectRef::new(kinds::ANALYSIS_TEMPLATE, namespace, &name.into())
        }
    }
}

/// Has a read found nothing?
fn is_known_to_be_gone(pass: &Pass<'_>, target: &ObjectRef) -> bool {
    let answer = pass.world.answers.get(&Ask::read(target.clone()).id);
    matches!(answer.map(|answer| &answer.reply), Some(Ok(Reply::Object(None))))
}

fn unreadable(pass: &Pass<'_>, message: String) -> Plan {
    let guard = Guard::Unreadable { message };
    Plan::waits(pass.experiment.why(guard, "spec.analyses", Frees::Cluster))
}

/// Starts the AnalysisRun, or takes one that was started before its name was stored.
fn begin(
    pass: &Pass<'_>,
    analysis: &ExperimentAnalysis,
    before: &ExperimentRunStatus,
) -> (ExperimentRunStatus, Plan) {
    let of = &analysis.name;
    let unmade = |cause: &str| {
        broken(before, format!("Failed to create AnalysisRun for analysis '{of}': {cause}"))
    };
    if let Some(MissingTemplate::Unknown(plan)) = missing_template(pass, analysis) {
        return (before.clone(), plan);
    }
    let named = (analysis.template_name.as_str(), analysis.cluster_scope);
    let fields = &pass.experiment.spec;
    let spec = arguments::resolve(pass, &analysis.args).and_then(|args| {
        let (dry_run, kept) = (&fields.dry_run, &fields.measurement_retention);
        start::spec(&pass.world.templates, [named], &args, dry_run, kept)
    });
    let spec = match spec {
        Ok(spec) => spec,
        Err(cause) => return unmade(&cause),
    };
    let obtained = start::start(&owner(pass), &known(pass), new_run(pass, analysis, spec));
    let asked = Plan { asks: obtained.asks, ..Plan::default() };
    let taken = |run: &RunView| ExperimentRunStatus {
        analysis_run: run.name.to_string(),
        phase: mirrored(run).to_owned(),
        message: run.message.to_string(),
        ..before.clone()
    };
    match obtained.outcome {
        RunOutcome::Exists(run) => (taken(&run), asked),
        RunOutcome::Read(target) => {
            (before.clone(), asked.and(Plan::read(pass.experiment, target)))
        }
        RunOutcome::Create(run, change) => match pass.tried(&change) {
            Tried::Denied(failure) => unmade(&failure.message),
            Tried::Held(failure) if failure.class != Class::Exists => {
                (before.clone(), asked.and(Plan::held(&change, failure)))
            }
            _ => (taken(&run), asked.and(Plan::change(change))),
        },
    }
}

fn owner<'w>(pass: &Pass<'w>) -> RunOwner<'w> {
    let experiment = pass.experiment;
    let (namespace, uid) = (&experiment.namespace, experiment.uid);
    RunOwner { namespace, uid, reference: experiment.owner_reference() }
}

fn known<'w>(pass: &Pass<'w>) -> KnownRuns<'w> {
    let (answers, failed) = (&pass.world.answers, &pass.world.recall.failed);
    KnownRuns { existing: pass.owned.runs, answers, failed, now: pass.now }
}

fn new_run(pass: &Pass<'_>, analysis: &ExperimentAnalysis, spec: Value) -> NewRun {
    let experiment = pass.experiment;
    let metadata = &experiment.spec.analysis_run_metadata;
    let texts = |texts: &std::collections::BTreeMap<String, String>| -> Map<String, Value> {
        texts.iter().map(|(key, value)| (key.clone(), json!(value))).collect()
    };
    let mut labels = Map::new();
    if let Some(instance) = &experiment.instance {
        labels.insert(label::INSTANCE_ID.to_owned(), json!(instance));
    }
    labels.extend(texts(&metadata.labels));
    NewRun {
        name: format!("{}-{}", experiment.name, analysis.name),
        hash: "".into(),
        labels,
        annotations: texts(&metadata.annotations),
        spec,
    }
}

/// The phase that is shown for a run: one that nobody has looked at yet is pending.
fn mirrored(run: &RunView) -> &'static str {
    match run.phase {
        RunPhase::Unstarted => analysis_phase::PENDING,
        phase => phase.text(),
    }
}

/// How the AnalysisRun stands; it ends with the Experiment.
fn follow(
    pass: &Pass<'_>,
    analysis: &ExperimentAnalysis,
    before: &ExperimentRunStatus,
) -> (ExperimentRunStatus, Plan) {
    let mut runs = pass.owned.runs.iter();
    let Some(run) = runs.find(|run| *run.name == *before.analysis_run) else {
        return missing(pass, before);
    };
    let next = ExperimentRunStatus {
        phase: mirrored(run).to_owned(),
        message: run.message.to_string(),
        ..before.clone()
    };
    if !pass.is_terminating {
        let awaited = awaited(pass, analysis, run);
        return (next, awaited);
    }
    if !run.is_usable() {
        return (next, Plan::default());
    }
    let target = ObjectRef::new(kinds::ANALYSIS_RUN, &pass.experiment.namespace, &run.name);
    let change = Change::patch(target, json!({ "spec": { "terminate": true } }), run.version);
    let has_ended = is_completed(&pass.experiment.status.phase);
    match pass.tried(&change) {
        Tried::Denied(failure) if !has_ended => broken(before, failure.message.clone()),
        Tried::Denied(failure) | Tried::Held(failure) if pass.now < failure.retry_at => {
            (next, Plan::held(&change, failure))
        }
        _ => {
            let text = format!("Terminating {} ({})", analysis.name, run.name);
            let reason = reason_of::ANALYSIS_RUN_TERMINATING.to_owned();
            let mut told = event(pass.experiment.reference(), EventKind::Normal, reason, text);
            told.after = After::Change(change.id.clone());
            (next, Plan::change(change).and(Plan::event(told)))
        }
    }
}

/// Says which run is waited for, where the Experiment waits for it.
fn awaited(pass: &Pass<'_>, analysis: &ExperimentAnalysis, run: &Arc<RunView>) -> Plan {
    if !analysis.required_for_completion || run.phase.is_completed() {
        return Plan::default();
    }
    Plan::waits(Why {
        guard: Guard::Verdict { phase: run.phase.text().to_owned() },
        object: ObjectRef::new(kinds::ANALYSIS_RUN, &pass.experiment.namespace, &run.name),
        field: "status.phase".into(),
        since: None,
        frees: Frees::Cluster,
    })
}

/// A run that is stored and not to be seen: a read says whether it is gone.
fn missing(pass: &Pass<'_>, before: &ExperimentRunStatus) -> (ExperimentRunStatus, Plan) {
    if is_completed(&pass.experiment.status.phase) {
        return (before.clone(), Plan::default());
    }
    let name: Arc<str> = before.analysis_run.as_str().into();
    let target = ObjectRef::new(kinds::ANALYSIS_RUN, &pass.experiment.namespace, &name);
    if !is_known_to_be_gone(pass, &target) {
        return (before.clone(), Plan::read(pass.experiment, target));
    }
    let group = gradus_api::names::GROUP;
    let plural = gradus_api::names::plural::ANALYSIS_RUNS;
    broken(before, format!("{plural}.{group} \"{name}\" not found"))
}
