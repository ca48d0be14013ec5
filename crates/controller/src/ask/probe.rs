//! Sends the requests that show how the traffic is split, and counts who answers.

use futures::StreamExt;
use futures::stream;
use gradus_engine::ask::http::HttpRequest;
use gradus_engine::ask::{ProbeOf, ProbeSaid};
use http::header::CONNECTION;
use jiff::SignedDuration;

use super::http::HttpClient;
use super::secrets::Values;

/// So many requests at once: users are served by the same pods.
const AT_ONCE: usize = 4;

/// How long one may take.
const PATIENCE: SignedDuration = SignedDuration::from_secs(5);

/// After so many without an answer, or with none that names who gave it, the rest is not sent.
const LOST_LIMIT: u32 = 20;

/// Who answers.
pub(super) async fn measured(http: &HttpClient, of: &ProbeOf) -> ProbeSaid {
    let header = of.header.to_lowercase();
    // Some data planes split connections, not requests: each request has one of its own.
    let request = HttpRequest::get(of.url.clone(), PATIENCE).header(CONNECTION.as_str(), "close");
    let request = HttpRequest { redirects: 0, ..request };
    let one = |_| async {
        let reply = http.send(&Values::default(), &request).await;
        let reply = reply.map_err(|error| error.to_string())?;
        match reply.headers.get(&header) {
            Some(name) if reply.status < 500 => Ok(name.clone()),
            None if reply.status < 500 => Err(format!("the answer has no header {header}")),
            _ => Err(format!("answered with status {}", reply.status)),
        }
    };
    let mut answers = stream::iter(0..of.requests).map(one).buffer_unordered(AT_ONCE);
    let mut said = ProbeSaid::default();
    while let Some(answer) = answers.next().await {
        match answer {
            Ok(name) => *said.answers.entry(name).or_default() += 1,
            Err(reason) => {
                if said.lost == 0 {
                    said.reason = reason;
                }
                said.lost += 1;
            }
        }
        if said.lost >= LOST_LIMIT {
            break;
        }
    }
    said
}
