//! How is a guard told to a person? The only place that words a `Why`.

use crate::decision::{Frees, Guard, Why};

/// One sentence: what holds it, where, and what would free it.
pub fn sentence(why: &Why) -> String {
    let Why { object, field, .. } = why;
    let held = match &why.guard {
        Guard::PauseStep { index, count } => {
            format!("step {}/{count} is a pause of {object}", index + 1)
        }
        Guard::SwitchPause => format!("{object} waits before the active Service is switched"),
        Guard::SpecPaused => format!("{object} is paused by hand ({field})"),
        Guard::Aborted { message } => format!("{object} was aborted ({message})"),
        Guard::NotAvailable { available, wanted } => {
            format!("{object} has {available} of {wanted} pods available ({field})")
        }
        Guard::NotScaled { replicas, wanted } => {
            format!("{object} has {replicas} pods and should have {wanted} ({field})")
        }
        Guard::NotObserved => {
            format!("the ReplicaSet controller has not seen the last change of {object} ({field})")
        }
        Guard::OldReplicas { available } => {
            format!("older ReplicaSets still have {available} pods, first {object}")
        }
        Guard::Verdict { phase } => {
            let phase = if phase.is_empty() { "not started" } else { phase };
            format!("the verdict of {object} is awaited ({field}: {phase})")
        }
        Guard::Undecided => format!("{object} ended without a verdict ({field})"),
        Guard::PluginStep { index, count, message } => {
            let heard = if message.is_empty() { "nothing yet" } else { message };
            format!(
                "step {}/{count} of {object} waits for its plugin: {heard} ({field})",
                index + 1
            )
        }
        Guard::Restart { older: None } => format!("{object} is to be restarted later ({field})"),
        Guard::Restart { older: Some(older) } => {
            format!("{object} is being restarted, {older} older pods are left ({field})")
        }
        Guard::InvalidSpec { message } => message.clone(),
        Guard::Refused { message, times } => {
            format!("the API server refused a write of {object} {times} times: {message}")
        }
        Guard::Router { message } => {
            format!("the traffic of {object} cannot be split ({field}): {message}")
        }
        Guard::Unreadable { message } => format!("{object} cannot be read: {message}"),
        Guard::Interlock { invariant, message } => {
            format!("invariant {invariant} holds {object}: {message}")
        }
        Guard::Unanswered { question } => format!("no answer yet to: {question}"),
    };
    let freed = match &why.frees {
        Frees::At(moment) => format!("it goes on at {moment}"),
        Frees::Command(command) => format!("a person can free it with `{command}`"),
        Frees::Edit => "an edit of that field frees it".to_owned(),
        Frees::Cluster => "it goes on when the cluster gets there".to_owned(),
    };
    format!("{held}; {freed}")
}
