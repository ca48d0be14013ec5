//! How is the traffic split, as users see it? Where a Rollout names a URL, requests are sent there, and
//! who answers shows whether a weight is in force.
//!
//! The weight counts as in force where it lies within the interval in which the true split is, at this
//! confidence: so a measurement that is off by chance alone holds nothing up for long.

use gradus_api::names::{DEFAULT_VERIFY_HEADER, annotation};
use gradus_api::rollout::RolloutStatus;

use super::objects::Objects;
use super::plan::{Plan, Proposal};
use super::verify::{self, WeightFinding};
use super::weights;
use crate::ask::{Ask, AskId, Effect, ProbeOf, ProbeSaid, Question, Reply};
use crate::traffic::Goal;

/// So many requests measure a split to 4 of a hundred, whatever it is.
const REQUESTS: u32 = 1000;

/// How many standard deviations 99 % of all measurements lie within.
const DEVIATIONS: f64 = 2.5758;

/// One of so many requests may be lost without a measurement being worthless.
const LOST_LIMIT: u32 = 100;

/// What a measurement shows.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ProbeResult {
    /// The weight is in force.
    InForce,
    /// Another one is.
    Otherwise,
    /// It shows nothing; why.
    Nothing(String),
}

/// The measurement that a Rollout asks for, if it asks for one.
pub(super) fn wanted(objects: &Objects<'_>, goal: &Goal<'_>) -> Option<Ask> {
    let annotations = &objects.rollout().annotations;
    let url = annotations.get(annotation::VERIFY_URL).filter(|url| !url.is_empty())?;
    let header = annotations.get(annotation::VERIFY_HEADER).filter(|name| !name.is_empty());
    let header = header.map_or(DEFAULT_VERIFY_HEADER, |name| &**name);
    let of = ProbeOf { url: url.to_string(), header: header.to_owned(), requests: REQUESTS };
    let Goal { weight, max_weight, canary_hash, stable_hash, .. } = goal;
    let id = format!("probe {url} {header}: {weight} of {max_weight} {canary_hash} {stable_hash}");
    // It changes nothing, but somebody has to answer all these requests: nobody asks in a dry run.
    let (id, effect) = (AskId(id.into()), Effect::Acts);
    Some(Ask { id, question: Question::Probe(of), effect, after: None })
}

/// What the measurement shows. It is made of a split that is stored, when nothing else is left to write.
pub(super) fn hear(
    objects: &Objects<'_>,
    plan: &Plan,
    ask: Ask,
    goal: &Goal<'_>,
    status: &RolloutStatus,
) -> (Proposal, WeightFinding) {
    let none = Proposal::default();
    let answer = objects.world.answers.get(&ask.id).filter(|_| !weights::is_routing(plan));
    let Some(answer) = answer else {
        let may_ask = plan.changes.is_empty() && verify::is_stored(objects, status);
        return (if may_ask { none.ask(ask) } else { none }, WeightFinding::Open);
    };
    let measured = match &answer.reply {
        Ok(Reply::Probe(said)) => judge(said, goal),
        Ok(_) => ProbeResult::Nothing("the answer is none of a measurement".to_owned()),
        Err(failed) => ProbeResult::Nothing(failed.message.clone()),
    };
    match measured {
        ProbeResult::InForce => (none.ask(ask), WeightFinding::InForce),
        ProbeResult::Otherwise => (verify::again(objects, ask, answer), WeightFinding::Open),
        ProbeResult::Nothing(why) => {
            (verify::again(objects, ask, answer), verify::unverifiable(&why))
        }
    }
}

/// What is said while another split is measured.
pub(super) fn explain(objects: &Objects<'_>, plan: &Plan) -> Option<String> {
    let ask = plan.asks.iter().find(|ask| matches!(ask.question, Question::Probe(_)))?;
    let Question::Probe(of) = &ask.question else { return None };
    let weights = objects.status.canary.weights.as_ref()?;
    if weights.verified != Some(false) {
        return None;
    }
    let (weight, url) = (weights.canary.weight, &of.url);
    let measured = match objects.world.answers.get(&ask.id).map(|answer| &answer.reply) {
        Some(Ok(Reply::Probe(said))) => {
            let answers: u32 = said.answers.values().sum();
            let canary = part(said, &weights.canary.pod_template_hash);
            format!("{canary} of {answers} requests were answered by the new revision")
        }
        _ => format!("{} requests are sent", of.requests),
    };
    Some(format!("is weight {weight} in force at {url} ({measured})"))
}

fn part(said: &ProbeSaid, hash: &str) -> u32 {
    said.answers.get(hash).copied().unwrap_or(0)
}

/// Is the weight within the interval of Wilson around what was measured?
fn judge(said: &ProbeSaid, goal: &Goal<'_>) -> ProbeResult {
    let answers: u32 = said.answers.values().sum();
    if said.lost * LOST_LIMIT > answers {
        let of = answers + said.lost;
        return ProbeResult::Nothing(format!("{} of {of} requests: {}", said.lost, said.reason));
    }
    let (of, canary) = (f64::from(answers), f64::from(part(said, goal.canary_hash)));
    let (measured, squared) = (canary / of, DEVIATIONS * DEVIATIONS);
    let wanted = f64::from(goal.weight) / f64::from(goal.max_weight);
    let middle = (measured + squared / (2.0 * of)) / (1.0 + squared / of);
    let spread = measured * (1.0 - measured) / of + squared / (4.0 * of * of);
    let width = DEVIATIONS * spread.sqrt() / (1.0 + squared / of);
    // All or nothing is no matter of chance.
    let is_in_force = match goal.weight {
        0 => canary == 0.0,
        weight if weight == goal.max_weight => canary == of,
        _ => (wanted - middle).abs() <= width,
    };
    if is_in_force { ProbeResult::InForce } else { ProbeResult::Otherwise }
}

#[cfg(test)]
mod tests;
