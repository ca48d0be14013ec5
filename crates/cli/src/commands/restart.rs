//! `restart`: replace all pods of a rollout, a few at a time.

use anyhow::Context;
use clap::Args;
use gradus_api::values::parse_go_duration;
use gradus_engine::command::Command;
use jiff::Timestamp;

use super::wish::carry_out;
use crate::cluster::Cluster;
use crate::output;

/// Restart the pods of a rollout
#[derive(Debug, Args)]
pub struct Arguments {
    /// Name of the rollout
    name: String,
    /// Time before the restart, as 10s or 1h30m
    #[arg(long = "in", short, value_name = "DURATION", default_value = "0s")]
    r#in: String,
}

/// Asks for the restart.
pub async fn run(arguments: &Arguments, cluster: &Cluster) -> anyhow::Result<()> {
    let Arguments { name, r#in } = arguments;
    let delay = parse_go_duration(r#in).context("--in")?;
    let at = Timestamp::now().checked_add(delay).context("--in")?;
    carry_out(cluster, name, Command::Restart(at)).await?;
    Ok(output::say(&format!("rollout '{name}' restarts in {in}"))?)
}
