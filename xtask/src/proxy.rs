//! What does the controller do when a write fails, is lost, or is its last? A loopback proxy
//! between it and the API server counts its writes and disturbs those it is told to.
//!
//! The controller speaks plain HTTP to the proxy, which passes its token on over TLS.

#[cfg(test)]
mod tests;

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
};

use http::{Method, Request, Response, header};
use http_body_util::BodyExt;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use kube::{Client, Config, client::Body, config::AuthInfo};
use serde_json::json;
use thiserror::Error;
use tokio::{
    net::{TcpListener, TcpStream},
    task::{JoinHandle, JoinSet},
};

/// What happens to one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The controller is killed, and the write never reaches the server.
    KillBefore,
    /// The server does it, then the controller is killed without an answer.
    KillAfter,
    /// It is answered with this status, and the server never hears of it.
    Answer(u16),
    /// The server does it, and the connection breaks instead of an answer.
    LoseAnswer,
    /// The connection breaks, and the server never hears of it.
    Unreachable,
}

/// Which write, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nth {
    /// Of all that reach the proxy.
    OfAll(usize),
    /// Of those that are no Events, as scenarios count.
    ButEvents(usize),
}

/// A fault at one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    pub write: Nth,
    pub fault: Fault,
}

/// A write the controller sent, in the order of arrival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    pub method: Method,
    pub path: String,
}

/// Why there is no proxy.
#[derive(Debug, Error)]
pub enum ProxyError {
    #[error("proxy: no free loopback port: {0}")]
    Port(io::Error),
    #[error("proxy: no client for the API server: {0}")]
    Client(Box<kube::Error>),
}

/// A running proxy; dropping it breaks all its connections.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

/// What all connections share.
struct Shared {
    server: Client,
    writes: Mutex<Vec<Write>>,
    /// The writes to disturb; of two faults at one write the first counts.
    plan: Vec<Planned>,
    kill: Box<dyn Fn() + Send + Sync>,
}

/// The connection breaks. The controller sees only that.
#[derive(Debug, Error)]
enum Broken {
    #[error("broken as planned")]
    Planned,
    #[error("the controller's request ended early: {0}")]
    Request(#[from] hyper::Error),
    #[error("the API server gave no answer: {0}")]
    Server(#[from] Box<kube::Error>),
    #[error("the proxy itself failed: {0}")]
    Proxy(#[from] tokio::task::JoinError),
}

impl Proxy {
    /// Starts it in front of the server of `upstream`. `kill` must return when the controller is
    /// gone.
    pub async fn start(
        mut upstream: Config,
        plan: Vec<Planned>,
        kill: impl Fn() + Send + Sync + 'static,
    ) -> Result<Self, ProxyError> {
        // The controller's own token is passed on.
        upstream.auth_info = AuthInfo::default();
        upstream.default_retry = false;
        let server =
            Client::try_from(upstream).map_err(|error| ProxyError::Client(Box::new(error)))?;
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(ProxyError::Port)?;
        let address = listener.local_addr().map_err(ProxyError::Port)?;
        let writes = Mutex::default();
        let shared = Arc::new(Shared { server, writes, plan, kill: Box::new(kill) });
        let task = tokio::spawn(listen(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, task })
    }

    /// What the controller's kubeconfig names as its server.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The writes so far, disturbed ones included.
    pub fn writes(&self) -> Vec<Write> {
        self.shared.writes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Those of the plan whose write has not come; a run that never got there proves nothing.
    pub fn missed(&self) -> Vec<Planned> {
        let writes = self.writes();
        let is_missed = |planned: &&Planned| !planned.write.has_come(&writes);
        self.shared.plan.iter().filter(is_missed).copied().collect()
    }
}

impl Write {
    fn is_event(&self) -> bool {
        self.path.split('/').any(|part| part == "events")
    }
}

impl Nth {
    fn has_come(self, writes: &[Write]) -> bool {
        match self {
            Self::OfAll(number) => number <= writes.len(),
            Self::ButEvents(number) => number <= but_events(writes),
        }
    }

    /// Is it the last of these?
    fn is_last(self, writes: &[Write]) -> bool {
        match self {
            Self::OfAll(number) => number == writes.len(),
            Self::ButEvents(number) => {
                number == but_events(writes) && writes.last().is_some_and(|last| !last.is_event())
            }
        }
    }
}

fn but_events(writes: &[Write]) -> usize {
    writes.iter().filter(|write| !write.is_event()).count()
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    /// Notes a write, and says what is planned for it.
    fn note(&self, request: &Request<Incoming>) -> Option<Fault> {
        if matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) {
            return None;
        }
        let write =
            Write { method: request.method().clone(), path: request.uri().path().to_owned() };
        let mut writes = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        writes.push(write);
        self.plan.iter().find(|planned| planned.write.is_last(&writes)).map(|one| one.fault)
    }

    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>, Broken> {
        match self.note(&request) {
            None => self.forward(request).await,
            Some(Fault::Answer(code)) => Ok(refusal(code)),
            Some(Fault::Unreachable) => Err(Broken::Planned),
            Some(Fault::LoseAnswer) => {
                self.finish(request).await?;
                Err(Broken::Planned)
            }
            Some(Fault::KillBefore) => {
                (self.kill)();
                Err(Broken::Planned)
            }
            Some(Fault::KillAfter) => {
                self.finish(request).await?;
                (self.kill)();
                Err(Broken::Planned)
            }
        }
    }

    /// Passes a request on. The answer streams through, so a watch works.
    async fn forward(&self, request: Request<Incoming>) -> Result<Response<Body>, Broken> {
        let (mut head, body) = request.into_parts();
        // These are about the connection to us; the one to the server has its own.
        for name in [header::HOST, header::CONNECTION, header::TRANSFER_ENCODING] {
            head.headers.remove(name);
        }
        let body = body.collect().await?.to_bytes();
        let request = Request::from_parts(head, Body::from(body));
        let mut response = self.server.send(request).await.map_err(Box::new)?;
        for name in [header::CONNECTION, header::TRANSFER_ENCODING] {
            response.headers_mut().remove(name);
        }
        Ok(response)
    }

    /// Passes a request on and waits for the whole answer: the server has done it.
    async fn finish(&self, request: Request<Incoming>) -> Result<(), Broken> {
        let answer = self.forward(request).await?;
        answer.into_body().collect().await.map_err(Box::new)?;
        Ok(())
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Shared").field("plan", &self.plan).finish_non_exhaustive()
    }
}

/// Connections end with the task that owns them.
async fn listen(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                connections.spawn(serve(stream, Arc::clone(&shared)));
            }
            Err(error) => eprintln!("proxy: {error}"),
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let service = service_fn(move |request| {
        let shared = Arc::clone(&shared);
        // A task of its own: what has reached the server is done, though the controller dies.
        async move { tokio::spawn(async move { shared.answer(request).await }).await? }
    });
    // How a connection ends is the controller's business: breaking it is what we are for.
    drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
}

/// The API server's words for a refusal.
fn refusal(code: u16) -> Response<Body> {
    let (reason, message) = match code {
        409 => {
            ("Conflict", "the object has been modified; please apply your changes to the latest")
        }
        429 => ("TooManyRequests", "the server has received too many requests"),
        _ => ("InternalError", "an injected error on the server"),
    };
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "metadata": {},
        "code": code, "reason": reason, "message": message,
    });
    let mut response =
        Response::builder().status(code).header(header::CONTENT_TYPE, "application/json");
    if code == 429 {
        response = response.header(header::RETRY_AFTER, "1");
    }
    let body = Body::from(status.to_string().into_bytes());
    response.body(body).expect("a known status and constant headers make a response")
}
