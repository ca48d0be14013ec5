//! One set of pods of an Experiment: its ReplicaSet is created, sized and watched over.

use std::sync::Arc;

use gradus_api::experiment::{ExperimentTemplate, TemplateStatus};
use gradus_api::names::{analysis_phase, annotation, event as reason_of, label};
use gradus_api::values::Time;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::{Pass, Plan, Tried, event, event_kind, is_completed, later, service, transition};
use crate::ask::{Class, Failure, Reply};
use crate::decision::{After, Change, EventKind, Frees, Guard, ObjectRef, Why};
use crate::kinds;
use crate::obtain::is_controlled_by;
use crate::replica_set_create::{self, NewReplicaSet};
use crate::template::pod_template_hash;
use crate::world::{Deadline, ReplicaSetView, RunPhase};

/// One set of pods, and what it is to become.
#[derive(Clone, Copy)]
pub(super) struct TemplateGoal<'w> {
    /// As the spec has it.
    pub template: &'w ExperimentTemplate,
    /// As it is stored.
    pub before: &'w TemplateStatus,
    /// How many pods it is to have.
    pub desired: i32,
    /// Its ReplicaSet, if that is there.
    pub set: Option<&'w Arc<ReplicaSetView>>,
}

/// What a part of a set of pods wants done, and whether it has gone wrong for good.
#[derive(Default)]
pub(super) struct TemplatePart {
    pub plan: Plan,
    pub error: Option<String>,
    /// Is its ReplicaSet created or resized?
    pub has_moved: bool,
}

impl TemplatePart {
    pub fn of(plan: Plan) -> Self {
        TemplatePart { plan, ..TemplatePart::default() }
    }

    pub fn broken(error: String) -> Self {
        TemplatePart { error: Some(error), ..TemplatePart::default() }
    }
}

/// The next status of a set of pods, and what is to be done for it.
pub(super) fn next(pass: &Pass<'_>, template: &ExperimentTemplate) -> (TemplateStatus, Plan) {
    let stored = &pass.experiment.status.template_statuses;
    let stored = stored.iter().find(|one| one.name == template.name).cloned();
    let name = template.name.clone();
    let before = stored.unwrap_or_else(|| TemplateStatus { name, ..TemplateStatus::default() });
    let set = match find(pass, template) {
        Ok(set) => set,
        Err(why) => return (before, Plan::waits(*why)),
    };
    let is_over = pass.is_terminating || is_completed(&before.status);
    let desired = if is_over { 0 } else { template.replicas_or_default() };
    let goal = TemplateGoal { template, before: &before, desired, set };
    let (served, address) = service::next(pass, goal);
    let sized = match set {
        Some(set) => size(pass, goal, set),
        None if is_over => TemplatePart::default(),
        None => create(pass, goal),
    };
    let mut next = before.clone();
    (next.service_name, next.pod_template_hash) = address;
    [next.replicas, next.updated_replicas, next.ready_replicas, next.available_replicas] =
        set.map_or([0; 4], |set| [set.replicas, set.replicas, set.ready, set.reported_available]);
    if sized.has_moved || counts(&before) != counts(&next) {
        next.last_transition_time = Some(Time::new(pass.now));
    }
    let error = served.error.or(sized.error);
    let judged = judge(pass, goal, next, error);
    let told = tell(pass, &before, &judged);
    let watched = watch_over(pass, goal, &judged);
    (judged, served.plan.and(sized.plan).and(told).and(watched))
}

fn counts(one: &TemplateStatus) -> [i32; 4] {
    [one.replicas, one.updated_replicas, one.ready_replicas, one.available_replicas]
}

/// The ReplicaSet of a template, if it is there; two of them are one too many.
fn find<'w>(
    pass: &Pass<'w>,
    template: &ExperimentTemplate,
) -> Result<Option<&'w Arc<ReplicaSetView>>, Box<Why>> {
    let (experiment, name) = (pass.experiment, &template.name);
    let is_its = |set: &&Arc<ReplicaSetView>| {
        set.has_annotation(annotation::EXPERIMENT_NAME, &experiment.name)
            && set.has_annotation(annotation::EXPERIMENT_TEMPLATE_NAME, name)
    };
    let mut found = pass.owned.sets.iter().filter(is_its);
    let first = found.next();
    match found.next() {
        None => Ok(first),
        Some(_) => {
            let message = format!("multiple ReplicaSets match single experiment template: {name}");
            let guard = Guard::InvalidSpec { message };
            Err(Box::new(experiment.why(guard, "metadata.ownerReferences", Frees::Edit)))
        }
    }
}

/// How it stands. What has ended stays as it ended.
fn judge(
    pass: &Pass<'_>,
    goal: TemplateGoal<'_>,
    next: TemplateStatus,
    error: Option<String>,
) -> TemplateStatus {
    if is_completed(&goal.before.status) {
        return next;
    }
    let deadline = deadline(pass, &next);
    let is_available = goal.set.map_or(0, |set| set.available()) == goal.desired;
    let is_to_end = pass.is_terminating || is_available && pass.has_passed_duration();
    let (status, message) = match error {
        Some(error) => (analysis_phase::ERROR, error),
        None if is_to_end => (analysis_phase::SUCCESSFUL, String::new()),
        None if is_available => (analysis_phase::RUNNING, String::new()),
        None if deadline.is_some_and(|deadline| deadline <= pass.now) => {
            let seconds = pass.experiment.spec.progress_deadline_seconds_or_default();
            let name = &goal.template.name;
            let text =
                format!("Template '{name}' exceeded its progressDeadlineSeconds ({seconds})");
            (analysis_phase::FAILED, text)
        }
        None => (analysis_phase::PROGRESSING, String::new()),
    };
    TemplateStatus { status: status.to_owned(), message, ..next }
}

/// When a set of pods must have moved again.
fn deadline(pass: &Pass<'_>, status: &TemplateStatus) -> Option<Timestamp> {
    let seconds = pass.experiment.spec.progress_deadline_seconds_or_default();
    let since = status.last_transition_time?.timestamp();
    Some(later(since, SignedDuration::from_secs(i64::from(seconds))))
}

fn tell(pass: &Pass<'_>, before: &TemplateStatus, next: &TemplateStatus) -> Plan {
    if before.status == next.status {
        return Plan::default();
    }
    let what = format!("Template '{}'", next.name);
    let text = transition(&what, &before.status, &next.status, &next.message);
    let kind = event_kind(RunPhase::of(&next.status).is_bad());
    let reason = format!("{}{}", reason_of::TEMPLATE_PREFIX, next.status);
    Plan::event(event(pass.experiment.reference(), kind, reason, text))
}

/// Says what pods are waited for, and until when.
fn watch_over(pass: &Pass<'_>, goal: TemplateGoal<'_>, next: &TemplateStatus) -> Plan {
    if next.status != analysis_phase::PROGRESSING {
        return Plan::default();
    }
    let deadline = deadline(pass, next);
    let set = goal.set.map(|set| replica_set(pass, &set.name));
    let why = Why {
        guard: Guard::NotAvailable {
            available: goal.set.map_or(0, |set| set.available()),
            wanted: goal.desired,
        },
        object: set.unwrap_or_else(|| replica_set(pass, &name_of(pass, goal.template))),
        field: "status.availableReplicas".into(),
        since: next.last_transition_time.map(Time::timestamp),
        frees: Frees::Cluster,
    };
    Plan::waits(why).waking(deadline)
}

/// A new ReplicaSet, still without pods.
fn create(pass: &Pass<'_>, goal: TemplateGoal<'_>) -> TemplatePart {
    let name = name_of(pass, goal.template);
    let target = replica_set(pass, &name);
    let change = Change::create(target.clone(), manifest(pass, goal, &name));
    let template = &goal.template.name;
    let made =
        |change: Change| TemplatePart { has_moved: true, ..TemplatePart::of(Plan::change(change)) };
    match pass.tried(&change) {
        Tried::Never => made(change),
        Tried::Denied(failure) => {
            let message = &failure.message;
            let text = format!("Failed to create new replica set \"{name}\": {message}");
            let about = pass.experiment.reference();
            let reason = gradus_api::names::reason::REPLICA_SET_CREATE_ERROR.to_owned();
            TemplatePart {
                plan: Plan::event(event(about, EventKind::Normal, reason, text)),
                error: Some(format!(
                    "Failed to create ReplicaSet for template '{template}': {message}"
                )),
                has_moved: false,
            }
        }
        Tried::Due(Failure { class: Class::Exists, .. })
        | Tried::Held(Failure { class: Class::Exists, .. }) => {
            match owner_of(pass, &target, goal) {
                Holder::Nobody => made(change),
                Holder::Unknown | Holder::Ours => {
                    TemplatePart::of(Plan::read(pass.experiment, target))
                }
                Holder::Another => TemplatePart::broken(format!(
                    "Failed to create ReplicaSet for template '{template}': replicasets.apps \
                 \"{name}\" already exists"
                )),
            }
        }
        Tried::Held(failure) => TemplatePart::of(Plan::held(&change, failure)),
        Tried::Due(_) => made(change),
    }
}

/// Whose is an object whose name is taken?
pub(super) enum Holder {
    Ours,
    Another,
    Nobody,
    Unknown,
}

/// Whose is an object of a name that a set of pods wants? A read of it says so.
pub(super) fn owner_of(pass: &Pass<'_>, target: &ObjectRef, goal: TemplateGoal<'_>) -> Holder {
    let id = crate::ask::Ask::read(target.clone()).id;
    match pass.world.answers.get(&id).map(|answer| &answer.reply) {
        Some(Ok(Reply::Object(Some(object)))) => {
            let notes = &object["metadata"]["annotations"];
            let is_ours = is_controlled_by(object, pass.experiment.uid)
                && notes[annotation::EXPERIMENT_NAME] == *pass.experiment.name
                && notes[annotation::EXPERIMENT_TEMPLATE_NAME] == *goal.template.name;
            if is_ours { Holder::Ours } else { Holder::Another }
        }
        Some(Ok(_)) => Holder::Nobody,
        Some(Err(_)) | None => Holder::Unknown,
    }
}

/// What the ReplicaSet of a template is called.
pub(super) fn name_of(pass: &Pass<'_>, template: &ExperimentTemplate) -> Arc<str> {
    format!("{}-{}", pass.experiment.name, template.name).into()
}

fn replica_set(pass: &Pass<'_>, name: &Arc<str>) -> ObjectRef {
    ObjectRef::new(kinds::REPLICA_SET, &pass.experiment.namespace, name)
}

fn manifest(pass: &Pass<'_>, goal: TemplateGoal<'_>, name: &str) -> Value {
    let template = pod_template(goal.template);
    let hash = pod_template_hash(&template, goal.before.collision_count);
    replica_set_create::manifest(NewReplicaSet {
        namespace: &pass.experiment.namespace,
        name,
        owner: pass.experiment.owner_reference(),
        hash: &hash,
        selector: json!(goal.template.selector),
        template,
        annotations: annotations(pass, goal.template),
        replicas: 0,
        min_ready_seconds: goal.template.min_ready_seconds,
    })
}

/// The pod template without the hash of the revision it may be copied from.
pub(super) fn pod_template(template: &ExperimentTemplate) -> Value {
    let mut pods = Value::clone(&template.template);
    if let Some(labels) = pods["metadata"]["labels"].as_object_mut() {
        labels.remove(label::POD_TEMPLATE_HASH);
    }
    pods
}

/// What the objects of a set of pods carry.
pub(super) fn annotations(pass: &Pass<'_>, template: &ExperimentTemplate) -> Map<String, Value> {
    let notes = [
        (annotation::EXPERIMENT_NAME, json!(&*pass.experiment.name)),
        (annotation::EXPERIMENT_TEMPLATE_NAME, json!(template.name)),
    ];
    notes.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// What is done to the size of a ReplicaSet.
enum Sizing {
    Nothing,
    /// Its pods stay until this moment.
    Wait(Timestamp),
    /// Its pods are to stay until this moment: that is noted.
    Note(Timestamp),
    /// Nothing is to be taken away from it any more.
    Forget,
    To(i32),
}

fn sizing(pass: &Pass<'_>, goal: TemplateGoal<'_>, set: &ReplicaSetView) -> Sizing {
    if set.deleting {
        return Sizing::Nothing;
    }
    let has_note = set.deadline != Deadline::None;
    match goal.desired {
        0 if set.size == 0 => Sizing::Nothing,
        0 => {
            let seconds = pass.experiment.spec.scale_down_delay_seconds_or_default();
            let delay = SignedDuration::from_secs(i64::from(seconds.max(0)));
            match set.deadline {
                _ if delay.is_zero() => Sizing::To(0),
                Deadline::At(second) => match Timestamp::from_second(second) {
                    Ok(moment) if pass.now < moment => Sizing::Wait(moment),
                    _ => Sizing::To(0),
                },
                Deadline::None | Deadline::Unreadable => Sizing::Note(later(pass.now, delay)),
            }
        }
        desired if desired == set.size && has_note => Sizing::Forget,
        desired if desired == set.size => Sizing::Nothing,
        desired => Sizing::To(desired),
    }
}

fn size(pass: &Pass<'_>, goal: TemplateGoal<'_>, set: &ReplicaSetView) -> TemplatePart {
    let note = |value: Value| json!({ annotation::SCALE_DOWN_DEADLINE: value });
    let body = match sizing(pass, goal, set) {
        Sizing::Nothing => return TemplatePart::default(),
        Sizing::Wait(until) => {
            let why = Why {
                guard: Guard::Delay,
                object: replica_set(pass, &set.name),
                field: "spec.replicas".into(),
                since: None,
                frees: Frees::At(until),
            };
            return TemplatePart::of(Plan::waits(why).waking(Some(until)));
        }
        Sizing::Note(until) => {
            json!({ "metadata": { "annotations": note(json!(Time::new(until).to_string())) } })
        }
        Sizing::Forget => json!({ "metadata": { "annotations": note(Value::Null) } }),
        // A time that has passed stays, and says when the pods went.
        Sizing::To(0) => json!({ "spec": { "replicas": 0 } }),
        Sizing::To(size) if set.deadline == Deadline::None => {
            json!({ "spec": { "replicas": size } })
        }
        Sizing::To(size) => json!({ "spec": { "replicas": size },
            "metadata": { "annotations": note(Value::Null) } }),
    };
    let change = Change::patch(replica_set(pass, &set.name), body.clone(), set.version);
    let to = body["spec"]["replicas"].as_i64();
    match pass.tried(&change) {
        Tried::Held(failure) => TemplatePart::of(Plan::held(&change, failure)),
        Tried::Denied(failure) if !is_completed(&goal.before.status) => {
            unsized_part(pass, goal, set, &failure.message)
        }
        Tried::Denied(failure) if pass.now < failure.retry_at => {
            TemplatePart::of(Plan::held(&change, failure))
        }
        Tried::Never | Tried::Due(_) | Tried::Denied(_) => TemplatePart {
            has_moved: to.is_some(),
            plan: match to {
                Some(to) => resized(pass, set, change, to),
                None => Plan::change(change),
            },
            error: None,
        },
    }
}

fn direction(from: i32, to: i64) -> &'static str {
    if i64::from(from) < to { "up" } else { "down" }
}

fn resized(pass: &Pass<'_>, set: &ReplicaSetView, change: Change, to: i64) -> Plan {
    let (from, way) = (set.size, direction(set.size, to));
    let text = format!("Scaled {way} ReplicaSet {} from {from} to {to}", set.name);
    let reason = reason_of::SCALING_REPLICA_SET.to_owned();
    let mut told = event(pass.experiment.reference(), EventKind::Normal, reason, text);
    told.after = After::Change(change.id.clone());
    Plan::change(change).and(Plan::event(told))
}

/// The size is refused for good.
fn unsized_part(
    pass: &Pass<'_>,
    goal: TemplateGoal<'_>,
    set: &ReplicaSetView,
    message: &str,
) -> TemplatePart {
    let (name, desired) = (&goal.template.name, goal.desired);
    let way = direction(set.size, i64::from(desired));
    let text = format!("Failed to scale {} {way}: {message}", set.name);
    let reason = reason_of::REPLICA_SET_UPDATE_ERROR.to_owned();
    let told = event(pass.experiment.reference(), EventKind::Warning, reason, text);
    TemplatePart {
        plan: Plan::event(told),
        error: Some(format!(
            "Unable to scale ReplicaSet for template '{name}' to desired replica count \
             '{desired}': {message}"
        )),
        has_moved: false,
    }
}
