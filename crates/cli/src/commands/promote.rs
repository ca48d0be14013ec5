//! `promote`: go on with an update.

use clap::Args;
use gradus_engine::command::Command;

use super::wish::carry_out;
use crate::cluster::Cluster;
use crate::output;

/// Promote a rollout: end its pause, or skip its current step
#[derive(Debug, Args)]
pub struct Arguments {
    /// Name of the rollout
    name: String,
    /// Skip all steps, pauses and analysis that are left
    #[arg(long)]
    full: bool,
    /// Deprecated: use without the flag
    #[arg(long, short = 'c', hide = true)]
    skip_current_step: bool,
    /// Deprecated: use --full
    #[arg(long, short = 'a', hide = true)]
    skip_all_steps: bool,
}

/// Promotes it.
pub async fn run(arguments: &Arguments, cluster: &Cluster) -> anyhow::Result<()> {
    let Arguments { name, full, skip_current_step, skip_all_steps } = arguments;
    if *skip_current_step {
        output::warn(
            "Flag --skip-current-step has been deprecated, use without the flag instead ex: \
             promote ROLLOUT_NAME",
        );
    }
    if *skip_all_steps {
        output::warn("Flag --skip-all-steps has been deprecated, use --full instead");
    }
    let command = match (skip_current_step, skip_all_steps, full) {
        (true, true, _) => {
            anyhow::bail!("Cannot use skip-current-step and skip-all-steps flags at the same time")
        }
        (true, false, _) => Command::SkipStep,
        (false, true, _) => Command::SkipAllSteps,
        (false, false, true) => Command::PromoteFull,
        (false, false, false) => Command::Promote,
    };
    carry_out(cluster, name, command).await?;
    let done = if *full { "fully promoted" } else { "promoted" };
    Ok(output::say(&format!("rollout '{name}' {done}"))?)
}
