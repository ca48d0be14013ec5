//! What is a running control plane, and how does it start and stop?
//!
//! etcd, kube-apiserver and kube-controller-manager on free loopback ports, in a folder of their
//! own. They live as long as the [`Plane`].

mod credentials;

use std::{
    env,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::{Duration, Instant},
};

use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{Api, Client, Config, config::KubeConfigOptions, config::Kubeconfig};
use serde_json::Value;
use thiserror::Error;

pub use credentials::User;

use crate::{
    folder::Folder,
    ports,
    process::{Process, Recipe},
    servers::Servers,
};

/// How long a server may take to become ready on a busy machine with two cores.
const READY_WITHIN: Duration = Duration::from_secs(120);

/// How often readiness is asked for.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// Who wrote what is enough to count requests; bodies would slow the server down.
const AUDIT_POLICY: &str = r#"{
  "apiVersion": "audit.k8s.io/v1",
  "kind": "Policy",
  "omitStages": ["RequestReceived"],
  "rules": [{ "level": "Metadata" }]
}
"#;

/// Why there is no control plane.
#[derive(Debug, Error)]
pub enum PlaneError {
    #[error("{path}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("{name} did not start: {source}")]
    Start { name: String, source: io::Error },
    #[error("{name} ended while starting; the end of its log:\n{words}")]
    Ended { name: String, words: String },
    #[error("{name} was not ready after {} s; the end of its log:\n{words}", READY_WITHIN.as_secs())]
    NotReady { name: String, words: String },
    #[error("no free loopback port: {0}")]
    Port(io::Error),
    #[error("kubectl {what}: {message}")]
    Kubectl { what: String, message: String },
    #[error("no client for {user}: {source}")]
    Client { user: &'static str, source: Box<kube::Error> },
    #[error("no client for {user}: {source}")]
    Kubeconfig { user: &'static str, source: Box<kube::config::KubeconfigError> },
}

/// A running control plane; dropping it stops the servers and removes its files.
#[derive(Debug)]
pub struct Plane {
    servers: Servers,
    // In the order in which they are stopped: what others rely on goes last.
    processes: Vec<Process>,
    /// How each was started, to be started again.
    recipes: Vec<Recipe>,
    folder: Folder,
}

impl Plane {
    /// Starts everything and returns when ReplicaSets would be reconciled.
    ///
    /// CRDs and RBAC are applied before the controller manager starts: its garbage collector
    /// would learn of later kinds only after a while.
    pub async fn start(servers: &Servers, repository: &Path) -> Result<Self, PlaneError> {
        let folder = Folder::create("real").map_err(|error| file(&std::env::temp_dir(), error))?;
        let mut plane =
            Self { servers: servers.clone(), processes: Vec::new(), recipes: Vec::new(), folder };
        let [etcd_port, peer_port, api_port] = ports::free().map_err(PlaneError::Port)?;
        let server = format!("https://127.0.0.1:{api_port}");
        plane.write("audit-policy.json", AUDIT_POLICY)?;
        plane.write("tokens.csv", &credentials::token_file())?;
        for user in User::ALL {
            let content = credentials::kubeconfig(user, &server, &plane.certificate());
            plane.write(user.kubeconfig(), &content)?;
        }
        plane.run(plane.etcd(etcd_port, peer_port))?;
        plane.run(plane.api_server(etcd_port, api_port))?;
        plane.api_server_is_ready().await?;
        let manifests = repository.join("manifests");
        plane.install(&manifests.join("crds"), &manifests.join("rbac.yaml"))?;
        plane.install_routing()?;
        let example = repository.join("examples/database-operator");
        plane.install(&example.join("crd.yaml"), &example.join("rbac.yaml"))?;
        plane.run(plane.controller_manager())?;
        plane.controller_manager_is_ready().await?;
        Ok(plane)
    }

    /// The folder of this run, for more files and logs.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Takes the logs of this run out of its folder, for whoever asks why it failed.
    pub fn keep_logs(&self) -> Result<PathBuf, PlaneError> {
        self.folder.keep_logs().map_err(|error| file(self.folder(), error))
    }

    /// Where every request is written down; see [`crate::audit`].
    pub fn audit_log(&self) -> PathBuf {
        self.folder().join("audit.log")
    }

    /// The path of a user's kubeconfig.
    pub fn kubeconfig(&self, user: User) -> PathBuf {
        self.folder().join(user.kubeconfig())
    }

    /// A kubeconfig of a user that goes through a proxy at `url`.
    pub fn kubeconfig_through(
        &self,
        user: User,
        url: &str,
        name: &str,
    ) -> Result<PathBuf, PlaneError> {
        let file_name = format!("{name}.kubeconfig");
        let content = credentials::kubeconfig(user, url, &self.certificate());
        self.write(&file_name, &content)?;
        Ok(self.folder().join(file_name))
    }

    /// A kubeconfig of the person whose own namespace is this one.
    pub fn kubeconfig_in(&self, namespace: &str) -> Result<PathBuf, PlaneError> {
        let original = self.kubeconfig(User::Person);
        let text = fs::read_to_string(&original).map_err(|source| file(&original, source))?;
        let mut content: Value = serde_json::from_str(&text).expect("we wrote it as JSON");
        content["contexts"][0]["context"]["namespace"] = namespace.into();
        let file_name = format!("{namespace}.person.kubeconfig");
        self.write(&file_name, &content.to_string())?;
        Ok(self.folder().join(file_name))
    }

    /// PATH with our kubectl before all others.
    pub fn path_with_kubectl(&self) -> OsString {
        let kubectl = self.servers.kubectl();
        let mut path =
            kubectl.parent().expect("a program lies in a folder").to_owned().into_os_string();
        if let Some(inherited) = env::var_os("PATH") {
            path.push(":");
            path.push(inherited);
        }
        path
    }

    /// The client configuration of a user, without the client's own retries.
    pub async fn config(&self, user: User) -> Result<Config, PlaneError> {
        let failed =
            |source| PlaneError::Kubeconfig { user: user.name(), source: Box::new(source) };
        let kubeconfig = Kubeconfig::read_from(self.kubeconfig(user)).map_err(failed)?;
        let options = KubeConfigOptions::default();
        let mut config =
            Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(failed)?;
        config.default_retry = false;
        Ok(config)
    }

    pub async fn client(&self, user: User) -> Result<Client, PlaneError> {
        let config = self.config(user).await?;
        Client::try_from(config)
            .map_err(|source| PlaneError::Client { user: user.name(), source: Box::new(source) })
    }

    /// kubectl as the person, ready for its arguments.
    pub fn kubectl(&self) -> Command {
        let mut command = Command::new(self.servers.kubectl());
        command.env("KUBECONFIG", self.kubeconfig(User::Person)).env("HOME", self.folder());
        command
    }

    fn certificate(&self) -> PathBuf {
        self.folder().join("apiserver/apiserver.crt")
    }

    fn write(&self, name: &str, content: &str) -> Result<(), PlaneError> {
        let path = self.folder().join(name);
        fs::write(&path, content).map_err(|source| file(&path, source))
    }

    fn run(&mut self, recipe: Recipe) -> Result<(), PlaneError> {
        let started = Process::start(&recipe, self.folder());
        let process =
            started.map_err(|source| PlaneError::Start { name: recipe.name.clone(), source })?;
        self.processes.insert(0, process);
        self.recipes.push(recipe);
        Ok(())
    }

    /// Kills a server with `kill -9`, as a node that dies does.
    pub fn kill_server(&mut self, name: &str) -> Result<(), PlaneError> {
        let failed = |source| PlaneError::Start { name: name.to_owned(), source };
        let found = self.processes.iter_mut().find(|process| process.name() == name);
        found.map_or(Ok(()), |process| process.kill().map_err(failed))
    }

    /// The number of each server's process, by name.
    pub fn pids(&self) -> io::Result<Vec<(String, u32)>> {
        self.processes.iter().map(|one| Ok((one.name().to_owned(), one.pid()?))).collect()
    }

    /// Starts a killed server again, as it was started before.
    pub fn start_server(&mut self, name: &str) -> Result<(), PlaneError> {
        let failed = |source| PlaneError::Start { name: name.to_owned(), source };
        let Some(recipe) = self.recipes.iter().find(|recipe| recipe.name == name) else {
            return Ok(());
        };
        let process = Process::start(recipe, self.folder.path()).map_err(failed)?;
        if let Some(at) = self.processes.iter().position(|process| process.name() == name) {
            self.processes[at] = process;
        }
        Ok(())
    }

    fn etcd(&self, port: u16, peer_port: u16) -> Recipe {
        let url = format!("http://127.0.0.1:{port}");
        let peer_url = format!("http://127.0.0.1:{peer_port}");
        Recipe::new("etcd", &self.servers.etcd())
            .flag("data-dir", self.folder().join("etcd"))
            .flag("listen-client-urls", &url)
            .flag("advertise-client-urls", &url)
            .flag("listen-peer-urls", &peer_url)
            .flag("initial-advertise-peer-urls", &peer_url)
            .flag("initial-cluster", format!("default={peer_url}"))
            .flag("log-level", "warn")
            // Nothing here outlives the run; waiting for the disk would only slow it down.
            .argument("--unsafe-no-fsync")
    }

    fn api_server(&self, etcd_port: u16, port: u16) -> Recipe {
        let certificates = self.folder().join("apiserver");
        // The server writes this key before it reads it as the signing key.
        let key = certificates.join("apiserver.key");
        Recipe::new("kube-apiserver", &self.servers.api_server())
            .flag("etcd-servers", format!("http://127.0.0.1:{etcd_port}"))
            .flag("bind-address", "127.0.0.1")
            .flag("advertise-address", "127.0.0.1")
            // The `kubernetes` Service may not point at a loopback address, and nobody uses it.
            .flag("endpoint-reconciler-type", "none")
            .flag("secure-port", port.to_string())
            .flag("cert-dir", &certificates)
            .flag("service-account-issuer", "https://kubernetes.default.svc")
            .flag("service-account-key-file", &key)
            .flag("service-account-signing-key-file", &key)
            .flag("service-cluster-ip-range", "10.0.0.0/16")
            .flag("token-auth-file", self.folder().join("tokens.csv"))
            .flag("authorization-mode", "RBAC")
            // Pods would need a token mounted by a kubelet that has containers.
            .flag("disable-admission-plugins", "ServiceAccount")
            // Some distributions have it on: it asks for rights that no other request shows.
            .flag("enable-admission-plugins", "OwnerReferencesPermissionEnforcement")
            .flag("audit-policy-file", self.folder().join("audit-policy.json"))
            .flag("audit-log-path", self.audit_log())
            // Megabytes before it is rotated away under the reader; 0 would mean 100.
            .flag("audit-log-maxsize", "10000")
    }

    fn controller_manager(&self) -> Recipe {
        let kubeconfig = self.kubeconfig(User::ControllerManager);
        Recipe::new("kube-controller-manager", &self.servers.controller_manager())
            .flag("kubeconfig", &kubeconfig)
            .flag("use-service-account-credentials", "false")
            .flag("leader-elect", "false")
            .flag("secure-port", "0")
            .flag("kube-api-qps", "500")
            .flag("kube-api-burst", "1000")
            .flag("concurrent-replicaset-syncs", "10")
    }

    async fn api_server_is_ready(&mut self) -> Result<(), PlaneError> {
        let began = Instant::now();
        // The client reads the certificate, which the server writes while starting.
        while !self.certificate().exists() {
            self.still_starting(began).await?;
        }
        loop {
            if let Ok(client) = self.client(User::Person).await {
                let request = http::Request::get("/readyz").body(Vec::new());
                let request = request.expect("a constant path is a valid request");
                if client.request_text(request).await.is_ok_and(|answer| answer == "ok") {
                    return Ok(());
                }
            }
            self.still_starting(began).await?;
        }
    }

    /// It has no port to ask, but the first thing it does in a new cluster can be seen.
    async fn controller_manager_is_ready(&mut self) -> Result<(), PlaneError> {
        let began = Instant::now();
        let accounts: Api<ServiceAccount> =
            Api::namespaced(self.client(User::Person).await?, "default");
        while accounts.get("default").await.is_err() {
            self.still_starting(began).await?;
        }
        Ok(())
    }

    /// Waits a moment; an error if the newest process has ended or takes too long.
    async fn still_starting(&mut self, began: Instant) -> Result<(), PlaneError> {
        for process in &mut self.processes {
            let name = process.name().to_owned();
            if process.ended().map_err(|source| PlaneError::Start { name, source })?.is_some() {
                let (name, words) = (process.name().to_owned(), process.last_words());
                return Err(PlaneError::Ended { name, words });
            }
        }
        if began.elapsed() > READY_WITHIN {
            let newest = self.processes.first().expect("something is starting");
            let (name, words) = (newest.name().to_owned(), newest.last_words());
            return Err(PlaneError::NotReady { name, words });
        }
        tokio::time::sleep(ASK_EVERY).await;
        Ok(())
    }

    /// Applies the CRDs and the rights of a controller, as a person would.
    fn install(&self, crds: &Path, rights: &Path) -> Result<(), PlaneError> {
        self.install_kinds(crds)?;
        self.kubectl_does(&["apply", "-f"], rights)
    }

    /// Applies definitions of the kinds that routers work on: scenarios name objects of them.
    fn install_routing(&self) -> Result<(), PlaneError> {
        let definitions = gradus_lab::routing::definitions();
        let items: Vec<_> = definitions.into_iter().map(|(_, definition)| definition).collect();
        let list = serde_json::json!({ "apiVersion": "v1", "kind": "List", "items": items });
        self.write("routing-crds.json", &list.to_string())?;
        self.install_kinds(&self.folder.path().join("routing-crds.json"))
    }

    fn install_kinds(&self, crds: &Path) -> Result<(), PlaneError> {
        self.kubectl_does(&["apply", "-f"], crds)?;
        self.kubectl_does(&["wait", "--for=condition=Established", "--timeout=60s", "-f"], crds)
    }

    /// Writes the status of an object, as its own controller would.
    pub fn patch_status(
        &self,
        namespace: &str,
        object: &str,
        status: &Value,
    ) -> Result<(), PlaneError> {
        let patch = serde_json::json!({ "status": status }).to_string();
        let place = ["patch", object, "--namespace", namespace, "--subresource=status"];
        self.kubectl_does(&[&place[..], &["--type=merge", "--patch"]].concat(), Path::new(&patch))
    }

    /// One command of the person's that must succeed; its last argument apart.
    pub fn kubectl_does(&self, arguments: &[&str], path: &Path) -> Result<(), PlaneError> {
        let what = format!("{} {}", arguments.join(" "), path.display());
        let output = self.kubectl().args(arguments).arg(path).output();
        let failed = |message| PlaneError::Kubectl { what: what.clone(), message };
        let Output { status, stderr, .. } = output.map_err(|error| failed(error.to_string()))?;
        if status.success() {
            return Ok(());
        }
        Err(failed(String::from_utf8_lossy(&stderr).trim().to_owned()))
    }
}

fn file(path: &Path, source: io::Error) -> PlaneError {
    PlaneError::File { path: path.to_owned(), source }
}
