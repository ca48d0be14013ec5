//! `terminate`: end an AnalysisRun or an Experiment now.

use clap::{Args, Subcommand};
use gradus_engine::kinds;
use serde_json::json;

use crate::cluster::{Cluster, Part, PatchKind};
use crate::near;

/// Terminate an analysis run or an experiment
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// End an analysis run now
    #[command(name = "analysisrun", visible_aliases = ["ar", "analysisruns"])]
    AnalysisRun(Names),
    /// End an experiment now
    #[command(visible_aliases = ["exp", "experiments"])]
    Experiment(Names),
}

#[derive(Debug, Args)]
struct Names {
    /// Names
    #[arg(required = true)]
    names: Vec<String>,
}

/// Terminates them, one after the other.
pub async fn run(arguments: &Arguments, cluster: &Cluster) -> anyhow::Result<()> {
    let (kind, called, names) = match &arguments.what {
        What::AnalysisRun(Names { names }) => (&kinds::ANALYSIS_RUN, "analysisRun", names),
        What::Experiment(Names { names }) => (&kinds::EXPERIMENT, "experiment", names),
    };
    let body = json!({ "spec": { "terminate": true } });
    for name in names {
        let merge = (PatchKind::Merge, &body);
        if let Err(refusal) = cluster.patch(kind, name, Part::Main, merge).await {
            return Err(near::explained(cluster, kind, name, refusal).await);
        }
        println!("{called} '{name}' terminated");
    }
    Ok(())
}
