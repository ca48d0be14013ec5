//! `pause`: halt a rollout.

use clap::Args;
use gradus_engine::command::Command;

use super::wish::{Names, carry_out_on};
use crate::cluster::Cluster;

/// Pause a rollout until it is promoted
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    rollouts: Names,
}

/// Pauses them, one after the other.
pub async fn run(arguments: &Arguments, cluster: &Cluster) -> anyhow::Result<()> {
    carry_out_on(cluster, &arguments.rollouts, Command::Pause, "paused").await
}
