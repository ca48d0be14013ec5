//! The program under test: how is it started beside a control plane?

use std::{
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use http::Request;
use kube::{Client, Config};
use thiserror::Error;

use crate::{
    ports,
    process::{Process, Recipe},
};

/// Caches of a small cluster are there much sooner.
const READY_WITHIN: Duration = Duration::from_secs(60);

const ASK_EVERY: Duration = Duration::from_millis(50);

/// Why there is no controller.
#[derive(Debug, Error)]
pub enum ControllerError {
    #[error("controller: {0}")]
    Start(#[from] io::Error),
    #[error("controller ended while starting; the end of its log:\n{0}")]
    Ended(String),
    #[error("controller was not ready after {} s; the end of its log:\n{words}", READY_WITHIN.as_secs())]
    NotReady { words: String },
    #[error("controller: {0}")]
    Client(Box<kube::Error>),
}

/// What differs between two controllers.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Name of its log file.
    pub name: String,
    pub kubeconfig: PathBuf,
    /// One namespace, or the whole cluster.
    pub namespace: Option<String>,
    /// Only objects of this instance, or those of none.
    pub instance_id: Option<String>,
    /// Any free port, if nobody minds.
    pub metrics_port: Option<u16>,
    /// Its working folder, if not ours.
    pub folder: Option<PathBuf>,
}

/// A running controller; dropping it kills it.
#[derive(Debug)]
pub struct Controller {
    process: Process,
    health: String,
}

impl Controller {
    /// Starts it; its log is appended to `<folder>/<name>.log`.
    pub fn start(
        program: &Path,
        settings: &Settings,
        folder: &Path,
    ) -> Result<Self, ControllerError> {
        let [health_port, free_port] = ports::free()?;
        let metrics_port = settings.metrics_port.unwrap_or(free_port);
        let mut recipe = Recipe::new(&settings.name, program)
            .argument("controller")
            .flag("kubeconfig", &settings.kubeconfig)
            .flag("healthzPort", health_port.to_string())
            .flag("metricsPort", metrics_port.to_string());
        if let Some(namespace) = &settings.namespace {
            recipe = recipe.argument("--namespaced").flag("namespace", namespace);
        }
        if let Some(instance_id) = &settings.instance_id {
            recipe = recipe.flag("instance-id", instance_id);
        }
        if let Some(folder) = &settings.folder {
            recipe = recipe.within(folder);
        }
        let process = Process::start(&recipe, folder)?;
        Ok(Self { process, health: format!("http://127.0.0.1:{health_port}") })
    }

    /// Returns when its caches are filled.
    pub async fn is_ready(&mut self) -> Result<(), ControllerError> {
        let address = self.health.parse().expect("a loopback address is a valid one");
        let mut config = Config::new(address);
        config.default_retry = false;
        let client =
            Client::try_from(config).map_err(|error| ControllerError::Client(Box::new(error)))?;
        let began = Instant::now();
        loop {
            let request = Request::get("/readyz").body(Vec::new());
            let request = request.expect("a constant path is a valid request");
            if client.request_text(request).await.is_ok() {
                return Ok(());
            }
            if self.process.ended()?.is_some() {
                return Err(ControllerError::Ended(self.process.last_words()));
            }
            if began.elapsed() > READY_WITHIN {
                let words = self.process.last_words();
                return Err(ControllerError::NotReady { words });
            }
            tokio::time::sleep(ASK_EVERY).await;
        }
    }
}
