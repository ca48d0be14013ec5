//! Prometheus: an instant or a range query. POST first, GET where the server allows no POST.

use gradus_api::metrics::{PrometheusMetric, RangeQuery};
use gradus_api::values::parse_go_duration;
use jiff::Timestamp;
use serde_json::Value;

use super::format::{decimal, decimals};
use super::{
    Call, MetricFault, MetricValue, Next, Observed, Provider, Reading, Series, TextMap, seconds,
    shown,
};
use crate::analysis::condition;
use crate::ask::http::{Auth, HttpReply, HttpRequest, Method, Tls};
use crate::ask::secret::{Encoding, SecretPlace, SecretRef, SecretText};

/// A query to Prometheus.
pub struct Prometheus<'a>(pub &'a PrometheusMetric);

/// The variable with the address for metrics that name none.
const ADDRESS: &str = "ARGO_ROLLOUTS_PROMETHEUS_ADDRESS";
/// How long an answer may take, in seconds, where the metric does not say.
const TIMEOUT: i64 = 30;
const EXPECTED: &str = "a Prometheus API answer with a scalar, vector or matrix";

impl Provider for Prometheus<'_> {
    fn kind(&self) -> &'static str {
        "Prometheus"
    }

    fn address(&self) -> String {
        shown(&self.base())
    }

    fn query(&self) -> String {
        SecretText::from_marked(&self.0.query).to_string()
    }

    fn metadata(&self, _: &Observed<'_>) -> TextMap {
        let query = SecretText::from_marked(&self.0.query).to_string();
        if query.is_empty() {
            return TextMap::new();
        }
        [("ResolvedPrometheusQuery".to_owned(), query)].into()
    }

    fn next(&self, _: Call<'_>, seen: &Observed<'_>) -> Next {
        let began = seen.run.started_at.unwrap_or(seen.now);
        let form = match self.check().and_then(|()| self.form(seen.now, began)) {
            Ok(form) => form,
            Err(message) => return Next::refused(message),
        };
        let post = self.request(Method::Post, &form);
        let get = self.request(Method::Get, &form);
        match seen.replies {
            [] => Next::read(post),
            [Err(error)] => failed(MetricFault::unanswered(&post, error, EXPECTED), self.0),
            // Not every server takes the query in a body.
            [Ok(HttpReply { status: 405 | 501, .. })] => Next::read(get),
            [Ok(reply)] | [_, Ok(reply), ..] => read(reply),
            [_, Err(error), ..] => failed(MetricFault::unanswered(&get, error, EXPECTED), self.0),
        }
    }
}

/// A missing variable means that nobody configured an address.
fn failed(fault: MetricFault, spec: &PrometheusMetric) -> Next {
    if fault.ends_run && spec.address.is_empty() {
        return Next::refused("prometheus address is not configured");
    }
    Next::Done(Reading::Error(fault))
}

impl Prometheus<'_> {
    fn base(&self) -> SecretText {
        if self.0.address.is_empty() {
            return SecretText::secret(SecretRef::new(SecretPlace::Environment, "", ADDRESS));
        }
        SecretText::from_marked(&self.0.address)
    }

    fn check(&self) -> Result<(), String> {
        let spec = self.0;
        let is_secret = spec.address.is_empty() || crate::ask::secret::has_marker(&spec.address);
        let has_host = spec.address.split_once("://").is_some_and(|(scheme, rest)| {
            !scheme.is_empty() && !rest.starts_with('/') && !rest.is_empty()
        });
        if !is_secret && !has_host {
            return Err("prometheus address is not is url format".to_owned());
        }
        if spec.timeout.is_some_and(|timeout| timeout < 0) {
            return Err("prometheus timeout should not be negative".to_owned());
        }
        let (basic, oauth2) = (&spec.authentication.basic_auth, &spec.authentication.oauth2);
        let lacks = |what: &str| {
            Err(format!("missing mandatory parameter in metric for basic auth setup: {what}"))
        };
        match (basic.username.is_empty(), basic.password.is_empty()) {
            (true, false) => return lacks("username"),
            (false, true) => return lacks("password"),
            _ => {}
        }
        let is_incomplete = oauth2.client_id.is_empty() || oauth2.client_secret.is_empty();
        if !oauth2.token_url.is_empty() && is_incomplete {
            return Err("missing mandatory parameter in metric for OAuth2 setup".to_owned());
        }
        Ok(())
    }

    /// The fields of the query, sorted by name; those of the address are repeated.
    fn form(&self, now: Timestamp, began: Timestamp) -> Result<Vec<(String, SecretText)>, String> {
        let query = SecretText::from_marked(&self.0.query);
        let mut form = vec![("query".to_owned(), query)];
        match &self.0.range_query {
            None => form.push(("time".to_owned(), unix(now).into())),
            Some(RangeQuery { start, end, step }) => {
                let moment = |name: &str, text: &str| {
                    let parsed = condition::moment(text, now, began);
                    parsed.map_err(|error| {
                        format!("failed to parse rangeQuery.{name} as time: {error}")
                    })
                };
                let step = parse_go_duration(step).map_err(|error| {
                    format!("failed to parse rangeQuery.step as duration: {error}")
                })?;
                form.push(("start".to_owned(), unix(moment("start", start)?).into()));
                form.push(("end".to_owned(), unix(moment("end", end)?).into()));
                form.push(("step".to_owned(), step.as_secs_f64().to_string().into()));
            }
        }
        let own = self.0.address.split_once('?').map_or("", |(_, query)| query);
        let pairs = own.split('&').filter_map(|pair| pair.split_once('='));
        form.extend(pairs.map(|(name, value)| (name.to_owned(), SecretText::from_marked(value))));
        form.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(form)
    }

    fn request(&self, method: Method, form: &[(String, SecretText)]) -> HttpRequest {
        let spec = self.0;
        let path = match spec.range_query {
            Some(_) => "/api/v1/query_range",
            None => "/api/v1/query",
        };
        let (address, own) = spec.address.split_once('?').unwrap_or((&spec.address, ""));
        let base = match spec.address.is_empty() {
            true => self.base(),
            false => SecretText::from_marked(address.trim_end_matches('/')),
        };
        let mut url = base.then(path);
        let body = encoded(form);
        let body = match method {
            Method::Get => {
                url = url.then("?").then(body);
                None
            }
            Method::Post | Method::Put => {
                if !own.is_empty() {
                    url = url.then("?").then(SecretText::from_marked(own));
                }
                Some(body)
            }
        };
        let timeout = seconds(spec.timeout.unwrap_or(TIMEOUT));
        let mut request = HttpRequest { method, body, ..HttpRequest::get(url, timeout) };
        for header in &spec.headers {
            request = request.header(&header.key, SecretText::from_marked(&header.value));
        }
        if method == Method::Post {
            request = request.header("Content-Type", "application/x-www-form-urlencoded");
        }
        let tls = Tls { insecure: spec.insecure, ca: None };
        HttpRequest { tls, auth: self.auth(), ..request }
    }

    fn auth(&self) -> Auth {
        let PrometheusMetric { address, authentication, .. } = self.0;
        let text = |text: &String| SecretText::from_marked(text);
        let (oauth2, sigv4) = (&authentication.oauth2, &authentication.sigv4);
        let basic = &authentication.basic_auth;
        let is_signed =
            [&sigv4.region, &sigv4.profile, &sigv4.role_arn].iter().any(|field| !field.is_empty());
        if !oauth2.token_url.is_empty() {
            return super::web::oauth2(oauth2);
        }
        if is_signed && address.contains("aps-workspaces") {
            return Auth::SigV4 {
                service: "aps".to_owned(),
                region: text(&sigv4.region),
                profile: text(&sigv4.profile),
                role_arn: text(&sigv4.role_arn),
            };
        }
        if !basic.username.is_empty() {
            return Auth::Basic { user: text(&basic.username), password: text(&basic.password) };
        }
        Auth::None
    }
}

/// A form as it is sent.
fn encoded(form: &[(String, SecretText)]) -> SecretText {
    let mut body = SecretText::default();
    for (index, (name, value)) in form.iter().enumerate() {
        let separator = if index > 0 { "&" } else { "" };
        body = body.then(format!("{separator}{name}="));
        body = body.then(value.clone().encoded(Encoding::Form));
    }
    body
}

/// Seconds since 1970 with their fraction.
fn unix(moment: Timestamp) -> String {
    (moment.as_second() as f64 + f64::from(moment.subsec_nanosecond()) / 1e9).to_string()
}

fn read(reply: &HttpReply) -> Next {
    let answer: Result<Value, _> = serde_json::from_str(&reply.body);
    match (reply.status, answer) {
        (200..=299 | 400 | 422, Err(error)) => {
            Next::bad(format!("bad_response: {error}"), EXPECTED)
        }
        (400 | 422, Ok(answer)) => {
            let text = |field: &str| answer[field].as_str().unwrap_or_default().to_owned();
            Next::bad(format!("{}: {}", text("errorType"), text("error")), EXPECTED)
        }
        (200..=299, Ok(answer)) if answer["status"] == "error" => {
            let text = |field: &str| answer[field].as_str().unwrap_or_default().to_owned();
            Next::bad(format!("{}: {}", text("errorType"), text("error")), EXPECTED)
        }
        (200..=299, Ok(answer)) => match numbers(&answer["data"]) {
            Ok((result, text)) => {
                Next::Done(Reading::Value { result, text, metadata: warnings(&answer) })
            }
            Err(message) => Next::bad(format!("bad_response: {message}"), EXPECTED),
        },
        (status @ 400..=499, _) => {
            Next::bad(format!("client_error: client error: {status}"), EXPECTED)
        }
        (status @ 500..=599, _) => {
            Next::bad(format!("server_error: server error: {status}"), EXPECTED)
        }
        (status, _) => Next::bad(format!("bad_response: bad response code {status}"), EXPECTED),
    }
}

fn warnings(answer: &Value) -> TextMap {
    let warnings = answer["warnings"].as_array().into_iter().flatten();
    let warnings: Vec<String> =
        warnings.filter_map(Value::as_str).map(|warning| format!("\"{warning}\"")).collect();
    if warnings.is_empty() {
        return TextMap::new();
    }
    [("warnings".to_owned(), warnings.join(", "))].into()
}

/// All samples of an answer, in order, and their text.
fn numbers<'a>(data: &'a Value) -> Result<(MetricValue, String), String> {
    let result = &data["result"];
    let list = || result.as_array().into_iter().flatten();
    match data["resultType"].as_str() {
        Some("scalar") => {
            let number = sample(result)?;
            Ok((MetricValue::Number(number), decimal(number)))
        }
        Some("vector") => {
            let all: Vec<Series> =
                list().map(|one| series(one, [&one["value"]])).collect::<Result<_, _>>()?;
            Ok(joined(all))
        }
        Some("matrix") => {
            let points = |one: &'a Value| one["values"].as_array().into_iter().flatten();
            let all: Vec<Series> =
                list().map(|one| series(one, points(one))).collect::<Result<_, _>>()?;
            Ok(joined(all))
        }
        Some(other) => Err(format!("unexpected value type \"{other}\"")),
        None => Err("unexpected value type \"\"".to_owned()),
    }
}

/// One series of an answer.
fn series<'a>(one: &Value, points: impl IntoIterator<Item = &'a Value>) -> Result<Series, String> {
    let labels = one["metric"].as_object().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let point = |pair: &Value| Ok((pair[0].as_f64().unwrap_or_default(), sample(pair)?));
    Ok(Series {
        labels: labels.map(|(name, value)| (name.clone(), text(value))).collect(),
        points: points.into_iter().map(point).collect::<Result<_, String>>()?,
    })
}

/// All series with the text of their numbers.
fn joined(series: Vec<Series>) -> (MetricValue, String) {
    let numbers: Vec<f64> =
        series.iter().flat_map(|one| one.points.iter().map(|(_, number)| *number)).collect();
    let text = decimals(&numbers);
    (MetricValue::Series(series), text)
}

/// The number of a pair of a time and a text.
fn sample(pair: &Value) -> Result<f64, String> {
    let text = pair[1].as_str().ok_or("a sample must be a time and a text")?;
    let number = match text {
        "NaN" => f64::NAN,
        "+Inf" | "Inf" => f64::INFINITY,
        "-Inf" => f64::NEG_INFINITY,
        text => text.parse().map_err(|_| format!("invalid number {text:?} in a sample"))?,
    };
    Ok(number)
}
