//! Does the controller leave a settled cluster alone? Counted at the server.

use std::{collections::BTreeMap, time::Duration};

use thiserror::Error;

use crate::{
    Failure,
    audit::{Audit, Request, tally},
    plane::User,
    stage::{ControllerKind, Stage},
};

/// How long Events about the last writes may still come.
const SETTLES_WITHIN: Duration = Duration::from_secs(5);

const A_MINUTE: Duration = Duration::from_secs(60);

/// How long a new controller has to find something to do, once it knows everything.
const LOOKS_AROUND: Duration = Duration::from_secs(10);

#[derive(Debug, Error)]
#[error("expected {expected}, found {}", list(found))]
struct Noise {
    expected: &'static str,
    /// Verb, resource and object of each request, and how often.
    found: BTreeMap<String, usize>,
}

/// Nothing but renewed watches in a minute.
pub async fn a_settled_cluster_is_left_alone(stage: &Stage) -> Result<(), Failure> {
    tokio::time::sleep(SETTLES_WITHIN).await;
    let audit = Audit::from_now(stage.plane.audit_log())?;
    tokio::time::sleep(A_MINUTE).await;
    let expected = "no request in a minute but watches and the lease";
    none(&audit, expected, |request| !request.is_watch() && !request.is_of_election())
}

/// A new controller finds everything done.
pub async fn a_restart_writes_nothing(stage: &Stage) -> Result<(), Failure> {
    let audit = Audit::from_now(stage.plane.audit_log())?;
    let _controller = stage.controller(ControllerKind::Rollouts).await?;
    let _operator = stage.controller(ControllerKind::Databases).await?;
    tokio::time::sleep(LOOKS_AROUND).await;
    let expected = "no write after a restart but that of the lease";
    none(&audit, expected, |request| request.is_write() && !request.is_of_election())
}

/// The rights we ship are all it needs.
pub fn nothing_was_forbidden(audit: &Audit) -> Result<(), Failure> {
    none(audit, "no request beyond the rights that are shipped", |one| one.code == 403)
}

fn none(
    audit: &Audit,
    expected: &'static str,
    counts: fn(&Request) -> bool,
) -> Result<(), Failure> {
    let requests = audit.requests()?;
    let is_ours = |one: &Request| one.is_by(User::Controller) || one.is_by(User::Operator);
    let noise = requests.iter().filter(|one| is_ours(one) && counts(one));
    let found = tally(noise);
    if found.is_empty() { Ok(()) } else { Err(Noise { expected, found }.into()) }
}

/// Each with its number.
pub fn list(found: &BTreeMap<String, usize>) -> String {
    let one = |(request, count): (&String, &usize)| format!("{request} × {count}");
    found.iter().map(one).collect::<Vec<_>>().join(", ")
}
