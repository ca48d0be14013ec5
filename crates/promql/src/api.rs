//! Requests and answers of Prometheus' HTTP API: `/api/v1/query` and `/api/v1/query_range`.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use crate::{Labels, Millis, Query, QueryError, Series, Source, Value};

/// An answer as it is sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// Status of HTTP.
    pub status: u16,
    /// What is sent.
    pub body: Json,
}

/// What a request asks for was found.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The query.
    pub query: Query,
    /// Its value as the API shows it.
    pub data: Json,
}

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// Nothing is served there.
    #[error("{0} is not served here: expected /api/v1/query or /api/v1/query_range")]
    Path(String),
    /// A field is missing or wrong.
    #[error("invalid parameter {0:?}: {1}")]
    Field(&'static str, String),
    /// The query cannot be answered.
    #[error(transparent)]
    Query(#[from] QueryError),
}

/// Answers a request: the path, and the fields of its query string or its form, decoded.
pub fn answer(
    source: &dyn Source,
    path: &str,
    fields: &BTreeMap<String, String>,
    now: Millis,
) -> Result<Answer, RequestError> {
    let text = fields.get("query").map_or("", String::as_str);
    let moment = |name: &'static str, otherwise: Option<Millis>| match fields.get(name) {
        None => otherwise.ok_or_else(|| missing(name)),
        Some(text) => seconds(name, text),
    };
    if !["/api/v1/query", "/api/v1/query_range"].contains(&path) {
        return Err(RequestError::Path(path.to_owned()));
    }
    let query = Query::parse(text)?;
    let data = if path == "/api/v1/query" {
        let at = moment("time", Some(now))?;
        shown(query.instant(source, at)?, at)
    } else {
        let (start, end) = (moment("start", None)?, moment("end", None)?);
        let step = moment("step", None)?;
        matrix(&query.range(source, (start, end), step)?)
    };
    Ok(Answer { query, data })
}

impl From<Result<Answer, RequestError>> for Response {
    fn from(result: Result<Answer, RequestError>) -> Self {
        let (status, kind, error) = match result {
            Ok(answer) => {
                let body = json!({ "status": "success", "data": answer.data });
                return Response { status: 200, body };
            }
            Err(error @ RequestError::Path(_)) => (404, "not_found", error),
            Err(error @ RequestError::Query(QueryError::Failed(_))) => (422, "execution", error),
            Err(error) => (400, "bad_data", error),
        };
        let error = error.to_string();
        Response { status, body: json!({ "status": "error", "errorType": kind, "error": error }) }
    }
}

fn missing(name: &'static str) -> RequestError {
    RequestError::Field(name, "it is missing".to_owned())
}

/// Seconds with their fraction. Nobody sends RFC 3339 to us.
fn seconds(name: &'static str, text: &str) -> Result<Millis, RequestError> {
    let number: f64 = text
        .parse()
        .map_err(|_| RequestError::Field(name, format!("{text:?} is no number of seconds")))?;
    #[expect(clippy::cast_possible_truncation, reason = "a number that is too large is cut off")]
    Ok((number * 1000.0).round() as Millis)
}

fn shown(value: Value, at: Millis) -> Json {
    match value {
        Value::Scalar(number) => json!({ "resultType": "scalar", "result": pair(at, number) }),
        Value::Vector(points) => {
            let points = points.iter().map(
                |point| json!({ "metric": labels(&point.labels), "value": pair(at, point.value) }),
            );
            json!({ "resultType": "vector", "result": points.collect::<Vec<_>>() })
        }
        Value::Matrix(series) => matrix(&series),
    }
}

fn matrix(series: &[Series]) -> Json {
    let series = series.iter().map(|one| {
        let values: Vec<Json> =
            one.samples.iter().map(|sample| pair(sample.at, sample.value)).collect();
        json!({ "metric": labels(&one.labels), "values": values })
    });
    json!({ "resultType": "matrix", "result": series.collect::<Vec<_>>() })
}

fn labels(labels: &Labels) -> Json {
    json!(labels)
}

/// A moment in seconds and a number as text.
fn pair(at: Millis, value: f64) -> Json {
    let text = match value {
        _ if value.is_nan() => "NaN".to_owned(),
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        _ => value.to_string(),
    };
    #[expect(clippy::cast_precision_loss, reason = "milliseconds of this age fit")]
    let seconds = at as f64 / 1000.0;
    json!([seconds, text])
}
