//! How is an AnalysisRun made of a Rollout's spec and its templates?

use std::sync::Arc;

use gradus_api::names::{annotation, label};
use serde_json::{Map, Value, json};

use super::super::analyses::{Analysis, Purpose};
use super::super::lifecycle::{self, StartOutcome, Started};
use super::super::objects::Objects;
use super::super::plan::Proposal;
use super::super::replica_sets::Roles;
use crate::analysis::arguments;
use crate::analysis::start::{self, NewRun};
use crate::kinds;

/// The run for this analysis: one that is there already and tries the same, or a new one.
pub(super) fn start(objects: &Objects<'_>, roles: Roles, analysis: Analysis<'_>) -> Started {
    let spec = match spec(objects, roles, &analysis) {
        Ok(spec) => spec,
        Err(detail) => {
            let error = analysis.invalid(&analysis.names(), &detail);
            return Started { proposal: Proposal::default(), outcome: StartOutcome::Broken(error) };
        }
    };
    let (labels, annotations) = metadata(objects, roles, &analysis);
    let run = NewRun {
        name: base(objects, roles, analysis.purpose),
        hash: Arc::clone(&objects.sets[roles.new].hash),
        labels,
        annotations,
        spec,
    };
    let kind = kinds::ANALYSIS_RUN;
    let known = lifecycle::known(objects, &kind);
    lifecycle::started(start::start(&lifecycle::owner(objects), &known, run))
}

/// Is there a run for this purpose that has not ended, and that nobody has asked to end?
pub(super) fn is_started(objects: &Objects<'_>, roles: Roles, purpose: Purpose) -> bool {
    let base = base(objects, roles, purpose);
    objects.runs.iter().any(|run| run.is_usable() && run.name.starts_with(&base))
}

/// The name of the first run for a purpose.
fn base(objects: &Objects<'_>, roles: Roles, purpose: Purpose) -> String {
    let new = &objects.sets[roles.new];
    let infix = match purpose {
        Purpose::Step(index) => format!("-{index}"),
        Purpose::Background => String::new(),
        Purpose::PrePromotion => "-pre".to_owned(),
        Purpose::PostPromotion => "-post".to_owned(),
    };
    format!("{}-{}-{}{infix}", objects.rollout().name, new.hash, new.revision.unwrap_or(0))
}

/// What the run measures.
fn spec(objects: &Objects<'_>, roles: Roles, analysis: &Analysis<'_>) -> Result<Value, String> {
    let subject = lifecycle::subject(objects, roles);
    let given = arguments::resolve(analysis.args, &subject).map_err(|error| error.to_string())?;
    let templates = &objects.world.templates;
    start::spec(templates, analysis.named(), &given, analysis.dry_run, analysis.retention)
}

/// Labels and annotations; of two with one key the later counts.
fn metadata(
    objects: &Objects<'_>,
    roles: Roles,
    analysis: &Analysis<'_>,
) -> (Map<String, Value>, Map<String, Value>) {
    let (rollout, new) = (objects.rollout(), &objects.sets[roles.new]);
    let mut labels = Map::new();
    labels.insert(label::POD_TEMPLATE_HASH.into(), json!(&*new.hash));
    labels.insert(label::RUN_TYPE.into(), json!(analysis.purpose.label()));
    if let Purpose::Step(index) = analysis.purpose {
        labels.insert(label::STEP_INDEX.into(), json!(index.to_string()));
    }
    if let Some(instance) = rollout.labels.get(label::INSTANCE_ID) {
        labels.insert(label::INSTANCE_ID.into(), json!(instance));
    }
    let mut notes = Map::new();
    let revision = new.revision.unwrap_or(0).to_string();
    notes.insert(annotation::REVISION.into(), json!(revision));
    let text = |(key, value): (&String, &String)| (key.clone(), json!(value));
    if let Some(own) = analysis.metadata {
        labels.extend(own.labels.iter().map(text));
        notes.extend(own.annotations.iter().map(text));
    }
    let selector = objects.spec().selector.iter().flat_map(|selector| selector.match_labels.iter());
    labels.extend(selector.map(text));
    (labels, notes)
}
