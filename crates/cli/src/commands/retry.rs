//! `retry`: try an aborted update, or an Experiment, once more.

use clap::{Args, Subcommand};
use gradus_engine::command::{Command, retry_experiment};
use gradus_engine::kinds;

use super::wish::{Names, carry_out_on};
use crate::cluster::Cluster;
use crate::{near, output};

/// Retry a rollout or an experiment
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Retry an aborted update from its first step
    #[command(visible_aliases = ["ro", "rollouts"])]
    Rollout(Names),
    /// Run an experiment again
    #[command(visible_aliases = ["exp", "experiments"])]
    Experiment(Names),
}

/// Retries them, one after the other.
pub async fn run(arguments: &Arguments, cluster: &Cluster) -> anyhow::Result<()> {
    match &arguments.what {
        What::Rollout(names) => carry_out_on(cluster, names, Command::Retry, "retried").await,
        What::Experiment(Names { names }) => {
            for name in names {
                near::merge(cluster, &kinds::EXPERIMENT, name, &retry_experiment()).await?;
                output::say(&format!("experiment '{name}' retried"))?;
            }
            Ok(())
        }
    }
}
