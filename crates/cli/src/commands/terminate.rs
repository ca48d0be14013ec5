//! `terminate`: end an AnalysisRun or an Experiment now.

use clap::{Args, Subcommand};
use gradus_engine::{command, kinds};

use super::wish::Names;
use crate::cluster::Cluster;
use crate::{near, output};

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

/// Terminates them, one after the other.
pub async fn run(arguments: &Arguments, cluster: &Cluster) -> anyhow::Result<()> {
    let (kind, called, names) = match &arguments.what {
        What::AnalysisRun(Names { names }) => (&kinds::ANALYSIS_RUN, "analysisRun", names),
        What::Experiment(Names { names }) => (&kinds::EXPERIMENT, "experiment", names),
    };
    for name in names {
        near::merge(cluster, kind, name, &command::terminate()).await?;
        output::say(&format!("{called} '{name}' terminated"))?;
    }
    Ok(())
}
