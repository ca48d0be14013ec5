//! Whose figures are taken, and how is that controller started and ended?

use std::{
    io,
    path::Path,
    time::{Duration, Instant},
};

use http::Request;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::{Api, Client, Config, api::PostParams};
use serde_json::json;

use super::RealError;
use crate::{
    Failure,
    plane::{Plane, User},
    ports,
    process::{Process, Recipe},
    takeover::holder,
    usage::Usage,
};

/// Requests per second for whoever is not to be held back by itself.
const UNTHROTTLED: &str = "1000";
/// A lease of production, and room for a start.
const LEADS_WITHIN: Duration = Duration::from_secs(60);
const RECONCILES_WITHIN: Duration = Duration::from_secs(300);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// One of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Gradus,
    Argo,
}

impl Side {
    pub fn name(self) -> &'static str {
        match self {
            Self::Gradus => "Gradus",
            Self::Argo => "Argo Rollouts",
        }
    }

    pub fn user(self) -> User {
        match self {
            Self::Gradus => User::Controller,
            Self::Argo => User::Peer,
        }
    }

    pub fn namespace(self) -> &'static str {
        match self {
            Self::Gradus => "bench-gradus",
            Self::Argo => "bench-argo",
        }
    }

    pub fn quiet_namespace(self) -> &'static str {
        match self {
            Self::Gradus => "quiet-gradus",
            Self::Argo => "quiet-argo",
        }
    }
}

/// What is started, and how.
pub(super) struct Start<'p> {
    pub side: Side,
    pub program: &'p Path,
    pub has_default_rate: bool,
}

/// A controller that runs.
pub(super) struct Running {
    side: Side,
    process: Process,
    metrics: Client,
    began: Instant,
}

/// Gives the other controller every right: what it may do is not what is measured.
pub(super) async fn grant(client: &Client) -> Result<(), Failure> {
    let (group, kind) = ("rbac.authorization.k8s.io", "ClusterRole");
    let binding = json!({
        "metadata": { "name": "peer" },
        "roleRef": { "apiGroup": group, "kind": kind, "name": "cluster-admin" },
        "subjects": [{ "apiGroup": group, "kind": "User", "name": User::Peer.name() }],
    });
    let binding: ClusterRoleBinding = serde_json::from_value(binding)?;
    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    bindings.create(&PostParams::default(), &binding).await?;
    Ok(())
}

impl Running {
    pub async fn start(start: &Start<'_>, plane: &Plane) -> Result<Self, Failure> {
        let [metrics_port, health_port] = ports::free()?;
        let side = start.side;
        let log = match side {
            Side::Gradus => "gradus",
            Side::Argo => "argo-rollouts",
        };
        let mut recipe = Recipe::new(log, start.program);
        recipe = match side {
            Side::Gradus => {
                let both = format!("{},{}", side.namespace(), side.quiet_namespace());
                recipe.argument("controller").flag("namespaces", both)
            }
            Side::Argo => recipe.argument("--namespaced").flag("namespace", side.namespace()),
        };
        if !start.has_default_rate {
            recipe = recipe.flag("qps", UNTHROTTLED).flag("burst", UNTHROTTLED);
        }
        let recipe = recipe
            .flag("kubeconfig", plane.kubeconfig(side.user()))
            .flag("metricsPort", metrics_port.to_string())
            .flag("healthzPort", health_port.to_string());
        let process = Process::start(&recipe, plane.folder())?;
        let address = format!("http://127.0.0.1:{metrics_port}");
        let mut config = Config::new(address.parse().expect("a loopback address is a valid one"));
        config.default_retry = false;
        let metrics = Client::try_from(config)?;
        Ok(Self { side, process, metrics, began: Instant::now() })
    }

    pub fn side(&self) -> Side {
        self.side
    }

    pub fn usage(&self) -> io::Result<Usage> {
        Usage::of(self.process.pid()?)
    }

    /// An error if it has ended by itself.
    pub fn is_alive(&mut self) -> Result<(), Failure> {
        match self.process.ended()? {
            None => Ok(()),
            Some(_) => Err(RealError::Ended(self.side.name(), self.process.last_words()).into()),
        }
    }

    /// Its metrics as they are scraped.
    pub async fn metrics(&self) -> Result<String, kube::Error> {
        let request = Request::get("/metrics").body(Vec::new());
        let request = request.expect("a constant path is a valid request");
        self.metrics.request_text(request).await
    }

    /// How many Events about Rollouts it has had to deliver since its start, by its own metrics.
    pub async fn events_due(&self) -> Result<usize, kube::Error> {
        Ok(events(&self.metrics().await?))
    }

    /// Returns when somebody holds the Lease; nobody else runs.
    pub async fn leads(&mut self, client: &Client) -> Result<(), Failure> {
        while holder(client).await?.is_empty() {
            self.still_waits("leads", LEADS_WITHIN, 0, 1).await?;
        }
        Ok(())
    }

    /// Returns when each of so many Rollouts has been reconciled once since the start: its metrics say
    /// so.
    pub async fn has_reconciled(&mut self, count: usize) -> Result<(), Failure> {
        loop {
            let text = self.metrics().await.unwrap_or_default();
            let done = match self.side {
                Side::Gradus => passes(&text),
                Side::Argo => reconciled(&text, self.side.namespace()),
            };
            if done >= count {
                return Ok(());
            }
            self.still_waits("reconciled again", RECONCILES_WITHIN, done, count).await?;
        }
    }

    async fn still_waits(
        &mut self,
        what: &'static str,
        within: Duration,
        done: usize,
        all: usize,
    ) -> Result<(), Failure> {
        self.is_alive()?;
        if self.began.elapsed() > within {
            return Err(RealError::NotReached { what, within, done, all }.into());
        }
        tokio::time::sleep(LOOK_EVERY).await;
        Ok(())
    }

    /// Stops it as Kubernetes stops a pod.
    pub async fn ends(&mut self) -> Result<(), Failure> {
        self.process.terminate()?;
        while self.process.ended()?.is_none() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }
}

fn events(metrics: &str) -> usize {
    let series = metrics.lines().filter(|line| line.starts_with("rollout_events_total{"));
    let count = |line: &str| line.rsplit(' ').next()?.parse::<f64>().ok();
    series.filter_map(count).sum::<f64>() as usize
}

/// Argo Rollouts has a series for each Rollout that it has reconciled.
fn reconciled(metrics: &str, namespace: &str) -> usize {
    let namespace = format!("namespace=\"{namespace}\"");
    let series = metrics.lines().filter(|line| line.starts_with("rollout_reconcile_count{"));
    series.filter(|line| line.contains(&namespace)).count()
}

/// Ours has them for those it has written: what it has looked at its queue says, once that is empty.
fn passes(metrics: &str) -> usize {
    let value = |name: &str| {
        let start = format!("{name}{{name=\"Rollouts\"}} ");
        let line = metrics.lines().find_map(|line| line.strip_prefix(&start))?;
        line.parse().ok()
    };
    match value("workqueue_depth") {
        Some(0) => value("workqueue_queue_duration_seconds_count").unwrap_or(0),
        _ => 0,
    }
}

#[test]
fn what_has_been_reconciled_is_read_from_either_metrics() {
    let theirs = r#"rollout_reconcile_count{name="a",namespace="shop"} 3
rollout_reconcile_count{name="b",namespace="shop"} 1
rollout_reconcile_count{name="b",namespace="bank"} 1
"#;
    assert_eq!(reconciled(theirs, "shop"), 2);
    let ours = |depth: u32| {
        format!(
            "workqueue_depth{{name=\"Experiments\"}} 0\nworkqueue_depth{{name=\"Rollouts\"}} {depth}\n\
             workqueue_queue_duration_seconds_count{{name=\"Rollouts\"}} 7\n"
        )
    };
    assert_eq!((passes(&ours(0)), passes(&ours(2)), passes("")), (7, 0, 0));
    let counted =
        "rollout_events_total{name=\"a\",reason=\"x\"} 3\nrollout_events_total{name=\"b\"} 4\n";
    assert_eq!((events(counted), events(theirs)), (7, 0));
}
