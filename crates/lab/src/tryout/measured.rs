//! What did the analyses of an update measure? Gathered while it goes on: a run keeps only its latest
//! measurements.

use std::collections::BTreeSet;
use std::sync::Arc;

use gradus_api::names;
use gradus_simkube::SimCluster;
use gradus_simkube::object::Object;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::deeds::NAMESPACE;

/// One measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TryoutMeasurement {
    /// When it was made, since the beginning of the update.
    pub at: SignedDuration,
    /// The AnalysisRun.
    pub run: String,
    /// The metric.
    pub metric: String,
    /// How it was judged.
    pub phase: String,
    /// The value; empty where there was none.
    pub value: String,
    /// What was wrong with it.
    pub message: String,
    /// The conditions that judged it.
    pub conditions: String,
}

/// Gathers measurements.
#[derive(Default)]
pub(super) struct Gatherer {
    known: BTreeSet<(String, String, String)>,
    pub(super) measured: Vec<TryoutMeasurement>,
}

impl Gatherer {
    /// Takes in what is new.
    pub(super) fn look(&mut self, cluster: &SimCluster, begin: Timestamp) {
        let kind = cluster.kinds().by_name(names::API_VERSION, names::kind::ANALYSIS_RUN);
        for run in kind.into_iter().flat_map(|kind| cluster.list(kind, NAMESPACE)) {
            let results = run.status["metricResults"].as_array().into_iter().flatten();
            for result in results {
                let all = result["measurements"].as_array().into_iter().flatten();
                // A write brings at most one more of each metric.
                if let Some(last) = all.last().filter(|one| !one["finishedAt"].is_null()) {
                    self.take(run, result, last, begin);
                }
            }
        }
    }

    fn take(&mut self, run: &Arc<Object>, result: &Value, last: &Value, begin: Timestamp) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (metric, finished) = (text(&result["name"]), text(&last["finishedAt"]));
        let run_name = run.meta.name.to_string();
        let Ok(moment) = finished.parse::<Timestamp>() else { return };
        if !self.known.insert((run_name.clone(), metric.clone(), finished)) {
            return;
        }
        self.measured.push(TryoutMeasurement {
            at: moment.duration_since(begin),
            run: run_name,
            conditions: conditions(run, &metric),
            metric,
            phase: text(&last["phase"]),
            value: text(&last["value"]),
            message: text(&last["message"]),
        });
    }
}

/// The conditions of a metric on one line, with the arguments of its run.
fn conditions(run: &Arc<Object>, metric: &str) -> String {
    let metrics = run.spec["metrics"].as_array().into_iter().flatten();
    let own = metrics.filter(|one| one["name"] == *metric).flat_map(|one| {
        ["successCondition", "failureCondition"].map(|field| {
            let text = filled(one[field].as_str().unwrap_or_default(), &run.spec["args"]);
            let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
            if line.is_empty() { String::new() } else { format!("{field} {line}") }
        })
    });
    own.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; ")
}

/// A text with its arguments; a secret has no value that could be shown.
fn filled(text: &str, arguments: &Value) -> String {
    let all = arguments.as_array().into_iter().flatten();
    all.fold(text.to_owned(), |text, argument| {
        let name = argument["name"].as_str().unwrap_or_default();
        match argument["value"].as_str() {
            Some(value) => text.replace(&format!("{{{{args.{name}}}}}"), value),
            None => text,
        }
    })
}
