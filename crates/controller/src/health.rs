//! Is the controller alive, is it ready, and what does it think of one object?

mod debug;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

use crate::clock::Clock;
use crate::telemetry::Metrics;
use debug::hide_env_values;
pub use debug::{DebugToken, DebugTokenError};

/// Namespace and name of an object that somebody asks about.
pub type ObjectName = (String, String);

/// A question to the loop: the World and the Decision of a key, as JSON without secrets.
pub struct WorldRequest {
    /// Of which kind, as a person writes it: its name or its plural.
    pub kind: String,
    /// Of which object.
    pub key: ObjectName,
    /// Where the answer goes; `None` where there is no such object.
    pub reply: oneshot::Sender<Option<Value>>,
}

/// What the health port needs to know. Clones share it.
#[derive(Clone)]
pub struct Health {
    ready: Arc<AtomicBool>,
    worlds: mpsc::Sender<WorldRequest>,
}

/// Questions that may wait for the loop.
const WAITING: usize = 16;

impl Health {
    /// A controller that is not ready yet, and the questions that its loop shall answer.
    pub fn new() -> (Self, mpsc::Receiver<WorldRequest>) {
        let (worlds, questions) = mpsc::channel(WAITING);
        (Health { ready: Arc::default(), worlds }, questions)
    }

    /// Says whether the caches are synced.
    pub fn set_ready(&self, ready: bool) {
        self.ready.store(ready, Ordering::Relaxed);
    }

    /// Are the caches synced?
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Relaxed)
    }

    async fn world(&self, kind: String, key: ObjectName) -> Result<Option<Value>, Away> {
        let (reply, answer) = oneshot::channel();
        self.worlds.send(WorldRequest { kind, key, reply }).await.map_err(|_| Away)?;
        answer.await.map_err(|_| Away)
    }
}

/// The loop has ended.
struct Away;

/// Serves `/healthz` and `/readyz` until the task is dropped, and `/debug/world/KIND/NAMESPACE/NAME` to
/// those who know the token; without one to nobody.
pub async fn serve_health(
    listener: TcpListener,
    health: Health,
    token: Option<DebugToken>,
) -> std::io::Result<()> {
    let router = Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(ready))
        .with_state(health.clone())
        .merge(debug_router(health, token));
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, service).await
}

/// Serves `/metrics` until the task is dropped.
pub async fn serve_metrics(
    listener: TcpListener,
    metrics: Metrics,
    clock: Clock,
) -> std::io::Result<()> {
    let text = move || {
        let pieces = metrics.pieces(clock.now());
        let length: usize = pieces.iter().map(String::len).sum();
        let pieces = pieces.into_iter().map(Ok::<_, Infallible>);
        let body = Body::from_stream(futures::stream::iter(pieces));
        let kind = (header::CONTENT_TYPE, prometheus::TEXT_FORMAT.to_owned());
        std::future::ready(([kind, (header::CONTENT_LENGTH, length.to_string())], body))
    };
    axum::serve(listener, Router::new().route("/metrics", get(text))).await
}

async fn ready(State(health): State<Health>) -> Response {
    if health.is_ready() { "ok".into_response() } else { not_ready() }
}

fn not_ready() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "the caches are not synced yet").into_response()
}

/// `/debug/world`, or a path that says how it is switched on.
fn debug_router(health: Health, token: Option<DebugToken>) -> Router {
    const PATH: &str = "/debug/world/{kind}/{namespace}/{name}";
    match token {
        Some(token) => Router::new().route(PATH, get(world)).with_state((health, token)),
        None => {
            let off = "off: --debug-world and --debug-world-token-file switch it on";
            Router::new().route(PATH, get(move || async move { (StatusCode::NOT_FOUND, off) }))
        }
    }
}

async fn world(
    State((health, token)): State<(Health, DebugToken)>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    Path((kind, namespace, name)): Path<(String, String, String)>,
) -> Response {
    // A World holds whole specs: not for everyone who reaches the port. A sidecar delivers from
    // loopback what came from anywhere, so that alone says nothing.
    if !peer.ip().to_canonical().is_loopback() {
        let hint = "only from this machine: use kubectl port-forward";
        return (StatusCode::FORBIDDEN, hint).into_response();
    }
    if !token.admits(&headers) {
        let hint = "expected the token of --debug-world-token-file as Authorization: Bearer TOKEN";
        return (StatusCode::UNAUTHORIZED, hint).into_response();
    }
    // Before that the loop may not run yet, and what it does not know may be there all the same.
    if !health.is_ready() {
        return not_ready();
    }
    match health.world(kind, (namespace, name)).await {
        Ok(Some(mut world)) => {
            hide_env_values(&mut world);
            ([(header::CONTENT_TYPE, "application/json")], format!("{world:#}\n")).into_response()
        }
        Ok(None) => (StatusCode::NOT_FOUND, "no such object").into_response(),
        Err(Away) => (StatusCode::SERVICE_UNAVAILABLE, "the controller stops").into_response(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::body::Body;
    use axum::http::Request;
    use serde_json::json;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// Longer than any answer takes.
    const PATIENCE: Duration = Duration::from_secs(10);

    const TOKEN: &str = "s3cret";

    fn token() -> Option<DebugToken> {
        Some(DebugToken::of(TOKEN))
    }

    /// The status and the body of the answer to one request of somebody who knows the token.
    async fn fetch(address: SocketAddr, path: &str) -> (u16, String) {
        fetch_as(address, path, TOKEN).await
    }

    async fn fetch_as(address: SocketAddr, path: &str, token: &str) -> (u16, String) {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
             authorization: Bearer {token}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), body.to_owned())
    }

    async fn listen() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    #[tokio::test]
    async fn alive_at_once_and_ready_when_synced() {
        let (listener, address) = listen().await;
        let (health, _questions) = Health::new();
        tokio::spawn(serve_health(listener, health.clone(), token()));
        assert_eq!(fetch(address, "/healthz").await, (200, "ok".into()));
        assert_eq!(fetch(address, "/readyz").await.0, 503);
        let world =
            tokio::time::timeout(PATIENCE, fetch(address, "/debug/world/rollout/shop/web")).await;
        assert_eq!(world.expect("an answer, though no loop runs").0, 503);
        health.set_ready(true);
        assert_eq!(fetch(address, "/readyz").await, (200, "ok".into()));
    }

    #[tokio::test]
    async fn the_loop_tells_what_it_thinks() {
        let (listener, address) = listen().await;
        let (health, mut questions) = Health::new();
        health.set_ready(true);
        tokio::spawn(serve_health(listener, health, token()));
        tokio::spawn(async move {
            while let Some(WorldRequest { kind, key, reply }) = questions.recv().await {
                let known = kind == "rollout" && key == ("shop".to_owned(), "web".to_owned());
                let env = json!([{ "name": "P", "value": "hunter2" }]);
                reply.send(known.then(|| json!({ "world": 1, "env": env }))).unwrap();
            }
        });
        let (status, body) = fetch(address, "/debug/world/rollout/shop/web").await;
        let shown: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((status, &shown["world"]), (200, &json!(1)));
        assert!(!body.contains("hunter2"), "{body}");
        for wrong in ["", "s3cre", "other"] {
            let path = "/debug/world/rollout/shop/web";
            assert_eq!(fetch_as(address, path, wrong).await.0, 401, "{wrong:?}");
        }
        assert_eq!(fetch(address, "/debug/world/rollout/shop/api").await.0, 404);
        assert_eq!(fetch(address, "/debug/world/service/shop/web").await.0, 404);
    }

    #[tokio::test]
    async fn without_a_token_nobody_sees_a_world() {
        let (listener, address) = listen().await;
        let (health, _questions) = Health::new();
        health.set_ready(true);
        tokio::spawn(serve_health(listener, health, None));
        let (status, body) = fetch(address, "/debug/world/rollout/shop/web").await;
        assert_eq!(status, 404);
        assert!(body.contains("--debug-world"), "{body}");
    }

    #[tokio::test]
    async fn a_loop_that_ended_is_no_hang() {
        let (listener, address) = listen().await;
        let (health, questions) = Health::new();
        health.set_ready(true);
        drop(questions);
        tokio::spawn(serve_health(listener, health, token()));
        assert_eq!(fetch(address, "/debug/world/rollout/shop/web").await.0, 503);
    }

    #[tokio::test]
    async fn strangers_may_not_look_into_the_world() {
        use tower::ServiceExt;
        let (health, _questions) = Health::new();
        let router = debug_router(health, token());
        for stranger in ["10.0.0.7:4000", "[::ffff:10.0.0.7]:4000", "[2001:db8::1]:4000"] {
            let mut request =
                Request::get("/debug/world/rollout/shop/web").body(Body::empty()).unwrap();
            let bearer = format!("Bearer {TOKEN}").parse().unwrap();
            request.headers_mut().insert(header::AUTHORIZATION, bearer);
            let peer: SocketAddr = stranger.parse().unwrap();
            request.extensions_mut().insert(ConnectInfo(peer));
            let answer = router.clone().oneshot(request).await.unwrap();
            assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{stranger}");
        }
    }

    #[tokio::test]
    async fn metrics_are_served_as_prometheus_reads_them() {
        let (listener, address) = listen().await;
        let metrics = Metrics::new();
        metrics.reconciled("shop", "web", Duration::from_millis(3));
        tokio::spawn(serve_metrics(listener, metrics, Clock::system()));
        let (status, text) = fetch(address, "/metrics").await;
        assert_eq!(status, 200);
        assert!(text.contains("# TYPE rollout_reconcile histogram"), "{text}");
        assert!(text.contains("argo_rollouts_controller_info"), "{text}");
    }
}
