//! Who serves the requests to this cluster, how are they answered, and what would a metric server say
//! about it? Every pod answers as the behaviour of its image says; what it has answered so far is
//! counted, and sampled as Prometheus would.
//!
//! Nothing is sent: the counts follow from Services, ready pods and the weights of routers.

mod endpoint;
mod families;
mod port;
mod route;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use gradus_promql::{Labels, Millis, Sample, Selector, Series, Source, stale};
use jiff::{SignedDuration, Timestamp};

use crate::SimCluster;
use crate::behave::Behaviours;
pub use endpoint::EndpointReply;
pub use families::knows;
use families::{BUCKETS, Family, Part};
pub use port::{ListeningForMetrics, MetricPort, Outside};
pub use route::answering;

/// Requests per second at each entry point.
pub const REQUESTS_PER_SECOND: f64 = 100.0;
/// How often a sample is taken, in milliseconds.
const SCRAPE: Millis = 5_000;
/// What is longer ago is forgotten.
const REMEMBERED: SignedDuration = SignedDuration::from_hours(1);
/// So steep is the distribution of answer times: of 100 answers, one takes more than three times as
/// long as the median.
const STEEPNESS: i32 = 4;

/// The requests that a cluster has served so far.
#[derive(Clone, Debug)]
pub struct Traffic {
    rate: f64,
    targets: BTreeMap<TargetKey, Target>,
    /// The version and the behaviours that were last looked at.
    seen: Option<(u64, Arc<Behaviours>)>,
}

/// What is counted: a family of series of one object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TargetKey {
    family: Family,
    /// Labels that every one of its series has.
    labels: Labels,
}

/// What was counted of it, piece by piece.
#[derive(Clone, Debug)]
struct Target {
    pieces: Vec<Piece>,
    ended: Option<Timestamp>,
}

/// A time during which nothing changed.
#[derive(Clone, Copy, Debug)]
struct Piece {
    from: Timestamp,
    /// Up to its beginning.
    before: Counts,
    per_second: Counts,
}

/// Requests, errors, their seconds, and those answered within each limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counts {
    requests: f64,
    errors: f64,
    seconds: f64,
    within: [f64; BUCKETS.len()],
}

impl Default for Traffic {
    fn default() -> Self {
        Traffic { rate: REQUESTS_PER_SECOND, targets: BTreeMap::new(), seen: None }
    }
}

impl Traffic {
    /// Looks at the cluster as it is from now on. Must be called whenever it has changed.
    pub fn observe(&mut self, cluster: &SimCluster, now: Timestamp) {
        let seen = (cluster.version(), Arc::clone(cluster.behaviours()));
        let is_same = self.seen.as_ref().is_some_and(|(version, behaviours)| {
            *version == seen.0 && Arc::ptr_eq(behaviours, &seen.1)
        });
        if is_same {
            return;
        }
        self.seen = Some(seen);
        let current = self.current(cluster);
        for (key, target) in &mut self.targets {
            if !current.contains_key(key) {
                target.end(now);
            }
        }
        for (key, per_second) in current {
            self.targets.entry(key).or_insert_with(Target::new).count(per_second, now);
        }
        self.targets.retain(|_, target| {
            target.forget(now - REMEMBERED);
            target.ended.is_none_or(|ended| now < ended + REMEMBERED)
        });
    }

    /// What each target counts per second.
    fn current(&self, cluster: &SimCluster) -> BTreeMap<TargetKey, Counts> {
        let mut found: BTreeMap<TargetKey, Counts> = BTreeMap::new();
        for stream in route::streams(cluster) {
            #[expect(clippy::cast_precision_loss, reason = "nobody has 2^52 pods")]
            let each = self.rate * stream.share / stream.pods.len().max(1) as f64;
            for pod in &stream.pods {
                let behaviour = cluster.behaviours().of_pod(&pod.spec);
                let share = behaviour.error_percent / 100.0;
                let counts = Counts::of(each, share, behaviour.latency_milliseconds / 1000.0);
                for key in families::targets(cluster, &stream, pod) {
                    let known = found.entry(key).or_default();
                    *known = known.plus(&counts);
                }
            }
        }
        found
    }
}

impl Source for Traffic {
    fn select(&self, selector: &Selector, from: Millis, to: Millis) -> Vec<Series> {
        let mut found = Vec::new();
        for (key, target) in &self.targets {
            for (labels, part) in key.family.series(&key.labels) {
                if selector.selects(&labels) {
                    found.push(Series { labels, samples: target.samples(part, from, to) });
                }
            }
        }
        found.retain(|series| !series.samples.is_empty());
        found
    }
}

impl Target {
    fn new() -> Self {
        Target { pieces: Vec::new(), ended: None }
    }

    /// From now on so much is counted.
    fn count(&mut self, per_second: Counts, now: Timestamp) {
        let same = self.pieces.last().is_some_and(|piece| piece.per_second == per_second);
        if same && self.ended.is_none() {
            return;
        }
        let before = self.counted(now);
        self.ended = None;
        self.pieces.push(Piece { from: now, before, per_second });
    }

    fn end(&mut self, now: Timestamp) {
        if self.ended.is_none() {
            let before = self.counted(now);
            self.ended = Some(now);
            self.pieces.push(Piece { from: now, before, per_second: Counts::default() });
        }
    }

    /// What is older than this is one piece.
    fn forget(&mut self, before: Timestamp) {
        let old = self.pieces.partition_point(|piece| piece.from <= before);
        self.pieces.drain(..old.saturating_sub(1));
    }

    fn counted(&self, at: Timestamp) -> Counts {
        let index = self.pieces.partition_point(|piece| piece.from <= at);
        match index.checked_sub(1).and_then(|index| self.pieces.get(index)) {
            None => Counts::default(),
            Some(piece) => {
                let seconds = at.duration_since(piece.from).as_secs_f64();
                piece.before.plus(&piece.per_second.times(seconds))
            }
        }
    }

    /// Samples of the moments at which Prometheus would have taken one.
    fn samples(&self, part: Part, from: Millis, to: Millis) -> Vec<Sample> {
        let Some(first) = self.pieces.first() else { return Vec::new() };
        let begins = first.from.as_millisecond().max(from + 1);
        let ends = self.ended.map_or(i64::MAX, |ended| ended.as_millisecond());
        let mut at = begins + (SCRAPE - begins.rem_euclid(SCRAPE)) % SCRAPE;
        let mut samples = Vec::new();
        while at <= to {
            if ends < at {
                samples.push(Sample { at, value: stale() });
                break;
            }
            let moment = Timestamp::from_millisecond(at).unwrap_or_default();
            samples.push(Sample { at, value: self.counted(moment).part(part) });
            at += SCRAPE;
        }
        samples
    }
}

impl Counts {
    /// Of so many requests in a second this share fails, and half of all are answered within this
    /// time.
    fn of(requests: f64, errors: f64, median: f64) -> Self {
        let within = BUCKETS.map(|limit| {
            let ratio = if median > 0.0 { (limit / median).powi(STEEPNESS) } else { f64::MAX };
            requests * ratio / (1.0 + ratio)
        });
        // The mean of this distribution is π/4 / sin(π/4) times its median.
        let mean = median * std::f64::consts::FRAC_PI_4 / std::f64::consts::FRAC_PI_4.sin();
        Counts { requests, errors: requests * errors, seconds: requests * mean, within }
    }

    fn plus(&self, other: &Counts) -> Counts {
        let mut sum = Counts {
            requests: self.requests + other.requests,
            errors: self.errors + other.errors,
            seconds: self.seconds + other.seconds,
            within: self.within,
        };
        for (own, more) in sum.within.iter_mut().zip(other.within) {
            *own += more;
        }
        sum
    }

    fn times(&self, factor: f64) -> Counts {
        Counts {
            requests: self.requests * factor,
            errors: self.errors * factor,
            seconds: self.seconds * factor,
            within: self.within.map(|count| count * factor),
        }
    }

    fn part(&self, part: Part) -> f64 {
        match part {
            Part::Good => self.requests - self.errors,
            Part::Bad => self.errors,
            Part::All => self.requests,
            Part::Seconds => self.seconds,
            Part::Milliseconds => self.seconds * 1000.0,
            Part::Within(index) => self.within.get(index).copied().unwrap_or(self.requests),
            Part::Up => 1.0,
        }
    }
}
