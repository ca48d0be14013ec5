//! What the metrics say of AnalysisTemplates and ClusterAnalysisTemplates: that they are there, and
//! which metrics they have. Only the leader tells.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use gradus_api::analysis::Metric;
use gradus_api::decode::decode;
use gradus_engine::frame::Frame;
use gradus_engine::kinds;
use gradus_engine::metrics::provider;
use prometheus::{IntGaugeVec, Opts, Registry};

use super::{forget, register};
use crate::shell::Seen;
use crate::watched::Selection;

/// Namespace and name; a template of the cluster has no namespace.
type Key = (String, String);

/// Name and provider type of each metric of a template.
type MetricTypes = BTreeSet<(String, String)>;

/// The metrics of templates.
pub(super) struct TemplateSeries {
    info: IntGaugeVec,
    metric: IntGaugeVec,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_told: bool,
    known: BTreeMap<Key, MetricTypes>,
    /// What a list has shown so far, by its watch.
    listing: BTreeMap<Selection, BTreeSet<Key>>,
}

impl TemplateSeries {
    pub(super) fn new(registry: &Registry) -> Self {
        let gauges = |name: &str, help: &str, labels: &[&str]| {
            register(registry, IntGaugeVec::new(Opts::new(name, help), labels))
        };
        TemplateSeries {
            info: gauges(
                "analysis_template_info",
                "A template of analyses.",
                &["namespace", "name"],
            ),
            metric: gauges(
                "analysis_template_metric_info",
                "A metric of a template and the type of its provider.",
                &["namespace", "name", "type", "metric"],
            ),
            state: Mutex::default(),
        }
    }

    /// Takes in one message of a watch, if it is one of templates.
    pub(super) fn seen(&self, watch: &Selection, seen: &Seen) {
        let is_cluster = watch.kind == kinds::CLUSTER_ANALYSIS_TEMPLATE;
        if watch.kind != kinds::ANALYSIS_TEMPLATE && !is_cluster {
            return;
        }
        let mut state = self.state();
        match seen {
            Seen::Init => drop(state.listing.insert(watch.clone(), BTreeSet::new())),
            Seen::InitApply(frame) => {
                let listing = state.listing.entry(watch.clone()).or_default();
                listing.insert(key(frame));
                self.apply(&mut state, frame);
            }
            Seen::Apply(frame) => self.apply(&mut state, frame),
            Seen::Delete(frame) => self.remove(&mut state, &key(frame)),
            Seen::InitDone => {
                let listed = state.listing.remove(watch).unwrap_or_default();
                let is_of_watch = |known: &&Key| match &watch.namespace {
                    _ if is_cluster => known.0.is_empty(),
                    Some(namespace) => known.0 == *namespace,
                    None => !known.0.is_empty(),
                };
                let known = state.known.keys().filter(is_of_watch);
                let gone: Vec<Key> =
                    known.filter(|known| !listed.contains(*known)).cloned().collect();
                gone.iter().for_each(|gone| self.remove(&mut state, gone));
            }
            Seen::Resumed => {}
        }
    }

    /// Begins to tell, or no longer does.
    pub(super) fn tell(&self, is_told: bool) {
        let mut state = self.state();
        if state.is_told == is_told {
            return;
        }
        state.is_told = is_told;
        for (key, metrics) in &state.known {
            if is_told { self.show(key, metrics) } else { self.hide(key, metrics) }
        }
    }

    fn apply(&self, state: &mut State, frame: &Frame) {
        self.remove(state, &key(frame));
        let (key, metrics) = (key(frame), metrics(frame));
        if state.is_told {
            self.show(&key, &metrics);
        }
        state.known.insert(key, metrics);
    }

    fn remove(&self, state: &mut State, key: &Key) {
        if let Some(metrics) = state.known.remove(key) {
            self.hide(key, &metrics);
        }
    }

    fn show(&self, (namespace, name): &Key, metrics: &MetricTypes) {
        self.info.with_label_values(&[namespace, name]).set(1);
        for (metric, kind) in metrics {
            self.metric.with_label_values(&[namespace, name, kind, metric]).set(1);
        }
    }

    fn hide(&self, (namespace, name): &Key, metrics: &MetricTypes) {
        forget(self.info.remove_label_values(&[namespace, name]));
        for (metric, kind) in metrics {
            forget(self.metric.remove_label_values(&[namespace, name, kind, metric]));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(frame: &Frame) -> Key {
    (frame.meta.namespace.to_string(), frame.meta.name.to_string())
}

fn metrics(frame: &Frame) -> MetricTypes {
    let list = frame.spec["metrics"].as_array().map_or(&[][..], Vec::as_slice);
    let one = |raw| {
        let metric: Metric = decode(raw).0;
        let kind = provider(&metric).map_or("", |provider| provider.kind());
        (metric.name, kind.to_owned())
    };
    list.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use prometheus::TextEncoder;
    use serde_json::json;

    use super::*;
    use crate::watched::Scope;

    fn template(name: &str, provider: &str) -> Frame {
        let metric = json!({ "name": "errors", "provider": { provider: {} } });
        let meta = json!({ "name": name, "namespace": "shop", "resourceVersion": "5" });
        serde_json::from_value(json!({ "metadata": meta, "spec": { "metrics": [metric] } }))
            .unwrap()
    }

    fn lines(registry: &Registry) -> Vec<String> {
        let text = TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        text.lines().filter(|line| !line.starts_with('#')).map(Into::into).collect()
    }

    #[test]
    fn templates_are_told_by_the_leader_and_leave_nothing_behind() {
        let registry = Registry::new();
        let templates = TemplateSeries::new(&registry);
        let watch = Scope::default().of_instance(kinds::ANALYSIS_TEMPLATE);
        templates.seen(&watch, &Seen::Init);
        templates.seen(&watch, &Seen::InitApply(template("success", "prometheus")));
        templates.seen(&watch, &Seen::InitDone);
        assert_eq!(lines(&registry), Vec::<String>::new(), "a standby");
        templates.tell(true);
        let object = r#"name="success",namespace="shop""#;
        let told = [
            format!("analysis_template_info{{{object}}} 1"),
            format!(
                "analysis_template_metric_info{{metric=\"errors\",{object},type=\"Prometheus\"}} 1"
            ),
        ];
        assert_eq!(lines(&registry), told);
        templates.seen(&watch, &Seen::Apply(template("success", "web")));
        assert!(lines(&registry)[1].contains(r#"type="Web""#) && lines(&registry).len() == 2);
        templates.seen(&watch, &Seen::Init);
        templates.seen(&watch, &Seen::InitDone);
        assert_eq!(lines(&registry), Vec::<String>::new(), "a list does not show it any more");
    }
}
