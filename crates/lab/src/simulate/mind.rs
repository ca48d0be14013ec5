//! One engine of the simulated controller: its shell, its watches and its work under way.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use gradus_controller::act::{Acted, act};
use gradus_controller::cluster::WriteError;
use gradus_controller::shell::{Alarm, Read, Shell, Work};
use gradus_controller::watched::{Watch, Watched};
use gradus_engine::decision::Event;
use gradus_engine::frame::Frame;
use jiff::Timestamp;

use super::watches::{self, Feed};
use crate::door::{Bench, SimDoor};
use crate::faults::{Chance, Faults};
use crate::trace::Record;

/// An engine as the executor sees it, whatever it decides about.
pub(super) trait Mind {
    /// The watches that have something to show now.
    fn ready_watches(&self, now: Timestamp) -> Vec<usize>;
    /// The first of them.
    fn first_ready_watch(&self, now: Timestamp) -> Option<usize>;
    /// Shows one event of a watch, or a whole list.
    fn show(&mut self, at: usize, now: Timestamp, chance: &mut Option<Chance>, faults: &Faults);
    /// The works that can take a step: their request is not on its way.
    fn arrived(&self, now: Timestamp) -> Vec<usize>;
    /// The first of them.
    fn first_arrived(&self, now: Timestamp) -> Option<usize>;
    /// Lets one work take one step; what it has learned goes back into the shell.
    fn fly(&mut self, at: usize, now: Timestamp);
    /// Has something happened since the shell last had nothing to do?
    fn is_stirred(&self) -> bool;
    /// Something has happened: time, for example.
    fn stir(&mut self);
    /// Takes the next work out of the shell, and what it wants to tell.
    fn decide(&mut self, now: Timestamp);
    /// Decides everything again.
    fn wake_all(&mut self, now: Timestamp);
    /// The controller dies with all it knows; another one starts.
    fn restart(&mut self);
    /// The earliest moment at which it can take a step again.
    fn next_due(&self, now: Timestamp) -> Option<Timestamp>;
    /// What was wrong with decisions since the last call: the invariant that the interlock saw
    /// broken, a panic, a status that does not fit our CRDs.
    fn take_harms(&mut self) -> Vec<(&'static str, String)>;
}

/// The mind of one engine.
pub(super) struct Thinking<W: Watched> {
    pub(super) bench: Rc<RefCell<Bench>>,
    pub(super) shell: Shell<W>,
    /// Its watches: first those it always has.
    pub(super) feeds: Vec<Feed>,
    constant_feeds: usize,
    flights: Vec<Flight<W>>,
    pub(super) is_stirred: bool,
    /// The version of the cluster of which every watch has shown all there is.
    quiet_at: Cell<Option<u64>>,
    harms: Vec<(&'static str, String)>,
}

/// Work on its way, until when its request is, and what it has told since it was last listened to.
struct Flight<W: Watched> {
    work: Flown<W>,
    arrives: Rc<Cell<Timestamp>>,
    told: Rc<RefCell<Vec<Event>>>,
}

/// What is on its way.
enum Flown<W: Watched> {
    Act(Pin<Box<dyn Future<Output = Acted<W>>>>),
    Read(Pin<Box<dyn Future<Output = Reading>>>),
}

type Reading = (Read, Result<Vec<Frame>, WriteError>);

impl<W: Watched> Thinking<W> {
    pub(super) fn new(bench: &Rc<RefCell<Bench>>, feeds: Vec<Feed>) -> Self {
        Thinking {
            bench: Rc::clone(bench),
            shell: Shell::default(),
            constant_feeds: feeds.len(),
            feeds,
            flights: Vec::new(),
            is_stirred: true,
            quiet_at: Cell::new(None),
            harms: Vec::new(),
        }
    }

    /// Notes what the shell wants to post and to say.
    fn tell(&mut self, now: Timestamp) {
        let mut bench = self.bench.borrow_mut();
        for outgoing in self.shell.take_events() {
            bench.trace.note(now, told(outgoing.event));
        }
        for alarm in self.shell.take_alarms() {
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
                Alarm::Refused { .. } => {}
            }
            bench.trace.note(now, Record::Alarm(format!("{alarm:?}")));
        }
    }
}

impl<W: Watched> Mind for Thinking<W> {
    fn ready_watches(&self, now: Timestamp) -> Vec<usize> {
        let bench = self.bench.borrow();
        let feeds = self.feeds.iter().enumerate();
        feeds.filter(|(_, feed)| feed.is_ready(&bench, now)).map(|(at, _)| at).collect()
    }

    fn first_ready_watch(&self, now: Timestamp) -> Option<usize> {
        let bench = self.bench.borrow();
        let version = Some(bench.cluster.version());
        if self.quiet_at.get() == version {
            return None;
        }
        let first = self.feeds.iter().position(|feed| feed.is_ready(&bench, now));
        if first.is_none() && self.feeds.iter().all(Feed::is_steady) {
            self.quiet_at.set(version);
        }
        first
    }

    fn show(&mut self, at: usize, now: Timestamp, chance: &mut Option<Chance>, faults: &Faults) {
        self.show_one(at, now, chance, faults);
    }

    fn arrived(&self, now: Timestamp) -> Vec<usize> {
        let flights = self.flights.iter().enumerate();
        flights.filter(|(_, flight)| flight.arrives.get() <= now).map(|(at, _)| at).collect()
    }

    fn first_arrived(&self, now: Timestamp) -> Option<usize> {
        self.flights.iter().position(|flight| flight.arrives.get() <= now)
    }

    fn fly(&mut self, at: usize, now: Timestamp) {
        let mut context = Context::from_waker(Waker::noop());
        let is_done = match &mut self.flights[at].work {
            Flown::Act(future) => match future.as_mut().poll(&mut context) {
                Poll::Pending => false,
                Poll::Ready(acted) => {
                    self.shell.learn(acted, now);
                    true
                }
            },
            Flown::Read(future) => match future.as_mut().poll(&mut context) {
                Poll::Pending => false,
                Poll::Ready((read, reply)) => {
                    self.shell.learn_read(read, reply, now);
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

    fn is_stirred(&self) -> bool {
        self.is_stirred
    }

    fn stir(&mut self) {
        self.is_stirred = true;
    }

    fn decide(&mut self, now: Timestamp) {
        let work = self.shell.next_work(now);
        for kind in self.shell.take_demands() {
            let watch = Watch { kind, labels: None };
            let feed = Feed::new::<W>(watch, &self.bench.borrow().cluster);
            self.feeds.push(feed);
            self.quiet_at.set(None);
        }
        self.tell(now);
        let (arrives, told) = (Rc::new(Cell::new(now)), Rc::<RefCell<Vec<Event>>>::default());
        let is_judged = watches::is_judged::<W>();
        let door = SimDoor { bench: Rc::clone(&self.bench), opens: Rc::clone(&arrives), is_judged };
        let work = match work {
            None => {
                self.is_stirred = false;
                return;
            }
            Some(Work::Act(job)) => {
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
            Some(Work::Draw(draw)) => {
                let bytes = self.bench.borrow_mut().draw(draw.count);
                self.shell.learn_draw(draw, Ok(bytes), now);
                return;
            }
            Some(Work::Read(read)) => Flown::Read(Box::pin(async move {
                let reply = read.carry_out(&door).await;
                (read, reply)
            })),
        };
        self.flights.push(Flight { work, arrives, told });
    }

    fn wake_all(&mut self, now: Timestamp) {
        self.shell.wake_all(now);
        self.is_stirred = true;
    }

    fn restart(&mut self) {
        self.shell = Shell::default();
        // What was watched on demand is not watched before it is demanded again.
        self.feeds.truncate(self.constant_feeds);
        self.feeds.iter_mut().for_each(|feed| *feed = feed.anew());
        self.flights.clear();
        self.quiet_at.set(None);
        self.is_stirred = true;
    }

    fn next_due(&self, now: Timestamp) -> Option<Timestamp> {
        let feeds = self.feeds.iter().filter_map(|feed| feed.next_due(now));
        let flights = self.flights.iter().map(|flight| flight.arrives.get());
        let moments = feeds.chain(flights).chain(self.shell.next_due());
        moments.filter(|moment| now < *moment).min()
    }

    fn take_harms(&mut self) -> Vec<(&'static str, String)> {
        std::mem::take(&mut self.harms)
    }
}

fn told(event: Event) -> Record {
    Record::Told(event.reason.into_owned(), event.message)
}
