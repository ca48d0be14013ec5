//! `pause`: halt a rollout.

use clap::Args;
use gradus_engine::command::Command;

use super::wish::carry_out;
use crate::cluster::Cluster;

/// Pause a rollout until it is promoted
#[derive(Debug, Args)]
pub struct Arguments {
    /// Names of rollouts
    #[arg(required = true)]
    names: Vec<String>,
}

/// Pauses them, one after the other.
pub async fn run(arguments: &Arguments, cluster: &Cluster) -> anyhow::Result<()> {
    for name in &arguments.names {
        carry_out(cluster, name, Command::Pause).await?;
        println!("rollout '{name}' paused");
    }
    Ok(())
}
