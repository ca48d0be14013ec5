//! The gauges and Event counters of Rollouts. A Rollout has a good two dozen series: they are made of
//! what is kept of it when somebody asks, and not kept themselves.

use std::sync::{Mutex, MutexGuard, PoisonError};

use prometheus::proto::{Counter, Gauge, LabelPair, Metric, MetricType};

use super::RolloutFigures;
use super::pieces::Pieces;
use super::series::ObjectSeries;

/// The phases of the older `rollout_phase`, each a series of its own. `rollout_info` has these and
/// `InvalidSpec`.
pub(super) const METRIC_PHASES: [&str; 6] =
    ["Completed", "Progressing", "Paused", "Timeout", "Error", "Abort"];

const OBJECT: [&str; 2] = ["namespace", "name"];

/// Name and help of what is counted of pods, in the order of [`numbers`].
const NUMBERS: [(&str, &str); 4] = [
    ("rollout_info_replicas_available", "Available pods."),
    ("rollout_info_replicas_unavailable", "Unavailable pods."),
    ("rollout_info_replicas_desired", "Wanted pods."),
    ("rollout_info_replicas_updated", "Pods of the new version."),
];
const INFO: (&str, &str) = ("rollout_info", "A Rollout and its phase.");
const PHASE: (&str, &str) =
    ("rollout_phase", "1 for the phase a Rollout is in (deprecated, see rollout_info).");
const EVENTS: (&str, &str) = ("rollout_events_total", "Events about Rollouts.");

const INFO_LABELS: [&str; 5] = ["namespace", "name", "strategy", "traffic_router", "phase"];
const PHASE_LABELS: [&str; 4] = ["namespace", "name", "strategy", "phase"];
const EVENT_LABELS: [&str; 4] = ["namespace", "name", "type", "reason"];

/// What is kept of all objects.
#[derive(Default)]
pub(super) struct ObjectMetrics {
    series: Mutex<ObjectSeries>,
}

impl ObjectMetrics {
    pub(super) fn series(&self) -> MutexGuard<'_, ObjectSeries> {
        self.series.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The families of metrics that are made of it.
    pub(super) fn put_into(&self, pieces: &mut Pieces) {
        let series = self.series();
        for (at, named) in NUMBERS.into_iter().enumerate() {
            let one = |(object, figures): ([&str; 2], &RolloutFigures)| {
                gauge(&OBJECT, &object, numbers(figures)[at])
            };
            pieces.put(named, MetricType::GAUGE, series.figures().map(one));
        }
        pieces.put(INFO, MetricType::GAUGE, series.figures().map(info));
        pieces.put(PHASE, MetricType::GAUGE, series.figures().flat_map(phases));
        let events = series.events().map(|([namespace, name], (kind, reason), count)| {
            let mut metric = labelled(&EVENT_LABELS, &[namespace, name, kind, reason]);
            let mut counter = Counter::default();
            counter.set_value(count as f64);
            metric.set_counter(counter);
            metric
        });
        pieces.put(EVENTS, MetricType::COUNTER, events);
    }
}

fn numbers(figures: &RolloutFigures) -> [i64; 4] {
    let available = i64::from(figures.available);
    let unavailable = i64::from(figures.replicas) - available;
    [available, unavailable, figures.desired.into(), figures.updated.into()]
}

fn info(([namespace, name], figures): ([&str; 2], &RolloutFigures)) -> Metric {
    let RolloutFigures { strategy, traffic_router, phase, .. } = figures;
    gauge(&INFO_LABELS, &[namespace, name, strategy, traffic_router, phase], 1)
}

fn phases<'m>(
    ([namespace, name], figures): ([&'m str; 2], &'m RolloutFigures),
) -> impl Iterator<Item = Metric> + 'm {
    METRIC_PHASES.into_iter().map(move |phase| {
        let value = i64::from(phase == figures.phase);
        gauge(&PHASE_LABELS, &[namespace, name, figures.strategy, phase], value)
    })
}

fn gauge(names: &[&str], values: &[&str], value: i64) -> Metric {
    let mut metric = labelled(names, values);
    let mut gauge = Gauge::default();
    gauge.set_value(value as f64);
    metric.set_gauge(gauge);
    metric
}

fn labelled(names: &[&str], values: &[&str]) -> Metric {
    let pair = |(name, value): (&&str, &&str)| {
        let mut pair = LabelPair::default();
        pair.set_name((*name).to_owned());
        pair.set_value((*value).to_owned());
        pair
    };
    let mut pairs: Vec<LabelPair> = names.iter().zip(values).map(pair).collect();
    // As the library sorts them everywhere else.
    pairs.sort_by(|one, other| one.name().cmp(other.name()));
    Metric::from_label(pairs)
}
