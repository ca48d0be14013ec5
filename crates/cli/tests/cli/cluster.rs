//! An embedded cluster in the test's own process, for the binary to look after.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gradus_api::names;
use gradus_simkube::behave::Behaviours;
use gradus_simkube::kinds::KindId;
use gradus_simkube::request::Verb;
use gradus_simkube::server::{Listening, Server};
use gradus_simkube::{PatchKind, Request, SimCluster};
use jiff::Timestamp;
use serde_json::Value;
use tokio::runtime::Runtime;

/// A cluster that runs until it is dropped.
pub struct Cluster {
    pub server: Server,
    pub kubeconfig: PathBuf,
    // Dropped in this order: the port closes before the runtime ends.
    listening: Option<Listening>,
    runtime: Runtime,
}

impl Cluster {
    /// A cluster with our CRDs on this port; its kubeconfig is written into the folder.
    pub fn start(port: u16, folder: &Path) -> Self {
        let cluster = Self::bare(port, folder);
        cluster.install_crds();
        cluster
    }

    /// A cluster that knows nothing of Rollouts.
    pub fn bare(port: u16, folder: &Path) -> Self {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build().unwrap();
        let cluster = SimCluster::new(Behaviours::default(), Timestamp::now());
        let server = Server::new(cluster, Arc::new(Timestamp::now));
        let workers = server.clone();
        runtime.spawn(async move { workers.run_workers().await });
        let kubeconfig = folder.join("kubeconfig");
        let mut cluster = Cluster { server, kubeconfig, listening: None, runtime };
        cluster.listen(port);
        cluster
    }

    /// Installs our CRDs.
    pub fn install_crds(&self) {
        for (_, crd) in gradus_api::crd::crds() {
            let request = Request::create(KindId::CUSTOM_RESOURCE_DEFINITION, "", crd);
            self.server.with(|cluster, now| cluster.call(&request, now).unwrap());
        }
    }

    /// Answers on this port, and writes the kubeconfig for it.
    pub fn listen(&mut self, port: u16) {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let listening = self.runtime.block_on(self.server.listen(address)).unwrap();
        listening.write_kubeconfig(&self.kubeconfig).unwrap();
        self.listening = Some(listening);
    }

    /// Closes the port and all connections.
    pub fn go_away(&mut self) {
        self.listening = None;
    }

    /// Creates a Rollout in the namespace `default`.
    pub fn create(&self, manifest: Value) {
        self.server.with(|cluster, now| {
            let kind = cluster.kinds().by_name(names::API_VERSION, names::kind::ROLLOUT).unwrap();
            cluster.call(&Request::create(kind, "default", manifest), now).unwrap();
        });
    }

    /// Changes a Rollout in the namespace `default` by a JSON patch.
    pub fn patch(&self, name: &str, patch: Value) {
        self.server.with(|cluster, now| {
            let kind = cluster.kinds().by_name(names::API_VERSION, names::kind::ROLLOUT).unwrap();
            let request = Request::new(Verb::Patch(PatchKind::Json), kind, "default", name);
            cluster.call(&request.with_body(patch), now).unwrap();
        });
    }

    /// A Rollout in the namespace `default`, as it is stored now.
    pub fn rollout(&self, name: &str) -> Value {
        self.server.with(|cluster, _| {
            let kind = cluster.kinds().by_name(names::API_VERSION, names::kind::ROLLOUT).unwrap();
            cluster.get(kind, "default", name).unwrap().to_json(cluster.kinds())
        })
    }
}

/// One of the sample rollouts.
pub fn sample(file: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/rollouts").join(file);
    serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}
