//! Which values do the arguments have that a Rollout gives to an analysis?

use gradus_api::analysis::Argument;
use gradus_api::names::{self, value};
use gradus_api::rollout::{RolloutArgument, RolloutStatus};
use serde_json::{Value, json};
use thiserror::Error;

use crate::frame::TextMap;
use crate::world::RolloutView;

/// What arguments may speak about.
pub struct Subject<'a> {
    /// The Rollout.
    pub rollout: &'a RolloutView,
    /// Its status as it will be.
    pub status: &'a RolloutStatus,
    /// Hash of the new revision.
    pub latest: &'a str,
    /// Hash of the stable revision.
    pub stable: &'a str,
}

/// Why an argument has no value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ArgumentError {
    /// Not a path of the downward API.
    #[error("unsupported fieldPath: {0}")]
    Unsupported(String),
    /// A list wants a number.
    #[error("invalid index '{0}'")]
    InvalidIndex(String),
    /// A list is shorter.
    #[error("index {0} out of range")]
    OutOfRange(usize),
    /// There is nothing at that path.
    #[error("invalid path {0} in rollout")]
    InvalidPath(String),
    /// There is more than one value at that path.
    #[error("path {0} in rollout must terminate in a primitive value")]
    NotPrimitive(String),
}

/// The arguments with their values. Whoever gives an argument without a value gives the empty text.
pub fn resolve(
    given: &[RolloutArgument],
    subject: &Subject<'_>,
) -> Result<Vec<Argument>, ArgumentError> {
    let mut whole = None;
    let resolved = given.iter().map(|argument| {
        let source = argument.value_from.as_ref();
        let hash = source.and_then(|source| source.pod_template_hash_value.as_deref());
        let field = source.and_then(|source| source.field_ref.as_ref());
        let text = match (hash, field) {
            (Some(value::STABLE), _) => subject.stable.to_owned(),
            (Some(_), _) => subject.latest.to_owned(),
            (None, Some(field)) if field.field_path.starts_with("metadata") => {
                of_metadata(subject.rollout, &field.field_path)?
            }
            (None, Some(field)) => {
                let rollout = whole.get_or_insert_with(|| document(subject));
                at_path(rollout, &field.field_path)?
            }
            (None, None) => argument.value.clone(),
        };
        Ok(Argument { name: argument.name.clone(), value: Some(text), value_from: None })
    });
    resolved.collect()
}

/// Is this a path the downward API knows?
pub fn check_metadata_path(rollout: &RolloutView, path: &str) -> Result<(), ArgumentError> {
    of_metadata(rollout, path).map(drop)
}

/// The Rollout as JSON, for paths that lead anywhere in it.
fn document(subject: &Subject<'_>) -> Value {
    let rollout = subject.rollout;
    let mut spec = json!(rollout.spec.fields);
    spec["template"] = serde_json::from_str(&rollout.spec.template).unwrap_or_default();
    json!({
        "apiVersion": names::API_VERSION,
        "kind": names::kind::ROLLOUT,
        "spec": spec,
        "status": subject.status,
    })
}

/// Metadata as the downward API shows it.
fn of_metadata(rollout: &RolloutView, path: &str) -> Result<String, ArgumentError> {
    let unsupported = || ArgumentError::Unsupported(path.to_owned());
    if let Some((field, key)) = path.strip_suffix("']").and_then(|path| path.split_once("['")) {
        let texts = match field {
            "metadata.labels" => &rollout.labels,
            "metadata.annotations" => &rollout.annotations,
            _ => return Err(unsupported()),
        };
        return Ok(texts.get(key).cloned().unwrap_or_default());
    }
    match path {
        "metadata.name" => Ok(rollout.name.to_string()),
        "metadata.namespace" => Ok(rollout.namespace.to_string()),
        "metadata.uid" => Ok(rollout.uid.to_string()),
        "metadata.labels" => Ok(lines(&rollout.labels)),
        "metadata.annotations" => Ok(lines(&rollout.annotations)),
        _ => Err(unsupported()),
    }
}

fn lines(texts: &TextMap) -> String {
    let lines: Vec<String> =
        texts.iter().map(|(key, value)| format!("{key}={}", quoted(value))).collect();
    lines.join("\n")
}

/// A text in quotes, escaped as Go does it.
fn quoted(text: &str) -> String {
    let escaped = |c: char| match c {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\u{7}' => "\\a".to_owned(),
        '\u{8}' => "\\b".to_owned(),
        '\u{c}' => "\\f".to_owned(),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        '\u{b}' => "\\v".to_owned(),
        c if c.is_ascii_control() => format!("\\x{:02x}", u32::from(c)),
        c if c.is_control() => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    };
    let inside: String = text.chars().map(escaped).collect();
    format!("\"{inside}\"")
}

/// The one value at a path whose parts are separated by dots or brackets.
fn at_path(rollout: &Value, path: &str) -> Result<String, ArgumentError> {
    let mut place = rollout;
    for part in path.split(['.', '[', ']']).filter(|part| !part.is_empty()) {
        place = match place {
            Value::Array(items) => {
                let index: usize =
                    part.parse().map_err(|_| ArgumentError::InvalidIndex(part.to_owned()))?;
                items.get(index).ok_or(ArgumentError::OutOfRange(index))?
            }
            Value::Object(fields) => {
                fields.get(part).ok_or_else(|| ArgumentError::InvalidPath(path.to_owned()))?
            }
            _ => return Err(ArgumentError::InvalidPath(path.to_owned())),
        };
    }
    match place {
        Value::String(text) => Ok(text.clone()),
        Value::Bool(yes) => Ok(yes.to_string()),
        Value::Number(number) => Ok(as_go_prints(number.as_f64().unwrap_or(f64::NAN))),
        Value::Null => Err(ArgumentError::InvalidPath(path.to_owned())),
        Value::Array(_) | Value::Object(_) => Err(ArgumentError::NotPrimitive(path.to_owned())),
    }
}

/// A number as Go's `%v` prints a float64: with an exponent from a million on.
pub(crate) fn as_go_prints(number: f64) -> String {
    let scientific = format!("{number:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) || number == 0.0 {
        return number.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Frame;

    fn rollout() -> RolloutView {
        let frame: Frame = serde_json::from_value(json!({
            "metadata": {
                "name": "web", "namespace": "shop", "uid": "00000000-0000-4000-8000-000000000001",
                "labels": { "team": "a \"b\"", "app": "web" }, "annotations": { "note": "x" },
            },
            "spec": {
                "replicas": 1_000_000, "paused": true, "minReadySeconds": 3,
                "template": { "spec": { "containers": [{ "name": "c", "image": "web:1" }] } },
                "strategy": { "canary": { "steps": [{ "setWeight": 20 }, { "pause": {} }] } },
            },
        }))
        .unwrap();
        RolloutView::read(&frame, None)
    }

    /// A path and its value, or the error.
    const PATHS: &str = r#"
metadata.name                            | web
metadata.namespace                       | shop
metadata.labels['app']                   | web
metadata.labels['none']                  |
metadata.annotations['note']             | x
metadata.labels                          | app="web"~team="a \"b\""
metadata.generation                      | unsupported fieldPath: metadata.generation
metadata.finalizers['x']                 | unsupported fieldPath: metadata.finalizers['x']
spec.replicas                            | 1e+06
spec.minReadySeconds                     | 3
.spec..paused                            | true
spec.template.spec.containers[0].image   | web:1
spec.template.spec.containers.0.image    | web:1
spec.strategy.canary.steps[0].setWeight  | 20
spec.strategy.canary.steps[x].setWeight  | invalid index 'x'
spec.strategy.canary.steps[2].setWeight  | index 2 out of range
spec.strategy.canary.steps               | path spec.strategy.canary.steps in rollout must terminate in a primitive value
spec.nothing                             | invalid path spec.nothing in rollout
spec.replicas.x                          | invalid path spec.replicas.x in rollout
status.stableRS                          | aaa"#;

    #[test]
    fn fields_of_the_rollout_become_texts() {
        let rollout = rollout();
        let status = RolloutStatus { stable_rs: "aaa".into(), ..RolloutStatus::default() };
        let subject = Subject { rollout: &rollout, status: &status, latest: "bbb", stable: "aaa" };
        for row in PATHS.trim().lines() {
            let (path, expected) = row.split_once('|').unwrap();
            let argument: RolloutArgument = serde_json::from_value(
                json!({ "name": "a", "valueFrom": { "fieldRef": { "fieldPath": path.trim() } } }),
            )
            .unwrap();
            let found = resolve(&[argument], &subject)
                .map(|resolved| resolved[0].value.clone().unwrap())
                .unwrap_or_else(|error| error.to_string());
            assert_eq!(found.replace('\n', "~"), expected.trim(), "{row}");
        }
    }

    #[test]
    fn a_hash_comes_before_a_field_and_a_source_before_a_value() {
        let rollout = rollout();
        let subject =
            Subject { rollout: &rollout, status: &rollout.status, latest: "bbb", stable: "aaa" };
        let cases = [
            (json!({ "value": "v" }), "v"),
            (json!({}), ""),
            (json!({ "valueFrom": { "podTemplateHashValue": "Stable" } }), "aaa"),
            (json!({ "value": "v", "valueFrom": { "podTemplateHashValue": "Latest" } }), "bbb"),
            (
                json!({ "valueFrom": { "podTemplateHashValue": "Latest",
                    "fieldRef": { "fieldPath": "metadata.name" } } }),
                "bbb",
            ),
        ];
        for (given, expected) in cases {
            let argument: RolloutArgument = serde_json::from_value(given.clone()).unwrap();
            let found = resolve(&[argument], &subject).unwrap();
            assert_eq!(found[0].value.as_deref(), Some(expected), "{given}");
        }
    }

    #[test]
    fn numbers_are_printed_as_go_prints_them() {
        let cases = [
            (0.0, "0"),
            (3.0, "3"),
            (0.5, "0.5"),
            (100_000.0, "100000"),
            (1_000_000.0, "1e+06"),
            (123_456_789.0, "1.23456789e+08"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (-2.5, "-2.5"),
        ];
        for (number, expected) in cases {
            assert_eq!(as_go_prints(number), expected);
        }
    }
}
