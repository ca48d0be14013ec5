//! New Relic: an NRQL query through NerdGraph.

use gradus_api::metrics::NewRelicMetric;
use serde_json::{Value, json};

use super::format::{floats, go_json};
use super::{Call, MetricFault, MetricValue, Next, Observed, Provider, Reading, TextMap, seconds};
use crate::ask::http::{HttpError, HttpOutcome, HttpReply, HttpRequest};
use crate::ask::secret::{Encoding, SecretPlace, SecretRef, SecretText};

/// A query to New Relic.
pub struct NewRelic<'a>(pub &'a NewRelicMetric);

/// The Secret with the account, unless the metric names one.
const PROFILE: &str = "newrelic";
/// How long one attempt may take, in seconds.
const ATTEMPT: i64 = 30;
/// Attempts per measurement, the first included.
const ATTEMPTS: usize = 4;
/// How long the query may run at New Relic, in seconds.
const QUERY_TIMEOUT: i64 = 5;
const EXPECTED: &str = "a NerdGraph answer with at least one row";
const QUERY: &str = "query($query: Nrql!, $accountId: Int!, $timeout: Seconds!) { actor { \
                     account(id: $accountId) { nrql(query: $query, timeout: $timeout) { results } } } }";

impl Provider for NewRelic<'_> {
    fn kind(&self) -> &'static str {
        "NewRelic"
    }

    fn address(&self) -> String {
        format!("NerdGraph, Secret {}", self.profile())
    }

    fn query(&self) -> String {
        SecretText::from_marked(&self.0.query).to_string()
    }

    fn metadata(&self, _: &Observed<'_>) -> TextMap {
        let query = SecretText::from_marked(&self.0.query).to_string();
        [("ResolvedNewRelicQuery".to_owned(), query)].into()
    }

    fn next(&self, _: Call<'_>, seen: &Observed<'_>) -> Next {
        if self.0.timeout.is_some_and(|timeout| timeout < 0) {
            return Next::refused("timeout value needs to be a positive value");
        }
        let Some(last) = seen.replies.last() else { return Next::read(self.request()) };
        if is_worth_repeating(last) && seen.replies.len() < ATTEMPTS {
            return Next::read(self.request());
        }
        match last {
            Ok(reply) => read(reply),
            Err(HttpError::Secret(_)) => Next::refused("account ID or personal API key not found"),
            Err(error) => Next::Done(Reading::Error(MetricFault::unanswered(
                &self.request(),
                error,
                EXPECTED,
            ))),
        }
    }
}

impl NewRelic<'_> {
    fn profile(&self) -> &str {
        if self.0.profile.is_empty() { PROFILE } else { &self.0.profile }
    }

    fn secret(&self, key: &str) -> SecretRef {
        SecretRef::new(SecretPlace::Controller, self.profile(), key)
    }

    fn request(&self) -> HttpRequest {
        let pair = |region: &str, url: &str| (region.to_owned(), url.to_owned());
        let us = "https://api.newrelic.com/graphql";
        let region = SecretRef {
            table: vec![
                pair("us", us),
                pair("eu", "https://api.eu.newrelic.com/graphql"),
                pair("staging", "https://staging-api.newrelic.com/graphql"),
            ],
            ..self.secret("region").or(us.into())
        };
        let url = self.secret("base-url-nerdgraph").or(SecretText::secret(region));
        // The account is a number: it stands outside of quotes.
        let before = json!(QUERY);
        let query = json!(self.0.query).to_string();
        let query = SecretText::from_marked(&query).with_secrets(Encoding::Json);
        let timeout = self.0.timeout.unwrap_or(QUERY_TIMEOUT);
        let body =
            SecretText::plain(format!("{{\"query\":{before},\"variables\":{{\"accountId\":"))
                .then(SecretText::secret(self.secret("account-id")))
                .then(",\"query\":")
                .then(query)
                .then(format!(",\"timeout\":{timeout}}}}}"));
        HttpRequest::post(SecretText::secret(url), body, seconds(ATTEMPT))
            .header("Content-Type", "application/json")
            .header("Api-Key", SecretText::secret(self.secret("personal-api-key")))
    }
}

/// Is the failure one that may pass by itself?
fn is_worth_repeating(outcome: &HttpOutcome) -> bool {
    match outcome {
        Err(error) => matches!(error, HttpError::Connect(_) | HttpError::Timeout(_)),
        Ok(reply) => {
            matches!(reply.status, 429 | 500 | 502..) || reply.body.contains("TOO_MANY_REQUESTS")
        }
    }
}

fn read(reply: &HttpReply) -> Next {
    let answer: Value = match serde_json::from_str(&reply.body) {
        Ok(answer) => answer,
        Err(_) if reply.status != 200 => {
            return Next::bad(format!("{} response returned", reply.status), EXPECTED);
        }
        Err(error) => return Next::bad(format!("could not parse JSON body: {error}"), EXPECTED),
    };
    if let Some(message) = answer["errors"][0]["message"].as_str() {
        return Next::bad(message, EXPECTED);
    }
    if reply.status != 200 {
        return Next::bad(format!("{} response returned", reply.status), EXPECTED);
    }
    let rows = floats(answer["data"]["actor"]["account"]["nrql"]["results"].clone());
    let rows = match rows {
        Value::Array(rows) => rows,
        _ => Vec::new(),
    };
    let is_empty = |row: &Value| row.as_object().is_none_or(serde_json::Map::is_empty);
    match rows.as_slice() {
        [] => Next::bad("no results returned from NRQL query", EXPECTED),
        [row] if is_empty(row) => Next::bad("no results returned from NRQL query", EXPECTED),
        [row] => Next::value(MetricValue::Json(row.clone()), go_json(row)),
        rows => {
            let rows = Value::Array(rows.to_vec());
            let text = go_json(&rows);
            Next::value(MetricValue::Json(rows), text)
        }
    }
}
