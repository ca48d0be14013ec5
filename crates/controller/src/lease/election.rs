//! The election protocol of client-go as a pure state machine: what a candidate does next with the
//! Lease, and until when it may act as the leader.
//!
//! No clock of another machine is trusted: a lease is expired when *this* process has not seen it
//! change for its duration.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// What `spec` of a Lease says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseRecord {
    /// Who holds it; empty when it was released.
    pub holder: String,
    /// How long it holds after it was last renewed.
    pub duration: Duration,
    /// When the holder acquired it.
    pub acquired: Option<Timestamp>,
    /// When the holder last renewed it.
    pub renewed: Option<Timestamp>,
    /// How often it changed hands.
    pub transitions: i32,
}

/// The three durations of an election, as Argo Rollouts names their flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseDurations {
    /// How long a lease holds without being renewed.
    pub lease: Duration,
    /// How long a leader may act on its last renewal.
    pub renew_deadline: Duration,
    /// How long to wait between two tries.
    pub retry_period: Duration,
}

impl Default for LeaseDurations {
    fn default() -> Self {
        LeaseDurations {
            lease: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

/// Which durations do not fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationsError {
    /// The leader would act longer than the lease holds.
    #[error(
        "--leader-election-lease-duration {lease:?} must be at least {margin:?} longer than \
         --leader-election-renew-deadline {renew_deadline:?}: a write under way must end before \
         another controller can lead"
    )]
    Lease {
        /// The lease duration.
        lease: Duration,
        /// The renew deadline.
        renew_deadline: Duration,
        /// How much longer it must be.
        margin: Duration,
    },
    /// The leader would not try again before its deadline.
    #[error(
        "--leader-election-renew-deadline {renew_deadline:?} must be longer than 1.2 times \
         --leader-election-retry-period {retry_period:?}"
    )]
    Retry {
        /// The renew deadline.
        renew_deadline: Duration,
        /// The retry period.
        retry_period: Duration,
    },
    /// A Lease counts whole seconds.
    #[error("--leader-election-lease-duration {0:?} must be at least one second")]
    TooShort(Duration),
    /// Trying without a pause.
    #[error("--leader-election-retry-period must be more than zero")]
    NoRetry,
}

impl LeaseDurations {
    /// Refuses durations with which two controllers could write at once, or none ever leads.
    /// `request_limit` is how long a write that began in time may still take.
    pub fn check(&self, request_limit: Duration) -> Result<(), DurationsError> {
        let LeaseDurations { lease, renew_deadline, retry_period } = *self;
        if lease < Duration::from_secs(1) {
            return Err(DurationsError::TooShort(lease));
        }
        if retry_period.is_zero() {
            return Err(DurationsError::NoRetry);
        }
        if lease < renew_deadline.saturating_add(request_limit) {
            return Err(DurationsError::Lease { lease, renew_deadline, margin: request_limit });
        }
        if renew_deadline <= retry_period.saturating_mul(6) / 5 {
            return Err(DurationsError::Retry { renew_deadline, retry_period });
        }
        Ok(())
    }
}

/// A moment on two clocks. The monotonic one does not run while a machine is suspended, the wall
/// clock may be set: a leader must be in time on both, a candidate counts on the first alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Since the process began, by the monotonic clock.
    pub elapsed: Duration,
    /// By the wall clock.
    pub wall: Timestamp,
}

/// Until when a process leads: a moment that is reached when either clock reaches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeadUntil(Moment);

impl LeadUntil {
    fn after(sent: Moment, deadline: Duration) -> Self {
        let wall = SignedDuration::try_from(deadline).unwrap_or(SignedDuration::MAX);
        LeadUntil(Moment {
            elapsed: sent.elapsed.saturating_add(deadline),
            wall: sent.wall.checked_add(wall).unwrap_or(Timestamp::MAX),
        })
    }

    /// Does it still lead?
    pub fn holds_at(&self, now: Moment) -> bool {
        now.elapsed < self.0.elapsed && now.wall < self.0.wall
    }

    /// When it ends on the monotonic clock.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed
    }
}

/// What a candidate does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextTry {
    /// Nothing before this time of the monotonic clock.
    Wait(Duration),
    /// Read the Lease.
    Read,
    /// Create the Lease.
    Create(LeaseRecord),
    /// Write the Lease, onto the version that was seen.
    Update(LeaseRecord, u64),
}

/// Why a try came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryFailed {
    /// Somebody else wrote it: read before the next try.
    Overtaken,
    /// No answer, or a refusal: it may or may not have been written.
    NoAnswer,
}

/// The Lease as it was last seen to change.
#[derive(Clone, Debug)]
struct SeenLease {
    record: LeaseRecord,
    version: u64,
    /// When this process saw that change.
    since: Duration,
}

/// One process that wants to lead.
#[derive(Clone, Debug)]
pub struct Candidate {
    identity: String,
    durations: LeaseDurations,
    seen: Option<SeenLease>,
    /// The Lease was read, or written, in this try: it may be acted on without another read.
    is_fresh: bool,
    /// There is no Lease, as of this try.
    is_absent: bool,
    leads: Option<LeadUntil>,
    next_try: Duration,
}

impl Candidate {
    /// A candidate that has seen nothing yet.
    pub fn new(identity: String, durations: LeaseDurations) -> Self {
        Candidate {
            identity,
            durations,
            seen: None,
            is_fresh: false,
            is_absent: false,
            leads: None,
            next_try: Duration::ZERO,
        }
    }

    /// Until when it may act as the leader; `None` for a standby.
    pub fn leads_until(&self) -> Option<LeadUntil> {
        self.leads
    }

    /// Who holds the Lease, as last seen.
    pub fn holder(&self) -> Option<&str> {
        self.seen.as_ref().map(|seen| seen.record.holder.as_str())
    }

    /// What to do next.
    pub fn next(&self, now: Moment) -> NextTry {
        if now.elapsed < self.next_try {
            return NextTry::Wait(self.next_try);
        }
        if self.is_absent {
            return NextTry::Create(self.record(None, now));
        }
        match &self.seen {
            Some(seen) if self.is_fresh => {
                NextTry::Update(self.record(Some(&seen.record), now), seen.version)
            }
            _ => NextTry::Read,
        }
    }

    /// Takes in what a read has shown.
    pub fn read(&mut self, found: Option<(LeaseRecord, u64)>, now: Moment) {
        let Some((record, version)) = found else {
            // A Lease that was deleted is nobody's: not even ours, until it is written again.
            (self.seen, self.leads, self.is_absent, self.is_fresh) = (None, None, true, false);
            return;
        };
        self.is_absent = false;
        let is_known = self.seen.as_ref().is_some_and(|seen| seen.record == record);
        match &mut self.seen {
            // Only what the holder writes prolongs its lease, not somebody else's label.
            Some(seen) if is_known => seen.version = version,
            _ => self.seen = Some(SeenLease { record, version, since: now.elapsed }),
        }
        let may_write = self.is_ours() || self.is_expired(now);
        self.is_fresh = may_write;
        if !may_write {
            self.leads = None;
            self.next_try = self.next_look(now);
        } else if !self.is_ours() {
            self.leads = None;
        }
    }

    /// Takes in that a create or an update was acknowledged. It was sent at `sent`: by then at the
    /// latest everybody else's patience begins.
    pub fn written(&mut self, record: LeaseRecord, version: u64, sent: Moment, now: Moment) {
        self.leads = Some(LeadUntil::after(sent, self.durations.renew_deadline));
        self.seen = Some(SeenLease { record, version, since: now.elapsed });
        (self.is_fresh, self.is_absent) = (true, false);
        self.next_try = sent.elapsed.saturating_add(self.durations.retry_period).max(now.elapsed);
    }

    /// Takes in that a try failed. The Lease is read before the next one. After an overtaken write
    /// that read follows at once, since it tells whether somebody else leads.
    pub fn failed(&mut self, why: TryFailed, now: Moment) {
        (self.is_fresh, self.is_absent) = (false, false);
        self.next_try = match why {
            TryFailed::Overtaken => now.elapsed,
            TryFailed::NoAnswer => now.elapsed.saturating_add(self.durations.retry_period),
        };
    }

    /// Ends a lead whose deadline has passed; says whether one ended.
    pub fn expire(&mut self, now: Moment) -> bool {
        let has_ended = self.leads.is_some_and(|until| !until.holds_at(now));
        if has_ended {
            self.leads = None;
            self.is_fresh = false;
        }
        has_ended
    }

    /// The write that gives the Lease back, where it is ours: the next candidate need not wait.
    pub fn release(&self, now: Moment) -> Option<(LeaseRecord, u64)> {
        let seen = self.seen.as_ref().filter(|_| self.is_ours())?;
        let record = LeaseRecord {
            holder: String::new(),
            duration: Duration::from_secs(1),
            acquired: Some(now.wall),
            renewed: Some(now.wall),
            transitions: seen.record.transitions,
        };
        Some((record, seen.version))
    }

    /// A standby looks twice in a retry period, so that a Lease that was given back is soon seen, and
    /// at the moment at which the lease runs out.
    fn next_look(&self, now: Moment) -> Duration {
        let soon = now.elapsed.saturating_add(self.durations.retry_period / 2);
        let runs_out =
            self.seen.as_ref().map(|seen| seen.since.saturating_add(seen.record.duration));
        runs_out.map_or(soon, |at| at.min(soon))
    }

    fn is_ours(&self) -> bool {
        self.holder() == Some(&self.identity)
    }

    /// Has nobody renewed it for as long as it holds?
    fn is_expired(&self, now: Moment) -> bool {
        self.seen.as_ref().is_none_or(|seen| {
            seen.record.holder.is_empty()
                || seen.since.saturating_add(seen.record.duration) <= now.elapsed
        })
    }

    /// The record with which this candidate holds the Lease.
    fn record(&self, earlier: Option<&LeaseRecord>, now: Moment) -> LeaseRecord {
        let (acquired, transitions) = match earlier {
            Some(earlier) if earlier.holder == self.identity => {
                (earlier.acquired, earlier.transitions)
            }
            Some(earlier) => (Some(now.wall), earlier.transitions.saturating_add(1)),
            None => (Some(now.wall), 0),
        };
        LeaseRecord {
            holder: self.identity.clone(),
            duration: self.durations.lease,
            acquired,
            renewed: Some(now.wall),
            transitions,
        }
    }
}

#[cfg(test)]
mod tests;
