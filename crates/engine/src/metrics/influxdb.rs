//! InfluxDB: a Flux query, answered as annotated CSV.

mod csv;

use gradus_api::metrics::InfluxdbMetric;
use serde_json::{Value, json};

use super::format::{go_number, status_line};
use super::{Call, MetricValue, Next, Observed, Once, Provider, Reading, once, seconds};
use crate::ask::http::{HttpReply, HttpRequest};
use crate::ask::secret::{Encoding, SecretPlace, SecretRef, SecretText};

/// A query to InfluxDB.
pub struct Influxdb<'a>(pub &'a InfluxdbMetric);

/// The Secret with the account, unless the metric names one.
const PROFILE: &str = "influxdb";
/// How long an answer may take, in seconds.
const TIMEOUT: i64 = 20;
const EXPECTED: &str = "an annotated CSV answer with at least one record";

impl Provider for Influxdb<'_> {
    fn kind(&self) -> &'static str {
        "Influxdb"
    }

    fn address(&self) -> String {
        format!("the address of Secret {}", self.profile())
    }

    fn query(&self) -> String {
        SecretText::from_marked(&self.0.query).to_string()
    }

    fn next(&self, _: Call<'_>, seen: &Observed<'_>) -> Next {
        match once(seen, self.request(), EXPECTED) {
            Once::Answered(reply) => read(reply),
            Once::Ask(Next::Done(Reading::Error(fault))) if fault.ends_run => {
                Next::refused("authToken, org, or address not found")
            }
            Once::Ask(next) => next,
        }
    }
}

impl Influxdb<'_> {
    fn profile(&self) -> &str {
        if self.0.profile.is_empty() { PROFILE } else { &self.0.profile }
    }

    fn secret(&self, key: &str) -> SecretText {
        SecretText::secret(SecretRef::new(SecretPlace::Controller, self.profile(), key))
    }

    fn request(&self) -> HttpRequest {
        let org = self.secret("org").encoded(Encoding::Form);
        let url = self.secret("address").then("/api/v2/query?org=").then(org);
        let dialect = json!({ "annotations": ["datatype", "group", "default"],
            "delimiter": ",", "header": true });
        let body = json!({ "query": self.0.query, "type": "flux", "dialect": dialect });
        let body = SecretText::from_marked(&body.to_string()).with_secrets(Encoding::Json);
        HttpRequest::post(url, body, seconds(TIMEOUT))
            .header("Content-Type", "application/json")
            .header("Accept", "text/csv")
            .header("Authorization", SecretText::plain("Token ").then(self.secret("authToken")))
    }
}

fn read(reply: &HttpReply) -> Next {
    if !(200..=299).contains(&reply.status) {
        let message = format!("{}: {}", status_line(reply.status), reply.body);
        return Next::bad(message, EXPECTED);
    }
    match csv::values(&reply.body) {
        Err(message) => Next::bad(message, EXPECTED),
        Ok(values) if values.is_empty() => {
            Next::bad("no results returned from flux query", EXPECTED)
        }
        Ok(values) => {
            let texts: Vec<String> = values.iter().map(printed).collect();
            Next::value(MetricValue::List(values), format!("[{}]", texts.join(" ")))
        }
    }
}

/// A value as Go's `%v` prints it.
fn printed(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => go_number(number.as_f64().unwrap_or(f64::NAN)),
        other => other.to_string(),
    }
}
