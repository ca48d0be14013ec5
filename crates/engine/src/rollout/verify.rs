//! Is the split that the routers were told of in force? Where load balancers are asked, a weight step
//! waits for their word, and so does the end of the update.

use gradus_api::names::{condition, event};
use gradus_api::rollout::status::{AlbStatus, TrafficWeights};
use gradus_api::rollout::{RolloutStatus, StepKind};
use jiff::SignedDuration;

use super::conditions::{self, Statement};
use super::objects::Objects;
use super::plan::{Plan, Proposal};
use super::told::{self, Verdict};
use super::weights;
use crate::ask::{Ask, Question, Reply, Split, WeightsOf};
use crate::decision::{EventKind, Frees, Guard, Why};
use crate::traffic::{self, Goal, Report};

/// How long after an answer a load balancer is asked again.
const RETRY: SignedDuration = SignedDuration::from_secs(10);

/// Whether the split is in force, as it is noted in the status.
pub(super) struct Verified {
    pub proposal: Proposal,
    /// Must it be in force before pods go?
    pub is_awaited: bool,
}

/// Notes in a status whether the split is in force.
pub(super) fn apply(
    objects: &Objects<'_>,
    plan: &Plan,
    goal: &Goal<'_>,
    status: RolloutStatus,
) -> Verified {
    let mut status = status;
    let asked = question(objects, goal);
    if asked.is_none() {
        locate(&mut status, &[]);
    }
    let report = traffic::reported(objects.rollout(), &objects.routes);
    let is_due = is_due(objects, goal);
    // Of an abort a plugin is told, and asked nothing: like everything else it is not waited for.
    let (heard, verdict) = match is_due && !objects.is_aborted() {
        true => told::verdict(objects, goal),
        false => (Proposal::default(), None),
    };
    let is_silent = asked.is_none() && report.is_none() && verdict.is_none();
    if is_silent || !is_due {
        weights::unhold(&mut status);
        if report == Some(Report::InForce) {
            keep(objects, &mut status);
        }
        return Verified { proposal: heard.note(status), is_awaited: false };
    }
    let (proposal, is_told) = match asked {
        Some(asked) => hear(objects, plan, Ask::weights(asked), &mut status),
        None => {
            weights::unhold(&mut status);
            (Proposal::default(), true)
        }
    };
    let (held, is_seen) = match report {
        Some(report) => take_in(objects, plan, report, &mut status),
        None => (Proposal::default(), true),
    };
    let (held_by_plugin, is_said) = match verdict {
        None | Some(Verdict::InForce) => (Proposal::default(), true),
        Some(Verdict::Open) => (Proposal::default(), false),
        Some(Verdict::Broken(why)) => {
            let message = format!("Failed to verify weight: {why}");
            (hold(objects, &mut status, event::WEIGHT_VERIFY_ERROR, message), false)
        }
    };
    let proposal = proposal.and(held).and(heard).and(held_by_plugin);
    let is_set = is_told && is_seen && is_said;
    if let Some(known) = &mut status.canary.weights {
        known.verified = Some(is_set);
    }
    let is_awaited = !is_set && goal.weight == goal.max_weight;
    Verified { proposal: proposal.note(status), is_awaited }
}

/// What was in force when it was waited for stays noted while the split is the same.
fn keep(objects: &Objects<'_>, status: &mut RolloutStatus) {
    let stored = objects.status.canary.weights.as_deref();
    let stored = stored.filter(|stored| stored.verified == Some(true));
    if let (Some(stored), Some(known)) = (stored, &mut status.canary.weights)
        && (TrafficWeights { verified: None, ..stored.clone() }) == **known
    {
        known.verified = Some(true);
    }
}

/// What is not answered yet.
pub(super) fn explain(objects: &Objects<'_>, plan: &Plan) -> Option<Why> {
    plan.asks.iter().find_map(|ask| {
        let question = match &ask.question {
            Question::Weights(of) => {
                format!("is weight {} of Service {} in force", of.weight, of.canary)
            }
            Question::RouterPlugin(call) if told::is_open(objects) => {
                format!("is weight {} in force, of plugin {}", call.weight, call.name)
            }
            _ => return None,
        };
        let is_open = !objects.world.answers.contains_key(&ask.id);
        is_open.then(|| waits(objects, question))
    })
}

/// What the data plane has not taken in yet.
pub(super) fn explain_report(objects: &Objects<'_>) -> Option<Why> {
    let weights = objects.status.canary.weights.as_ref()?;
    let report = traffic::reported(objects.rollout(), &objects.routes);
    match report.filter(|_| weights.verified == Some(false))? {
        Report::Pending(message) => {
            let weight = weights.canary.weight;
            Some(waits(objects, format!("is weight {weight} in force ({message})")))
        }
        Report::InForce | Report::Refused(_) => None,
    }
}

fn waits(objects: &Objects<'_>, question: String) -> Why {
    Why {
        guard: Guard::Unanswered { question },
        object: objects.rollout().reference(),
        field: "status.canary.weights.verified".into(),
        since: None,
        frees: Frees::Cluster,
    }
}

/// What a router wants asked, if load balancers are asked at all.
fn question(objects: &Objects<'_>, goal: &Goal<'_>) -> Option<WeightsOf> {
    let routers = traffic::routers(objects.rollout());
    let mut wanted = routers.iter().filter(|_| objects.world.verifies);
    wanted.find_map(|router| router.asks(goal))
}

/// Does anything wait for the split: a weight step, or the end of the update?
fn is_due(objects: &Objects<'_>, goal: &Goal<'_>) -> bool {
    let is_awaited = match objects.current_step() {
        Some((_, step)) => matches!(step.kind(), StepKind::SetWeight(_)),
        None => goal.weight == goal.max_weight,
    };
    is_awaited && !objects.is_promoted()
}

/// What the load balancers say. A split that is written only now is not in force.
fn hear(
    objects: &Objects<'_>,
    plan: &Plan,
    ask: Ask,
    status: &mut RolloutStatus,
) -> (Proposal, bool) {
    let none = Proposal::default();
    let answer = objects.world.answers.get(&ask.id).filter(|_| !weights::is_routing(plan));
    let Some(answer) = answer else {
        weights::unhold(status);
        return (none.ask(ask), false);
    };
    match &answer.reply {
        Ok(Reply::Weights(said)) if said.split == Split::AsTold => {
            let stored = objects.rollout().status.canary.weights.as_ref();
            let is_known = stored.is_some_and(|stored| stored.verified == Some(true));
            weights::unhold(status);
            locate(status, &said.load_balancers);
            let asked = none.ask(ask);
            if is_known {
                return (asked, true);
            }
            (asked.tell(EventKind::Normal, reason(said.split), said.message.clone()), true)
        }
        Ok(Reply::Weights(said)) => {
            let again = answer.asked_at + RETRY;
            let asked = match objects.now < again {
                true => none.ask(ask).wake(again),
                false => none.ask(Ask { after: Some(again), ..ask }),
            };
            locate(status, &said.load_balancers);
            let held = hold(objects, status, reason(said.split), said.message.clone());
            (asked.and(held), false)
        }
        Ok(_) => (none.ask(ask), false), // Not an answer to this question.
        Err(failed) => {
            let message = format!("Failed to verify weight: {}", failed.message);
            let held = hold(objects, status, event::WEIGHT_VERIFY_ERROR, message);
            (none.ask(ask).and(held), false)
        }
    }
}

/// What the data plane reports. A split that is written only now is not in force.
fn take_in(
    objects: &Objects<'_>,
    plan: &Plan,
    report: Report,
    status: &mut RolloutStatus,
) -> (Proposal, bool) {
    match report {
        _ if weights::is_routing(plan) => (Proposal::default(), false),
        Report::InForce => (Proposal::default(), true),
        Report::Pending(_) => (Proposal::default(), false),
        Report::Refused(message) => {
            let message = format!("Failed to verify weight: {message}");
            (hold(objects, status, event::WEIGHT_VERIFY_ERROR, message), false)
        }
    }
}

/// The load balancers that were found.
fn locate(status: &mut RolloutStatus, found: &[AlbStatus]) {
    status.alb = found.first().map(|first| Box::new(first.clone()));
    status.albs = found.to_vec();
}

/// The split is not in force: it is said once, in a condition and an Event.
pub(super) fn hold(
    objects: &Objects<'_>,
    status: &mut RolloutStatus,
    reason: &'static str,
    message: String,
) -> Proposal {
    let known = status.condition(condition::HELD);
    if known.is_some_and(|known| known.reason == reason && known.message == message) {
        return Proposal::default();
    }
    let words = format_args!("{message}");
    conditions::refresh(&mut status.conditions, objects.now, Statement::held(reason, words));
    Proposal::default().tell(EventKind::Warning, reason, message)
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
