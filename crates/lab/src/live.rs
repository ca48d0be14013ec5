//! Does the production loop tell the same scenarios? It runs here on tokio's time, with a real
//! Kubernetes client, against the embedded cluster's HTTP service in the same process.

#[cfg(test)]
mod tests;
mod witness;

use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gradus_controller::ask::{Executor, LocalAnswer, Within};
use gradus_controller::clock::{Clock, Stopwatch};
use gradus_controller::events::post_events;
use gradus_controller::health::Health;
use gradus_controller::kube_cluster::KubeCluster;
use gradus_controller::lease::Leadership;
use gradus_controller::run::{Outside, Settings, run};
use gradus_controller::telemetry::Metrics;
use gradus_engine::ask::Question;
use gradus_simkube::kinds::KindId;
use gradus_simkube::object::Object;
use gradus_simkube::server::Server;
use gradus_simkube::service::{HookAction, RequestInfo};
use gradus_simkube::{ApiError, Place};
use http::HeaderValue;
use http::header::USER_AGENT;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use tokio::sync::{Notify, mpsc};
use tokio::task::{AbortHandle, LocalSet, spawn_local};
use tower::util::MapRequest;

use crate::checks::{CONTROLLER, Violation};
use crate::deeds::{self, NAMESPACE, differences, sight};
use crate::ends::Ending;
use crate::faults::{Fault, Planned};
use crate::outside::{Heard, MetricServers};
use crate::person::Action;
use crate::played::PlayedPlugins;
use crate::scenario::{End, Step};
use crate::sight::Sight;
use crate::simulate::Prepared;
use crate::subject::Erased;
use witness::Witness;

/// How often somebody looks, in virtual time.
const MOMENT: Duration = Duration::from_millis(100);
/// What has not come by then is not coming.
const LONGEST: SignedDuration = SignedDuration::from_hours(3);
/// Counts may be written a second late; what is not seen after this time is not coming.
const PATIENCE: SignedDuration = SignedDuration::from_secs(5);

/// How long Events are given before the scenario goes on aloud.
const READING: Duration = Duration::from_millis(700);

/// Where words go, if they are said.
type Say<'s> = Option<&'s dyn Fn(&str)>;

/// A controller and an embedded cluster that talk HTTP.
pub struct Lab {
    server: Server,
    clock: Clock,
    rollout: Place,
    subject: Erased,
    start: Timestamp,
    requests: Arc<Requests>,
    witness: Rc<Witness>,
    controller: RefCell<Option<AbortHandle>>,
    /// Step plugins, which outlive the controller.
    plugins: Arc<Mutex<PlayedPlugins>>,
    /// Who answers HTTP requests.
    within: Option<Within>,
    outside: Option<Arc<Mutex<MetricServers>>>,
}

/// What the controller has asked of the server, apart from watches.
#[derive(Debug, Default)]
struct Requests {
    reads: AtomicUsize,
    writes: AtomicUsize,
    events: AtomicUsize,
    struck: AtomicUsize,
    /// Faults at certain writes.
    planned: Mutex<Vec<Planned>>,
    /// The controller is to die.
    dies: Notify,
}

/// Requests of the controller so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Reads and lists; watches do not count.
    pub reads: usize,
    /// Writes of anything but Events.
    pub writes: usize,
    /// Events posted.
    pub events: usize,
    /// Writes that have met a fault.
    pub struck: usize,
}

/// Lets `scenario` happen in a lab with this cluster, on a single-threaded runtime. Where its time
/// is paused nothing is waited for; else the scenario takes as long as it says.
pub async fn live<T>(prepared: &Prepared, scenario: impl AsyncFnOnce(&Lab) -> T) -> T {
    let happening = async {
        let lab = Lab::start(prepared);
        scenario(&lab).await
    };
    LocalSet::new().run_until(happening).await
}

impl Lab {
    fn start(prepared: &Prepared) -> Self {
        let clock = Clock::starting_at(prepared.start());
        let shown = clock.clone();
        let server = Server::new(prepared.cluster().clone(), Arc::new(move || shown.now()));
        let planned = Mutex::new(prepared.scenario().faults.clone());
        let requests = Arc::new(Requests { planned, ..Requests::default() });
        let counted = Arc::clone(&requests);
        server.set_hook(move |seen| counted.judge(seen));
        let workers = server.clone();
        drop(spawn_local(async move { workers.run_workers().await }));
        let witness = Rc::new(Witness::new(&server, prepared.rollout(), prepared.subject()));
        let judging = Rc::clone(&witness);
        drop(spawn_local(async move { judging.watch().await }));
        let outside = MetricServers::of(prepared.scenario(), prepared.start());
        let outside = outside.map(|outside| Arc::new(Mutex::new(outside)));
        let within = outside.as_ref().map(|outside| answering(&server, outside));
        let lab = Lab {
            within,
            outside,
            server,
            clock,
            rollout: prepared.rollout().clone(),
            subject: prepared.subject(),
            start: prepared.start(),
            requests,
            witness,
            controller: RefCell::new(None),
            plugins: Arc::new(Mutex::new(PlayedPlugins::new(&prepared.scenario().plugins))),
        };
        lab.start_controller();
        lab
    }

    /// Tells the whole scenario, and returns how it ends. Every write of the controller's is
    /// judged, and so is the end.
    pub async fn tell(&self, prepared: &Prepared) -> Result<Ending, Violation> {
        self.tell_to(prepared, None).await
    }

    /// Tells the whole scenario aloud: what is done, in its own words, and Events as they come.
    pub async fn tell_aloud(
        &self,
        prepared: &Prepared,
        say: impl Fn(&str),
    ) -> Result<Ending, Violation> {
        let mut said = 0;
        let mut telling = pin!(self.tell_to(prepared, Some(&say)));
        loop {
            let ending = tokio::time::timeout(MOMENT, &mut telling).await;
            let (news, last) = self.news(said);
            news.iter().for_each(|line| say(line));
            said = last;
            if let Ok(ending) = ending {
                return ending;
            }
        }
    }

    async fn tell_to(&self, prepared: &Prepared, say: Say<'_>) -> Result<Ending, Violation> {
        let mut telling = pin!(self.tell_all(prepared, say));
        loop {
            tokio::select! {
                ending = &mut telling => return ending,
                () = self.requests.dies.notified() => self.start_controller(),
            }
        }
    }

    async fn tell_all(&self, prepared: &Prepared, say: Say<'_>) -> Result<Ending, Violation> {
        let told = self.tell_steps(prepared, say).await;
        // A write that must not be made may well be why the scenario does not go on.
        self.witness.violation().map_or(told, Err)?;
        self.judged_end().await?;
        Ok(self.witness.ending())
    }

    async fn tell_steps(&self, prepared: &Prepared, say: Say<'_>) -> Result<(), Violation> {
        for (index, step) in prepared.scenario().steps.iter().enumerate() {
            self.step(step, say).await.map_err(|numbers| self.untold(index + 1, numbers))?;
        }
        let count = prepared.scenario().steps.len();
        self.end(&prepared.scenario().end).await.map_err(|numbers| self.untold(count + 1, numbers))
    }

    /// Waits until nothing is wrong with the end: what is left over goes just after the status says
    /// that it is over.
    async fn judged_end(&self) -> Result<(), Violation> {
        let deadline = self.clock.now() + PATIENCE;
        while let Some(found) = self.witness.violation_at_end() {
            if deadline < self.clock.now() {
                return Err(found);
            }
            tokio::time::sleep(MOMENT).await;
        }
        self.witness.violation().map_or(Ok(()), Err)
    }

    /// Waits until the Rollout stands so.
    pub async fn until(&self, stands: impl Fn(&Sight<'_>) -> bool) -> Result<(), String> {
        let deadline = self.clock.now() + LONGEST;
        while !self.sees(&stands) {
            if deadline < self.clock.now() {
                return Err(format!("not seen in three hours; it stands at {}", self.projection()));
            }
            tokio::time::sleep(MOMENT).await;
        }
        Ok(())
    }

    /// Lets something happen to one of the controller's writes, once, beside what the scenario
    /// plans: they are counted from 1.
    pub fn disturb(&self, write: usize, fault: Fault) {
        // Before those of the scenario: of two at one write this one counts, as in `simulate()`.
        self.requests.planned().insert(0, Planned { write, fault });
    }

    /// Does what a person does.
    pub fn act(&self, action: &Action) -> Result<(), String> {
        if *action == Action::RestartController {
            self.start_controller();
        }
        let done =
            self.server.with(|cluster, now| deeds::perform(cluster, &self.rollout, action, now));
        done.map_err(|error| format!("{action:?} is refused: {error}"))
    }

    /// Lets time pass.
    pub async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// How long the scenario has lasted.
    pub fn lasted(&self) -> SignedDuration {
        self.clock.now().duration_since(self.start)
    }

    /// What the controller has asked of the server so far.
    pub fn asked(&self) -> RequestCounts {
        let number = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        let Requests { reads, writes, events, struck, .. } = &*self.requests;
        RequestCounts {
            reads: number(reads),
            writes: number(writes),
            events: number(events),
            struck: number(struck),
        }
    }

    /// HTTP requests to metric servers so far.
    pub fn provider_calls(&self) -> usize {
        self.outside.as_ref().map_or(0, |outside| lock(outside).asked)
    }

    /// The reasons of all Events, in the order in which they were first posted.
    pub fn events(&self) -> Vec<String> {
        self.server.with(|cluster, _| {
            let mut events: Vec<_> = cluster.list(KindId::EVENT, NAMESPACE).collect();
            events.sort_by_key(|event| event.meta.name.clone());
            events.into_iter().map(|event| text(event, "reason")).collect()
        })
    }

    /// What Events say that were posted, or posted again, after this version; and the last version.
    fn news(&self, after: u64) -> (Vec<String>, u64) {
        self.server.with(|cluster, _| {
            let events = cluster.list(KindId::EVENT, NAMESPACE);
            let mut news: Vec<_> = events.filter(|event| after < event.version).collect();
            news.sort_by_key(|event| event.version);
            let last = news.last().map_or(after, |event| event.version);
            let words = |event| format!("  {}: {}", text(event, "reason"), text(event, "message"));
            (news.into_iter().map(|event| words(event)).collect(), last)
        })
    }

    /// Starts a controller; one that runs dies first, as by `kill -9`.
    fn start_controller(&self) {
        if let Some(running) = self.controller.take() {
            running.abort();
        }
        // By its name the server knows who asks, of deletes too, which name no field manager.
        let named = |mut request: http::Request<Body>| {
            request.headers_mut().insert(USER_AGENT, HeaderValue::from_static(CONTROLLER));
            request
        };
        let client = Client::new(MapRequest::new(self.server.service(), named), NAMESPACE);
        let metrics = Metrics::new();
        let engines = self.subject.engines;
        let cluster = KubeCluster::new(client.clone(), metrics.clone(), engines.reporter);
        let (health, worlds) = Health::new();
        let (events, inbox) = mpsc::unbounded_channel();
        let clock = self.clock.clone();
        let posting = post_events(cluster.clone(), clock.clone(), inbox, metrics.clone());
        let leadership = Leadership::alone(Stopwatch::start());
        let executor = match &self.within {
            Some(within) => Executor::within(cluster, Arc::clone(within)),
            // The scenario says what is measured: no provider is asked.
            None => Executor::new(cluster, None, None),
        };
        let (plugins, time) = (Arc::clone(&self.plugins), clock.clone());
        let play = Arc::new(move |question: &Question| {
            let mut plugins = plugins.lock().unwrap_or_else(PoisonError::into_inner);
            plugins.answer(question, time.now())
        });
        let executor = executor.with_played_plugins(play);
        let outside =
            Outside { client, executor, clock, metrics, health, worlds, events, leadership };
        let controller = spawn_local(async move {
            let looping = run(engines, outside, Settings::default(), std::future::pending());
            tokio::join!(looping, posting);
        });
        self.controller.replace(Some(controller.abort_handle()));
    }

    async fn step(&self, step: &Step, say: Say<'_>) -> Result<(), String> {
        if let Some(at) = step.at {
            tokio::time::sleep_until(self.clock.instant(self.start + at)).await;
        }
        if step.gone {
            self.gone().await?;
        }
        if let Some(when) = &step.when {
            self.until(|sight| when.holds(sight)).await?;
        }
        if let Some(expected) = &step.expect {
            self.seen(expected, PATIENCE).await?;
        }
        if let (Some(say), Some(words)) = (say, &step.say) {
            // Events come just after what they tell of, and somebody reads them.
            tokio::time::sleep(READING).await;
            say(words);
        }
        step.r#do.as_ref().map_or(Ok(()), |action| self.act(action))
    }

    /// Waits until the object is gone.
    async fn gone(&self) -> Result<(), String> {
        let deadline = self.clock.now() + LONGEST;
        while self.sees(|_| true) {
            if deadline < self.clock.now() {
                return Err("not gone in three hours".to_owned());
            }
            tokio::time::sleep(MOMENT).await;
        }
        Ok(())
    }

    /// Waits for the end: delays of a strategy may be long.
    async fn end(&self, end: &End) -> Result<(), String> {
        self.seen(&end.expect, LONGEST).await?;
        self.met(end).await
    }

    /// Waits until the objects around are as the end wants them: pods are marked and old
    /// ReplicaSets emptied just after the status says that it is over. It must still say so, or
    /// again: what it said at first may have been of the time before the last deed.
    async fn met(&self, end: &End) -> Result<(), String> {
        let deadline = self.clock.now() + PATIENCE;
        loop {
            let unmet =
                self.server.with(|cluster, _| end.unmet(|named| deeds::find(cluster, named)));
            let status = self.projection();
            let moved = (status != end.expect).then(|| differences(&status, &end.expect));
            match self.witness.ending().unlike(end).or(unmet).or(moved) {
                None => return Ok(()),
                Some(unmet) if deadline < self.clock.now() => return Err(unmet),
                Some(_) => tokio::time::sleep(MOMENT).await,
            }
        }
    }

    /// Waits until the projected status is this.
    async fn seen(&self, expected: &Value, patience: SignedDuration) -> Result<(), String> {
        let deadline = self.clock.now() + patience;
        while self.projection() != *expected {
            if deadline < self.clock.now() {
                return Err(differences(&self.projection(), expected));
            }
            tokio::time::sleep(MOMENT).await;
        }
        Ok(())
    }

    fn sees(&self, stands: impl Fn(&Sight<'_>) -> bool) -> bool {
        let Place { kind, key } = &self.rollout;
        self.server.with(|cluster, _| {
            let rollout = cluster.get(*kind, &key.namespace, &key.name);
            rollout.is_some_and(|rollout| stands(&sight(rollout)))
        })
    }

    fn projection(&self) -> Value {
        self.server.with(|cluster, _| deeds::projection(cluster, &self.rollout))
    }

    fn untold(&self, step: usize, numbers: String) -> Violation {
        Violation {
            invariant: "the scenario",
            write: format!("step {step}"),
            object: self.rollout.key.name.to_string(),
            numbers,
        }
    }
}

/// Answers requests in this process; what serves users is looked at whenever the cluster changes.
fn answering(server: &Server, outside: &Arc<Mutex<MetricServers>>) -> Within {
    let (watched, looking) = (server.clone(), Arc::clone(outside));
    drop(spawn_local(async move {
        let mut versions = watched.versions();
        loop {
            watched.with(|cluster, now| lock(&looking).observe(cluster, now));
            if versions.changed().await.is_err() {
                return;
            }
        }
    }));
    let (server, outside) = (server.clone(), Arc::clone(outside));
    Arc::new(move |inquiry, sent| {
        let heard = server.with(|cluster, now| lock(&outside).hear(cluster, inquiry, sent, now));
        match heard {
            Heard::Answer(outcome) => LocalAnswer::Answer(outcome),
            Heard::Silence | Heard::Never => LocalAnswer::Silence,
        }
    })
}

fn lock(outside: &Mutex<MetricServers>) -> MutexGuard<'_, MetricServers> {
    outside.lock().unwrap_or_else(PoisonError::into_inner)
}

fn text(event: &Object, field: &str) -> String {
    event.rest.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
}

impl Requests {
    /// Counts a request, and says what happens to it.
    fn judge(&self, seen: &RequestInfo<'_>) -> HookAction {
        let is_watch = seen.query.split('&').any(|part| part == "watch=true" || part == "watch=1");
        let is_read = *seen.method == http::Method::GET;
        let is_event = seen.path.contains("/events");
        let count = match (is_read, is_event) {
            (true, _) if is_watch => return HookAction::Pass,
            (true, _) => &self.reads,
            (false, true) => &self.events,
            (false, false) => &self.writes,
        };
        let number = count.fetch_add(1, Ordering::Relaxed) + 1;
        let planned = self.planned().iter().find(|one| one.write == number).copied();
        match planned {
            Some(Planned { fault, .. }) if !is_read && !is_event => self.strike(fault),
            _ => HookAction::Pass,
        }
    }

    fn planned(&self) -> MutexGuard<'_, Vec<Planned>> {
        self.planned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A crash is a broken connection, and the end of the controller before time goes on.
    fn strike(&self, fault: Fault) -> HookAction {
        self.struck.fetch_add(1, Ordering::Relaxed);
        if fault.class().is_none() {
            self.dies.notify_one();
        }
        match fault {
            Fault::CrashBefore | Fault::Unreachable => HookAction::Drop,
            Fault::CrashAfter | Fault::LostAnswer => HookAction::LoseAnswer,
            Fault::Conflict => HookAction::Refuse(ApiError {
                code: 409,
                reason: "Conflict",
                message: "an injected conflict".to_owned(),
                details: None,
            }),
            Fault::ServerError => HookAction::Refuse(ApiError::internal("an injected error")),
            Fault::Throttled => {
                HookAction::Refuse(ApiError::too_many_requests("an injected refusal"))
            }
        }
    }
}
