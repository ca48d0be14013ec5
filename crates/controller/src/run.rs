//! The production loop of all engines of a program: one select over a closed list of events.

mod beside;
mod report;
#[cfg(test)]
mod tests;
mod watches;

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{FutureExt, LocalBoxFuture};
use futures::stream::{FuturesUnordered, StreamExt};
use gradus_engine::ask::{Effect, Reply};
use gradus_engine::decision::Event;
use gradus_engine::frame::Frame;
use jiff::Timestamp;
use kube::Client;
use tokio::sync::mpsc;

use crate::act::{Acted, act};
use crate::ask::{BalancerNames, Executor};
use crate::clock::Clock;
use crate::cluster::{Cluster, Listing, WriteError};
use crate::connect::ServedKinds;
use crate::engines::Engines;
use crate::health::{Health, WorldRequest};
use crate::lease::{Election, Leadership};
use crate::reconciler::{Reconciler, Settled};
use crate::shell::{Inquiry, InterlockMode, Outgoing, Seen, SettlingRead, Work};
use crate::telemetry::Metrics;
use crate::watch::{Failed, Outage};
use crate::watched::{Key, Measured, Scope, Selection};
use beside::Beside;
use report::Voice;
use watches::{Message, Watches};

/// How long the end of a program is held up where nobody says otherwise: a pod is killed after 30 s.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);

/// How often held objects are looked at, for the metric and the one log line.
const HELD_INTERVAL: Duration = Duration::from_secs(15);

/// How often the clock is compared with the machine's.
const CLOCK_INTERVAL: Duration = Duration::from_secs(5);

/// How a controller is to run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What it manages of the cluster.
    pub scope: Scope,
    /// Decide and say, never write.
    pub dry_run: bool,
    /// What all watches know together of the server's troubles: each is said once.
    pub outage: Outage,
    /// What happens to decisions that would break an invariant.
    pub interlock: InterlockMode,
    /// Where several controllers elect one that acts; `None` for one that acts alone.
    pub election: Option<Election>,
    /// How things of load balancers are called, where these are asked.
    pub balancers: Option<BalancerNames>,
    /// Where kinds of routers are, if not where they usually are.
    pub places: ServedKinds,
    /// How long writes and Events under way may hold up the end of the program.
    pub shutdown_grace: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            scope: Scope::default(),
            dry_run: false,
            outage: Outage::default(),
            interlock: InterlockMode::default(),
            election: None,
            balancers: None,
            places: ServedKinds::default(),
            shutdown_grace: SHUTDOWN_GRACE,
        }
    }
}

/// Everything the loop needs of the outside.
pub struct Outside<C> {
    /// For watches.
    pub client: Client,
    /// Answers questions; its cluster is the one door for writes and reads.
    pub executor: Executor<C>,
    /// The only clock.
    pub clock: Clock,
    /// Figures.
    pub metrics: Metrics,
    /// Says when the caches are synced.
    pub health: Health,
    /// Questions of the health port.
    pub worlds: mpsc::Receiver<WorldRequest>,
    /// Where Events go.
    pub events: mpsc::UnboundedSender<Outgoing>,
    /// Does this process lead? A standby watches and decides nothing.
    pub leadership: Leadership,
}

/// Everything that can wake the loop. The number is the place of the engine it is for.
enum Happening {
    Watched(Message),
    Acted(usize, Box<Acted>),
    Settled(usize, SettlingRead, Settled),
    Answered(usize, Box<Inquiry>, Result<Reply, WriteError>),
    Surveyed(usize, Listing, Result<Vec<Frame>, WriteError>),
    /// Nothing could be written when it was its turn.
    NotAsked(usize, Box<Inquiry>),
    Panicked(usize, Key),
    Asked(WorldRequest),
    Due,
    LookAtHeld,
    LookAtClock,
    Stop,
}

/// What the loop waits for of its own.
#[derive(Default)]
struct UnderWay<'c> {
    acting: FuturesUnordered<LocalBoxFuture<'c, Happening>>,
    asking: FuturesUnordered<LocalBoxFuture<'c, Happening>>,
}

/// Runs all engines of a program until `stop` is ready. Writes under way are finished first.
pub async fn run<C: Cluster>(
    engines: &Engines,
    outside: Outside<C>,
    settings: Settings,
    stop: impl Future<Output = ()>,
) {
    let Outside { client, executor, clock, metrics, health, mut worlds, events, mut leadership } =
        outside;
    let mut watches = Watches::new(client, settings.outage.clone(), metrics.clone());
    let voice = Voice { events, metrics: metrics.clone(), dry_run: settings.dry_run };
    let mut looping = Loop::new(engines, settings, clock, metrics, health);
    looping.say_unread();
    for (at, engine) in looping.engines.iter().enumerate() {
        engine.reconciler.selections().into_iter().for_each(|wanted| watches.want(wanted, at));
    }
    let mut under_way = UnderWay::default();
    let mut stop = std::pin::pin!(stop);
    let mut held = tokio::time::interval(HELD_INTERVAL);
    let mut walls = tokio::time::interval(CLOCK_INTERVAL);
    loop {
        looping.follow(watches.may_lead(leadership.holds()));
        looping.start_work(&executor, &voice, &mut under_way);
        looping.meet_demands(&mut watches);
        looping.post_events(&voice);
        looping.say_alarms();
        looping.say_differences();
        let due = looping.next_due().unwrap_or(Timestamp::MAX);
        let happening = tokio::select! {
            biased;
            () = &mut stop => Happening::Stop,
            Some(message) = watches.next() => Happening::Watched(message),
            Some(done) = under_way.acting.next() => done,
            Some(answered) = under_way.asking.next() => answered,
            Some(request) = worlds.recv() => Happening::Asked(request),
            () = leadership.changed() => Happening::Due,
            () = tokio::time::sleep_until(looping.clock.instant(due)) => Happening::Due,
            _ = held.tick() => Happening::LookAtHeld,
            _ = walls.tick() => Happening::LookAtClock,
        };
        if matches!(happening, Happening::Stop) {
            break;
        }
        looping.take_in(happening, |watch| watches.engines(watch));
    }
    // Nobody decides any more, so nobody waits for what is read.
    while let Some(done) = under_way.acting.next().await {
        looping.take_in(done, |_| Vec::new());
    }
}

/// All engines of a program, and what they share.
struct Loop {
    engines: Vec<Engaged>,
    /// Does this process act?
    leads: bool,
    settings: Settings,
    clock: Clock,
    metrics: Metrics,
    health: Health,
    /// What a dry run would have done, until somebody else does it.
    beside: Beside,
}

/// One engine at work.
struct Engaged {
    reconciler: Box<dyn Reconciler>,
    /// Keys that the metrics show as held.
    shown_held: BTreeSet<Key>,
}

impl Loop {
    fn new(
        engines: &Engines,
        settings: Settings,
        clock: Clock,
        metrics: Metrics,
        health: Health,
    ) -> Self {
        let reconcilers = engines.start(&settings.scope, settings.interlock).into_iter();
        let engaged = |mut reconciler: Box<dyn Reconciler>| {
            reconciler.show_queue(&metrics);
            Engaged { reconciler, shown_held: BTreeSet::new() }
        };
        let engines = reconcilers.map(engaged).collect();
        let beside = Beside::default();
        Loop { engines, leads: false, settings, clock, metrics, health, beside }
    }

    /// Takes in whether this process leads. Who begins to lead decides everything, on the caches
    /// that it kept warm, and shows every object in the metrics; who no longer does forgets what it
    /// recalls of its decisions, for another one goes on from the stored state and shows it. An answer
    /// may still come in after that: it is forgotten before the next lead.
    fn follow(&mut self, leads: bool) {
        if self.leads == leads {
            return;
        }
        self.leads = leads;
        let now = self.clock.now();
        self.metrics.leads(leads);
        for engine in &mut self.engines {
            engine.reconciler.stand_by();
            if leads {
                engine.reconciler.wake_all(now);
                let keys = engine.reconciler.own_keys();
                keys.iter().for_each(|key| engine.reconciler.publish(key, &self.metrics, now));
            } else {
                engine.shown_held.clear();
            }
        }
        if !leads {
            self.metrics.hide_objects(now);
        }
    }

    /// Everything due now is decided and put under way.
    fn start_work<'c, C: Cluster>(
        &mut self,
        executor: &'c Executor<C>,
        voice: &'c Voice,
        under_way: &mut UnderWay<'c>,
    ) {
        if !self.leads {
            return;
        }
        let now = self.clock.now();
        for at in 0..self.engines.len() {
            while let Some(work) = self.engines[at].reconciler.next_work(now) {
                self.start(at, work, (executor, voice), under_way, now);
            }
        }
    }

    /// Puts one piece of work of an engine under way.
    fn start<'c, C: Cluster>(
        &mut self,
        at: usize,
        work: Work,
        (executor, voice): (&'c Executor<C>, &'c Voice),
        under_way: &mut UnderWay<'c>,
        now: Timestamp,
    ) {
        let reconciler = &mut self.engines[at].reconciler;
        match work {
            Work::Act(job) if self.settings.dry_run => {
                report::say_job(&job);
                reconciler.decline(&job.key, now);
                self.beside.decided(at, &job, now);
            }
            Work::Act(job) => {
                let (key, clock, meter) = (job.key.clone(), self.clock.clone(), reconciler.meter());
                let head = (job.head.uid, job.head.version);
                report::say_decision(&job);
                let standing = job.standing.clone();
                let tell = move |event: Event| {
                    // Of another object than the one decided about no version is known.
                    let (uid, version) = event.uid.map_or(head, |uid| (uid, 0));
                    let outgoing = Outgoing { event, uid, version, at: clock.now() };
                    voice.tell(outgoing, &standing, meter);
                };
                let acting = AssertUnwindSafe(act(executor.cluster(), job, tell)).catch_unwind();
                under_way.acting.push(Box::pin(async move {
                    match acting.await {
                        Ok(acted) => Happening::Acted(at, Box::new(acted)),
                        Err(_) => Happening::Panicked(at, key),
                    }
                }));
            }
            // It stays under way for ever, and is never asked.
            Work::Ask(inquiry) if self.settings.dry_run && inquiry.effect == Effect::Acts => {
                report::say_inquiry(&inquiry);
            }
            Work::Ask(inquiry) => under_way.asking.push(Box::pin(async move {
                match executor.answer(&inquiry).await {
                    Some(reply) => Happening::Answered(at, inquiry, reply),
                    None => Happening::NotAsked(at, inquiry),
                }
            })),
            Work::Settle(read) => under_way.asking.push(Box::pin(async move {
                let reply = executor.settle(&read.object).await;
                Happening::Settled(at, read, reply)
            })),
            Work::Survey(listing) => under_way.asking.push(Box::pin(async move {
                let reply = executor.survey(&listing).await;
                Happening::Surveyed(at, listing, reply)
            })),
        }
    }

    /// Starts the watches that an index has wanted since.
    fn meet_demands(&mut self, watches: &mut Watches) {
        for (at, engine) in self.engines.iter_mut().enumerate() {
            let wanted = engine.reconciler.take_demands();
            wanted.into_iter().for_each(|wanted| watches.want(wanted, at));
        }
    }

    fn post_events(&mut self, voice: &Voice) {
        for engine in &mut self.engines {
            let meter = engine.reconciler.meter();
            let events = engine.reconciler.take_events().into_iter();
            // What a standby sees happen, the leader reports.
            let told = events.filter(|_| self.leads);
            told.for_each(|(outgoing, standing)| voice.tell(outgoing, &standing, meter));
        }
    }

    fn next_due(&self) -> Option<Timestamp> {
        if !self.leads {
            return None;
        }
        let engines = self.engines.iter().filter_map(|engine| engine.reconciler.next_due());
        engines.chain(self.beside.next_due()).min()
    }

    fn take_in(&mut self, happening: Happening, engines: impl Fn(&Arc<Selection>) -> Vec<usize>) {
        let now = self.clock.now();
        match happening {
            Happening::Watched((watch, shown)) => {
                let wanting = engines(&watch);
                self.observe(&wanting, &watch, &shown, now);
            }
            Happening::Acted(at, acted) => {
                let Loop { engines, metrics, settings, .. } = self;
                let reconciler = &mut engines[at].reconciler;
                let (key, took) = (&acted.job.key, now.duration_since(acted.job.decided_at));
                let meter = reconciler.meter();
                meter(metrics, key, Measured::Reconciled(took.unsigned_abs()));
                if !acted.failures.is_empty() {
                    meter(metrics, key, Measured::Failed);
                }
                if !acted.written.is_empty() {
                    settings.outage.takes_writes();
                }
                reconciler.learn(*acted, now);
            }
            Happening::Settled(at, read, reply) => {
                let reconciler = &mut self.engines[at].reconciler;
                let own = (read.object.kind == reconciler.kind()).then(|| read.key.clone());
                reconciler.learn_settling(read, reply, now);
                let own = own.filter(|_| self.leads);
                own.iter().for_each(|key| reconciler.publish(key, &self.metrics, now));
            }
            Happening::Answered(at, inquiry, reply) => {
                self.engines[at].reconciler.learn_answer(*inquiry, reply, now);
            }
            Happening::Surveyed(at, listing, reply) => {
                self.engines[at].reconciler.learn_survey(&listing, reply, now);
            }
            Happening::NotAsked(at, inquiry) => {
                self.engines[at].reconciler.take_back(*inquiry, now);
            }
            Happening::Panicked(at, key) => {
                tracing::error!(%key, "a pass panicked while writing; it is tried again");
                self.engines[at].reconciler.abandon(&key, now);
            }
            Happening::Asked(WorldRequest { kind, key: (namespace, name), reply }) => {
                let key = Key { namespace: namespace.into(), name: name.into() };
                let is_meant = |engine: &&Engaged| engine.reconciler.kind().is_called(&kind);
                let engine = self.engines.iter().find(is_meant);
                let seen = engine.and_then(|engine| engine.reconciler.inspect(&key, now));
                // Nobody waits any more if this fails; then nobody misses it.
                drop(reply.send(seen));
            }
            Happening::LookAtHeld => {
                self.look_at_held(now);
                self.engines.iter().for_each(|engine| engine.reconciler.show_in_flight(now));
                self.metrics.sweep(now);
            }
            Happening::LookAtClock => self.clock.follow_wall(),
            Happening::Due | Happening::Stop => {}
        }
    }

    /// Shows one message of a watch to the engines that want it. A failure was logged by the watch,
    /// which goes on trying.
    fn observe(
        &mut self,
        wanting: &[usize],
        watch: &Selection,
        shown: &Result<Seen, Failed>,
        now: Timestamp,
    ) {
        if let Ok(seen) = shown {
            self.metrics.watched(watch, seen, now);
            self.beside.seen(watch, seen);
        }
        for at in wanting {
            let reconciler = &mut self.engines[*at].reconciler;
            match shown {
                Ok(seen) => {
                    let mut concerned = reconciler.observe(watch, seen, now);
                    // Of each object the leader alone tells.
                    concerned.retain(|_| self.leads);
                    concerned.iter().for_each(|key| reconciler.publish(key, &self.metrics, now));
                }
                Err(failed) => reconciler.observe_failure(watch, failed, now),
            }
        }
        // It may have been the last that was waited for.
        if matches!(shown, Ok(Seen::InitDone) | Err(_)) {
            let is_synced = |engine: &Engaged| engine.reconciler.is_synced();
            self.health.set_ready(self.engines.iter().all(is_synced));
        }
    }
}
