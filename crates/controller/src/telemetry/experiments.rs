//! What the metrics say of Experiments: their phase, and how their reconciles went.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry};

use super::lifetimes::Lifetimes;
use super::{RECONCILE_BUCKETS, forget, register};

/// The phases that are series of their own in the older gauge; it has none for Failed.
const PHASES: [&str; 5] = ["Pending", "Running", "Successful", "Error", "Inconclusive"];

/// The metrics of Experiments.
pub(super) struct ExperimentMetrics {
    info: IntGaugeVec,
    phase: IntGaugeVec,
    reconcile: HistogramVec,
    reconcile_error: IntCounterVec,
    /// The phases that are shown, so that they can be taken back.
    shown: Mutex<BTreeMap<(String, String), String>>,
    lifetimes: Mutex<Lifetimes>,
}

impl ExperimentMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        let labels = &["namespace", "name", "phase"];
        let gauges = |name: &str, help: &str| {
            register(registry, IntGaugeVec::new(Opts::new(name, help), labels))
        };
        let object = &["namespace", "name"];
        let reconcile =
            HistogramOpts::new("experiment_reconcile", "Seconds of one pass over an Experiment.")
                .buckets(RECONCILE_BUCKETS.to_vec());
        let errors = "Passes over an Experiment that failed.";
        let errors = Opts::new("experiment_reconcile_error", errors);
        ExperimentMetrics {
            info: gauges("experiment_info", "An Experiment and its phase."),
            phase: gauges(
                "experiment_phase",
                "1 for the phase an Experiment is in (deprecated, see experiment_info).",
            ),
            reconcile: register(registry, HistogramVec::new(reconcile, object)),
            reconcile_error: register(registry, IntCounterVec::new(errors, object)),
            shown: Mutex::default(),
            lifetimes: Mutex::default(),
        }
    }

    /// The phase that the gauges show of an Experiment from now on.
    pub(super) fn show(&self, namespace: &str, name: &str, phase: String) {
        self.hide(namespace, name);
        self.info.with_label_values(&[namespace, name, &phase]).set(1);
        for known in PHASES {
            let is_it = i64::from(known == phase);
            self.phase.with_label_values(&[namespace, name, known]).set(is_it);
        }
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.insert((namespace.to_owned(), name.to_owned()), phase);
        self.lifetimes().lives((namespace.to_owned(), name.to_owned()));
    }

    /// An Experiment is gone: its gauges vanish at once, its counters a little later.
    pub(super) fn deleted(&self, namespace: &str, name: &str, now: Timestamp) {
        self.hide(namespace, name);
        self.lifetimes().ends(&(namespace.to_owned(), name.to_owned()), now);
    }

    /// Nothing is told of any Experiment any more.
    pub(super) fn hide_all(&self, now: Timestamp) {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let names: Vec<(String, String)> = shown.keys().cloned().collect();
        drop(shown);
        for (namespace, name) in names {
            self.deleted(&namespace, &name, now);
        }
    }

    /// Removes the counters of Experiments that have been gone for long enough.
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
        let Some(phase) = shown.remove(&(namespace.to_owned(), name.to_owned())) else { return };
        forget(self.info.remove_label_values(&[namespace, name, &phase]));
        for known in PHASES {
            forget(self.phase.remove_label_values(&[namespace, name, known]));
        }
    }
}

#[cfg(test)]
mod tests {
    use prometheus::TextEncoder;

    use super::*;

    fn lines(registry: &Registry, part: &str) -> Vec<String> {
        let text = TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        text.lines().filter(|l| !l.starts_with('#') && l.contains(part)).map(Into::into).collect()
    }

    #[test]
    fn an_experiment_has_one_phase_and_leaves_nothing_behind() {
        let registry = Registry::new();
        let metrics = ExperimentMetrics::new(&registry);
        metrics.show("shop", "study", "Pending".to_owned());
        metrics.show("shop", "study", "Running".to_owned());
        metrics.reconciled("shop", "study", Duration::from_millis(20));
        metrics.failed("shop", "study");
        let info = r#"experiment_info{name="study",namespace="shop",phase="Running"} 1"#;
        assert_eq!(lines(&registry, "experiment_info"), [info]);
        let phases = lines(&registry, "experiment_phase{");
        let ones: Vec<&String> = phases.iter().filter(|line| line.ends_with(" 1")).collect();
        assert_eq!((phases.len(), ones.len()), (5, 1), "{phases:?}");
        assert_eq!(lines(&registry, "experiment_reconcile_error").len(), 1);
        let at = |second| Timestamp::from_second(second).unwrap();
        metrics.deleted("shop", "study", at(100));
        metrics.sweep(at(164));
        let left = lines(&registry, "experiment");
        assert!(left.iter().all(|line| line.contains("reconcile")) && !left.is_empty(), "{left:?}");
        metrics.sweep(at(165));
        assert_eq!(lines(&registry, "experiment"), Vec::<String>::new());
    }
}
