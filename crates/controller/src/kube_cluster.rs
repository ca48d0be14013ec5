//! How does a write, a read or an Event reach a real API server, and what does its answer mean?

mod answer;
mod request;

use std::time::Duration;

use gradus_engine::ask::Class;
use gradus_engine::decision::ObjectRef;
use gradus_engine::frame::Frame;
use http::{Request, StatusCode};
use kube::Client;
use kube::client::Body;
use serde_json::Value;

use crate::cluster::{Cluster, Listing, PostedEvent, Write, WriteError, Written};
use crate::engines::Reporter;
use crate::telemetry::Metrics;

#[cfg(test)]
mod tests;

/// How long one request may take. A pass waits for its writes; the queue tries again.
pub const REQUEST_LIMIT: Duration = Duration::from_secs(4);

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
            Ok((head, body.collect_bytes().await?))
        };
        let outcome = match tokio::time::timeout(REQUEST_LIMIT, exchange).await {
            Err(_) => Err(answer::late(verb, target, REQUEST_LIMIT)),
            Ok(Err(error)) => Err(answer::broken(verb, target, error)),
            Ok(Ok((head, body))) => Ok((head, body)),
        };
        let status = outcome.as_ref().ok().map(|(head, _)| head.status);
        self.count(verb, target, status);
        let (head, body) = outcome?;
        if head.status.is_success() {
            Ok(body.to_vec())
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
        let body = self.send("List", &all, request::list(listing)).await?;
        answer::frames(listing, &body)
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
