//! What stands in front of the pods: which data plane it is, how it starts, and how exact its split is.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use serde_json::Value;
use thiserror::Error;
use tokio::net::TcpStream;

use super::{apps, fetch::Defined, istio::Istio, traefik::Traefik};
use crate::{Failure, process::Process, stage::Stage};

/// The kinds of the Gateway API, of which both data planes know.
pub const GATEWAY_API: Defined = Defined {
    module: "sigs.k8s.io/gateway-api@v1.6.3",
    sum: "h1:lKpJa5bGlraC/QeACvCpsHLdmO6y0iKfzVl6gzaFEYc=",
    place: "config/crd/experimental",
};

/// How long a server may take to listen.
const READY_WITHIN: Duration = Duration::from_secs(60);

const ASK_EVERY: Duration = Duration::from_millis(50);

/// Why there is no data plane.
#[derive(Debug, Error)]
enum FrontError {
    #[error("{name} {what} within {} s; the end of its log:\n{words}", READY_WITHIN.as_secs())]
    NotReady { name: String, what: &'static str, words: String },
}

/// Which data plane is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataPlane {
    /// Deals requests out in turn: its split is exact.
    Traefik,
    /// istiod and Envoy, which draws lots for each request.
    Istio,
}

/// What is needed for it, fetched and built.
pub enum Installed {
    Traefik(Traefik),
    Istio(Istio),
}

/// A running data plane; dropping it ends it.
pub struct Front {
    /// Where it takes requests.
    pub port: u16,
    pub _processes: Vec<Process>,
}

/// How the split is measured.
#[derive(Clone, Copy, Debug)]
pub struct Gauge {
    /// The requests of one measurement.
    pub requests: usize,
    /// So many of a hundred may go elsewhere than they should.
    pub tolerance: usize,
    /// So many measurements, one after the other, must be right.
    pub in_a_row: usize,
    /// So many may be wrong once the split is nearly what it should be.
    pub misses: usize,
}

impl DataPlane {
    pub const ALL: [DataPlane; 2] = [DataPlane::Traefik, DataPlane::Istio];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            DataPlane::Traefik => "traefik",
            DataPlane::Istio => "istio",
        }
    }

    /// The applications that are played behind it.
    pub fn routers(self) -> &'static [&'static str] {
        match self {
            DataPlane::Traefik => &["gateway", "nginx", "traefik", apps::PLUGIN, "blue-green"],
            DataPlane::Istio => &["hosts", "subsets", "gateway", "mirror", "blue-green"],
        }
    }

    pub fn gauge(self) -> Gauge {
        match self {
            // Whenever an address comes or goes Traefik begins to count anew, so that one measurement
            // may be a little off.
            DataPlane::Traefik => {
                Gauge { requests: 200, tolerance: 0, in_a_row: 2, misses: usize::MAX }
            }
            // 3 of a hundred are four standard deviations of so many requests.
            DataPlane::Istio => Gauge { requests: 4000, tolerance: 3, in_a_row: 1, misses: 1 },
        }
    }

    /// Fetches and builds what is missing; says why where this machine cannot have it.
    pub fn ready(self) -> Result<Result<Installed, String>, Failure> {
        Ok(match self {
            DataPlane::Traefik => Traefik::ready()?.map(Installed::Traefik),
            DataPlane::Istio => Istio::ready()?.map(Installed::Istio),
        })
    }
}

impl Installed {
    /// Starts it on a control plane.
    pub async fn start(&self, stage: &Stage) -> Result<Front, Failure> {
        match self {
            Installed::Traefik(traefik) => traefik.start(stage).await,
            Installed::Istio(istio) => istio.start(stage).await,
        }
    }

    /// What all applications share behind it.
    pub fn shared(&self, port: u16) -> Vec<Value> {
        match self {
            Installed::Traefik(_) => apps::shared_by_traefik(port),
            Installed::Istio(_) => apps::shared_by_istio(port),
        }
    }
}

/// Defines kinds. Those of our scenarios allow any field; here the real ones are wanted.
pub fn define(stage: &Stage, definitions: &[PathBuf]) -> Result<(), Failure> {
    for path in definitions {
        stage.plane.kubectl_does(&["delete", "--ignore-not-found", "--wait", "-f"], path)?;
        stage.plane.kubectl_does(&["apply", "--server-side", "-f"], path)?;
    }
    Ok(())
}

/// Returns when a process listens on a port.
pub async fn listens(process: &mut Process, port: u16) -> Result<(), Failure> {
    let began = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
        still_starting(process, began).await?;
    }
    Ok(())
}

/// Waits a moment; an error if the process has ended or takes too long.
pub async fn still_starting(process: &mut Process, began: Instant) -> Result<(), Failure> {
    let what = match process.ended()? {
        Some(_) => "ended",
        None if began.elapsed() > READY_WITHIN => "was not ready",
        None => {
            tokio::time::sleep(ASK_EVERY).await;
            return Ok(());
        }
    };
    let (name, words) = (process.name().to_owned(), process.last_words());
    Err(FrontError::NotReady { name, what, words }.into())
}
