//! SkyWalking: a GraphQL query about a span of minutes.

use gradus_api::metrics::SkyWalkingMetric;
use gradus_api::values::parse_go_duration;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::format::{floats, go_json};
use super::{Call, MetricValue, Next, Observed, Once, Provider, once, seconds, shown};
use crate::ask::http::{HttpReply, HttpRequest};
use crate::ask::secret::{Encoding, SecretText};

/// A query to SkyWalking.
pub struct SkyWalking<'a>(pub &'a SkyWalkingMetric);

/// How long an answer may take, in seconds.
const TIMEOUT: i64 = 30;
const EXPECTED: &str = "a GraphQL answer with data";

impl Provider for SkyWalking<'_> {
    fn kind(&self) -> &'static str {
        "skywalking"
    }

    fn address(&self) -> String {
        shown(&SecretText::from_marked(&self.0.address))
    }

    fn query(&self) -> String {
        SecretText::from_marked(&self.0.query).to_string()
    }

    fn next(&self, _: Call<'_>, seen: &Observed<'_>) -> Next {
        let interval = match parse_go_duration(&self.0.interval) {
            Ok(interval) => interval,
            Err(error) => return Next::refused(error.to_string()),
        };
        match once(seen, self.request(seen.now, interval), EXPECTED) {
            Once::Answered(reply) => read(reply),
            Once::Ask(next) => next,
        }
    }
}

impl SkyWalking<'_> {
    fn request(&self, now: Timestamp, interval: SignedDuration) -> HttpRequest {
        let duration =
            json!({ "start": minute(now - interval), "end": minute(now), "step": "MINUTE" });
        let body = json!({ "query": self.0.query, "variables": { "duration": duration } });
        let body = SecretText::from_marked(&format!("{body}\n")).with_secrets(Encoding::Json);
        let url = SecretText::from_marked(self.0.address.trim_end_matches('/')).then("/graphql");
        HttpRequest::post(url, body, seconds(TIMEOUT))
            .header("Content-Type", "application/json; charset=utf-8")
            .header("Accept", "application/json; charset=utf-8")
    }
}

/// `2024-01-01 0930`, in UTC.
fn minute(moment: Timestamp) -> String {
    let text = moment.to_string();
    format!("{} {}{}", &text[..10], &text[11..13], &text[14..16])
}

fn read(reply: &HttpReply) -> Next {
    let answer: Value = match serde_json::from_str(&reply.body) {
        Ok(answer) => answer,
        Err(error) => return Next::bad(format!("decoding response: {error}"), EXPECTED),
    };
    if let Some(message) = answer["errors"][0]["message"].as_str() {
        return Next::bad(format!("graphql: {message}"), EXPECTED);
    }
    match floats(answer["data"].clone()) {
        Value::Null => Next::bad("no results returned from SkyWalking query", EXPECTED),
        data => {
            let text = go_json(&data);
            Next::value(MetricValue::Json(data), text)
        }
    }
}
