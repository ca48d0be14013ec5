//! What is wrong with a watch, in words that help, and said once?

use kube::core::Status;
use kube::runtime::watcher::Error;

use super::{Cause, Failed, Selection};
use crate::one_line::one_line;

/// What the watcher does after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Goes on from the last version it saw.
    On,
    /// Must be begun anew with a list: the server does not have that version.
    Anew,
}

/// The problem that was told last.
#[derive(Debug, Default)]
pub(super) struct Problem(Option<String>);

impl Problem {
    /// Logs the failure unless it is the one that was logged last.
    pub(super) fn note(&mut self, failed: &Failed) {
        if self.0.as_ref() == Some(&failed.message) {
            return;
        }
        tracing::warn!("{}", failed.message);
        self.0 = Some(failed.message.clone());
    }

    /// Logs the recovery, if there was a problem.
    pub(super) fn solved(&mut self, selection: &Selection) {
        if self.0.take().is_some() {
            tracing::info!("watching {} again", resource(selection));
        }
    }
}

/// A list that does not move.
pub(super) fn stalled(selection: &Selection) -> Failed {
    let message = format!("cannot watch {}: the list stopped; trying again", resource(selection));
    Failed { cause: Cause::Away, message }
}

/// What a failure means and how it is said.
pub(super) fn explain(error: &Error, selection: &Selection) -> (Step, Failed) {
    let (verb, status) = match error {
        Error::InitialListFailed(kube::Error::Api(status)) => ("list", Some(&**status)),
        Error::WatchStartFailed(kube::Error::Api(status))
        | Error::WatchFailed(kube::Error::Api(status))
        | Error::WatchError(status) => ("watch", Some(&**status)),
        Error::InitialListFailed(_) => ("list", None),
        Error::WatchStartFailed(_) | Error::WatchFailed(_) | Error::NoResourceVersion => {
            ("watch", None)
        }
    };
    let code = status.map_or(0, |status| status.code);
    // 410: the version is too old. 504: the version is newer than the server's own, which is so
    // for good after its store was restored. A watch that fails to start for another reason must
    // not cost a list. A 404 or 403 can only be cured from outside; the list will show it.
    let step = match error {
        Error::WatchStartFailed(_) if matches!(code, 403 | 404 | 410 | 504) => Step::Anew,
        _ => Step::On,
    };
    (step, Failed { cause: cause(code), message: words(verb, code, status, error, selection) })
}

fn cause(code: u16) -> Cause {
    match code {
        404 => Cause::NoSuchKind,
        403 => Cause::Forbidden,
        _ => Cause::Away,
    }
}

fn words(
    verb: &str,
    code: u16,
    status: Option<&Status>,
    error: &Error,
    selection: &Selection,
) -> String {
    let resource = resource(selection);
    let said = status.map(|status| status.message.trim()).filter(|said| !said.is_empty());
    match (code, said) {
        (404, _) => format!(
            "the cluster has no {resource}: install the CRD (kubectl apply -f manifests/crds/); \
             trying again"
        ),
        (403, said) => format!(
            "no permission to {verb} {resource}{}: {}",
            place(selection),
            said.unwrap_or("forbidden")
        ),
        (401, _) => format!("cannot {verb} {resource}: the server does not accept our token"),
        (_, Some(said)) => format!("cannot {verb} {resource}: {said}"),
        (_, None) => format!("cannot {verb} {resource}: {}", cause_of(error)),
    }
}

/// The failure without the wrapping that says list or watch once more.
fn cause_of(error: &Error) -> String {
    match error {
        Error::InitialListFailed(cause)
        | Error::WatchStartFailed(cause)
        | Error::WatchFailed(cause) => one_line(cause),
        Error::WatchError(_) | Error::NoResourceVersion => one_line(error),
    }
}

fn resource(selection: &Selection) -> String {
    let kind = &selection.kind;
    if kind.group.is_empty() {
        return kind.plural.to_string();
    }
    format!("{}.{}", kind.plural, kind.group)
}

fn place(selection: &Selection) -> String {
    selection.namespace.as_ref().map_or_else(
        || " in all namespaces".to_owned(),
        |namespace| format!(" in namespace {namespace}"),
    )
}
