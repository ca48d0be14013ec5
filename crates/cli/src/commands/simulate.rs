//! `simulate`: what would become of an update? The user's own manifests, in virtual time, without a
//! cluster.

mod behaviour;
mod plot;
mod timeline;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use gradus_api::names::{self, annotation, label};
use gradus_api::rollout::StepKind;
use gradus_lab::enumerate;
use gradus_lab::faults::Faults;
use gradus_lab::tryout::{Report, Tryout, UpdateResult};
use serde_json::Value;

use super::lint;
use crate::{near, output};
use gradus_manifest::{self as manifest, Document};

/// Show what would become of an update, without a cluster
///
/// Deploys the manifests on a cluster in memory, updates the Rollout to another image, and prints
/// what happens, in virtual time. The exit code is 0 if the update is promoted, 2 if it is aborted
/// or degraded, 3 if it waits for a person or is stuck, and 1 for bad input.
#[derive(Debug, Args)]
pub struct Arguments {
    /// File, folder (with all below it) or - for standard input; may be repeated
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true)]
    filename: Vec<PathBuf>,
    /// The Rollout, where the manifests have several
    name: Option<String>,
    /// How pods and people behave: a file, or one of the short forms (see docs/simulate.md); may be
    /// repeated
    #[arg(long, visible_alias = "behavior", value_name = "BEHAVIOUR")]
    behaviour: Vec<String>,
    /// The image of the update; made up from the first one if left out
    #[arg(long)]
    image: Option<String>,
    /// Draw the order of events from this number
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Then run it again with every crash and every refused or lost write, one at a time
    #[arg(long)]
    faults: bool,
    /// Draw pods, weights, errors and analyses over time
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// How to print a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    Text,
    /// For machines.
    Json,
}

/// Why writing into a String is expected to succeed.
const INFALLIBLE: &str = "a String takes everything";

/// Simulates and prints.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let tryout = prepare(arguments)?;
    for note in notes(&tryout) {
        output::warn(&format!("note: {note}"));
    }
    let faults = arguments.seed.map_or_else(Faults::default, Faults::order);
    let report = tryout.run(&faults)?;
    let rollout = tryout.rollout().expect("prepare has found it");
    if let Some(path) = &arguments.plot {
        std::fs::write(path, plot::picture(&report, rollout))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let text = match arguments.output {
        Output::Text => timeline::text(&report, rollout),
        Output::Json => format!("{:#}\n", timeline::json(&report, rollout)),
    };
    output::say(text.trim_end_matches('\n'))?;
    let survives = !arguments.faults || survives_faults(&tryout, &report)?;
    let code = match report.result {
        _ if !report.violations.is_empty() || !survives => 2,
        UpdateResult::Promoted => 0,
        UpdateResult::Aborted | UpdateResult::Degraded => 2,
        UpdateResult::Waiting | UpdateResult::Stuck => 3,
    };
    Ok(ExitCode::from(code))
}

fn prepare(arguments: &Arguments) -> anyhow::Result<Tryout> {
    let mut documents: Vec<Document> = Vec::new();
    for source in lint::sources(&arguments.filename)? {
        documents.extend(manifest::read(&source).map_err(|malformed| {
            let place = malformed.place;
            let (name, message) = (&source.name, &malformed.message);
            anyhow::anyhow!("{name}:{}:{}: {message}", place.line, place.column)
        })?);
    }
    let is_rollout = |document: &Document| document.text(&["kind"]) == Some(names::kind::ROLLOUT);
    let name_of =
        |document: &Document| document.text(&["metadata", "name"]).unwrap_or_default().to_owned();
    let all: Vec<String> =
        documents.iter().filter(|document| is_rollout(document)).map(name_of).collect();
    let name = match (&arguments.name, all.as_slice()) {
        (_, []) => bail!("no Rollout in the manifests; expected one"),
        (Some(name), all) if all.contains(name) => name.clone(),
        (Some(name), all) => {
            let near = near::offered(name, all);
            let hint = if near.is_empty() { "there is" } else { "did you mean" };
            let offered = if near.is_empty() { all.to_vec() } else { near };
            bail!("no Rollout {name:?} in the manifests; {hint} {}", offered.join(", "))
        }
        (None, [one]) => one.clone(),
        (None, all) => bail!("several Rollouts in the manifests; name one of {}", all.join(", ")),
    };
    documents.retain(|document| match is_rollout(document) {
        true => name_of(document) == name,
        false => is_simulated(document),
    });
    let refused = lint::refused(&documents);
    if !refused.is_empty() {
        refused.iter().for_each(|finding| output::warn(finding));
        bail!("these manifests would be refused, so there is nothing to simulate");
    }
    let objects: Vec<Value> =
        documents.iter().map(|document| as_written(document.json())).collect();
    let mut tryout = Tryout { objects, ..Tryout::default() };
    let first = tryout.first_image().unwrap_or("image:1").to_owned();
    tryout.image = arguments.image.clone().unwrap_or_else(|| format!("{first}-next"));
    behaviour::add(&mut tryout, &arguments.behaviour, &first)?;
    Ok(tryout)
}

/// What is not as it would be in a cluster.
fn notes(tryout: &Tryout) -> Vec<String> {
    let services = tryout.missing_services().into_iter();
    let mut notes: Vec<String> = services
        .map(|name| format!("Service {name:?} is not in the manifests; it is made up"))
        .collect();
    notes.extend(tryout.unmeasurable().into_iter().map(|(template, metric)| {
        format!(
            "metric {metric:?} of {template:?} has a condition that is more than a comparison with \
             a number; it succeeds unless a behaviour says how the analysis ends"
        )
    }));
    if timeline::steps(tryout.rollout().unwrap_or(&Value::Null))
        .iter()
        .any(|step| matches!(step.kind(), StepKind::Experiment(_)))
    {
        notes.push("Experiments have no pods here; they succeed after their duration".to_owned());
    }
    notes
}

/// An object as somebody would write it: without what a cluster has added to it.
fn as_written(mut object: Value) -> Value {
    let added = [
        "resourceVersion",
        "uid",
        "creationTimestamp",
        "generation",
        "managedFields",
        "ownerReferences",
    ];
    let marks = [annotation::REVISION, annotation::MANAGED_BY];
    let without = |object: Option<&mut Value>, keys: &[&str]| {
        if let Some(fields) = object.and_then(Value::as_object_mut) {
            keys.iter().for_each(|key| drop(fields.remove(*key)));
        }
    };
    without(Some(&mut object), &["status"]);
    without(object.get_mut("metadata"), &added);
    without(object.pointer_mut("/metadata/annotations"), &marks);
    // A moment of the real time means nothing in the virtual one.
    without(object.get_mut("spec"), &["restartAt"]);
    if object["kind"] == "Service" {
        without(object.pointer_mut("/spec/selector"), &[label::POD_TEMPLATE_HASH]);
    }
    object
}

/// Kinds that play a part in an update; a ConfigMap beside it does not.
fn is_simulated(document: &Document) -> bool {
    let kinds = [
        "Service",
        "Ingress",
        "Deployment",
        "ReplicaSet",
        "PodTemplate",
        "AnalysisTemplate",
        "ClusterAnalysisTemplate",
    ];
    document.text(&["kind"]).is_some_and(|kind| kinds.contains(&kind))
}

/// Does every disturbed run end like the undisturbed one?
fn survives_faults(tryout: &Tryout, report: &Report) -> anyhow::Result<bool> {
    let tally = enumerate::every_fault(&tryout.prepared()?, 1);
    for failed in tally.failed.iter().take(5) {
        output::warn(&failed.to_string());
    }
    let failed = tally.failed.len();
    output::warn(&format!(
        "faults: {} runs, one fault at each of {} writes: {failed} ended otherwise",
        tally.runs, report.writes
    ));
    Ok(failed == 0)
}
