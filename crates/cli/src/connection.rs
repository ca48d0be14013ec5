//! Which cluster is meant, as whom, and which namespace? The flags that all commands share.

use std::time::Duration;

use anyhow::Context;
use clap::Args;
use gradus_api::values::parse_go_duration;
use gradus_controller::connect::ConnectionFlags;

use crate::cluster::Cluster;

/// How long a request may take where no flag says: somebody is waiting for it.
const REQUEST_LIMIT: Duration = Duration::from_secs(30);

/// The connection flags of kubectl; before or after the command's own.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Connection")]
pub struct Connection {
    #[command(flatten)]
    flags: ConnectionFlags,
    /// Accepted for scripts that set it
    #[arg(long, short = 'v', global = true, value_name = "LEVEL", hide = true)]
    kloglevel: Option<i32>,
    /// error, warn, info or debug: how much is said on standard error
    #[arg(long, global = true, value_name = "LEVEL", hide_short_help = true)]
    loglevel: Option<String>,
}

impl Connection {
    /// The cluster that the flags name. It need not be there.
    pub async fn open(&self) -> anyhow::Result<Cluster> {
        if let Some(level) = self.loglevel.as_deref().filter(|level| *level != "info") {
            gradus_controller::telemetry::start_logging(level, Default::default(), 0)?;
        }
        let connection = self.flags.of_person().await?;
        let namespace = self.namespace().map_or(connection.namespace, str::to_owned);
        Ok(Cluster::new(connection.client, namespace, connection.server, self.limit()?))
    }

    /// The namespace that a flag names.
    pub fn namespace(&self) -> Option<&str> {
        self.flags.namespace()
    }

    fn limit(&self) -> anyhow::Result<Option<Duration>> {
        let Some(text) = self.flags.request_timeout() else { return Ok(Some(REQUEST_LIMIT)) };
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        let text = if is_number { format!("{text}s") } else { text.to_owned() };
        let limit = parse_go_duration(&text).context("--request-timeout")?;
        let limit = Duration::try_from(limit).context("--request-timeout is below zero")?;
        Ok(Some(limit).filter(|limit| !limit.is_zero()))
    }
}
