//! How often may a watch be begun? Something between us and the server may end it at once.

use std::sync::{Arc, Mutex, PoisonError};

use http::Request;
use kube::Client;
use kube::client::Body;
use tokio::time::Instant;

use crate::rate::{Bucket, Rate};

/// A healthy watch is begun every few minutes; one that ends at once must not become a flood.
const WATCHES: Rate = Rate { per_second: 0.5, burst: 5 };

/// The same client, but watches wait for their turn. Lists and their pages do not.
pub(super) fn paced(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let bucket = Arc::new(Mutex::new(Bucket::new(WATCHES, Instant::now())));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, bucket) = (client.clone(), Arc::clone(&bucket));
        async move {
            if is_watch(&request) {
                let now = Instant::now();
                let turn = bucket.lock().unwrap_or_else(PoisonError::into_inner).take(now);
                tokio::time::sleep_until(turn).await;
            }
            client.send(request).await
        }
    });
    Client::new(service, namespace)
}

fn is_watch(request: &Request<Body>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query.split('&').any(|pair| pair == "watch=true")
}
