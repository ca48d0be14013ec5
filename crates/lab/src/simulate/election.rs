//! How does a controller of two stand for election? The candidate of production, by a stopwatch that
//! the run moves, at the same server as everybody.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

use gradus_controller::clock::{MovedHands, Stopwatch};
use gradus_controller::cluster::{Cluster, Listing, PostedEvent, Write, WriteError, Written};
use gradus_controller::lease::election::{Candidate, LeaseDurations, Moment};
use gradus_controller::lease::{LEASE, Leadership, elect};
use gradus_engine::ask::Class;
use gradus_engine::decision::ObjectRef;
use gradus_engine::frame::Frame;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::deeds::NAMESPACE;
use crate::door::lead::LEASE_NAME;
use crate::door::{Bench, Reader, SimDoor};

/// One candidate at work.
pub(super) struct Campaign {
    work: Pin<Box<dyn Future<Output = ()>>>,
    hands: MovedHands,
    /// When its request is through.
    opens: Rc<Cell<Timestamp>>,
    /// When the run began: its stopwatch counts from there.
    start: Timestamp,
    replica: usize,
}

impl Campaign {
    /// A controller begins to stand for election; says whether it leads.
    pub(super) fn new(
        bench: &Rc<RefCell<Bench>>,
        replica: usize,
        start: Timestamp,
    ) -> (Self, Leadership) {
        let opens = Rc::new(Cell::new(start));
        let (stopwatch, hands) = Stopwatch::moved(moment(&bench.borrow(), replica, start));
        let (lead, leadership) = Leadership::elected(stopwatch.clone());
        let identity = match &bench.borrow().pair {
            Some(pair) => pair.identities[replica].clone(),
            None => String::new(),
        };
        let candidate = Candidate::new(identity, LeaseDurations::default());
        let reader = Reader { replica, is_judged: false };
        let inner = SimDoor { bench: Rc::clone(bench), opens: Rc::clone(&opens), reader };
        let door = LeaseDoor { inner };
        let work = Box::pin(async move {
            let lease =
                ObjectRef { kind: LEASE, namespace: NAMESPACE.into(), name: LEASE_NAME.into() };
            elect(&door, &lease, candidate, stopwatch, lead, std::future::pending()).await;
        });
        (Campaign { work, hands, opens, start, replica }, leadership)
    }

    /// Shows it the time.
    pub(super) fn show(&self, bench: &Bench) {
        self.hands.show(moment(bench, self.replica, self.start));
    }

    /// Does it wait for its next try?
    pub(super) fn is_asleep(&self) -> bool {
        self.hands.wakes().is_some()
    }

    /// When it can take its next step.
    pub(super) fn due(&self, bench: &Bench) -> Timestamp {
        let skipped = bench.pair.as_ref().map_or(SignedDuration::ZERO, |pair| pair.skipped);
        match self.hands.wakes() {
            Some(wakes) => {
                let wakes = SignedDuration::try_from(wakes).unwrap_or(SignedDuration::MAX);
                self.start.checked_add(wakes + skipped).unwrap_or(Timestamp::MAX)
            }
            None => self.opens.get(),
        }
    }

    /// Takes one step: it sends a request, hears an answer or wakes up.
    pub(super) fn step(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        // It goes on for ever: nobody asks it to stop.
        let _ = self.work.as_mut().poll(&mut context).is_ready();
    }
}

/// The moment on the clocks of a controller. What was skipped did not happen to its election.
fn moment(bench: &Bench, replica: usize, start: Timestamp) -> Moment {
    let pair = bench.pair.as_ref();
    let none = SignedDuration::ZERO;
    let (skew, skipped) = pair.map_or((none, none), |pair| (pair.skews[replica], pair.skipped));
    let elapsed = bench.now.duration_since(start) - skipped;
    Moment {
        elapsed: Duration::try_from(elapsed).unwrap_or_default(),
        wall: bench.now + skew - skipped,
    }
}

/// The door to the Lease. What happens to writes about Rollouts does not happen here, but requests
/// fail, take their time and do not come through.
struct LeaseDoor {
    inner: SimDoor,
}

impl Cluster for LeaseDoor {
    async fn write(&self, write: Write) -> Result<Written, WriteError> {
        self.inner.pass().await;
        let by = self.inner.reader.replica;
        let written = self.inner.bench.borrow_mut().write_lease(write, by);
        self.inner.pass().await;
        written
    }

    async fn read(&self, target: &ObjectRef) -> Result<Option<Frame>, WriteError> {
        self.inner.pass().await;
        let by = self.inner.reader.replica;
        let found = self.inner.bench.borrow_mut().read_lease(target, by);
        self.inner.pass().await;
        found
    }

    async fn read_whole(&self, target: &ObjectRef) -> Result<Option<Value>, WriteError> {
        Err(not_asked(&target.name))
    }

    async fn permit(&self) -> Result<(), WriteError> {
        Ok(())
    }

    async fn list(&self, listing: &Listing) -> Result<Vec<Frame>, WriteError> {
        Err(not_asked(&listing.labels))
    }

    async fn post(&self, event: &PostedEvent) -> Result<(), WriteError> {
        Err(not_asked(&event.name))
    }
}

fn not_asked(what: &str) -> WriteError {
    let message = format!("{what}: an election reads and writes its Lease alone");
    WriteError { class: Class::Denied, message, retry_after_secs: None }
}
