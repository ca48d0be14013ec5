//! May this Decision be acted on? The invariants of a rollout, judged change by change on the World
//! as the earlier ones leave it, in production as in tests.
//!
//! It cuts, it does not freeze: the first harmful change and what follows it are taken out, except
//! what only adds pods or takes traffic off a revision that is not stable. Of the status only counts
//! and conditions are written then.

mod cut;
mod pods;
mod services;
mod steps;
#[cfg(test)]
mod tests;
mod traffic;
mod verdicts;

use gradus_api::names;
use gradus_api::rollout::RolloutStatus;
use jiff::Timestamp;

use crate::decision::{Change, Decision, Frees, Guard, ObjectRef, Why};
use crate::rollout::Memo;
use crate::traffic::TrafficSide;
use crate::world::World;
use pods::{Pods, selected_after};
use traffic::Traffic;
use verdicts::Verdicts;

/// An invariant that a decision would break, and the decision without what breaks it.
#[derive(Clone, Debug, PartialEq)]
pub struct Harm<D> {
    /// Which invariant.
    pub invariant: Invariant,
    /// What would happen, in numbers.
    pub message: String,
    /// What may be done.
    pub cut: D,
}

/// What must never be broken by a write of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invariant {
    /// No resize takes available pods below what maxUnavailable allows.
    AvailabilityFloor,
    /// No Service that users reach comes to select nothing.
    NoTrafficToNothing,
    /// No weight rises without the pods for it.
    EnoughBehindTheWeight,
    /// A weight is a part of the whole.
    WeightsWellFormed,
    /// No ReplicaSet shrinks below what the traffic it carries needs.
    TrafficBeforeTeardown,
    /// The step index only rises, and never past a gate that is not open.
    StepsGoForward,
    /// Nothing moves towards a revision that was not found good, until a person acts.
    VerdictsAreObeyed,
    /// Deciding comes to an end.
    DecisionsSettle,
}

impl Invariant {
    /// Its number, as documents name it.
    pub fn id(self) -> &'static str {
        match self {
            Invariant::AvailabilityFloor => "I-1",
            Invariant::NoTrafficToNothing => "I-3",
            Invariant::EnoughBehindTheWeight => "I-4",
            Invariant::WeightsWellFormed => "I-5",
            Invariant::TrafficBeforeTeardown => "I-6",
            Invariant::StepsGoForward => "I-7",
            Invariant::VerdictsAreObeyed => "I-8",
            Invariant::DecisionsSettle => "I-10",
        }
    }

    /// The reason in conditions and Events; those have no hyphen.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Invariant::AvailabilityFloor => names::interlock::AVAILABILITY_FLOOR,
            Invariant::NoTrafficToNothing => names::interlock::NO_TRAFFIC_TO_NOTHING,
            Invariant::EnoughBehindTheWeight => names::interlock::ENOUGH_BEHIND_THE_WEIGHT,
            Invariant::WeightsWellFormed => names::interlock::WEIGHTS_WELL_FORMED,
            Invariant::TrafficBeforeTeardown => names::interlock::TRAFFIC_BEFORE_TEARDOWN,
            Invariant::StepsGoForward => names::interlock::STEPS_GO_FORWARD,
            Invariant::VerdictsAreObeyed => names::interlock::VERDICTS_ARE_OBEYED,
            Invariant::DecisionsSettle => names::interlock::DECISIONS_SETTLE,
        }
    }
}

/// The decisions that are judged here.
type Decided = Decision<RolloutStatus, Memo>;

/// The decision to do nothing because deciding does not come to an end; [`check`] turns it into an
/// alarm.
pub(crate) fn held(world: &World, message: &str) -> Decided {
    let invariant = Invariant::DecisionsSettle;
    let why = Why {
        guard: Guard::Interlock { invariant: invariant.id().into(), message: message.to_owned() },
        object: world.rollout.reference(),
        field: "status".into(),
        since: None,
        frees: Frees::Cluster,
    };
    Decision { memo: world.recall.memo.clone(), why: vec![why], ..Decision::default() }
}

/// What a decision about a Rollout would break; `None` if it may be acted on.
pub fn check(world: &World, decision: &Decided, now: Timestamp) -> Option<Harm<Decided>> {
    if let Some(Guard::Interlock { message, .. }) = decision.why.first().map(|why| &why.guard) {
        let (invariant, object) = (Invariant::DecisionsSettle, world.rollout.reference());
        let bare = Decision { why: Vec::new(), ..decision.clone() };
        let cut = cut::without(world, &bare, Vec::new(), object, now, (invariant, message));
        return Some(Harm { invariant, message: message.clone(), cut });
    }
    if decision.changes.is_empty() && decision.status.is_none() {
        return None;
    }
    let verdicts = Verdicts::of(world);
    if let Some(found) = sift(world, &verdicts, &decision.changes) {
        let Sifted { object, left, harm: (invariant, message) } = found;
        let cut = cut::without(world, decision, left, object, now, (invariant, &message));
        return Some(Harm { invariant, message, cut });
    }
    let next = decision.status.as_ref()?;
    if let Some((invariant, message)) = Traffic::of(world).and_then(|it| it.judge_told(world, next))
    {
        let (left, object) = (decision.changes.clone(), world.rollout.reference());
        let cut = cut::without(world, decision, left, object, now, (invariant, &message));
        return Some(Harm { invariant, message, cut });
    }
    let steps = steps::judge(world, next, now).map(|found| (Invariant::StepsGoForward, found));
    let (invariant, message) = steps.or_else(|| {
        verdicts.judge_status(next).map(|found| (Invariant::VerdictsAreObeyed, found))
    })?;
    let (left, object) = (decision.changes.clone(), world.rollout.reference());
    let cut = cut::without(world, decision, left, object, now, (invariant, &message));
    Some(Harm { invariant, message, cut })
}

/// The first change that breaks something, and what may be done without it.
struct Sifted {
    object: ObjectRef,
    left: Vec<Change>,
    harm: (Invariant, String),
}

fn sift(world: &World, verdicts: &Verdicts<'_>, changes: &[Change]) -> Option<Sifted> {
    if changes.is_empty() {
        return None;
    }
    let (mut pods, mut traffic) = (Pods::of(world), Traffic::of(world));
    let mut first: Option<(ObjectRef, (Invariant, String))> = None;
    let mut left = Vec::new();
    for change in changes {
        let harm = services::judge(world, &pods, change)
            .map(|message| (Invariant::NoTrafficToNothing, message))
            .or_else(|| pods.judge(world, change))
            .or_else(|| traffic.as_ref()?.judge(&pods, change))
            .or_else(|| {
                let found = verdicts.judge(&pods, traffic.as_ref(), change)?;
                Some((Invariant::VerdictsAreObeyed, found))
            });
        let is_good = |change: &Change| {
            pods.only_adds(change) || relieves(world, &pods, traffic.as_ref(), change)
        };
        match (&first, harm) {
            (None, Some(harm)) => first = Some((change.target.clone(), harm)),
            (Some(_), Some(_)) => {}
            (Some(_), None) if !is_good(change) => {}
            (_, None) => {
                left.push(change.clone());
                pods.take_in(change);
                if let Some(traffic) = &mut traffic {
                    traffic.take_in(change);
                }
            }
        }
    }
    first.map(|(object, harm)| Sifted { object, left, harm })
}

/// Does this change only take traffic off a revision that is not stable?
fn relieves(world: &World, pods: &Pods, traffic: Option<&Traffic<'_>>, change: &Change) -> bool {
    let stable = &*world.rollout.status.stable_rs;
    let is_back = selected_after(change)
        .is_some_and(|hash| hash == stable && pods.selected(&change.target.name) != stable);
    let falls = traffic.is_some_and(|traffic| {
        let is_canary = traffic.selected(pods, TrafficSide::Canary) != *stable;
        is_canary && traffic.moved(change).is_some_and(|(from, to)| to < from)
    });
    is_back || falls
}
