//! What the metrics say of each engine's queue, under the names that every Kubernetes controller uses.

use prometheus::{
    Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry, exponential_buckets,
};

use super::register;

/// The metrics of all queues, each series labelled with the name of its queue.
pub(super) struct Queues {
    depth: IntGaugeVec,
    adds: IntCounterVec,
    retries: IntCounterVec,
    waited: HistogramVec,
    worked: HistogramVec,
    unfinished: GaugeVec,
    longest: GaugeVec,
}

/// The metrics of one queue. Clones share them.
#[derive(Clone, Debug)]
pub struct QueueMetrics {
    /// Keys that are due and not handed out.
    pub depth: IntGauge,
    /// Keys that became due.
    pub adds: IntCounter,
    /// Keys that failed and are due again after their back-off.
    pub retries: IntCounter,
    /// Seconds from when a key was due until it was handed out.
    pub waited: Histogram,
    /// Seconds from when a key was handed out until it was finished.
    pub worked: Histogram,
    /// The sum of the seconds that the keys in flight have taken so far.
    pub unfinished: Gauge,
    /// The seconds that the oldest key in flight has taken so far.
    pub longest: Gauge,
}

impl Queues {
    pub(super) fn new(registry: &Registry) -> Self {
        let name = &["name"];
        let counter = |metric: &str, help: &str| {
            register(registry, IntCounterVec::new(Opts::new(metric, help), name))
        };
        let gauge = |metric: &str, help: &str| {
            register(registry, GaugeVec::new(Opts::new(metric, help), name))
        };
        let histogram = |metric: &str, help: &str| {
            let buckets = exponential_buckets(1e-8, 10.0, 10).expect("a start, a factor, a count");
            let options = HistogramOpts::new(metric, help).buckets(buckets);
            register(registry, HistogramVec::new(options, name))
        };
        let depth = Opts::new("workqueue_depth", "Keys that are due and not handed out.");
        Queues {
            depth: register(registry, IntGaugeVec::new(depth, name)),
            adds: counter("workqueue_adds_total", "Keys that became due."),
            retries: counter("workqueue_retries_total", "Keys that failed and are due again."),
            waited: histogram(
                "workqueue_queue_duration_seconds",
                "Seconds from when a key was due until it was handed out.",
            ),
            worked: histogram(
                "workqueue_work_duration_seconds",
                "Seconds from when a key was handed out until it was finished.",
            ),
            unfinished: gauge(
                "workqueue_unfinished_work_seconds",
                "The sum of the seconds that the keys in flight have taken so far.",
            ),
            longest: gauge(
                "workqueue_longest_running_processor_seconds",
                "The seconds that the oldest key in flight has taken so far.",
            ),
        }
    }

    /// The metrics of the queue of that name.
    pub(super) fn of(&self, name: &str) -> QueueMetrics {
        let name = &[name];
        QueueMetrics {
            depth: self.depth.with_label_values(name),
            adds: self.adds.with_label_values(name),
            retries: self.retries.with_label_values(name),
            waited: self.waited.with_label_values(name),
            worked: self.worked.with_label_values(name),
            unfinished: self.unfinished.with_label_values(name),
            longest: self.longest.with_label_values(name),
        }
    }
}
