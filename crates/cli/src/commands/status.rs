//! `status`: how does a rollout stand, and how does it end?

use std::time::Duration;

use anyhow::{Context, bail};
use clap::{ArgAction, Args};
use futures::StreamExt;
use gradus_api::decode::decode;
use gradus_api::names::phase;
use gradus_api::values::parse_go_duration;
use gradus_engine::{kinds, view};
use serde_json::Value;
use tokio::time::Instant;

use super::get::until;
use crate::cluster::{Cluster, Refusal, Scope, WatchEvent};
use crate::near;
use crate::output;
use gradus_controller::stop::Stop;

/// Show how a rollout stands, until it is healthy or degraded
///
/// The exit code is 0 when it is healthy, 1 when it is degraded or the time is over.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Name of the rollout
    name: String,
    /// Follow it to its end
    #[arg(long, short, default_value = "true", default_missing_value = "true")]
    #[arg(num_args = 0..=1, require_equals = true, action = ArgAction::Set)]
    #[arg(value_name = "BOOL", hide_possible_values = true)]
    watch: bool,
    /// Give up after this time, as 10s or 5m; 0 waits for ever
    #[arg(long, short, value_name = "DURATION", default_value = "0s")]
    timeout: String,
    /// A pause is an end too, with exit code 0
    #[arg(long)]
    success_on_pause: bool,
}

/// Prints how it stands, and again whenever that changes.
pub async fn run(arguments: &Arguments, cluster: &Cluster) -> anyhow::Result<()> {
    let end = end(&arguments.timeout)?;
    let Arguments { name, watch, .. } = arguments;
    if !watch {
        let standing = match cluster.get(&kinds::ROLLOUT, name).await {
            Ok(rollout) => StatusSummary::of(&rollout),
            Err(Refusal::NotFound(_)) => {
                return Err(near::absent(cluster, &kinds::ROLLOUT, name).await);
            }
            Err(refusal) => return Err(refusal.into()),
        };
        let is_end = [phase::HEALTHY, phase::DEGRADED].contains(&standing.phase.as_str());
        let StatusSummary { phase, message, .. } = &standing;
        let text = if is_end { phase.clone() } else { format!("{phase} - {message}") };
        output::print(&format!("{text}\n"))?;
        return standing.verdict(arguments).unwrap_or(Ok(()));
    }
    let mut stop = Stop::listen()?;
    let following = follow(cluster, name, |standing, is_new| {
        let told = if is_new { output::print(&format!("{}\n", standing.text())) } else { Ok(()) };
        told.map_err(Into::into).err().map(Err).or_else(|| standing.verdict(arguments))
    });
    tokio::select! {
        verdict = following => verdict?,
        () = until(end) => bail!("Rollout status watch exceeded timeout"),
        () = stop.asked() => bail!("Rollout status watch exceeded timeout"),
    }
}

/// When the time is over.
pub fn end(timeout: &str) -> anyhow::Result<Option<Instant>> {
    let length = parse_go_duration(timeout).context("--timeout")?;
    let length = Duration::try_from(length).context("--timeout is below zero")?;
    Ok((!length.is_zero()).then(|| Instant::now() + length))
}

/// Tells of every sight of a rollout until something comes of it. Missing at first is an error.
pub async fn follow<T>(
    cluster: &Cluster,
    name: &str,
    mut look: impl FnMut(&StatusSummary, bool) -> Option<T>,
) -> anyhow::Result<T> {
    let mut events = cluster.watch(&kinds::ROLLOUT, Scope::named(name));
    let mut last = None;
    loop {
        let event = events.next().await.context("the watch ended")?;
        match event {
            Ok(WatchEvent::Applied(rollout)) => {
                let standing = StatusSummary::of(&rollout);
                let text = standing.text();
                let is_new = last.as_ref() != Some(&text);
                if let Some(verdict) = look(&standing, is_new) {
                    return Ok(verdict);
                }
                last = Some(text);
            }
            Ok(WatchEvent::Synced(names)) if names.is_empty() => {
                return Err(near::absent(cluster, &kinds::ROLLOUT, name).await);
            }
            Ok(WatchEvent::Deleted(_)) => bail!("{}", near::said(&kinds::ROLLOUT, name)),
            Ok(WatchEvent::Synced(_)) => {}
            Err(refusal) if last.is_none() => return Err(refusal.into()),
            Err(refusal) => output::warn(&format!("warning: {refusal}; trying again")),
        }
    }
}

/// How a rollout stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusSummary {
    /// Its phase.
    pub phase: String,
    /// Why.
    pub message: String,
    /// Is its update given up?
    pub is_aborted: bool,
    /// Is the newest revision the stable one?
    pub is_promoted: bool,
}

impl StatusSummary {
    fn of(rollout: &Value) -> Self {
        let spec = decode(&rollout["spec"]).0;
        let status: gradus_api::RolloutStatus = decode(&rollout["status"]).0;
        let generation = rollout["metadata"]["generation"].as_i64().unwrap_or(0);
        let (phase, message) = view::phase(generation, &spec, &status);
        let observed: Option<i64> = status.observed_generation.parse().ok();
        let is_observed = observed.is_some_and(|observed| observed >= generation);
        StatusSummary {
            phase,
            message,
            is_aborted: status.abort,
            is_promoted: is_observed
                && !status.stable_rs.is_empty()
                && status.stable_rs == status.current_pod_hash,
        }
    }

    /// Phase, and why.
    pub fn text(&self) -> String {
        if self.message.is_empty() {
            self.phase.clone()
        } else {
            format!("{} - {}", self.phase, self.message)
        }
    }

    /// What the command comes to, if it has come to its end.
    fn verdict(&self, arguments: &Arguments) -> Option<anyhow::Result<()>> {
        match self.phase.as_str() {
            phase::HEALTHY => Some(Ok(())),
            phase::DEGRADED => Some(Err(anyhow::anyhow!(
                "The rollout is in a degraded state with message: {}",
                self.message
            ))),
            phase::PAUSED if arguments.success_on_pause => Some(Ok(())),
            _ => None,
        }
    }
}
