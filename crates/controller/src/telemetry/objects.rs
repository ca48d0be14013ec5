//! The gauges and Event counters of Rollouts. A Rollout has a good two dozen series: they are made of
//! what is kept of it when somebody asks, and not kept themselves.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus::core::{Collector, Desc};
use prometheus::proto::{Counter, Gauge, LabelPair, Metric, MetricFamily, MetricType};

use super::RolloutFigures;
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

/// What is kept of all objects, and the families of metrics that are made of it. Clones share it.
#[derive(Clone)]
pub(super) struct ObjectMetrics {
    series: Arc<Mutex<ObjectSeries>>,
    families: Arc<[Desc]>,
}

impl ObjectMetrics {
    pub(super) fn new() -> Self {
        let numbers = NUMBERS.map(|named| (named, OBJECT.as_slice()));
        let others: [(_, &[&str]); 3] =
            [(INFO, &INFO_LABELS), (PHASE, &PHASE_LABELS), (EVENTS, &EVENT_LABELS)];
        let families = numbers.into_iter().chain(others).map(|((name, help), labels)| {
            let labels = labels.iter().map(|&label| label.to_owned()).collect();
            Desc::new(name.to_owned(), help.to_owned(), labels, HashMap::new())
                .expect("names and labels are constants of the right form")
        });
        ObjectMetrics { series: Arc::default(), families: families.collect() }
    }

    pub(super) fn series(&self) -> MutexGuard<'_, ObjectSeries> {
        self.series.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Collector for ObjectMetrics {
    fn desc(&self) -> Vec<&Desc> {
        self.families.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let series = self.series();
        let of_all = |metrics: &dyn Fn([&str; 2], &RolloutFigures) -> Vec<Metric>| {
            let shown = series.figures();
            shown.flat_map(|(object, figures)| metrics(object, figures)).collect()
        };
        let mut families: Vec<MetricFamily> = (0..NUMBERS.len())
            .map(|at| {
                let one = |object: [&str; 2], figures: &RolloutFigures| {
                    vec![gauge(&OBJECT, &object, numbers(figures)[at])]
                };
                family(NUMBERS[at], MetricType::GAUGE, of_all(&one))
            })
            .collect();
        families.push(family(INFO, MetricType::GAUGE, of_all(&info)));
        families.push(family(PHASE, MetricType::GAUGE, of_all(&phases)));
        let events = series.events().map(|([namespace, name], (kind, reason), count)| {
            let mut metric = labelled(&EVENT_LABELS, &[namespace, name, kind, reason]);
            let mut counter = Counter::default();
            counter.set_value(count as f64);
            metric.set_counter(counter);
            metric
        });
        families.push(family(EVENTS, MetricType::COUNTER, events.collect()));
        families
    }
}

fn numbers(figures: &RolloutFigures) -> [i64; 4] {
    let available = i64::from(figures.available);
    let unavailable = i64::from(figures.replicas) - available;
    [available, unavailable, figures.desired.into(), figures.updated.into()]
}

fn info([namespace, name]: [&str; 2], figures: &RolloutFigures) -> Vec<Metric> {
    let RolloutFigures { strategy, traffic_router, phase, .. } = figures;
    vec![gauge(&INFO_LABELS, &[namespace, name, strategy, traffic_router, phase], 1)]
}

fn phases([namespace, name]: [&str; 2], figures: &RolloutFigures) -> Vec<Metric> {
    let one = |phase: &str| {
        let value = i64::from(phase == figures.phase);
        gauge(&PHASE_LABELS, &[namespace, name, figures.strategy, phase], value)
    };
    METRIC_PHASES.into_iter().map(one).collect()
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

fn family((name, help): (&str, &str), kind: MetricType, metrics: Vec<Metric>) -> MetricFamily {
    let mut family = MetricFamily::default();
    family.set_name(name.to_owned());
    family.set_help(help.to_owned());
    family.set_field_type(kind);
    family.set_metric(metrics);
    family
}
