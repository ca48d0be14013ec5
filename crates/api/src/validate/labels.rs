//! What a label, a name and a selector may look like, and whether a selector matches.

use std::collections::BTreeMap;
use std::fmt::Arguments;

use crate::decode::FieldError;
use crate::rollout::{LabelRequirement, LabelSelector};
use crate::validate::field;

const NAME_PATTERN: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const DNS_LABEL_PATTERN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";

/// What is wrong with the selector itself.
pub(super) fn selector_errors(selector: &LabelSelector, path: Arguments<'_>) -> Vec<FieldError> {
    let labels = selector.match_labels.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let mut errors = labels_errors(labels, format_args!("{path}.matchLabels"));
    for (index, requirement) in selector.match_expressions.iter().enumerate() {
        let path = format_args!("{path}.matchExpressions[{index}]");
        errors.extend(requirement_errors(requirement, path));
    }
    errors
}

/// Whether the selector can be used at all.
pub(super) fn is_usable(selector: &LabelSelector) -> bool {
    selector_errors(selector, format_args!("")).is_empty()
}

/// Whether the labels are those of the selector.
pub(super) fn matches(selector: &LabelSelector, labels: &BTreeMap<&str, &str>) -> bool {
    selector
        .match_labels
        .iter()
        .all(|(key, value)| labels.get(key.as_str()) == Some(&value.as_str()))
        && selector.match_expressions.iter().all(|requirement| {
            let value = labels.get(requirement.key.as_str());
            let is_listed =
                value.is_some_and(|value| requirement.values.iter().any(|one| one == value));
            match requirement.operator.as_str() {
                "In" => is_listed,
                "NotIn" => !is_listed,
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                _ => false,
            }
        })
}

/// What is wrong with the keys and values of labels.
pub(super) fn labels_errors<'a>(
    labels: impl Iterator<Item = (&'a str, &'a str)>,
    path: Arguments<'_>,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (key, value) in labels {
        errors.extend(key_errors(key).iter().map(|detail| field::invalid(path, &key, detail)));
        errors
            .extend(value_errors(value).iter().map(|detail| field::invalid(path, &value, detail)));
    }
    errors
}

/// What is wrong with the key of a label: an optional domain, a slash and a name.
pub(super) fn key_errors(key: &str) -> Vec<String> {
    let name_rule = "must consist of alphanumeric characters, '-', '_' or '.', and must start \
        and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', ";
    let rule = || format!("{name_rule}regex used for validation is '{NAME_PATTERN}')");
    let mut errors = Vec::new();
    let mut parts = key.split('/');
    let name = match (parts.next().unwrap_or_default(), parts.next(), parts.next()) {
        (name, None, _) => name,
        (domain, Some(name), None) => {
            if domain.is_empty() {
                errors.push("prefix part must be non-empty".to_owned());
            }
            let wrong = dns_subdomain_errors(domain).into_iter().filter(|_| !domain.is_empty());
            errors.extend(wrong.map(|wrong| format!("prefix part {wrong}")));
            name
        }
        _ => {
            let example = "with an optional DNS subdomain prefix and '/' (e.g. \
                'example.com/MyName')";
            return vec![format!("a valid label key {} {example}", rule())];
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        errors.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_name(name) {
        errors.push(format!("name part {}", rule()));
    }
    errors
}

/// What is wrong with a name that must be one part of a host name.
pub fn dns_label_errors(name: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if name.len() > 63 {
        errors.push("must be no more than 63 characters".to_owned());
    }
    if !is_dns_label(name) {
        errors.push(if name.split('.').all(is_dns_label) {
            "must not contain dots".to_owned()
        } else {
            format!(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters \
                 or '-', and must start and end with an alphanumeric character (e.g. \
                 'my-name',  or '123-abc', regex used for validation is '{DNS_LABEL_PATTERN}')"
            )
        });
    }
    errors
}

fn dns_subdomain_errors(name: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if name.len() > 253 {
        errors.push("must be no more than 253 bytes".to_owned());
    }
    if !name.split('.').all(is_dns_label) {
        errors.push(format!(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
             '-' or '.', and must start and end with an alphanumeric character (e.g. \
             'example.com', regex used for validation is \
             '{DNS_LABEL_PATTERN}(\\.{DNS_LABEL_PATTERN})*')"
        ));
    }
    errors
}

/// What is wrong with the value of a label, in the words of an API server.
pub fn value_errors(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > 63 {
        errors.push("must be no more than 63 bytes".to_owned());
    }
    if !value.is_empty() && !is_name(value) {
        errors.push(format!(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', \
             '_' or '.', and must start and end with an alphanumeric character (e.g. \
             'MyValue',  or 'my_value',  or '12345', regex used for validation is \
             '({NAME_PATTERN})?')"
        ));
    }
    errors
}

fn requirement_errors(requirement: &LabelRequirement, path: Arguments<'_>) -> Vec<FieldError> {
    let values_path = format_args!("{path}.values");
    let mut errors = Vec::new();
    match requirement.operator.as_str() {
        "In" | "NotIn" if requirement.values.is_empty() => {
            let detail = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(field::required(values_path, detail));
        }
        "Exists" | "DoesNotExist" if !requirement.values.is_empty() => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(field::forbidden(values_path, detail));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => {
            let detail = "not a valid selector operator";
            errors.push(field::invalid(format_args!("{path}.operator"), &other, detail));
        }
    }
    let key_path = format_args!("{path}.key");
    let wrong = key_errors(&requirement.key);
    errors.extend(wrong.iter().map(|wrong| field::invalid(key_path, &requirement.key, wrong)));
    for (index, value) in requirement.values.iter().enumerate() {
        let path = format_args!("{values_path}[{index}]");
        errors.extend(value_errors(value).iter().map(|wrong| field::invalid(path, value, wrong)));
    }
    errors
}

fn is_name(text: &str) -> bool {
    let outer = |byte: &u8| byte.is_ascii_alphanumeric();
    is_made_of(text, outer, |byte| matches!(byte, b'-' | b'_' | b'.'))
}

fn is_dns_label(text: &str) -> bool {
    let outer = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    is_made_of(text, outer, |byte| *byte == b'-')
}

/// Whether a text begins and ends with an outer letter and has no others than outer and inner ones.
fn is_made_of(text: &str, outer: impl Fn(&u8) -> bool, inner: impl Fn(&u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(&outer)
        && bytes.last().is_some_and(&outer)
        && bytes.iter().all(|byte| outer(byte) || inner(byte))
}
