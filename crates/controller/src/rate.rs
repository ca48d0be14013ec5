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
        let full_at = self.full_at.max(now) + self.interval;
        let at_once = self.interval.saturating_mul(self.burst);
        full_at.checked_sub(at_once).map_or(now, |at| at.max(now))
    }
}

/// The longest time between two tokens, so that no tiny rate can overflow.
const SLOWEST: Duration = Duration::from_secs(3_600);

/// Who waits for the tokens of one bucket.
#[derive(Debug)]
struct Turns {
    bucket: Bucket,
    /// Who goes first, first; each is told when that is its turn.
    waiting: BTreeMap<(Lane, u64), Arc<Notify>>,
    entered: u64,
}

impl Turns {
    fn new(bucket: Bucket) -> Mutex<Self> {
        Mutex::new(Turns { bucket, waiting: BTreeMap::new(), entered: 0 })
    }
}

/// A place among those who wait. Leaving it, with a token or without, calls the next one.
struct Place<'t> {
    turns: &'t Mutex<Turns>,
    at: (Lane, u64),
    call: Arc<Notify>,
}

impl<'t> Place<'t> {
    fn enter(turns: &'t Mutex<Turns>, lane: Lane) -> Self {
        let call = Arc::new(Notify::new());
        let mut entered = lock(turns);
        entered.entered += 1;
        let at = (lane, entered.entered);
        entered.waiting.insert(at, Arc::clone(&call));
        Place { turns, at, call }
    }

    /// Takes a token if it is there and nobody goes first; else says when it will be there, or
    /// nothing where somebody does.
    fn take(&self, now: Instant) -> Option<Instant> {
        let mut turns = lock(self.turns);
        let (first, _) = turns.waiting.first_key_value()?;
        if *first != self.at {
            return None;
        }
        let next = turns.bucket.next(now);
        if next <= now {
            turns.bucket.take(now);
        }
        Some(next)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut turns = lock(self.turns);
        turns.waiting.remove(&self.at);
        if let Some((_, next)) = turns.waiting.first_key_value() {
            next.notify_one();
        }
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

    async fn turn(&self, group: Group, lane: Lane) {
        let place = Place::enter(&self.groups[group as usize], lane);
        loop {
            let now = Instant::now();
            match place.take(now) {
                Some(at) if at <= now => return,
                // Somebody who goes first may come meanwhile.
                Some(at) => tokio::time::sleep_until(at).await,
                None => place.call.notified().await,
            }
        }
    }
}

impl<C: Cluster> Cluster for Limited<C> {
    async fn write(&self, write: Write) -> Result<Written, WriteError> {
        self.turn(group(&write.target.kind), write.lane).await;
        self.cluster.write(write).await
    }

    async fn read(&self, target: &ObjectRef) -> Result<Option<Frame>, WriteError> {
        self.turn(group(&target.kind), Lane::Ordinary).await;
        self.cluster.read(target).await
    }

    async fn read_whole(&self, target: &ObjectRef) -> Result<Option<Value>, WriteError> {
        self.turn(group(&target.kind), Lane::Ordinary).await;
        self.cluster.read_whole(target).await
    }

    async fn permit(&self) -> Result<(), WriteError> {
        self.cluster.permit().await
    }

    async fn list(&self, listing: &Listing) -> Result<Vec<Frame>, WriteError> {
        self.turn(group(&listing.kind), Lane::Last).await;
        self.cluster.list(listing).await
    }

    async fn post(&self, event: &PostedEvent) -> Result<(), WriteError> {
        self.turn(Group::Events, Lane::Ordinary).await;
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
