//! `cargo xtask providers`: does an AnalysisRun measure what real metric servers have? The controller
//! on the embedded cluster asks Prometheus of Debian, which scrapes a page of ours, and CloudWatch as
//! moto plays it. The same series and queries show whether our PromQL is Prometheus'.

mod cloudwatch;
mod page;
mod prometheus;

use std::{
    net::Ipv4Addr,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use gradus_api::names;
use gradus_simkube::{
    Request, SimCluster, behave::Behaviours, kinds::KindId, server::Listening, server::Server,
};
use jiff::Timestamp;
use serde_json::{Value, json};
use thiserror::Error;

use crate::{
    Failure,
    balancers::moto::{self, Moto},
    build,
    controller::{Controller, Election, LOOPBACK, Settings},
    folder::Folder,
    interrupt::or_interrupted,
    monitoring,
    summary::Summary,
};

/// How long a run may take from its start to its end.
const ENDS_WITHIN: Duration = Duration::from_secs(60);

const ASK_EVERY: Duration = Duration::from_millis(100);

#[derive(Debug, Error)]
enum ProvidersError {
    #[error("the embedded cluster: {0}")]
    Cluster(String),
    #[error("{what}: {message}")]
    Server { what: &'static str, message: String },
}

/// A metric, and how its run must end.
struct Case {
    what: &'static str,
    /// The metric without its name.
    metric: Value,
    phase: &'static str,
    /// In the value or the message of its only measurement.
    shows: &'static str,
}

/// What real servers there are on this machine.
struct Real {
    prometheus: Option<prometheus::Running>,
    moto: Option<moto::Running>,
    summary: Summary,
}

/// Runs the task. A server that cannot be had is skipped with a line.
pub fn run(_arguments: &[String]) -> Result<Summary, Failure> {
    let program = build::tested_program("gradus")?;
    or_interrupted(async {
        let folder = Folder::create("providers")?;
        let mut real = Real::start(folder.path()).await?;
        let mut summary = std::mem::take(&mut real.summary);
        let cluster = Cluster::start(folder.path()).await?;
        let settings = Settings {
            name: "controller".to_owned(),
            kubeconfig: folder.path().join("kubeconfig"),
            metric_allow: Some(LOOPBACK.to_owned()),
            election: Some(Election::Off),
            variables: real.moto.as_ref().map(cloudwatch::environment).unwrap_or_default(),
            ..Settings::default()
        };
        let mut controller = Controller::start(&program, &settings, folder.path())?;
        controller.is_ready().await?;
        for case in real.cases() {
            let measured = cluster.measure(&case).await;
            if let Err(error) = &measured {
                println!("  {}: FAILED: {error}", case.what);
            }
            summary += Summary::of(measured.is_ok());
        }
        if let Some(prometheus) = &real.prometheus {
            summary += prometheus.compare().await?;
        }
        Ok(summary)
    })
}

impl Real {
    async fn start(folder: &Path) -> Result<Self, Failure> {
        let mut summary = Summary::default();
        let mut skipped = |what: &str, why: &dyn std::fmt::Display| {
            println!("  {what} not tried: {why}");
            summary += Summary::skipped();
        };
        let prometheus = match monitoring::tools() {
            Ok(tools) => Some(prometheus::start(&tools.join("prometheus"), folder).await?),
            Err(error) => {
                skipped("Prometheus of Debian", &error);
                None
            }
        };
        let moto = match Moto::ready()? {
            Ok(moto) => {
                let running = moto.start(folder).await?;
                cloudwatch::fill(&running).await?;
                Some(running)
            }
            Err(why) => {
                skipped("CloudWatch (moto)", &why);
                None
            }
        };
        Ok(Self { prometheus, moto, summary })
    }

    fn cases(&self) -> Vec<Case> {
        let prometheus = self.prometheus.iter().flat_map(prometheus::Running::cases);
        let moto = self.moto.iter().flat_map(|_| cloudwatch::cases());
        prometheus.chain(moto).collect()
    }
}

/// The embedded cluster; it ends when this is dropped.
struct Cluster {
    server: Server,
    _listening: Listening,
}

impl Cluster {
    async fn start(folder: &Path) -> Result<Self, Failure> {
        let cluster = SimCluster::new(Behaviours::default(), Timestamp::now());
        let server = Server::new(cluster, Arc::new(Timestamp::now));
        let workers = server.clone();
        tokio::spawn(async move { workers.run_workers().await });
        let listening = server.listen((Ipv4Addr::LOCALHOST, 0).into()).await?;
        listening.write_kubeconfig(&folder.join("kubeconfig"))?;
        let cluster = Self { server, _listening: listening };
        for (_, crd) in gradus_api::crd::crds() {
            cluster.call(&Request::create(KindId::CUSTOM_RESOURCE_DEFINITION, "", crd))?;
        }
        Ok(cluster)
    }

    fn call(&self, request: &Request) -> Result<(), Failure> {
        let answer = self.server.with(|cluster, now| cluster.call(request, now).map(drop));
        answer.map_err(|error| ProvidersError::Cluster(error.message).into())
    }

    fn run_kind(&self) -> Result<KindId, Failure> {
        let kind = self.server.with(|cluster, _| {
            cluster.kinds().by_name(names::API_VERSION, names::kind::ANALYSIS_RUN)
        });
        kind.ok_or_else(|| ProvidersError::Cluster("it has no AnalysisRuns".to_owned()).into())
    }

    /// Has the metric measured once by the controller; why it is not as it should be.
    async fn measure(&self, case: &Case) -> Result<(), Failure> {
        let name = case.what.replace([' ', ','], "-");
        let mut metric = case.metric.clone();
        metric["name"] = json!("m");
        metric["consecutiveErrorLimit"] = json!(0);
        let run = json!({ "apiVersion": names::API_VERSION, "kind": names::kind::ANALYSIS_RUN,
            "metadata": { "name": name }, "spec": { "metrics": [metric] } });
        let kind = self.run_kind()?;
        self.call(&Request::create(kind, "default", run))?;
        let began = Instant::now();
        loop {
            let status = self.server.with(|cluster, _| {
                let object = cluster.get(kind, "default", &name);
                object.map(|object| object.to_json(cluster.kinds())["status"].clone())
            });
            let status = status.unwrap_or_default();
            let is_over = status["metricResults"][0]["measurements"][0]["finishedAt"].is_string();
            if is_over || began.elapsed() > ENDS_WITHIN {
                return ended(case, &status);
            }
            tokio::time::sleep(ASK_EVERY).await;
        }
    }
}

fn ended(case: &Case, status: &Value) -> Result<(), Failure> {
    let one = &status["metricResults"][0]["measurements"][0];
    let texts = [&one["value"], &one["message"]].map(|text| text.as_str().unwrap_or_default());
    if one["phase"] == case.phase && texts.iter().any(|text| text.contains(case.shows)) {
        return Ok(());
    }
    let (phase, shows) = (case.phase, case.shows);
    Err(format!("expected {phase} with {shows:?}, found {status}").into())
}
