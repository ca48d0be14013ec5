//! Which Experiment should exist now, and what does its verdict mean for the update?

use std::sync::Arc;

use gradus_api::names::{annotation, event, label, pause, value};
use gradus_api::rollout::StepKind;
use gradus_api::rollout::canary::{ExperimentStep, ExperimentStepTemplate};
use serde_json::{Map, Value, json};

use super::lifecycle::{self, StartOutcome, Started};
use super::objects::Objects;
use super::plan::Proposal;
use super::replica_sets::Roles;
use super::runs::{Findings, JudgedRuns};
use crate::analysis::arguments;
use crate::ask::{Ask, Reply};
use crate::decision::ObjectRef;
use crate::kinds;
use crate::obtain::{self, Wanted};
use crate::traffic::Destination;
use crate::world::{ExperimentSet, RunPhase, RunView};

/// The Experiment of the current step; all others end.
pub(super) fn of_canary(objects: &Objects<'_>, roles: Roles) -> JudgedRuns {
    if objects.status.abort || objects.promotes_fully() {
        return JudgedRuns::only(clean_up(objects, None));
    }
    if objects.status.pause_condition(pause::INCONCLUSIVE_ANALYSIS_RUN).is_some() {
        return JudgedRuns::default();
    }
    let Some((index, step)) = current_step(objects) else {
        return JudgedRuns::only(clean_up(objects, None));
    };
    let is_undecided = objects.status.pause_condition(pause::INCONCLUSIVE_EXPERIMENT).is_some();
    let started = match current(objects, &base(objects, roles, index)) {
        Some(known) => {
            Started { proposal: Proposal::default(), outcome: StartOutcome::Run(Arc::clone(known)) }
        }
        None if is_undecided => return JudgedRuns::only(clean_up(objects, None)),
        None => start(objects, roles, index, step),
    };
    let begun = JudgedRuns::only(started.proposal);
    match started.outcome {
        StartOutcome::Run(experiment) => {
            let found = JudgedRuns { found: judge(&experiment), ..JudgedRuns::default() };
            begun.and(found).and(JudgedRuns::only(clean_up(objects, Some(&experiment))))
        }
        // One of those that are there may be the one that is wanted.
        StartOutcome::Unread(target) => begun.and(JudgedRuns::unread(target)),
        StartOutcome::Broken(error) => {
            begun.and(JudgedRuns::broken(error)).and(JudgedRuns::only(clean_up(objects, None)))
        }
    }
}

/// Has the current step's Experiment found the new revision bad, or found nothing?
pub(super) fn is_condemned(objects: &Objects<'_>) -> bool {
    let name = &objects.status.canary.current_experiment;
    let mut named = objects.experiments.iter().filter(|experiment| *experiment.name == **name);
    current_step(objects).is_some()
        && named.any(|experiment| {
            experiment.phase.is_completed() && experiment.phase != RunPhase::Successful
        })
}

/// Where the traffic of the current Experiment goes while it runs: its sets of pods that were given a
/// weight and have an available pod. How an Experiment stands may be learned late; whoever sends
/// traffic looks at the pods as well.
pub(super) fn destinations(objects: &Objects<'_>) -> Vec<Destination> {
    let Some((_, step)) = current_step(objects) else { return Vec::new() };
    let name = &objects.status.canary.current_experiment;
    let is_running = |experiment: &&Arc<RunView>| experiment.phase == RunPhase::Running;
    let named = objects.experiments.iter().find(|experiment| *experiment.name == **name);
    let Some(experiment) = named.filter(is_running) else { return Vec::new() };
    let part = |template: &ExperimentStepTemplate| {
        let weight = template.weight?;
        let part = experiment.parts.iter().find(|part| *part.template == *template.name)?;
        let is_its = |set: &Arc<ExperimentSet>| {
            set.experiment == experiment.name && set.hash == part.hash && set.available > 0
        };
        let set = objects.world.experiment_sets.iter().find(|set| is_its(set))?;
        Some(Destination {
            service: Arc::clone(&part.service),
            hash: Arc::clone(&part.hash),
            port: set.port,
            weight,
        })
    };
    step.templates.iter().filter_map(part).collect()
}

/// The experiment step that is being carried out. Without a stable revision there is no update.
fn current_step<'w>(objects: &Objects<'w>) -> Option<(usize, &'w ExperimentStep)> {
    let status = &objects.status;
    if status.stable_rs.is_empty() || status.stable_rs == status.current_pod_hash {
        return None;
    }
    let (index, step) = objects.current_step()?;
    match step.kind() {
        StepKind::Experiment(experiment) => Some((index, experiment)),
        _ => None,
    }
}

/// The name of a step's Experiment, before any number.
fn base(objects: &Objects<'_>, roles: Roles, index: usize) -> String {
    let new = &objects.sets[roles.new];
    format!("{}-{}-{}-{index}", objects.rollout().name, new.hash, new.revision.unwrap_or(0))
}

/// The Experiment that the status names, if it is this step's.
fn current<'d>(objects: &'d Objects<'_>, base: &str) -> Option<&'d Arc<RunView>> {
    let name = &objects.status.canary.current_experiment;
    let rest = name.strip_prefix(base)?;
    let number = rest.strip_prefix('-').map(str::parse::<u32>);
    let is_of_step = rest.is_empty() || matches!(number, Some(Ok(_)));
    objects.experiments.iter().find(|experiment| is_of_step && *experiment.name == **name)
}

/// Notes how the Experiment stands, and what follows from it. One that has succeeded stays noted until
/// its step is left: a halted rollout stays at the step, and must not start it anew.
fn judge(experiment: &RunView) -> Findings {
    let none = Findings::default();
    let name = experiment.name.to_string();
    match experiment.phase {
        RunPhase::Successful => Findings { experiment_succeeded: true, experiment: name, ..none },
        RunPhase::Inconclusive => Findings { pause: Some(pause::INCONCLUSIVE_EXPERIMENT), ..none },
        RunPhase::Failed | RunPhase::Error => {
            let text = lifecycle::failure_text("Experiment analysis phase is", experiment);
            Findings { abort_because: Some(text), ..none }
        }
        _ => Findings { experiment: name, ..none },
    }
}

fn clean_up(objects: &Objects<'_>, current: Option<&Arc<RunView>>) -> Proposal {
    let is_other =
        |experiment: &RunView| current.is_none_or(|current| current.name != experiment.name);
    lifecycle::clean_up(objects, &kinds::EXPERIMENT, is_other)
}

/// The Experiment of a step: one that is there already, or a new one, once the templates it copies
/// are read.
fn start(objects: &Objects<'_>, roles: Roles, index: usize, step: &ExperimentStep) -> Started {
    // Every answer that is used is asked for in every pass, or it would be forgotten.
    let sets = step.templates.iter().filter_map(|one| set_of(roles, one));
    let asked = sets.fold(Proposal::default(), |asked, set| {
        asked.ask(Ask::read(objects.rollout().replica_set(&objects.sets[set].name)))
    });
    let spec = match spec(objects, roles, index, step) {
        Ok(spec) => spec,
        Err(Unmade::Unread(set)) => return lifecycle::unread(asked, *set),
        Err(Unmade::Broken(error)) => {
            return Started { proposal: asked, outcome: StartOutcome::Broken(error) };
        }
    };
    let base = base(objects, roles, index);
    let metadata = metadata(objects, roles);
    let (kind, hash) = (kinds::EXPERIMENT, Arc::clone(&objects.sets[roles.new].hash));
    let known = lifecycle::known(objects, &kind);
    let wanted = Wanted { kind: kind.clone(), base, joint: '-', hash, metadata, spec };
    let started = lifecycle::started(obtain::obtain(&lifecycle::owner(objects), &known, wanted));
    let proposal = asked.and(started.proposal);
    let StartOutcome::Run(experiment) = &started.outcome else {
        return Started { proposal, ..started };
    };
    let text = format!("Created Experiment '{}'", experiment.name);
    let target = ObjectRef::new(kind, &objects.rollout().namespace, &experiment.name);
    let proposal = proposal.tell_of(target, event::EXPERIMENT_CREATED, text);
    Started { proposal, ..started }
}

/// Why an Experiment cannot be made now.
enum Unmade {
    /// This ReplicaSet must be read first.
    Unread(Box<ObjectRef>),
    /// The spec makes none.
    Broken(String),
}

fn spec(
    objects: &Objects<'_>,
    roles: Roles,
    index: usize,
    step: &ExperimentStep,
) -> Result<Value, Unmade> {
    let path = format!("spec.strategy.canary.steps[{index}].experiment");
    let templates: Result<Vec<Value>, Unmade> =
        step.templates.iter().map(|one| template(objects, roles, &path, one)).collect();
    let subject = lifecycle::subject(objects, roles);
    let mut analyses = Vec::new();
    for one in &step.analyses {
        let args = arguments::resolve(&one.args, &subject).map_err(|error| {
            Unmade::Broken(format!("{path}.analyses: Invalid value: {:?}: {error}", one.name))
        })?;
        let mut analysis = json!({ "name": one.name, "templateName": one.template_name });
        let given = [
            ("clusterScope", json!(one.cluster_scope == Some(true)), one.cluster_scope.is_some()),
            ("requiredForCompletion", json!(true), one.required_for_completion),
            ("args", json!(args), !args.is_empty()),
        ];
        set_given(&mut analysis, given);
        analyses.push(analysis);
    }
    let mut spec = json!({ "templates": templates? });
    let deadline = objects.spec().progress_deadline_seconds;
    let metadata = json!(step.analysis_run_metadata);
    let given = [
        ("duration", json!(step.duration), !step.duration.is_empty()),
        ("progressDeadlineSeconds", json!(deadline), deadline.is_some()),
        ("dryRun", json!(step.dry_run), !step.dry_run.is_empty()),
        ("analysisRunMetadata", metadata.clone(), metadata != json!({})),
        (
            "scaleDownDelaySeconds",
            json!(step.scale_down_delay_seconds),
            step.scale_down_delay_seconds.is_some(),
        ),
        ("analyses", json!(analyses), !analyses.is_empty()),
    ];
    set_given(&mut spec, given);
    Ok(spec)
}

/// Sets the fields that are given.
fn set_given<const N: usize>(object: &mut Value, fields: [(&str, Value, bool); N]) {
    for (field, value, _) in fields.into_iter().filter(|(_, _, is_given)| *is_given) {
        object[field] = value;
    }
}

/// The ReplicaSet whose template is copied.
fn set_of(roles: Roles, wanted: &ExperimentStepTemplate) -> Option<usize> {
    match wanted.spec_ref.as_str() {
        value::CANARY_REF => Some(roles.new),
        value::STABLE_REF => roles.stable,
        _ => None,
    }
}

/// One set of pods, copied from a revision as it is stored.
fn template(
    objects: &Objects<'_>,
    roles: Roles,
    path: &str,
    wanted: &ExperimentStepTemplate,
) -> Result<Value, Unmade> {
    let Some(set) = set_of(roles, wanted) else {
        let detail = "Invalid template step SpecRef: must be canary or stable";
        let message = format!("{path}.templates: Invalid value: {:?}: {detail}", wanted.spec_ref);
        return Err(Unmade::Broken(message));
    };
    let target = objects.rollout().replica_set(&objects.sets[set].name);
    let answer = objects.world.answers.get(&Ask::read(target.clone()).id);
    let Some(Ok(Reply::Object(Some(object)))) = answer.map(|answer| &answer.reply) else {
        return Err(Unmade::Unread(Box::new(target)));
    };
    let mut pods = object["spec"]["template"].clone();
    let given = wanted.selector.as_ref().map(|selector| json!(selector));
    let mut selector = given.unwrap_or_else(|| object["spec"]["selector"].clone());
    let texts = |texts: &std::collections::BTreeMap<String, String>| -> Vec<(String, Value)> {
        texts.iter().map(|(key, value)| (key.clone(), json!(value))).collect()
    };
    for (key, value) in texts(&wanted.metadata.labels) {
        pods["metadata"]["labels"][&key] = value.clone();
        selector["matchLabels"][&key] = value;
    }
    for (key, value) in texts(&wanted.metadata.annotations) {
        pods["metadata"]["annotations"][&key] = value;
    }
    let mut template = json!({ "name": wanted.name, "selector": selector, "template": pods });
    let seconds = &object["spec"]["minReadySeconds"];
    let service = wanted.service.as_ref().map(|service| json!(service)).unwrap_or(json!({}));
    let fields = [
        ("replicas", json!(wanted.replicas), wanted.replicas.is_some()),
        ("minReadySeconds", seconds.clone(), seconds.as_i64().is_some_and(|n| n != 0)),
        ("service", service, wanted.service.is_some() || wanted.weight.is_some()),
    ];
    set_given(&mut template, fields);
    Ok(template)
}

fn metadata(objects: &Objects<'_>, roles: Roles) -> Value {
    let (rollout, new) = (objects.rollout(), &objects.sets[roles.new]);
    let texts = rollout.labels.iter().map(|(key, value)| (key.to_owned(), json!(value)));
    let mut labels: Map<String, Value> = texts.collect();
    labels.insert(label::POD_TEMPLATE_HASH.into(), json!(&*new.hash));
    let revision = new.revision.unwrap_or(0).to_string();
    json!({ "labels": labels, "annotations": { annotation::REVISION: revision } })
}
