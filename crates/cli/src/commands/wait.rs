//! `wait`: until a rollout stands as wanted.

use anyhow::bail;
use clap::{Args, ValueEnum};
use gradus_api::names::phase;

use super::get::until;
use super::status::{StatusSummary, end, follow};
use crate::cluster::Cluster;
use crate::output;

/// Wait until rollouts stand as wanted
///
/// The exit code is 0 when all of them do, 1 when the time is over.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Names of rollouts
    #[arg(required = true)]
    names: Vec<String>,
    /// What to wait for
    #[arg(long = "for", value_name = "STATE", value_enum)]
    wanted: Wanted,
    /// Give up after this time, as 30s or 5m; 0 waits for ever
    #[arg(long, short, value_name = "DURATION", default_value = "0s")]
    timeout: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Wanted {
    /// Its phase is Healthy
    Healthy,
    /// Its phase is Paused
    Paused,
    /// Its update was aborted
    Aborted,
    /// Its newest revision is the stable one
    Promoted,
}

impl Wanted {
    fn holds(self, standing: &StatusSummary) -> bool {
        match self {
            Wanted::Healthy => standing.phase == phase::HEALTHY,
            Wanted::Paused => standing.phase == phase::PAUSED,
            Wanted::Aborted => standing.is_aborted,
            Wanted::Promoted => standing.is_promoted,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Wanted::Healthy => "healthy",
            Wanted::Paused => "paused",
            Wanted::Aborted => "aborted",
            Wanted::Promoted => "promoted",
        }
    }
}

/// Waits for one rollout after the other.
pub async fn run(arguments: &Arguments, cluster: &Cluster) -> anyhow::Result<()> {
    let end = end(&arguments.timeout)?;
    let wanted = arguments.wanted;
    for name in &arguments.names {
        let mut last = String::new();
        let following = follow(cluster, name, |standing, _| {
            last = standing.text();
            wanted.holds(standing).then_some(())
        });
        let is_reached = tokio::select! {
            reached = following => reached.map(|()| true)?,
            () = until(end) => false,
        };
        if !is_reached {
            bail!("rollout '{name}' is not {} in time; it is {last}", wanted.name());
        }
        output::say(&format!("rollout '{name}' {}", wanted.name()))?;
    }
    Ok(())
}
