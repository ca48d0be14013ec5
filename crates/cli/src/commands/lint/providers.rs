//! Can the provider of a metric measure? What it would refuse before it asks anything.

use std::collections::BTreeMap;

use gradus_api::analysis::Metric;
use gradus_api::decode::decode;
use gradus_engine::metrics::{self, Call, Next, Observed, Of, Reading};
use gradus_engine::uid::Uid;
use gradus_manifest::Document;
use jiff::Timestamp;
use serde_json::Value;

use super::finding::Finding;
use super::metrics::no_duration;
use super::promql;

/// What a provider cannot measure without, although its schema lets it be left out.
const QUERIES: [(&str, &[&str]); 6] = [
    ("cloudWatch", &["metricDataQueries"]),
    ("graphite", &["query"]),
    ("influxdb", &["query"]),
    ("newRelic", &["query"]),
    ("skywalking", &["query"]),
    ("wavefront", &["address", "query"]),
];

/// What is wrong with the provider of a metric.
pub fn check(document: &Document, raw: &Value, path: &str) -> Vec<Finding> {
    let provider = &raw["provider"];
    let kinds: Vec<&String> =
        provider.as_object().into_iter().flatten().map(|(name, _)| name).collect();
    match kinds.as_slice() {
        [] => {
            let message = "Required value: a metric needs a provider, such as prometheus or web";
            return vec![Finding::error(document, path, message.to_owned())];
        }
        [_] => {}
        [first, second, ..] => {
            let message = format!(
                "a metric has one provider, and this one has {first} and {second}: make two metrics"
            );
            return vec![Finding::error(document, path, message)];
        }
    }
    let mut findings = Vec::new();
    let mut add = |field: &str, message: String| {
        findings.push(Finding::error(document, &format!("{path}.{field}"), message));
    };
    for field in [
        "prometheus.rangeQuery.step",
        "datadog.interval",
        "cloudWatch.interval",
        "skywalking.interval",
    ] {
        let value = provider.pointer(&format!("/{}", field.replace('.', "/")));
        if let Some(message) = value.and_then(no_duration) {
            add(field, message);
        }
    }
    for field in ["prometheus.timeout", "newRelic.timeout"] {
        let value = provider.pointer(&format!("/{}", field.replace('.', "/")));
        if let Some(seconds) = value.and_then(Value::as_i64).filter(|seconds| *seconds < 0) {
            add(field, format!("Invalid value: {seconds}: must be 0 or more"));
        }
    }
    for (field, message) in of_web(&provider["web"]) {
        add(field, message);
    }
    let address = provider["prometheus"]["address"].as_str().unwrap_or_default();
    if address.contains("://")
        && let Some(message) = no_url(address)
    {
        add("prometheus.address", message);
    }
    for kind in ["prometheus", "web"] {
        let oauth2 = &provider[kind]["authentication"]["oauth2"];
        let is_used = oauth2.as_object().is_some_and(|fields| !fields.is_empty());
        if is_used && oauth2["tokenUrl"].as_str().is_none_or(str::is_empty) {
            let message = "Required value: without it nobody is authenticated".to_owned();
            add(&format!("{kind}.authentication.oauth2.tokenUrl"), message);
        }
    }
    findings.extend(query(document, provider, path));
    if findings.is_empty() {
        findings.extend(refused(document, raw, path));
    }
    findings
}

/// What is wrong with a metric that asks any address, by field.
fn of_web(web: &Value) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let path = web["jsonPath"].as_str().filter(|it| !it.is_empty() && !it.contains("{{"));
    match path.map(|path| (path, gradus_jsonpath::JsonPath::parse(path))) {
        Some((_, Err(error))) => found.push(("web.jsonPath", format!("Invalid value: {error}"))),
        Some((path, Ok(_))) if !path.contains('{') => {
            let message = "without braces it stands for itself, whatever is answered";
            let message = format!("Invalid value: {path:?}: {message}: write {{{path}}}");
            found.push(("web.jsonPath", message));
        }
        _ => {}
    }
    if let Some(method) =
        web["method"].as_str().filter(|it| !["", "GET", "POST", "PUT"].contains(it))
    {
        let known = "supported values: \"GET\", \"POST\", \"PUT\"";
        found.push(("web.method", format!("Unsupported value: {method:?}: {known}")));
    }
    match web["url"].as_str() {
        None | Some("") if web.is_object() => found.push(("web.url", "Required value".to_owned())),
        Some(url) => found.extend(no_url(url).map(|message| ("web.url", message))),
        None => {}
    }
    found
}

/// Why nobody can be asked at this address. What an argument fills in is known later.
fn no_url(url: &str) -> Option<String> {
    if url.is_empty() || url.starts_with("{{") {
        return None;
    }
    let Some((scheme, rest)) = url.split_once("://") else {
        return Some(format!("{url:?} is no URL: expected one such as https://{url}"));
    };
    if !scheme.contains("{{") && !["http", "https"].contains(&scheme) {
        return Some(format!("{url:?} is no URL of a server: it begins with http:// or https://"));
    }
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.contains("{{") {
        return None;
    }
    if host.is_empty() || host.contains(char::is_whitespace) {
        return Some(format!(
            "{url:?} is no URL: the name of a host has no blanks and is not empty"
        ));
    }
    let port = host.rsplit_once(':').map(|(_, port)| port).filter(|port| !port.ends_with(']'));
    let is_odd = port.is_some_and(|port| port.parse::<u16>().is_err());
    is_odd.then(|| format!("{url:?} is no URL: a port is a number up to 65535"))
}

/// What the provider itself refuses before it asks anything.
fn refused(document: &Document, raw: &Value, path: &str) -> Option<Finding> {
    let (kind, config) = raw["provider"].as_object()?.iter().next()?;
    let field = format!("{path}.{kind}");
    if let Some(needed) = QUERIES.iter().find(|(name, _)| name == kind).map(|(_, needed)| needed) {
        let is_empty = |name: &&&str| match &config[**name] {
            Value::String(text) => text.trim().is_empty(),
            Value::Array(items) => items.is_empty(),
            other => other.is_null(),
        };
        if let Some(name) = needed.iter().find(is_empty) {
            let message = "Required value: without it every measurement is an error".to_owned();
            return Some(Finding::error(document, &format!("{field}.{name}"), message));
        }
    }
    let (metric, _) = decode::<Metric>(raw);
    let of_run = Of {
        namespace: "default".into(),
        job_namespace: "default".into(),
        name: "lint".into(),
        uid: Uid::default(),
        started_at: None,
    };
    let seen = Observed {
        now: Timestamp::UNIX_EPOCH,
        run: &of_run,
        number: 1,
        replies: &[],
        said: &[],
        jobs: &BTreeMap::new(),
        refused: None,
        pods: None,
    };
    // What an argument fills in is known when the run is made; in a query it can be anything.
    let is_open = config.as_object()?.iter().any(|(name, value)| {
        !["query", "body", "jsonBody"].contains(&name.as_str()) && value.to_string().contains("{{")
    });
    let provider = metrics::provider(&metric).filter(|_| kind != "job" && !is_open)?;
    let Next::Done(Reading::Error(fault)) = provider.next(Call::Run, &seen) else { return None };
    if kind == "prometheus" && fault.message.contains("address is not") {
        let address = &config["address"];
        let message = format!("{address} is no URL: expected one such as http://prometheus:9090");
        return Some(Finding::error(document, &format!("{field}.address"), message));
    }
    Some(Finding::error(document, &field, fault.message))
}

/// A query of Prometheus must be PromQL.
fn query(document: &Document, provider: &Value, path: &str) -> Option<Finding> {
    let prometheus = provider.get("prometheus")?;
    let path = format!("{path}.prometheus.query");
    let text = prometheus["query"].as_str().unwrap_or_default();
    if text.trim().is_empty() {
        let message = "Required value: without a query every measurement is an error".to_owned();
        return Some(match prometheus["query"].is_string() {
            true => Finding::error(document, &path, message),
            false => Finding::warning(document, &path, message),
        });
    }
    let fault = promql::fault(text)?;
    let start = if fault.message.starts_with("it ") {
        "this cannot be measured"
    } else {
        "this is no PromQL"
    };
    let message = format!("{start}: {}", fault.message);
    let finding = match fault.may_be_dialect {
        true => Finding::warning(document, &path, message),
        false => Finding::error(document, &path, message),
    };
    Some(finding.about("promql"))
}
