//! What does a step plugin's answer make of its entry in the status?

use gradus_api::names::{analysis_phase, plugin_operation};
use gradus_api::rollout::status::StepPluginStatus;
use gradus_api::values::Time;
use jiff::{SignedDuration, Timestamp};

use crate::ask::{PluginReply, PluginSaid};

/// The back-off after an error, and of a plugin that names none worth waiting for.
const USUAL: SignedDuration = SignedDuration::from_secs(30);

/// The shortest back-off a plugin may ask for.
const SHORTEST: SignedDuration = SignedDuration::from_secs(10);

/// What an answer means.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Heard {
    /// The entry as it is now.
    Entry(Box<StepPluginStatus>),
    /// It could not be handled.
    Error {
        /// Why.
        words: String,
        /// Has the plugin heard of it?
        was_called: bool,
    },
    /// There is nothing to note.
    Nothing,
}

/// What the answer to a Run makes of its entry.
pub(super) fn after_run(entry: &StepPluginStatus, reply: &PluginReply, now: Timestamp) -> Heard {
    let said = match reply {
        PluginReply::Disabled => {
            let (name, operation) = (entry.name.clone(), entry.operation.clone());
            let index = entry.index;
            let disabled = StepPluginStatus { index, name, operation, disabled: true, ..empty() };
            return Heard::Entry(Box::new(disabled));
        }
        PluginReply::Unusable(why) => return unusable(entry, why),
        PluginReply::Broken(message) => failed(message),
        PluginReply::Said(said) => readable(said),
    };
    let phase = match (said.phase.as_str(), entry.phase.as_str()) {
        ("", "") => analysis_phase::RUNNING,
        ("", known) => known,
        (said, _) => said,
    };
    let mut next = StepPluginStatus {
        phase: phase.to_owned(),
        message: said.message.clone(),
        updated_at: Some(Time::new(now)),
        executions: entry.executions + 1,
        backoff: String::new(),
        ..entry.clone()
    };
    match phase {
        analysis_phase::ERROR => next.backoff = duration_text(USUAL),
        analysis_phase::RUNNING => {
            let asked = Some(said.requeue_after).filter(|asked| *asked > SHORTEST);
            next.backoff = duration_text(asked.unwrap_or(USUAL));
            next.status = said.status;
        }
        analysis_phase::SUCCESSFUL | analysis_phase::FAILED => {
            next.finished_at = Some(Time::new(now));
            next.status = said.status;
        }
        other => return unknown_phase("run", other),
    }
    Heard::Entry(Box::new(next))
}

/// The entry that the answer to a Terminate or an Abort makes: these are done when they answer.
pub(super) fn after_end(
    run: &StepPluginStatus,
    operation: &str,
    reply: &PluginReply,
    now: Timestamp,
) -> Heard {
    let said = match reply {
        PluginReply::Disabled => return Heard::Nothing,
        PluginReply::Unusable(why) => return unusable(run, why),
        PluginReply::Broken(message) => failed(message),
        PluginReply::Said(said) => said.clone(),
    };
    let phase = match said.phase.as_str() {
        "" | analysis_phase::SUCCESSFUL => analysis_phase::SUCCESSFUL,
        analysis_phase::RUNNING | analysis_phase::FAILED => analysis_phase::FAILED,
        analysis_phase::ERROR => analysis_phase::ERROR,
        other => {
            let verb = if operation == plugin_operation::ABORT { "abort" } else { "terminate" };
            return unknown_phase(verb, other);
        }
    };
    Heard::Entry(Box::new(StepPluginStatus {
        index: run.index,
        name: run.name.clone(),
        operation: operation.to_owned(),
        phase: phase.to_owned(),
        message: said.message,
        started_at: Some(Time::new(now)),
        finished_at: Some(Time::new(now)),
        ..empty()
    }))
}

/// A duration as Go prints it: `17s`, `1m30.5s`, `1h0m0s`.
pub(super) fn duration_text(duration: SignedDuration) -> String {
    gradus_expr::duration_text(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
}

fn empty() -> StepPluginStatus {
    StepPluginStatus::default()
}

fn failed(message: &str) -> PluginSaid {
    let (phase, message) = (analysis_phase::ERROR.to_owned(), message.to_owned());
    PluginSaid { phase, message, ..PluginSaid::default() }
}

/// What was said; a status that the Rollout could not store is an error of the plugin.
fn readable(said: &PluginSaid) -> PluginSaid {
    match &said.status {
        Some(status) if !status.is_object() => failed("the plugin's status is not a JSON object"),
        _ => said.clone(),
    }
}

/// Why a plugin could not be called, in Argo Rollouts' words.
pub(super) fn unusable_words(index: i32, why: &str) -> String {
    format!("could not create step plugin at index {index} : {why}")
}

fn unusable(entry: &StepPluginStatus, why: &str) -> Heard {
    Heard::Error { words: unusable_words(entry.index, why), was_called: false }
}

fn unknown_phase(verb: &str, phase: &str) -> Heard {
    let words = format!(
        "failed to {verb} plugin: could not validate rpc phase: phase '{phase}' is not valid"
    );
    Heard::Error { words, was_called: true }
}
