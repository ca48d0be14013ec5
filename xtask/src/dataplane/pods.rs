//! The containers of pods: HTTP servers of this process, each on the address of its pod, which say
//! of which version they are, and count their requests.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use futures::{StreamExt, TryStreamExt};
use http::{Request, Response, header};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client, ResourceExt, runtime::watcher};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::{JoinHandle, JoinSet},
};

/// Where the containers listen.
pub const PORT: u16 = 8080;

/// Serves every pod; dropping it ends them all at once.
pub struct Containers {
    arrived: Arrived,
    task: JoinHandle<()>,
}

/// Requests that arrived so far, answered or copied, by host and version. Clones share it.
#[derive(Clone, Default)]
pub struct Arrived(Arc<Mutex<BTreeMap<(String, String), usize>>>);

impl Containers {
    pub fn start(client: Client) -> Self {
        let arrived = Arrived::default();
        let task = tokio::spawn(run(client, arrived.clone()));
        Self { arrived, task }
    }

    pub fn arrived(&self) -> &Arrived {
        &self.arrived
    }
}

impl Drop for Containers {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Arrived {
    /// Requests to a host, by the version that got them.
    pub fn of(&self, host: &str) -> BTreeMap<String, usize> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_host = all.iter().filter(|((of, _), _)| of == host);
        of_host.map(|((_, version), count)| (version.clone(), *count)).collect()
    }

    fn count<B>(&self, request: &Request<B>, version: &str) {
        let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
        if let Some(host) = host {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            *all.entry((host.to_owned(), version.to_owned())).or_default() += 1;
        }
    }
}

/// One server for each pod, from its address on until the pod is gone: as long as a container lives
/// whose preStop hook waits.
async fn run(client: Client, arrived: Arrived) {
    let mut servers = JoinSet::new();
    let mut known: BTreeMap<String, watch::Sender<bool>> = BTreeMap::new();
    let pods: Api<Pod> = Api::all(client);
    let mut events = watcher(pods, watcher::Config::default()).boxed();
    loop {
        match events.try_next().await {
            Ok(Some(watcher::Event::Apply(pod) | watcher::Event::InitApply(pod))) => {
                let uid = pod.uid().unwrap_or_default();
                let Some(address) = address(&pod).filter(|_| !known.contains_key(&uid)) else {
                    continue;
                };
                // At once: it must listen before it is ready.
                match TcpListener::bind(address).await {
                    Ok(listener) => {
                        let (end, ends) = watch::channel(false);
                        let arrived = arrived.clone();
                        servers.spawn(serve(listener, version(&pod), arrived, ends));
                        known.insert(uid, end);
                    }
                    Err(error) => eprintln!("pod {}: {address}: {error}", pod.name_any()),
                }
            }
            Ok(Some(watcher::Event::Delete(pod))) => {
                if let Some(end) = known.remove(&pod.uid().unwrap_or_default()) {
                    end.send_replace(true);
                }
            }
            Ok(Some(watcher::Event::Init | watcher::Event::InitDone)) => {}
            Ok(None) => return,
            Err(error) => eprintln!("containers: watching pods: {error}"),
        }
        while servers.try_join_next().is_some() {}
    }
}

fn address(pod: &Pod) -> Option<SocketAddr> {
    let address = pod.status.as_ref()?.pod_ip.as_ref()?;
    Some(SocketAddr::new(address.parse().ok()?, PORT))
}

/// The tag of its image.
fn version(pod: &Pod) -> String {
    let image = pod.spec.as_ref().and_then(|spec| spec.containers.first()?.image.clone());
    image.unwrap_or_default().rsplit(':').next().unwrap_or_default().to_owned()
}

/// Answers until its end; then open requests are answered and nothing new is taken.
async fn serve(
    listener: TcpListener,
    version: String,
    arrived: Arrived,
    mut ends: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            taken = listener.accept() => if let Ok((stream, _)) = taken {
                let (version, arrived, ends) = (version.clone(), arrived.clone(), ends.clone());
                connections.spawn(converse(stream, version, arrived, ends));
            },
            () = end(&mut ends) => break,
        }
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn converse(
    stream: TcpStream,
    version: String,
    arrived: Arrived,
    mut ends: watch::Receiver<bool>,
) {
    let answer = service_fn(move |request: Request<Incoming>| {
        arrived.count(&request, &version);
        let answer = Response::new(version.clone());
        async move { Ok::<_, Infallible>(answer) }
    });
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        // A client that goes away in the middle is its own affair.
        _ = connection.as_mut() => {}
        () = end(&mut ends) => {
            connection.as_mut().graceful_shutdown();
            drop(connection.await);
        }
    }
}

/// Returns when the pod is gone, or nobody is left to say so.
async fn end(ends: &mut watch::Receiver<bool>) {
    drop(ends.wait_for(|ended| *ended).await);
}
