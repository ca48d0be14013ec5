//! Names, labels, annotations, owners and finalizers: what may stand there?

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::json;

use crate::error::Cause;
use crate::kinds::{KindId, KindInfo};
use crate::object::{Object, OwnerReference, Texts};

const LONGEST_SUBDOMAIN: usize = 253;
const LONGEST_LABEL: usize = 63;
/// All annotations of an object together, keys and values.
const MOST_ANNOTATION_BYTES: usize = 256 * 1024;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
    characters, '-' or '.', and must start and end with an alphanumeric character (e.g. \
    'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const DNS_LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric \
    characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  \
    or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const DNS_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or \
    '-', start with an alphabetic character, and end with an alphanumeric character (e.g. \
    'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and \
    must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or \
    '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric \
    characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
    'MyValue',  or 'my_value',  or '12345', regex used for validation is \
    '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// What is wrong with the metadata of an object. What it shares with one that was found right
/// is not asked again.
pub(super) fn check(object: &Object, right: Option<&Object>, kind: &KindInfo) -> Vec<Cause> {
    let meta = &object.meta;
    let mut causes = Vec::new();
    if right.is_none_or(|right| !Arc::ptr_eq(&right.meta.name, &meta.name)) {
        check_name(object, kind, &mut causes);
    }
    if right.is_none() && !meta.generate_name.is_empty() {
        check_base(object, kind, &mut causes);
    }
    if right.is_none_or(|right| !Arc::ptr_eq(&right.meta.labels, &meta.labels)) {
        check_labels(&meta.labels, &mut causes);
    }
    if right.is_none_or(|right| !Arc::ptr_eq(&right.meta.annotations, &meta.annotations)) {
        check_annotations(&meta.annotations, &mut causes);
    }
    check_owners(&meta.owners, &mut causes);
    for name in &meta.finalizers {
        for why in qualified_name(name) {
            causes.push(Cause::invalid("metadata.finalizers", &json!(name), &why));
        }
    }
    let is_lax = [
        KindId::CUSTOM_RESOURCE_DEFINITION,
        KindId::EVENT,
        KindId::LEASE,
        KindId::POD_DISRUPTION_BUDGET,
    ]
    .contains(&object.kind);
    if !kind.custom && !is_lax {
        check_finalizers(&meta.finalizers, &mut causes);
    }
    causes
}

/// What holds an object of a built-in kind says whose it is, unless it is one of Kubernetes' own.
fn check_finalizers(finalizers: &[String], causes: &mut Vec<Cause>) {
    for (index, name) in finalizers.iter().enumerate() {
        let is_known = ["kubernetes", "orphan", "foregroundDeletion"].contains(&name.as_str());
        if !is_known && !name.contains('/') {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            let field = format!("metadata.finalizers[{index}]");
            causes.push(Cause::invalid(field, &json!(name), why));
        }
    }
}

fn check_name(object: &Object, kind: &KindInfo, causes: &mut Vec<Cause>) {
    let name = &object.meta.name;
    for why in problems_of(name, object.kind, kind) {
        causes.push(Cause::invalid("metadata.name", &json!(name), &why));
    }
}

/// What names are generated from may end in a dash; the names themselves will not.
fn check_base(object: &Object, kind: &KindInfo, causes: &mut Vec<Cause>) {
    let base = &object.meta.generate_name;
    let mut name = base.to_string();
    if let Some(rest) = base.strip_suffix('-').filter(|rest| !rest.is_empty()) {
        name = rest.to_owned();
        name.pop();
        name.push('a');
    }
    for why in problems_of(&name, object.kind, kind) {
        causes.push(Cause::invalid("metadata.generateName", &json!(base), &why));
    }
}

fn problems_of(name: &str, id: KindId, kind: &KindInfo) -> Vec<String> {
    match id {
        KindId::NAMESPACE => dns_label(name),
        KindId::SERVICE => dns_1035(name),
        _ if &*kind.group == "rbac.authorization.k8s.io" => path_segment(name),
        _ => subdomain(name),
    }
}

fn check_labels(labels: &Texts, causes: &mut Vec<Cause>) {
    for (key, value) in labels {
        for why in qualified_name(key) {
            causes.push(Cause::invalid("metadata.labels", &json!(key), &why));
        }
        for why in label_value(value) {
            causes.push(Cause::invalid("metadata.labels", &json!(value), &why));
        }
    }
}

fn check_annotations(annotations: &Texts, causes: &mut Vec<Cause>) {
    let mut bytes = 0;
    for (key, value) in annotations {
        bytes += key.len() + value.len();
        // Annotation keys may be written in capitals, label keys may not be longer.
        let lower = if key.bytes().any(|byte| byte.is_ascii_uppercase() || !byte.is_ascii()) {
            Cow::Owned(key.to_lowercase())
        } else {
            Cow::Borrowed(key.as_str())
        };
        for why in qualified_name(&lower) {
            causes.push(Cause::invalid("metadata.annotations", &json!(key), &why));
        }
    }
    if bytes > MOST_ANNOTATION_BYTES {
        let message = format!("Too long: may not be more than {MOST_ANNOTATION_BYTES} bytes");
        causes.push(Cause::new("FieldValueTooLong", "metadata.annotations", message));
    }
}

fn check_owners(owners: &[OwnerReference], causes: &mut Vec<Cause>) {
    for owner in owners {
        for (field, text, why) in [
            ("apiVersion", &owner.api_version, "version must not be empty"),
            ("kind", &owner.kind, "must not be empty"),
            ("name", &owner.name, "must not be empty"),
            ("uid", &owner.uid, "must not be empty"),
        ] {
            if text.is_empty() {
                let field = format!("metadata.ownerReferences.{field}");
                causes.push(Cause::invalid(field, &json!(text), why));
            }
        }
    }
    let mut controllers = owners.iter().filter(|owner| owner.controller == Some(true));
    if let (Some(first), Some(second)) = (controllers.next(), controllers.next()) {
        let all: Vec<_> = owners.iter().map(OwnerReference::to_json).collect();
        let why = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for \
             {}/{} and {}/{}",
            first.kind, first.name, second.kind, second.name
        );
        causes.push(Cause::invalid("metadata.ownerReferences", &json!(all), &why));
    }
}

fn too_long(most: usize) -> String {
    format!("must be no more than {most} bytes")
}

/// What is wrong with a DNS name.
pub(crate) fn subdomain(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.len() > LONGEST_SUBDOMAIN {
        problems.push(too_long(LONGEST_SUBDOMAIN));
    }
    if !is_subdomain(name) {
        problems.push(SUBDOMAIN.to_owned());
    }
    problems
}

/// What is wrong with a DNS label.
pub(crate) fn dns_label(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.len() > LONGEST_LABEL {
        problems.push(too_long(LONGEST_LABEL));
    }
    if !is_dns_label(name) {
        problems.push(DNS_LABEL.to_owned());
    }
    problems
}

/// What is wrong with a DNS label that begins with a letter.
pub(crate) fn dns_1035(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.len() > LONGEST_LABEL {
        problems.push(too_long(LONGEST_LABEL));
    }
    if !is_dns_label(name) || !name.starts_with(|first: char| first.is_ascii_lowercase()) {
        problems.push(DNS_1035.to_owned());
    }
    problems
}

fn path_segment(name: &str) -> Vec<String> {
    match name {
        "." | ".." => vec![format!("may not be '{name}'")],
        _ if name.contains('/') => vec!["may not contain '/'".to_owned()],
        _ if name.contains('%') => vec!["may not contain '%'".to_owned()],
        _ => Vec::new(),
    }
}

/// DNS labels with dots between them, seen in one walk: where a label begins or ends, that is
/// beside a dot and at either end, stands no dash and no other dot.
fn is_subdomain(name: &str) -> bool {
    let mut last = b'.';
    name.bytes().chain([b'.']).all(|byte| {
        let before = std::mem::replace(&mut last, byte);
        match byte {
            b'a'..=b'z' | b'0'..=b'9' => true,
            b'-' => before != b'.',
            b'.' => before != b'.' && before != b'-',
            _ => false,
        }
    })
}

fn is_dns_label(part: &str) -> bool {
    let inner = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = part.as_bytes();
    bytes.iter().all(|byte| inner(byte) || *byte == b'-')
        && bytes.first().is_some_and(inner)
        && bytes.last().is_some_and(inner)
}

/// `name`, or `prefix/name` with a DNS subdomain as prefix.
pub(crate) fn qualified_name(key: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let name = match key.split_once('/') {
        None => key,
        Some((_, name)) if name.contains('/') => {
            return vec![format!(
                "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and \
                 must start and end with an alphanumeric character (e.g. 'MyName',  or \
                 'my.name',  or '123-abc', regex used for validation is \
                 '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain \
                 prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
        Some(("", name)) => {
            problems.push("prefix part must be non-empty".to_owned());
            name
        }
        Some((prefix, name)) => {
            problems.extend(subdomain(prefix).into_iter().map(|why| format!("prefix part {why}")));
            name
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > LONGEST_LABEL {
        problems.push(format!("name part {}", too_long(LONGEST_LABEL)));
    }
    if !is_label_text(name) {
        problems.push(NAME_PART.to_owned());
    }
    problems
}

/// What is wrong with the value of a label.
pub(crate) fn label_value(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if value.len() > LONGEST_LABEL {
        problems.push(too_long(LONGEST_LABEL));
    }
    if !value.is_empty() && !is_label_text(value) {
        problems.push(LABEL_VALUE.to_owned());
    }
    problems
}

fn is_label_text(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subdomain_is_dns_labels_with_dots_between_them() {
        let letters = ['a', '7', '-', '.', 'A', 'é'];
        let mut names = vec![String::new()];
        for _ in 0..5 {
            let longer = |name: &String| letters.map(|letter| format!("{name}{letter}"));
            names.extend(names.iter().flat_map(longer).collect::<Vec<_>>());
        }
        for name in names {
            assert_eq!(is_subdomain(&name), name.split('.').all(is_dns_label), "{name:?}");
        }
    }
}
