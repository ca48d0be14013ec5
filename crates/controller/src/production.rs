//! Puts the parts of a controller together: the same for every program, on a real cluster or an
//! embedded one.

use std::time::Duration;

use crate::clock::Clock;
use crate::engines::Engines;
use crate::events::post_events;
use crate::health::{Health, WorldRequest};
use crate::kube_cluster::KubeCluster;
use crate::rate::{Limited, Rate};
use crate::run::{Outside, Settings, run};
use crate::telemetry::Metrics;
use futures::future::{Either, select};
use kube::Client;
use tokio::sync::mpsc;

/// How long Events that are still waiting may hold up the end of the program.
const FLUSH_LIMIT: Duration = Duration::from_secs(5);

/// What a controller is made of.
pub struct Parts {
    /// Speaks to the cluster; does not retry by itself.
    pub client: Client,
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
    let Parts { client, rate, clock, metrics, health, worlds, settings } = parts;
    let cluster = KubeCluster::new(client.clone(), metrics.clone(), engines.reporter);
    let cluster = Limited::new(cluster, rate);
    let (events, inbox) = mpsc::unbounded_channel();
    let posting = Box::pin(post_events(cluster.clone(), clock, inbox, metrics.clone()));
    let outside = Outside { client, cluster, clock, metrics, health, worlds, events };
    let looping = Box::pin(run(engines, outside, settings, stop));
    match select(looping, posting).await {
        Either::Left(((), posting)) => {
            if tokio::time::timeout(FLUSH_LIMIT, posting).await.is_err() {
                tracing::warn!("some Events could not be posted before the end");
            }
        }
        Either::Right(((), looping)) => looping.await,
    }
}
