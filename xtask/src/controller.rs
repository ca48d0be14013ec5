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
    balancers,
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

/// Where metric servers of tests are: the controller must be allowed to ask there.
pub const LOOPBACK: &str = "127.0.0.0/8";

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
    /// Any port, if nobody minds.
    pub metrics_port: Option<u16>,
    /// Its working folder, if not ours.
    pub folder: Option<PathBuf>,
    /// It decides and says, and never writes.
    pub dry_run: bool,
    /// A network that metrics may be asked from, though it is refused by default.
    pub metric_allow: Option<String>,
    /// Where it asks AWS how load balancers split the traffic, if it asks.
    pub aws: Option<String>,
    /// Environment variables beyond ours.
    pub variables: Vec<(String, String)>,
    /// Does it take part in an election? A program that knows of none is not asked.
    pub election: Option<Election>,
}

/// Whether a controller takes part in an election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Election {
    /// It is alone: one process is all there is.
    Off,
    /// As it does by default, with a lease that ends sooner, so that the one after a crash need not
    /// wait as long as in production.
    On,
    /// As it does by default.
    Production,
}

/// Lease duration, renew deadline and retry period of an election in a test.
const ELECTION: [(&str, &str); 3] = [
    ("leader-election-lease-duration", "6s"),
    ("leader-election-renew-deadline", "2s"),
    ("leader-election-retry-period", "500ms"),
];

/// What it logs once it leads.
const LEADS: &str = "became the leader";

/// A running controller; dropping it kills it.
#[derive(Debug)]
pub struct Controller {
    process: Process,
    elects: bool,
}

impl Controller {
    /// Starts it; its log is appended to `<folder>/<name>.log`.
    pub fn start(
        program: &Path,
        settings: &Settings,
        folder: &Path,
    ) -> Result<Self, ControllerError> {
        // It takes ports of its own and says which: one that was free a moment ago may be taken.
        let metrics_port = settings.metrics_port.unwrap_or(0);
        let mut recipe = Recipe::new(&settings.name, program)
            .argument("controller")
            .flag("kubeconfig", &settings.kubeconfig)
            .flag("healthzPort", "0")
            .flag("metricsPort", metrics_port.to_string());
        if let Some(namespace) = &settings.namespace {
            recipe = recipe.argument("--namespaced").flag("namespace", namespace);
        }
        if let Some(instance_id) = &settings.instance_id {
            recipe = recipe.flag("instance-id", instance_id);
        }
        if settings.dry_run {
            recipe = recipe.argument("--dry-run");
        }
        if let Some(folder) = &settings.folder {
            recipe = recipe.within(folder);
        }
        if let Some(network) = &settings.metric_allow {
            recipe = recipe.flag("metric-allow", network);
        }
        if let Some(address) = &settings.aws {
            recipe = recipe
                .argument("--aws-verify-target-group")
                .variable("AWS_ENDPOINT_URL", address)
                .variable("AWS_REGION", balancers::REGION)
                .variable("AWS_ACCESS_KEY_ID", "test")
                .variable("AWS_SECRET_ACCESS_KEY", "test");
        }
        for (name, value) in &settings.variables {
            recipe = recipe.variable(name, value);
        }
        match settings.election {
            Some(Election::Off) => recipe = recipe.flag("leader-elect", "false"),
            Some(Election::On) => {
                recipe =
                    ELECTION.iter().fold(recipe, |recipe, (name, value)| recipe.flag(name, value));
            }
            Some(Election::Production) | None => {}
        }
        let elects = settings.election == Some(Election::On);
        Ok(Self { process: Process::start(&recipe, folder)?, elects })
    }

    /// Asks it to end.
    pub fn terminate(&self) -> io::Result<()> {
        self.process.terminate()
    }

    /// What it has logged so far.
    pub fn words(&self) -> String {
        self.process.words()
    }

    /// The end of its log if it has ended, though nobody has killed it.
    pub fn death(&mut self) -> io::Result<Option<String>> {
        let status = self.process.ended()?;
        Ok(status.map(|status| format!("{status}; its log:\n{}", self.process.last_words())))
    }

    /// Returns when its caches are filled and it leads, if there is an election.
    pub async fn is_ready(&mut self) -> Result<(), ControllerError> {
        let began = Instant::now();
        let mut client = None;
        loop {
            if client.is_none() {
                client = health_port(&self.process.words()).map(client_of).transpose()?;
            }
            if let Some(client) = &client
                && (!self.elects || self.process.words().contains(LEADS))
                && answers(client).await
            {
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

/// The port of its health, once it has said so.
fn health_port(words: &str) -> Option<u16> {
    let rest = words.split("health on port ").nth(1)?;
    // Until the comma: a number may be half written.
    rest.split_once(',')?.0.parse().ok()
}

fn client_of(port: u16) -> Result<Client, ControllerError> {
    let address = format!("http://127.0.0.1:{port}");
    let mut config = Config::new(address.parse().expect("a loopback address is a valid one"));
    config.default_retry = false;
    Client::try_from(config).map_err(|error| ControllerError::Client(Box::new(error)))
}

async fn answers(client: &Client) -> bool {
    let request = Request::get("/readyz").body(Vec::new());
    let request = request.expect("a constant path is a valid request");
    client.request_text(request).await.is_ok()
}

#[test]
fn the_port_is_read_once_it_is_said_whole() {
    let cases = [
        ("nothing yet", "", None),
        ("half a line", "INFO health on port 80", None),
        ("the line", "INFO health on port 8080, metrics on port 8090\n", Some(8080)),
    ];
    for (what, words, port) in cases {
        assert_eq!(health_port(words), port, "{what}");
    }
}
