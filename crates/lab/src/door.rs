//! How does the controller reach the simulated cluster? Straight into the store, one request per
//! turn, through a door at which faults and interruptions wait.

mod framed;
pub(crate) mod lead;
mod probe;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use gradus_controller::ask;
use gradus_controller::cluster::{
    Cluster, Listing, PostedEvent, ResourcePart, Write, WriteError, Written,
};
use gradus_controller::kube_cluster::classify;
use gradus_controller::shell::Inquiry;
use gradus_engine::ask::http::HttpError;
use gradus_engine::ask::{Question, Reply};
use gradus_engine::decision::{Expect, Kind, ObjectRef, Op};
use gradus_engine::frame::Frame;
use gradus_engine::kinds;
use gradus_simkube::kinds::KindId;
use gradus_simkube::object::Object;
use gradus_simkube::request::Verb;
use gradus_simkube::{
    ApiError, Content, Options, PatchKind, Place, Propagation, Request, SimCluster, Subresource,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::checks::{CONTROLLER, Judge};
use crate::deeds::{self, sight};
use crate::faults::{Chance, Fault, Faults, Interruption, MOST_DRAWN, Planned};
use crate::outside::{Heard, MetricServers};
use crate::person::Action;
use crate::played::{PlayedPlugins, acts};
use crate::trace::{Record, Trace};
use framed::status_of;
use lead::PairBench;

pub(crate) use framed::frame;

/// No request takes longer, in each direction.
const SLOWEST_MILLISECONDS: u64 = 1_900;

/// The cluster of one run, with those who watch and disturb it.
pub(crate) struct Bench {
    pub(crate) cluster: SimCluster,
    pub(crate) now: Timestamp,
    /// Who judges the writes of each controller.
    pub(crate) checkers: Vec<Box<dyn Judge>>,
    pub(crate) trace: Trace,
    /// The Rollout the scenario is about.
    pub(crate) place: Place,
    /// Requests of ours so far.
    pub(crate) requests: usize,
    /// Step plugins, which outlive the controller.
    pub(crate) plugins: PlayedPlugins,
    /// The controller that must be replaced by a new one.
    pub(crate) crashed: Option<usize>,
    /// What there is beside one controller: another one, and what happens between the two.
    pub(crate) pair: Option<PairBench>,
    /// Who answers HTTP requests; nobody in most scenarios.
    pub(crate) outside: Option<MetricServers>,
    /// When we, or a person, last wrote. That an analysis goes on does not count.
    pub(crate) last_write: Timestamp,
    /// What an interruption met: was an update under way?
    pub(crate) interrupted_update: Option<bool>,
    /// The version up to which writes were judged: also those that made the scenario's objects.
    judged: u64,
    /// Writes of ours that were tried so far, done or not.
    pub(crate) attempts: usize,
    planned: Vec<Planned>,
    interruption: Option<Interruption>,
    write_percent: u64,
    read_percent: u64,
    slow_percent: u64,
    drawn: u32,
    chance: Chance,
    controller: Arc<str>,
}

impl Bench {
    pub(crate) fn new(
        cluster: SimCluster,
        place: Place,
        checkers: Vec<Box<dyn Judge>>,
        now: Timestamp,
        faults: &Faults,
        trace: Trace,
    ) -> Self {
        Bench {
            judged: 0,
            cluster,
            now,
            checkers,
            trace,
            place,
            requests: 0,
            plugins: PlayedPlugins::default(),
            crashed: None,
            pair: faults.pair.as_ref().map(|pair| PairBench::new(pair, faults.seed)),
            outside: None,
            last_write: now,
            interrupted_update: None,
            attempts: 0,
            planned: faults.planned.clone(),
            interruption: faults.interruption.clone(),
            write_percent: faults.write_percent,
            read_percent: faults.read_percent,
            slow_percent: faults.slow_percent,
            drawn: 0,
            chance: Chance::new(faults.seed.unwrap_or(0) ^ 0x5eed),
            controller: CONTROLLER.into(),
        }
    }

    /// The Rollout as it is stored.
    pub(crate) fn rollout(&self) -> Option<&Arc<Object>> {
        self.cluster.at(&self.place)
    }

    /// Does what a person does. A refusal is an error of the scenario.
    pub(crate) fn perform(&mut self, action: &Action) -> Result<(), ApiError> {
        self.trace.note(self.now, Record::Acted(format!("{action:?}")));
        if *action == Action::RestartController {
            self.crashed = Some(self.leader());
        }
        deeds::perform(&mut self.cluster, &self.place, action, self.now)?;
        self.judge(None);
        self.last_write = self.now;
        Ok(())
    }

    /// Shows the checkers every write they have not seen; those of ours were made by this controller.
    pub(crate) fn judge(&mut self, by: Option<usize>) {
        let now = by.map_or(self.now, |by| self.now + self.ahead(by));
        for write in self.cluster.writes_after(self.judged) {
            for (replica, checker) in self.checkers.iter_mut().enumerate() {
                if by.is_none_or(|by| by == replica) {
                    checker.judge(write, now);
                } else {
                    checker.witness(write, now);
                }
            }
        }
        self.judged = self.cluster.version();
        if let Some(outside) = &mut self.outside {
            outside.observe(&self.cluster, self.now);
        }
    }

    /// What everybody has seen and judged is forgotten: memory that is used again soon is still at
    /// hand.
    pub(crate) fn forget_seen(&mut self) {
        self.cluster.forget_until(self.judged);
    }

    /// One write of ours; `None` if the controller does not live to hear the answer.
    fn write(&mut self, write: Write, by: usize) -> Option<Result<Written, WriteError>> {
        self.interrupt();
        self.attempts += 1;
        self.checkers[by].sent(&write);
        if let Err(error) = self.lets_through(by, &write.target.name) {
            return Some(Err(error));
        }
        let Some(fault) = self.fault() else { return Some(self.apply(write, by)) };
        self.trace.note(self.now, Record::Struck(fault));
        let message = format!("{}: an injected {fault:?}", write.target);
        if fault.is_applied() {
            // Nobody hears the answer.
            drop(self.apply(write, by));
        }
        match fault.class() {
            Some(class) => Some(Err(WriteError { class, message, retry_after_secs: None })),
            None => {
                self.crashed = Some(by);
                None
            }
        }
    }

    /// One call of a plugin, which counts as a write: the controller may die before it or before it
    /// hears the answer, and then there is none. Where none is configured, nothing is called.
    fn call_plugin(&mut self, question: &Question, by: usize) -> Option<Reply> {
        let name = question.plugin().unwrap_or_default();
        if !self.plugins.has(name) || !acts(question) || self.plugins.has_done(question) {
            return self.plugins.answer(question, self.now);
        }
        self.interrupt();
        self.attempts += 1;
        self.expect_lead(by, name);
        let fault = self.fault();
        if let Some(fault @ (Fault::CrashBefore | Fault::CrashAfter)) = fault {
            self.trace.note(self.now, Record::Struck(fault));
            if fault == Fault::CrashAfter {
                self.plugins.answer(question, self.now);
            }
            self.crashed = Some(by);
            return None;
        }
        self.plugins.answer(question, self.now)
    }

    fn apply(&mut self, write: Write, by: usize) -> Result<Written, WriteError> {
        self.expect_lead(by, &write.target.name);
        let verb = verb_name(&write);
        let name = Arc::clone(&write.target.name);
        let is_run = write.target.kind == kinds::ANALYSIS_RUN;
        let request = self.request(write);
        let answer = self.cluster.serve(request, self.now);
        self.judge(Some(by));
        match answer {
            Ok(reply) => {
                let goes_on = |object: &Object| is_run && object.status["phase"] == "Running";
                if !matches!(&reply.content, Content::Object(object) if goes_on(object)) {
                    self.last_write = self.now;
                }
                let written = match reply.content {
                    Content::Object(object) => {
                        Written { version: object.version, status: status_of(&object) }
                    }
                    _ => Written { version: 0, status: Arc::default() },
                };
                self.trace.note(self.now, Record::Wrote(verb, name, written.version));
                Ok(written)
            }
            Err(error) => {
                let error = refusal(&error);
                self.trace.note(self.now, Record::Refused(verb, name, error.message.clone()));
                Err(error)
            }
        }
    }

    fn request(&self, write: Write) -> Request {
        let Write { target, part, op, expect, .. } = write;
        let kind = self.kind(&target.kind);
        let is_end = matches!(op, Op::Delete | Op::Evict);
        let subresource = match part {
            ResourcePart::Main if op == Op::Evict => Subresource::Eviction,
            ResourcePart::Main => Subresource::None,
            ResourcePart::Status => Subresource::Status,
        };
        let mut options = Options { user: Arc::clone(&self.controller), ..Options::default() };
        let (verb, mut body) = match op {
            Op::Create(body) if body["metadata"]["name"].is_string() => (Verb::Create, body),
            Op::Create(mut body) => {
                Arc::make_mut(&mut body)["metadata"]["name"] = json!(target.name);
                (Verb::Create, body)
            }
            Op::Merge(body) => (Verb::Patch(PatchKind::Merge), body),
            Op::Delete => {
                options.propagation = Some(Propagation::Background);
                (Verb::Delete, Arc::default())
            }
            Op::Evict => (Verb::Create, Arc::default()),
        };
        match &expect {
            Expect::Nothing => {}
            Expect::Version(version) => options.expect_version = Some(*version),
            Expect::Uid(uid) if is_end => {
                options.expect_uid = Some(uid.to_string().into());
            }
            Expect::Uid(uid) => {
                Arc::make_mut(&mut body)["metadata"]["uid"] = json!(uid.to_string());
            }
        }
        Request {
            verb,
            kind,
            namespace: target.namespace,
            name: target.name,
            subresource,
            body,
            options,
        }
    }

    /// Reads one object. The checker goes by what the engine that it judges has read, not by what
    /// another engine of the same controller has.
    fn read(&mut self, target: &ObjectRef, by: Reader) -> Result<Option<Frame>, WriteError> {
        Ok(self.found(target, by)?.map(|found| frame(&found)))
    }

    fn read_whole(&mut self, target: &ObjectRef, by: Reader) -> Result<Option<Value>, WriteError> {
        let found = self.found(target, by)?;
        Ok(found.map(|found| found.to_json(self.cluster.kinds())))
    }

    fn found(&mut self, target: &ObjectRef, by: Reader) -> Result<Option<Arc<Object>>, WriteError> {
        self.interrupt();
        self.trace.note(self.now, Record::Read(Arc::clone(&target.name)));
        self.lets_through(by.replica, &target.name)?;
        self.lets_read(&target.name)?;
        let kind = self.kind(&target.kind);
        let found = self.cluster.get(kind, &target.namespace, &target.name).cloned();
        if let Some(found) = found.as_ref().filter(|_| by.is_judged) {
            self.checkers[by.replica].shown(found);
        }
        Ok(found)
    }

    fn list(&mut self, listing: &Listing, by: usize) -> Result<Vec<Frame>, WriteError> {
        self.interrupt();
        self.trace.note(self.now, Record::Read(listing.labels.as_str().into()));
        self.lets_through(by, &listing.labels)?;
        self.lets_read(&listing.labels)?;
        let kind = self.kind(&listing.kind);
        let mut request = Request::new(Verb::List, kind, &listing.namespace, "");
        request.options.label_selector = Some(listing.labels.as_str().into());
        let reply = self.cluster.call(&request, self.now).map_err(|error| refusal(&error))?;
        let items = reply.as_list().map_or(&[][..], |list| &list.items);
        let now = self.now + self.ahead(by);
        self.checkers[by].listed(&listing.labels, items, now);
        Ok(items.iter().map(|object| frame(object)).collect())
    }

    /// From now on nobody acts before a request: the end is tried as it is.
    pub(crate) fn leave_alone(&mut self) {
        self.interruption = None;
    }

    /// Counts a request, and lets somebody act before it if it is time.
    fn interrupt(&mut self) {
        self.requests += 1;
        if self.interruption.as_ref().is_none_or(|one| one.request != self.requests) {
            return;
        }
        let Some(Interruption { action, .. }) = self.interruption.take() else { return };
        self.interrupted_update = Some(self.rollout().is_some_and(|rollout| is_updating(rollout)));
        if let Err(error) = self.perform(&action) {
            self.trace.note(self.now, Record::Alarm(format!("the interruption failed: {error}")));
        }
    }

    fn fault(&mut self) -> Option<Fault> {
        let planned = self.planned.iter().find(|one| one.write == self.attempts);
        if let Some(planned) = planned {
            return Some(planned.fault);
        }
        if self.drawn < MOST_DRAWN && self.chance.percent(self.write_percent) {
            self.drawn += 1;
            return self.chance.pick(&Fault::ALL);
        }
        None
    }

    /// Fails a read where chance says so.
    fn lets_read(&mut self, what: &str) -> Result<(), WriteError> {
        if self.drawn >= MOST_DRAWN || !self.chance.percent(self.read_percent) {
            return Ok(());
        }
        self.drawn += 1;
        let fault = self.chance.pick(&Fault::OF_READS);
        let Some((fault, class)) = fault.and_then(|fault| Some((fault, fault.class()?))) else {
            return Ok(());
        };
        self.trace.note(self.now, Record::Unread(fault));
        let message = format!("read {what}: an injected {fault:?}");
        Err(WriteError { class, message, retry_after_secs: None })
    }

    /// When a request that goes out now arrives.
    fn arrival(&mut self) -> Timestamp {
        if !self.chance.percent(self.slow_percent) {
            return self.now;
        }
        // Below the time after which the controller's client gives a request up.
        let milliseconds = self.chance.below(SLOWEST_MILLISECONDS);
        self.trace.note(self.now, Record::Slow);
        self.now + SignedDuration::from_millis(milliseconds.cast_signed())
    }

    /// What somebody outside answers.
    fn hear(&mut self, inquiry: &Inquiry, sent: &ask::Sent) -> Heard {
        let Bench { outside, cluster, now, .. } = self;
        match outside {
            Some(outside) => outside.hear(cluster, inquiry, sent, *now),
            None => Heard::Never,
        }
    }

    /// Random bytes of this run.
    pub(crate) fn draw(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.chance.below(256).to_le_bytes()[0]).collect()
    }

    fn kind(&self, kind: &Kind) -> KindId {
        if *kind == kinds::ROLLOUT {
            self.place.kind
        } else if *kind == kinds::REPLICA_SET {
            KindId::REPLICA_SET
        } else {
            let found = self.cluster.kinds().by_plural(&kind.group, &kind.version, &kind.plural);
            found.expect("the controller writes only kinds that every cluster of a scenario has")
        }
    }
}

/// Who reads: one controller, and whether the checks go by what it reads.
#[derive(Clone, Copy)]
pub(crate) struct Reader {
    pub(crate) replica: usize,
    pub(crate) is_judged: bool,
}

/// The door: the controller's cluster in a simulated run.
#[derive(Clone)]
pub(crate) struct SimDoor {
    pub(crate) bench: Rc<RefCell<Bench>>,
    /// Nothing comes through before this moment.
    pub(crate) opens: Rc<Cell<Timestamp>>,
    /// Who comes through it.
    pub(crate) reader: Reader,
}

impl SimDoor {
    /// One turn on the way, and the time the way takes.
    pub(crate) async fn pass(&self) {
        let arrival = self.bench.borrow_mut().arrival();
        self.opens.set(arrival);
        Turn::default().await;
    }
}

impl SimDoor {
    /// No answer comes.
    async fn never(&self) -> Result<Reply, WriteError> {
        self.opens.set(Timestamp::MAX);
        std::future::pending().await
    }

    /// The answer to a question. Beyond the cluster there is nobody but chance.
    pub(crate) async fn answer(&self, inquiry: &Inquiry) -> Result<Reply, WriteError> {
        let question = &inquiry.question;
        match question {
            Question::Read(_)
            | Question::Pods(_)
            | Question::List(_)
            | Question::Weights(_)
            | Question::Targets(_) => ask::read(self, question).await,
            Question::Probe(of) => {
                self.pass().await;
                let said = self.bench.borrow().probe(of);
                self.pass().await;
                Ok(Reply::Probe(said))
            }
            Question::Random(count) => {
                Ok(Reply::Random(self.bench.borrow_mut().draw(*count).into()))
            }
            Question::Plugin(_) | Question::MetricPlugin(_) | Question::RouterPlugin(_) => {
                self.pass().await;
                let answer = self.bench.borrow_mut().call_plugin(question, self.reader.replica);
                let Some(answer) = answer else { return std::future::pending().await };
                self.pass().await;
                Ok(answer)
            }
            Question::Http(request) => {
                if self.bench.borrow().outside.is_none() {
                    return self.never().await;
                }
                let sent = match ask::sent(self, &inquiry.key.namespace, None, request).await? {
                    Ok(sent) => sent,
                    Err(error) => return Ok(Reply::Http(Err(error))),
                };
                self.pass().await;
                let heard = self.bench.borrow_mut().hear(inquiry, &sent);
                let outcome = match heard {
                    Heard::Answer(outcome) => sent.cleaned(outcome),
                    Heard::Never => return self.never().await,
                    Heard::Silence => {
                        let gives_up = self.bench.borrow().now + request.timeout;
                        self.opens.set(gives_up);
                        Turn::default().await;
                        return Ok(Reply::Http(Err(HttpError::Timeout(request.timeout))));
                    }
                };
                self.pass().await;
                Ok(Reply::Http(outcome))
            }
        }
    }
}

impl Cluster for SimDoor {
    async fn write(&self, write: Write) -> Result<Written, WriteError> {
        self.pass().await;
        let by = self.reader.replica;
        let frozen = self.bench.borrow_mut().strike_leader(by);
        if let Some(until) = frozen {
            self.opens.set(until);
            Turn::default().await;
        }
        let answer = self.bench.borrow_mut().write(write, by);
        let Some(answer) = answer else { return std::future::pending().await };
        self.pass().await;
        answer
    }

    async fn read(&self, target: &ObjectRef) -> Result<Option<Frame>, WriteError> {
        self.pass().await;
        let found = self.bench.borrow_mut().read(target, self.reader);
        self.pass().await;
        found
    }

    async fn read_whole(&self, target: &ObjectRef) -> Result<Option<Value>, WriteError> {
        self.pass().await;
        let found = self.bench.borrow_mut().read_whole(target, self.reader);
        self.pass().await;
        found
    }

    async fn permit(&self) -> Result<(), WriteError> {
        Ok(())
    }

    async fn list(&self, listing: &Listing) -> Result<Vec<Frame>, WriteError> {
        self.pass().await;
        let found = self.bench.borrow_mut().list(listing, self.reader.replica);
        self.pass().await;
        found
    }

    async fn post(&self, event: &PostedEvent) -> Result<(), WriteError> {
        Turn::default().await;
        let mut bench = self.bench.borrow_mut();
        let now = bench.now;
        bench.trace.note(now, Record::Told(event.reason.clone(), event.message.clone()));
        Ok(())
    }
}

/// Gives the turn to somebody else, once.
#[derive(Default)]
struct Turn {
    is_given: bool,
}

impl Future for Turn {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.is_given {
            return Poll::Ready(());
        }
        self.is_given = true;
        Poll::Pending
    }
}

/// Is an update under way that a command decides about? One that was aborted a moment ago, or
/// wanted in full after an abort, which the controller has yet to note, is over: nobody could tell
/// which of two commands came later.
fn is_updating(rollout: &Object) -> bool {
    let status = &rollout.status;
    let has_stable = status["stableRS"].as_str().is_some_and(|hash| !hash.is_empty());
    let is_fresh = status["abortedAt"].is_null() || status["promoteFull"] == true;
    let is_just_aborted = status["abort"] == true && is_fresh;
    let has_update = has_stable && status["stableRS"] != status["currentPodHash"];
    sight(rollout).is_observed() && has_update && !is_just_aborted
}

fn verb_name(write: &Write) -> &'static str {
    match (&write.op, write.part) {
        (Op::Create(_), _) => "creates",
        (Op::Merge(_), ResourcePart::Main) => "patches",
        (Op::Merge(_), ResourcePart::Status) => "patches the status of",
        (Op::Delete, _) => "deletes",
        (Op::Evict, _) => "evicts",
    }
}

/// A refusal of the API server, as the controller reads the same answer of a real one.
fn refusal(error: &ApiError) -> WriteError {
    classify(error.code, &error.to_json().to_string())
}
