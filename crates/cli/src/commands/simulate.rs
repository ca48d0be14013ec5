//! `simulate`: what would become of an update? The user's own manifests, in virtual time, without a
//! cluster.

mod behaviour;
mod input;
mod plot;
mod timeline;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use gradus_lab::enumerate;
use gradus_lab::faults::Faults;
use gradus_lab::tryout::{Report, Tryout, UpdateResult};

use crate::output;

/// Show what would become of an update, without a cluster
///
/// Deploys the manifests on a cluster in memory, updates the Rollout to another image, and prints
/// what happens, in virtual time. The exit code is 0 if the update is promoted, 2 if it is aborted
/// or degraded, 3 if it waits for a person or is stuck, and 1 for bad input.
#[derive(Debug, Args)]
pub struct Arguments {
    /// File, folder (with all below it) or - for standard input; may be repeated
    #[arg(short = 'f', long = "filename", value_name = "FILE", required_unless_present = "from")]
    filename: Vec<PathBuf>,
    /// The manifests as they are deployed; with --to, what a change of manifests does. May be
    /// repeated
    #[arg(long, value_name = "FILE", requires = "to", conflicts_with_all = ["filename", "image"])]
    from: Vec<PathBuf>,
    /// The manifests as they shall be; may be repeated
    #[arg(long, value_name = "FILE", requires = "from")]
    to: Vec<PathBuf>,
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
    if let Some(path) = &arguments.plot
        && path.extension().is_none_or(|ending| ending != "svg")
    {
        bail!("cannot plot {}: pictures are SVG, so the name must end with .svg", path.display());
    }
    let (tryout, mut notes) = input::prepare(arguments)?;
    notes.extend(made_up(&tryout));
    for note in notes {
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

/// What is not as it would be in a cluster.
fn made_up(tryout: &Tryout) -> Vec<String> {
    let services = tryout.missing_services().into_iter();
    let mut notes: Vec<String> = services
        .map(|name| format!("Service {name:?} is not in the manifests; it is made up"))
        .collect();
    notes.extend(tryout.missing_templates().into_iter().map(|(name, is_cluster)| {
        let kind = if is_cluster { "ClusterAnalysisTemplate" } else { "AnalysisTemplate" };
        format!(
            "{kind} {name:?} is not in the manifests; one that succeeds is made up \
             (--behaviour new:analysis=failed plays another end)"
        )
    }));
    notes.extend(
        tryout
            .missing_secrets()
            .into_keys()
            .map(|name| format!("Secret {name:?} is not in the manifests; it is made up")),
    );
    notes.extend(tryout.unplayed_plugins().into_iter().map(|name| {
        format!(
            "plugin {name:?} cannot be called in a simulation; \
             --behaviour plugin={name}:running@30s,successful plays it"
        )
    }));
    notes.extend(tryout.unanswerable().into_iter().map(|(template, metric, why)| {
        format!(
            "metric {metric:?} of {template:?} cannot be answered: {why}; \
             --behaviour metric:{metric}=VALUE gives its value"
        )
    }));
    notes
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
