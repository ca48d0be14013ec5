//! How often may a watch be begun, and when has it? Something between us and the server may end it at
//! once, or never answer.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use tokio::sync::watch;
use tokio::time::Instant;
use tower::BoxError;

use crate::rate::{Bucket, Rate};

/// A healthy watch is begun every few minutes; one that ends at once must not become a flood.
const WATCHES: Rate = Rate { per_second: 0.5, burst: 5 };

/// A watch that is not answered for so long is begun anew. Servers answer before anything happens.
const START_LIMIT: Duration = Duration::from_secs(15);

/// A watch that fails within this time was none: some servers agree first and refuse then.
const PROBATION: Duration = Duration::from_secs(1);

/// The same client, but watches wait for their turn. Lists and their pages do not.
pub(super) fn paced(client: Client, beginning: Beginning) -> Client {
    let namespace = client.default_namespace().to_owned();
    let bucket = Arc::new(Mutex::new(Bucket::new(WATCHES, Instant::now())));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, bucket, beginning) = (client.clone(), Arc::clone(&bucket), beginning.clone());
        async move {
            if !is_watch(&request) {
                return Ok::<_, BoxError>(client.send(request).await?);
            }
            let now = Instant::now();
            let turn = bucket.lock().unwrap_or_else(PoisonError::into_inner).take(now);
            tokio::time::sleep_until(turn).await;
            let response = begun(&client, request).await?;
            if response.status().is_success() {
                beginning.note(Instant::now());
            }
            Ok(response)
        }
    });
    Client::new(service, namespace)
}

async fn begun(client: &Client, request: Request<Body>) -> Result<Response<Body>, BoxError> {
    let seconds = START_LIMIT.as_secs();
    let late = |_| format!("no answer within {seconds} s");
    Ok(tokio::time::timeout(START_LIMIT, client.send(request)).await.map_err(late)??)
}

/// Does this request begin a watch?
pub(super) fn is_watch(request: &Request<Body>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query.split('&').any(|pair| pair == "watch=true")
}

/// When the server has last agreed to a watch. kube's watcher does not tell: where it goes on from a
/// version it knows, the next it shows is an object, which may take days. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Beginning(watch::Sender<Option<Instant>>);

impl Beginning {
    fn note(&self, at: Instant) {
        self.0.send_replace(Some(at));
    }

    /// The watch has failed.
    pub(super) fn forget(&self) {
        self.0.send_replace(None);
    }

    /// Returns when a watch has lasted long enough to be one.
    pub(super) async fn lasts(&self) {
        let mut begun = self.0.subscribe();
        loop {
            let at = *begun.borrow_and_update();
            match at {
                None => drop(begun.changed().await),
                Some(at) => {
                    if tokio::time::timeout_at(at + PROBATION, begun.changed()).await.is_err() {
                        return;
                    }
                }
            }
        }
    }
}
