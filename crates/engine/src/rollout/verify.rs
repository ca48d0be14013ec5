//! Is the split that the routers were told of in force? Where load balancers are asked, a weight step
//! waits for their word, and so does the end of the update.

use gradus_api::names::{condition, event};
use gradus_api::rollout::status::{AlbStatus, TrafficWeights};
use gradus_api::rollout::{RolloutStatus, StepKind};
use jiff::SignedDuration;

use super::conditions::{self, Statement};
use super::objects::Objects;
use super::plan::{Plan, Proposal};
use super::replica_sets::Roles;
use super::targets::{self, Targets};
use super::told::{self, Verdict};
use super::{look, probe, weights};
use crate::ask::{Answer, Ask, Question, Reply, Split, WeightsOf};
use crate::decision::{EventKind, Frees, Guard, Why};
use crate::traffic::{self, Goal, Report};

/// How long after an answer that was no good the same is asked again.
const RETRY: SignedDuration = SignedDuration::from_secs(10);

/// Whether the split is in force, as it is noted in the status.
pub(super) struct Verified {
    pub proposal: Proposal,
    /// Must it be in force before pods go?
    pub is_awaited: bool,
}

/// What one of those who can tell says of the split.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum WeightFinding {
    /// It is in force.
    InForce,
    /// Not yet, or nobody knows yet.
    Open,
    /// Something is wrong: the reason of the condition, and its message.
    Held(&'static str, String),
}

/// Notes in a status whether the split is in force.
pub(super) fn apply(
    objects: &Objects<'_>,
    plan: &Plan,
    roles: Roles,
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
    let probed = probe::wanted(objects, goal).filter(|_| !objects.is_aborted());
    let looked = look::wanted(objects, goal).filter(|_| !objects.is_aborted());
    let is_reported = asked.is_some() || report.is_some() || verdict.is_some() || looked.is_some();
    if !is_reported && probed.is_none() || !is_due {
        if report.is_none_or(|report| report == Report::InForce) {
            keep(objects, &mut status);
        }
        let sought = asked.map(|asked| seek(objects, asked, &mut status)).unwrap_or_default();
        let targets = targets::heard(objects, plan, roles);
        return settled(objects, heard.and(sought), targets, status);
    }
    let mut proposal = heard;
    let mut findings = Vec::new();
    if let Some(asked) = asked {
        let (asked, finding) = hear(objects, plan, Ask::weights(asked), &mut status);
        proposal = proposal.and(asked);
        findings.push(finding);
    }
    findings.extend(report.map(|report| take_in(plan, report)));
    findings.extend(verdict.map(|verdict| match verdict {
        Verdict::InForce => WeightFinding::InForce,
        Verdict::Open => WeightFinding::Open,
        Verdict::Broken(why) => unverifiable(&why),
    }));
    if let Some(looked) = looked {
        let (asked, finding) = look::hear(objects, plan, looked, goal, &status);
        proposal = proposal.and(asked);
        findings.push(finding);
    }
    if let Some(probed) = probed {
        let (asked, finding) = probe::hear(objects, plan, probed, goal, &status);
        proposal = proposal.and(asked);
        findings.push(finding);
    }
    let is_set = findings.iter().all(|finding| *finding == WeightFinding::InForce);
    let held = findings.into_iter().find_map(|finding| match finding {
        WeightFinding::Held(reason, message) => Some((reason, message)),
        WeightFinding::InForce | WeightFinding::Open => None,
    });
    match held {
        Some((reason, message)) => {
            proposal = proposal.and(hold(objects, &mut status, reason, message));
        }
        None => weights::unhold(&mut status),
    }
    if let Some(known) = &mut status.canary.weights {
        known.verified = Some(is_set);
    }
    let is_awaited = !is_set && goal.weight == goal.max_weight;
    Verified { proposal: proposal.note(status), is_awaited }
}

/// Nothing waits for the weights; older pods may wait for those of the new revision to be registered.
fn settled(
    objects: &Objects<'_>,
    heard: Proposal,
    targets: Option<Targets>,
    status: RolloutStatus,
) -> Verified {
    let mut status = status;
    let Some(Targets { proposal, finding }) = targets else {
        weights::unhold(&mut status);
        return Verified { proposal: heard.note(status), is_awaited: false };
    };
    let is_awaited = finding != WeightFinding::InForce;
    let held = match finding {
        WeightFinding::Held(reason, message) => hold(objects, &mut status, reason, message),
        WeightFinding::InForce | WeightFinding::Open => {
            weights::unhold(&mut status);
            Proposal::default()
        }
    };
    Verified { proposal: heard.and(proposal).and(held).note(status), is_awaited }
}

/// Somebody who was asked cannot say.
pub(super) fn unverifiable(why: &str) -> WeightFinding {
    WeightFinding::Held(event::WEIGHT_VERIFY_ERROR, format!("Failed to verify weight: {why}"))
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

/// Is the split stored in the status, whether it is in force or not?
pub(super) fn is_stored(objects: &Objects<'_>, wanted: &RolloutStatus) -> bool {
    let bare = |weights: &TrafficWeights| TrafficWeights { verified: None, ..weights.clone() };
    let stored = objects.rollout().status.canary.weights.as_deref().map(bare);
    stored == wanted.canary.weights.as_deref().map(bare)
}

/// What is not answered yet.
pub(super) fn explain(objects: &Objects<'_>, plan: &Plan) -> Option<Why> {
    let asked = probe::explain(objects, plan).or_else(|| look::explain(objects, plan));
    if let Some(question) = asked {
        return Some(waits(objects, question));
    }
    let weights = objects.status.canary.weights.as_ref();
    let is_awaited = weights.is_some_and(|weights| weights.verified == Some(false));
    plan.asks.iter().find_map(|ask| {
        let question = match &ask.question {
            Question::Weights(of) if is_awaited => {
                format!("is weight {} of Service {} in force", of.weight, of.canary)
            }
            Question::RouterPlugin(call) if told::is_open(objects) => {
                format!("is weight {} in force, of plugin {}", call.weight, call.name)
            }
            Question::Targets(of) => {
                let name = &of.service.name;
                format!("are the pods of Service {name} registered in its target groups")
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
) -> (Proposal, WeightFinding) {
    let none = Proposal::default();
    let answer = objects.world.answers.get(&ask.id).filter(|_| !weights::is_routing(plan));
    let Some(answer) = answer else {
        return (none.ask(ask), WeightFinding::Open);
    };
    match &answer.reply {
        Ok(Reply::Weights(said)) if said.split == Split::AsTold => {
            let stored = objects.rollout().status.canary.weights.as_ref();
            let is_known = stored.is_some_and(|stored| stored.verified == Some(true));
            locate(status, &said.load_balancers);
            let asked = none.ask(ask);
            if is_known {
                return (asked, WeightFinding::InForce);
            }
            let told = asked.tell(EventKind::Normal, reason(said.split), said.message.clone());
            (told, WeightFinding::InForce)
        }
        Ok(Reply::Weights(said)) => {
            locate(status, &said.load_balancers);
            let finding = WeightFinding::Held(reason(said.split), said.message.clone());
            (again(objects, ask, answer), finding)
        }
        Ok(_) => (none.ask(ask), WeightFinding::Open), // Not an answer to this question.
        Err(failed) => (none.ask(ask), unverifiable(&failed.message)),
    }
}

/// Load balancers that nobody knows yet are looked for in an update, whatever the step is: analyses name
/// them.
fn seek(objects: &Objects<'_>, asked: WeightsOf, status: &mut RolloutStatus) -> Proposal {
    if status.alb.is_some() || objects.is_promoted() || objects.is_aborted() {
        return Proposal::default();
    }
    let ask = Ask::weights(asked);
    let Some(answer) = objects.world.answers.get(&ask.id) else {
        return Proposal::default().ask(ask);
    };
    match &answer.reply {
        Ok(Reply::Weights(said)) if !said.load_balancers.is_empty() => {
            locate(status, &said.load_balancers);
            Proposal::default().ask(ask)
        }
        Ok(_) => again(objects, ask, answer),
        // The shell asks again.
        Err(_) => Proposal::default().ask(ask),
    }
}

/// Asks again when an answer that was no good is old enough.
pub(super) fn again(objects: &Objects<'_>, ask: Ask, answer: &Answer) -> Proposal {
    let due = answer.asked_at + RETRY;
    match objects.now < due {
        true => Proposal::default().ask(ask).wake(due),
        false => Proposal::default().ask(Ask { after: Some(due), ..ask }),
    }
}

/// What the data plane reports. A split that is written only now is not in force.
fn take_in(plan: &Plan, report: Report) -> WeightFinding {
    match report {
        _ if weights::is_routing(plan) => WeightFinding::Open,
        Report::InForce => WeightFinding::InForce,
        Report::Pending(_) => WeightFinding::Open,
        Report::Refused(message) => unverifiable(&message),
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

pub(super) fn reason(split: Split) -> &'static str {
    match split {
        Split::AsTold => event::TARGET_GROUP_VERIFIED,
        Split::Otherwise => event::TARGET_GROUP_UNVERIFIED,
        Split::Nowhere => event::LOAD_BALANCER_NOT_FOUND,
        Split::Unreadable => event::TARGET_GROUP_VERIFY_ERROR,
    }
}
