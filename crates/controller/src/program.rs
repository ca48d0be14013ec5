//! How does a program look after a cluster, from its ports to its end? The same for every engine.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};
use gradus_api::validate::dns_label_errors;
use gradus_api::values::parse_go_duration;
use tokio::net::TcpListener;

use crate::ask::{AddressPolicy, HttpClient, HttpClientError, Network};
use crate::clock::Clock;
use crate::connect::{ConnectError, ConnectionFlags, placed, reach};
use crate::engines::Engines;
use crate::health::{DebugToken, DebugTokenError, Health, serve_health, serve_metrics};
use crate::kube_cluster::REQUEST_LIMIT;
use crate::plugins::Plugins;
use crate::production::{Parts, control};
use crate::rate::Rate;
use crate::run::Settings;
use crate::stop::Stop;
use crate::telemetry::{LoggingError, Metrics, start_logging};
use crate::watched::Scope;

/// The flags that every controller has, as Argo Rollouts names them.
#[derive(Debug, Args)]
pub struct Flags {
    /// Look after one namespace alone: the connection's
    #[arg(long, default_value = "false", default_missing_value = "true")]
    #[arg(num_args = 0..=1, require_equals = true, action = ArgAction::Set)]
    #[arg(value_name = "BOOL", hide_possible_values = true)]
    namespaced: bool,
    /// Look after these namespaces alone, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = namespace_name)]
    #[arg(conflicts_with = "namespaced")]
    namespaces: Vec<String>,
    /// Port of /metrics
    #[arg(long = "metricsPort", alias = "metricsport", value_name = "PORT")]
    #[arg(default_value = "8090")]
    metrics_port: u16,
    /// Port of /healthz, /readyz and, where it is switched on, /debug/world
    #[arg(long = "healthzPort", value_name = "PORT", default_value = "8080")]
    healthz_port: u16,
    /// Serve /debug/world on the health port, to those who name the token
    #[arg(long = "debug-world", requires = "debug_world_token_file")]
    debug_world: bool,
    /// File with the token that opens /debug/world
    #[arg(long = "debug-world-token-file", value_name = "FILE")]
    debug_world_token_file: Option<PathBuf>,
    /// How long writes and Events under way may hold up the end of the program
    #[arg(long = "shutdown-grace", value_name = "DURATION", default_value = "10s")]
    #[arg(value_parser = duration)]
    shutdown_grace: Duration,
    /// Requests per second to the API server, per group of kinds
    #[arg(long, default_value = "40")]
    qps: f64,
    /// Requests at once after a quiet time, per group of kinds
    #[arg(long, default_value = "80")]
    burst: u32,
    /// Networks that metric requests may go to although they are loopback, link-local or the API
    /// server's, as 127.0.0.0/8
    #[arg(long = "metric-allow", value_name = "CIDR", value_delimiter = ',')]
    metric_allow: Vec<Network>,
    /// error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    loglevel: String,
    /// text or json
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    logformat: String,
    /// How much the libraries below log: 0 for nothing, 1 for what they inform of, 4 to debug
    #[arg(long, value_name = "LEVEL", default_value = "0", allow_negative_numbers = true)]
    kloglevel: i32,
    #[command(flatten)]
    connection: ConnectionFlags,
}

/// Why it could not start.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// A port is taken, or not allowed.
    #[error("cannot listen on port {port} ({flag} chooses another): {reason}")]
    Port {
        /// The port.
        port: u16,
        /// What chooses another one.
        flag: &'static str,
        /// In the system's words.
        reason: io::Error,
    },
    /// There is no cluster to connect to.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// Signals or ports of the system.
    #[error(transparent)]
    System(#[from] io::Error),
    /// Nobody could be let in to /debug/world.
    #[error(transparent)]
    DebugToken(#[from] DebugTokenError),
    /// No request can be sent to metric providers.
    #[error(transparent)]
    Http(#[from] HttpClientError),
}

impl Flags {
    /// Starts logging: the first thing to do.
    pub fn start_logging(&self) -> Result<(), LoggingError> {
        start_logging(&self.loglevel, self.logformat.parse()?, self.kloglevel)
    }

    /// Says of a flag that is set and has no effect, why.
    fn say_unused(&self) {
        if self.connection.request_timeout().is_some_and(|limit| limit != "0") {
            let limit = REQUEST_LIMIT.as_secs();
            tracing::info!(
                "--request-timeout has no effect: every request is given {limit} s, so that it ends \
                 before another controller can lead"
            );
        }
    }

    /// The namespaces to look after; none for all.
    fn namespaces(&self, of_connection: &str) -> Vec<String> {
        if self.namespaced {
            return vec![self.connection.namespace().unwrap_or(of_connection).to_owned()];
        }
        let mut namespaces = self.namespaces.clone();
        namespaces.sort();
        namespaces.dedup();
        namespaces
    }

    /// Logs what the program manages, and runs its engines until it is asked to end. The
    /// settings' namespace is the one of the flags.
    pub fn run(
        self,
        engines: &Engines,
        title: &str,
        settings: Settings,
    ) -> Result<(), ProgramError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(self.serve(engines, title, settings))
    }

    async fn serve(
        self,
        engines: &Engines,
        title: &str,
        settings: Settings,
    ) -> Result<(), ProgramError> {
        let mut stop = Stop::listen()?;
        let file = self.debug_world_token_file.as_deref().filter(|_| self.debug_world);
        let debug_token = file.map(DebugToken::read).transpose()?;
        let (health, worlds) = Health::new();
        let metrics = Metrics::new();
        let clock = Clock::system();
        let health_port = listen(self.healthz_port, "--healthzPort").await?;
        let metrics_port = listen(self.metrics_port, "--metricsPort").await?;
        let connection = self.connection.of_controller().await?;
        tracing::info!("{title} of {}", connection.server);
        self.say_unused();
        let ports = (health_port.local_addr()?.port(), metrics_port.local_addr()?.port());
        tracing::info!("health on port {}, metrics on port {}", ports.0, ports.1);
        spawn("health", serve_health(health_port, health.clone(), debug_token));
        spawn("metrics", serve_metrics(metrics_port, metrics.clone(), clock.clone()));
        let server = tokio::select! {
            server = reach(&connection) => server,
            () = stop.asked() => return Ok(()),
        };
        if !server.is_ready {
            settings.outage.was_away();
        }
        let clock = match server.time {
            Some(time) => clock.not_before(time),
            None => clock,
        };
        let home = Some(connection.namespace.clone());
        let namespaces = self.namespaces(&connection.namespace);
        let scope = Scope { namespaces, ..settings.scope };
        let settings = Settings { scope, shutdown_grace: self.shutdown_grace, ..settings };
        let rate = Rate { per_second: self.qps, burst: self.burst };
        let client = placed(connection.client, &settings.places);
        let api_server = addresses(&connection.server).await;
        let http = Some(HttpClient::new(AddressPolicy { allow: self.metric_allow, api_server })?);
        let plugins = Some(Plugins::of_this_pod());
        let parts =
            Parts { client, http, home, plugins, rate, clock, metrics, health, worlds, settings };
        control(engines, parts, async {
            stop.asked().await;
            tracing::info!("asked to stop: finishing the work under way");
        })
        .await;
        tracing::info!("stopped");
        Ok(())
    }
}

/// A namespace as a flag names it.
fn namespace_name(text: &str) -> Result<String, String> {
    let wrong = dns_label_errors(text);
    match wrong.first() {
        Some(wrong) => Err(format!("{text:?} is no namespace: {wrong}")),
        None => Ok(text.to_owned()),
    }
}

/// A duration as Go writes it.
fn duration(text: &str) -> Result<Duration, String> {
    let read = parse_go_duration(text).map_err(|error| error.to_string())?;
    Duration::try_from(read).map_err(|_| "must not be negative".to_owned())
}

/// The addresses of the API server; none where its name cannot be resolved.
async fn addresses(server: &str) -> Vec<IpAddr> {
    let uri: http::Uri = server.parse().unwrap_or_default();
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    match tokio::net::lookup_host((host.as_str(), 0)).await {
        Ok(found) => found.map(|address| address.ip().to_canonical()).collect(),
        Err(error) => {
            tracing::warn!("the address of the API server is not known: {error}");
            Vec::new()
        }
    }
}

/// Serves a port beside the loop.
fn spawn(what: &'static str, serving: impl Future<Output = io::Result<()>> + Send + 'static) {
    tokio::spawn(async move {
        if let Err(error) = serving.await {
            tracing::error!("the {what} port is no longer served: {error}");
        }
    });
}

/// Listens on all addresses, of both families where the machine has them.
async fn listen(port: u16, flag: &'static str) -> Result<TcpListener, ProgramError> {
    let both = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).await;
    let listener = match both {
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await
        }
        both => both,
    };
    listener.map_err(|reason| ProgramError::Port { port, flag, reason })
}
