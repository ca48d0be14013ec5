//! Is the split that the routers were told of in force? Where load balancers are asked, a weight step
//! waits for their word, and so does the end of the update.

use std::ops::ControlFlow;
use std::sync::Arc;

use gradus_api::names::{condition, event};
use gradus_api::rollout::StepKind;
use gradus_api::rollout::status::AlbStatus;
use jiff::SignedDuration;

use super::conditions::{self, Statement};
use super::draft::Draft;
use super::weights;
use crate::ask::{Ask, Question, Reply, Split, WeightsOf};
use crate::decision::{After, EventKind, Frees, Guard, Why};
use crate::traffic::{self, Goal, Report};

/// How long after an answer a load balancer is asked again.
const RETRY: SignedDuration = SignedDuration::from_secs(10);

/// Notes in the status whether the split is in force. Breaks where it must be before pods go.
pub(super) fn apply<'w>(draft: Draft<'w>, goal: &Goal<'_>) -> ControlFlow<Draft<'w>, Draft<'w>> {
    let asked = question(&draft, goal);
    let draft = if asked.is_none() { located(draft, &[]) } else { draft };
    let report = traffic::reported(draft.rollout(), &draft.routes);
    if asked.is_none() && report.is_none() || !is_due(&draft, goal) {
        return ControlFlow::Continue(weights::unheld(draft));
    }
    let (draft, is_told) = match asked {
        Some(asked) => hear(draft, Ask::weights(asked)),
        None => (weights::unheld(draft), true),
    };
    let (mut draft, is_seen) = match report {
        Some(report) => take_in(draft, report),
        None => (draft, true),
    };
    let is_set = is_told && is_seen;
    if let Some(known) = &mut Arc::make_mut(&mut draft.status).canary.weights {
        known.verified = Some(is_set);
    }
    match !is_set && goal.weight == goal.max_weight {
        true => ControlFlow::Break(draft),
        false => ControlFlow::Continue(draft),
    }
}

/// What is not answered yet.
pub(super) fn explain(draft: &Draft<'_>) -> Option<Why> {
    draft.asks.iter().find_map(|ask| {
        let Question::Weights(of) = &ask.question else { return None };
        let is_open = !draft.world.answers.contains_key(&ask.id);
        let question = format!("is weight {} of Service {} in force", of.weight, of.canary);
        is_open.then(|| waits(draft, question))
    })
}

/// What the data plane has not taken in yet.
pub(super) fn explain_report(draft: &Draft<'_>) -> Option<Why> {
    let weights = draft.status.canary.weights.as_ref()?;
    let report = traffic::reported(draft.rollout(), &draft.routes);
    match report.filter(|_| weights.verified == Some(false))? {
        Report::Pending(message) => {
            let weight = weights.canary.weight;
            Some(waits(draft, format!("is weight {weight} in force ({message})")))
        }
        Report::InForce | Report::Refused(_) => None,
    }
}

fn waits(draft: &Draft<'_>, question: String) -> Why {
    Why {
        guard: Guard::Unanswered { question },
        object: draft.rollout().reference(),
        field: "status.canary.weights.verified".into(),
        since: None,
        frees: Frees::Cluster,
    }
}

/// What a router wants asked, if load balancers are asked at all.
fn question(draft: &Draft<'_>, goal: &Goal<'_>) -> Option<WeightsOf> {
    let routers = traffic::routers(draft.rollout());
    let mut wanted = routers.iter().filter(|_| draft.world.verifies);
    wanted.find_map(|router| router.asks(goal))
}

/// Does anything wait for the split: a weight step, or the end of the update?
fn is_due(draft: &Draft<'_>, goal: &Goal<'_>) -> bool {
    let is_awaited = match draft.current_step() {
        Some((_, step)) => matches!(step.kind(), StepKind::SetWeight(_)),
        None => goal.weight == goal.max_weight,
    };
    is_awaited && !draft.is_promoted()
}

/// What the load balancers say. A split that is written only now is not in force.
fn hear<'w>(draft: Draft<'w>, ask: Ask) -> (Draft<'w>, bool) {
    let world = draft.world;
    let answer = world.answers.get(&ask.id).filter(|_| !weights::is_routing(&draft));
    let Some(answer) = answer else { return (weights::unheld(draft.ask(ask)), false) };
    match &answer.reply {
        Ok(Reply::Weights(said)) if said.split == Split::AsTold => {
            let stored = draft.rollout().status.canary.weights.as_ref();
            let is_known = stored.is_some_and(|stored| stored.verified == Some(true));
            let draft = located(weights::unheld(draft.ask(ask)), &said.load_balancers);
            let text = said.message.clone();
            if is_known {
                return (draft, true);
            }
            (draft.event(EventKind::Normal, reason(said.split), text, After::Status), true)
        }
        Ok(Reply::Weights(said)) => {
            let again = answer.asked_at + RETRY;
            let draft = match draft.now < again {
                true => draft.ask(ask).wake(again),
                false => draft.ask(Ask { after: Some(again), ..ask }),
            };
            let draft = located(draft, &said.load_balancers);
            (held(draft, reason(said.split), said.message.clone()), false)
        }
        Ok(_) => (draft.ask(ask), false), // Not an answer to this question.
        Err(failed) => {
            let message = format!("Failed to verify weight: {}", failed.message);
            (held(draft.ask(ask), event::WEIGHT_VERIFY_ERROR, message), false)
        }
    }
}

/// What the data plane reports. A split that is written only now is not in force.
fn take_in(draft: Draft<'_>, report: Report) -> (Draft<'_>, bool) {
    match report {
        _ if weights::is_routing(&draft) => (draft, false),
        Report::InForce => (draft, true),
        Report::Pending(_) => (draft, false),
        Report::Refused(message) => {
            let message = format!("Failed to verify weight: {message}");
            (held(draft, event::WEIGHT_VERIFY_ERROR, message), false)
        }
    }
}

/// The load balancers that were found.
fn located<'w>(draft: Draft<'w>, found: &[AlbStatus]) -> Draft<'w> {
    let mut draft = draft;
    let first = found.first().map(|first| Box::new(first.clone()));
    if draft.status.albs != found || draft.status.alb != first {
        let status = Arc::make_mut(&mut draft.status);
        (status.alb, status.albs) = (first, found.to_vec());
    }
    draft
}

/// The split is not in force: it is said once, in a condition and an Event.
fn held<'w>(draft: Draft<'w>, reason: &'static str, message: String) -> Draft<'w> {
    let known = draft.status.condition(condition::HELD);
    if known.is_some_and(|known| known.reason == reason && known.message == message) {
        return draft;
    }
    let mut draft = draft;
    let status = Arc::make_mut(&mut draft.status);
    let words = format_args!("{message}");
    conditions::refresh(&mut status.conditions, draft.now, Statement::held(reason, words));
    draft.event(EventKind::Warning, reason, message, After::Status)
}

/// Does a condition of this reason tell of load balancers?
pub(super) fn is_reason(reason: &str) -> bool {
    let all = [Split::Otherwise, Split::Nowhere, Split::Unreadable].map(self::reason);
    reason == event::WEIGHT_VERIFY_ERROR || all.contains(&reason)
}

fn reason(split: Split) -> &'static str {
    match split {
        Split::AsTold => event::TARGET_GROUP_VERIFIED,
        Split::Otherwise => event::TARGET_GROUP_UNVERIFIED,
        Split::Nowhere => event::LOAD_BALANCER_NOT_FOUND,
        Split::Unreadable => event::TARGET_GROUP_VERIFY_ERROR,
    }
}
