//! A metric server on a loopback port, or on any other stream: it answers for a running cluster.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

use super::{EndpointReply, Traffic};
use crate::SimCluster;
use crate::server::Server;

/// Between looks at a cluster that changes without a write: its behaviours.
const LOOK: Duration = Duration::from_secs(1);

/// Who answers for servers outside the cluster, before the traffic is asked: host, path with query
/// string, and body. None lets the traffic answer.
pub type Outside = Arc<dyn Fn(&str, &str, &str, Timestamp) -> Option<EndpointReply> + Send + Sync>;

/// The metric server of a cluster. Clones are the same.
#[derive(Clone)]
pub struct MetricPort {
    server: Server,
    traffic: Arc<Mutex<Traffic>>,
    outside: Option<Outside>,
}

/// A metric server on a port; ends when dropped.
#[derive(Debug)]
pub struct ListeningForMetrics {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl MetricPort {
    /// The metric server of this cluster.
    pub fn new(server: &Server, outside: Option<Outside>) -> Self {
        let traffic = Arc::new(Mutex::new(Traffic::default()));
        MetricPort { server: server.clone(), traffic, outside }
    }

    /// Looks at the cluster whenever it changes, for ever.
    pub async fn watch(&self) {
        let mut versions = self.server.versions();
        loop {
            self.look();
            versions.borrow_and_update();
            // The server may be gone; what was seen so far is answered all the same.
            let changed = tokio::time::timeout(LOOK, versions.changed()).await;
            if matches!(changed, Ok(Err(_))) {
                return;
            }
        }
    }

    /// Answers on a loopback port until the result is dropped. Port 0 takes a free one.
    pub async fn listen(&self, address: SocketAddr) -> io::Result<ListeningForMetrics> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let port = self.clone();
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            connections.spawn({
                let port = port.clone();
                async move { port.watch().await }
            });
            loop {
                tokio::select! {
                    accepted = listener.accept() => {
                        // A connection that fails before it begins concerns its client alone.
                        if let Ok((stream, _)) = accepted {
                            let port = port.clone();
                            connections.spawn(async move { port.serve(stream).await });
                        }
                    }
                    Some(_) = connections.join_next() => {}
                }
            }
        });
        Ok(ListeningForMetrics { address, task })
    }

    /// Answers on one connection until it ends.
    pub async fn serve(&self, stream: impl AsyncRead + AsyncWrite + Unpin + 'static) {
        let port = self.clone();
        let answer = service_fn(move |request| {
            let port = port.clone();
            async move { port.respond(request).await }
        });
        // An error here is a client that went away.
        http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await.ok();
    }

    async fn respond(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, hyper::Error> {
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let text = |header| head.headers.get(header).and_then(|value| value.to_str().ok());
        let host = text(http::header::HOST).unwrap_or_default().to_owned();
        let target = head.uri.path_and_query().map_or("/", |target| target.as_str());
        let reply = self.answer(&host, target, &String::from_utf8_lossy(&body));
        let mut response = Response::new(Full::new(Bytes::from(reply.body)));
        *response.status_mut() = reply.status.try_into().unwrap_or(http::StatusCode::OK);
        let json = http::HeaderValue::from_static("application/json");
        response.headers_mut().insert(http::header::CONTENT_TYPE, json);
        Ok(response)
    }

    /// The answer for the cluster as it is now.
    fn answer(&self, host: &str, target: &str, body: &str) -> EndpointReply {
        let now = self.look();
        let given = self.outside.as_ref().and_then(|outside| outside(host, target, body, now));
        given.unwrap_or_else(|| self.traffic().answer(target, body, now))
    }

    fn look(&self) -> Timestamp {
        self.server.with(|cluster: &mut SimCluster, now| {
            self.traffic().observe(cluster, now);
            now
        })
    }

    fn traffic(&self) -> MutexGuard<'_, Traffic> {
        self.traffic.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ListeningForMetrics {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for ListeningForMetrics {
    fn drop(&mut self) {
        self.task.abort();
    }
}
