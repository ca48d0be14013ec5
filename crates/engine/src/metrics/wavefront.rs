//! Wavefront: the point of each time series that is closest to now.

use gradus_api::metrics::WavefrontMetric;
use jiff::Timestamp;
use serde_json::Value;

use super::format::{list, status_line};
use super::{
    Call, MetricFault, MetricValue, Next, Observed, Once, Provider, Reading, TextMap, once, seconds,
};
use crate::ask::http::{Auth, HttpReply, HttpRequest};
use crate::ask::secret::{Encoding, SecretPlace, SecretRef, SecretText};

/// A query to Wavefront.
pub struct Wavefront<'a>(pub &'a WavefrontMetric);

/// The Secret with a token for each address.
const SECRET: &str = "wavefront-api-tokens";
/// How long an answer may take, in seconds. Without it a silent server would block the run for ever.
const TIMEOUT: i64 = 30;
const EXPECTED: &str = "a Wavefront chart with at least one point";
const FLAGS: &str = "&autoEvents=false&g=s&i=true&includeObsoleteMetrics=false&listmode=false\
                     &p=1&strict=false";

impl Provider for Wavefront<'_> {
    fn kind(&self) -> &'static str {
        "Wavefront"
    }

    fn address(&self) -> String {
        format!("https://{}", SecretText::from_marked(&self.0.address))
    }

    fn query(&self) -> String {
        SecretText::from_marked(&self.0.query).to_string()
    }

    fn next(&self, _: Call<'_>, seen: &Observed<'_>) -> Next {
        match once(seen, self.request(seen.now), EXPECTED) {
            Once::Answered(reply) => read(reply, seen.now),
            Once::Ask(Next::Done(Reading::Error(fault))) if fault.ends_run => {
                Next::refused("API token not found")
            }
            Once::Ask(next) => next,
        }
    }
}

impl Wavefront<'_> {
    fn request(&self, now: Timestamp) -> HttpRequest {
        let time = now.as_second() * 1000;
        let url = SecretText::plain("https://")
            .then(SecretText::from_marked(&self.0.address))
            .then("/api/v2/chart/api?q=")
            .then(SecretText::from_marked(&self.0.query).encoded(Encoding::Form))
            .then(format!("&s={time}&e={time}{FLAGS}"));
        let token = SecretRef::new(SecretPlace::Controller, SECRET, &self.0.address);
        let request = HttpRequest::get(url, seconds(TIMEOUT)).header("Accept", "application/json");
        HttpRequest { auth: Auth::Bearer(SecretText::secret(token)), ..request }
    }
}

fn read(reply: &HttpReply, now: Timestamp) -> Next {
    if reply.status != 200 {
        let line = status_line(reply.status);
        return Next::bad(format!("server returned {line}\n{}\n", reply.body), EXPECTED);
    }
    let answer: Value = match serde_json::from_str(&reply.body) {
        Ok(answer) => answer,
        Err(error) => return Next::bad(error.to_string(), EXPECTED),
    };
    let mut metadata = TextMap::new();
    if let Some(warnings) = answer["warnings"].as_str().filter(|text| !text.is_empty()) {
        metadata.insert("warnings".to_owned(), warnings.to_owned());
    }
    let series = answer["timeseries"].as_array().map_or(&[][..], Vec::as_slice);
    let points: Vec<(f64, f64)> =
        series.iter().filter_map(|series| closest(&series["data"], now)).collect();
    let (texts, times, drifts): (Vec<_>, Vec<_>, Vec<_>) = points
        .iter()
        .map(|(time, value)| {
            let drift = time - now.as_second() as f64;
            (format!("{value:.2}"), time.to_string(), drift.to_string())
        })
        .collect();
    let joined = |texts: Vec<String>| match texts.as_slice() {
        [one] => one.clone(),
        many => list(many.iter().cloned()),
    };
    let result = match points.as_slice() {
        [] => {
            let fault =
                MetricFault::new("No TimeSeries found in response from Wavefront", EXPECTED);
            return Next::Done(Reading::Error(MetricFault { metadata, ..fault }));
        }
        [(_, value)] => MetricValue::Number(*value),
        many => MetricValue::Numbers(many.iter().map(|(_, value)| *value).collect()),
    };
    metadata.insert("timestamps".to_owned(), joined(times));
    metadata.insert("drift".to_owned(), joined(drifts));
    Next::Done(Reading::Value { result, text: joined(texts), metadata })
}

/// The time and value of the point that is closest to now.
fn closest(points: &Value, now: Timestamp) -> Option<(f64, f64)> {
    let points = points.as_array()?.iter();
    let numbers = points.filter_map(|point| Some((point[0].as_f64()?, point[1].as_f64()?)));
    let distance = |point: &(f64, f64)| (point.0 - now.as_second() as f64).abs();
    numbers.min_by(|one, other| distance(one).total_cmp(&distance(other)))
}
