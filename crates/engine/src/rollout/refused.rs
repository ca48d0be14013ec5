//! What is decided while a change of ours is refused? Nothing beyond it, and the user is told why.

use std::borrow::Cow;
use std::sync::Arc;

use gradus_api::names::{annotation, condition, condition_status, phase, reason};
use gradus_api::rollout::RolloutStatus;
use jiff::Timestamp;
use serde_json::Value;

use super::conditions::{self, Statement};
use super::draft::{Draft, Passed};
use super::objects::Objects;
use super::plan::Plan;
use super::runs::Findings;
use super::{Memo, replica_sets, urgency, weights, why};
use crate::ask::{Ask, Class, Failure, Reply};
use crate::decision::{
    After, Change, ChangeId, Decision, Event, EventKind, Frees, Guard, OnRefusal, Op, Urgency, Why,
};
use crate::obtain::is_controlled_by;
use crate::template::{TemplateSide, normalized_digest};
use crate::traffic;
use crate::world::World;

/// The decision of what the passes came to, without changes that are put off, cut before the first
/// change that is refused and not due again.
pub(super) fn hold(passed: Passed<'_>) -> Decision<RolloutStatus, Memo> {
    let Passed { draft, found } = passed;
    let (draft, put_off) = put_off(draft);
    let mut decision = cut_or_whole(draft, &found);
    decision.why.extend(put_off);
    decision
}

/// Takes out what may be skipped, was refused and is not due again; says why.
fn put_off(draft: Draft<'_>) -> (Draft<'_>, Vec<Why>) {
    let (failed, now) = (&draft.objects.world.recall.failed, draft.objects.now);
    if failed.is_empty() {
        return (draft, Vec::new());
    }
    let Draft { objects, plan } = draft;
    let (mut changes, mut held, mut wake_at) = (Vec::new(), Vec::new(), plan.wake_at);
    for change in plan.changes {
        let may_skip = change.on_refusal != OnRefusal::Stop;
        let failure = failed.get(&change.id).filter(|failure| now < failure.retry_at);
        match failure.filter(|_| may_skip) {
            None => changes.push(change),
            Some(failure) => {
                wake_at = wake_at.into_iter().chain([failure.retry_at]).min();
                held.push(refusal(&change, failure));
            }
        }
    }
    (Draft { objects, plan: Plan { changes, wake_at, ..plan } }, held)
}

fn refusal(change: &Change, failure: &Failure) -> Why {
    Why {
        guard: Guard::Refused { message: failure.message.clone(), times: failure.times },
        object: change.target.clone(),
        field: field(&change.op),
        since: None,
        frees: Frees::At(failure.retry_at),
    }
}

/// The field that a write is about: of a patch the first it changes, rather of the spec.
fn field(op: &Op) -> Cow<'static, str> {
    let body = match op {
        Op::Merge(body) => body,
        Op::Create(_) => return "spec".into(),
        Op::Delete | Op::Evict => return "metadata.deletionTimestamp".into(),
    };
    let part = if body["spec"].is_object() { "spec" } else { "metadata" };
    let keys = body[part].as_object().into_iter().flat_map(|fields| fields.keys());
    match keys.into_iter().next() {
        Some(key) => format!("{part}.{key}").into(),
        None => part.into(),
    }
}

fn cut_or_whole(draft: Draft<'_>, found: &Findings) -> Decision<RolloutStatus, Memo> {
    let objects = &draft.objects;
    let failed = &objects.world.recall.failed;
    let refused = draft.plan.changes.iter().enumerate().find_map(|(at, change)| {
        let failure = failed.get(&change.id)?;
        let is_due = !is_taken(objects, change, failure) && failure.retry_at <= objects.now;
        (!is_due).then(|| (at, change.clone(), failure.clone()))
    });
    match refused {
        None => whole(draft, found),
        Some((at, change, failure)) if is_taken(objects, &change, &failure) => {
            exists(draft, found, at, &change)
        }
        Some((at, change, failure)) => cut(draft, at, &change, &failure),
    }
}

/// Has somebody else the name that the new ReplicaSet should have? (Of every other kind the index
/// will show the one that is there.)
fn is_taken(objects: &Objects<'_>, change: &Change, failure: &Failure) -> bool {
    let is_new = change.target == replica_sets::create_target(objects.rollout());
    failure.class == Class::Exists && is_new
}

fn whole(draft: Draft<'_>, found: &Findings) -> Decision<RolloutStatus, Memo> {
    let Draft { objects, plan } = draft;
    let stored = &objects.rollout().status;
    let why = why::explain(&objects, &plan, found);
    let Plan { changes, events, asks, wake_at, .. } = plan;
    let Objects { status, memo, .. } = *objects;
    let status = (status != *stored).then(|| Arc::unwrap_or_clone(status));
    let urgency = status.as_ref().map_or(Urgency::Now, |next| urgency::of(stored, next));
    Decision { status, changes, urgency, events, asks, memo, wake_at, why }
}

/// Only what stands before the refused change is done; the status says what is refused.
fn cut(
    draft: Draft<'_>,
    at: usize,
    change: &Change,
    failure: &Failure,
) -> Decision<RolloutStatus, Memo> {
    let Draft { objects, plan } = draft;
    // A later patch of the same ReplicaSet (a resize) says nothing about its making.
    let is_create = matches!(change.op, Op::Create(_))
        && change.target == replica_sets::create_target(objects.rollout());
    let is_route = objects.routes.contains_key(&change.target) && failure.class == Class::Denied;
    let (status, told) = match (is_create, is_route) {
        (true, _) => {
            let (status, told) = create_error(&objects, failure);
            (status, told.into_iter().collect())
        }
        (_, true) => routing_error(&objects, change, failure),
        _ => (denied(&objects, change, failure), Vec::new()),
    };
    let changes: Vec<Change> = plan.changes[..at].to_vec();
    let is_kept = |event: &Event| match &event.after {
        After::Change(id) => changes.iter().any(|kept| kept.id == *id),
        After::Status => false,
    };
    let events = plan.events.iter().filter(|event| is_kept(event)).cloned().chain(told).collect();
    Decision {
        status,
        urgency: Urgency::Now,
        events,
        memo: objects.world.recall.memo.clone(),
        wake_at: Some(failure.retry_at.max(objects.now)),
        why: vec![refusal(change, failure)],
        asks: plan.asks,
        changes,
    }
}

/// Any other write that is refused for good stands in a condition, in the server's words.
fn denied(objects: &Objects<'_>, change: &Change, failure: &Failure) -> Option<RolloutStatus> {
    if failure.class != Class::Denied {
        return None;
    }
    let mut next = (*objects.rollout().status).clone();
    let message = format!("{}: {}", change.target, failure.message);
    let words = format_args!("{message}");
    said(objects, &mut next, Statement::held(reason::REFUSED, words)).map(|_| next)
}

/// Puts a refusal into a condition; the Event about it, unless the status already says so.
fn said(
    objects: &Objects<'_>,
    next: &mut RolloutStatus,
    statement: Statement<'_>,
) -> Option<Event> {
    let message = statement.message.to_string();
    let known = next.condition(statement.r#type);
    if known.is_some_and(|known| known.message == message) {
        return None;
    }
    conditions::refresh(&mut next.conditions, objects.now, statement);
    Some(Event {
        about: objects.rollout().reference(),
        uid: None,
        kind: EventKind::Warning,
        reason: statement.reason.into(),
        message,
        after: After::Status,
    })
}

/// What the server finds wrong with the pod template, as a field error, and when it is asked again. It
/// knows every rule of pods; we check the common ones.
pub(super) fn template_error(world: &World, now: Timestamp) -> Option<(String, Timestamp)> {
    if world.recall.failed.is_empty() {
        return None;
    }
    let target = replica_sets::create_target(&world.rollout);
    let failure = world.recall.failed.get(&ChangeId::of("create", &target))?;
    let said = &failure.message;
    let said = said.strip_prefix(&format!("ReplicaSet.apps {:?} is invalid: ", target.name))?;
    // Several errors stand in brackets, and each begins with its field.
    let listed = said.strip_prefix('[').and_then(|said| said.strip_suffix(']')).unwrap_or(said);
    let first = listed.split(", spec.template").next()?;
    let is_so = first.starts_with("spec.template") && now < failure.retry_at;
    is_so.then(|| (first.to_owned(), failure.retry_at))
}

/// The new ReplicaSet cannot be made: condition and Event, in the server's words.
fn create_error(
    objects: &Objects<'_>,
    failure: &Failure,
) -> (Option<RolloutStatus>, Option<Event>) {
    let rollout = objects.rollout();
    let name = replica_sets::create_target(rollout).name;
    let message = format!("Failed to create new replica set \"{name}\": {}", failure.message);
    let mut next = (*rollout.status).clone();
    let (status, reason) = (condition_status::FALSE, reason::REPLICA_SET_CREATE_ERROR);
    let words = format_args!("{message}");
    let told = said(objects, &mut next, Statement::progressing(status, reason, words));
    conditions::remove(&mut next.conditions, condition::INVALID_SPEC);
    next.observed_generation = objects.generation_text();
    // The old version may serve perfectly, but what was asked for is not there.
    (next.phase, next.message) = (phase::PROGRESSING.into(), message);
    ((next != *rollout.status).then_some(next), told)
}

/// Something of the wanted name is there: ours and equal is used, anything else is stepped around.
fn exists(
    draft: Draft<'_>,
    found: &Findings,
    at: usize,
    change: &Change,
) -> Decision<RolloutStatus, Memo> {
    let objects = &draft.objects;
    let ask = Ask::read(change.target.clone());
    let rollout = objects.rollout();
    let waits = |guard: Guard| Why {
        guard,
        object: change.target.clone(),
        field: "metadata.name".into(),
        since: None,
        frees: Frees::Cluster,
    };
    let answer = objects.world.answers.get(&ask.id);
    let idle = Decision {
        asks: vec![ask],
        memo: objects.world.recall.memo.clone(),
        ..Decision::default()
    };
    let Some(answer) = answer else {
        let question = format!("read {}", change.target);
        return Decision { why: vec![waits(Guard::Unanswered { question })], ..idle };
    };
    match &answer.reply {
        Ok(Reply::Object(Some(object))) if is_ours_and_equal(objects, object) => {
            // The index will show it as any other; nothing is made twice.
            let message = "exists already and is ours".to_owned();
            Decision { why: vec![waits(Guard::Unreadable { message })], ..idle }
        }
        Ok(Reply::Object(Some(_))) => {
            let mut next = (*rollout.status).clone();
            next.collision_count = Some(next.collision_count.unwrap_or(0) + 1);
            Decision { status: Some(next), urgency: Urgency::Now, asks: Vec::new(), ..idle }
        }
        Ok(_) => whole(draft, found),
        Err(unread) => {
            let mut decision = cut(draft, at, change, unread);
            decision.asks.extend(idle.asks);
            decision
        }
    }
}

/// A router cannot be told: condition and Events, in the server's words.
fn routing_error(
    objects: &Objects<'_>,
    change: &Change,
    failure: &Failure,
) -> (Option<RolloutStatus>, Vec<Event>) {
    let mut next = (*objects.rollout().status).clone();
    let told = said(objects, &mut next, weights::error(format_args!("{}", failure.message)));
    let Some(told) = told else { return (None, Vec::new()) };
    let refused = traffic::refused(&change.target, &change.op, &failure.message);
    let own = refused.map(|(kind, reason, message)| Event {
        kind,
        reason: reason.into(),
        message,
        ..told.clone()
    });
    (Some(next), own.into_iter().chain([told]).collect())
}

fn is_ours_and_equal(objects: &Objects<'_>, object: &Arc<Value>) -> bool {
    let rollout = objects.rollout();
    let is_ours = is_controlled_by(object, rollout.uid);
    let noted = object["metadata"]["annotations"][annotation::EPHEMERAL_METADATA].as_str();
    let digest = normalized_digest(&object["spec"]["template"], noted, TemplateSide::Live);
    is_ours && digest == rollout.spec.template_digest
}
