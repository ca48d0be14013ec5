//! What is answered over HTTP: Prometheus' `/api/v1/query` and `/api/v1/query_range`, and `/traffic`,
//! a JSON document about the last minute.

use std::collections::BTreeMap;

use gradus_promql::{Query, Response, Value, answer};
use jiff::Timestamp;
use serde_json::{Value as Json, json};

use super::Traffic;

/// An answer as it is sent.
#[derive(Clone, Debug, PartialEq)]
pub struct EndpointReply {
    /// Status of HTTP.
    pub status: u16,
    /// What is sent: JSON.
    pub body: String,
}

impl Traffic {
    /// Answers a request for a path with its query string; the form of a POST is its body.
    pub fn answer(&self, target: &str, form: &str, now: Timestamp) -> EndpointReply {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let fields: BTreeMap<String, String> = fields(query).chain(fields(form)).collect();
        let Response { status, body } = match path {
            "/traffic" => self.summary(&fields, now),
            path => answer(self, path, &fields, now.as_millisecond()).into(),
        };
        EndpointReply { status, body: body.to_string() }
    }

    /// Requests per second, the share that failed, and how long they took. Fields are labels that
    /// select.
    fn summary(&self, labels: &BTreeMap<String, String>, now: Timestamp) -> Response {
        let pairs: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
        let ask = |query: &str| -> Result<Json, String> {
            let text = query.replace("{}", &format!("{{{}}}", pairs.join(",")));
            let query = Query::parse(&text).map_err(|error| error.to_string())?;
            let value = query.instant(self, now.as_millisecond());
            match value.map_err(|error| error.to_string())? {
                Value::Vector(points) => {
                    Ok(points.first().map_or(Json::Null, |one| json!(one.value)))
                }
                _ => Ok(Json::Null),
            }
        };
        let bad = format!("{{{}}}", [&pairs[..], &["code=\"500\"".to_owned()]].concat().join(","));
        let took = "sum by (le) (rate(http_request_duration_seconds_bucket{}[1m]))";
        let summary = || -> Result<Json, String> {
            let rate = ask("sum(rate(http_requests_total{}[1m]))")?;
            let errors = ask(&format!(
                "sum(rate(http_requests_total{bad}[1m])) / sum(rate(http_requests_total{{}}[1m]))"
            ))?;
            Ok(json!({
                "requestsPerSecond": rate,
                "errorRate": errors,
                "latencySeconds": {
                    "p50": ask(&format!("histogram_quantile(0.5, {took})"))?,
                    "p95": ask(&format!("histogram_quantile(0.95, {took})"))?,
                    "p99": ask(&format!("histogram_quantile(0.99, {took})"))?,
                },
            }))
        };
        match summary() {
            Ok(body) => Response { status: 200, body },
            Err(error) => Response { status: 400, body: json!({ "error": error }) },
        }
    }
}

/// The fields of a query string or a form, decoded.
fn fields(text: &str) -> impl Iterator<Item = (String, String)> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(name), decoded(value))
    })
}

/// A text without its `+` and `%` escapes.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut found, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(byte) = bytes.get(at) {
        let escaped = bytes.get(at + 1..at + 3).and_then(|two| std::str::from_utf8(two).ok());
        let escaped = escaped.and_then(|two| u8::from_str_radix(two, 16).ok());
        match (byte, escaped) {
            (b'%', Some(value)) => {
                found.push(value);
                at += 2;
            }
            (b'+', _) => found.push(b' '),
            (byte, _) => found.push(*byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&found).into_owned()
}
