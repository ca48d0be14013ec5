//! One engine with its index, queue and memory as the loops see it, whatever it decides about. The
//! production loop and the simulator drive it: events in, work out, outcomes in.

use gradus_engine::ask::Reply;
use gradus_engine::decision::{Kind, ObjectRef};
use gradus_engine::frame::Frame;
use jiff::Timestamp;
use serde_json::Value;

use crate::act::Acted;
use crate::cluster::{Listing, WriteError};
use crate::shell::{Alarm, Held, Inquiry, Outgoing, Seen, SettlingRead, Shell, Work};
use crate::telemetry::Metrics;
use crate::watch::Failed;
use crate::watched::{Key, Meter, Selection, Standing, Watched};

/// An object that was read, or `None` where it is not there.
pub type Settled = Result<Option<Frame>, WriteError>;

/// One engine at work. It does no I/O and reads no clock.
pub trait Reconciler {
    /// The kind it decides about.
    fn kind(&self) -> Kind;

    /// What it watches now.
    fn selections(&self) -> Vec<Selection>;

    /// Kinds that a controller of this scope does not read.
    fn unread(&self) -> Vec<Kind>;

    /// What is to be watched from now on, because something in the index names an object of it.
    fn take_demands(&mut self) -> Vec<Selection>;

    /// Does the index hold an object of a watch?
    fn holds(&self, watch: &Selection, object: &ObjectRef) -> bool;

    /// Takes in one message of a watch; returns the objects of the engine's own kind that changed.
    fn observe(&mut self, watch: &Selection, seen: &Seen, now: Timestamp) -> Vec<Key>;

    /// Takes in that a watch sees nothing now.
    fn observe_failure(&mut self, watch: &Selection, failed: &Failed, now: Timestamp);

    /// Is everything it always watches synced?
    fn is_synced(&self) -> bool;

    /// When there is something to do even if nothing happens.
    fn next_due(&self) -> Option<Timestamp>;

    /// The next thing to do outside; `None` when nothing is due now.
    fn next_work(&mut self, now: Timestamp) -> Option<Work>;

    /// Takes in what carrying a decision out has shown.
    fn learn(&mut self, acted: Acted, now: Timestamp);

    /// Takes in an object that was read before its key is decided.
    fn learn_settling(&mut self, read: SettlingRead, reply: Settled, now: Timestamp);

    /// Takes in the answer to a question.
    fn learn_answer(&mut self, inquiry: Inquiry, reply: Result<Reply, WriteError>, now: Timestamp);

    /// Takes in what a kind that is listed once has shown.
    fn learn_survey(
        &mut self,
        listing: &Listing,
        reply: Result<Vec<Frame>, WriteError>,
        now: Timestamp,
    );

    /// Takes back a question that could not be asked; its key is decided again.
    fn take_back(&mut self, inquiry: Inquiry, now: Timestamp);

    /// A job was not carried out on purpose.
    fn decline(&mut self, key: &Key, now: Timestamp);

    /// Carrying a job out panicked.
    fn abandon(&mut self, key: &Key, now: Timestamp);

    /// Forgets what it recalls of earlier decisions: from now on somebody else decides.
    fn stand_by(&mut self);

    /// Decides every key again.
    fn wake_all(&mut self, now: Timestamp);

    /// Every object of its own kind that it knows.
    fn own_keys(&self) -> Vec<Key>;

    /// Events to be posted, in order, and how far their objects were.
    fn take_events(&mut self) -> Vec<(Outgoing, Standing)>;

    /// What the operator should hear of.
    fn take_alarms(&mut self) -> Vec<Alarm>;

    /// Every held key.
    fn held(&mut self, now: Timestamp) -> Vec<(Key, Held)>;

    /// World and Decision of a key, as they would be now.
    fn inspect(&self, key: &Key, now: Timestamp) -> Option<Value>;

    /// Shows an object of the engine's kind, or its end, in the metrics.
    fn publish(&self, key: &Key, metrics: &Metrics, now: Timestamp);

    /// From now on its queue is shown in the metrics.
    fn show_queue(&mut self, metrics: &Metrics);

    /// Shows for how long the keys of its queue have been in flight.
    fn show_in_flight(&self, now: Timestamp);

    /// Shows what happens to its objects in the metrics.
    fn meter(&self) -> Meter;

    /// The line a person types to give an object a command that frees it.
    fn command_line(&self, command: &str, key: &Key) -> String;
}

impl<W: Watched> Reconciler for Shell<W> {
    fn kind(&self) -> Kind {
        W::KIND
    }

    fn selections(&self) -> Vec<Selection> {
        self.selections()
    }

    fn unread(&self) -> Vec<Kind> {
        self.unread_kinds()
    }

    fn take_demands(&mut self) -> Vec<Selection> {
        self.take_demands()
    }

    fn holds(&self, watch: &Selection, object: &ObjectRef) -> bool {
        let source = self.source(watch);
        source.is_some_and(|source| (W::shelf(source).version)(self.index(), object).is_some())
    }

    fn observe(&mut self, watch: &Selection, seen: &Seen, now: Timestamp) -> Vec<Key> {
        let Some(part) = self.part(watch) else { return Vec::new() };
        self.observe_part(&part, seen, now)
    }

    fn observe_failure(&mut self, watch: &Selection, failed: &Failed, now: Timestamp) {
        if let Some(part) = self.part(watch) {
            self.observe_failed_part(&part, failed, now);
        }
    }

    fn is_synced(&self) -> bool {
        self.is_synced()
    }

    fn next_due(&self) -> Option<Timestamp> {
        self.next_due()
    }

    fn next_work(&mut self, now: Timestamp) -> Option<Work> {
        self.next_work(now)
    }

    fn learn(&mut self, acted: Acted, now: Timestamp) {
        self.learn(acted, now);
    }

    fn learn_settling(&mut self, read: SettlingRead, reply: Settled, now: Timestamp) {
        self.learn_settling(read, reply, now);
    }

    fn learn_answer(&mut self, inquiry: Inquiry, reply: Result<Reply, WriteError>, now: Timestamp) {
        self.learn_answer(inquiry, reply, now);
    }

    fn take_back(&mut self, inquiry: Inquiry, now: Timestamp) {
        self.take_back(inquiry, now);
    }

    fn learn_survey(
        &mut self,
        listing: &Listing,
        reply: Result<Vec<Frame>, WriteError>,
        now: Timestamp,
    ) {
        self.learn_survey(listing, reply, now);
    }

    fn decline(&mut self, key: &Key, now: Timestamp) {
        self.decline(key, now);
    }

    fn abandon(&mut self, key: &Key, now: Timestamp) {
        self.abandon(key, now);
    }

    fn stand_by(&mut self) {
        self.stand_by();
    }

    fn wake_all(&mut self, now: Timestamp) {
        self.wake_all(now);
    }

    fn own_keys(&self) -> Vec<Key> {
        self.own_keys()
    }

    fn take_events(&mut self) -> Vec<(Outgoing, Standing)> {
        self.take_events()
    }

    fn take_alarms(&mut self) -> Vec<Alarm> {
        self.take_alarms()
    }

    fn held(&mut self, now: Timestamp) -> Vec<(Key, Held)> {
        self.held(now)
    }

    fn inspect(&self, key: &Key, now: Timestamp) -> Option<Value> {
        self.inspect(key, now)
    }

    fn publish(&self, key: &Key, metrics: &Metrics, now: Timestamp) {
        W::publish(self.index(), key, metrics, now);
    }

    fn show_queue(&mut self, metrics: &Metrics) {
        self.queue_mut().show(metrics.queue(&name_of_queue(&W::KIND)));
    }

    fn show_in_flight(&self, now: Timestamp) {
        self.queue().show_in_flight(now);
    }

    fn meter(&self) -> Meter {
        W::measure
    }

    fn command_line(&self, command: &str, key: &Key) -> String {
        W::command_line(command, key)
    }
}

/// As Argo Rollouts names its queues: the plural of the kind, in its spelling.
fn name_of_queue(kind: &Kind) -> String {
    let ending = if kind.name.ends_with('s') { "es" } else { "s" };
    format!("{}{ending}", kind.name)
}

#[test]
fn a_queue_has_the_name_of_many_objects_of_its_kind() {
    use gradus_engine::kinds::{ANALYSIS_RUN, EXPERIMENT, INGRESS, ROLLOUT, SERVICE};
    let names =
        [ROLLOUT, EXPERIMENT, ANALYSIS_RUN, SERVICE, INGRESS].map(|kind| name_of_queue(&kind));
    assert_eq!(names, ["Rollouts", "Experiments", "AnalysisRuns", "Services", "Ingresses"]);
}
