//! What runs when? The production loop: one select over a closed list of events.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::future::{FutureExt, LocalBoxFuture, join3};
use futures::stream::{BoxStream, FuturesUnordered, SelectAll, StreamExt};
use gradus_engine::ask::Class;
use gradus_engine::decision::{Event, Frees, Kind};
use gradus_engine::frame::Frame;
use gradus_engine::kinds;
use gradus_engine::release::{ManagedIngress, Releases};
use gradus_engine::world::ServiceView;
use jiff::Timestamp;
use kube::Client;
use tokio::sync::mpsc;

use crate::act::{Acted, Job, act};
use crate::clock::Clock;
use crate::cluster::{Cluster, WriteError};
use crate::health::{Health, WorldRequest};
use crate::random;
use crate::shell::{Alarm, InterlockMode, Outgoing, Read, Seen, Shell, Target, Work};
use crate::telemetry::Metrics;
use crate::watch::{Failed, Outage, Selection, counted, watch};
use crate::watched::{Key, Watch, Watched};

#[cfg(test)]
mod tests;

/// How often held objects are looked at, for the metric and the one log line.
const HELD_INTERVAL: Duration = Duration::from_secs(15);

/// How a controller is to run.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Only this namespace, or all.
    pub namespace: Option<String>,
    /// Only objects of this instance; empty for those of none.
    pub instance_id: String,
    /// Decide and say, never write.
    pub dry_run: bool,
    /// What all watches know together of the server's troubles: each is said once.
    pub outage: Outage,
    /// What happens to decisions that would break an invariant.
    pub interlock: InterlockMode,
}

/// Everything the loop needs of the outside.
pub struct Outside<C> {
    /// For watches.
    pub client: Client,
    /// For writes and reads: the one door.
    pub cluster: C,
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
}

impl<C: Clone> Outside<C> {
    /// The same for a further engine: of readiness and of questions only the first one knows.
    pub fn beside(&self) -> Self {
        let (health, worlds) = Health::new();
        Outside {
            client: self.client.clone(),
            cluster: self.cluster.clone(),
            clock: self.clock,
            metrics: self.metrics.clone(),
            health,
            worlds,
            events: self.events.clone(),
        }
    }
}

/// Runs an engine; beside that of Rollouts, those that let go of the Services and Ingresses they
/// leave.
pub async fn run_all<W: Watched, C: Cluster + Clone>(
    outside: Outside<C>,
    settings: Settings,
    stop: impl Future<Output = ()>,
) {
    if W::KIND != kinds::ROLLOUT {
        return run::<W, C>(outside, settings, stop).await;
    }
    let stop = stop.shared();
    let (beside, also) = (settings.clone(), settings.clone());
    let services = run::<Releases<ServiceView>, C>(outside.beside(), beside, stop.clone());
    let ingresses = run::<Releases<ManagedIngress>, C>(outside.beside(), also, stop.clone());
    join3(run::<W, C>(outside, settings, stop), services, ingresses).await;
}

/// Everything that can wake the loop.
enum Happening<W: Watched> {
    Watched(Kind, Result<Seen, Failed>),
    Acted(Box<Acted<W>>),
    Read(Read, Result<Vec<Frame>, WriteError>),
    Panicked(Key),
    Asked(WorldRequest),
    Due,
    LookAtHeld,
    Stop,
}

/// What the loop waits for of its own.
struct UnderWay<'c, W: Watched> {
    acting: FuturesUnordered<LocalBoxFuture<'c, Happening<W>>>,
    reading: FuturesUnordered<LocalBoxFuture<'c, Happening<W>>>,
}

impl<W: Watched> Default for UnderWay<'_, W> {
    fn default() -> Self {
        UnderWay { acting: FuturesUnordered::new(), reading: FuturesUnordered::new() }
    }
}

/// Runs an engine until `stop` is ready. Writes under way are finished first.
pub async fn run<W: Watched, C: Cluster>(
    outside: Outside<C>,
    settings: Settings,
    stop: impl Future<Output = ()>,
) {
    let Outside { client, cluster, clock, metrics, health, mut worlds, events } = outside;
    let mut watches = Watches::new(client, &settings, &metrics);
    let voice = Voice { events, metrics: metrics.clone(), dry_run: settings.dry_run };
    let mut loop_state = Loop::<W>::new(settings, clock, metrics, health);
    for wanted in W::watches(&loop_state.settings.instance_id) {
        if loop_state.serves(&wanted.kind) {
            watches.start::<W>(wanted);
        }
    }
    let mut under_way = UnderWay::default();
    let mut stop = std::pin::pin!(stop);
    let mut held = tokio::time::interval(HELD_INTERVAL);
    loop {
        loop_state.start_work(&cluster, &voice, &mut under_way);
        for kind in loop_state.shell.take_demands() {
            watches.start::<W>(Watch { kind, labels: None });
        }
        loop_state.shell.take_events().into_iter().for_each(|outgoing| voice.tell(outgoing));
        loop_state.say_alarms();
        let due = loop_state.shell.next_due().unwrap_or(Timestamp::MAX);
        let happening = tokio::select! {
            biased;
            () = &mut stop => Happening::Stop,
            Some((kind, seen)) = watches.streams.next() => Happening::Watched(kind, seen),
            Some(done) = under_way.acting.next() => done,
            Some(read) = under_way.reading.next() => read,
            Some(request) = worlds.recv() => Happening::Asked(request),
            () = tokio::time::sleep_until(loop_state.clock.instant(due)) => Happening::Due,
            _ = held.tick() => Happening::LookAtHeld,
        };
        if matches!(happening, Happening::Stop) {
            break;
        }
        loop_state.take_in(happening);
    }
    // Nobody decides any more, so nobody waits for what is read.
    while let Some(done) = under_way.acting.next().await {
        loop_state.take_in(done);
    }
}

/// Hands Events to the poster; who may not write says them instead.
#[derive(Clone)]
struct Voice {
    events: mpsc::UnboundedSender<Outgoing>,
    metrics: Metrics,
    dry_run: bool,
}

impl Voice {
    fn tell(&self, outgoing: Outgoing) {
        let Event { about, kind, reason, message, .. } = &outgoing.event;
        if self.dry_run {
            tracing::info!(%about, "dry run: would event {reason}: {message}");
            return;
        }
        let kind = crate::events::kind_name(*kind);
        self.metrics.event(&about.namespace, &about.name, kind, reason);
        if self.events.send(outgoing).is_err() {
            tracing::error!("the Event poster has ended; Events are lost");
        }
    }
}

/// All watches that run; one more may start at any time.
struct Watches {
    client: Client,
    namespace: Option<String>,
    outage: Outage,
    metrics: Metrics,
    streams: SelectAll<BoxStream<'static, (Kind, Result<Seen, Failed>)>>,
}

impl Watches {
    fn new(client: Client, settings: &Settings, metrics: &Metrics) -> Self {
        let (namespace, outage) = (settings.namespace.clone(), settings.outage.clone());
        Watches { client, namespace, outage, metrics: metrics.clone(), streams: SelectAll::new() }
    }

    fn start<W: Watched>(&mut self, wanted: Watch) {
        let selection = Selection {
            kind: wanted.kind.clone(),
            namespace: self.namespace.clone(),
            label_selector: wanted.labels,
            metadata_alone: W::needs_metadata_alone(&wanted.kind),
        };
        let client = counted(self.client.clone(), &selection, &self.metrics);
        let stream = watch(client, selection, &self.outage);
        self.streams.push(stream.map(move |seen| (wanted.kind.clone(), seen)).boxed());
    }
}

struct Loop<W: Watched> {
    shell: Shell<W>,
    settings: Settings,
    clock: Clock,
    metrics: Metrics,
    health: Health,
    /// Keys that the metrics show as held.
    shown_held: BTreeSet<Key>,
}

impl<W: Watched> Loop<W> {
    fn new(settings: Settings, clock: Clock, metrics: Metrics, health: Health) -> Self {
        let shell = Shell::with_interlock(settings.interlock);
        Loop { shell, settings, clock, metrics, health, shown_held: BTreeSet::new() }
    }

    /// Is a kind watched at all? One without namespaces is empty for a controller of one namespace.
    fn serves(&mut self, kind: &Kind) -> bool {
        let Some(namespace) = &self.settings.namespace else { return true };
        if !W::is_cluster_scoped(kind) {
            return true;
        }
        let plural = &kind.plural;
        tracing::info!("{plural} are not read: only objects of namespace {namespace} are");
        let now = self.clock.now();
        self.observe(kind, Seen::Init, now);
        self.observe(kind, Seen::InitDone, now);
        false
    }

    /// Everything due now is decided and put under way.
    fn start_work<'c, C: Cluster>(
        &mut self,
        cluster: &'c C,
        voice: &'c Voice,
        under_way: &mut UnderWay<'c, W>,
    ) {
        let now = self.clock.now();
        while let Some(work) = self.shell.next_work(now) {
            match work {
                Work::Act(job) if self.settings.dry_run => {
                    say_job(&job);
                    self.shell.decline(&job.key, now);
                }
                Work::Act(job) => {
                    let (key, clock) = (job.key.clone(), self.clock);
                    let (uid, version) = (job.head.uid, job.head.version);
                    let tell = move |event| {
                        voice.tell(Outgoing { event, uid, version, at: clock.now() });
                    };
                    let acting = AssertUnwindSafe(act(cluster, job, tell)).catch_unwind();
                    under_way.acting.push(Box::pin(async move {
                        match acting.await {
                            Ok(acted) => Happening::Acted(Box::new(acted)),
                            Err(_) => Happening::Panicked(key),
                        }
                    }));
                }
                Work::Draw(draw) => {
                    let bytes = random::bytes(draw.count);
                    self.shell.learn_draw(draw, bytes, now);
                }
                Work::Read(read) => under_way.reading.push(Box::pin(async move {
                    let reply = read.carry_out(cluster).await;
                    Happening::Read(read, reply)
                })),
            }
        }
    }

    fn take_in(&mut self, happening: Happening<W>) {
        let now = self.clock.now();
        match happening {
            Happening::Watched(kind, Ok(seen)) => self.observe(&kind, seen, now),
            // The watch has logged it, and goes on trying.
            Happening::Watched(kind, Err(failed)) => {
                self.shell.observe_failure(&kind, &failed, now);
                // It may have been the last that was waited for.
                self.health.set_ready(self.shell.is_synced());
            }
            Happening::Acted(acted) => {
                let (key, took) = (acted.job.key.clone(), now.duration_since(acted.job.decided_at));
                if W::IS_MEASURED {
                    self.metrics.reconciled(&key.namespace, &key.name, took.unsigned_abs());
                }
                if !acted.written.is_empty() {
                    self.settings.outage.takes_writes();
                }
                if W::IS_MEASURED && !acted.failures.is_empty() {
                    self.metrics.reconcile_failed(&key.namespace, &key.name);
                }
                self.shell.learn(*acted, now);
            }
            Happening::Read(read, reply) => {
                let is_own =
                    matches!(&read.target, Target::Object(object) if object.kind == W::KIND);
                let own = is_own.then(|| read.key.clone());
                self.shell.learn_read(read, reply, now);
                self.publish(own, now);
            }
            Happening::Panicked(key) => {
                tracing::error!(%key, "a pass panicked while writing; it is tried again");
                self.shell.abandon(&key, now);
            }
            Happening::Asked(WorldRequest { key: (namespace, name), reply }) => {
                let key = Key { namespace: namespace.into(), name: name.into() };
                // Nobody waits any more if this fails; then nobody misses it.
                drop(reply.send(self.shell.inspect(&key, now)));
            }
            Happening::LookAtHeld => self.look_at_held(now),
            Happening::Due | Happening::Stop => {}
        }
    }

    fn observe(&mut self, kind: &Kind, seen: Seen, now: Timestamp) {
        let is_done = matches!(seen, Seen::InitDone);
        let concerned = self.shell.observe(kind, seen, now);
        self.publish(concerned, now);
        if is_done {
            self.health.set_ready(self.shell.is_synced());
        }
    }

    /// Shows in the metrics what has become of these objects.
    fn publish(&self, keys: impl IntoIterator<Item = Key>, now: Timestamp) {
        for key in keys {
            W::publish(self.shell.index(), &key, &self.metrics, now);
        }
    }

    fn look_at_held(&mut self, now: Timestamp) {
        let all_held = self.shell.held(now);
        if W::IS_MEASURED {
            let keys = all_held.iter().map(|(key, _)| key.clone()).collect();
            let shown = std::mem::replace(&mut self.shown_held, keys);
            for freed in shown.difference(&self.shown_held) {
                self.metrics.held(&freed.namespace, &freed.name, None);
            }
        }
        for (key, held) in all_held {
            let figures = Some((held.guard.as_str(), held.seconds as f64));
            if W::IS_MEASURED {
                self.metrics.held(&key.namespace, &key.name, figures);
            }
            if held.is_news {
                let why = gradus_engine::explain::sentence(&held.why);
                let frees = match &held.frees {
                    Frees::Command(command) => {
                        format!("; to go on: {}", command_line(command, &key))
                    }
                    _ => String::new(),
                };
                tracing::warn!(
                    namespace = %key.namespace, name = %key.name, guard = held.guard,
                    seconds = held.seconds, "held for {} min: {why}{frees}", held.seconds / 60,
                );
            }
        }
    }

    fn say_alarms(&mut self) {
        for alarm in self.shell.take_alarms() {
            match alarm {
                Alarm::Panicked { key, doing, message } => {
                    tracing::error!(%key, "{doing} panicked: {message}; the others go on");
                }
                Alarm::Interlock { key, invariant, message, mode } => {
                    let done = match mode {
                        InterlockMode::Enforce => "is held",
                        InterlockMode::Warn => "is done all the same (--interlock=warn)",
                    };
                    tracing::error!(%key, "what would break invariant {} {done}: {message}", invariant.id());
                }
                Alarm::Refused { key, change, class, message, times } => {
                    // The first refusals are ordinary; a refusal that stays is news. Of a server
                    // that is away, one tells for all.
                    let is_of_server = matches!(class, Class::Unreachable | Class::Unknown);
                    let is_lasting = times.is_power_of_two() && times > 1;
                    if is_lasting && (!is_of_server || self.settings.outage.refuses_writes()) {
                        tracing::warn!(%key, %change, ?class, times, "refused: {message}");
                    } else {
                        tracing::debug!(%key, %change, ?class, times, "refused: {message}");
                    }
                }
                Alarm::Pruned { key, fields } => {
                    let fields = fields.join(", ");
                    tracing::warn!(%key, "the CRD on this server is older and drops status fields: {fields}");
                }
            }
        }
    }
}

/// The command that frees a held object, ready to be pasted.
fn command_line(command: &str, key: &Key) -> String {
    format!("kubectl argo rollouts {command} {} -n {}", key.name, key.namespace)
}

/// What would be done, in the order in which it would be.
fn say_job<W: Watched>(job: &Job<W>) {
    let writes = job.changes.iter().map(|change| format!("write {}", change.id.0));
    let status = job.status.iter().map(|status| format!("status {}", status.patch));
    let events =
        job.events.iter().map(|event| format!("event {}: {}", event.reason, event.message));
    for one in writes.chain(status).chain(events) {
        tracing::info!(key = %job.key, "dry run: would {one}");
    }
}
