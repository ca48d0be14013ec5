//! What is wrong, in plain words, where those of the contract mislead?

use gradus_api::values::parse_go_duration;
use gradus_manifest::Document;
use serde_json::Value;

use super::finding::Finding;

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
        _ if finding.message.contains("Step must have one of") => Some(step(&value)),
        _ if finding.message.starts_with("invalid value: integer") => {
            Some(format!("Invalid value: {value}: the number is too large"))
        }
        _ => other_type(field, &value, &finding.message),
    }
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
        ("pause", Value::String(text)) => format!(": write pause: {{duration: {text}}}"),
        (_, Value::Number(_) | Value::Bool(_)) if wanted == "string" => {
            format!(": write it in quotes, \"{value}\"")
        }
        (_, Value::String(text)) if wanted == "integer" => {
            let number = text.trim_end_matches('%').parse::<i64>().ok();
            let span = || parse_go_duration(text).ok().map(|span| span.as_secs());
            let number = number.or_else(|| span().filter(|_| field.ends_with("Seconds")));
            number.map_or(String::new(), |number| format!(": write {number}"))
        }
        _ => String::new(),
    };
    let shown = match value {
        Value::Object(_) | Value::Array(_) | Value::Null => String::new(),
        value => format!("{value}: "),
    };
    Some(format!("Invalid value: {shown}must be of type {wanted}, not {found}{hint}"))
}

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
    let digits = text.strip_suffix('%').unwrap_or(text);
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
