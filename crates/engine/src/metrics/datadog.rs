//! Datadog: a time series of API v1, or scalars of API v2.

use gradus_api::metrics::DatadogMetric;
use gradus_api::values::parse_go_duration;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::format::{decimal, decimals, go_json};
use super::{Call, MetricValue, Next, Observed, Once, Provider, Reading, TextMap, once, shown};
use crate::ask::http::{HttpReply, HttpRequest};
use crate::ask::secret::{Encoding, SecretPlace, SecretRef, SecretText};

/// A query to Datadog.
pub struct Datadog<'a>(pub &'a DatadogMetric);

/// Where Datadog is, unless the credentials say otherwise.
const ADDRESS: &str = "https://api.datadoghq.com";
/// The Secret with the credentials, unless the metric names one.
const SECRET: &str = "datadog";
/// The variables with the credentials; they are used together or not at all.
const VARIABLES: [&str; 3] = ["DD_API_KEY", "DD_APP_KEY", "DD_ADDRESS"];
/// Groups of a grouped query that are kept: so many lowest and so many highest.
const GROUPS_KEPT: usize = 50;
const EXPECTED: &str = "a Datadog API answer with a number";

const REVIEW: &str = "Please review the Analysis Template.";

impl Provider for Datadog<'_> {
    fn kind(&self) -> &'static str {
        "Datadog"
    }

    fn address(&self) -> String {
        shown(&self.base())
    }

    fn query(&self) -> String {
        let queries = self.0.queries.iter().map(|(name, query)| format!("{name} = {query}"));
        let texts = [&self.0.query, &self.0.formula].into_iter().cloned();
        let texts = queries.chain(texts).filter(|text| !text.is_empty());
        SecretText::from_marked(&texts.collect::<Vec<_>>().join(", ")).to_string()
    }

    fn next(&self, _: Call<'_>, seen: &Observed<'_>) -> Next {
        let (interval, timeout) = match self.check() {
            Ok(times) => times,
            Err(message) => return Next::refused(message),
        };
        let is_v2 = self.0.api_version == "v2";
        let request = match is_v2 {
            true => self.scalars(seen.now, interval, timeout),
            false => self.series(seen.now, interval, timeout),
        };
        match once(seen, request, EXPECTED) {
            Once::Answered(reply) if is_v2 => answer(reply, read_v2),
            Once::Answered(reply) => answer(reply, read_v1),
            Once::Ask(Next::Done(Reading::Error(fault))) if fault.ends_run => {
                Next::refused("failed to find the credentials for datadog metrics provider")
            }
            Once::Ask(next) => next,
        }
    }
}

impl Datadog<'_> {
    /// How far back, and how long an answer may take.
    fn check(&self) -> Result<(SignedDuration, SignedDuration), String> {
        let spec = self.0;
        if spec.secret_ref.namespaced && spec.secret_ref.name.is_empty() {
            return Err("secret name is required for namespaced credentials".to_owned());
        }
        let is_v1 = spec.api_version != "v2";
        let (has_query, has_queries) = (!spec.query.is_empty(), !spec.queries.is_empty());
        let message = match (has_query, has_queries) {
            (false, false) => format!("Must have either a query or queries. {REVIEW}"),
            (true, true) => format!("Cannot have both a query and queries. {REVIEW}"),
            (false, true) if is_v1 => {
                "Query is empty. API Version v1 only supports using the query parameter in your \
                 Analysis Template."
                    .to_owned()
            }
            (true, false) if !spec.formula.is_empty() => {
                format!("Formula are only valid when queries are set. {REVIEW}")
            }
            (false, true) if spec.queries.len() > 1 && spec.formula.is_empty() => {
                "When multiple queries are provided you must include a formula.".to_owned()
            }
            _ if is_v1 && !spec.aggregator.is_empty() => {
                format!("Aggregator is not supported in v1. {REVIEW}")
            }
            _ => String::new(),
        };
        if !message.is_empty() {
            return Err(message);
        }
        let or = |text: &str, otherwise: &str| {
            parse_go_duration(if text.is_empty() { otherwise } else { text })
        };
        let timeout = or(&spec.request_timeout, "10s")
            .map_err(|error| format!("Could not parse the request timeout: {error}. {REVIEW}"))?;
        if !timeout.is_positive() {
            let message = "Request timeout must be a positive duration (e.g. 30s).";
            return Err(format!("{message} {REVIEW}"));
        }
        let interval = or(&spec.interval, "5m").map_err(|error| error.to_string())?;
        Ok((interval, timeout))
    }

    /// A value of the credentials: of the Secret that the metric names, else of the environment or
    /// the controller's own Secret.
    fn credential(&self, key: &str, variable: &str) -> SecretRef {
        let named = &self.0.secret_ref;
        if named.namespaced {
            return SecretRef::new(SecretPlace::Own, &named.name, key);
        }
        if !named.name.is_empty() {
            return SecretRef::new(SecretPlace::Controller, &named.name, key);
        }
        let secret = SecretRef::new(SecretPlace::Controller, SECRET, key);
        let variable = SecretRef::new(SecretPlace::Environment, "", variable).along(&VARIABLES);
        variable.or(SecretText::secret(secret))
    }

    fn base(&self) -> SecretText {
        let named = self.credential("address", "DD_ADDRESS");
        let fallback = || SecretText::plain(ADDRESS);
        let named = match named.or {
            None => named.or(fallback()),
            Some(or) => {
                let inner = or.references().first().map(|inner| (*inner).clone().or(fallback()));
                let or = inner.map_or_else(fallback, SecretText::secret);
                SecretRef { or: Some(Box::new(or)), ..named }
            }
        };
        SecretText::secret(named)
    }

    fn with_headers(&self, request: HttpRequest) -> HttpRequest {
        let key = SecretText::secret(self.credential("api-key", "DD_API_KEY"));
        let application = SecretText::secret(self.credential("app-key", "DD_APP_KEY"));
        request
            .header("Content-Type", "application/json")
            .header("DD-API-KEY", key)
            .header("DD-APPLICATION-KEY", application)
    }

    fn series(
        &self,
        now: Timestamp,
        interval: SignedDuration,
        timeout: SignedDuration,
    ) -> HttpRequest {
        let (to, from) = (now.as_second(), (now - interval).as_second());
        let query = SecretText::from_marked(&self.0.query).encoded(Encoding::Form);
        let url = self.base().then(format!("/api/v1/query?from={from}&query="));
        let url = url.then(query).then(format!("&to={to}"));
        self.with_headers(HttpRequest::get(url, timeout))
    }

    fn scalars(
        &self,
        now: Timestamp,
        interval: SignedDuration,
        timeout: SignedDuration,
    ) -> HttpRequest {
        let spec = self.0;
        let aggregator = if spec.aggregator.is_empty() { "last" } else { &spec.aggregator };
        let query = |name: &str, query: &str| json!({ "aggregator": aggregator, "data_source": "metrics", "name": name, "query": query });
        let queries: Vec<Value> = match spec.queries.is_empty() {
            true => vec![query("query", &spec.query)],
            false => spec.queries.iter().map(|(name, text)| query(name, text)).collect(),
        };
        let formulas: Vec<Value> = match spec.formula.is_empty() {
            true => Vec::new(),
            false => vec![json!({ "formula": spec.formula })],
        };
        let body = json!({ "data": {
            "attributes": {
                "from": (now - interval).as_millisecond(), "to": now.as_millisecond(),
                "queries": queries, "formulas": formulas,
            },
            "type": "scalar_request",
        } });
        let body = SecretText::from_marked(&body.to_string()).with_secrets(Encoding::Json);
        let url = self.base().then("/api/v2/query/scalar");
        self.with_headers(HttpRequest::post(url, body, timeout))
    }
}

fn answer(reply: &HttpReply, read: fn(&Value) -> Next) -> Next {
    let HttpReply { status, body, .. } = reply;
    match status {
        200 => match serde_json::from_str(body) {
            Ok(answer) => read(&answer),
            Err(error) => Next::bad(format!("Could not parse JSON body: {error}"), EXPECTED),
        },
        401 | 403 => {
            let message = format!("received authentication error response code: {status} {body}");
            Next::bad(message, EXPECTED)
        }
        _ => Next::bad(format!("received non 2xx response code: {status} {body}"), EXPECTED),
    }
}

fn read_v1(answer: &Value) -> Next {
    let series = &answer["series"];
    let Some(points) = series[0]["pointlist"].as_array().filter(|points| !points.is_empty()) else {
        return Next::value(MetricValue::Nil, go_json(series));
    };
    let last = points.last().and_then(Value::as_array);
    match last.map(Vec::as_slice) {
        Some([_, value]) => {
            let number = value.as_f64().unwrap_or(0.0);
            Next::value(MetricValue::Number(number), decimal(number))
        }
        _ => Next::bad("Datapoint does not have 2 values", EXPECTED),
    }
}

fn read_v2(answer: &Value) -> Next {
    let data = &answer["data"];
    let errors = &data["errors"];
    let has_errors = match errors {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        _ => true,
    };
    if has_errors {
        let text = errors.as_str().map_or_else(|| go_json(errors), str::to_owned);
        return Next::bad(format!("There were errors in your query: {text}"), EXPECTED);
    }
    let columns = data["attributes"]["columns"].as_array().map_or(&[][..], Vec::as_slice);
    let is_value = |column: &&Value| matches!(column["type"].as_str(), None | Some("" | "number"));
    let groups: Vec<&Value> = columns.iter().filter(|column| column["type"] == "group").collect();
    let Some(column) = columns.iter().find(is_value) else {
        return Next::value(MetricValue::Nil, "[]".to_owned());
    };
    let values = column["values"].as_array().map_or(&[][..], Vec::as_slice);
    let mut numbers = Vec::new();
    for (index, value) in values.iter().enumerate().filter(|(_, value)| !value.is_null()) {
        match value.as_f64() {
            Some(number) => numbers.push((index, number)),
            None => {
                let name = column["name"].as_str().unwrap_or_default();
                let text = value.to_string();
                let message = format!(
                    "could not parse numeric value {text:?} in column {name:?}: it is no number"
                );
                return Next::bad(message, EXPECTED);
            }
        }
    }
    match (numbers.first(), groups.is_empty()) {
        (None, _) => Next::value(MetricValue::Nil, "[]".to_owned()),
        (Some((_, first)), true) => Next::value(MetricValue::Number(*first), decimal(*first)),
        (Some(_), false) => grouped(&numbers, &groups),
    }
}

/// All values of a grouped query, with the names of their groups.
fn grouped(numbers: &[(usize, f64)], groups: &[&Value]) -> Next {
    let mut named = Vec::new();
    for (index, number) in numbers {
        let mut tags = Vec::new();
        for group in groups {
            let labels = &group["values"][*index];
            let Some(labels) = labels.as_array() else {
                let message = format!("could not parse group label at index {index}");
                return Next::bad(message, EXPECTED);
            };
            tags.extend(labels.iter().filter_map(Value::as_str).map(str::to_owned));
        }
        named.push((tags.join(","), *number));
    }
    let numbers: Vec<f64> = numbers.iter().map(|(_, number)| *number).collect();
    let mut metadata = TextMap::new();
    if named.len() > 2 * GROUPS_KEPT {
        named.sort_by(|one, other| one.1.total_cmp(&other.1));
        named.drain(GROUPS_KEPT..named.len() - GROUPS_KEPT);
        metadata.insert("groups_truncated".to_owned(), "true".to_owned());
    }
    let groups: Vec<Value> =
        named.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
    metadata.insert("groups".to_owned(), go_json(&Value::Array(groups)));
    let text = decimals(&numbers);
    Next::Done(Reading::Value { result: MetricValue::Numbers(numbers), text, metadata })
}
