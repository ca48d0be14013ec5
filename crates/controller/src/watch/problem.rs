//! What is wrong with a watch, in words that help?

use kube::core::Status;
use kube::runtime::watcher::Error;

use super::outage::Trouble;
use super::{Failed, FailedCause};
use crate::one_line::one_line;
use crate::watched::Selection;

/// What a failure of the watcher means.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Problem {
    /// How the watch goes on.
    pub(super) step: Step,
    /// Whom it concerns.
    pub(super) scope: Extent,
    /// What the caller is told.
    pub(super) failed: Failed,
}

/// What the watcher does after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Goes on from the last version it saw.
    On,
    /// Must be begun anew with a list: the server does not have that version.
    Anew,
}

/// Whom a failure concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// Nobody: it happens to every watch that was away for a while.
    Nobody,
    /// This kind alone.
    Kind,
    /// This kind alone, and the server asks for patience: it is nothing unless it stays.
    Passing,
    /// All kinds.
    Server(Trouble),
}

/// A list that does not move for so many seconds.
pub(super) fn stalled(seconds: u64) -> Problem {
    let message = format!("cannot reach the API server: no answer within {seconds} s");
    let failed = Failed { cause: FailedCause::Away, message };
    Problem { step: Step::Anew, scope: Extent::Server(Trouble::Unreachable), failed }
}

/// What a failure means and how it is said.
pub(super) fn explain(error: &Error, selection: &Selection) -> Problem {
    if let Error::InitialListFailed(kube::Error::SerdeError(error))
    | Error::WatchFailed(kube::Error::SerdeError(error)) = error
    {
        return unreadable(error, selection);
    }
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
    let code = status.map(|status| status.code);
    // 410: the version is too old. 504: it is newer than the server's own, which is so for good
    // after its store was restored. 403 and 404 are cured from outside; the list shows it. For
    // any other reason a watch that does not start must not cost a list.
    let step = match (error, code) {
        (Error::WatchStartFailed(_), Some(403 | 404 | 410 | 504)) => Step::Anew,
        _ => Step::On,
    };
    let message = words(verb, status, error, selection);
    Problem { step, scope: scope(code), failed: Failed { cause: cause(code), message } }
}

/// The server has answered, but with something that is no object of its API. That is a matter of this
/// kind, not of the server.
fn unreadable(error: &serde_json::Error, selection: &Selection) -> Problem {
    let message = format!("cannot read an object of {}: {error}", resource(selection));
    let failed = Failed { cause: FailedCause::Away, message };
    Problem { step: Step::On, scope: Extent::Kind, failed }
}

fn scope(code: Option<u16>) -> Extent {
    match code {
        None => Extent::Server(Trouble::Unreachable),
        Some(401) => Extent::Server(Trouble::Unauthorized),
        Some(410) => Extent::Nobody,
        Some(429) => Extent::Passing,
        Some(_) => Extent::Kind,
    }
}

fn cause(code: Option<u16>) -> FailedCause {
    match code {
        Some(404) => FailedCause::NoSuchKind,
        Some(403) => FailedCause::Forbidden,
        _ => FailedCause::Away,
    }
}

fn words(verb: &str, status: Option<&Status>, error: &Error, selection: &Selection) -> String {
    let resource = resource(selection);
    let Some(status) = status else {
        return format!("cannot reach the API server: {}", cause_of(error));
    };
    let said = match status.message.trim() {
        "" => "no explanation",
        said => said,
    };
    match status.code {
        404 => format!(
            "the cluster has no {resource}: install the CRD (kubectl apply -f manifests/crds/)"
        ),
        403 => format!("no permission to {verb} {resource}{}: {said}", place(selection)),
        401 => "the API server does not accept our token".to_owned(),
        code => format!("cannot {verb} {resource}: the server answered {code}: {said}"),
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

/// The resource as permissions name it.
pub(super) fn resource(selection: &Selection) -> String {
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
