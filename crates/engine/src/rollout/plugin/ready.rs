//! Is the plugin of the current step there? It is asked before it is first called, and again by a
//! controller that has just started: what it may have begun is not called upon blindly.

use gradus_api::names::{analysis_phase, condition, event, reason};
use gradus_api::rollout::RolloutStatus;
use gradus_api::rollout::canary::PluginStep;
use gradus_api::rollout::status::{Condition, StepPluginStatus};
use gradus_api::values::Time;
use jiff::Timestamp;

use super::super::conditions::{self, Statement};
use super::super::objects::Objects;
use super::super::plan::{Plan, Proposal};
use super::{RETRY, complain, heard, may_act, reply_of};
use crate::ask::{Answer, Ask, AskId, Effect, PLUGIN_READY, PluginCall, PluginReply, Question};

/// What is known of the plugin.
pub(super) enum Ready {
    /// Not yet anything.
    Unknown,
    /// It can be called.
    There,
    /// It is switched off.
    Disabled,
    /// It cannot be called; why, and when it was asked.
    Refused(String, Timestamp),
}

/// Asks whether the plugin of a step is there. After a refusal it is asked again when that is due.
pub(super) fn ask(
    objects: &Objects<'_>,
    plan: &Plan,
    index: i32,
    step: &PluginStep,
) -> (Proposal, Ready) {
    let (name, hash) = (&step.name, &objects.status.current_pod_hash);
    let id = AskId(format!("plugin {hash} {index} {PLUGIN_READY} {name}").into());
    let answer = objects.world.answers.get(&id);
    let ready = answer.map_or(Ready::Unknown, known);
    let again = match &ready {
        Ready::Refused(_, asked_at) => Some(*asked_at + RETRY),
        _ => None,
    };
    let ask = Ask {
        question: Question::Plugin(PluginCall {
            name: name.clone(),
            operation: PLUGIN_READY.to_owned(),
            index,
            config: None,
            status: None,
        }),
        effect: Effect::Acts,
        after: again.filter(|again| *again <= objects.now),
        id,
    };
    let proposal = match may_act(objects, plan) || answer.is_some() {
        true => Proposal::default().ask(ask),
        false => Proposal::default(),
    };
    match again {
        Some(again) if objects.now < again => (proposal.wake(again), ready),
        _ => (proposal, ready),
    }
}

fn known(answer: &Answer) -> Ready {
    match reply_of(answer) {
        PluginReply::Said(_) => Ready::There,
        PluginReply::Disabled => Ready::Disabled,
        PluginReply::Unusable(why) | PluginReply::Broken(why) => {
            Ready::Refused(why, answer.asked_at)
        }
    }
}

/// Notes that a plugin which was never called cannot be: in a condition, and once for each attempt in
/// an Event.
pub(super) fn hold(objects: &Objects<'_>, index: i32, why: &str, asked_at: Timestamp) -> Proposal {
    let words = heard::unusable_words(index, why);
    let asked = Time::new(asked_at);
    let is_told = |known: &Condition| known.last_update_time == asked && known.message == words;
    if held(&objects.status).is_some_and(is_told) {
        return Proposal::default();
    }
    let mut status = RolloutStatus::clone(&objects.status);
    let reason = event::RECONCILIATION_ERROR;
    let (all, said) = (&mut status.conditions, format_args!("{words}"));
    conditions::refresh(all, asked_at, Statement::held(reason, said));
    complain(&words).note(status)
}

/// Notes in a condition that the plugin of a step was called in vain; nothing holds the step once it
/// does what it should.
pub(super) fn judge(status: &mut RolloutStatus, entry: &StepPluginStatus, now: Timestamp) {
    if entry.phase != analysis_phase::ERROR {
        return unhold(status);
    }
    let StepPluginStatus { name, index, message, .. } = entry;
    let words = format!("Step plugin {name} (step {}) Error: {message}", index + 1);
    refuse(status, reason::STEP_PLUGIN_ERROR, &words, now);
}

/// Notes in a condition that an answer of a plugin, or that there is none, cannot be handled.
pub(super) fn refuse(
    status: &mut RolloutStatus,
    reason: &'static str,
    words: &str,
    now: Timestamp,
) {
    let is_said = |known: &Condition| known.reason == reason && known.message == words;
    if !held(status).is_some_and(is_said) {
        let said = format_args!("{words}");
        conditions::refresh(&mut status.conditions, now, Statement::held(reason, said));
    }
}

/// The plugin is there: nothing holds the step any more.
pub(super) fn unhold(status: &mut RolloutStatus) {
    if held(status).is_some() {
        conditions::remove(&mut status.conditions, condition::HELD);
    }
}

/// The condition that a plugin cannot be called, or was in vain.
pub(super) fn held(status: &RolloutStatus) -> Option<&Condition> {
    status.condition(condition::HELD).filter(|known| is_reason(&known.reason))
}

/// Does a condition of this reason tell of a step plugin?
pub(in crate::rollout) fn is_reason(reason: &str) -> bool {
    [event::RECONCILIATION_ERROR, reason::STEP_PLUGIN_ERROR].contains(&reason)
}
