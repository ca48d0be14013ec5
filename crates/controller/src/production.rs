//! Puts the parts of a controller together: the same for every program, on a real cluster or an
//! embedded one.

use std::time::Duration;

use crate::ask::{Executor, HttpClient};
use crate::clock::{Clock, Stopwatch};
use crate::engines::Engines;
use crate::events::post_events;
use crate::health::{Health, WorldRequest};
use crate::kube_cluster::KubeCluster;
use crate::lease::{Election, Leadership, LedCluster, elect};
use crate::rate::{Limited, Rate};
use crate::run::{Outside, Settings, run};
use crate::telemetry::Metrics;
use futures::future::{Either, FutureExt, join, select};
use kube::Client;
use tokio::sync::{mpsc, oneshot};

/// How long Events that are still waiting may hold up the end of the program.
const FLUSH_LIMIT: Duration = Duration::from_secs(5);

/// What a controller is made of.
pub struct Parts {
    /// Speaks to the cluster; does not retry by itself.
    pub client: Client,
    /// Speaks to metric providers; without it nobody does.
    pub http: Option<HttpClient>,
    /// The namespace of the controller itself.
    pub home: Option<String>,
    /// How many requests it may make.
    pub rate: Rate,
    /// The only clock.
    pub clock: Clock,
    /// Figures.
    pub metrics: Metrics,
    /// Says when the caches are synced.
    pub health: Health,
    /// Questions of the health port.
    pub worlds: mpsc::Receiver<WorldRequest>,
    /// What it watches and whether it writes.
    pub settings: Settings,
}

/// Runs the controller until `stop` is ready; then finishes the work under way and posts the
/// Events that still wait, as long as that is quick.
pub async fn control(engines: &Engines, parts: Parts, stop: impl Future<Output = ()>) {
    let Parts { client, http, home, rate, clock, metrics, health, worlds, settings } = parts;
    let server = KubeCluster::new(client.clone(), metrics.clone(), engines.reporter);
    let stopwatch = Stopwatch::start();
    let (lead, leadership) = Leadership::elected(stopwatch);
    let election = settings.election.clone();
    let leadership = if election.is_some() { leadership } else { Leadership::alone(stopwatch) };
    // The door to writes comes last: what had to wait for its turn is stopped there, too.
    let door = LedCluster::new(server.clone(), leadership.clone());
    let cluster = Limited::new(door, rate);
    let (events, inbox) = mpsc::unbounded_channel();
    let posting = Box::pin(post_events(cluster.clone(), clock, inbox, metrics.clone()));
    let executor = Executor::new(cluster, http, home);
    let outside = Outside { client, executor, clock, metrics, health, worlds, events, leadership };
    let looping = Box::pin(run(engines, outside, settings, stop));
    let (working, ended) = oneshot::channel::<()>();
    let work = async move {
        match select(looping, posting).await {
            Either::Left(((), posting)) => {
                if tokio::time::timeout(FLUSH_LIMIT, posting).await.is_err() {
                    tracing::warn!("some Events could not be posted before the end");
                }
            }
            Either::Right(((), looping)) => looping.await,
        }
        drop(working);
    };
    // The lead is given up last: writes and Events under way still need it.
    let electing = async {
        if let Some(Election { lease, candidate }) = election {
            let ended = ended.map(|_: Result<(), _>| ());
            elect(&server, &lease, candidate, stopwatch, lead, ended).await;
        }
    };
    join(work, electing).await;
}
