//! Have the traffic plugins been told of the split, and is it in force?
//!
//! A plugin acts outside, and nobody can read what it has done. So the split is stored in the status
//! before a plugin hears of it, as not verified; until it has answered, no pods move. What it was told
//! is told again by a controller that has just started: every call may be repeated.

use gradus_api::rollout::RolloutStatus;
use jiff::{SignedDuration, Timestamp};

use super::objects::Objects;
use super::plan::{Plan, Proposal};
use super::urgency::has_same_gates;
use super::verify;
use crate::ask::{
    Answer, Ask, AskId, Effect, Question, Reply, RouterCall, RouterOperation, RouterReply,
};
use crate::traffic::{self, Goal};

/// How long after an answer that was no good a plugin is called again.
const RETRY: SignedDuration = SignedDuration::from_secs(10);

/// How far the plugins have been told.
pub(super) enum Told {
    /// All of them, or there are none.
    All,
    /// Not yet; what is asked meanwhile.
    Waits(Proposal),
    /// One cannot be told; why.
    Refused(Proposal, String),
}

/// Tells the plugins of the split, one after the other, once it is stored.
pub(super) fn apply(
    objects: &Objects<'_>,
    plan: &Plan,
    goal: &Goal<'_>,
    wanted: &RolloutStatus,
) -> (Proposal, Told) {
    let mut done = Proposal::default();
    for call in calls(objects, goal) {
        let id = id_of(objects, &call);
        let answer = objects.world.answers.get(&id);
        let may_act = is_stored(objects, wanted) && plan.changes.is_empty();
        if !may_act && answer.is_none() {
            return (done, Told::Waits(Proposal::default()));
        }
        let ask = Ask {
            id,
            question: Question::RouterPlugin(Box::new(call)),
            effect: Effect::Acts,
            after: None,
        };
        match answer.map(|answer| (answer, reply_of(answer))) {
            None => return (done, Told::Waits(Proposal::default().ask(ask))),
            Some((answer, RouterReply::Broken(why))) => {
                let asked = again(objects.now, ask, answer);
                return (done, Told::Refused(asked, why));
            }
            Some((_, RouterReply::Told | RouterReply::Verified(_))) => done = done.ask(ask),
        }
    }
    (done, Told::All)
}

/// Is the split told, as far as is known without a memory of it?
pub(super) fn is_done(objects: &Objects<'_>, goal: &Goal<'_>) -> bool {
    calls(objects, goal).all(|call| {
        let answer = objects.world.answers.get(&id_of(objects, &call));
        answer.is_some_and(|answer| reply_of(answer) == RouterReply::Told)
    })
}

/// May the traffic be split otherwise than the status says, because a plugin was not told yet, or has
/// not done it?
pub(super) fn is_open(objects: &Objects<'_>) -> bool {
    let stored = objects.rollout().status.canary.weights.as_ref();
    stored.is_some_and(|stored| stored.verified == Some(false)) && has_plugins(objects)
}

/// What plugins say of the split: `None` where none says anything.
pub(super) fn verdict(objects: &Objects<'_>, goal: &Goal<'_>) -> (Proposal, Option<Verdict>) {
    let mut worst = None;
    let mut asked = Proposal::default();
    for call in calls(objects, goal) {
        let told = objects.world.answers.get(&id_of(objects, &call));
        let (name, weight) = (&call.name, call.weight);
        let parts: Vec<i32> = call.additional.iter().map(|one| one.weight).collect();
        let ask = Ask {
            id: AskId(format!("verify {name} {weight} {parts:?} {}", goal.canary_hash).into()),
            question: Question::RouterPlugin(Box::new(RouterCall {
                operation: RouterOperation::Verify,
                ..call.clone()
            })),
            effect: Effect::Reads,
            after: told.map(|told| told.answered_at),
        };
        let answer = objects.world.answers.get(&ask.id);
        let answer = answer.filter(|answer| ask.after.is_none_or(|after| after <= answer.asked_at));
        let Some(answer) = answer else {
            asked = asked.ask(ask);
            worst = worse(worst, Verdict::Open);
            continue;
        };
        match reply_of(answer) {
            RouterReply::Verified(None) | RouterReply::Told => asked = asked.ask(ask),
            RouterReply::Verified(Some(true)) => {
                asked = asked.ask(ask);
                worst = worse(worst, Verdict::InForce);
            }
            RouterReply::Verified(Some(false)) => {
                asked = asked.and(again(objects.now, ask, answer));
                worst = worse(worst, Verdict::Open);
            }
            RouterReply::Broken(why) => {
                asked = asked.and(again(objects.now, ask, answer));
                worst = worse(worst, Verdict::Broken(why));
            }
        }
    }
    (asked, worst)
}

/// What a plugin says of the split.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    /// It is in force.
    InForce,
    /// Not yet.
    Open,
    /// It cannot say.
    Broken(String),
}

/// Do plugins split the traffic of this rollout?
pub(super) fn has_plugins(objects: &Objects<'_>) -> bool {
    traffic::names_plugins(objects.rollout())
}

fn worse(known: Option<Verdict>, found: Verdict) -> Option<Verdict> {
    Some(known.map_or_else(|| found.clone(), |known| known.max(found.clone())))
}

/// Asks again when an answer that was no good is old enough.
fn again(now: Timestamp, ask: Ask, answer: &Answer) -> Proposal {
    let due = answer.asked_at + RETRY;
    match now < due {
        true => Proposal::default().ask(ask).wake(due),
        false => Proposal::default().ask(Ask { after: Some(due), ..ask }),
    }
}

fn calls(objects: &Objects<'_>, goal: &Goal<'_>) -> impl Iterator<Item = RouterCall> {
    let routers = traffic::routers(objects.rollout());
    let calls: Vec<RouterCall> = routers.iter().filter_map(|router| router.tells(goal)).collect();
    calls.into_iter()
}

/// Is everything stored that a plugin would be told?
fn is_stored(objects: &Objects<'_>, wanted: &RolloutStatus) -> bool {
    verify::is_stored(objects, wanted) && has_same_gates(&objects.rollout().status, &objects.status)
}

/// The same for the same goal and the same configuration: nothing is told twice.
fn id_of(objects: &Objects<'_>, call: &RouterCall) -> AskId {
    let strategy = objects.canary();
    let routing = strategy.traffic_routing.as_ref();
    let config = routing.and_then(|routing| routing.plugins.get(&call.name));
    let config = config.map(|config| config.to_string()).unwrap_or_default();
    let told = serde_json::to_string(&call).unwrap_or_default();
    let (stable, canary) = (&strategy.stable_service, &strategy.canary_service);
    AskId(format!("route {told} {stable} {canary} {config}").into())
}

fn reply_of(answer: &Answer) -> RouterReply {
    match &answer.reply {
        Ok(Reply::RouterPlugin(reply)) => reply.clone(),
        Ok(_) => RouterReply::Broken("the answer is none of a traffic plugin".to_owned()),
        Err(failure) => RouterReply::Broken(failure.message.clone()),
    }
}
