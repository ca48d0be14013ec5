//! Are the pods behind a Service that has turned to a new revision registered in the target groups of
//! load balancers? Until they are, the revision before keeps its pods. Asked only where load
//! balancers are asked at all.

use gradus_api::names::event;
use gradus_api::rollout::RolloutStatus;

use super::Memo;
use super::objects::Objects;
use super::plan::{Plan, Proposal};
use super::replica_sets::Roles;
use super::verify::{self, WeightFinding};
use super::weights;
use crate::ask::{Ask, Reply, Split, TargetsOf};
use crate::decision::EventKind;
use crate::world::Deadline;

/// What is known of the targets, and what is asked for it.
pub(super) struct Targets {
    pub proposal: Proposal,
    pub finding: WeightFinding,
}

/// Must somebody still say that the pods are registered?
pub(super) fn waits(objects: &Objects<'_>, roles: Roles) -> bool {
    due(objects, roles).is_some_and(|ask| finding(objects, &ask) != WeightFinding::InForce)
}

/// What is known of them; `None` where nothing waits for them. A Service that is switched only now
/// leads nowhere yet.
pub(super) fn heard(objects: &Objects<'_>, plan: &Plan, roles: Roles) -> Option<Targets> {
    let ask = due(objects, roles)?;
    if weights::is_moving(plan) {
        return Some(Targets { proposal: Proposal::default(), finding: WeightFinding::Open });
    }
    let finding = finding(objects, &ask);
    let proposal = match (&finding, objects.world.answers.get(&ask.id)) {
        (WeightFinding::InForce, Some(answer)) => {
            let said = answer.reply.as_ref().ok();
            let message = said.and_then(message).unwrap_or_default().to_owned();
            told_once(objects, &ask, message).ask(ask)
        }
        (WeightFinding::Held(..), Some(answer)) if answer.reply.is_ok() => {
            verify::again(objects, ask, answer)
        }
        _ => Proposal::default().ask(ask),
    };
    Some(Targets { proposal, finding })
}

/// Asks for the targets of a blue-green rollout's active Service, and says what is wrong with them.
pub(super) fn of_active(objects: &Objects<'_>, plan: &Plan, roles: Roles) -> Proposal {
    let Some(Targets { proposal, finding }) = heard(objects, plan, roles) else {
        return Proposal::default();
    };
    let WeightFinding::Held(reason, message) = finding else { return proposal };
    let mut status = RolloutStatus::clone(&objects.status);
    let held = verify::hold(objects, &mut status, reason, message);
    proposal.and(held).note(status)
}

/// The question that is open until older pods may go: for a blue-green rollout from the switch to the
/// analysis after it or the promotion, for a canary behind an AWS load balancer from the promotion
/// until the older pods have their deadline.
fn due(objects: &Objects<'_>, roles: Roles) -> Option<Ask> {
    if !objects.world.verifies {
        return None;
    }
    let (new, status) = (&objects.sets[roles.new], &objects.status);
    let name = if objects.is_blue_green() {
        roles.separate_stable()?;
        let is_judged = status.blue_green.post_promotion_analysis_run_status.is_some();
        (!is_judged && status.stable_rs != *new.hash)
            .then_some(objects.blue_green().active_service.as_str())?
    } else {
        let routing = objects.canary().traffic_routing.as_ref();
        routing.filter(|routing| routing.alb.is_some() && objects.is_promoted())?;
        let is_fresh =
            |at: usize| objects.sets[at].size > 0 && objects.sets[at].deadline == Deadline::None;
        roles.others(objects).find(|at| is_fresh(*at))?;
        weights::backends(objects).stable
    };
    let service = objects.service(name).filter(|service| service.hash_text() == &*new.hash)?;
    let service = objects.rollout().service(&service.name);
    Some(Ask::targets(TargetsOf { service, set: new.name.clone() }, &new.hash))
}

fn finding(objects: &Objects<'_>, ask: &Ask) -> WeightFinding {
    match objects.world.answers.get(&ask.id).map(|answer| &answer.reply) {
        Some(Ok(Reply::Weights(said))) => match said.split {
            Split::AsTold => WeightFinding::InForce,
            split => WeightFinding::Held(verify::reason(split), said.message.clone()),
        },
        Some(Err(failed)) => {
            WeightFinding::Held(event::TARGET_GROUP_VERIFY_ERROR, failed.message.clone())
        }
        // Nothing yet, or not an answer to this question.
        Some(Ok(_)) | None => WeightFinding::Open,
    }
}

fn message(reply: &Reply) -> Option<&str> {
    match reply {
        Reply::Weights(said) => Some(&said.message).filter(|said| !said.is_empty()).map(|it| &**it),
        _ => None,
    }
}

/// The good news is told once; where no target group is bound to the Service there is none.
fn told_once(objects: &Objects<'_>, ask: &Ask, message: String) -> Proposal {
    let known = Some(format!("{} {message}", ask.id.0));
    if message.is_empty() || objects.memo.targets == known {
        return Proposal::default();
    }
    Proposal::default()
        .tell(EventKind::Normal, event::TARGET_GROUP_VERIFIED, message)
        .recall(Memo { targets: known, ..objects.memo.clone() })
}
