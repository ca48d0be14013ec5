//! What is left of a Decision without what would do harm, and how is that told?

use gradus_api::names::{condition, condition_status};
use gradus_api::rollout::RolloutStatus;
use gradus_api::rollout::status::Condition;
use gradus_api::values::Time;
use jiff::Timestamp;

use super::{Decided, Invariant};
use crate::decision::{
    After, Change, Decision, Event, EventKind, Frees, Guard, ObjectRef, Urgency, Why,
};
use crate::world::World;
use crate::{kinds, traffic};

/// With these changes alone, and of the status only what is no gate; the harm is told about this
/// object.
pub(super) fn without(
    world: &World,
    decision: &Decided,
    changes: Vec<Change>,
    object: ObjectRef,
    now: Timestamp,
    (invariant, message): (Invariant, &str),
) -> Decided {
    let stored = &*world.rollout.status;
    let status = held(stored, decision.status.as_ref().unwrap_or(stored), now, invariant, message);
    let is_kept = |event: &&Event| match &event.after {
        After::Change(id) => changes.iter().any(|change| change.id == *id),
        After::Status => false,
    };
    let told = (!is_told(stored, invariant)).then(|| Event {
        about: world.rollout.reference(),
        uid: None,
        kind: EventKind::Warning,
        reason: invariant.reason().into(),
        message: text(invariant, message),
        after: After::Status,
    });
    let why = Why {
        guard: Guard::Interlock { invariant: invariant.id().into(), message: message.to_owned() },
        field: field(&object).into(),
        object,
        since: status.condition(condition::HELD).map(|held| held.last_transition_time.timestamp()),
        frees: match invariant {
            // Only a person may go against a verdict; or with it.
            Invariant::VerdictsAreObeyed => Frees::Command("abort".into()),
            _ => Frees::Cluster,
        },
    };
    Decision {
        events: decision.events.iter().filter(is_kept).cloned().chain(told).collect(),
        changes,
        status: (status != *stored).then_some(status),
        urgency: Urgency::Now,
        asks: decision.asks.clone(),
        // What the memo compares with is the status as it was decided, which is not stored.
        memo: world.recall.memo.clone(),
        wake_at: decision.wake_at,
        why: std::iter::once(why).chain(decision.why.iter().cloned()).collect(),
    }
}

/// The field whose change would do harm.
fn field(object: &ObjectRef) -> &'static str {
    match &object.kind {
        kind if *kind == kinds::ROLLOUT => "status.currentStepIndex",
        kind if *kind == kinds::REPLICA_SET => "spec.replicas",
        kind if *kind == kinds::SERVICE => "spec.selector",
        kind => traffic::weights_field(kind).unwrap_or("spec"),
    }
}

/// The stored status with the counts of the next and what it says of pods, and the word that it is
/// held. What else the next one says would be true only with its gates.
fn held(
    stored: &RolloutStatus,
    next: &RolloutStatus,
    now: Timestamp,
    invariant: Invariant,
    message: &str,
) -> RolloutStatus {
    let mut conditions = stored.conditions.clone();
    let is_gone = |known: &Condition| next.condition(&known.r#type).is_none();
    conditions.retain(|known| known.r#type != condition::HELD && !is_gone(known));
    if next.condition(condition::AVAILABLE) != stored.condition(condition::AVAILABLE) {
        conditions.retain(|known| known.r#type != condition::AVAILABLE);
        conditions.extend(next.condition(condition::AVAILABLE).cloned());
    }
    let place = stored.conditions.iter().position(|known| known.r#type == condition::HELD);
    let known = place.map(|at| &stored.conditions[at]);
    // The same word at the same place: a held rollout that does not move is not written again.
    if let (Some(known), Some(at), true) = (known, place, is_told(stored, invariant)) {
        conditions.insert(at.min(conditions.len()), known.clone());
    } else {
        conditions.push(Condition {
            r#type: condition::HELD.into(),
            status: condition_status::TRUE.into(),
            last_update_time: Time::new(now),
            last_transition_time: known
                .filter(|known| known.status == condition_status::TRUE)
                .map_or(Time::new(now), |known| known.last_transition_time),
            reason: invariant.reason().into(),
            message: text(invariant, message),
        });
    }
    RolloutStatus {
        conditions,
        replicas: next.replicas,
        updated_replicas: next.updated_replicas,
        ready_replicas: next.ready_replicas,
        available_replicas: next.available_replicas,
        hpa_replicas: next.hpa_replicas,
        ..stored.clone()
    }
}

fn text(invariant: Invariant, message: &str) -> String {
    format!("held by invariant {}: {message}", invariant.id())
}

/// Does the status already say so?
fn is_told(stored: &RolloutStatus, invariant: Invariant) -> bool {
    let known = stored.condition(condition::HELD);
    known.is_some_and(|known| known.reason == invariant.reason())
}
