//! How many requests per second may a group of kinds make, and which of them goes first?

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gradus_engine::decision::{Kind, ObjectRef};
use gradus_engine::frame::Frame;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::cluster::{Cluster, Lane, Listing, PostedEvent, Write, WriteError, Written};

/// So many requests per second in the long run, and so many at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Requests per second; 0 or less sets no limit.
    pub per_second: f64,
    /// Requests that may be made at once after a quiet time.
    pub burst: u32,
}

/// What Events may use, whatever the flags say.
pub const EVENTS: Rate = Rate { per_second: 100.0, burst: 500 };

/// A token bucket, kept as the time at which it would be full again.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    interval: Duration,
    burst: u32,
    full_at: Instant,
}

impl Bucket {
    /// A full bucket.
    pub fn new(rate: Rate, now: Instant) -> Self {
        let interval = if rate.per_second > 0.0 {
            Duration::try_from_secs_f64(1.0 / rate.per_second).unwrap_or(SLOWEST).min(SLOWEST)
        } else {
            Duration::ZERO
        };
        Bucket { interval, burst: rate.burst.max(1), full_at: now }
    }

    /// Takes one token and says when it is there. Who asks first is served first.
    pub fn take(&mut self, now: Instant) -> Instant {
        let at = self.next(now);
        self.full_at = self.full_at.max(now) + self.interval;
        at
    }

    /// When the next token is there.
    fn next(&self, now: Instant) -> Instant {
        self.next_above(0, now)
    }

    /// When a token is there beside so many that stay.
    fn next_above(&self, reserve: u32, now: Instant) -> Instant {
        let tokens = self.interval.saturating_mul(reserve.saturating_add(1));
        let full_at = self.full_at.max(now) + tokens;
        let at_once = self.interval.saturating_mul(self.burst);
        full_at.checked_sub(at_once).map_or(now, |at| at.max(now))
    }
}

/// The longest time between two tokens, so that no tiny rate can overflow.
const SLOWEST: Duration = Duration::from_secs(3_600);

/// Who waits for the tokens of one bucket. Namespaces take turns: each request of a namespace is one
/// round after the one before it.
#[derive(Debug)]
struct Turns {
    bucket: Bucket,
    /// Who goes first, first.
    waiting: BTreeMap<Order, Waiting>,
    /// The last round of each namespace that waits or was served in this round.
    rounds: BTreeMap<Arc<str>, Round>,
    /// The round of whoever was served last: nobody enters an earlier one.
    round: u64,
    entered: u64,
}

/// The lane, then the round, then who came first.
type Order = (Lane, u64, u64);

#[derive(Debug)]
struct Waiting {
    namespace: Arc<str>,
    /// Tells it to look whether it is its turn.
    call: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Round {
    last: u64,
    /// How many requests of this namespace wait.
    waiting: usize,
}

impl Turns {
    fn new(bucket: Bucket) -> Mutex<Self> {
        Mutex::new(Turns {
            bucket,
            waiting: BTreeMap::new(),
            rounds: BTreeMap::new(),
            round: 0,
            entered: 0,
        })
    }

    /// When this request may go; nothing while another one goes first. While none but busy namespaces
    /// wait, some tokens stay for a quiet one that may come: it shall not wait because others have used
    /// all of them up.
    fn next(&self, at: &Order, now: Instant) -> Option<Instant> {
        let (first, _) = self.waiting.first_key_value()?;
        let is_quiet = |round: &Round| round.waiting == 1;
        let is_kept = at.0 != Lane::Urgent && !self.rounds.values().any(is_quiet);
        let reserve = if is_kept { self.bucket.burst / 4 } else { 0 };
        (first == at).then(|| self.bucket.next_above(reserve, now))
    }

    fn take(&mut self, at: &Order, now: Instant) {
        self.bucket.take(now);
        if self.round < at.1 {
            self.round = at.1;
            let round = self.round;
            self.rounds.retain(|_, one| one.waiting > 0 || one.last >= round);
        }
    }

    fn call_first(&self) {
        if let Some((_, first)) = self.waiting.first_key_value() {
            first.call.notify_one();
        }
    }
}

/// A place among those who wait. Leaving it, with a token or without, calls the next one.
struct Place<'t> {
    turns: &'t Mutex<Turns>,
    at: Order,
    call: Arc<Notify>,
}

impl<'t> Place<'t> {
    fn enter(turns: &'t Mutex<Turns>, lane: Lane, namespace: &Arc<str>) -> Self {
        let call = Arc::new(Notify::new());
        let mut entered = lock(turns);
        entered.entered += 1;
        let (number, current) = (entered.entered, entered.round);
        let own = entered.rounds.entry(Arc::clone(namespace));
        let own = own
            .and_modify(|own| own.last = current.max(own.last + 1))
            .or_insert(Round { last: current, waiting: 0 });
        own.waiting += 1;
        let at = (lane, own.last, number);
        let waiting = Waiting { namespace: Arc::clone(namespace), call: Arc::clone(&call) };
        entered.waiting.insert(at, waiting);
        // Whoever is first may have waited because of the reserve.
        entered.call_first();
        Place { turns, at, call }
    }

    /// Takes a token if it is there and nobody goes first; else says when it will be there, or
    /// nothing where somebody does.
    fn take(&self, now: Instant) -> Option<Instant> {
        let mut turns = lock(self.turns);
        let next = turns.next(&self.at, now)?;
        if next <= now {
            turns.take(&self.at, now);
        }
        Some(next)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut turns = lock(self.turns);
        let Some(Waiting { namespace, .. }) = turns.waiting.remove(&self.at) else { return };
        let round = turns.round;
        if let Some(own) = turns.rounds.get_mut(&namespace) {
            own.waiting = own.waiting.saturating_sub(1);
            if own.waiting == 0 && own.last < round {
                turns.rounds.remove(&namespace);
            }
        }
        turns.call_first();
    }
}

fn lock(turns: &Mutex<Turns>) -> MutexGuard<'_, Turns> {
    turns.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A cluster whose users wait for their turn, per group of kinds.
#[derive(Clone, Debug)]
pub struct Limited<C> {
    cluster: C,
    groups: Arc<[Mutex<Turns>; 4]>,
}

impl<C> Limited<C> {
    /// The cluster behind one bucket per group, each of that rate; Events have their own.
    pub fn new(cluster: C, rate: Rate) -> Self {
        let now = Instant::now();
        let rates = [rate, rate, rate, EVENTS];
        let groups = Arc::new(rates.map(|rate| Turns::new(Bucket::new(rate, now))));
        Limited { cluster, groups }
    }

    async fn turn(&self, group: Group, lane: Lane, namespace: &Arc<str>) {
        let place = Place::enter(&self.groups[group as usize], lane, namespace);
        loop {
            let now = Instant::now();
            match place.take(now) {
                Some(at) if at <= now => return,
                // Somebody who goes first may come meanwhile, or somebody who is quiet.
                Some(at) => tokio::select! {
                    () = tokio::time::sleep_until(at) => {}
                    () = place.call.notified() => {}
                },
                None => place.call.notified().await,
            }
        }
    }
}

impl<C: Cluster> Cluster for Limited<C> {
    async fn write(&self, write: Write) -> Result<Written, WriteError> {
        self.turn(group(&write.target.kind), write.lane, &write.target.namespace).await;
        self.cluster.write(write).await
    }

    async fn read(&self, target: &ObjectRef) -> Result<Option<Frame>, WriteError> {
        self.turn(group(&target.kind), Lane::Ordinary, &target.namespace).await;
        self.cluster.read(target).await
    }

    async fn read_whole(&self, target: &ObjectRef) -> Result<Option<Value>, WriteError> {
        self.turn(group(&target.kind), Lane::Ordinary, &target.namespace).await;
        self.cluster.read_whole(target).await
    }

    async fn permit(&self) -> Result<(), WriteError> {
        self.cluster.permit().await
    }

    async fn list(&self, listing: &Listing) -> Result<Vec<Frame>, WriteError> {
        self.turn(group(&listing.kind), Lane::Last, &listing.namespace).await;
        self.cluster.list(listing).await
    }

    async fn post(&self, event: &PostedEvent) -> Result<(), WriteError> {
        self.turn(Group::Events, Lane::Ordinary, &event.about.namespace).await;
        self.cluster.post(event).await
    }
}

/// Kinds that share a bucket.
#[derive(Clone, Copy)]
enum Group {
    Rollouts,
    Core,
    Routers,
    Events,
}

fn group(kind: &Kind) -> Group {
    match &*kind.group {
        "" | "apps" => Group::Core,
        group if group == gradus_api::names::GROUP => Group::Rollouts,
        _ => Group::Routers,
    }
}

#[cfg(test)]
mod tests {
    use gradus_engine::decision::{Expect, Op};

    use super::*;
    use crate::cluster::ResourcePart;

    #[tokio::test(start_paused = true)]
    async fn a_burst_passes_and_then_the_rate_holds() {
        let start = Instant::now();
        let mut bucket = Bucket::new(Rate { per_second: 10.0, burst: 3 }, start);
        let waits: Vec<_> = (0..6).map(|_| (bucket.take(start) - start).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 100, 200, 300]);
        let later = start + Duration::from_secs(60);
        let waits: Vec<_> = (0..4).map(|_| (bucket.take(later) - later).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 100], "a quiet minute fills the bucket, and no more than that");
    }

    #[tokio::test(start_paused = true)]
    async fn odd_rates_do_no_harm() {
        let start = Instant::now();
        let cases = [
            ("no limit", Rate { per_second: 0.0, burst: 1 }, Duration::ZERO),
            ("below zero: no limit", Rate { per_second: -1.0, burst: 0 }, Duration::ZERO),
            ("no burst means one", Rate { per_second: 1.0, burst: 0 }, Duration::from_secs(1)),
            ("next to nothing", Rate { per_second: 1e-300, burst: 1 }, SLOWEST),
        ];
        for (what, rate, second) in cases {
            let mut bucket = Bucket::new(rate, start);
            assert_eq!(bucket.take(start), start, "{what}: the first");
            assert_eq!(bucket.take(start) - start, second, "{what}: the second");
        }
    }

    /// A cluster that knows nothing.
    struct Empty;

    impl Cluster for Empty {
        async fn write(&self, _: Write) -> Result<Written, WriteError> {
            Ok(Written { version: 0, status: Arc::default() })
        }

        async fn read(&self, _: &ObjectRef) -> Result<Option<Frame>, WriteError> {
            Ok(None)
        }

        async fn read_whole(&self, _: &ObjectRef) -> Result<Option<Value>, WriteError> {
            Ok(None)
        }

        async fn permit(&self) -> Result<(), WriteError> {
            Ok(())
        }

        async fn list(&self, _: &Listing) -> Result<Vec<Frame>, WriteError> {
            Ok(Vec::new())
        }

        async fn post(&self, _: &PostedEvent) -> Result<(), WriteError> {
            Ok(())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn groups_do_not_wait_for_each_other() {
        let cluster = Limited::new(Empty, Rate { per_second: 1.0, burst: 1 });
        let read = async |group| {
            let kind = Kind::new(group, "v1", "X", "xs");
            let target = ObjectRef::new(kind, &"shop".into(), &"web".into());
            let start = Instant::now();
            cluster.read(&target).await.unwrap();
            start.elapsed().as_secs()
        };
        assert_eq!(read("apps").await, 0);
        assert_eq!(read(gradus_api::names::GROUP).await, 0);
        assert_eq!(read("networking.istio.io").await, 0);
        assert_eq!(read("").await, 1, "core shares with apps");
    }

    #[tokio::test(start_paused = true)]
    async fn a_quiet_namespace_does_not_wait_for_a_busy_one() {
        // The long-run rate, what is allowed at once, and how long a request of the quiet one may take.
        let cases = [
            ("some tokens are kept for it", 40, Duration::ZERO),
            ("it is next when there are none to keep", 1, Duration::from_millis(25)),
        ];
        for (what, burst, expected) in cases {
            let cluster = Limited::new(Empty, Rate { per_second: 40.0, burst });
            let start = Instant::now();
            let read = async |namespace: &str| {
                let set = Kind::new("apps", "v1", "ReplicaSet", "replicasets");
                let target = ObjectRef::new(set, &namespace.into(), &"web".into());
                let asked = Instant::now();
                cluster.read(&target).await.unwrap();
                asked.elapsed()
            };
            // Thirty at a time of the busy one, again and again.
            let busy = futures::future::join_all((0..30).map(|_| async {
                for _ in 0..4 {
                    read("busy").await;
                }
                start.elapsed()
            }));
            let quiet = async {
                tokio::time::sleep(Duration::from_millis(1_510)).await;
                read("quiet").await
            };
            let (busy, waited) = futures::join!(busy, quiet);
            assert!(waited <= expected, "{what}: {waited:?}");
            let last = busy.into_iter().max().unwrap();
            let slowest = Duration::from_millis(25 * (120 + 1));
            assert!(last <= slowest, "{what}: the busy one has its rate: {last:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn many_quiet_namespaces_leave_a_busy_one_its_turns() {
        let cluster = Limited::new(Empty, Rate { per_second: 40.0, burst: 8 });
        let read = async |namespace: String| {
            let set = Kind::new("apps", "v1", "ReplicaSet", "replicasets");
            let target = ObjectRef::new(set, &namespace.as_str().into(), &"web".into());
            cluster.read(&target).await.unwrap();
        };
        let start = Instant::now();
        let quiet = futures::future::join_all((0..19).map(|number| {
            let read = &read;
            async move {
                for _ in 0..50 {
                    read(format!("quiet-{number}")).await;
                }
            }
        }));
        let busy = futures::future::join_all((0..8).map(|_| read("busy".to_owned())));
        let busy = async {
            busy.await;
            start.elapsed()
        };
        let (_, took) = futures::join!(quiet, busy);
        // Eight turns among twenty namespaces.
        assert!(took <= Duration::from_millis(25 * 20 * 9), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_abort_goes_before_all_who_wait_and_lists_go_last() {
        let cluster = Limited::new(Empty, Rate { per_second: 1.0, burst: 1 });
        let start = Instant::now();
        let set = Kind::new("apps", "v1", "ReplicaSet", "replicasets");
        let write = async |lane| {
            let target = ObjectRef::new(set.clone(), &"shop".into(), &"web".into());
            let (part, op, expect) = (ResourcePart::Main, Op::Delete, Expect::Nothing);
            cluster.write(Write { target, part, op, expect, lane }).await.unwrap();
            start.elapsed().as_secs()
        };
        let list = async || {
            let (kind, namespace, labels) = (set.clone(), "shop".into(), String::new());
            cluster.list(&Listing { kind, namespace, labels }).await.unwrap();
            start.elapsed().as_secs()
        };
        assert_eq!(list().await, 0, "nobody waits");
        let given_up = tokio::time::timeout(Duration::from_millis(1), list());
        let late_abort = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            write(Lane::Urgent).await
        };
        let all = futures::join!(given_up, list(), list(), write(Lane::Ordinary), late_abort);
        let (given_up, one, other, ordinary, abort) = all;
        assert!(given_up.is_err());
        assert_eq!((abort, ordinary, one, other), (1, 2, 3, 4));
    }
}
