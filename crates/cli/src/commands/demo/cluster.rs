//! Where does the demo play? On an embedded cluster with our CRDs and the sample rollouts.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use gradus_api::names;
use gradus_controller::clock::Clock;
use gradus_lab::person::{Action, Deed};
use gradus_lab::sight::Sight;
use gradus_simkube::behave::{Behaviour, Behaviours};
use gradus_simkube::kinds::KindId;
use gradus_simkube::server::{Listening, Memory, Server};
use gradus_simkube::traffic::{ListeningForMetrics, MetricPort};
use gradus_simkube::{ApiError, NODE, Request, SimCluster, Subresource};
use serde_json::{Value, json};

use super::kubeconfig::Kubeconfig;
use super::scene;

/// The namespace of the samples: the one kubectl uses if nobody says otherwise.
pub const NAMESPACE: &str = "default";

/// Rollouts that never rest make five Events a second: the usual hour of them would be too much.
const MEMORY: Memory =
    Memory { events: Duration::from_secs(10 * 60), past: Duration::from_secs(5 * 60) };

/// Where the samples expect their Prometheus.
const PROMETHEUS: &str = "http://prometheus.monitoring:9090";

/// The sample rollouts, which README, docs and tests share.
pub const SAMPLES: [(&str, &str); 6] = [
    (
        "canary-with-pauses",
        include_str!("../../../../../examples/rollouts/canary-with-pauses.yaml"),
    ),
    ("rolling-update", include_str!("../../../../../examples/rollouts/rolling-update.yaml")),
    (
        "canary-with-timed-pauses",
        include_str!("../../../../../examples/rollouts/canary-with-timed-pauses.yaml"),
    ),
    ("blue-green", include_str!("../../../../../examples/rollouts/blue-green.yaml")),
    ("canary-with-nginx", include_str!("../../../../../examples/rollouts/canary-with-nginx.yaml")),
    (
        "canary-with-analysis",
        include_str!("../../../../../examples/rollouts/canary-with-analysis.yaml"),
    ),
];

/// An embedded cluster that listens on a loopback port.
pub struct Embedded {
    /// The cluster.
    pub server: Server,
    /// How others find it.
    pub kubeconfig: Kubeconfig,
    listening: Listening,
    metrics: ListeningForMetrics,
}

impl Embedded {
    /// Starts a cluster and writes a kubeconfig for it into a folder. Port 0 takes a free one.
    pub async fn start(clock: &Clock, port: u16, folder: &Path) -> anyhow::Result<Self> {
        let shown = clock.clone();
        let server = Server::new(prepared(clock)?, Arc::new(move || shown.now()));
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let listening = server.listen(address).await;
        let listening = listening.with_context(|| format!("cannot listen on {address}"))?;
        let written = Kubeconfig::write(folder, listening.kubeconfig());
        let kubeconfig = written
            .with_context(|| format!("cannot write a kubeconfig into {}", folder.display()))?;
        let (workers, memory) = (server.clone(), server.clone());
        tokio::spawn(async move { workers.run_workers().await });
        tokio::spawn(async move { memory.run_forgetting(MEMORY).await });
        let metrics = MetricPort::new(&server, None);
        let metrics = metrics.listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await;
        let metrics = metrics.context("cannot listen for metric queries")?;
        Ok(Embedded { server, kubeconfig, listening, metrics })
    }

    /// Where its metric server listens, as a URL.
    pub fn metrics_url(&self) -> String {
        format!("http://{}", self.metrics.address())
    }

    /// Where it listens, as a URL.
    pub fn url(&self) -> String {
        self.listening.url()
    }

    /// Creates the objects of the samples.
    pub fn apply_samples(&self) -> anyhow::Result<()> {
        for (name, text) in SAMPLES {
            // Names of a cluster lead nowhere on this machine.
            let text = text.replace(PROMETHEUS, &self.metrics_url());
            let manifests = serde_saphyr::from_multiple::<Value>(&text);
            for manifest in manifests.with_context(|| format!("sample {name}"))? {
                self.create(manifest).with_context(|| format!("sample {name}"))?;
            }
        }
        Ok(())
    }

    /// Creates an object as `kubectl apply` does, so that people can go on with that.
    fn create(&self, mut manifest: Value) -> anyhow::Result<()> {
        manifest["metadata"]["annotations"] =
            json!({ names::annotation::LAST_APPLIED: manifest.to_string() });
        let text = |field: &str| manifest[field].as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        self.server.with(|cluster, now| {
            let known = cluster.kinds().by_name(&api_version, &kind);
            let known = known.with_context(|| format!("no kind {api_version} {kind}"))?;
            let made = cluster.call(&Request::create(known, NAMESPACE, manifest), now);
            made.map(drop).map_err(refused)
        })
    }

    /// A person does something to a rollout, with the writes of the kubectl plugin.
    pub fn act(&self, namespace: &str, rollout: &str, action: &Action) -> anyhow::Result<()> {
        let done = self.server.with(|cluster, now| {
            let Some(object) = scene::rollout(cluster, namespace, rollout) else { return Ok(()) };
            let document = scene::document(object);
            for write in action.writes(rollout, &Sight::of(&document), now) {
                // A kind that somebody has deleted has no objects to write to.
                let kind = cluster.kinds().by_name(&write.api_version, &write.kind);
                let Some(kind) = kind else { continue };
                let (patch, side) = match write.deed {
                    Deed::Merge(patch) => (patch, Subresource::None),
                    Deed::MergeStatus(patch) => (patch, Subresource::Status),
                    Deed::Apply(_) | Deed::Delete => continue,
                };
                cluster.call(&Request::merge(kind, namespace, &write.name, patch).on(side), now)?;
            }
            Ok(())
        });
        done.map_err(refused)
    }
}

/// Images named `bad-…` never get ready, and one fails for a third of all requests.
pub fn behaviours() -> Behaviours {
    let bad = Behaviour { image: "*:bad-*".to_owned(), never_ready: true, ..Behaviour::default() };
    let failing =
        Behaviour { image: "nginx:1.29".to_owned(), error_percent: 33.0, ..Behaviour::default() };
    Behaviours::new(vec![bad, failing])
}

/// A cluster with our CRDs.
fn prepared(clock: &Clock) -> anyhow::Result<SimCluster> {
    let mut cluster = SimCluster::new(behaviours(), clock.now());
    for (name, crd) in gradus_api::crd::crds() {
        let request = Request::create(KindId::CUSTOM_RESOURCE_DEFINITION, "", crd);
        let made = cluster.call(&request, clock.now());
        made.map_err(refused).with_context(|| name.to_owned())?;
    }
    // Nothing runs on the node; it only has to look like one.
    let status = json!({ "status": {
        "conditions": [{ "type": "Ready", "status": "True", "reason": "KubeletReady" }],
        "nodeInfo": { "kubeletVersion": concat!("gradus-", env!("CARGO_PKG_VERSION")) },
    }});
    let ready = Request::merge(KindId::NODE, "", NODE, status).on(Subresource::Status);
    cluster.call(&ready, clock.now()).map_err(refused).context("the node")?;
    Ok(cluster)
}

fn refused(error: ApiError) -> anyhow::Error {
    anyhow!("the embedded cluster refused: {}", error.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_rollout_is_shown() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/rollouts");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<String> =
            files.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
        let mut shown = SAMPLES.map(|(name, _)| name);
        files.sort();
        shown.sort_unstable();
        assert_eq!(shown.as_slice(), files);
    }
}
