//! May this Decision be acted on? The invariants of a rollout, judged change by change on the World
//! as the earlier ones leave it, in production as in tests.
//!
//! It cuts, it does not freeze: the first harmful change and what follows it are taken out, except
//! what only adds pods. Of the status only counts and conditions are written then.

mod cut;
mod pods;
mod services;
mod steps;
#[cfg(test)]
mod tests;
mod traffic;

use gradus_api::rollout::RolloutStatus;
use jiff::Timestamp;

use crate::decision::{Change, Decision};
use crate::rollout::Memo;
use crate::world::World;
use pods::Pods;
use traffic::Traffic;

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
    /// The step index only rises, and never past a pause that has not ended.
    StepsGoForward,
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
        }
    }

    /// The reason in conditions and Events; those have no hyphen.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Invariant::AvailabilityFloor => "InterlockI1",
            Invariant::NoTrafficToNothing => "InterlockI3",
            Invariant::EnoughBehindTheWeight => "InterlockI4",
            Invariant::WeightsWellFormed => "InterlockI5",
            Invariant::TrafficBeforeTeardown => "InterlockI6",
            Invariant::StepsGoForward => "InterlockI7",
        }
    }
}

/// The decisions that are judged here.
type Decided = Decision<RolloutStatus, Memo>;

/// What a decision about a Rollout would break; `None` if it may be acted on.
pub fn check(world: &World, decision: &Decided, now: Timestamp) -> Option<Harm<Decided>> {
    if let Some((at, invariant, message)) = first_harmful(world, &decision.changes) {
        let cut = cut::at_change(world, decision, at, now, (invariant, &message));
        return Some(Harm { invariant, message, cut });
    }
    let next = decision.status.as_ref()?;
    let message = steps::judge(world, next, now)?;
    let invariant = Invariant::StepsGoForward;
    let cut = cut::at_status(world, decision, now, (invariant, &message));
    Some(Harm { invariant, message, cut })
}

/// The first change that breaks something, with its place.
fn first_harmful(world: &World, changes: &[Change]) -> Option<(usize, Invariant, String)> {
    if changes.is_empty() {
        return None;
    }
    let mut pods = Pods::of(world);
    let mut traffic = Traffic::of(world);
    changes.iter().enumerate().find_map(|(at, change)| {
        let found = services::judge(world, &pods, change)
            .map(|message| (Invariant::NoTrafficToNothing, message))
            .or_else(|| pods.judge(world, change))
            .or_else(|| traffic.as_ref()?.judge(&pods, change));
        pods.take_in(change);
        if let Some(traffic) = &mut traffic {
            traffic.take_in(change);
        }
        found.map(|(invariant, message)| (at, invariant, message))
    })
}
