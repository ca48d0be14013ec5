//! An embedded cluster in the test's own process, for the binary to look after.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gradus_api::names;
use gradus_simkube::behave::Behaviours;
use gradus_simkube::kinds::KindId;
use gradus_simkube::server::{Listening, Server};
use gradus_simkube::{Request, SimCluster};
use jiff::Timestamp;
use serde_json::Value;
use tokio::runtime::Runtime;

/// A cluster that runs until it is dropped.
pub struct Cluster {
    pub server: Server,
    pub kubeconfig: PathBuf,
    // Dropped in this order: the port closes before the runtime ends.
    _listening: Listening,
    _runtime: Runtime,
}

impl Cluster {
    /// A cluster with our CRDs on this port; its kubeconfig is written into the folder.
    pub fn start(port: u16, folder: &Path) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let mut cluster = SimCluster::new(Behaviours::default(), Timestamp::now());
        for (_, crd) in gradus_api::crd::crds() {
            let request = Request::create(KindId::CUSTOM_RESOURCE_DEFINITION, "", crd);
            cluster.call(&request, Timestamp::now()).unwrap();
        }
        let server = Server::new(cluster, Arc::new(Timestamp::now));
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let listening = runtime.block_on(server.listen(address)).unwrap();
        let kubeconfig = folder.join("kubeconfig");
        listening.write_kubeconfig(&kubeconfig).unwrap();
        let workers = server.clone();
        runtime.spawn(async move { workers.run_workers().await });
        Cluster { server, kubeconfig, _listening: listening, _runtime: runtime }
    }

    /// Creates a Rollout in the namespace `default`.
    pub fn create(&self, manifest: Value) {
        self.server.with(|cluster, now| {
            let kind = cluster.kinds().by_name(names::API_VERSION, names::kind::ROLLOUT).unwrap();
            cluster.call(&Request::create(kind, "default", manifest), now).unwrap();
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
