//! `database-operator`: the smallest complete controller on Gradus' loop. A Database becomes a
//! Secret, a Service and a StatefulSet that runs PostgreSQL.
//!
//! Read in this order: what a user writes (`api`), whether it may be carried out (`accept`), which
//! objects it asks for (`children`), the decision (`engine`), what is watched for it (`watched`);
//! this file hands all of that to the loop.

mod accept;
mod api;
mod children;
mod demo;
mod engine;
#[cfg(test)]
mod stories;
mod watched;

use std::net::Ipv4Addr;
use std::path::PathBuf;

use clap::{Parser, Subcommand};
use gradus_controller::clock::Clock;
use gradus_controller::connect::{connect, reach};
use gradus_controller::health::{Health, serve_health, serve_metrics};
use gradus_controller::production::{Parts, control};
use gradus_controller::rate::Rate;
use gradus_controller::run::Settings;
use gradus_controller::stop::Stop;
use gradus_controller::telemetry::{LogFormat, Metrics, start_logging};
use tokio::net::TcpListener;

use crate::engine::Databases;

/// Requests per second to the API server, and at once after a quiet time.
const RATE: Rate = Rate { per_second: 40.0, burst: 80 };

/// PostgreSQL databases as Kubernetes objects
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show the life of a Database on an embedded cluster, without Kubernetes
    Demo,
    /// Look after the Databases of a cluster
    Controller(Controller),
}

#[derive(Debug, clap::Args)]
struct Controller {
    /// Path of a kubeconfig; without it the pod's own account, or else $KUBECONFIG
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// Look after one namespace alone
    #[arg(long)]
    namespaced: bool,
    /// The namespace, where it is not the kubeconfig's
    #[arg(long)]
    namespace: Option<String>,
    /// Port of /healthz, /readyz and /debug/world
    #[arg(long = "healthzPort", default_value = "8080")]
    healthz_port: u16,
    /// Port of /metrics
    #[arg(long = "metricsPort", default_value = "8090")]
    metrics_port: u16,
}

fn main() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match Arguments::parse().command {
        Command::Controller(arguments) => runtime.block_on(serve(arguments)),
        Command::Demo => runtime.block_on(demo::play()),
    }
}

async fn serve(arguments: Controller) -> anyhow::Result<()> {
    start_logging("info", LogFormat::Text)?;
    let mut stop = Stop::listen()?;
    let (metrics, (health, worlds)) = (Metrics::new(), Health::new());
    let health_port = TcpListener::bind((Ipv4Addr::UNSPECIFIED, arguments.healthz_port)).await?;
    let metrics_port = TcpListener::bind((Ipv4Addr::UNSPECIFIED, arguments.metrics_port)).await?;
    tokio::spawn(serve_health(health_port, health.clone()));
    tokio::spawn(serve_metrics(metrics_port, metrics.clone(), Clock::system()));
    let connection = connect(arguments.kubeconfig.as_deref()).await?;
    tracing::info!("looking after the Databases of {}", connection.server);
    let server = tokio::select! {
        server = reach(&connection) => server,
        () = stop.asked() => return Ok(()),
    };
    let clock = server.time.map_or(Clock::system(), |time| Clock::system().not_before(time));
    let namespace = arguments.namespace.unwrap_or(connection.namespace);
    let namespace = arguments.namespaced.then_some(namespace);
    let settings = Settings { namespace, ..Settings::default() };
    let client = connection.client;
    let parts = Parts { client, rate: RATE, clock, metrics, health, worlds, settings };
    control::<Databases>(parts, stop.asked()).await;
    Ok(())
}
