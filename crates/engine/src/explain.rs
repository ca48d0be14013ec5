//! How is a guard described to a person? The only place that words a `Why`. Steps are counted as
//! `get` counts them: `1/4` is `status.currentStepIndex` of how many.

use crate::decision::{Frees, Guard, Why};

/// One sentence: what holds it, where, and what would free it.
pub fn sentence(why: &Why) -> String {
    format!("{}; {}", held(why), freed(why))
}

pub(crate) fn held(why: &Why) -> String {
    let Why { object, field, .. } = why;
    match &why.guard {
        Guard::PauseStep { index, count } => {
            format!("step {index}/{count} is a pause of {object}")
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
        Guard::Delay => {
            format!("{object} has lost its traffic and keeps its pods for a while ({field})")
        }
        Guard::Kept { set } => {
            format!("{object} keeps the pods of the aborted ReplicaSet {set} ({field})")
        }
        Guard::Verdict { phase } => {
            let phase = if phase.is_empty() { "not started" } else { phase };
            format!("the verdict of {object} is awaited ({field}: {phase})")
        }
        Guard::Undecided => format!("{object} ended without a verdict ({field})"),
        Guard::PluginStep { index, count, message } => {
            let heard = if message.is_empty() { "nothing yet" } else { message };
            format!("step {index}/{count} of {object} waits for its plugin: {heard} ({field})")
        }
        Guard::NoTemplates { index, count } => format!(
            "step {index}/{count} of {object} is an analysis without templates and never ends ({field})"
        ),
        Guard::RouteStep { index, count } => {
            format!("the route of step {index}/{count} waits for {object} ({field})")
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
    }
}

fn freed(why: &Why) -> String {
    match &why.frees {
        Frees::At(moment) if matches!(why.guard, Guard::PluginStep { .. }) => {
            format!("it is called again at {moment}")
        }
        Frees::At(moment) => format!("it goes on at {moment}"),
        Frees::Command(command) => format!("a person can free it with `{command}`"),
        Frees::Edit => "an edit of that field frees it".to_owned(),
        Frees::Cluster => "it goes on when the cluster gets there".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::decision::{Kind, ObjectRef};

    /// What holds it, where, what frees it, and the words.
    #[test]
    fn a_guard_is_described_with_its_object_its_field_and_its_end() {
        let at = Frees::At(Timestamp::UNIX_EPOCH);
        let promote = || Frees::Command("promote".into());
        let cases = [
            (
                Guard::Delay,
                "deadline",
                at,
                "Thing shop/web has lost its traffic and keeps its pods for a while (deadline); \
                 it goes on at 1970-01-01T00:00:00Z",
            ),
            (
                Guard::PluginStep { index: 1, count: 4, message: "20 s left".into() },
                "steps[1].plugin (a/b)",
                Frees::At(Timestamp::UNIX_EPOCH),
                "step 1/4 of Thing shop/web waits for its plugin: 20 s left \
                 (steps[1].plugin (a/b)); it is called again at 1970-01-01T00:00:00Z",
            ),
            (
                Guard::Kept { set: "web-1".into() },
                "delay",
                Frees::Edit,
                "Thing shop/web keeps the pods of the aborted ReplicaSet web-1 (delay); \
                 an edit of that field frees it",
            ),
            (
                Guard::NoTemplates { index: 1, count: 4 },
                "templates",
                promote(),
                "step 1/4 of Thing shop/web is an analysis without templates and never ends \
                 (templates); a person can free it with `promote`",
            ),
            (
                Guard::RouteStep { index: 1, count: 4 },
                "size",
                promote(),
                "the route of step 1/4 waits for Thing shop/web (size); \
                 a person can free it with `promote`",
            ),
        ];
        let kind = Kind::new("", "v1", "Thing", "things");
        let object = ObjectRef::new(kind, &"shop".into(), &"web".into());
        for (guard, field, frees, words) in cases {
            let why =
                Why { guard, object: object.clone(), field: field.into(), since: None, frees };
            assert_eq!(sentence(&why), words);
        }
    }
}
