//! `retry`: try an aborted update, or an Experiment, once more.

use clap::{Args, Subcommand};
use gradus_engine::command::Command;
use gradus_engine::kinds;
use serde_json::json;

use super::wish::carry_out;
use crate::cluster::{Cluster, Part, PatchKind};
use crate::near;

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

#[derive(Debug, Args)]
struct Names {
    /// Names
    #[arg(required = true)]
    names: Vec<String>,
}

/// Retries them, one after the other.
pub async fn run(arguments: &Arguments, cluster: &Cluster) -> anyhow::Result<()> {
    match &arguments.what {
        What::Rollout(Names { names }) => {
            for name in names {
                carry_out(cluster, name, Command::Retry).await?;
                println!("rollout '{name}' retried");
            }
        }
        What::Experiment(Names { names }) => {
            for name in names {
                let body = json!({ "status": null });
                let merge = (PatchKind::Merge, &body);
                let kind = &kinds::EXPERIMENT;
                if let Err(refusal) = cluster.patch(kind, name, Part::Main, merge).await {
                    return Err(near::explained(cluster, kind, name, refusal).await);
                }
                println!("experiment '{name}' retried");
            }
        }
    }
    Ok(())
}
