//! Graphite: the points of the first target of a render query.

use gradus_api::metrics::GraphiteMetric;
use serde_json::Value;

use super::format::list;
use super::{Call, MetricValue, Next, Observed, Once, Provider, once, seconds, shown};
use crate::ask::http::{HttpReply, HttpRequest};
use crate::ask::secret::{Encoding, SecretText, has_marker};

/// A query to Graphite.
pub struct Graphite<'a>(pub &'a GraphiteMetric);

/// How long an answer may take, in seconds.
const TIMEOUT: i64 = 10;
const EXPECTED: &str = "a Graphite render answer with data points";

impl Provider for Graphite<'_> {
    fn kind(&self) -> &'static str {
        "Graphite"
    }

    fn address(&self) -> String {
        shown(&SecretText::from_marked(&self.0.address))
    }

    fn query(&self) -> String {
        SecretText::from_marked(&self.0.query).to_string()
    }

    fn next(&self, _: Call<'_>, seen: &Observed<'_>) -> Next {
        let address = &self.0.address;
        let has_host = address.split_once("://").is_some_and(|(_, host)| !host.is_empty());
        if !has_host && !has_marker(address) {
            return Next::refused(format!("Graphite address {address} is not a valid URL"));
        }
        match once(seen, self.request(), EXPECTED) {
            Once::Answered(reply) => read(reply),
            Once::Ask(next) => next,
        }
    }
}

impl Graphite<'_> {
    fn request(&self) -> HttpRequest {
        let query: String = self.0.query.chars().filter(|c| !c.is_whitespace()).collect();
        let mut pairs: Vec<(&str, &str)> =
            query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, ""))).collect();
        pairs.retain(|(name, _)| !name.is_empty());
        pairs.push(("format", "json"));
        pairs.sort_by_key(|(name, _)| *name);
        let address = self.0.address.trim_end_matches('/');
        let mut url = SecretText::from_marked(address).then("/render?");
        for (index, (name, value)) in pairs.iter().enumerate() {
            let separator = if index > 0 { "&" } else { "" };
            let value = SecretText::from_marked(&decoded(value)).encoded(Encoding::Form);
            url = url.then(format!("{separator}{name}=")).then(value);
        }
        HttpRequest::get(url, seconds(TIMEOUT))
    }
}

/// A value of a query whose percent signs are read, so that none is encoded twice.
fn decoded(text: &str) -> String {
    let bytes = text.replace('+', " ").into_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut place = 0;
    while let Some(byte) = bytes.get(place) {
        let digits = bytes.get(place + 1..place + 3).and_then(|pair| str::from_utf8(pair).ok());
        match digits.and_then(|pair| u8::from_str_radix(pair, 16).ok()) {
            Some(read) if *byte == b'%' => {
                decoded.push(read);
                place += 3;
            }
            _ => {
                decoded.push(*byte);
                place += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

fn read(reply: &HttpReply) -> Next {
    if reply.status >= 400 {
        return Next::bad(format!("error response: {}", reply.body), EXPECTED);
    }
    let answer: Value = match serde_json::from_str(&reply.body) {
        Ok(answer) => answer,
        Err(error) => return Next::bad(error.to_string(), EXPECTED),
    };
    let points = answer[0]["datapoints"].as_array().map_or(&[][..], Vec::as_slice);
    if points.is_empty() {
        return Next::bad("no values found", EXPECTED);
    }
    let mut numbers = Vec::new();
    for point in points.iter().filter(|point| !point[0].is_null()) {
        let number = match &point[0] {
            Value::String(text) => text.parse().ok(),
            value => value.as_f64(),
        };
        match number {
            Some(number) => numbers.push(number),
            None => {
                return Next::bad(format!("invalid value {} in a data point", point[0]), EXPECTED);
            }
        }
    }
    let text = list(numbers.iter().map(|number: &f64| format!("{number:.6}")));
    Next::value(MetricValue::Numbers(numbers), text)
}
