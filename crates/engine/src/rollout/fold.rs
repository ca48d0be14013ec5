//! How many of the contract's passes fit into one decision?
//!
//! A pass sees the status and the objects as the passes before it leave them. The fold ends when a
//! pass changes nothing, or before a pass that would plan a change although an earlier one already
//! did or has altered a gate: no change rests on a gate that is not stored. The one exception is a
//! creation: create, revision, reset and the first size are one decision.

use std::sync::Arc;

use super::draft::{Creation, Draft};
use super::pass::pass;
use super::runs::Findings;
use super::urgency::has_same_gates;
use crate::ask::{Ask, Question};
use crate::decision::Change;

/// Passes in one decision; the longest chain known takes 7 (create, reset, size, promote, …).
const PASSES_LIMIT: usize = 24;

/// Every pass changed something, up to the limit: passes that undo each other, which only a bug of
/// ours can make.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{PASSES_LIMIT} passes over the same objects each changed something")]
pub(super) struct Unsettled;

/// The World after all passes that may be acted on together.
pub(super) fn fold(draft: Draft<'_>) -> Result<Draft<'_>, Unsettled> {
    fold_with(draft, pass)
}

fn fold_with<'w>(
    draft: Draft<'w>,
    pass: impl Fn(Draft<'w>) -> Draft<'w>,
) -> Result<Draft<'w>, Unsettled> {
    let mut draft = draft;
    for _ in 0..PASSES_LIMIT {
        let told = draft.events.len();
        let (next, is_settled) = if is_closed(&draft) {
            let next = pass(renewed(draft.clone(), true));
            if plans_more(&next, &draft.changes) {
                return Ok(draft);
            }
            let is_settled = next.status == draft.status;
            (next, is_settled)
        } else {
            // Every pass counts here, so that none is begun on a copy.
            let (status, changes) = (Arc::clone(&draft.status), draft.changes.clone());
            let next = pass(renewed(draft, false));
            let is_settled = !plans_more(&next, &changes) && next.status == status;
            (next, is_settled)
        };
        draft = next;
        if is_settled {
            // Of a pass that has changed nothing, only what it recalls, and when it wakes, may
            // differ: it has nothing to tell.
            draft.events.truncate(told);
            return Ok(draft);
        }
    }
    Err(Unsettled)
}

/// Has a pass planned, or wanted to plan, more than these changes?
fn plans_more(next: &Draft<'_>, changes: &[Change]) -> bool {
    next.is_overfull || next.changes != changes
}

/// The draft as the next pass finds it: with nothing found out yet.
fn renewed(draft: Draft<'_>, is_closed: bool) -> Draft<'_> {
    let mut draft = draft;
    draft.wake_at = None;
    draft.asks.retain(lasts);
    *draft.found = Findings::default();
    draft.is_closed = is_closed;
    draft
}

/// Does a question stay asked from pass to pass? All but lists of pods, which are asked for anew as
/// the pass leaves their ReplicaSets.
fn lasts(ask: &Ask) -> bool {
    !matches!(ask.question, Question::Pods(_))
}

/// May no further change be planned in this decision?
fn is_closed(draft: &Draft<'_>) -> bool {
    match draft.creation {
        Creation::Unsized => false,
        Creation::Sized => true,
        Creation::None => {
            let stored = &draft.world.rollout.status;
            !draft.changes.is_empty() || !has_same_gates(stored, &draft.status)
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::super::draft::Scratch;
    use super::super::tests::fixture::Fixture;
    use super::*;

    #[test]
    fn passes_that_never_end_are_not_acted_on() {
        let world = Fixture::canary(2, json!([])).world();
        let sets = world.replica_sets.present().unwrap();
        let draft = || Scratch::new(&world, sets, Timestamp::UNIX_EPOCH);
        let endless = fold_with(draft(), |mut draft| {
            Arc::make_mut(&mut draft.status).replicas += 1;
            draft
        });
        assert_eq!(endless.err(), Some(Unsettled));
        assert!(fold_with(draft(), |draft| draft).is_ok(), "one that changes nothing is settled");
        assert!(fold(draft()).is_ok());
    }
}
