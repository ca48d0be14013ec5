//! One engine of the simulated controller: its reconciler and its work under way.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use gradus_controller::act::{Acted, act};
use gradus_controller::cluster::{Cluster, Listing, WriteError};
use gradus_controller::engines::Entry;
use gradus_controller::lease::{Leadership, LedCluster};
use gradus_controller::reconciler::{Reconciler, Settled};
use gradus_controller::shell::{Alarm, Inquiry, InterlockMode, Seen, SettlingRead, Work};
use gradus_controller::watched::{Scope, Selection};
use gradus_engine::ask::{Effect, Reply};
use gradus_engine::decision::{Event, ObjectRef};
use gradus_engine::frame::Frame;
use jiff::Timestamp;

use crate::door::{Bench, Reader, SimDoor};
use crate::trace::Record;

/// One engine, and its work under way.
pub(super) struct Mind {
    bench: Rc<RefCell<Bench>>,
    entry: &'static Entry,
    reconciler: Box<dyn Reconciler>,
    /// The controller it belongs to, and whether the checks go by what it decides.
    reader: Reader,
    /// Does its controller lead?
    leadership: Leadership,
    flights: Vec<Flight>,
    /// Has something happened since the reconciler last had nothing to do?
    is_stirred: bool,
    harms: Vec<(&'static str, String)>,
}

/// Work on its way, until when its request is, and what it has told since it was last listened to.
struct Flight {
    work: Flown,
    arrives: Rc<Cell<Timestamp>>,
    told: Rc<RefCell<Vec<Event>>>,
}

/// What is on its way.
enum Flown {
    Act(Pin<Box<dyn Future<Output = Acted>>>),
    Settle(Pin<Box<dyn Future<Output = (SettlingRead, Settled)>>>),
    Ask(Pin<Box<dyn Future<Output = Answered>>>),
    Survey(Pin<Box<dyn Future<Output = Surveyed>>>),
}

/// A kind that is listed once, and what came of it.
type Surveyed = (Listing, Result<Vec<Frame>, WriteError>);

/// A question, and what came of it; `None` if it was not asked.
type Answered = (Inquiry, Option<Result<Reply, WriteError>>);

impl Mind {
    pub(super) fn new(
        bench: &Rc<RefCell<Bench>>,
        entry: &'static Entry,
        reader: Reader,
        leadership: Leadership,
    ) -> Self {
        Mind {
            bench: Rc::clone(bench),
            entry,
            reconciler: entry.start(&Scope::default(), InterlockMode::default()),
            reader,
            leadership,
            flights: Vec::new(),
            is_stirred: true,
            harms: Vec::new(),
        }
    }

    /// Notes what the reconciler wants to post and to say.
    fn tell(&mut self, now: Timestamp) {
        let mut bench = self.bench.borrow_mut();
        for (outgoing, _) in self.reconciler.take_events() {
            bench.trace.note(now, told(outgoing.event));
        }
        for alarm in self.reconciler.take_alarms() {
            match &alarm {
                Alarm::Interlock { invariant, message, .. } => {
                    self.harms.push((invariant.id(), message.clone()));
                }
                Alarm::Panicked { doing, message, .. } => {
                    self.harms.push(("I-18", format!("a panic while {doing}: {message}")));
                }
                // The CRDs here are our own: they know every field that we write.
                Alarm::Pruned { fields, .. } => {
                    self.harms.push(("I-20", format!("{fields:?} do not survive a status write")));
                }
                Alarm::Refused { .. } | Alarm::Hold { .. } => {}
            }
            bench.trace.note(now, Record::Alarm(format!("{alarm:?}")));
        }
    }

    /// Shows it one event of a watch. What was never shown does not go.
    pub(super) fn observe(
        &mut self,
        watch: &Selection,
        object: &ObjectRef,
        seen: &Seen,
        now: Timestamp,
    ) {
        if matches!(seen, Seen::Delete(_)) && !self.reconciler.holds(watch, object) {
            return;
        }
        self.reconciler.observe(watch, seen, now);
        self.is_stirred = true;
    }

    /// Shows it a whole list of a watch.
    pub(super) fn observe_list(&mut self, watch: &Selection, list: &[Seen], now: Timestamp) {
        for seen in list {
            self.reconciler.observe(watch, seen, now);
        }
        self.is_stirred = true;
    }

    /// The works that can take a step: their request is not on its way.
    pub(super) fn arrived(&self, now: Timestamp) -> impl Iterator<Item = usize> {
        let flights = self.flights.iter().enumerate();
        flights.filter(move |(_, flight)| flight.arrives.get() <= now).map(|(at, _)| at)
    }

    /// Lets one work take one step; what it has learned goes back into the reconciler.
    pub(super) fn fly(&mut self, at: usize, (now, clock): (Timestamp, Timestamp)) {
        let mut context = Context::from_waker(Waker::noop());
        let is_done = match &mut self.flights[at].work {
            Flown::Act(future) => match future.as_mut().poll(&mut context) {
                Poll::Pending => false,
                Poll::Ready(acted) => {
                    self.reconciler.learn(acted, clock);
                    true
                }
            },
            Flown::Settle(future) => match future.as_mut().poll(&mut context) {
                Poll::Pending => false,
                Poll::Ready((read, reply)) => {
                    self.reconciler.learn_settling(read, reply, clock);
                    true
                }
            },
            Flown::Survey(future) => match future.as_mut().poll(&mut context) {
                Poll::Pending => false,
                Poll::Ready((listing, reply)) => {
                    self.reconciler.learn_survey(&listing, reply, clock);
                    true
                }
            },
            Flown::Ask(future) => match future.as_mut().poll(&mut context) {
                Poll::Pending => false,
                Poll::Ready((inquiry, reply)) => {
                    match reply {
                        Some(reply) => self.reconciler.learn_answer(inquiry, reply, clock),
                        None => self.reconciler.take_back(inquiry, clock),
                    }
                    true
                }
            },
        };
        for event in self.flights[at].told.take() {
            self.bench.borrow_mut().trace.note(now, told(event));
        }
        if is_done {
            drop(self.flights.remove(at));
            self.is_stirred = true;
            self.tell(now);
        }
    }

    /// Has something happened since it last had nothing to do?
    pub(super) fn is_stirred(&self) -> bool {
        self.is_stirred
    }

    /// Something has happened: time, for example.
    pub(super) fn stir(&mut self) {
        self.is_stirred = true;
    }

    /// Takes the next work out of the reconciler, and what it wants to tell; returns what it wants
    /// watched from now on.
    pub(super) fn decide(&mut self, (now, clock): (Timestamp, Timestamp)) -> Vec<Selection> {
        let work = self.reconciler.next_work(clock);
        let demands = self.reconciler.take_demands();
        self.tell(now);
        match work {
            None => self.is_stirred = false,
            Some(work) => self.start(work, now),
        }
        demands
    }

    fn start(&mut self, work: Work, now: Timestamp) {
        let (arrives, told) = (Rc::new(Cell::new(now)), Rc::<RefCell<Vec<Event>>>::default());
        let reader = self.reader;
        let within = SimDoor { bench: Rc::clone(&self.bench), opens: Rc::clone(&arrives), reader };
        let door = LedCluster::new(within.clone(), self.leadership.clone());
        let work = match work {
            Work::Act(job) => {
                let mut bench = self.bench.borrow_mut();
                if reader.is_judged {
                    bench.checkers[reader.replica].decided();
                }
                let record = Record::Decided(job.changes.len(), job.status.is_some());
                bench.trace.note(now, record);
                let told = Rc::clone(&told);
                Flown::Act(Box::pin(async move {
                    act(&door, job, |event| told.borrow_mut().push(event)).await
                }))
            }
            Work::Settle(read) => Flown::Settle(Box::pin(async move {
                let reply = door.read(&read.object).await;
                (read, reply)
            })),
            Work::Survey(listing) => Flown::Survey(Box::pin(async move {
                let reply = door.list(&listing).await;
                (listing, reply)
            })),
            Work::Ask(inquiry) => Flown::Ask(Box::pin(async move {
                if inquiry.effect == Effect::Acts && door.permit().await.is_err() {
                    return (*inquiry, None);
                }
                let reply = within.answer(&inquiry).await;
                (*inquiry, Some(reply))
            })),
        };
        self.flights.push(Flight { work, arrives, told });
    }

    /// Decides everything again.
    pub(super) fn wake_all(&mut self, now: Timestamp) {
        self.reconciler.wake_all(now);
        self.is_stirred = true;
    }

    /// Forgets what it recalls of earlier decisions: from now on somebody else decides.
    pub(super) fn stand_by(&mut self) {
        self.reconciler.stand_by();
    }

    /// The controller dies with all it knows; another one starts.
    pub(super) fn restart(&mut self, leadership: Leadership) {
        self.leadership = leadership;
        self.reconciler = self.entry.start(&Scope::default(), InterlockMode::default());
        self.flights.clear();
        self.is_stirred = true;
    }

    /// The earliest moment at which it has something to decide again, by its own clock.
    pub(super) fn next_due(&self, clock: Timestamp) -> Option<Timestamp> {
        self.reconciler.next_due().filter(|due| clock < *due && *due < Timestamp::MAX)
    }

    /// The earliest moment at which one of its requests is through.
    pub(super) fn next_arrival(&self, now: Timestamp) -> Option<Timestamp> {
        let arrivals = self.flights.iter().map(|flight| flight.arrives.get());
        // What is never answered never arrives.
        arrivals.filter(|arrives| now < *arrives && *arrives < Timestamp::MAX).min()
    }

    /// What was wrong with decisions since the last call: the invariant that the interlock saw
    /// broken, a panic, a status that does not fit our CRDs.
    pub(super) fn take_harms(&mut self) -> Vec<(&'static str, String)> {
        std::mem::take(&mut self.harms)
    }
}

fn told(event: Event) -> Record {
    Record::Told(event.reason.into_owned(), event.message)
}
