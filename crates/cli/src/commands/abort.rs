//! `abort`: give an update up.

use clap::Args;
use gradus_engine::command::Command;

use super::wish::carry_out;
use crate::cluster::Cluster;

/// Abort an update: back to the stable version
#[derive(Debug, Args)]
pub struct Arguments {
    /// Names of rollouts
    #[arg(required = true)]
    names: Vec<String>,
}

/// Aborts them, one after the other.
pub async fn run(arguments: &Arguments, cluster: &Cluster) -> anyhow::Result<()> {
    for name in &arguments.names {
        carry_out(cluster, name, Command::Abort).await?;
        println!("rollout '{name}' aborted");
    }
    Ok(())
}
