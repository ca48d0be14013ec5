//! How many of the contract's passes fit into one decision?
//!
//! A pass sees the status and the objects as the passes before it leave them. The fold ends when a
//! pass changes nothing, or before a pass that would plan a change although an earlier one already
//! did or has altered a gate: no change rests on a gate that is not stored. The one exception is a
//! creation: create, revision, reset and the first size are one decision.

use std::sync::Arc;

use super::draft::{Creation, Draft, Scratch};
use super::pass::pass;
use super::urgency::has_same_gates;
use crate::ask::{Ask, Question};

/// Passes in one decision; the longest chain known takes 7 (create, reset, size, promote, …).
const PASSES_LIMIT: usize = 24;

/// The World after all passes that may be acted on together.
pub(super) fn fold(draft: Draft<'_>) -> Draft<'_> {
    let mut draft = draft;
    for _ in 0..PASSES_LIMIT {
        let is_closed = is_closed(&draft);
        let mut next = pass(next_pass(&draft, is_closed));
        let plans_more = next.is_overfull || next.changes != draft.changes;
        if !plans_more && next.status == draft.status {
            // Settled: only what it recalls, and when it wakes, may differ.
            next.events = draft.events;
            return next;
        }
        if plans_more && is_closed {
            return draft;
        }
        draft = next;
    }
    draft
}

/// The draft as the next pass finds it: with nothing found out yet.
fn next_pass<'w>(draft: &Draft<'w>, is_closed: bool) -> Draft<'w> {
    Box::new(Scratch {
        world: draft.world,
        now: draft.now,
        status: Arc::clone(&draft.status),
        sets: draft.sets.clone(),
        services: draft.services.clone(),
        runs: draft.runs.clone(),
        experiments: draft.experiments.clone(),
        found: Box::default(),
        routes: draft.routes.clone(),
        generation: draft.generation,
        revision: draft.revision.clone(),
        changes: draft.changes.clone(),
        events: draft.events.clone(),
        asks: lasting(draft),
        memo: draft.memo.clone(),
        wake_at: None,
        resizes: draft.resizes,
        creation: draft.creation,
        is_closed,
        is_overfull: draft.is_overfull,
    })
}

/// What stays asked from pass to pass: all but lists of pods, which are asked for anew as the pass
/// leaves their ReplicaSets.
fn lasting(draft: &Draft<'_>) -> Vec<Ask> {
    let lasts = |ask: &&Ask| !matches!(ask.question, Question::Pods(_));
    draft.asks.iter().filter(lasts).cloned().collect()
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
