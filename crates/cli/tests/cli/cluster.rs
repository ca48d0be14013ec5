//! An embedded cluster in the test's own process, for the binary to manage.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gradus_api::names;
use gradus_simkube::behave::Behaviours;
use gradus_simkube::kinds::KindId;
use gradus_simkube::request::{Subresource, Verb};
use gradus_simkube::server::{Listening, Server};
use gradus_simkube::{PatchKind, Request, SimCluster};
use jiff::Timestamp;
use serde_json::{Value, json};
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

    /// Creates an object of any kind in its namespace, or in `default`, with its status.
    pub fn store(&self, object: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let metadata = &object["metadata"];
        let namespace = metadata["namespace"].as_str().unwrap_or("default");
        self.server.with(|cluster, now| {
            let (version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
            let kind = cluster.kinds().by_name(&version, &kind).unwrap();
            let namespace = if cluster.kinds().get(kind).namespaced { namespace } else { "" };
            cluster.call(&Request::create(kind, namespace, object.clone()), now).unwrap();
            if cluster.kinds().get(kind).has_status {
                let verb = Verb::Patch(PatchKind::Merge);
                let mut request = Request::new(verb, kind, namespace, &text(&metadata["name"]));
                request.subresource = Subresource::Status;
                let status = json!({ "status": object["status"] });
                cluster.call(&request.with_body(status), now).unwrap();
            }
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

    /// Lays a merge patch over the status of a Rollout in the namespace `default`.
    pub fn patch_status(&self, name: &str, status: Value) {
        self.server.with(|cluster, now| {
            let kind = cluster.kinds().by_name(names::API_VERSION, names::kind::ROLLOUT).unwrap();
            let mut request = Request::new(Verb::Patch(PatchKind::Merge), kind, "default", name);
            request.subresource = Subresource::Status;
            cluster.call(&request.with_body(json!({ "status": status })), now).unwrap();
        });
    }

    /// Deletes a Rollout in the namespace `default`.
    pub fn delete_rollout(&self, name: &str) {
        self.server.with(|cluster, now| {
            let kind = cluster.kinds().by_name(names::API_VERSION, names::kind::ROLLOUT).unwrap();
            cluster.call(&Request::new(Verb::Delete, kind, "default", name), now).unwrap();
        });
    }

    /// A Rollout in the namespace `default`, as it is stored now.
    pub fn rollout(&self, name: &str) -> Value {
        self.object(names::kind::ROLLOUT, name)
    }

    /// An object of one of our kinds in the namespace `default`, as it is stored now.
    pub fn object(&self, kind: &str, name: &str) -> Value {
        self.server.with(|cluster, _| {
            let kind = cluster.kinds().by_name(names::API_VERSION, kind).unwrap();
            cluster.get(kind, "default", name).unwrap().to_json(cluster.kinds())
        })
    }
}

/// One of the sample rollouts.
pub fn sample(file: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/rollouts").join(file);
    serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}
