//! The cluster as a running server: one owner of cluster and clock, in process and on a port.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tower::Service as _;

use crate::SimCluster;
use crate::kinds::KindId;
use crate::service::{Hook, Service};

/// How often a server looks what it can forget.
const FORGET_EVERY: Duration = Duration::from_secs(15);

/// Tells the server what time it is; in a simulation that is virtual time.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// A cluster that answers HTTP. Clones are the same server.
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
}

/// How far back a server remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// How long an Event stays that nobody writes any more. An hour on most clusters.
    pub events: Duration,
    /// How long a watch may have been away, and a list may be read on. Five minutes on most.
    pub past: Duration,
}

/// What all requests of one server share.
pub(crate) struct Shared {
    cluster: Mutex<SimCluster>,
    clock: Clock,
    version: watch::Sender<u64>,
    hook: Mutex<Option<Arc<Hook>>>,
}

impl Server {
    /// A server for this cluster.
    pub fn new(cluster: SimCluster, clock: Clock) -> Self {
        let (version, _) = watch::channel(cluster.version());
        let shared =
            Shared { cluster: Mutex::new(cluster), clock, version, hook: Mutex::new(None) };
        Self { shared: Arc::new(shared) }
    }

    /// The server as a tower service, for `kube::Client::new` in the same process.
    pub fn service(&self) -> Service {
        Service::new(self.shared.clone())
    }

    /// Lets `work` do something with the cluster now, then wakes everybody who watches.
    pub fn with<R>(&self, work: impl FnOnce(&mut SimCluster, Timestamp) -> R) -> R {
        self.shared.with(work)
    }

    /// The version of the cluster, as it changes.
    pub fn versions(&self) -> watch::Receiver<u64> {
        self.shared.subscribe()
    }

    /// Asks `hook` about every request before it is carried out; replaces an earlier hook.
    pub fn set_hook(
        &self,
        hook: impl Fn(&crate::service::RequestInfo<'_>) -> crate::service::HookAction
        + Send
        + Sync
        + 'static,
    ) {
        *lock(&self.shared.hook) = Some(Arc::new(hook));
    }

    /// No request is asked about any more.
    pub fn remove_hook(&self) {
        *lock(&self.shared.hook) = None;
    }

    /// Runs the cluster's own controllers and kubelet for ever: at once when something was written,
    /// and whenever a pod is due to change by itself.
    pub async fn run_workers(&self) {
        let mut version = self.shared.version.subscribe();
        loop {
            let due = self.with(|cluster, now| {
                cluster.settle(now);
                cluster.next_due()
            });
            version.borrow_and_update();
            tokio::select! {
                changed = version.changed() => {
                    changed.expect("the sender lives as long as the server");
                }
                () = self.until(due) => {}
            }
        }
    }

    /// Forgets for ever what is too long ago, so that a server which runs on and on does not grow:
    /// Events that were not written for a while, and the past that watches can go back to.
    pub async fn run_forgetting(&self, memory: Memory) {
        let mut moments = VecDeque::new();
        loop {
            let began = tokio::time::Instant::now();
            moments.push_back((began, self.with(|cluster, _| cluster.version())));
            tokio::time::sleep(FORGET_EVERY).await;
            // The versions that were the newest so long ago.
            let before = |age: Duration| {
                let past = moments.iter().rev().find(|(moment, _)| moment.elapsed() >= age);
                past.map(|(_, version)| *version)
            };
            let (events, past) = (before(memory.events), before(memory.past));
            self.with(|cluster, _| {
                if let Some(version) = events {
                    cluster.expire(KindId::EVENT, version);
                }
                if let Some(version) = past {
                    cluster.forget_all_until(version);
                }
            });
            let longest = memory.events.max(memory.past) + FORGET_EVERY;
            moments.retain(|(moment, _)| moment.elapsed() <= longest);
        }
    }

    /// Answers on a loopback port until the result is dropped. Port 0 takes a free one.
    pub async fn listen(&self, address: SocketAddr) -> io::Result<Listening> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let task = tokio::spawn(accept(listener, self.service()));
        Ok(Listening { address, task })
    }

    async fn until(&self, due: Option<Timestamp>) {
        let Some(due) = due else {
            return std::future::pending().await;
        };
        let wait = due.duration_since((self.shared.clock)());
        tokio::time::sleep(Duration::try_from(wait).unwrap_or_default()).await;
    }
}

impl Shared {
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut SimCluster, Timestamp) -> R) -> R {
        let now = (self.clock)();
        let mut cluster = lock(&self.cluster);
        let before = cluster.version();
        let result = work(&mut cluster, now);
        let after = cluster.version();
        drop(cluster);
        if after != before {
            self.version.send_replace(after);
        }
        result
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    pub(crate) fn hook(&self) -> Option<Arc<Hook>> {
        lock(&self.hook).clone()
    }
}

/// A server on a port; ends when dropped.
#[derive(Debug)]
pub struct Listening {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Listening {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it listens, as a URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A kubeconfig for it.
    pub fn kubeconfig(&self) -> String {
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "simkube",
            "clusters": [{"name": "simkube", "cluster": {"server": self.url()}}],
            "users": [{"name": "person", "user": {"token": "person"}}],
            "contexts": [{"name": "simkube", "context": {
                "cluster": "simkube", "user": "person", "namespace": "default",
            }}],
        });
        format!("{config:#}\n")
    }

    /// Writes the kubeconfig to a file.
    pub fn write_kubeconfig(&self, path: &Path) -> io::Result<()> {
        std::fs::write(path, self.kubeconfig())
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, service: Service) {
    // The connections are owned here, so that they end with the listener.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // A connection that fails before it begins concerns its client alone.
                if let Ok((stream, _)) = accepted {
                    connections.spawn(serve(stream, service.clone()));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(stream: TcpStream, service: Service) {
    let answer = service_fn(move |request| {
        let mut service = service.clone();
        async move { service.call(request).await }
    });
    // An error here is a client that went away, or one a hook cut off.
    http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await.ok();
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::Request;
    use crate::behave::Behaviours;
    use crate::service::HookAction;

    async fn ask(address: SocketAddr, path: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect(address).await?;
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_long_ago_is_forgotten() {
        let start = Timestamp::UNIX_EPOCH;
        let server =
            Server::new(SimCluster::new(Behaviours::default(), start), Arc::new(move || start));
        let minutes = |number: u64| Duration::from_secs(60 * number);
        let forgetful = server.clone();
        let memory = Memory { events: minutes(10), past: minutes(5) };
        tokio::spawn(async move { forgetful.run_forgetting(memory).await });
        let write = |name: &str| {
            server.with(|cluster, now| {
                let body = json!({
                    "metadata": {"name": name}, "involvedObject": {"namespace": "default"},
                });
                cluster.call(&Request::create(KindId::EVENT, "default", body), now).unwrap();
                cluster.version()
            })
        };
        let first = write("first");
        tokio::time::sleep(minutes(8)).await;
        write("second");
        tokio::time::sleep(Duration::from_secs(1)).await;
        let look = || {
            server.with(|cluster, _| {
                let names = cluster.list(KindId::EVENT, "").map(|one| one.meta.name.to_string());
                (names.collect::<Vec<_>>(), cluster.events_after(KindId::EVENT, first).is_ok())
            })
        };
        assert_eq!(look(), (vec!["first".to_owned(), "second".to_owned()], true));
        tokio::time::sleep(minutes(3)).await;
        assert_eq!(look(), (vec!["second".to_owned()], true), "nobody wrote it for ten minutes");
        tokio::time::sleep(minutes(3)).await;
        assert_eq!(look(), (vec!["second".to_owned()], false), "that was five minutes ago");
        tokio::time::sleep(minutes(8)).await;
        assert_eq!(look().0, Vec::<String>::new());
    }

    #[tokio::test]
    async fn a_port_answers_until_it_is_dropped() {
        let start = Timestamp::UNIX_EPOCH;
        let server =
            Server::new(SimCluster::new(Behaviours::default(), start), Arc::new(move || start));
        let listening = server.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
        let address = listening.address();
        assert!(ask(address, "/healthz").await.unwrap().ends_with("ok"));
        server.set_hook(|_| HookAction::Drop);
        assert_eq!(ask(address, "/healthz").await.unwrap(), "", "cut off without an answer");
        server.remove_hook();
        assert!(ask(address, "/api/v1/namespaces/default").await.unwrap().contains("200 OK"));
        assert!(listening.kubeconfig().contains(&listening.url()));
        drop(listening);
        tokio::task::yield_now().await;
        assert!(ask(address, "/healthz").await.is_err(), "nobody listens any more");
    }
}
