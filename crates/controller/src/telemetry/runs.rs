//! What the metrics say of AnalysisRuns: their phase, and type and phase of each of their metrics.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry};

use super::lifetimes::Lifetimes;
use super::{RECONCILE_BUCKETS, forget, register};

/// Every phase is a series of its own in the older gauges.
const PHASES: [&str; 6] = ["Pending", "Running", "Successful", "Failed", "Error", "Inconclusive"];

/// What the gauges say of one AnalysisRun.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunFigures {
    /// Its phase.
    pub phase: String,
    /// Its metrics.
    pub metrics: Vec<MetricFigures>,
}

/// What the gauges say of one metric of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetricFigures {
    /// Its name.
    pub name: String,
    /// The type of its provider.
    pub provider: &'static str,
    /// Does its result not count?
    pub is_dry: bool,
    /// Its phase.
    pub phase: String,
}

/// The metrics of AnalysisRuns.
pub(super) struct Runs {
    info: IntGaugeVec,
    phase: IntGaugeVec,
    metric_type: IntGaugeVec,
    metric_phase: IntGaugeVec,
    reconcile: HistogramVec,
    reconcile_error: IntCounterVec,
    /// What is shown, so that it can be taken back.
    shown: Mutex<BTreeMap<(String, String), RunFigures>>,
    lifetimes: Mutex<Lifetimes>,
}

impl Runs {
    pub(super) fn new(registry: &Registry) -> Self {
        let gauges = |name: &str, help: &str, labels: &[&str]| {
            register(registry, IntGaugeVec::new(Opts::new(name, help), labels))
        };
        let object = &["namespace", "name"];
        let reconcile =
            HistogramOpts::new("analysis_run_reconcile", "Seconds of one pass over a run.")
                .buckets(RECONCILE_BUCKETS.to_vec());
        let errors = Opts::new("analysis_run_reconcile_error", "Passes over a run that failed.");
        Runs {
            info: gauges(
                "analysis_run_info",
                "An AnalysisRun and its phase.",
                &["namespace", "name", "phase"],
            ),
            phase: gauges(
                "analysis_run_phase",
                "1 for the phase a run is in (deprecated, see analysis_run_info).",
                &["namespace", "name", "phase"],
            ),
            metric_type: gauges(
                "analysis_run_metric_type",
                "A metric of a run and the type of its provider.",
                &["namespace", "name", "metric", "type"],
            ),
            metric_phase: gauges(
                "analysis_run_metric_phase",
                "1 for the phase a metric of a run is in.",
                &["namespace", "name", "metric", "type", "dry_run", "phase"],
            ),
            reconcile: register(registry, HistogramVec::new(reconcile, object)),
            reconcile_error: register(registry, IntCounterVec::new(errors, object)),
            shown: Mutex::default(),
            lifetimes: Mutex::default(),
        }
    }

    /// What the gauges shall say of a run from now on.
    pub(super) fn show(&self, namespace: &str, name: &str, figures: RunFigures) {
        self.hide(namespace, name);
        self.info.with_label_values(&[namespace, name, &figures.phase]).set(1);
        for phase in PHASES {
            let is_it = i64::from(phase == figures.phase);
            self.phase.with_label_values(&[namespace, name, phase]).set(is_it);
        }
        for metric in &figures.metrics {
            let labels = [namespace, name, &metric.name, metric.provider];
            self.metric_type.with_label_values(&labels).set(1);
            for phase in PHASES {
                let is_it = i64::from(phase == metric.phase);
                self.metric_phase.with_label_values(&of(labels, metric, phase)).set(is_it);
            }
        }
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.insert((namespace.to_owned(), name.to_owned()), figures);
        self.lifetimes().lives((namespace.to_owned(), name.to_owned()));
    }

    /// A run is gone: its gauges vanish at once, its counters a little later.
    pub(super) fn deleted(&self, namespace: &str, name: &str, now: Timestamp) {
        self.hide(namespace, name);
        self.lifetimes().ends(&(namespace.to_owned(), name.to_owned()), now);
    }

    /// Nothing is told of any run any more.
    pub(super) fn hide_all(&self, now: Timestamp) {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let names: Vec<(String, String)> = shown.keys().cloned().collect();
        drop(shown);
        for (namespace, name) in names {
            self.deleted(&namespace, &name, now);
        }
    }

    /// Removes the counters of runs that have been gone for long enough.
    pub(super) fn sweep(&self, now: Timestamp) {
        for (namespace, name) in self.lifetimes().take_expired(now) {
            forget(self.reconcile.remove_label_values(&[&*namespace, &*name]));
            forget(self.reconcile_error.remove_label_values(&[&*namespace, &*name]));
        }
    }

    pub(super) fn reconciled(&self, namespace: &str, name: &str, took: Duration) {
        self.lifetimes().counts((namespace.to_owned(), name.to_owned()));
        self.reconcile.with_label_values(&[namespace, name]).observe(took.as_secs_f64());
    }

    pub(super) fn failed(&self, namespace: &str, name: &str) {
        self.lifetimes().counts((namespace.to_owned(), name.to_owned()));
        self.reconcile_error.with_label_values(&[namespace, name]).inc();
    }

    fn lifetimes(&self) -> MutexGuard<'_, Lifetimes> {
        self.lifetimes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hide(&self, namespace: &str, name: &str) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(figures) = shown.remove(&(namespace.to_owned(), name.to_owned())) else { return };
        forget(self.info.remove_label_values(&[namespace, name, &figures.phase]));
        for phase in PHASES {
            forget(self.phase.remove_label_values(&[namespace, name, phase]));
        }
        for metric in &figures.metrics {
            let labels = [namespace, name, &metric.name, metric.provider];
            forget(self.metric_type.remove_label_values(&labels));
            for phase in PHASES {
                forget(self.metric_phase.remove_label_values(&of(labels, metric, phase)));
            }
        }
    }
}

fn of<'l>(labels: [&'l str; 4], metric: &MetricFigures, phase: &'l str) -> [&'l str; 6] {
    let is_dry = if metric.is_dry { "true" } else { "false" };
    [labels[0], labels[1], labels[2], labels[3], is_dry, phase]
}

#[cfg(test)]
mod tests {
    use prometheus::TextEncoder;

    use super::*;

    fn lines(registry: &Registry, part: &str) -> Vec<String> {
        let text = TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        text.lines().filter(|l| !l.starts_with('#') && l.contains(part)).map(Into::into).collect()
    }

    fn figures(phase: &str) -> RunFigures {
        let metric =
            MetricFigures { name: "m".into(), provider: "Job", is_dry: true, phase: phase.into() };
        RunFigures { phase: phase.into(), metrics: vec![metric] }
    }

    #[test]
    fn a_run_has_one_phase_and_leaves_nothing_behind() {
        let registry = Registry::new();
        let runs = Runs::new(&registry);
        runs.show("shop", "run", figures("Running"));
        runs.show("shop", "run", figures("Failed"));
        runs.reconciled("shop", "run", Duration::from_millis(20));
        runs.failed("shop", "run");
        let info = r#"analysis_run_info{name="run",namespace="shop",phase="Failed"} 1"#;
        assert_eq!(lines(&registry, "analysis_run_info"), [info]);
        let is_one = |line: &String| line.ends_with(" 1");
        for gauge in ["analysis_run_phase{", "analysis_run_metric_phase{"] {
            let all = lines(&registry, gauge);
            assert_eq!((all.len(), all.iter().filter(|line| is_one(line)).count()), (6, 1));
        }
        let kind = lines(&registry, "analysis_run_metric_type");
        assert!(kind[0].contains(r#"type="Job""#), "{kind:?}");
        let at = |second| Timestamp::from_second(second).unwrap();
        runs.deleted("shop", "run", at(100));
        runs.sweep(at(164));
        let left = lines(&registry, "run");
        assert!(left.iter().all(|line| line.contains("reconcile")) && !left.is_empty(), "{left:?}");
        runs.sweep(at(165));
        assert_eq!(lines(&registry, "run"), Vec::<String>::new());
    }
}
