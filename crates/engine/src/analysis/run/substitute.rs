//! Fills arguments into metrics: into the texts of their parsed JSON, so that a value can never
//! change the shape of a metric. Secrets become markers, never values.

use std::collections::BTreeMap;

use gradus_api::analysis::{Argument, Metric};
use gradus_api::decode::decode;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::ask::secret::{marker, unmarked};

/// Why arguments cannot be filled in.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SubstituteError {
    /// An argument has no value.
    #[error("argument \"{0}\" was not supplied")]
    NotSupplied(String),
    /// A placeholder names nothing that is known.
    #[error("failed to resolve {{{{{0}")]
    Unknown(String),
    /// Two keys of an object become one.
    #[error("duplicate key \"{0}\"")]
    TwoKeys(String),
    /// The metric cannot be read.
    #[error("{0}")]
    Malformed(String),
}

/// The values of arguments by name; that of a secret is a marker.
pub fn values(arguments: &[Argument]) -> Result<BTreeMap<String, String>, SubstituteError> {
    let mut values = BTreeMap::new();
    for argument in arguments {
        let source = argument.value_from.as_ref();
        let secret = source.and_then(|source| source.secret_key_ref.as_ref());
        let value = match (secret, &argument.value) {
            (Some(secret), _) => marker(&secret.name, &secret.key),
            (None, Some(value)) => unmarked(value),
            (None, None) => return Err(SubstituteError::NotSupplied(argument.name.clone())),
        };
        values.insert(argument.name.clone(), value);
    }
    Ok(values)
}

/// The metric with its arguments.
pub fn metric(raw: &Value, values: &BTreeMap<String, String>) -> Result<Metric, SubstituteError> {
    let mut unknown = None;
    let filled = filled(raw, values, &mut unknown)?;
    if let Some(tag) = unknown {
        return Err(SubstituteError::Unknown(tag));
    }
    match decode(&filled) {
        (metric, errors) if errors.is_empty() => Ok(metric),
        (_, errors) => Err(SubstituteError::Malformed(errors[0].to_string())),
    }
}

fn filled(
    value: &Value,
    values: &BTreeMap<String, String>,
    unknown: &mut Option<String>,
) -> Result<Value, SubstituteError> {
    Ok(match value {
        Value::String(text) => Value::String(filled_text(text, values, unknown)),
        Value::Array(items) => {
            let items = items.iter().map(|item| filled(item, values, unknown));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        Value::Object(fields) => {
            let mut all = Map::new();
            for (key, value) in fields {
                let key = filled_text(key, values, unknown);
                let value = filled(value, values, unknown)?;
                if all.insert(key.clone(), value).is_some() {
                    return Err(SubstituteError::TwoKeys(key));
                }
            }
            Value::Object(all)
        }
        other => other.clone(),
    })
}

/// A text with its placeholders replaced. What is filled in is not searched again.
fn filled_text(
    text: &str,
    values: &BTreeMap<String, String>,
    unknown: &mut Option<String>,
) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        filled.push_str(&unmarked(before));
        let Some((tag, after)) = after.split_once("}}") else {
            *unknown = Some(after.to_owned());
            return filled;
        };
        match tag.trim().strip_prefix("args.").and_then(|name| values.get(name)) {
            Some(value) => filled.push_str(value),
            None => *unknown = Some(format!("{tag}}}}}")),
        }
        rest = after;
    }
    filled.push_str(&unmarked(rest));
    filled
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn argument(json: Value) -> Argument {
        serde_json::from_value(json).unwrap()
    }

    fn known() -> BTreeMap<String, String> {
        values(&[
            argument(json!({ "name": "a", "value": "x\"}" })),
            argument(json!({ "name": "n", "value": "5" })),
            argument(json!({ "name": "n", "value": "{{args.a}}" })),
            argument(json!({ "name": "s", "value": "ignored",
                "valueFrom": { "secretKeyRef": { "name": "keys", "key": "k" } } })),
        ])
        .unwrap()
    }

    #[test]
    fn placeholders_are_replaced_in_texts_and_keys() {
        let cases = [
            ("plain", "plain"),
            ("{{args.a}}", "x\"}"),
            ("<{{ args.a }}|{{args.n}}>", "<x\"}|{{args.a}}>"),
            ("{{args.s}}", "\u{fdd0}keys/k\u{fdd1}"),
            ("\u{fdd0}keys/k\u{fdd1}", "\u{fffd}keys/k\u{fffd}"),
            ("{{args.none}}", "! failed to resolve {{args.none}}"),
            ("{{ inputs.x }}{{b}}", "! failed to resolve {{b}}"),
            ("{{args.a", "! failed to resolve {{args.a"),
        ];
        for (text, expected) in cases {
            let raw = json!({ "name": "m", "successCondition": text });
            let found = metric(&raw, &known()).map(|metric| metric.success_condition);
            let found = found.unwrap_or_else(|error| format!("! {error}"));
            assert_eq!(found, expected, "{text}");
        }
        let raw = json!({ "name": "m", "count": "{{args.c}}", "provider": { "plugin":
            { "{{args.c}}": { "q": ["{{args.c}}"] } } } });
        let values = [("c".to_owned(), "7".to_owned())].into();
        let filled = metric(&raw, &values).unwrap();
        assert_eq!(filled.count.unwrap().int_value(), 7);
        assert_eq!(*filled.provider.plugin["7"], json!({ "q": ["7"] }));
    }

    #[test]
    fn what_cannot_be_filled_in_is_named() {
        let field = argument(json!({ "name": "f", "valueFrom":
            { "fieldRef": { "fieldPath": "metadata.name" } } }));
        let error = values(&[field]).unwrap_err();
        assert_eq!(error.to_string(), "argument \"f\" was not supplied");
        let raw = json!({ "name": 7 });
        assert!(metric(&raw, &known()).unwrap_err().to_string().starts_with("name: "));
        let twice = json!({ "name": "m", "provider": { "plugin": { "{{args.n}}": {}, "5": {} } } });
        let values = [("n".to_owned(), "5".to_owned())].into();
        assert_eq!(metric(&twice, &values).unwrap_err().to_string(), "duplicate key \"5\"");
    }

    proptest! {
        /// Whatever an argument contains, the metric keeps its shape.
        #[test]
        fn a_value_never_changes_the_shape(value in "\\PC*") {
            let values = [("a".to_owned(), value.clone())].into();
            let raw = json!({ "name": "m", "provider": { "web": { "url": "http://x/{{args.a}}",
                "headers": [{ "key": "k", "value": "{{args.a}}" }] } } });
            let web = metric(&raw, &values).unwrap().provider.web.unwrap();
            prop_assert_eq!(&web.url, &format!("http://x/{value}"));
            prop_assert_eq!(&web.headers[0].value, &value);
            prop_assert_eq!(web.headers.len(), 1);
        }
    }
}
