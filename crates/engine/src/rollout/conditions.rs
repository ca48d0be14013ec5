//! How are conditions set, and when do they follow a pause, a resume or a retry?

use std::fmt::Arguments;

use gradus_api::names::{condition, condition_status, message, reason};
use gradus_api::rollout::RolloutStatus;
use gradus_api::rollout::status::Condition;
use gradus_api::values::Time;
use jiff::Timestamp;

/// A condition without its times.
#[derive(Clone, Copy)]
pub(crate) struct Statement<'a> {
    pub r#type: &'static str,
    pub status: &'static str,
    pub reason: &'static str,
    /// Put into words only if it is news.
    pub message: Arguments<'a>,
}

impl<'a> Statement<'a> {
    /// How it is coming along.
    pub fn progressing(status: &'static str, reason: &'static str, message: Arguments<'a>) -> Self {
        Statement { r#type: condition::PROGRESSING, status, reason, message }
    }

    /// What holds it up.
    pub fn held(reason: &'static str, message: Arguments<'a>) -> Self {
        let (r#type, status) = (condition::HELD, condition_status::TRUE);
        Statement { r#type, status, reason, message }
    }
}

/// Sets a condition. Equal status and reason change nothing; the transition time moves only with
/// the status; a changed condition goes to the end of the list.
pub(crate) fn set(conditions: &mut Vec<Condition>, now: Timestamp, statement: Statement<'_>) {
    let same =
        |known: &Condition| known.status == statement.status && known.reason == statement.reason;
    let known = conditions.iter().find(|known| known.r#type == statement.r#type);
    if !known.is_some_and(same) {
        refresh(conditions, now, statement);
    }
}

/// The same, but message and update time are written in any case.
pub(crate) fn refresh(conditions: &mut Vec<Condition>, now: Timestamp, statement: Statement<'_>) {
    let now = Time::new(now);
    let known = conditions.iter().position(|known| known.r#type == statement.r#type);
    let known = known.map(|at| conditions.remove(at));
    let kept = known.filter(|known| known.status == statement.status);
    conditions.push(Condition {
        r#type: statement.r#type.into(),
        status: statement.status.into(),
        last_update_time: now,
        last_transition_time: kept.map_or(now, |known| known.last_transition_time),
        reason: statement.reason.into(),
        message: statement.message.to_string(),
    });
}

/// Takes a condition away.
pub(crate) fn remove(conditions: &mut Vec<Condition>, r#type: &str) {
    conditions.retain(|known| known.r#type != r#type);
}

/// `True` or `False`.
pub(super) fn truth(yes: bool) -> &'static str {
    if yes { condition_status::TRUE } else { condition_status::FALSE }
}

/// Is this condition true?
pub(super) fn is_true(status: &RolloutStatus, r#type: &str) -> bool {
    status.condition(r#type).is_some_and(|known| known.status == condition_status::TRUE)
}

/// Is this the reason of the Progressing condition?
pub(super) fn is_progressing(status: &RolloutStatus, reason: &str) -> bool {
    status.condition(condition::PROGRESSING).is_some_and(|known| known.reason == reason)
}

/// The Progressing condition of who neither goes on nor has failed.
fn waiting<'a>(reason: &'static str, message: Arguments<'a>) -> Statement<'a> {
    Statement::progressing(condition_status::UNKNOWN, reason, message)
}

/// The conditions that say whether somebody waits: they follow the pause, the resume and the retry
/// before anything else happens. `None` when they already do.
pub(super) fn follow_pause(
    status: &RolloutStatus,
    is_paused: bool,
    now: Timestamp,
) -> Option<Vec<Condition>> {
    let is_aborted = is_progressing(status, reason::ROLLOUT_ABORTED);
    let is_completed = is_true(status, condition::COMPLETED);
    let says_paused = is_progressing(status, reason::ROLLOUT_PAUSED);
    let turns = is_paused != says_paused && !is_aborted && !is_completed;
    let retries = is_aborted && !status.abort;
    let notes_pause = is_paused != is_true(status, condition::PAUSED) && !is_aborted;
    if !turns && !retries && !notes_pause {
        return None;
    }
    let mut conditions = status.conditions.clone();
    if turns {
        let (reason, text) = if is_paused {
            (reason::ROLLOUT_PAUSED, message::PAUSED)
        } else {
            (reason::ROLLOUT_RESUMED, "Rollout is resumed")
        };
        set(&mut conditions, now, waiting(reason, format_args!("{text}")));
    }
    if retries {
        let message = format_args!("Retrying Rollout after abort");
        let statement = waiting(reason::ROLLOUT_RETRY, message);
        set(&mut conditions, now, statement);
    }
    if notes_pause {
        let statement = Statement {
            r#type: condition::PAUSED,
            status: truth(is_paused),
            reason: reason::ROLLOUT_PAUSED,
            message: format_args!("{}", message::PAUSED),
        };
        set(&mut conditions, now, statement);
    }
    (conditions != status.conditions).then_some(conditions)
}
