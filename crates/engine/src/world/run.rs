//! What does a decision need of an AnalysisRun or an Experiment? Both are runs: something that was
//! started and ends with a verdict.

use std::sync::Arc;

use gradus_api::names::{analysis_phase, label};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::decision::Kind;
use crate::frame::Frame;
use crate::kinds;
use crate::uid::Uid;

/// An AnalysisRun or an Experiment as decisions see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunView {
    /// Name.
    pub name: Arc<str>,
    /// Identity.
    pub uid: Uid,
    /// `resourceVersion`.
    pub version: u64,
    /// When it was made, in seconds since 1970; 0 where the server did not say.
    pub created: i64,
    /// Is its deletion asked for?
    pub deleting: bool,
    /// The revision it is about, empty where no label says it.
    pub hash: Arc<str>,
    /// The canary step it belongs to, as its label says.
    pub step: Option<usize>,
    /// How it stands.
    pub phase: RunPhase,
    /// Why, in its own words.
    pub message: Arc<str>,
    /// Has somebody asked it to end?
    pub is_ending: bool,
    /// What it tries, as a digest: equal for equal specs. See [`RunView::intent`].
    pub intent: u64,
    /// The sets of pods of an Experiment that have a Service.
    pub parts: Vec<ExperimentPods>,
}

/// A set of pods of an Experiment that traffic can be sent to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExperimentPods {
    /// Name of the Experiment's template.
    pub template: Arc<str>,
    /// Its Service.
    pub service: Arc<str>,
    /// Its hash.
    pub hash: Arc<str>,
}

/// A ReplicaSet of an Experiment: whose it is, and whom traffic finds there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExperimentSet {
    /// Name of the Experiment that controls it.
    pub experiment: Arc<str>,
    /// Value of the pod-template-hash label.
    pub hash: Arc<str>,
    /// `resourceVersion`.
    pub version: u64,
    /// Available pods, never more than the size.
    pub available: i64,
    /// The port of its Service that takes HTTP: the one with this name, or else the first.
    #[serde(default)]
    pub port: Option<i64>,
}

/// Where an AnalysisRun or Experiment stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunPhase {
    /// Nobody has looked at it yet.
    #[default]
    Unstarted,
    /// Not started (Experiments alone).
    Pending,
    /// Going on.
    Running,
    /// Ended well.
    Successful,
    /// Ended badly.
    Failed,
    /// Could not be carried out.
    Error,
    /// Ended without a verdict.
    Inconclusive,
}

impl RunPhase {
    /// The phase of this text; any text nobody knows counts as none.
    pub fn of(text: &str) -> Self {
        match text {
            analysis_phase::PENDING => RunPhase::Pending,
            analysis_phase::RUNNING => RunPhase::Running,
            analysis_phase::SUCCESSFUL => RunPhase::Successful,
            analysis_phase::FAILED => RunPhase::Failed,
            analysis_phase::ERROR => RunPhase::Error,
            analysis_phase::INCONCLUSIVE => RunPhase::Inconclusive,
            _ => RunPhase::Unstarted,
        }
    }

    /// The text, empty for none.
    pub fn text(self) -> &'static str {
        match self {
            RunPhase::Unstarted => "",
            RunPhase::Pending => analysis_phase::PENDING,
            RunPhase::Running => analysis_phase::RUNNING,
            RunPhase::Successful => analysis_phase::SUCCESSFUL,
            RunPhase::Failed => analysis_phase::FAILED,
            RunPhase::Error => analysis_phase::ERROR,
            RunPhase::Inconclusive => analysis_phase::INCONCLUSIVE,
        }
    }

    /// Is the verdict spoken?
    pub fn is_completed(self) -> bool {
        self.is_bad() || matches!(self, RunPhase::Successful | RunPhase::Inconclusive)
    }

    /// Did it end badly, or could not be carried out?
    pub fn is_bad(self) -> bool {
        matches!(self, RunPhase::Failed | RunPhase::Error)
    }
}

impl RunView {
    /// The view of a frame of an AnalysisRun or an Experiment.
    pub fn read(kind: &Kind, frame: &Frame) -> Self {
        let (meta, status) = (&frame.meta, &frame.status);
        let label = |key: &str| meta.labels.get(key).map(String::as_str);
        let text = |field: &str| status[field].as_str().unwrap_or_default();
        RunView {
            name: Arc::clone(&meta.name),
            uid: meta.uid,
            version: meta.version,
            created: meta.created.map_or(0, Timestamp::as_second),
            deleting: meta.deleting.is_some(),
            hash: label(label::POD_TEMPLATE_HASH).unwrap_or_default().into(),
            step: label(label::STEP_INDEX).and_then(|index| index.parse().ok()),
            phase: RunPhase::of(text("phase")),
            message: text("message").into(),
            is_ending: frame.spec["terminate"] == true,
            intent: RunView::intent(kind, &frame.spec),
            parts: parts(status),
        }
    }

    /// What an AnalysisRun or Experiment of this spec does. Whether it is asked to end plays no part, nor do fields
    /// without content, which a server may drop or add.
    pub fn intent(kind: &Kind, spec: &Value) -> u64 {
        let counts = |field: &str| {
            let of_run = ["metrics", "dryRun", "measurementRetention", "args"];
            if *kind == kinds::ANALYSIS_RUN {
                of_run.contains(&field)
            } else {
                field != "terminate"
            }
        };
        let fields = spec.as_object().into_iter().flatten().filter(|(field, _)| counts(field));
        fields.fold(OFFSET, |hash, (field, value)| entry(hash, field, value))
    }

    /// May it still be taken as the one that is wanted?
    pub fn is_usable(&self) -> bool {
        !self.phase.is_completed() && !self.is_ending && !self.deleting
    }
}

impl ExperimentSet {
    /// The view of a frame of a ReplicaSet.
    pub fn read(frame: &Frame) -> Self {
        let Frame { meta, spec, status } = frame;
        let size = spec["replicas"].as_i64().unwrap_or(1);
        let available = status["availableReplicas"].as_i64().unwrap_or(0);
        ExperimentSet {
            experiment: meta.controller().map_or_else(|| "".into(), |it| Arc::clone(&it.name)),
            hash: meta.labels.get(label::POD_TEMPLATE_HASH).map_or("", String::as_str).into(),
            version: meta.version,
            available: available.min(size),
            port: port(&spec["template"]),
        }
    }
}

/// The name of a port for HTTP.
const HTTP: &str = "http";

/// The port of pods that takes HTTP. The Service of an Experiment has the ports of the containers.
fn port(template: &Value) -> Option<i64> {
    let containers = template["spec"]["containers"].as_array().into_iter().flatten();
    let ports = containers.flat_map(|one| one["ports"].as_array().into_iter().flatten());
    let ports: Vec<&Value> = ports.collect();
    let named = ports.iter().find(|port| port["name"] == HTTP).or_else(|| ports.first())?;
    named["containerPort"].as_i64()
}

/// Sets of pods with a Service, from the status of an Experiment.
fn parts(status: &Value) -> Vec<ExperimentPods> {
    let statuses = status["templateStatuses"].as_array().into_iter().flatten();
    let part = |found: &Value| {
        let text = |field: &str| found[field].as_str().filter(|text| !text.is_empty());
        Some(ExperimentPods {
            template: text("name")?.into(),
            service: text("serviceName")?.into(),
            hash: text("podTemplateHash").unwrap_or_default().into(),
        })
    };
    statuses.filter_map(part).collect()
}

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

fn digest(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
}

fn entry(hash: u64, field: &str, value: &Value) -> u64 {
    if is_empty(value) {
        return hash;
    }
    // 0xff is in no UTF-8 text, so a key cannot run into its value.
    content(digest(digest(hash, field.as_bytes()), &[0xff]), value)
}

fn content(hash: u64, value: &Value) -> u64 {
    match value {
        Value::Object(fields) => {
            let inside = fields
                .iter()
                .fold(digest(hash, b"{"), |hash, (key, value)| entry(hash, key, value));
            digest(inside, b"}")
        }
        Value::Array(items) => {
            let inside = items
                .iter()
                .fold(digest(hash, b"["), |hash, item| digest(content(hash, item), b","));
            digest(inside, b"]")
        }
        Value::String(text) => digest(digest(hash, text.as_bytes()), &[0xfe]),
        scalar => digest(digest(hash, scalar.to_string().as_bytes()), &[0xfd]),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_intents_are_found_equal_and_others_are_not() {
        let metric = |count: i32| json!({ "name": "m", "count": count });
        let run = json!({ "metrics": [metric(1)], "args": [{ "name": "a", "value": "x" }] });
        let cases = [
            ("itself", run.clone(), true),
            (
                "asked to end, with a time to live",
                json!({ "metrics": [metric(1)], "args": [{ "name": "a", "value": "x" }],
                    "terminate": true, "ttlStrategy": { "secondsAfterSuccess": 1 }, "dryRun": [] }),
                true,
            ),
            ("another count", json!({ "metrics": [metric(2)], "args": run["args"] }), false),
            (
                "another value",
                json!({ "metrics": [metric(1)], "args": [{ "name": "a", "value": "y" }] }),
                false,
            ),
            (
                "a pair cut elsewhere",
                json!({ "metrics": [metric(1)], "args": [{ "name": "ax" }] }),
                false,
            ),
            ("no arguments", json!({ "metrics": [metric(1)] }), false),
        ];
        let intent = |spec: &Value| RunView::intent(&kinds::ANALYSIS_RUN, spec);
        for (what, spec, is_equal) in cases {
            assert_eq!(intent(&spec) == intent(&run), is_equal, "{what}");
        }
        let (one, other) =
            (json!({ "duration": "1m" }), json!({ "duration": "1m", "terminate": true }));
        let intent = |spec: &Value| RunView::intent(&kinds::EXPERIMENT, spec);
        assert_eq!(intent(&one), intent(&other));
        assert_ne!(intent(&one), intent(&json!({ "duration": "2m" })));
    }
}
