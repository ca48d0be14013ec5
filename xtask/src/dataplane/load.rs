//! Requests without a pause, over connections that last and over new ones: which version answers,
//! and is any of them lost?

use std::{
    collections::BTreeMap,
    net::Ipv4Addr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use http::{Request, StatusCode, header};
use http_body_util::{BodyExt, Empty};
use hyper::{
    body::Bytes,
    client::conn::http1::{SendRequest, handshake},
};
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::{net::TcpStream, sync::RwLock, task::JoinSet};

/// Connections that last, and as many that are opened for each request.
const OF_EACH: usize = 2;

/// How long each of them waits after an answer.
const BREATH: Duration = Duration::from_millis(10);

/// A request that takes longer is lost.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many reasons of lost requests are kept.
const QUOTED: usize = 5;

/// Why a request is lost.
#[derive(Debug, Error)]
enum Lost {
    #[error("no connection: {0}")]
    Connect(#[from] std::io::Error),
    #[error("{0}")]
    Http(#[from] hyper::Error),
    #[error("answered {0}")]
    Status(StatusCode),
    #[error("no answer within {} s", PATIENCE.as_secs())]
    Late(#[from] tokio::time::error::Elapsed),
}

/// Answers by version.
pub type Split = BTreeMap<String, usize>;

/// What became of the requests so far.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub answered: usize,
    pub lost: usize,
    /// The first reasons.
    pub reasons: Vec<String>,
}

/// Constant load on one host; dropping it ends it.
pub struct Load {
    shared: Arc<Shared>,
    _workers: JoinSet<()>,
}

struct Shared {
    port: u16,
    host: String,
    tally: Mutex<Tally>,
    /// Held by every request; a measurement takes all of it, so that it counts no others.
    gate: RwLock<()>,
}

/// How a connection is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Connection {
    Lasts,
    IsNew,
}

impl Load {
    /// Begins at once.
    pub fn start(port: u16, host: &str) -> Self {
        let shared = Arc::new(Shared {
            port,
            host: host.to_owned(),
            tally: Mutex::default(),
            gate: RwLock::new(()),
        });
        let mut workers = JoinSet::new();
        for connection in [Connection::Lasts, Connection::IsNew] {
            for _ in 0..OF_EACH {
                let shared = Arc::clone(&shared);
                workers.spawn(async move {
                    let mut client = Client::new(connection);
                    loop {
                        {
                            let _open = shared.gate.read().await;
                            shared.note(client.ask(&shared).await);
                        }
                        tokio::time::sleep(BREATH).await;
                    }
                });
            }
        }
        Self { shared, _workers: workers }
    }

    /// How it went since the last time this was asked.
    pub fn take(&self) -> Tally {
        std::mem::take(&mut *self.shared.tally.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// So many requests one after the other, with all others held back; half of them over one
    /// connection, half over new ones. Who answered?
    pub async fn measure(&self, requests: usize) -> Split {
        let _closed = self.shared.gate.write().await;
        let mut split = Split::new();
        let mut clients = [Connection::Lasts, Connection::IsNew].map(Client::new);
        for number in 0..requests {
            let answer = clients[number % 2].ask(&self.shared).await;
            if let Some(version) = self.shared.note(answer) {
                *split.entry(version).or_default() += 1;
            }
        }
        split
    }
}

impl Shared {
    fn note(&self, answer: Result<String, Lost>) -> Option<String> {
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        match answer {
            Ok(version) => {
                tally.answered += 1;
                Some(version)
            }
            Err(error) => {
                tally.lost += 1;
                if tally.reasons.len() < QUOTED {
                    tally.reasons.push(error.to_string());
                }
                None
            }
        }
    }
}

/// One connection, opened when it is needed.
struct Client {
    connection: Connection,
    open: Option<SendRequest<Empty<Bytes>>>,
}

impl Client {
    fn new(connection: Connection) -> Self {
        Self { connection, open: None }
    }

    /// The version that answers.
    async fn ask(&mut self, shared: &Shared) -> Result<String, Lost> {
        let open = self.open.take().filter(|open| !open.is_closed());
        tokio::time::timeout(PATIENCE, self.answer(shared, open)).await?
    }

    async fn answer(
        &mut self,
        shared: &Shared,
        open: Option<SendRequest<Empty<Bytes>>>,
    ) -> Result<String, Lost> {
        let mut open = match open {
            Some(open) => open,
            None => connect(shared.port).await?,
        };
        open.ready().await?;
        let closes = if self.connection == Connection::IsNew { "close" } else { "keep-alive" };
        let request = Request::get("/")
            .header(header::HOST, &shared.host)
            .header(header::CONNECTION, closes)
            .body(Empty::new())
            .expect("a host name and constants make a valid request");
        let answer = open.send_request(request).await?;
        if answer.status() != StatusCode::OK {
            return Err(Lost::Status(answer.status()));
        }
        let body = answer.into_body().collect().await?.to_bytes();
        if self.connection == Connection::Lasts {
            self.open = Some(open);
        }
        Ok(String::from_utf8_lossy(&body).into_owned())
    }
}

async fn connect(port: u16) -> Result<SendRequest<Empty<Bytes>>, Lost> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    // It ends with its sender; what went wrong the request itself says.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}
