//! One engine of the simulated controller: its reconciler and its work under way.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use gradus_controller::act::{Acted, act};
use gradus_controller::cluster::{Cluster, WriteError};
use gradus_controller::engines::Entry;
use gradus_controller::reconciler::{Reconciler, Settled};
use gradus_controller::shell::{Alarm, Inquiry, InterlockMode, Seen, SettlingRead, Work};
use gradus_controller::watched::{Scope, Selection};
use gradus_engine::ask::Reply;
use gradus_engine::decision::{Event, ObjectRef};
use jiff::Timestamp;

use crate::door::{Bench, SimDoor};
use crate::trace::Record;

/// One engine, and its work under way.
pub(super) struct Mind {
    bench: Rc<RefCell<Bench>>,
    entry: &'static Entry,
    reconciler: Box<dyn Reconciler>,
    /// Do the checks go by what it decides?
    is_judged: bool,
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
}

/// A question, and what came of it.
type Answered = (Inquiry, Result<Reply, WriteError>);

impl Mind {
    pub(super) fn new(bench: &Rc<RefCell<Bench>>, entry: &'static Entry, is_judged: bool) -> Self {
        Mind {
            bench: Rc::clone(bench),
            entry,
            reconciler: entry.start(&Scope::default(), InterlockMode::default()),
            is_judged,
            flights: Vec::new(),
            is_stirred: true,
            harms: Vec::new(),
        }
    }

    /// Notes what the reconciler wants to post and to say.
    fn tell(&mut self, now: Timestamp) {
        let mut bench = self.bench.borrow_mut();
        for outgoing in self.reconciler.take_events() {
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
    pub(super) fn fly(&mut self, at: usize, now: Timestamp) {
        let mut context = Context::from_waker(Waker::noop());
        let is_done = match &mut self.flights[at].work {
            Flown::Act(future) => match future.as_mut().poll(&mut context) {
                Poll::Pending => false,
                Poll::Ready(acted) => {
                    self.reconciler.learn(acted, now);
                    true
                }
            },
            Flown::Settle(future) => match future.as_mut().poll(&mut context) {
                Poll::Pending => false,
                Poll::Ready((read, reply)) => {
                    self.reconciler.learn_settling(read, reply, now);
                    true
                }
            },
            Flown::Ask(future) => match future.as_mut().poll(&mut context) {
                Poll::Pending => false,
                Poll::Ready((inquiry, reply)) => {
                    self.reconciler.learn_answer(inquiry, reply, now);
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
    pub(super) fn decide(&mut self, now: Timestamp) -> Vec<Selection> {
        let work = self.reconciler.next_work(now);
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
        let is_judged = self.is_judged;
        let door = SimDoor { bench: Rc::clone(&self.bench), opens: Rc::clone(&arrives), is_judged };
        let work = match work {
            Work::Act(job) => {
                let mut bench = self.bench.borrow_mut();
                if is_judged {
                    bench.checker.decided();
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
            Work::Ask(inquiry) => Flown::Ask(Box::pin(async move {
                let reply = door.answer(&inquiry).await;
                (*inquiry, reply)
            })),
        };
        self.flights.push(Flight { work, arrives, told });
    }

    /// Decides everything again.
    pub(super) fn wake_all(&mut self, now: Timestamp) {
        self.reconciler.wake_all(now);
        self.is_stirred = true;
    }

    /// The controller dies with all it knows; another one starts.
    pub(super) fn restart(&mut self) {
        self.reconciler = self.entry.start(&Scope::default(), InterlockMode::default());
        self.flights.clear();
        self.is_stirred = true;
    }

    /// The earliest moment at which it can take a step again.
    pub(super) fn next_due(&self, now: Timestamp) -> Option<Timestamp> {
        let flights = self.flights.iter().map(|flight| flight.arrives.get());
        let moments = flights.chain(self.reconciler.next_due());
        // What is never answered never arrives.
        moments.filter(|moment| now < *moment && *moment < Timestamp::MAX).min()
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
