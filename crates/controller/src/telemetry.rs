//! Which figures and which lines does the controller show to those who run it?

mod durations;
mod experiments;
mod lifetimes;
mod logging;
mod objects;
mod pieces;
mod process;
mod queues;
mod runs;
mod series;
mod templates;

use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use gradus_api::names::plural;
use gradus_api::rollout::status::DurationStatus;
use jiff::{SignedDuration, Timestamp};
use prometheus::{
    GaugeVec, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry,
};

use crate::shell::Seen;
use crate::watched::Selection;
use durations::Durations;
use experiments::ExperimentMetrics;
pub use logging::{LogFormat, LoggingError, inform, start_logging};
use objects::ObjectMetrics;
use pieces::Pieces;
use process::Process;
pub use queues::QueueMetrics;
use queues::Queues;
use runs::Runs;
pub use runs::{MetricFigures, RunFigures};
use series::ObjectSeries;
use templates::TemplateSeries;

/// Names that existing dashboards and alerts read; they and their labels must not change.
const RECONCILE_BUCKETS: [f64; 5] = [0.01, 0.15, 0.25, 0.5, 1.0];

/// How long counters outlive their object: long enough for one more scrape.
const KEPT_AFTER_DELETE: SignedDuration = SignedDuration::from_secs(65);

/// Most series of the request counter; from then on objects are no longer told apart.
const REQUEST_SERIES_LIMIT: usize = 20_000;

/// All metrics of one controller. Clones share them.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Registry,
    objects: ObjectMetrics,
    reconcile: HistogramVec,
    reconcile_error: IntCounterVec,
    events_dropped: IntCounter,
    requests: IntCounterVec,
    held: GaugeVec,
    leader: IntGauge,
    interlock: IntCounterVec,
    refused: IntCounterVec,
    process: Process,
    queues: Queues,
    templates: TemplateSeries,
    durations: Durations,
    runs: Runs,
    experiments: ExperimentMetrics,
}

/// What the gauges say of one Rollout.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RolloutFigures {
    /// `canary`, `blueGreen` or `none`.
    pub strategy: &'static str,
    /// The traffic router, or nothing.
    pub traffic_router: &'static str,
    /// The phase as metrics name it, from the reason of the Progressing condition.
    pub phase: &'static str,
    /// `spec.replicas`.
    pub desired: i32,
    /// `status.replicas`.
    pub replicas: i32,
    /// `status.availableReplicas`.
    pub available: i32,
    /// `status.updatedReplicas`.
    pub updated: i32,
    /// `status.duration`.
    pub duration: Option<DurationStatus>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Metrics with nothing counted yet.
    pub fn new() -> Self {
        let registry = Registry::new();
        let object = &["namespace", "name"];
        let counters = |name, help, labels: &[&str]| {
            register(&registry, IntCounterVec::new(Opts::new(name, help), labels))
        };
        let reconcile =
            HistogramOpts::new("rollout_reconcile", "Seconds of one pass over a Rollout.")
                .buckets(RECONCILE_BUCKETS.to_vec());
        let held = Opts::new("gradus_held_seconds", "How long a guard has held a Rollout.");
        let dropped = IntCounter::new("gradus_events_dropped_total", "Events never posted.");
        let leader = IntGauge::new("gradus_leader", "1 while this controller leads, else 0.");
        let inner = Inner {
            objects: ObjectMetrics::default(),
            reconcile: register(&registry, HistogramVec::new(reconcile, object)),
            reconcile_error: counters("rollout_reconcile_error", "Passes that failed.", object),
            events_dropped: register(&registry, dropped),
            requests: counters(
                "controller_clientset_k8s_request_total",
                "Requests to the API server.",
                &["kind", "namespace", "name", "verb", "status_code"],
            ),
            held: register(&registry, GaugeVec::new(held, &["namespace", "name", "guard"])),
            leader: register(&registry, leader),
            interlock: counters(
                "gradus_interlock_total",
                "Writes that would have broken an invariant.",
                &["invariant"],
            ),
            refused: counters(
                "gradus_writes_refused_total",
                "Writes that the API server refused, by why.",
                &["class"],
            ),
            process: Process::new(&registry),
            queues: Queues::new(&registry),
            templates: TemplateSeries::new(&registry),
            durations: Durations::new(&registry),
            runs: Runs::new(&registry),
            experiments: ExperimentMetrics::new(&registry),
            registry,
        };
        announce(&inner.registry);
        Metrics(Arc::new(inner))
    }

    /// What the gauges shall say of a Rollout from now on.
    pub fn rollout(&self, namespace: &str, name: &str, figures: RolloutFigures) {
        let duration = figures.duration.clone();
        if let Some(before) = self.series().show(namespace, name, figures) {
            self.0.durations.observe(before.duration.as_ref(), duration.as_ref());
        }
    }

    /// One pass over a Rollout took so long.
    pub fn reconciled(&self, namespace: &str, name: &str, took: Duration) {
        self.series().touch(namespace, name);
        self.0.reconcile.with_label_values(&[namespace, name]).observe(took.as_secs_f64());
    }

    /// One pass over a Rollout failed.
    pub fn reconcile_failed(&self, namespace: &str, name: &str) {
        self.series().touch(namespace, name);
        self.0.reconcile_error.with_label_values(&[namespace, name]).inc();
    }

    /// An Event about a Rollout was made.
    pub fn event(&self, namespace: &str, name: &str, kind: &str, reason: &str) {
        self.series().event(namespace, name, kind, reason);
    }

    /// What the gauges shall say of an AnalysisRun from now on; nothing once it is gone.
    pub fn run(&self, namespace: &str, name: &str, figures: Option<RunFigures>, now: Timestamp) {
        match figures {
            Some(figures) => self.0.runs.show(namespace, name, figures),
            None => {
                self.0.runs.deleted(namespace, name, now);
                self.gone([plural::ANALYSIS_RUNS, namespace, name], now);
            }
        }
    }

    /// One pass over an AnalysisRun took so long, or failed.
    pub fn run_reconciled(&self, namespace: &str, name: &str, took: Option<Duration>) {
        match took {
            Some(took) => self.0.runs.reconciled(namespace, name, took),
            None => self.0.runs.failed(namespace, name),
        }
    }

    /// What the gauges shall say of an Experiment from now on: its phase, or that it is gone.
    pub fn experiment(&self, namespace: &str, name: &str, phase: Option<String>, now: Timestamp) {
        match phase {
            Some(phase) => self.0.experiments.show(namespace, name, phase),
            None => {
                self.0.experiments.deleted(namespace, name, now);
                self.gone([plural::EXPERIMENTS, namespace, name], now);
            }
        }
    }

    /// A pass over an Experiment took so long, or failed.
    pub fn experiment_reconciled(&self, namespace: &str, name: &str, took: Option<Duration>) {
        match took {
            Some(took) => self.0.experiments.reconciled(namespace, name, took),
            None => self.0.experiments.failed(namespace, name),
        }
    }

    /// So many Events were given up.
    pub fn events_dropped(&self, count: u64) {
        self.0.events_dropped.inc_by(count);
    }

    /// One request was answered so, or not at all.
    pub fn request(&self, plural: &str, namespace: &str, name: &str, verb: &str, code: &str) {
        let mut labels = [plural, namespace, name, verb, code];
        if !self.series().request(labels, REQUEST_SERIES_LIMIT) {
            labels[2] = "N/A";
        }
        self.0.requests.with_label_values(&labels).inc();
    }

    /// A Rollout is held by this guard for so many seconds, or by none.
    pub fn held(&self, namespace: &str, name: &str, held: Option<(&str, f64)>) {
        let guard = held.map(|(guard, _)| guard);
        if let Some(before) = self.series().held(namespace, name, guard) {
            forget(self.0.held.remove_label_values(&[namespace, name, &before]));
        }
        if let Some((guard, seconds)) = held {
            self.0.held.with_label_values(&[namespace, name, guard]).set(seconds);
        }
    }

    /// This process leads now, or no longer does.
    pub fn leads(&self, leads: bool) {
        self.0.leader.set(i64::from(leads));
        self.0.templates.tell(leads);
    }

    /// A watch has shown something; templates of analyses are told of as they are seen, and requests
    /// for what is gone are counted for a little while longer.
    pub fn watched(&self, watch: &Selection, seen: &Seen, now: Timestamp) {
        self.0.templates.seen(watch, seen);
        if let Seen::Delete(frame) = seen {
            self.gone([&watch.kind.plural, &frame.meta.namespace, &frame.meta.name], now);
        }
    }

    /// An object is gone, by plural, namespace and name.
    fn gone(&self, object: [&str; 3], now: Timestamp) {
        self.series().leave(object, now + KEPT_AFTER_DELETE);
    }

    /// A write would have broken an invariant.
    pub fn interlock(&self, invariant: &str) {
        self.0.interlock.with_label_values(&[invariant]).inc();
    }

    /// A write was refused.
    pub fn refused(&self, class: &str) {
        self.0.refused.with_label_values(&[class]).inc();
    }

    /// Nothing is told of objects any more: another process leads, and tells.
    pub fn hide_objects(&self, now: Timestamp) {
        let shown = self.series().shown();
        for (namespace, name) in shown {
            self.deleted(&namespace, &name, now);
        }
        self.0.runs.hide_all(now);
        self.0.experiments.hide_all(now);
    }

    /// A Rollout is gone: its gauges vanish at once, its counters a little later.
    pub fn deleted(&self, namespace: &str, name: &str, now: Timestamp) {
        self.gone([plural::ROLLOUTS, namespace, name], now);
        let guard = self.series().hide(namespace, name, now + KEPT_AFTER_DELETE);
        if let Some(guard) = &guard {
            forget(self.0.held.remove_label_values(&[namespace, name, guard]));
        }
    }

    /// The metrics of the queue of that name.
    pub fn queue(&self, name: &str) -> QueueMetrics {
        self.0.queues.of(name)
    }

    /// All metrics in Prometheus' text format, in pieces that follow each other.
    pub fn pieces(&self, now: Timestamp) -> Vec<String> {
        self.sweep(now);
        self.0.process.look();
        let mut pieces = Pieces::default();
        for mut family in self.0.registry.gather() {
            let metrics = family.take_metric().into_iter();
            pieces.put((family.name(), family.help()), family.get_field_type(), metrics);
        }
        self.0.objects.put_into(&mut pieces);
        pieces.into_texts()
    }

    /// The same as one text.
    pub fn text(&self, now: Timestamp) -> String {
        self.pieces(now).concat()
    }

    /// Removes the counters of objects that have been gone for long enough, scraped or not.
    pub fn sweep(&self, now: Timestamp) {
        let inner = &self.0;
        inner.runs.sweep(now);
        inner.experiments.sweep(now);
        for labels in self.series().take_requests(now) {
            forget(inner.requests.remove_label_values(&labels));
        }
        for gone in self.series().take_expired(now) {
            let object = &[&*gone.namespace, &*gone.name];
            forget(inner.reconcile.remove_label_values(object));
            forget(inner.reconcile_error.remove_label_values(object));
        }
    }

    fn series(&self) -> MutexGuard<'_, ObjectSeries> {
        self.0.objects.series()
    }
}

/// A series that was never set cannot be removed, and need not be.
fn forget(removed: prometheus::Result<()>) {
    drop(removed);
}

/// Why no metric is registered twice.
const DOUBLE: &str = "each metric has a name of its own";

fn register<C: prometheus::core::Collector + Clone + 'static>(
    registry: &Registry,
    made: prometheus::Result<C>,
) -> C {
    let collector = made.expect("names and labels are constants of the right form");
    registry.register(Box::new(collector.clone())).expect(DOUBLE);
    collector
}

/// Which program is this?
fn announce(registry: &Registry) {
    let version = env!("CARGO_PKG_VERSION");
    let info = Opts::new("argo_rollouts_controller_info", "The running controller.");
    let info = register(registry, IntGaugeVec::new(info, &["version"]));
    info.with_label_values(&[version]).set(1);
    // The Go version is a label that dashboards may select by; there is none here.
    let labels = &["version", "goversion", "goarch", "commit"];
    let build = Opts::new("build_info", "The running build.");
    let build = register(registry, IntGaugeVec::new(build, labels));
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let commit = option_env!("GRADUS_COMMIT").unwrap_or_default();
    build.with_label_values(&[version, "", architecture, commit]).set(1);
}

#[cfg(test)]
mod tests {
    use gradus_engine::decision::Kind;
    use serde_json::json;

    use super::objects::METRIC_PHASES;
    use super::*;
    use crate::watched::Scope;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn figures(phase: &'static str) -> RolloutFigures {
        RolloutFigures {
            strategy: "canary",
            phase,
            desired: 5,
            replicas: 6,
            available: 4,
            updated: 1,
            ..RolloutFigures::default()
        }
    }

    fn lines(metrics: &Metrics, now: Timestamp, part: &str) -> Vec<String> {
        let text = metrics.text(now);
        text.lines().filter(|l| !l.starts_with('#') && l.contains(part)).map(Into::into).collect()
    }

    #[test]
    fn a_rollout_has_one_phase_and_its_counts() {
        let metrics = Metrics::new();
        metrics.rollout("shop", "web", figures("Progressing"));
        metrics.rollout("shop", "web", figures("Paused"));
        let labels = r#"name="web",namespace="shop",phase="Paused",strategy="canary""#;
        assert_eq!(
            lines(&metrics, at(0), "rollout_info{"),
            [format!(r#"rollout_info{{{labels},traffic_router=""}} 1"#)]
        );
        assert_eq!(
            lines(&metrics, at(0), "unavailable"),
            [r#"rollout_info_replicas_unavailable{name="web",namespace="shop"} 2"#]
        );
        let phases = lines(&metrics, at(0), "rollout_phase{");
        assert_eq!(phases.len(), METRIC_PHASES.len());
        assert_eq!(phases.iter().filter(|line| line.ends_with(" 1")).count(), 1);
    }

    #[test]
    fn who_no_longer_leads_tells_of_no_object() {
        let metrics = Metrics::new();
        metrics.leads(true);
        metrics.rollout("shop", "web", figures("Paused"));
        let running = RunFigures { phase: "Running".into(), metrics: vec![] };
        metrics.run("shop", "web-1", Some(running), at(0));
        metrics.held("shop", "web", Some(("PauseStep", 300.0)));
        assert_eq!(lines(&metrics, at(0), "gradus_leader"), ["gradus_leader 1"]);
        metrics.leads(false);
        metrics.hide_objects(at(0));
        assert_eq!(lines(&metrics, at(0), "shop"), Vec::<String>::new());
        assert_eq!(lines(&metrics, at(0), "gradus_leader"), ["gradus_leader 0"]);
        metrics.rollout("shop", "web", figures("Paused"));
        let text = lines(&metrics, at(100), "rollout_info{");
        assert_eq!(text.len(), 1, "who leads again tells again: {text:?}");
    }

    #[test]
    fn a_deleted_rollout_leaves_nothing_behind() {
        let metrics = Metrics::new();
        metrics.rollout("shop", "web", figures("Paused"));
        metrics.reconciled("shop", "web", Duration::from_millis(20));
        metrics.reconcile_failed("shop", "web");
        metrics.event("shop", "web", "Normal", "RolloutPaused");
        metrics.request("rollouts", "shop", "web", "Patch", "200");
        metrics.held("shop", "web", Some(("PauseStep", 300.0)));
        assert!(lines(&metrics, at(0), r#"name="web""#).len() > 15);
        metrics.deleted("shop", "web", at(100));
        let left = lines(&metrics, at(164), r#"name="web""#);
        assert!(left.iter().all(|l| !l.contains("info") && !l.contains("held")), "{left:?}");
        assert!(left.iter().any(|l| l.contains("rollout_events_total")), "one more scrape");
        assert_eq!(lines(&metrics, at(165), r#"name="web""#), Vec::<String>::new());
    }

    #[test]
    fn requests_are_forgotten_with_the_object_they_were_for() {
        let metrics = Metrics::new();
        let objects = [("analysisruns", "web-1"), ("experiments", "study"), ("jobs", "measure")];
        for (kind, name) in objects.into_iter().chain([("services", "web")]) {
            metrics.request(kind, "shop", name, "Create", "201");
            metrics.request(kind, "shop", name, "Patch", "200");
        }
        metrics.run("shop", "web-1", None, at(100));
        metrics.experiment("shop", "study", None, at(100));
        let meta = json!({ "name": "measure", "namespace": "shop", "resourceVersion": "5" });
        let job = serde_json::from_value(json!({ "metadata": meta })).unwrap();
        let jobs = Scope::default().all(Kind::new("batch", "v1", "Job", "jobs"));
        metrics.watched(&jobs, &Seen::Delete(job), at(100));
        assert_eq!(lines(&metrics, at(164), "k8s_request_total").len(), 8, "one more scrape");
        let left = lines(&metrics, at(165), "k8s_request_total");
        assert!(left.len() == 2 && left.iter().all(|line| line.contains("services")), "{left:?}");
    }

    #[test]
    fn a_rollout_made_again_keeps_its_counters() {
        let metrics = Metrics::new();
        metrics.reconcile_failed("shop", "web");
        metrics.deleted("shop", "web", at(100));
        metrics.rollout("shop", "web", figures("Completed"));
        assert_eq!(lines(&metrics, at(900), "reconcile_error").len(), 1);
    }

    #[test]
    fn only_the_guard_that_holds_now_is_shown() {
        let metrics = Metrics::new();
        metrics.held("shop", "web", Some(("NotAvailable", 10.0)));
        metrics.held("shop", "web", Some(("PauseStep", 1.5)));
        assert_eq!(
            lines(&metrics, at(0), "gradus_held_seconds"),
            [r#"gradus_held_seconds{guard="PauseStep",name="web",namespace="shop"} 1.5"#]
        );
        metrics.held("shop", "web", None);
        assert_eq!(lines(&metrics, at(0), "gradus_held_seconds"), Vec::<String>::new());
    }

    #[test]
    fn the_program_says_who_it_is() {
        let metrics = Metrics::new();
        assert_eq!(lines(&metrics, at(0), "argo_rollouts_controller_info").len(), 1);
        assert_eq!(lines(&metrics, at(0), "build_info").len(), 1);
    }
}
