//! Which requests do watches make? They are counted as all others are.

use http::Request;
use kube::Client;
use kube::client::Body;

use super::pace::is_watch;
use crate::telemetry::Metrics;
use crate::watched::Selection;

/// The same client, whose requests for a selection are counted.
pub fn counted(client: Client, selection: &Selection, metrics: &Metrics) -> Client {
    let default_namespace = client.default_namespace().to_owned();
    let plural = selection.kind.plural.clone();
    let namespace = selection.namespace.clone().unwrap_or_default();
    let metrics = metrics.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, metrics) = (client.clone(), metrics.clone());
        let (plural, namespace) = (plural.clone(), namespace.clone());
        async move {
            let verb = if is_watch(&request) { "Watch" } else { "List" };
            let answer = client.send(request).await;
            metrics.request(&plural, &namespace, NOBODY, verb, &code(answer.as_ref().ok()));
            answer
        }
    });
    Client::new(service, default_namespace)
}

/// In place of a name, for a request that is about many objects.
const NOBODY: &str = "N/A";

fn code<B>(answer: Option<&http::Response<B>>) -> String {
    answer.map_or_else(|| "<error>".to_owned(), |answer| answer.status().as_str().to_owned())
}
