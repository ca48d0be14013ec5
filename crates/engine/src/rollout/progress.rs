//! Does the update move, and if not, for how long may it stand still?

use std::fmt::Arguments;

use gradus_api::names::{condition, condition_status, message, reason};
use gradus_api::rollout::RolloutStatus;
use gradus_api::values::Time;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::Memo;
use super::conditions::{self, Statement};
use super::objects::Objects;
use super::plan::Proposal;
use super::replica_sets::Roles;
use super::status::is_indefinite;
use crate::world::Deadline;

/// The best counts of the current attempt, so that flapping pods are not taken for progress.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peak {
    /// Which attempt: a digest of revision and steps.
    attempt: u64,
    /// Is it the way back?
    #[serde(default)]
    aborted: bool,
    updated: i32,
    ready: i32,
    available: i32,
    /// Fewest pods of other revisions.
    old: i32,
}

impl Peak {
    fn of(status: &RolloutStatus) -> Self {
        Peak {
            attempt: attempt(status),
            aborted: status.abort,
            updated: status.updated_replicas,
            ready: status.ready_replicas,
            available: status.available_replicas,
            old: status.replicas - status.updated_replicas,
        }
    }

    /// Is a count better than it ever was? To turn round is no progress, but what counts begins anew.
    fn is_better_than(&self, peak: &Peak) -> bool {
        let is_better = self.updated > peak.updated
            || self.ready > peak.ready
            || self.available > peak.available
            || self.old < peak.old;
        self.aborted == peak.aborted && is_better
    }

    /// Is a count another, or better, than the one before of another attempt?
    fn differs_from(&self, before: &Peak) -> bool {
        self.updated != before.updated
            || self.ready > before.ready
            || self.available > before.available
            || self.old < before.old
    }

    /// The better of both in every count; the newer one where the attempt or its direction is another.
    fn raised(&self, now: Peak) -> Self {
        if (now.attempt, now.aborted) != (self.attempt, self.aborted) {
            return now;
        }
        Peak {
            updated: now.updated.max(self.updated),
            ready: now.ready.max(self.ready),
            available: now.available.max(self.available),
            old: now.old.min(self.old),
            ..now
        }
    }
}

fn attempt(status: &RolloutStatus) -> u64 {
    let hashes =
        status.current_pod_hash.bytes().chain([0xff]).chain(status.current_step_hash.bytes());
    hashes.fold(0xcbf2_9ce4_8422_2325, |digest, byte| {
        (digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// How the rollout stands, as far as the Progressing condition is concerned.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProgressInput {
    pub is_healthy: bool,
    pub is_paused: bool,
    pub turned_unhealthy: bool,
}

/// Sets the Progressing condition of a rollout that is not aborted, and remembers the best counts.
pub(super) fn set_progressing(
    objects: &Objects<'_>,
    roles: Roles,
    next: &mut RolloutStatus,
    standing: ProgressInput,
) -> Proposal {
    let now_at = Peak::of(next);
    let peak = objects.memo.peak.clone().unwrap_or_else(|| Peak::of(&objects.status));
    let has_begun = now_at.attempt != peak.attempt;
    let has_moved = is_further(&objects.status, next)
        || has_begun && (now_at.differs_from(&Peak::of(&objects.status)) || is_late(next))
        || !has_begun && now_at.is_better_than(&peak);
    // When the attempt is over, the next loss of pods begins another.
    let is_over = !next.abort && standing.is_healthy;
    let peak = (!is_over).then(|| peak.raised(now_at));
    let recalled = Proposal::default().recall(Memo { peak, ..objects.memo.clone() });
    if next.abort {
        return recalled;
    }
    let name = &objects.sets[roles.new].name;
    let now = objects.now;
    let is_completed = next.is_promoted();
    // A pause is about an update; of a revision that is stable it is not told. A blue-green update that
    // is paused after the switch has all its pods and goes on saying that it is paused.
    let tells_pause = standing.is_paused && !is_completed;
    if standing.is_healthy && !tells_pause {
        let message = format_args!("ReplicaSet \"{name}\" has successfully progressed.");
        let statement = progressing(reason::NEW_REPLICA_SET_AVAILABLE, message);
        conditions::set(&mut next.conditions, now, statement);
        return recalled;
    }
    if standing.turned_unhealthy && is_completed {
        let message = format_args!("{}", message::UNAVAILABLE);
        let statement = progressing(reason::REPLICA_SET_NOT_AVAILABLE, message);
        conditions::refresh(&mut next.conditions, now, statement);
        return recalled;
    }
    if (has_moved || standing.turned_unhealthy) && !tells_pause {
        let message = format_args!("ReplicaSet \"{name}\" is progressing.");
        let statement = progressing(reason::REPLICA_SET_UPDATED, message);
        conditions::refresh(&mut next.conditions, now, statement);
        // The status may say so already (a write whose answer was lost): then nothing else wakes it.
        return match deadline(objects, roles, next) {
            Some(end) => recalled.wake(end),
            None => recalled,
        };
    }
    if has_begun && !tells_pause {
        // Nothing has moved, and no time has been lost yet.
        restart_clock(next, now);
    }
    let Some(end) = deadline(objects, roles, next) else { return recalled };
    if now < end {
        return recalled.wake(end);
    }
    let message = timed_out_message(objects, roles);
    let message = format_args!("{message}");
    let (status, reason) = (condition_status::FALSE, reason::PROGRESS_DEADLINE_EXCEEDED);
    let statement = Statement::progressing(status, reason, message);
    conditions::set(&mut next.conditions, now, statement);
    recalled
}

fn progressing<'a>(reason: &'static str, message: Arguments<'a>) -> Statement<'a> {
    Statement::progressing(condition_status::TRUE, reason, message)
}

/// Does it say that the attempt before stood still for too long?
fn is_late(status: &RolloutStatus) -> bool {
    let known = status.condition(condition::PROGRESSING);
    known.is_some_and(|known| known.reason == reason::PROGRESS_DEADLINE_EXCEEDED)
}

/// The time to the deadline counts from now on; what is said of the progress stays.
fn restart_clock(next: &mut RolloutStatus, now: Timestamp) {
    let known = next.conditions.iter_mut().find(|known| known.r#type == condition::PROGRESSING);
    if let Some(known) = known {
        known.last_update_time = Time::new(now);
    }
}

/// Progress by counts is a new best of this attempt, or another attempt; a step, a promotion or other
/// steps count too.
fn has_moved(objects: &Objects<'_>, next: &RolloutStatus) -> bool {
    let peak = objects.memo.peak.clone().unwrap_or_else(|| Peak::of(&objects.status));
    let now_at = Peak::of(next);
    is_further(&objects.status, next)
        || now_at.attempt != peak.attempt
        || now_at.is_better_than(&peak)
}

/// A step, a promotion, a switch, or other steps.
fn is_further(stored: &RolloutStatus, next: &RolloutStatus) -> bool {
    let both_steps = stored.current_step_index.is_some() && next.current_step_index.is_some();
    let (before, after) = (&stored.blue_green, &next.blue_green);
    stored.stable_rs != next.stable_rs
        || before.active_selector != after.active_selector
        || before.preview_selector != after.preview_selector
        || both_steps && stored.current_step_index != next.current_step_index
        || stored.current_step_hash != next.current_step_hash
}

/// Does standing still too long give this update up?
pub(super) fn gives_up(objects: &Objects<'_>, roles: Roles, next: &RolloutStatus) -> bool {
    let is_completed = next.stable_rs == next.current_pod_hash || next.stable_rs.is_empty();
    objects.spec().progress_deadline_abort
        && !objects.status.abort
        && !is_completed
        && !has_moved(objects, next)
        && deadline(objects, roles, &objects.status).is_some_and(|end| end <= objects.now)
}

/// The words for an update that stood still too long.
pub(super) fn timed_out_message(objects: &Objects<'_>, roles: Roles) -> String {
    format!("ReplicaSet \"{}\" has timed out progressing.", objects.sets[roles.new].name)
}

/// When standing still becomes too long; `None` where nobody waits for pods.
pub(super) fn deadline(
    objects: &Objects<'_>,
    roles: Roles,
    status: &RolloutStatus,
) -> Option<Timestamp> {
    let known = status.condition(condition::PROGRESSING)?;
    let is_exempt =
        known.reason == reason::ROLLOUT_ABORTED || known.reason == reason::ROLLOUT_PAUSED;
    let is_draining = roles
        .others(objects)
        .any(|at| objects.sets[at].size > 0 && objects.sets[at].deadline != Deadline::None);
    if is_exempt || is_draining || is_indefinite(objects, status) {
        return None;
    }
    if known.reason == reason::PROGRESS_DEADLINE_EXCEEDED {
        return Some(known.last_update_time.timestamp());
    }
    // The time of a halt does not count, also where the condition did not tell of it.
    let resumed = status.condition(condition::PAUSED).map(|it| it.last_transition_time.timestamp());
    let since = known.last_update_time.timestamp().max(resumed.unwrap_or(Timestamp::MIN));
    let seconds = i64::from(objects.spec().progress_deadline_seconds_or_default());
    since.checked_add(SignedDuration::from_secs(seconds)).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn status(fields: Value) -> RolloutStatus {
        serde_json::from_value(fields).unwrap()
    }

    #[test]
    fn a_step_a_promotion_a_switch_or_other_steps_each_alone_are_progress() {
        let stored = json!({
            "stableRS": "a", "currentStepIndex": 1, "currentStepHash": "x",
            "blueGreen": { "activeSelector": "a", "previewSelector": "a" },
        });
        let cases = [
            ("nothing", json!({}), false),
            ("a promotion", json!({ "stableRS": "b" }), true),
            (
                "a switch of the active Service",
                json!({ "blueGreen": { "activeSelector": "b" } }),
                true,
            ),
            ("a switch of the preview", json!({ "blueGreen": { "previewSelector": "b" } }), true),
            ("a step", json!({ "currentStepIndex": 2 }), true),
            ("other steps", json!({ "currentStepHash": "y" }), true),
            ("no step index any more", json!({ "currentStepIndex": null }), false),
            ("more pods are none of it", json!({ "updatedReplicas": 3 }), false),
        ];
        for (what, patch, expected) in cases {
            let next = crate::patch::overlay(&stored, &patch);
            assert_eq!(is_further(&status(stored.clone()), &status(next)), expected, "{what}");
        }
        let without = status(json!({ "stableRS": "a" }));
        let first = status(json!({ "stableRS": "a", "currentStepIndex": 0 }));
        assert!(!is_further(&without, &first), "a first step index is no step");
    }

    #[test]
    fn a_peak_keeps_the_best_of_every_count_of_one_attempt() {
        let peak = |updated, ready, available, old| {
            let counts = json!({
                "currentPodHash": "b", "updatedReplicas": updated, "readyReplicas": ready,
                "availableReplicas": available, "replicas": updated + old,
            });
            Peak::of(&status(counts))
        };
        let best = peak(4, 5, 6, 1);
        let cases = [
            ("all worse", peak(1, 1, 1, 9), best.clone()),
            ("all better", peak(7, 8, 9, 0), peak(7, 8, 9, 0)),
            ("one better", peak(1, 7, 1, 9), peak(4, 7, 6, 1)),
        ];
        for (what, now, expected) in cases {
            assert_eq!(best.raised(now), expected, "{what}");
        }
        let back = Peak { aborted: true, ..peak(1, 1, 1, 9) };
        assert_eq!(best.raised(back.clone()), back, "the way back counts anew");
    }
}
