//! Can a metric be measured? Everything for which a run would end in an error, at its field.

use gradus_api::analysis::Metric;
use gradus_api::decode::decode;
use gradus_api::names::{self, kind};
use gradus_api::values::{IntOrString, parse_go_duration};
use gradus_manifest::{Document, Place};
use serde_json::Value;

use super::beside::{is, is_template};
use super::finding::Finding;
use super::{providers, words};

/// What is wrong with the metrics of a template or a run.
pub fn check(document: &Document) -> Vec<Finding> {
    let is_run = is(document, names::GROUP, kind::ANALYSIS_RUN);
    if !is_template(document) && !is_run {
        return Vec::new();
    }
    let object = document.json();
    let metrics = object["spec"]["metrics"].as_array().map_or(&[][..], Vec::as_slice);
    let has_others = object["spec"]["templates"].as_array().is_some_and(|all| !all.is_empty());
    if metrics.is_empty() && !has_others {
        let message = "Required value: at least one metric".to_owned();
        return vec![Finding::error(document, "spec.metrics", message)];
    }
    let mut findings = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for (at, raw) in metrics.iter().enumerate() {
        let path = format!("spec.metrics[{at}]");
        let name = raw["name"].as_str().unwrap_or_default();
        if seen.contains(&name) && !name.is_empty() {
            let message = format!("Duplicate value: {name:?}: each metric has a name of its own");
            findings.push(Finding::error(document, &format!("{path}.name"), message));
        }
        seen.push(name);
        findings.extend(of_metric(document, raw, &path));
    }
    findings.extend(rules(document, &object["spec"], metrics));
    if is_run {
        findings.extend(open(document, &object["spec"]["args"]));
    }
    findings
}

/// Arguments of a run without a value: nobody gives them one later.
fn open(document: &Document, args: &Value) -> Vec<Finding> {
    let args = args.as_array().into_iter().flatten().enumerate();
    let open = args.filter(|(_, one)| {
        one["name"].is_string() && one["value"].is_null() && one["valueFrom"].is_null()
    });
    let told = open.map(|(at, one)| {
        let message = format!(
            "args.{} was not resolved: a run needs a value for it",
            one["name"].as_str().unwrap_or_default()
        );
        Finding::error(document, &format!("spec.args[{at}]"), message)
    });
    told.collect()
}

fn of_metric(document: &Document, raw: &Value, path: &str) -> Vec<Finding> {
    let (metric, _) = decode::<Metric>(raw);
    let mut findings = Vec::new();
    let mut add = |field: &str, message: String| {
        findings.push(Finding::error(document, &format!("{path}.{field}"), message));
    };
    if raw["name"] == "" {
        add("name", "Required value".to_owned());
    }
    for (field, message) in limits(&metric) {
        add(field, message);
    }
    for field in ["interval", "initialDelay"] {
        if let Some(message) = no_duration(&raw[field]) {
            add(field, message);
        }
    }
    if number(&metric.count) > 1
        && raw["interval"].as_str().map_or(raw["interval"].is_null(), str::is_empty)
    {
        add("count", "a count above 1 needs an interval between the measurements".to_owned());
    }
    findings.extend(providers::check(document, raw, &format!("{path}.provider")));
    findings
}

/// The number of a field; 0 where an argument fills it in.
fn number(field: &Option<IntOrString>) -> i32 {
    field.as_ref().map_or(0, IntOrString::int_value)
}

/// The limits that cannot be kept, by their fields.
fn limits(metric: &Metric) -> Vec<(&'static str, String)> {
    let (count, failures) = (number(&metric.count), number(&metric.failure_limit));
    let successes = number(&metric.consecutive_success_limit);
    let inconclusive = number(&metric.inconclusive_limit);
    let errors = number(&metric.consecutive_error_limit);
    let mut wrong = Vec::new();
    let no_number = |field: &Option<IntOrString>| match field {
        Some(IntOrString::Text(text)) if !text.contains("{{") => text.parse::<i32>().is_err(),
        _ => false,
    };
    let numbers = [
        ("count", &metric.count, 0),
        ("failureLimit", &metric.failure_limit, -1),
        ("inconclusiveLimit", &metric.inconclusive_limit, 0),
        ("consecutiveErrorLimit", &metric.consecutive_error_limit, 0),
        ("consecutiveSuccessLimit", &metric.consecutive_success_limit, 0),
    ];
    for (field, value, least) in numbers {
        let shown = value.as_ref().map(ToString::to_string).unwrap_or_default();
        if no_number(value) {
            wrong.push((field, format!("Invalid value: {shown:?}: expected a whole number")));
        } else if number(value) < least {
            let or = if least < 0 { ", or -1 for no limit" } else { "" };
            wrong.push((field, format!("Invalid value: {shown}: must be 0 or more{or}")));
        }
    }
    if !wrong.is_empty() {
        return wrong;
    }
    if successes == 0 && failures == -1 {
        let message = "without a failureLimit there must be a consecutiveSuccessLimit";
        wrong.push(("failureLimit", message.to_owned()));
    }
    let counted = failures.max(0).saturating_add(successes);
    if count > 0 && count < counted {
        let message =
            format!("{counted} failed and successful measurements cannot come of {count}");
        wrong.push(("count", message));
    } else if count > 0 && count < inconclusive.max(errors.min(0)) {
        let message = format!("a limit of {inconclusive} is never reached by {count} measurements");
        wrong.push(("inconclusiveLimit", message));
    }
    wrong
}

/// Why a text is no duration; arguments are known later.
pub fn no_duration(value: &Value) -> Option<String> {
    let text = value.as_str().filter(|text| !text.is_empty() && !text.contains("{{"))?;
    match parse_go_duration(text) {
        Ok(duration) if duration.is_negative() => {
            Some(format!("Invalid value: {text:?}: a duration cannot be negative"))
        }
        Ok(_) => None,
        Err(_) => Some(words::no_duration(text)),
    }
}

/// Rules about metrics that are not there.
fn rules(document: &Document, spec: &Value, metrics: &[Value]) -> Vec<Finding> {
    let is_alone = spec["templates"].as_array().is_none_or(Vec::is_empty);
    let names: Vec<&str> = metrics.iter().filter_map(|metric| metric["name"].as_str()).collect();
    let mut findings = Vec::new();
    for field in ["dryRun", "measurementRetention"] {
        let rules = spec[field].as_array().into_iter().flatten().enumerate();
        for (at, rule) in rules {
            if let Some(limit) = rule["limit"].as_i64().filter(|limit| *limit < 1) {
                let path = format!("spec.{field}[{at}].limit");
                let message = format!("Invalid value: {limit}: must be 1 or more");
                findings.push(Finding::error(document, &path, message));
            }
            let pattern = rule["metricName"].as_str().unwrap_or_default();
            let is_plain = pattern.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_');
            if is_alone && is_plain && !names.iter().any(|name| name.contains(pattern)) {
                let path = format!("spec.{field}[{at}].metricName");
                let message =
                    format!("no metric is called {pattern:?}; there are {}", names.join(", "));
                findings.push(Finding::error(document, &path, message));
            }
        }
    }
    findings
}

/// Placeholders that are no argument of the template, each at its use.
pub fn placeholders(document: &Document) -> Vec<Finding> {
    let object = document.json();
    let args = &object["spec"]["args"];
    if !args.is_null() && !args.is_array() {
        return Vec::new();
    }
    let args = args.as_array().cloned().unwrap_or_default();
    let names: Vec<&str> = args.iter().filter_map(|argument| argument["name"].as_str()).collect();
    let mut findings = declared(document, &args);
    // A placeholder may name the argument that has no name.
    if names.len() < args.len() || names.contains(&"") {
        return findings;
    }
    let mut texts = Vec::new();
    collect(&object["spec"]["metrics"], "spec.metrics", &mut texts);
    for (path, text) in texts {
        for tag in text.split("{{").skip(1).map(|rest| rest.split("}}").next().unwrap_or(rest)) {
            let name = tag.trim().strip_prefix("args.");
            if name.is_some_and(|name| names.contains(&name)) {
                continue;
            }
            let whole = format!("{{{{{tag}}}}}");
            let known = match names.as_slice() {
                [] => "spec.args has none".to_owned(),
                names => format!("spec.args has {}", names.join(", ")),
            };
            let message = format!("failed to resolve {whole}: it is none of spec.args; {known}");
            let finding = Finding::error(document, &path, message).about("argument");
            let place = found(&document.source.text, finding.place, &whole);
            findings.push(finding.clone().at(place.unwrap_or(finding.place)));
        }
    }
    findings
}

/// Arguments that are declared without a name, twice, or with two values.
fn declared(document: &Document, args: &[Value]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, argument) in args.iter().enumerate() {
        let name = argument["name"].as_str().unwrap_or_default();
        let path = format!("spec.args[{at}]");
        if argument["name"] == "" {
            let message = "Required value".to_owned();
            findings.push(Finding::error(document, &format!("{path}.name"), message));
        } else if !name.is_empty() && args[..at].iter().any(|one| one["name"] == name) {
            let message = format!("Duplicate value: {name:?}: each argument has a name of its own");
            findings.push(Finding::error(document, &format!("{path}.name"), message));
        }
        if argument["valueFrom"].as_object().is_some_and(serde_json::Map::is_empty) {
            let message =
                "Required value: secretKeyRef or fieldRef says where the value is".to_owned();
            findings.push(Finding::error(document, &format!("{path}.valueFrom"), message));
        }
        if !argument["value"].is_null() && !argument["valueFrom"].is_null() {
            let message = "an argument has value or valueFrom, and this one has both".to_owned();
            findings.push(Finding::error(document, &path, message));
        }
    }
    findings
}

fn collect(value: &Value, path: &str, texts: &mut Vec<(String, String)>) {
    match value {
        Value::String(text) if text.contains("{{") => texts.push((path.to_owned(), text.clone())),
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                collect(item, &format!("{path}[{at}]"), texts);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                collect(value, &format!("{path}.{name}"), texts);
            }
        }
        _ => {}
    }
}

/// Where words stand, on the line of a place or a few below it.
pub fn found(source: &str, around: Place, words: &str) -> Option<Place> {
    let first = around.line.checked_sub(1)?;
    let lines = source.lines().enumerate().skip(first).take(30);
    lines.into_iter().find_map(|(number, line)| {
        let at = line.find(words)?;
        let column = line[..at].chars().count() + 1;
        Some(Place { line: number + 1, column, length: words.chars().count() })
    })
}
