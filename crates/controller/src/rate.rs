//! How many requests per second may a group of kinds make?

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gradus_engine::decision::{Kind, ObjectRef};
use gradus_engine::frame::Frame;
use tokio::time::Instant;

use crate::cluster::{Cluster, Listing, PostedEvent, Write, WriteError, Written};

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
        self.full_at = self.full_at.max(now) + self.interval;
        let at_once = self.interval.saturating_mul(self.burst);
        self.full_at.checked_sub(at_once).map_or(now, |at| at.max(now))
    }
}

/// The longest time between two tokens, so that no tiny rate can overflow.
const SLOWEST: Duration = Duration::from_secs(3_600);

/// A cluster whose users wait for their turn, per group of kinds.
#[derive(Clone, Debug)]
pub struct Limited<C> {
    cluster: C,
    buckets: Arc<Mutex<[Bucket; 4]>>,
}

impl<C> Limited<C> {
    /// The cluster behind one bucket per group, each of that rate; Events have their own.
    pub fn new(cluster: C, rate: Rate) -> Self {
        let now = Instant::now();
        let bucket = Bucket::new(rate, now);
        let buckets = [bucket, bucket, bucket, Bucket::new(EVENTS, now)];
        Limited { cluster, buckets: Arc::new(Mutex::new(buckets)) }
    }

    async fn turn(&self, group: Group) {
        let now = Instant::now();
        let at = {
            let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
            buckets[group as usize].take(now)
        };
        if at > now {
            tokio::time::sleep_until(at).await;
        }
    }
}

impl<C: Cluster> Cluster for Limited<C> {
    async fn write(&self, write: Write) -> Result<Written, WriteError> {
        self.turn(group(&write.target.kind)).await;
        self.cluster.write(write).await
    }

    async fn read(&self, target: &ObjectRef) -> Result<Option<Frame>, WriteError> {
        self.turn(group(&target.kind)).await;
        self.cluster.read(target).await
    }

    async fn list(&self, listing: &Listing) -> Result<Vec<Frame>, WriteError> {
        self.turn(group(&listing.kind)).await;
        self.cluster.list(listing).await
    }

    async fn post(&self, event: &PostedEvent) -> Result<(), WriteError> {
        self.turn(Group::Events).await;
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
    use super::*;

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
            Ok(Written { frame: Frame::default() })
        }

        async fn read(&self, _: &ObjectRef) -> Result<Option<Frame>, WriteError> {
            Ok(None)
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
}
