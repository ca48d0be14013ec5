//! What is wrong, in plain words, where those of the contract mislead?

use gradus_api::values::parse_go_duration;
use gradus_manifest::Document;
use serde_json::Value;

use super::finding::Finding;
use crate::near;

/// What a duration looks like.
pub fn no_duration(text: &str) -> String {
    format!("{text:?} is no duration: expected numbers with units, such as 30s, 5m or 1h30m")
}

/// The finding, in words of our own where the contract's would send people the wrong way.
pub fn plain(document: &Document, finding: Finding) -> Finding {
    match of(document, &finding) {
        Some(words) => finding.in_words(words),
        None => finding,
    }
}

fn of(document: &Document, finding: &Finding) -> Option<String> {
    let value = at(&document.json(), &finding.path);
    let field = finding.path.rsplit('.').next().unwrap_or_default();
    match field {
        "duration" if finding.message.contains("Duration needs") => Some(match &value {
            Value::String(text) if text.parse::<i64>().is_err() => {
                no_duration(text) + ", or seconds"
            }
            other => format!("Invalid value: {other}: a pause cannot be negative"),
        }),
        "maxSurge" if finding.message.contains("both can not be zero") => {
            let text = ["maxSurge", "maxUnavailable"].iter().find_map(|name| {
                let path = finding.path.replace("maxSurge", name);
                let value = at(&document.json(), &path);
                let text = value.as_str()?.to_owned();
                no_percentage(&text)
            });
            Some(text.unwrap_or_else(|| {
                "maxSurge and maxUnavailable are both 0, so no pod may be added or removed"
                    .to_owned()
            }))
        }
        "provider" if finding.message.starts_with("Required value") => {
            Some("a metric needs a provider, such as prometheus, web or job".to_owned())
        }
        "workloadRef" if finding.message.contains("is not supported") => Some(format!(
            "{}: expected a Deployment or ReplicaSet of apps/v1, or a PodTemplate of v1",
            finding.message
        )),
        _ if finding.message.starts_with("No routes configured") => no_route(&value),
        "istio" if finding.message.contains("VirtualService or VirtualServices") => {
            Some("configure either virtualService or virtualServices".to_owned())
        }
        "restartAt" if finding.message.contains("must be of type date-time") => {
            Some(format!("{value} is no time: expected one such as 2026-01-31T15:04:05Z"))
        }
        _ if finding.message.starts_with("Internal error: ") => {
            finding.message.strip_prefix("Internal error: ").map(str::to_owned)
        }
        "successCondition" | "failureCondition" => {
            condition(&finding.message).or_else(|| other_type(field, &value, &finding.message))
        }
        "antiAffinity" if finding.message.contains("exactly one strategy") => Some(
            "one of preferredDuringSchedulingIgnoredDuringExecution and \
             requiredDuringSchedulingIgnoredDuringExecution must be there"
                .to_owned(),
        ),
        _ if finding.message.contains("should match '^[+-]?([0-9]+") => {
            Some(no_quantity(&bare(&value)))
        }
        _ if finding.message.contains("Step must have one of") => Some(step(&value)),
        _ if finding.message.starts_with("invalid value: integer") => {
            Some(format!("Invalid value: {value}: the number is too large"))
        }
        _ => other_type(field, &value, &finding.message).or_else(|| shortened(&finding.message)),
    }
}

/// Without the regular expressions of the server, whose examples say as much.
fn shortened(said: &str) -> Option<String> {
    let (before, _) = said.split_once(", regex used for validation is '")?;
    Some(format!("{})", before.replace("',  or '", "', or '")))
}

/// What a quantity looks like.
pub fn no_quantity(text: &str) -> String {
    format!("{text:?} is no quantity: expected a number with a unit such as 100m, 0.5, 128Mi or 1G")
}

/// A value of another type than the field, with what was probably meant.
fn other_type(field: &str, value: &Value, said: &str) -> Option<String> {
    let (_, wanted) = said.split_once(" in body must be of type ")?;
    let (wanted, found) = wanted.split_once(": ")?;
    let found = found.trim_matches('"');
    let hint = match (field, value) {
        ("interval" | "initialDelay" | "duration", Value::Number(number)) => {
            format!(": a duration has a unit, such as {number}s or {number}m")
        }
        ("pause", Value::String(_) | Value::Number(_)) => {
            format!(": write pause: {{duration: {}}}", bare(value))
        }
        ("rollbackWindow", Value::Number(number)) => {
            format!(": write rollbackWindow: {{revisions: {number}}}")
        }
        ("args" | "command", Value::String(_)) => format!(": write a list, [{value}]"),
        (_, Value::String(text)) if wanted == "boolean" && ["true", "false"].contains(&&**text) => {
            format!(": write {text}, without quotes")
        }
        (_, Value::Number(_) | Value::Bool(_)) if wanted == "string" => {
            format!(": write it in quotes, \"{value}\"")
        }
        (_, Value::String(text)) if wanted == "integer" => {
            let number = text.trim_end_matches('%').parse::<i64>().ok();
            let span = || parse_go_duration(text).ok().map(|span| span.as_secs());
            let is_time = field.ends_with("Seconds") || field == "timeout";
            let number = number.or_else(|| span().filter(|_| is_time));
            number.map_or(String::new(), |number| format!(": write {number}"))
        }
        (_, Value::String(_) | Value::Number(_)) if wanted == "object" => by_name(field, value),
        _ => String::new(),
    };
    let shown = match value {
        Value::Object(_) | Value::Array(_) | Value::Null => String::new(),
        value => format!("{value}: "),
    };
    Some(format!("Invalid value: {shown}must be of type {wanted}, not {found}{hint}"))
}

/// A field of the Gateway API plugin that is nearly one.
fn no_route(config: &Value) -> Option<String> {
    let families = ["http", "grpc", "tcp", "tls"];
    let ends = ["Route", "Routes", "RouteSelector"];
    let known: Vec<String> = families
        .iter()
        .flat_map(|family| ends.iter().map(move |end| format!("{family}{end}")))
        .chain([String::from("namespace")])
        .collect();
    let fields = config.as_object()?.keys().filter(|field| !known.contains(field));
    let near =
        |field: &String| Some((field.clone(), near::offered(field, &known).first()?.clone()));
    let (field, near) = fields.into_iter().find_map(near)?;
    Some(format!("no route is named: unknown field {field:?}; did you mean {near}?"))
}

/// The object that a name or a number probably stands for.
fn by_name(field: &str, value: &Value) -> String {
    let (list, index) = field.split_once('[').unwrap_or((field, ""));
    let inner = match list {
        "configMapRef" | "secretRef" | "configMap" | "imagePullSecrets" | "virtualService"
        | "virtualServices" | "managedRoutes" | "plugin" => "name",
        "ports" => "containerPort",
        "nginx" => "stableIngress",
        "analysis" => return format!(": write {{templates: [{{templateName: {}}}]}}", bare(value)),
        _ => return String::new(),
    };
    let start = if index.is_empty() { format!("{list}: ") } else { String::new() };
    format!(": write {start}{{{inner}: {}}}", bare(value))
}

/// A value as it stands in a manifest.
fn bare(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// What a slip in a condition was probably meant to be.
fn condition(said: &str) -> Option<String> {
    let slips = [
        ("Identifier(\"AND\")", "write &&, or and in lower case"),
        ("Identifier(\"OR\")", "write ||, or or in lower case"),
        ("Identifier(\"NOT\")", "write !, or not in lower case"),
        ("Operator(\"=\")", "== compares, <= and >= are written so, and matches tries a pattern"),
        ("unknown name value", "the measurement is called result"),
        ("unexpected token EOF", "something is missing at its end"),
    ];
    if let Some((_, hint)) = slips.iter().find(|(slip, _)| said.contains(slip)) {
        return Some(format!("{said}: {hint}"));
    }
    let (_, name) = said.split_once("unknown name ")?;
    let name = name.split_whitespace().next()?;
    if name == "args" {
        return Some(format!("{said}: write an argument as {{{{args.NAME}}}}"));
    }
    let known = KNOWN_TO_CONDITIONS.map(str::to_owned);
    Some(match near::offered(name, &known).first() {
        Some(near) => format!("{said}; did you mean {near}?"),
        None => format!("{said}: the measurement is called result, and a text stands in quotes"),
    })
}

/// What conditions use most.
const KNOWN_TO_CONDITIONS: [&str; 15] = [
    "result", "isNaN", "isInf", "isNil", "asInt", "asFloat", "default", "len", "all", "any",
    "none", "filter", "lower", "upper", "trim",
];

/// A step that does two things, or nothing.
fn step(value: &Value) -> String {
    let kinds: Vec<&str> =
        value.as_object().into_iter().flatten().map(|(kind, _)| kind.as_str()).collect();
    let known = "setWeight, pause, setCanaryScale, analysis, experiment, setHeaderRoute, \
                 setMirrorRoute or plugin";
    match kinds.as_slice() {
        [] => format!("the step is empty: expected one of {known}"),
        [kind] if value[*kind].is_null() => format!("{kind} has no value"),
        kinds => format!("a step does one thing, and this one has {}", kinds.join(" and ")),
    }
}

/// Why a text is no number of pods.
pub fn no_percentage(text: &str) -> Option<String> {
    let digits = text.strip_suffix('%').unwrap_or_default();
    let is_right = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let kept: String = text.chars().filter(|c| c.is_ascii_digit()).collect();
    let hint = if kept.is_empty() { "25%".to_owned() } else { format!("{kept}%") };
    (!is_right).then(|| {
        format!(
            "{text:?} is no percentage: expected a whole number of pods, or a percentage as {hint}"
        )
    })
}

/// The value at a path as findings write it.
pub fn at(object: &Value, path: &str) -> Value {
    let mut value = object;
    for step in path.split(['.', '[']).filter(|step| !step.is_empty()) {
        value = match step.strip_suffix(']').and_then(|index| index.parse::<usize>().ok()) {
            Some(index) => &value[index],
            None => &value[step.trim_end_matches(']')],
        };
    }
    value.clone()
}
