//! How many of the contract's passes fit into one decision?
//!
//! A pass sees the status and the objects as the passes before it leave them. The fold ends when a
//! pass changes nothing, or before a pass that would plan a change although an earlier one already
//! did or has altered a gate: no change rests on a gate that is not stored. The one exception is a
//! creation: create, revision, reset and the first size are one decision.

use std::sync::Arc;

use super::draft::{Draft, Passed};
use super::pass::pass;
use super::plan::{Creation, Plan, Room};
use super::urgency::has_same_gates;
use crate::ask::{Ask, Question};

/// Passes in one decision; the longest chain known takes 7 (create, reset, size, promote, …).
const PASSES_LIMIT: usize = 24;

/// Every pass changed something, up to the limit: passes that undo each other, which only a bug of
/// ours can make.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{PASSES_LIMIT} passes over the same objects each changed something")]
pub(super) struct Unsettled;

/// What all passes that may be acted on together come to.
pub(super) fn fold(draft: Draft<'_>) -> Result<Passed<'_>, Unsettled> {
    fold_with(draft, pass)
}

fn fold_with<'w>(
    draft: Draft<'w>,
    pass: impl Fn(Draft<'w>) -> Passed<'w>,
) -> Result<Passed<'w>, Unsettled> {
    let mut last = draft.passed();
    for _ in 0..PASSES_LIMIT {
        let told = last.draft.plan.events.len();
        let (changes, status) =
            (last.draft.plan.changes.clone(), Arc::clone(&last.draft.objects.status));
        let is_closed = is_closed(&last.draft);
        // Only a pass that may turn out not to count is begun on a copy.
        let kept = is_closed.then(|| last.clone());
        let room = if is_closed { Room::Closed } else { Room::Open };
        let mut next = pass(renewed(last.draft, room));
        let plan = &mut next.draft.plan;
        let plans_more = plan.room == Room::Exceeded || plan.changes != changes;
        if let Some(kept) = kept.filter(|_| plans_more) {
            return Ok(kept);
        }
        if !plans_more && next.draft.objects.status == status {
            // Of a pass that has changed nothing, only what it recalls, and when it wakes, may
            // differ: it has nothing to tell.
            plan.events.truncate(told);
            return Ok(next);
        }
        last = next;
    }
    Err(Unsettled)
}

/// The draft as the next pass finds it: what to wait for and whom to ask is found out anew.
fn renewed(draft: Draft<'_>, room: Room) -> Draft<'_> {
    let Draft { objects, plan } = draft;
    let asks = plan.asks.into_iter().filter(lasts).collect();
    Draft { objects, plan: Plan { asks, wake_at: None, room, ..plan } }
}

/// Does a question stay asked from pass to pass? All but lists of pods, which are asked for anew as
/// the pass leaves their ReplicaSets.
fn lasts(ask: &Ask) -> bool {
    !matches!(ask.question, Question::Pods(_))
}

/// May no further change be planned in this decision?
fn is_closed(draft: &Draft<'_>) -> bool {
    match draft.plan.creation {
        Creation::Unsized => false,
        Creation::Sized => true,
        Creation::None => {
            let stored = &draft.objects.rollout().status;
            !draft.plan.changes.is_empty() || !has_same_gates(stored, &draft.objects.status)
        }
    }
}

#[cfg(test)]
mod tests {
    use gradus_api::rollout::RolloutStatus;
    use jiff::Timestamp;
    use serde_json::json;

    use super::super::plan::Proposal;
    use super::super::tests::fixture::Fixture;
    use super::*;

    #[test]
    fn passes_that_never_end_are_not_acted_on() {
        let world = Fixture::canary(2, json!([])).world();
        let sets = world.replica_sets.present().unwrap();
        let draft = || Draft::new(&world, sets, Timestamp::UNIX_EPOCH);
        let endless = fold_with(draft(), |draft| {
            let counted = draft.then(|objects| {
                let mut status = RolloutStatus::clone(&objects.status);
                status.replicas += 1;
                Proposal::default().note(status)
            });
            counted.passed()
        });
        assert_eq!(endless.err(), Some(Unsettled));
        assert!(fold_with(draft(), Draft::passed).is_ok(), "one that changes nothing is settled");
        assert!(fold(draft()).is_ok());
    }
}
