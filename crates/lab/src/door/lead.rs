//! What happens between two controllers? Who holds the Lease as it is stored, what is done to whoever
//! leads, and I-17: nobody writes who does not lead.
//!
//! A Lease that ran out, or was given back, is taken over by the rules: from then on its former holder
//! must be silent. One that somebody else rewrote is noticed at the next renewal. Until then both may
//! believe to lead; that time is bounded, and what they write then rests on versions and uids and is
//! judged like any other write.

use std::sync::Arc;

use gradus_controller::cluster::{Write, WriteError, Written};
use gradus_controller::lease::election::LeaseDurations;
use gradus_engine::ask::Class;
use gradus_engine::decision::ObjectRef;
use gradus_engine::frame::Frame;
use gradus_simkube::Content;
use gradus_simkube::kinds::KindId;
use gradus_simkube::request::{Request, Verb};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::{Bench, SLOWEST_MILLISECONDS, frame, refusal};
use crate::checks::Violation;
use crate::deeds::NAMESPACE;
use crate::faults::{Chance, Fault, LeadFault, Pair};
use crate::trace::Record;

/// The Lease of the two controllers.
pub(crate) const LEASE_NAME: &str = "argo-rollouts-controller-lock";
/// Whoever rewrites it although it is not theirs.
const THIEF: &str = "thief";
/// How long a controller is frozen or cut off: its Lease runs out meanwhile.
const AWAY: SignedDuration = SignedDuration::from_secs(40);
/// Nothing more happens to the leader in one run: it must be able to end.
const MOST: u32 = 4;
/// How far the clocks of the two are apart at most, in seconds.
const APART: u64 = 60;

/// Two controllers of one run.
pub(crate) struct PairBench {
    /// The name of each, as it stands in the Lease.
    pub(crate) identities: [String; 2],
    /// How far the clock of each is ahead of the server's.
    pub(crate) skews: [SignedDuration; 2],
    /// So long nobody's election has seen time pass: nothing happened to it then.
    pub(crate) skipped: SignedDuration,
    /// Until when each takes no step,
    frozen: [Option<Timestamp>; 2],
    /// and until when nothing reaches or leaves it.
    cut_off: [Option<Timestamp>; 2],
    /// When the Lease was taken from each against the rules.
    robbed: [Option<Timestamp>; 2],
    /// Until when writes of each may arrive that were under way when it froze.
    late: [Option<Timestamp>; 2],
    planned: Option<(usize, LeadFault)>,
    percent: u64,
    struck: u32,
    born: u64,
    chance: Chance,
}

impl PairBench {
    pub(super) fn new(pair: &Pair, seed: Option<u64>) -> Self {
        let mut chance = Chance::new(seed.unwrap_or(0) ^ 0x7a1f);
        let apart = match seed {
            Some(_) => chance.below(2 * APART + 1).cast_signed() - APART.cast_signed(),
            None => APART.cast_signed(),
        };
        PairBench {
            identities: ["controller 0".to_owned(), "controller 1".to_owned()],
            skews: [SignedDuration::ZERO, SignedDuration::from_secs(apart)],
            skipped: SignedDuration::ZERO,
            frozen: [None; 2],
            cut_off: [None; 2],
            robbed: [None; 2],
            late: [None; 2],
            planned: pair.planned,
            percent: pair.percent,
            struck: 0,
            born: 1,
            chance,
        }
    }

    /// Draws what happens to the leader before this write.
    fn draw(&mut self, write: usize) -> Option<LeadFault> {
        if let Some((_, fault)) = self.planned.take_if(|(planned, _)| *planned == write) {
            return Some(fault);
        }
        if self.struck < MOST && self.chance.percent(self.percent) {
            self.struck += 1;
            return self.chance.pick(&LeadFault::ALL);
        }
        None
    }
}

impl Bench {
    /// How far the clock of a controller is ahead of the server's. One that is behind is put forward
    /// by the first answer.
    pub(crate) fn ahead(&self, replica: usize) -> SignedDuration {
        let skew = self.pair.as_ref().map(|pair| pair.skews[replica]);
        skew.map_or(SignedDuration::ZERO, |skew| skew.max(SignedDuration::ZERO))
    }

    /// The controller that holds the Lease, as it is stored; the first one where nobody does.
    pub(super) fn leader(&self) -> usize {
        let Some(pair) = &self.pair else { return 0 };
        let holder = self.holder();
        let held = pair.identities.iter().position(|one| holder.as_deref() == Some(one));
        held.unwrap_or(0)
    }

    /// Who holds the Lease, as it is stored.
    pub(crate) fn holder(&self) -> Option<String> {
        let lease = self.cluster.get(KindId::LEASE, NAMESPACE, LEASE_NAME)?;
        lease.spec["holderIdentity"].as_str().map(str::to_owned)
    }

    /// A controller has started: another name, and nothing is left of what happened to it.
    pub(crate) fn reborn(&mut self, replica: usize) {
        let Some(pair) = &mut self.pair else { return };
        pair.born += 1;
        pair.identities[replica] = format!("controller {}", pair.born);
        (pair.frozen[replica], pair.cut_off[replica]) = (None, None);
        (pair.robbed[replica], pair.late[replica]) = (None, None);
    }

    /// Until when a controller takes no step.
    pub(crate) fn frozen_until(&self, replica: usize) -> Option<Timestamp> {
        self.pair.as_ref()?.frozen[replica].filter(|until| self.now < *until)
    }

    /// Until when nothing reaches a controller.
    pub(crate) fn cut_off_until(&self, replica: usize) -> Option<Timestamp> {
        self.pair.as_ref()?.cut_off[replica].filter(|until| self.now < *until)
    }

    /// Fails a request of a controller that is cut off.
    pub(crate) fn lets_through(&mut self, replica: usize, what: &str) -> Result<(), WriteError> {
        if self.cut_off_until(replica).is_none() {
            return Ok(());
        }
        self.trace.note(self.now, Record::Unread(Fault::Unreachable));
        let message = format!("{what}: the controller is cut off");
        Err(WriteError { class: Class::Unreachable, message, retry_after_secs: None })
    }

    /// A write of this controller is about to arrive: something may happen to whoever leads. Says
    /// until when the write is held up.
    pub(super) fn strike_leader(&mut self, replica: usize) -> Option<Timestamp> {
        let write = self.attempts + 1;
        let fault = self.pair.as_mut()?.draw(write)?;
        self.trace.note(self.now, Record::LeadStruck(fault));
        let until = self.now + AWAY;
        let pair = self.pair.as_mut()?;
        match fault {
            LeadFault::Frozen => {
                pair.frozen[replica] = Some(until);
                pair.late[replica] = Some(until + slowest());
                return Some(until);
            }
            LeadFault::CutOff => pair.cut_off[replica] = Some(until),
            LeadFault::Stolen => {
                let other = pair.identities[1 - replica].clone();
                self.rob(Some(&other));
            }
            LeadFault::Misplaced => self.rob(Some(THIEF)),
            LeadFault::Deleted => self.rob(None),
        }
        None
    }

    /// Somebody rewrites or deletes the Lease.
    fn rob(&mut self, holder: Option<&str>) {
        let kind = KindId::LEASE;
        let mut request = match holder {
            Some(holder) => {
                let renewed = format!("{:.6}", self.now);
                let spec = json!({"holderIdentity": holder, "renewTime": renewed});
                Request::merge(kind, NAMESPACE, LEASE_NAME, json!({ "spec": spec }))
            }
            None => Request::new(Verb::Delete, kind, NAMESPACE, LEASE_NAME),
        };
        request.options.user = Arc::from(THIEF);
        let robbed = self.leader();
        if let Err(error) = self.cluster.call(&request, self.now) {
            self.trace.note(self.now, Record::Alarm(format!("{LEASE_NAME}: {error}")));
            return;
        }
        self.judge(None);
        if let Some(pair) = &mut self.pair {
            pair.robbed[robbed] = Some(self.now);
        }
    }

    /// I-17: a write, or a call that changes something outside, arrives; whoever made it must hold the
    /// Lease as it is stored.
    pub(super) fn expect_lead(&mut self, replica: usize, object: &str) {
        let holder = self.holder();
        let now = self.now;
        let Some(pair) = &mut self.pair else { return };
        if holder.as_deref() == Some(&pair.identities[replica]) {
            pair.robbed[replica] = None;
            return;
        }
        let is_unnoticed = pair.robbed[replica].is_some_and(|at| now < at + unnoticed());
        let is_late = pair.late[replica].is_some_and(|until| now <= until);
        if is_unnoticed || is_late {
            return;
        }
        let numbers = format!(
            "controller {replica} ({:?}) writes while the Lease is held by {holder:?}",
            pair.identities[replica]
        );
        let write = format!("a write at {now}");
        let (invariant, object) = ("I-17", object.to_owned());
        self.checkers[replica].tally_mut().accuse(Violation { invariant, write, object, numbers });
    }
}

/// How long a controller may write on a Lease that was taken from it against the rules: it acts on its
/// last renewal until the deadline, and a write that it then begins takes its time.
fn unnoticed() -> SignedDuration {
    let deadline = LeaseDurations::default().renew_deadline;
    SignedDuration::try_from(deadline).unwrap_or(SignedDuration::ZERO) + slowest()
}

/// How long a request is on its way at most.
fn slowest() -> SignedDuration {
    SignedDuration::from_millis(SLOWEST_MILLISECONDS.cast_signed())
}

impl Bench {
    /// One write of the Lease. It is no write of ours about a Rollout, and not counted as one.
    pub(crate) fn write_lease(&mut self, write: Write, by: usize) -> Result<Written, WriteError> {
        self.lets_through(by, LEASE_NAME)?;
        match self.lets_read(LEASE_NAME) {
            Ok(()) => self.store_lease(write, by),
            Err(error) => {
                if self.chance.percent(50) {
                    // It was done, but nobody hears so.
                    drop(self.store_lease(write, by));
                }
                Err(error)
            }
        }
    }

    fn store_lease(&mut self, write: Write, by: usize) -> Result<Written, WriteError> {
        let mut request = self.request(write);
        let pair = self.pair.as_ref();
        let identity = pair.map_or_else(String::new, |pair| pair.identities[by].clone());
        request.options.user = identity.into();
        let reply = self.cluster.serve(request, self.now);
        self.judge(None);
        match reply.map_err(|error| refusal(&error))?.content {
            Content::Object(object) => {
                Ok(Written { version: object.version, status: Arc::clone(&object.status) })
            }
            _ => Ok(Written { version: 0, status: Arc::default() }),
        }
    }

    /// One read of the Lease.
    pub(crate) fn read_lease(
        &mut self,
        target: &ObjectRef,
        by: usize,
    ) -> Result<Option<Frame>, WriteError> {
        self.lets_through(by, LEASE_NAME)?;
        self.lets_read(LEASE_NAME)?;
        let found = self.cluster.get(KindId::LEASE, &target.namespace, &target.name);
        Ok(found.map(|found| frame(found)))
    }
}
