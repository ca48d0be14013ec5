//! What must a step plugin be told now, and what does its answer mean?
//!
//! A plugin acts outside, so it is called only on a stored status that says so: the entry of a step
//! is stored, without a phase, before the first call. Every answer is recorded, even after an abort.

mod heard;
mod ready;

use gradus_api::names::{analysis_phase, condition, event, phase, plugin_operation};
use gradus_api::rollout::canary::PluginStep;
use gradus_api::rollout::status::StepPluginStatus;
use gradus_api::rollout::{RolloutStatus, StepKind};
use gradus_api::values::Time;
use jiff::{SignedDuration, Timestamp};

use super::draft::Draft;
use super::objects::Objects;
use super::plan::{Plan, Proposal};
use super::urgency::has_same_gates;
use crate::ask::{Answer, Ask, AskId, Effect, PluginCall, PluginReply, Question, Reply};
use crate::decision::{EventKind, Frees, Guard, Why};
use heard::Heard;
use ready::Ready;

pub(super) use ready::is_reason;

/// How long a plugin that could not be called rests.
const RETRY: SignedDuration = SignedDuration::from_secs(30);

/// How long after its back-off a plugin is looked at by itself.
const GRACE: SignedDuration = SignedDuration::from_secs(5);

/// Calls the plugin of the current step, ends one that is no longer needed, or takes back what
/// plugins of an aborted update have done.
pub(super) fn apply(draft: Draft<'_>) -> Draft<'_> {
    let status = &draft.objects.status;
    let is_promoted = status.is_promoted();
    if draft.objects.promotes_fully() || is_promoted {
        let ended = terminate(&draft.objects, &draft.plan);
        return draft.with(ended);
    }
    if status.abort {
        let recorded = late_answer(&draft.objects, &draft.plan);
        let draft = draft.with(recorded);
        let ended = abort(&draft.objects, &draft.plan);
        return draft.with(ended);
    }
    let draft = draft.then(without_leftovers);
    let called = run(&draft.objects, &draft.plan);
    draft.with(called)
}

/// Why the update must be given up because of the current step's plugin, if it must.
pub(super) fn failure(objects: &Objects<'_>) -> Option<String> {
    let (index, _, _) = current(objects)?;
    let entry = &objects.status.canary.step_plugin_statuses[run_of(objects, index)?];
    let has_failed = entry.phase == analysis_phase::FAILED && !objects.status.abort;
    has_failed
        .then(|| format!("Step Plugin {} ({}) failed: {}", index + 1, entry.name, entry.message))
}

/// Has the plugin of this step done what it should, or is it not to go on?
pub(super) fn is_complete(objects: &Objects<'_>, index: usize) -> bool {
    let Some(at) = run_of(objects, index) else { return false };
    let entry = &objects.status.canary.step_plugin_statuses[at];
    let is_ended = [plugin_operation::TERMINATE, plugin_operation::ABORT]
        .into_iter()
        .any(|operation| find(objects, index, operation).is_some());
    match entry.phase.as_str() {
        _ if entry.disabled => true,
        analysis_phase::SUCCESSFUL | analysis_phase::FAILED => true,
        analysis_phase::RUNNING | "" => is_ended,
        _ => false,
    }
}

/// The update starts over: what plugins said of the one before is dropped.
pub(super) fn forget(objects: &Objects<'_>) -> Proposal {
    match objects.status.canary.step_plugin_statuses.is_empty() {
        true => Proposal::default(),
        false => noted(objects, Vec::clear),
    }
}

/// Notes other entries in the status.
fn noted(objects: &Objects<'_>, change: impl FnOnce(&mut Vec<StepPluginStatus>)) -> Proposal {
    let mut status = RolloutStatus::clone(&objects.status);
    change(&mut status.canary.step_plugin_statuses);
    Proposal::default().note(status)
}

/// What the status keeps of plugins: all of it, until the update starts over.
pub(super) fn kept(objects: &Objects<'_>) -> Vec<StepPluginStatus> {
    if objects.is_blue_green() {
        return Vec::new();
    }
    objects.status.canary.step_plugin_statuses.clone()
}

/// Why the current step waits for its plugin.
pub(super) fn explain(objects: &Objects<'_>) -> Vec<Why> {
    let Some((index, _, step)) = current(objects) else { return Vec::new() };
    let entry = run_of(objects, index).map(|at| &objects.status.canary.step_plugin_statuses[at]);
    let held = ready::held(&objects.status).filter(|_| entry.is_none());
    let message = entry.map(|entry| entry.message.clone());
    let message = message.or_else(|| held.map(|held| held.message.clone())).unwrap_or_default();
    let again = || held.map(|held| held.last_update_time.timestamp() + RETRY);
    let next = entry.and_then(next_call).or_else(again).filter(|next| objects.now < *next);
    let since = entry.and_then(|entry| entry.started_at);
    let since = since.or_else(|| held.map(|held| held.last_transition_time));
    vec![Why {
        guard: Guard::PluginStep { index, count: objects.steps().len(), message },
        object: objects.rollout().reference(),
        field: format!("spec.strategy.canary.steps[{index}].plugin ({})", step.name).into(),
        since: since.map(Time::timestamp),
        frees: next.map_or(Frees::Cluster, Frees::At),
    }]
}

/// Is a plugin awaited that may not be there?
pub(super) fn is_awaited(objects: &Objects<'_>) -> bool {
    current(objects).is_some() && !objects.status.abort && !objects.is_promoted()
}

/// A retry starts over: entries of the attempt before are dropped when step 0 begins again.
fn without_leftovers(objects: &Objects<'_>) -> Proposal {
    let is_first = objects.current_step().is_some_and(|(index, _)| index == 0);
    let is_under_way =
        current(objects).is_some() && run_of(objects, 0).is_some() && !is_complete(objects, 0);
    if is_first && !is_under_way { forget(objects) } else { Proposal::default() }
}

/// The plugin of the current step runs until it says that it is done.
fn run(objects: &Objects<'_>, plan: &Plan) -> Proposal {
    let Some((index, text, step)) = current(objects) else { return Proposal::default() };
    if objects.status.phase != phase::PROGRESSING {
        return Proposal::default();
    }
    let at = run_of(objects, index);
    if at.is_some() && is_complete(objects, index) {
        return Proposal::default();
    }
    let entry = at.map(|at| &objects.status.canary.step_plugin_statuses[at]);
    if let Some(entry) = entry
        && let Some(next) = next_call(entry).filter(|next| objects.now < *next)
    {
        let grace = if was_never_called(entry) { SignedDuration::ZERO } else { GRACE };
        return Proposal::default().wake(next + grace);
    }
    let (asked, ready) = ready::ask(objects, plan, text, step);
    let Some((at, entry)) = at.zip(entry) else {
        return asked.and(begin(objects, text, step, ready));
    };
    let refused = match ready {
        Ready::Unknown => return asked,
        Ready::There => None,
        Ready::Disabled => Some(PluginReply::Disabled),
        Ready::Refused(why, _) => Some(PluginReply::Unusable(why)),
    };
    if let Some(reply) = refused {
        return asked.and(record_run(objects, at, &reply));
    }
    let Called { proposal, reply } = call(objects, plan, entry, plugin_operation::RUN, None);
    let proposal = asked.and(proposal);
    match reply {
        Some((reply, _)) => proposal.and(record_run(objects, at, &reply)),
        None => proposal,
    }
}

/// Begins a step whose plugin can be called, or is switched off.
fn begin(objects: &Objects<'_>, index: i32, step: &PluginStep, ready: Ready) -> Proposal {
    let is_there = match ready {
        Ready::Unknown => return Proposal::default(),
        Ready::Refused(why, asked_at) => return ready::hold(objects, index, &why, asked_at),
        Ready::There => true,
        Ready::Disabled => false,
    };
    let entry = StepPluginStatus {
        index,
        name: step.name.clone(),
        operation: plugin_operation::RUN.to_owned(),
        started_at: Some(Time::new(objects.now)).filter(|_| is_there),
        disabled: !is_there,
        ..StepPluginStatus::default()
    };
    let mut status = RolloutStatus::clone(&objects.status);
    ready::unhold(&mut status);
    status.canary.step_plugin_statuses.push(entry);
    Proposal::default().note(status)
}

fn record_run(objects: &Objects<'_>, at: usize, reply: &PluginReply) -> Proposal {
    let entry = &objects.status.canary.step_plugin_statuses[at];
    match heard::after_run(entry, reply, objects.now) {
        Heard::Entry(next) => {
            let before = if entry.executions == 0 { "" } else { &entry.phase };
            let is_told =
                next.phase != *before && next.phase != analysis_phase::SUCCESSFUL && !next.disabled;
            let told = match is_told {
                true => tell(&next, &format!("transitioned to {}", next.phase)),
                false => Proposal::default(),
            };
            let told = match next_call(&next) {
                Some(due) if !is_over(&next) => told.wake(due + GRACE),
                _ => told,
            };
            let mut status = RolloutStatus::clone(&objects.status);
            if is_awaited(objects) {
                ready::judge(&mut status, &next, objects.now);
            }
            status.canary.step_plugin_statuses[at] = *next;
            told.note(status)
        }
        Heard::Error { words, was_called } => {
            let mut status = RolloutStatus::clone(&objects.status);
            let known = &mut status.canary.step_plugin_statuses[at];
            known.message.clone_from(&words);
            known.updated_at = Some(Time::new(objects.now));
            known.backoff = heard::duration_text(RETRY);
            known.executions += i32::from(was_called);
            if is_awaited(objects) {
                ready::refuse(&mut status, event::RECONCILIATION_ERROR, &words, objects.now);
            }
            complain(&words).note(status).wake(objects.now + RETRY)
        }
        Heard::Nothing => Proposal::default(),
    }
}

/// Everything a plugin has begun or done is taken back, the last first.
fn abort(objects: &Objects<'_>, plan: &Plan) -> Proposal {
    match undone_next(objects) {
        Some(entry) => end(objects, plan, entry, plugin_operation::ABORT, "aborted"),
        None => Proposal::default(),
    }
}

/// What is taken back next after an abort.
fn undone_next<'o>(objects: &'o Objects<'_>) -> Option<&'o StepPluginStatus> {
    let statuses = &objects.status.canary.step_plugin_statuses;
    statuses.iter().rev().find(|entry| {
        let is_undoable = is_at_work(entry) || entry.phase == analysis_phase::SUCCESSFUL;
        is_run(entry)
            && is_undoable
            && !was_never_called(entry)
            && !is_switched_off(objects, entry, plugin_operation::ABORT)
            && find_at(objects, entry.index, plugin_operation::ABORT).is_none()
            && step_of(objects, entry.index).is_some()
    })
}

/// Are plugins of an aborted update still being told so, for the first time? What else holds it up,
/// or a plugin that cannot be told, is no reason to wait.
pub(super) fn is_taking_back(objects: &Objects<'_>) -> bool {
    let held = objects.status.condition(condition::HELD);
    let is_held = held.is_some_and(|known| !is_reason(&known.reason));
    let is_open = |entry: &StepPluginStatus| {
        let answer = objects.world.answers.get(&call_id(objects, entry, plugin_operation::ABORT));
        answer.is_none_or(|answer| !matches!(reply_of(answer), PluginReply::Unusable(_)))
    };
    !is_held && !objects.is_blue_green() && undone_next(objects).is_some_and(is_open)
}

/// A call made before the abort has been answered: that is recorded first.
fn late_answer(objects: &Objects<'_>, plan: &Plan) -> Proposal {
    let statuses = &objects.status.canary.step_plugin_statuses;
    let is_answered = |entry: &StepPluginStatus| {
        let id = call_id(objects, entry, plugin_operation::RUN);
        is_run(entry) && !is_over(entry) && objects.world.answers.contains_key(&id)
    };
    let Some(at) = statuses.iter().position(is_answered) else { return Proposal::default() };
    let Called { proposal, reply } =
        call(objects, plan, &statuses[at], plugin_operation::RUN, None);
    match reply {
        Some((reply, _)) => proposal.and(record_run(objects, at, &reply)),
        None => proposal,
    }
}

/// A plugin that still runs although nobody waits for it is told so, once.
fn terminate(objects: &Objects<'_>, plan: &Plan) -> Proposal {
    let statuses = &objects.status.canary.step_plugin_statuses;
    let is_done = |entry: &&StepPluginStatus| {
        entry.operation == plugin_operation::TERMINATE && entry.phase == analysis_phase::SUCCESSFUL
    };
    let later = statuses.iter().rev().take_while(|entry| !is_done(entry));
    let last = later
        .into_iter()
        .find(|entry| is_run(entry) && is_at_work(entry) && !was_never_called(entry));
    let due = last.filter(|entry| {
        !is_switched_off(objects, entry, plugin_operation::TERMINATE)
            && find_at(objects, entry.index, plugin_operation::TERMINATE).is_none()
    });
    match due {
        Some(entry) => end(objects, plan, entry, plugin_operation::TERMINATE, "terminated"),
        None => Proposal::default(),
    }
}

/// One call that ends a run, and what came of it.
fn end(
    objects: &Objects<'_>,
    plan: &Plan,
    entry: &StepPluginStatus,
    operation: &'static str,
    done: &str,
) -> Proposal {
    let Called { proposal, reply } = call(objects, plan, entry, operation, Some(RETRY));
    let Some((reply, asked_at)) = reply else { return proposal };
    match heard::after_end(entry, operation, &reply, objects.now) {
        Heard::Entry(next) => {
            let told = proposal.and(tell(&next, &format!("{done} ({})", next.phase)));
            told.and(noted(objects, |entries| entries.push(*next)))
        }
        Heard::Error { words, .. } => {
            let is_run = |known: &&StepPluginStatus| is_run(known) && known.index == entry.index;
            let statuses = &objects.status.canary.step_plugin_statuses;
            let at = statuses.iter().position(|known| is_run(&known));
            let proposal = match at.filter(|at| statuses[*at].message != words) {
                Some(at) => proposal
                    .and(noted(objects, |entries| entries[at].message.clone_from(&words)))
                    .and(complain(&words)),
                None => proposal,
            };
            proposal.wake(asked_at + RETRY)
        }
        Heard::Nothing => proposal,
    }
}

/// A call that is wanted, and the reply, once there is one, with the time it was asked for.
struct Called {
    proposal: Proposal,
    reply: Option<(PluginReply, Timestamp)>,
}

/// Lists a call where the stored status justifies it. After `again` a reply that was no good is asked for once more.
fn call(
    objects: &Objects<'_>,
    plan: &Plan,
    entry: &StepPluginStatus,
    operation: &'static str,
    again: Option<SignedDuration>,
) -> Called {
    let Some(step) = step_of(objects, entry.index) else {
        return Called { proposal: Proposal::default(), reply: None };
    };
    let id = call_id(objects, entry, operation);
    let answer = objects.world.answers.get(&id);
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
        after: expiry.filter(|expiry| *expiry <= objects.now),
        id,
    };
    let is_fresh = |answer: &&Answer| ask.after.is_none_or(|after| after <= answer.asked_at);
    let reply = answer.filter(is_fresh).map(|answer| (reply_of(answer), answer.asked_at));
    let proposal = match may_act(objects, plan) || answer.is_some() {
        true => Proposal::default().ask(ask),
        false => Proposal::default(),
    };
    Called { proposal, reply }
}

/// Is everything stored that a call would rest on?
fn may_act(objects: &Objects<'_>, plan: &Plan) -> bool {
    has_same_gates(&objects.rollout().status, &objects.status) && plan.changes.is_empty()
}

/// The same for the same goal: a call is not made twice for one state of its entry.
fn call_id(objects: &Objects<'_>, entry: &StepPluginStatus, operation: &str) -> AskId {
    let time = |time: Option<Time>| time.map_or(0, |time| time.timestamp().as_second());
    let (started, updated) = (time(entry.started_at), time(entry.updated_at));
    let state = match operation {
        plugin_operation::RUN => format!("{} {updated}", entry.executions),
        _ => String::new(),
    };
    let (index, hash) = (entry.index, &objects.status.current_pod_hash);
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
fn current<'w>(objects: &Objects<'w>) -> Option<(usize, i32, &'w PluginStep)> {
    let (index, step) = objects.current_step()?;
    let StepKind::Plugin(step) = step.kind() else { return None };
    Some((index, i32::try_from(index).ok()?, step))
}

fn step_of<'w>(objects: &Objects<'w>, index: i32) -> Option<&'w PluginStep> {
    match objects.steps().get(usize::try_from(index).ok()?)?.kind() {
        StepKind::Plugin(step) => Some(step),
        _ => None,
    }
}

fn run_of(objects: &Objects<'_>, index: usize) -> Option<usize> {
    find(objects, index, plugin_operation::RUN)
}

fn find(objects: &Objects<'_>, index: usize, operation: &str) -> Option<usize> {
    find_at(objects, i32::try_from(index).ok()?, operation)
}

fn find_at(objects: &Objects<'_>, index: i32, operation: &str) -> Option<usize> {
    let is_it = |entry: &StepPluginStatus| entry.index == index && entry.operation == operation;
    objects.status.canary.step_plugin_statuses.iter().position(is_it)
}

fn is_run(entry: &StepPluginStatus) -> bool {
    entry.operation == plugin_operation::RUN
}

/// Was every attempt refused before the plugin could hear of it? Then there is nothing to end.
fn was_never_called(entry: &StepPluginStatus) -> bool {
    entry.executions == 0 && entry.updated_at.is_some()
}

/// Did the plugin turn out to be switched off when it should have been told this?
fn is_switched_off(objects: &Objects<'_>, entry: &StepPluginStatus, operation: &str) -> bool {
    let answer = objects.world.answers.get(&call_id(objects, entry, operation));
    answer.is_some_and(|answer| reply_of(answer) == PluginReply::Disabled)
}

/// Has it been called, or may it have been, and not come to an end?
fn is_at_work(entry: &StepPluginStatus) -> bool {
    entry.phase == analysis_phase::RUNNING || entry.phase.is_empty() && !entry.disabled
}

fn is_over(entry: &StepPluginStatus) -> bool {
    matches!(entry.phase.as_str(), analysis_phase::SUCCESSFUL | analysis_phase::FAILED)
}

/// When a plugin is called again by itself; `None` where it was never called, or is done.
pub(crate) fn next_plugin_call(entry: &StepPluginStatus) -> Option<Timestamp> {
    next_call(entry).filter(|_| is_run(entry) && !is_over(entry) && !entry.disabled)
}

/// When the plugin may be called again; `None` where it was never called.
fn next_call(entry: &StepPluginStatus) -> Option<Timestamp> {
    let updated = entry.updated_at?.timestamp();
    // A back-off that cannot be read is as long as that of an error.
    let backoff = gradus_api::values::parse_go_duration(&entry.backoff).unwrap_or(RETRY);
    updated.checked_add(backoff).ok()
}

fn tell(entry: &StepPluginStatus, what: &str) -> Proposal {
    let is_bad = matches!(entry.phase.as_str(), analysis_phase::ERROR | analysis_phase::FAILED);
    let kind = if is_bad { EventKind::Warning } else { EventKind::Normal };
    let text = format!("Step plugin {} (step {}) {what}", entry.name, entry.index + 1);
    Proposal::default().tell(kind, event::STEP_PLUGIN_TRANSITION, text)
}

fn complain(words: &str) -> Proposal {
    let text = format!("Reconciliation failed with error: {words}");
    Proposal::default().tell(EventKind::Warning, event::RECONCILIATION_ERROR, text)
}
