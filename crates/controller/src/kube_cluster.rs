//! How does a write, a read or an Event reach a real API server, and what does its answer mean?

mod answer;
mod request;

use std::time::Duration;

use gradus_engine::ask::Class;
use gradus_engine::decision::ObjectRef;
use gradus_engine::frame::Frame;
use http::response::Parts;
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::Value;

use crate::cluster::{Cluster, Listing, PostedEvent, Write, WriteError, Written};
use crate::engines::Reporter;
use crate::telemetry::Metrics;
pub use answer::classify;

#[cfg(test)]
mod tests;

/// How long one request may take. A pass waits for its writes; the queue tries again.
pub const REQUEST_LIMIT: Duration = Duration::from_secs(4);

/// So often a list is begun whose later pages the server has forgotten.
const BEGINNINGS: usize = 3;

/// A cluster behind a kube client. Bodies are sent and read as JSON, so nothing unknown is lost.
#[derive(Clone)]
pub struct KubeCluster {
    client: Client,
    metrics: Metrics,
    reporter: Reporter,
}

impl KubeCluster {
    /// The cluster that the client speaks to in this name. The client must not retry by itself.
    pub fn new(client: Client, metrics: Metrics, reporter: Reporter) -> Self {
        KubeCluster { client, metrics, reporter }
    }

    /// Sends one request and returns the body of a good answer.
    async fn send(
        &self,
        verb: &'static str,
        target: &ObjectRef,
        request: Request<Vec<u8>>,
    ) -> Result<Vec<u8>, WriteError> {
        answer::check_name(verb, target)?;
        let exchange = async {
            let response = self.client.send(request.map(Body::from)).await?;
            let (head, body) = response.into_parts();
            Ok((head, body.collect_bytes().await?.to_vec()))
        };
        let outcome = match tokio::time::timeout(REQUEST_LIMIT, exchange).await {
            Err(_) => Err(answer::late(verb, target, REQUEST_LIMIT)),
            Ok(Err(error)) => Err(answer::broken(verb, target, error)),
            Ok(Ok(exchanged)) => Ok(exchanged),
        };
        self.judged(verb, target, outcome)
    }

    /// The same for an answer that may be long: not the whole of it must come in time, but its head,
    /// and each part of its body.
    async fn send_for_much(
        &self,
        verb: &'static str,
        target: &ObjectRef,
        request: Request<Vec<u8>>,
    ) -> Result<Vec<u8>, WriteError> {
        let late = |_| answer::late(verb, target, REQUEST_LIMIT);
        let broken = |error| answer::broken(verb, target, error);
        let exchange = async {
            let sending = self.client.send(request.map(Body::from));
            let response = tokio::time::timeout(REQUEST_LIMIT, sending).await.map_err(late)?;
            let (head, body) = response.map_err(broken)?.into_parts();
            let (mut body, mut bytes) = (std::pin::pin!(body), Vec::new());
            while let Some(frame) =
                tokio::time::timeout(REQUEST_LIMIT, body.frame()).await.map_err(late)?
            {
                let data = frame.map_err(broken)?.into_data();
                data.into_iter().for_each(|data| bytes.extend_from_slice(&data));
            }
            Ok((head, bytes))
        };
        let outcome = exchange.await;
        self.judged(verb, target, outcome)
    }

    /// Counts a request, and returns the body of a good answer.
    fn judged(
        &self,
        verb: &'static str,
        target: &ObjectRef,
        outcome: Result<(Parts, Vec<u8>), WriteError>,
    ) -> Result<Vec<u8>, WriteError> {
        let status = outcome.as_ref().ok().map(|(head, _)| head.status);
        self.count(verb, target, status);
        let (head, body) = outcome?;
        if head.status.is_success() {
            Ok(body)
        } else {
            Err(answer::refused(head.status, &head.headers, &body))
        }
    }

    fn count(&self, verb: &'static str, target: &ObjectRef, status: Option<StatusCode>) {
        let many = matches!(&*target.kind.plural, "events" | "replicasets" | "pods");
        let name = if many || verb == "List" { "N/A" } else { &*target.name };
        let code = status.map_or_else(|| "<error>".to_owned(), |status| status.as_str().to_owned());
        self.metrics.request(&target.kind.plural, &target.namespace, name, verb, &code);
    }
}

impl Cluster for KubeCluster {
    async fn write(&self, write: Write) -> Result<Written, WriteError> {
        let (verb, request) = request::write(&write, self.reporter.manager);
        let body = self.send(verb, &write.target, request).await?;
        let Frame { meta, status, .. } = answer::frame(verb, &write.target, &body)?;
        Ok(Written { version: meta.version, status })
    }

    async fn read(&self, target: &ObjectRef) -> Result<Option<Frame>, WriteError> {
        match self.send("Get", target, request::read(target)).await {
            Ok(body) => answer::frame("Get", target, &body).map(Some),
            Err(error) if error.class == Class::Gone => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn read_whole(&self, target: &ObjectRef) -> Result<Option<Value>, WriteError> {
        match self.send("Get", target, request::read(target)).await {
            Ok(body) => answer::object("Get", target, &body).map(Some),
            Err(error) if error.class == Class::Gone => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn permit(&self) -> Result<(), WriteError> {
        Ok(())
    }

    async fn list(&self, listing: &Listing) -> Result<Vec<Frame>, WriteError> {
        let labels = if listing.labels.is_empty() { "all" } else { &listing.labels };
        let (kind, namespace) = (listing.kind.clone(), listing.namespace.clone());
        let all = ObjectRef { kind, namespace, name: labels.into() };
        let (mut found, mut next, mut begun) = (Vec::new(), None::<String>, 1);
        loop {
            let request = request::list(listing, next.as_deref());
            let body = match self.send_for_much("List", &all, request).await {
                Ok(body) => body,
                // The server no longer knows where the page before ended: the list begins anew.
                Err(error)
                    if error.class == Class::Gone && next.is_some() && begun < BEGINNINGS =>
                {
                    (found, next, begun) = (Vec::new(), None, begun + 1);
                    continue;
                }
                Err(error) => return Err(error),
            };
            let (page, following) = answer::page(listing, &body)?;
            found.extend(page);
            match following {
                Some(following) => next = Some(following),
                None => return Ok(found),
            }
        }
    }

    async fn post(&self, event: &PostedEvent) -> Result<(), WriteError> {
        let target = request::event_ref(event);
        if event.count > 1 {
            let raised = self
                .send("Patch", &target, request::raise(event, &target, self.reporter.manager))
                .await;
            // Events live an hour: one that was counted up to now may be gone.
            if !raised.as_ref().is_err_and(|error| error.class == Class::Gone) {
                return raised.map(drop);
            }
        }
        self.send("Create", &target, request::event(event, &target, self.reporter)).await.map(drop)
    }
}
