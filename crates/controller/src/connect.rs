//! Which API server do we speak to, as whom, and is it there?

mod dated;
mod flags;
mod proxy;
mod served;
mod token;

use std::env;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use http::{HeaderValue, Request, header};
use jiff::Timestamp;
use kube::client::{Body, ClientBuilder};
use kube::config::{Kubeconfig, KubeconfigError};
use kube::{Client, Config};

use crate::one_line::one_line;
pub use dated::dated;
pub use flags::ConnectionFlags;
pub use served::{ServedKind, ServedKinds, placed, served};
pub use token::TokenError;
use token::TokenLayer;

#[cfg(test)]
mod tests;

/// Connecting must fail before the limit of a request does: then it is certain that nothing was
/// sent.
const CONNECT_LIMIT: Duration = Duration::from_secs(3);

/// How long the command that a kubeconfig names for credentials may take before that is told.
const COMMAND_WITHIN: Duration = Duration::from_secs(5);

/// How long to wait before the server is tried again, at first and at most.
const TRY_AGAIN: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(5));

/// A client and where it leads to.
#[derive(Clone)]
pub struct Connection {
    /// The client. It does not retry: the queue does.
    pub client: Client,
    /// The namespace that the configuration names.
    pub namespace: String,
    /// Address of the API server.
    pub server: String,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The file that was named cannot be used.
    #[error("kubeconfig {path}: {reason}")]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// We run in a pod, but its service account cannot be used.
    #[error(
        "in-cluster configuration: {0} (expected KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT \
         and the service account's files, or --kubeconfig)"
    )]
    InCluster(String),
    /// There is no configuration at all.
    #[error("no cluster: {0} (use --kubeconfig or --context, or set KUBECONFIG)")]
    Nowhere(String),
    /// A flag names a user that the kubeconfig does not have.
    #[error("--user: the kubeconfig has no user {user:?}; it has {known}")]
    User {
        /// The user.
        user: String,
        /// Those it has.
        known: String,
    },
    /// Something that should be an address is none.
    #[error("{what} is no address: {reason}")]
    Address {
        /// Which flag or field, and what it says.
        what: String,
        /// Why it is none.
        reason: String,
    },
    /// The configuration asks for something we cannot do.
    #[error("API server {server}: {reason}")]
    Client {
        /// Address of the API server.
        server: String,
        /// What is wrong with the configuration.
        reason: String,
    },
}

/// The kubeconfig of the environment: of the files that `$KUBECONFIG` lists, or else
/// `~/.kube/config`.
pub fn kubeconfig() -> Result<Kubeconfig, KubeconfigError> {
    match env::var_os("KUBECONFIG").filter(|list| !list.is_empty()) {
        Some(list) => merged(env::split_paths(&list)),
        None => Kubeconfig::read(),
    }
}

/// Several files as one: what an earlier one says holds. As for kubectl, those that are not there are
/// passed over, unless none is.
fn merged(paths: impl Iterator<Item = PathBuf>) -> Result<Kubeconfig, KubeconfigError> {
    let mut found: Option<Kubeconfig> = None;
    let mut first_missing = None;
    for path in paths.filter(|path| !path.as_os_str().is_empty()) {
        match (Kubeconfig::read_from(&path), found.take()) {
            (Ok(file), None) => found = Some(file),
            (Ok(file), Some(earlier)) => found = Some(earlier.merge(file)?),
            (Err(error), earlier) if is_missing(&error) => {
                first_missing.get_or_insert(error);
                found = earlier;
            }
            (Err(error), _) => return Err(error),
        }
    }
    found.ok_or(first_missing.unwrap_or(KubeconfigError::FindPath))
}

fn is_missing(error: &KubeconfigError) -> bool {
    matches!(error, KubeconfigError::ReadConfig(error, _) if error.kind() == ErrorKind::NotFound)
}

/// The client for a configuration.
pub fn client(mut config: Config) -> Result<Connection, ConnectError> {
    install_crypto();
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT_LIMIT);
    let agent = HeaderValue::from_static(crate::AGENT);
    config.headers.push((header::USER_AGENT, agent));
    let token = token_file(&mut config).map(TokenLayer::new);
    let server = config.cluster_url.to_string();
    // A service account's file may end with a line break.
    let namespace = config.default_namespace.trim().to_owned();
    let refused = |error: kube::Error| ConnectError::Client {
        server: server.clone(),
        reason: one_line(&error),
    };
    let command = config.auth_info.exec.as_ref().and_then(|exec| exec.command.clone());
    let waiting = command.map(|command| {
        unless_dropped(COMMAND_WITHIN, move || {
            tracing::warn!(
                "still waiting for credentials from {command}, which the kubeconfig names: \
                 nothing happens before it ends"
            );
        })
    });
    let builder = ClientBuilder::try_from(config).map_err(refused)?;
    drop(waiting);
    let client = match token {
        Some(layer) => builder.with_layer(&layer).build(),
        None => builder.build(),
    };
    Ok(Connection { client: served(client), namespace, server })
}

/// Does something after a while, unless what is returned is dropped before. The command for credentials
/// is waited for by the thread itself, so that nobody else could tell.
fn unless_dropped(after: Duration, then: impl FnOnce() + Send + 'static) -> Sender<()> {
    let (held, dropped) = channel();
    std::thread::spawn(move || {
        if dropped.recv_timeout(after) == Err(RecvTimeoutError::Timeout) {
            then();
        }
    });
    held
}

/// Takes the token file out of the configuration, if nothing else there says who we are. The
/// client would read it once a minute; ours is read anew as soon as the server refuses it.
fn token_file(config: &mut Config) -> Option<PathBuf> {
    let user = &mut config.auth_info;
    if user.auth_provider.is_some() || user.username.is_some() || user.token.is_some() {
        return None;
    }
    user.token_file.take().map(PathBuf::from)
}

/// One provider of cryptography for all TLS in this process; who installed one first has chosen.
fn install_crypto() {
    drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
}

/// What the server says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Its time, if it told it.
    pub time: Option<Timestamp>,
    /// Was it there at once, and does it say that it is ready?
    pub is_ready: bool,
}

/// Waits until the server answers anything at all. Says once what is wrong, and again only when
/// that changes.
pub async fn reach(connection: &Connection) -> Server {
    let (mut wait, longest) = TRY_AGAIN;
    let mut said = None;
    loop {
        match knock(&connection.client).await {
            Ok(server) => {
                if said.is_some() {
                    tracing::info!("the API server {} answers", connection.server);
                }
                return Server { is_ready: server.is_ready && said.is_none(), ..server };
            }
            Err(problem) if said.as_ref() == Some(&problem) => {}
            Err(problem) => {
                let server = &connection.server;
                tracing::warn!("cannot reach the API server {server}: {problem}; trying again");
                said = Some(problem);
            }
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(longest);
    }
}

async fn knock(client: &Client) -> Result<Server, String> {
    let request = Request::get("/readyz").body(Body::empty()).expect("a constant request");
    match tokio::time::timeout(crate::kube_cluster::REQUEST_LIMIT, client.send(request)).await {
        Err(_) => Err("no answer in time".to_owned()),
        Ok(Err(error)) => Err(one_line(&error)),
        Ok(Ok(response)) => {
            let is_ready = response.status().is_success();
            Ok(Server { time: dated::time_in(response.headers()), is_ready })
        }
    }
}
