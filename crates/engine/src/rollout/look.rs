//! What does a data plane say of the split when it is asked over HTTP? Only a split that is stored is
//! asked about, when nothing else is left to write.

use gradus_api::rollout::RolloutStatus;

use super::objects::Objects;
use super::plan::{Plan, Proposal};
use super::verify::{self, WeightFinding};
use super::weights;
use crate::ask::{Ask, AskId, Effect, Question, Reply};
use crate::traffic::{self, Goal, Report};

/// The status of an answer that can be read.
const FOUND: u16 = 200;

/// The question that a router has, if one has any.
pub(super) fn wanted(objects: &Objects<'_>, goal: &Goal<'_>) -> Option<Ask> {
    let routers = traffic::routers(objects.rollout());
    let request = routers.iter().find_map(|router| router.looks())?;
    let Goal { weight, max_weight, canary_hash, stable_hash, .. } = goal;
    let id = format!("look at {weight} of {max_weight} {canary_hash} {stable_hash}");
    let question = Question::Http(Box::new(request));
    Some(Ask { id: AskId(id.into()), question, effect: Effect::Reads, after: None })
}

/// What is said.
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
    match &answer.reply {
        Ok(Reply::Http(Ok(reply))) if reply.status == FOUND => {
            match read(objects, goal, &reply.body) {
                Report::InForce => (none.ask(ask), WeightFinding::InForce),
                Report::Pending(_) => (verify::again(objects, ask, answer), WeightFinding::Open),
                Report::Refused(why) => {
                    (verify::again(objects, ask, answer), verify::unverifiable(&why))
                }
            }
        }
        other => {
            let why = match other {
                Ok(Reply::Http(Ok(reply))) => format!("answered with status {}", reply.status),
                Ok(Reply::Http(Err(error))) => error.to_string(),
                Ok(_) => "the answer is none of a request".to_owned(),
                Err(failed) => failed.message.clone(),
            };
            (verify::again(objects, ask, answer), verify::unverifiable(&why))
        }
    }
}

/// What is said while another split is in force.
pub(super) fn explain(objects: &Objects<'_>, plan: &Plan) -> Option<String> {
    plan.asks.iter().find(|ask| matches!(ask.question, Question::Http(_)))?;
    let weights = objects.status.canary.weights.as_ref()?;
    let weight = weights.canary.weight;
    (weights.verified == Some(false)).then(|| format!("has the data plane weight {weight}"))
}

fn read(objects: &Objects<'_>, goal: &Goal<'_>, body: &str) -> Report {
    let routers = traffic::routers(objects.rollout());
    let asked = routers.iter().find(|router| router.looks().is_some());
    asked.map_or(Report::InForce, |router| router.shown(goal, &objects.routes, body))
}
