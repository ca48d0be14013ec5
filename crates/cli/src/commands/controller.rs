//! `gradus controller`: runs the controller against a cluster, with the flags of Argo Rollouts.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{ArgAction, Args, ValueEnum};
use gradus_controller::clock::Clock;
use gradus_controller::connect::{Connection, connect, reach};
use gradus_controller::health::{Health, serve_health, serve_metrics};
use gradus_controller::production::{Parts, control};
use gradus_controller::rate::Rate;
use gradus_controller::run::Settings;
use gradus_controller::shell::InterlockMode;
use gradus_controller::stop::Stop;
use gradus_controller::telemetry::{Metrics, start_logging};
use gradus_engine::rollout::Rollouts;
use tokio::net::TcpListener;

/// Run the controller against a cluster
#[derive(Debug, Args)]
#[command(rename_all = "kebab-case")]
pub struct Arguments {
    /// Path of a kubeconfig; without it the pod's own account, or else $KUBECONFIG
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Look after one namespace alone
    #[arg(long, default_value = "false", default_missing_value = "true")]
    #[arg(num_args = 0..=1, require_equals = true, action = ArgAction::Set)]
    #[arg(value_name = "BOOL", hide_possible_values = true)]
    namespaced: bool,
    /// The namespace, where it is not the kubeconfig's
    #[arg(long, short)]
    namespace: Option<String>,
    /// Only objects labelled with this instance id; empty for those without
    #[arg(long, default_value = "")]
    instance_id: String,
    /// Port of /metrics
    #[arg(
        long = "metricsPort",
        alias = "metricsport",
        value_name = "PORT",
        default_value = "8090"
    )]
    metrics_port: u16,
    /// Port of /healthz, /readyz and /debug/world
    #[arg(long = "healthzPort", value_name = "PORT", default_value = "8080")]
    healthz_port: u16,
    /// Requests per second to the API server, per group of kinds
    #[arg(long, default_value = "40")]
    qps: f64,
    /// Requests at once after a quiet time, per group of kinds
    #[arg(long, default_value = "80")]
    burst: u32,
    /// error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    loglevel: String,
    /// text or json
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    logformat: String,
    /// Let one of several controllers act; not there yet
    #[arg(long, default_value = "false", default_missing_value = "true")]
    #[arg(num_args = 0..=1, require_equals = true, action = ArgAction::Set)]
    #[arg(value_name = "BOOL", hide_possible_values = true)]
    leader_elect: bool,
    /// What happens to a write that would break an invariant: enforce holds it, warn tells of it
    #[arg(long, value_name = "MODE", default_value = "enforce")]
    interlock: Interlock,
    /// Decide and print, never write
    #[arg(long, default_value = "false", default_missing_value = "true")]
    #[arg(num_args = 0..=1, require_equals = true, action = ArgAction::Set)]
    #[arg(value_name = "BOOL", hide_possible_values = true)]
    dry_run: bool,
}

/// The values of `--interlock`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Interlock {
    Enforce,
    Warn,
}

impl From<Interlock> for InterlockMode {
    fn from(value: Interlock) -> Self {
        match value {
            Interlock::Enforce => InterlockMode::Enforce,
            Interlock::Warn => InterlockMode::Warn,
        }
    }
}

/// Flags of Argo Rollouts that have no counterpart here yet. They are refused, not ignored: who
/// sets one relies on it.
const NOT_YET: [&str; 41] = [
    "--alb-ingress-classes",
    "--alb-tag-key-resource-id",
    "--alb-verify-weight",
    "--ambassador-api-version",
    "--analysis-threads",
    "--appmesh-crd-version",
    "--as",
    "--as-group",
    "--as-uid",
    "--aws-target-group-binding-api-version",
    "--aws-verify-target-group",
    "--certificate-authority",
    "--client-certificate",
    "--client-key",
    "--cluster",
    "--context",
    "--controllers",
    "--enable-pprof-address",
    "--ephemeral-metadata-threads",
    "--ephemeral-metadata-update-pod-retries",
    "--experiment-threads",
    "--ingress-api-version",
    "--ingress-threads",
    "--insecure-skip-tls-verify",
    "--istio-api-version",
    "--kloglevel",
    "--leader-election-lease-duration",
    "--leader-election-renew-deadline",
    "--leader-election-retry-period",
    "--nginx-ingress-classes",
    "--request-timeout",
    "--rollout-resync",
    "--rollout-threads",
    "--self-service-notification-enabled",
    "--server",
    "--service-threads",
    "--token",
    "--traefik-api-group",
    "--traefik-api-version",
    "--traffic-split-api-version",
    "--user",
];

/// The flag of Argo Rollouts that an argument sets and this version does not have.
pub fn missing_flag(argument: &str) -> Option<&'static str> {
    let name = argument.split_once('=').map_or(argument, |(name, _)| name);
    NOT_YET.into_iter().find(|flag| *flag == name)
}

/// Runs the controller until it is asked to end.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    start_logging(&arguments.loglevel, arguments.logformat.parse()?)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(arguments))?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(arguments: Arguments) -> anyhow::Result<()> {
    let mut stop = Stop::listen()?;
    let (health, worlds) = Health::new();
    let metrics = Metrics::new();
    let health_port = listen(arguments.healthz_port, "--healthzPort").await?;
    let metrics_port = listen(arguments.metrics_port, "--metricsPort").await?;
    if arguments.leader_elect {
        tracing::warn!("leader election is not there yet: run one controller; going on without");
    }
    let connection = connect(arguments.kubeconfig.as_deref()).await?;
    announce(&arguments, &connection);
    let (health_at, metrics_at) = (health_port.local_addr()?, metrics_port.local_addr()?);
    tracing::info!("health on port {}, metrics on port {}", health_at.port(), metrics_at.port());
    spawn("health", serve_health(health_port, health.clone()));
    spawn("metrics", serve_metrics(metrics_port, metrics.clone(), Clock::system()));
    let server = tokio::select! {
        server = reach(&connection) => server,
        () = stop.asked() => return Ok(()),
    };
    let clock = Clock::system();
    let clock = server.time.map_or(clock, |time| clock.not_before(time));
    let rate = Rate { per_second: arguments.qps, burst: arguments.burst };
    let settings = settings(arguments, &connection);
    let client = connection.client;
    let parts = Parts { client, rate, clock, metrics, health, worlds, settings };
    control::<Rollouts>(parts, async {
        stop.asked().await;
        tracing::info!("asked to stop: finishing the work under way");
    })
    .await;
    tracing::info!("stopped");
    Ok(())
}

/// Serves a port beside the loop.
fn spawn(what: &'static str, serving: impl Future<Output = io::Result<()>> + Send + 'static) {
    tokio::spawn(async move {
        if let Err(error) = serving.await {
            tracing::error!("the {what} port is no longer served: {error}");
        }
    });
}

fn settings(arguments: Arguments, connection: &Connection) -> Settings {
    let namespace = arguments.namespace.unwrap_or_else(|| connection.namespace.clone());
    Settings {
        namespace: arguments.namespaced.then_some(namespace),
        instance_id: arguments.instance_id,
        dry_run: arguments.dry_run,
        interlock: arguments.interlock.into(),
        ..Settings::default()
    }
}

fn announce(arguments: &Arguments, connection: &Connection) {
    let version = env!("CARGO_PKG_VERSION");
    let writes = if arguments.dry_run { ", dry run: nothing is written" } else { "" };
    tracing::info!("gradus {version} looks after rollouts of {}{writes}", connection.server);
}

/// Listens on all addresses, of both families where the machine has them.
async fn listen(port: u16, flag: &str) -> anyhow::Result<TcpListener> {
    let both = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).await;
    let listener = match both {
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await
        }
        both => both,
    };
    listener.with_context(|| format!("cannot listen on port {port} ({flag} chooses another)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_argo_rollouts_that_are_missing_are_known_in_both_forms() {
        assert_eq!(missing_flag("--rollout-threads=4"), Some("--rollout-threads"));
        assert_eq!(missing_flag("--context"), Some("--context"));
        assert_eq!(missing_flag("--qps"), None);
        assert!(NOT_YET.is_sorted());
    }
}
