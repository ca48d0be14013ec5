//! Starting an AnalysisRun: its spec from templates and arguments, then an existing run or a new one.
//! The same for whoever wants it, a Rollout or an Experiment.

use std::sync::Arc;

use gradus_api::analysis::Argument;
use gradus_api::rollout::{DryRun, MeasurementRetention};
use serde_json::{Map, Value, json};

use super::merge;
use crate::kinds;
use crate::obtain::{self, KnownRuns, Obtained, RunOwner, Wanted};
use crate::world::Templates;

/// The run that is wanted.
#[derive(Clone, Debug)]
pub struct NewRun {
    /// Its name; where that is taken, a number follows after a dot.
    pub name: String,
    /// The revision it is about; empty where it is about none.
    pub hash: Arc<str>,
    /// Its labels.
    pub labels: Map<String, Value>,
    /// Its annotations.
    pub annotations: Map<String, Value>,
    /// Its spec, as [`spec`] makes it.
    pub spec: Value,
}

/// The run: one that is there and measures the same, or a new one.
pub fn start(owner: &RunOwner<'_>, known: &KnownRuns<'_>, run: NewRun) -> Obtained {
    let wanted = Wanted {
        kind: kinds::ANALYSIS_RUN,
        base: run.name,
        joint: '.',
        hash: run.hash,
        metadata: json!({ "labels": run.labels, "annotations": run.annotations }),
        spec: run.spec,
    };
    obtain::obtain(owner, known, wanted)
}

/// What a run measures: the named templates (name, is it of the cluster) with these arguments and
/// rules; else what is wrong with them.
pub fn spec<'n>(
    templates: &Templates,
    named: impl IntoIterator<Item = (&'n str, bool)>,
    arguments: &[Argument],
    dry_run: &[DryRun],
    retention: &[MeasurementRetention],
) -> Result<Value, String> {
    let found = merge::find(templates, named).map_err(|error| error.to_string())?;
    let merged = merge::flatten(found.all().map(|(_, template)| template))
        .and_then(|flat| flat.with_arguments(arguments))
        .and_then(|flat| flat.with_rules(dry_run, retention));
    Ok(merged.map_err(|error| error.to_string())?.spec())
}
