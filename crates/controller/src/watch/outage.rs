//! Is the server itself the problem? Then it is said once, not once per kind.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long a server that was away is not taken at its word. One that starts answers before it knows
/// its CRDs and who may do what: it refuses what it will permit.
const RETURNS_WITHIN: Duration = Duration::from_secs(30);

/// What all watches of one server know together of its troubles. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Outage(Arc<Mutex<Away>>);

/// What is wrong with a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Trouble {
    /// It does not answer.
    Unreachable,
    /// It does not know us.
    Unauthorized,
}

#[derive(Debug, Default)]
struct Away {
    /// Kinds that cannot be watched for that reason.
    kinds: BTreeSet<String>,
    /// Troubles that were logged since all was well.
    said: BTreeSet<Trouble>,
    /// Problems of single kinds that were logged and are not solved.
    of_kinds: BTreeSet<String>,
    /// When it was last found away.
    last: Option<Instant>,
    /// That it does not take writes was logged, and it has taken none since.
    refuses_writes: bool,
}

impl Outage {
    /// Notes that a kind cannot be watched; logs each trouble once until all is well again.
    pub(super) fn note(&self, kind: String, trouble: Trouble, message: &str) {
        let mut away = self.lock();
        away.kinds.insert(kind);
        if trouble == Trouble::Unreachable {
            away.last = Some(Instant::now());
        }
        if away.said.insert(trouble) {
            tracing::warn!("{message}; trying again");
        }
    }

    /// Notes that a kind is watched; logs when it was the last that was not.
    pub(super) fn solved(&self, kind: &str) {
        let mut away = self.lock();
        if away.kinds.remove(kind) && away.kinds.is_empty() && !away.said.is_empty() {
            away.said.clear();
            tracing::info!("the API server answers again");
        }
    }

    /// The server was away, or not ready, until now.
    pub fn was_away(&self) {
        self.lock().last = Some(Instant::now());
    }

    /// Notes that a kind cannot be watched; true if that may well be because the server has just come
    /// back.
    pub(super) fn is_returning(&self, kind: &str) -> bool {
        let mut away = self.lock();
        let is_returning = away.last.is_some_and(|last| last.elapsed() < RETURNS_WITHIN);
        if is_returning {
            away.kinds.insert(kind.to_owned());
        }
        is_returning
    }

    /// Notes that the server did not take a write; true if nobody has told of that, nor of anything
    /// that explains it.
    pub fn refuses_writes(&self) -> bool {
        let mut away = self.lock();
        !std::mem::replace(&mut away.refuses_writes, true) && away.said.is_empty()
    }

    /// Notes that the server takes writes.
    pub fn takes_writes(&self) {
        self.lock().refuses_writes = false;
    }

    /// Notes a problem of one kind; true if nobody has told of it.
    pub(super) fn is_news(&self, problem: &str) -> bool {
        self.lock().of_kinds.insert(problem.to_owned())
    }

    /// Notes that a problem of one kind is solved; true if nobody has told of that.
    pub(super) fn is_solved(&self, problem: &str) -> bool {
        self.lock().of_kinds.remove(problem)
    }

    fn lock(&self) -> MutexGuard<'_, Away> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
