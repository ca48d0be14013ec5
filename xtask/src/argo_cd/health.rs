//! The health that Argo CD finds, and the one that the contract says.

use std::path::{Path, PathBuf};

use gradus_api::names::{self, annotation};
use jiff::Timestamp;
use serde_json::Value;
use thiserror::Error;

use super::script::{self, ScriptError};

/// Why a health is not right.
#[derive(Debug, Error)]
pub(super) enum Unhealthy {
    #[error(transparent)]
    Script(#[from] ScriptError),
    #[error(
        "{kind} {name}: expected Argo CD to find {expected}, it finds {found}; status: {status}"
    )]
    Other { kind: &'static str, name: String, expected: String, found: String, status: Value },
}

/// The scripts.
pub(super) struct Health {
    scripts: PathBuf,
}

impl Health {
    pub fn of(scripts: &Path) -> Self {
        Self { scripts: scripts.to_owned() }
    }

    /// Does Argo CD find what it must?
    pub fn is_right(&self, kind: &'static str, object: &Value) -> Result<(), Unhealthy> {
        let (expected, message) = match kind {
            names::kind::ROLLOUT => of_rollout(object),
            names::kind::ANALYSIS_RUN => (of_run(object, "Unknown"), None),
            _ => (of_run(object, "no health"), None),
        };
        self.is_so(kind, object, (expected, message))
    }

    /// Is a Rollout, at the end of its scenario, as healthy as its phase says?
    pub fn is_at(&self, rollout: &Value, phase: &Value) -> Result<(), Unhealthy> {
        let expected = of_phase(phase.as_str().unwrap_or_default());
        self.is_so(names::kind::ROLLOUT, rollout, (expected, None))
    }

    fn is_so(
        &self,
        kind: &'static str,
        object: &Value,
        (expected, message): (&str, Option<&str>),
    ) -> Result<(), Unhealthy> {
        let found = script::run(
            &self.scripts.join(kind).join("health.lua"),
            object,
            Timestamp::UNIX_EPOCH,
        )?;
        let is_status = found["status"] == expected;
        let is_message =
            message.is_none_or(|message| found["message"].as_str().unwrap_or_default() == message);
        if is_status && is_message {
            return Ok(());
        }
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let expected = format!("{expected} {}", message.unwrap_or_default());
        let (found, status) = (found.to_string(), object["status"].clone());
        Err(Unhealthy::Other { kind, name, expected, found, status })
    }
}

/// By the contract: progressing until the spec is observed, and that of the workload it names; then as
/// its phase and message say.
fn of_rollout(rollout: &Value) -> (&str, Option<&str>) {
    const WAITS: &str = "Waiting for rollout spec update to be observed";
    let (metadata, status) = (&rollout["metadata"], &rollout["status"]);
    // A number would be another version's: it must be text.
    let observed = status["observedGeneration"].as_str().and_then(|text| text.parse::<i64>().ok());
    if observed.is_none() || observed < metadata["generation"].as_i64() {
        return ("Progressing", Some(WAITS));
    }
    let workload = metadata["annotations"][annotation::WORKLOAD_GENERATION].as_str();
    let is_named = rollout["spec"]["workloadRef"].is_object();
    if is_named && workload != status["workloadObservedGeneration"].as_str() {
        return ("Progressing", Some(WAITS));
    }
    let message = status["message"].as_str().unwrap_or_default();
    (of_phase(status["phase"].as_str().unwrap_or_default()), Some(message))
}

/// What Argo CD calls a phase; any other would be a health it does not know.
fn of_phase(phase: &str) -> &'static str {
    match phase {
        "Healthy" => "Healthy",
        "Degraded" => "Degraded",
        "Progressing" => "Progressing",
        "Paused" => "Suspended",
        _ => "one of the four phases",
    }
}

/// An Experiment is never inconclusive: Argo CD would have no name for it.
fn of_run(run: &Value, inconclusive: &'static str) -> &'static str {
    match run["status"]["phase"].as_str() {
        None | Some("" | "Pending" | "Running") => "Progressing",
        Some("Successful") => "Healthy",
        Some("Failed" | "Error") => "Degraded",
        Some(_) => inconclusive,
    }
}
