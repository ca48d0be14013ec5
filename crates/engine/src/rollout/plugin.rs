//! What must a step plugin be told now, and what does its answer mean?
//!
//! A plugin acts outside, so it is called only on a stored status that says so: the entry of a step
//! is stored as Running before the first call. Every answer is recorded, even after an abort.

mod heard;

use std::sync::Arc;

use gradus_api::names::{analysis_phase, event, phase, plugin_operation};
use gradus_api::rollout::StepKind;
use gradus_api::rollout::canary::PluginStep;
use gradus_api::rollout::status::StepPluginStatus;
use gradus_api::values::Time;
use jiff::{SignedDuration, Timestamp};

use super::draft::Draft;
use super::urgency::has_same_gates;
use crate::ask::{Answer, Ask, AskId, Effect, PluginCall, PluginReply, Question, Reply};
use crate::decision::{After, EventKind, Frees, Guard, Why};
use heard::Heard;

/// How long a plugin that could not be called rests.
const RETRY: SignedDuration = SignedDuration::from_secs(30);

/// How long after its back-off a plugin is looked at by itself.
const GRACE: SignedDuration = SignedDuration::from_secs(5);

/// Calls the plugin of the current step, ends one that is no longer needed, or takes back what
/// plugins of an aborted update have done. A plugin that failed gives the update up.
pub(super) fn apply(draft: Draft<'_>) -> Draft<'_> {
    let mut draft = call_due(draft);
    if draft.found.abort_because.is_none() {
        draft.found.abort_because = failure(&draft);
    }
    draft
}

fn call_due(draft: Draft<'_>) -> Draft<'_> {
    let status = &draft.status;
    let is_promoted = !status.stable_rs.is_empty() && status.stable_rs == status.current_pod_hash;
    if draft.promotes_fully() || is_promoted {
        return terminate(draft);
    }
    if status.abort {
        return abort(draft);
    }
    run(without_leftovers(draft))
}

/// Why the update must be given up because of the current step's plugin, if it must.
fn failure(draft: &Draft<'_>) -> Option<String> {
    let (index, _, _) = current(draft)?;
    let entry = &draft.status.canary.step_plugin_statuses[run_of(draft, index)?];
    let has_failed = entry.phase == analysis_phase::FAILED && !draft.status.abort;
    has_failed
        .then(|| format!("Step Plugin {} ({}) failed: {}", index + 1, entry.name, entry.message))
}

/// Has the plugin of this step done what it should, or is it not to go on?
pub(super) fn is_complete(draft: &Draft<'_>, index: usize) -> bool {
    let Some(at) = run_of(draft, index) else { return false };
    let entry = &draft.status.canary.step_plugin_statuses[at];
    let is_ended = [plugin_operation::TERMINATE, plugin_operation::ABORT]
        .into_iter()
        .any(|operation| find(draft, index, operation).is_some());
    match entry.phase.as_str() {
        _ if entry.disabled => true,
        analysis_phase::SUCCESSFUL | analysis_phase::FAILED => true,
        analysis_phase::RUNNING => is_ended,
        _ => false,
    }
}

/// The update starts over: what plugins said of the one before is dropped.
pub(super) fn forget(draft: Draft<'_>) -> Draft<'_> {
    let mut draft = draft;
    if !draft.status.canary.step_plugin_statuses.is_empty() {
        entries(&mut draft).clear();
    }
    draft
}

fn entries<'d>(draft: &'d mut Draft<'_>) -> &'d mut Vec<StepPluginStatus> {
    &mut Arc::make_mut(&mut draft.status).canary.step_plugin_statuses
}

/// What the status keeps of plugins: all of it, until the update starts over.
pub(super) fn kept(draft: &Draft<'_>) -> Vec<StepPluginStatus> {
    if draft.is_blue_green() {
        return Vec::new();
    }
    draft.status.canary.step_plugin_statuses.clone()
}

/// Why the current step waits for its plugin.
pub(super) fn explain(draft: &Draft<'_>) -> Vec<Why> {
    let Some((index, _, step)) = current(draft) else { return Vec::new() };
    let entry = run_of(draft, index).map(|at| &draft.status.canary.step_plugin_statuses[at]);
    let message = entry.map(|entry| entry.message.clone()).unwrap_or_default();
    let next = entry.and_then(next_call).filter(|next| draft.now < *next);
    vec![Why {
        guard: Guard::PluginStep { index, count: draft.steps().len(), message },
        object: draft.rollout().reference(),
        field: format!("spec.strategy.canary.steps[{index}].plugin ({})", step.name).into(),
        since: entry.and_then(|entry| entry.started_at).map(Time::timestamp),
        frees: next.map_or(Frees::Cluster, Frees::At),
    }]
}

/// A retry starts over: entries of the attempt before are dropped when step 0 begins again.
fn without_leftovers(draft: Draft<'_>) -> Draft<'_> {
    let is_first = draft.current_step().is_some_and(|(index, _)| index == 0);
    let is_under_way =
        current(&draft).is_some() && run_of(&draft, 0).is_some() && !is_complete(&draft, 0);
    if is_first && !is_under_way { forget(draft) } else { draft }
}

/// The plugin of the current step runs until it says that it is done.
fn run(draft: Draft<'_>) -> Draft<'_> {
    let Some((index, text, step)) = current(&draft) else { return draft };
    if draft.status.phase != phase::PROGRESSING {
        return draft;
    }
    let mut draft = draft;
    let Some(at) = run_of(&draft, index) else {
        let entry = StepPluginStatus {
            index: text,
            name: step.name.clone(),
            operation: plugin_operation::RUN.to_owned(),
            phase: analysis_phase::RUNNING.to_owned(),
            started_at: Some(Time::new(draft.now)),
            ..StepPluginStatus::default()
        };
        entries(&mut draft).push(entry);
        return draft;
    };
    if is_complete(&draft, index) {
        return draft;
    }
    let entry = draft.status.canary.step_plugin_statuses[at].clone();
    if let Some(next) = next_call(&entry).filter(|next| draft.now < *next) {
        let grace = if was_never_called(&entry) { SignedDuration::ZERO } else { GRACE };
        return draft.wake(next + grace);
    }
    let (draft, reply) = call(draft, &entry, plugin_operation::RUN, None);
    let Some((reply, _)) = reply else { return draft };
    record_run(draft, at, &entry, &reply)
}

fn record_run<'w>(
    draft: Draft<'w>,
    at: usize,
    entry: &StepPluginStatus,
    reply: &PluginReply,
) -> Draft<'w> {
    let mut draft = draft;
    match heard::after_run(entry, reply, draft.now) {
        Heard::Entry(next) => {
            let before = if entry.executions == 0 { "" } else { &entry.phase };
            if next.phase != *before && next.phase != analysis_phase::SUCCESSFUL && !next.disabled {
                draft = tell(draft, &next, &format!("transitioned to {}", next.phase));
            }
            let next = *next;
            draft = match next_call(&next) {
                Some(due) if !is_over(&next) => draft.wake(due + GRACE),
                _ => draft,
            };
            entries(&mut draft)[at] = next;
            draft
        }
        Heard::Error { words, was_called } => {
            let now = Time::new(draft.now);
            let known = &mut entries(&mut draft)[at];
            known.message.clone_from(&words);
            known.updated_at = Some(now);
            known.backoff = heard::duration_text(RETRY);
            known.executions += i32::from(was_called);
            let due = draft.now + RETRY;
            complain(draft, &words).wake(due)
        }
        Heard::Nothing => draft,
    }
}

/// Everything a plugin has begun or done is taken back, the last first.
fn abort(draft: Draft<'_>) -> Draft<'_> {
    let draft = with_late_answer(draft);
    let statuses = &draft.status.canary.step_plugin_statuses;
    let due = statuses.iter().rev().find(|entry| {
        let is_undoable =
            entry.phase == analysis_phase::RUNNING || entry.phase == analysis_phase::SUCCESSFUL;
        is_run(entry)
            && is_undoable
            && !was_never_called(entry)
            && !is_switched_off(&draft, entry, plugin_operation::ABORT)
            && find_at(&draft, entry.index, plugin_operation::ABORT).is_none()
    });
    match due.cloned() {
        Some(entry) => end(draft, &entry, plugin_operation::ABORT, "aborted"),
        None => draft,
    }
}

/// A call made before the abort has been answered: that is recorded first.
fn with_late_answer(draft: Draft<'_>) -> Draft<'_> {
    let statuses = &draft.status.canary.step_plugin_statuses;
    let is_answered = |entry: &StepPluginStatus| {
        let id = call_id(&draft, entry, plugin_operation::RUN);
        is_run(entry) && !is_over(entry) && draft.world.answers.contains_key(&id)
    };
    let Some(at) = statuses.iter().position(is_answered) else { return draft };
    let entry = statuses[at].clone();
    let (draft, reply) = call(draft, &entry, plugin_operation::RUN, None);
    match reply {
        Some((reply, _)) => record_run(draft, at, &entry, &reply),
        None => draft,
    }
}

/// A plugin that still runs although nobody waits for it is told so, once.
fn terminate(draft: Draft<'_>) -> Draft<'_> {
    let statuses = &draft.status.canary.step_plugin_statuses;
    let is_done = |entry: &&StepPluginStatus| {
        entry.operation == plugin_operation::TERMINATE && entry.phase == analysis_phase::SUCCESSFUL
    };
    let later = statuses.iter().rev().take_while(|entry| !is_done(entry));
    let last = later.into_iter().find(|entry| {
        is_run(entry) && entry.phase == analysis_phase::RUNNING && !was_never_called(entry)
    });
    let due = last.filter(|entry| {
        !is_switched_off(&draft, entry, plugin_operation::TERMINATE)
            && find_at(&draft, entry.index, plugin_operation::TERMINATE).is_none()
    });
    match due.cloned() {
        Some(entry) => end(draft, &entry, plugin_operation::TERMINATE, "terminated"),
        None => draft,
    }
}

/// One call that ends a run, and what came of it.
fn end<'w>(
    draft: Draft<'w>,
    entry: &StepPluginStatus,
    operation: &'static str,
    done: &str,
) -> Draft<'w> {
    let (draft, reply) = call(draft, entry, operation, Some(RETRY));
    let Some((reply, asked_at)) = reply else { return draft };
    let mut draft = draft;
    match heard::after_end(entry, operation, &reply, draft.now) {
        Heard::Entry(next) => {
            let draft = tell(draft, &next, &format!("{done} ({})", next.phase));
            let mut draft = draft;
            entries(&mut draft).push(*next);
            draft
        }
        Heard::Error { words, .. } => {
            let is_run =
                |known: &&mut StepPluginStatus| is_run(known) && known.index == entry.index;
            let mut statuses = entries(&mut draft).iter_mut();
            let known = statuses.find(is_run).filter(|known| known.message != words);
            let is_news = known.map(|known| known.message.clone_from(&words)).is_some();
            let draft = if is_news { complain(draft, &words) } else { draft };
            draft.wake(asked_at + RETRY)
        }
        Heard::Nothing => draft,
    }
}

/// Lists a call where the stored status justifies it; the reply, once there is one, and when it
/// was asked for. After `again` a reply that was no good is asked for once more.
fn call<'w>(
    draft: Draft<'w>,
    entry: &StepPluginStatus,
    operation: &'static str,
    again: Option<SignedDuration>,
) -> (Draft<'w>, Option<(PluginReply, Timestamp)>) {
    let Some(step) = step_of(&draft, entry.index) else { return (draft, None) };
    let id = call_id(&draft, entry, operation);
    let answer = draft.world.answers.get(&id);
    let expiry = answer.zip(again).map(|(answer, again)| answer.asked_at + again);
    let ask = Ask {
        question: Question::Plugin(PluginCall {
            name: step.name.clone(),
            operation: operation.to_owned(),
            index: entry.index,
            config: step.config.clone(),
            status: entry.status.clone(),
        }),
        effect: Effect::Acts,
        after: expiry.filter(|expiry| *expiry <= draft.now),
        id,
    };
    let is_stored = has_same_gates(&draft.rollout().status, &draft.status);
    let may_act = is_stored && draft.changes.is_empty();
    let is_fresh = |answer: &&Answer| ask.after.is_none_or(|after| after <= answer.asked_at);
    let reply = answer.filter(is_fresh).map(|answer| (reply_of(answer), answer.asked_at));
    let mut draft = draft;
    let is_listed = draft.asks.iter().any(|known| known.id == ask.id);
    if !is_listed && (may_act || answer.is_some()) {
        draft.asks.push(ask);
    }
    (draft, reply)
}

/// The same for the same goal: a call is not made twice for one state of its entry.
fn call_id(draft: &Draft<'_>, entry: &StepPluginStatus, operation: &str) -> AskId {
    let time = |time: Option<Time>| time.map_or(0, |time| time.timestamp().as_second());
    let (started, updated) = (time(entry.started_at), time(entry.updated_at));
    let state = match operation {
        plugin_operation::RUN => format!("{} {updated}", entry.executions),
        _ => String::new(),
    };
    let (index, hash) = (entry.index, &draft.status.current_pod_hash);
    AskId(format!("plugin {hash} {index} {operation} {started} {state}").into())
}

fn reply_of(answer: &Answer) -> PluginReply {
    match &answer.reply {
        Ok(Reply::Plugin(reply)) => reply.clone(),
        Ok(_) => PluginReply::Broken("the answer is none of a step plugin".to_owned()),
        Err(failure) => PluginReply::Broken(failure.message.clone()),
    }
}

/// The current step where it is a plugin: its index, as it stands in the status, and the step.
fn current<'w>(draft: &Draft<'w>) -> Option<(usize, i32, &'w PluginStep)> {
    let (index, step) = draft.current_step()?;
    let StepKind::Plugin(step) = step.kind() else { return None };
    Some((index, i32::try_from(index).ok()?, step))
}

fn step_of<'w>(draft: &Draft<'w>, index: i32) -> Option<&'w PluginStep> {
    match draft.steps().get(usize::try_from(index).ok()?)?.kind() {
        StepKind::Plugin(step) => Some(step),
        _ => None,
    }
}

fn run_of(draft: &Draft<'_>, index: usize) -> Option<usize> {
    find(draft, index, plugin_operation::RUN)
}

fn find(draft: &Draft<'_>, index: usize, operation: &str) -> Option<usize> {
    find_at(draft, i32::try_from(index).ok()?, operation)
}

fn find_at(draft: &Draft<'_>, index: i32, operation: &str) -> Option<usize> {
    let is_it = |entry: &StepPluginStatus| entry.index == index && entry.operation == operation;
    draft.status.canary.step_plugin_statuses.iter().position(is_it)
}

fn is_run(entry: &StepPluginStatus) -> bool {
    entry.operation == plugin_operation::RUN
}

/// Was every attempt refused before the plugin could hear of it? Then there is nothing to end.
fn was_never_called(entry: &StepPluginStatus) -> bool {
    entry.executions == 0 && entry.updated_at.is_some()
}

/// Did the plugin turn out to be switched off when it should have been told this?
fn is_switched_off(draft: &Draft<'_>, entry: &StepPluginStatus, operation: &str) -> bool {
    let answer = draft.world.answers.get(&call_id(draft, entry, operation));
    answer.is_some_and(|answer| reply_of(answer) == PluginReply::Disabled)
}

fn is_over(entry: &StepPluginStatus) -> bool {
    matches!(entry.phase.as_str(), analysis_phase::SUCCESSFUL | analysis_phase::FAILED)
}

/// When the plugin may be called again; `None` where it was never called.
fn next_call(entry: &StepPluginStatus) -> Option<Timestamp> {
    let updated = entry.updated_at?.timestamp();
    // A back-off that cannot be read is as long as that of an error.
    let backoff = gradus_api::values::parse_go_duration(&entry.backoff).unwrap_or(RETRY);
    updated.checked_add(backoff).ok()
}

fn tell<'w>(draft: Draft<'w>, entry: &StepPluginStatus, what: &str) -> Draft<'w> {
    let is_bad = matches!(entry.phase.as_str(), analysis_phase::ERROR | analysis_phase::FAILED);
    let kind = if is_bad { EventKind::Warning } else { EventKind::Normal };
    let text = format!("Step plugin {} (step {}) {what}", entry.name, entry.index + 1);
    draft.event(kind, event::STEP_PLUGIN_TRANSITION, text, After::Status)
}

fn complain<'w>(draft: Draft<'w>, words: &str) -> Draft<'w> {
    let text = format!("Reconciliation failed with error: {words}");
    draft.event(EventKind::Warning, event::RECONCILIATION_ERROR, text, After::Status)
}
