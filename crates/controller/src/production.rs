//! Puts the parts of a controller together: the same for every program, on a real cluster or an
//! embedded one.

use std::time::Duration;

use crate::ask::{Executor, HttpClient};
use crate::clock::{Clock, Stopwatch};
use crate::connect::dated;
use crate::engines::Engines;
use crate::events::post_events;
use crate::health::{Health, WorldRequest};
use crate::kube_cluster::KubeCluster;
use crate::lease::{Election, Leadership, LedCluster, elect};
use crate::plugins::Plugins;
use crate::rate::{Limited, Rate};
use crate::run::{Outside, Settings, run};
use crate::telemetry::Metrics;
use futures::future::{Either, FutureExt, join, select};
use kube::Client;
use tokio::sync::{mpsc, oneshot};

/// What a controller is made of.
pub struct Parts {
    /// Speaks to the cluster; does not retry by itself.
    pub client: Client,
    /// Speaks to metric providers; without it nobody does.
    pub http: Option<HttpClient>,
    /// The namespace of the controller itself.
    pub home: Option<String>,
    /// Runs plugins; without it none is configured.
    pub plugins: Option<Plugins>,
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
/// Events that still wait, within the grace period of the settings.
pub async fn control(engines: &Engines, parts: Parts, stop: impl Future<Output = ()>) {
    let grace = parts.settings.shutdown_grace;
    let (asked, is_asked) = oneshot::channel::<()>();
    let stop = async {
        stop.await;
        // Nobody waits for it if all has ended already.
        asked.send(()).ok();
    };
    let work = started(engines, parts, stop);
    if !within(grace, is_asked, work).await {
        let seconds = grace.as_secs();
        tracing::warn!(seconds, "writes or Events under way were given up (--shutdown-grace)");
    }
}

/// Carries work out to its end, or until so long after it was asked to end. Has it come to its end?
async fn within(
    grace: Duration,
    asked: oneshot::Receiver<()>,
    work: impl Future<Output = ()>,
) -> bool {
    let too_late = async {
        if asked.await.is_err() {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(grace).await;
    };
    match select(std::pin::pin!(work), std::pin::pin!(too_late)).await {
        Either::Left(_) => true,
        Either::Right(_) => false,
    }
}

/// The loop, the poster of Events and the election.
async fn started(engines: &Engines, parts: Parts, stop: impl Future<Output = ()>) {
    let Parts { client, http, home, plugins, rate, clock, metrics, health, worlds, settings } =
        parts;
    let client = dated(client, &clock);
    let server = KubeCluster::new(client.clone(), metrics.clone(), engines.reporter);
    let stopwatch = Stopwatch::start();
    let (lead, leadership) = Leadership::elected(stopwatch.clone());
    let election = settings.election.clone();
    let leadership =
        if election.is_some() { leadership } else { Leadership::alone(stopwatch.clone()) };
    // The door to writes comes last: what had to wait for its turn is stopped there, too.
    let door = LedCluster::new(server.clone(), leadership.clone());
    let cluster = Limited::new(door, rate);
    let (events, inbox) = mpsc::unbounded_channel();
    let posting = Box::pin(post_events(cluster.clone(), clock.clone(), inbox, metrics.clone()));
    let balancers = settings.balancers.clone();
    let executor = Executor::new(cluster, http, home).with_balancers(balancers);
    let executor = match &plugins {
        Some(plugins) => executor.with_plugins(plugins.clone()),
        None => executor,
    };
    let outside = Outside { client, executor, clock, metrics, health, worlds, events, leadership };
    let looping = Box::pin(run(engines, outside, settings, stop));
    let (working, ended) = oneshot::channel::<()>();
    let work = async move {
        match select(looping, posting).await {
            Either::Left(((), posting)) => posting.await,
            Either::Right(((), looping)) => looping.await,
        }
        if let Some(plugins) = plugins {
            plugins.stop().await;
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

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_end_comes_within_the_grace_period_whatever_hangs() {
        let seconds = Duration::from_secs;
        let cases = [
            ("work that ends soon", Some(3), Some(1), 3, true),
            ("work that ends after it was asked to", Some(8), Some(1), 8, true),
            ("work that hangs", None, Some(1), 11, false),
            ("work that takes too long", Some(60), Some(1), 11, false),
            ("work that is never asked to end", Some(60), None, 60, true),
        ];
        for (what, takes, asked_after, ended_after, is_done) in cases {
            let (asked, is_asked) = oneshot::channel();
            let asking = async move {
                match asked_after {
                    Some(after) => tokio::time::sleep(seconds(after)).await,
                    None => std::future::pending().await,
                }
                asked.send(()).unwrap();
                std::future::pending::<()>().await;
            };
            let work = async move {
                match takes {
                    Some(takes) => tokio::time::sleep(seconds(takes)).await,
                    None => std::future::pending().await,
                }
            };
            let began = Instant::now();
            let ended = within(seconds(10), is_asked, work);
            let ended = tokio::select! { ended = ended => ended, () = asking => false };
            assert_eq!((began.elapsed(), ended), (seconds(ended_after), is_done), "{what}");
        }
    }
}
