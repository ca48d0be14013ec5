//! `abort`: give an update up.

use clap::Args;
use gradus_engine::command::Command;

use super::wish::{Names, carry_out_on};
use crate::cluster::Cluster;

/// Abort an update: back to the stable version
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    rollouts: Names,
}

/// Aborts them, one after the other.
pub async fn run(arguments: &Arguments, cluster: &Cluster) -> anyhow::Result<()> {
    carry_out_on(cluster, &arguments.rollouts, Command::Abort, "aborted").await
}
