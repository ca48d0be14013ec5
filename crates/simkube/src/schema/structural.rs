//! Is a written schema structural: is every field typed outside of alternatives, so that it can be
//! pruned and defaulted? The words are the API server's.

use std::fmt;

use serde_json::{Map, Value, json};

use super::Cause;

type Fields = Map<String, Value>;

/// Where a schema stands; a missing type is told by it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// A place in a schema that costs nothing until it is printed.
#[derive(Clone, Copy)]
pub(super) enum Path<'a> {
    Root(&'a str),
    FieldSchema(&'a Path<'a>, &'a str),
    Property(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, &'a str, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root(path) => f.write_str(path),
            Self::FieldSchema(parent, name) => write!(f, "{parent}.{name}"),
            Self::Property(parent, name) => write!(f, "{parent}.properties[{name}]"),
            Self::Index(parent, name, at) => write!(f, "{parent}.{name}[{at}]"),
        }
    }
}

/// What alternatives may not say, because it belongs outside of them.
const OUTSIDE_TEXTS: [&str; 3] = ["type", "title", "description"];
const OUTSIDE_FLAGS: [&str; 4] = [
    "nullable",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
];
const OUTSIDE_VALUES: [&str; 4] =
    ["additionalProperties", "default", "x-kubernetes-list-type", "x-kubernetes-map-type"];
const OUTSIDE_LISTS: [&str; 2] = ["x-kubernetes-list-map-keys", "x-kubernetes-validations"];

/// Everything about a whole schema that is not structural.
pub fn problems(schema: &Value, path: &str) -> Vec<Cause> {
    let Value::Object(fields) = schema else { return Vec::new() };
    let mut causes = Vec::new();
    let path = Path::Root(path);
    check(fields, Level::Root, &path, &mut causes);
    for (inner, at) in alternatives(fields, &path) {
        complete(inner, schema, &path, &at, &mut causes);
    }
    causes.sort_by_key(|cause| format!("{}: {}", cause.field, cause.message));
    causes
}

/// Does a schema say no more than a simple type? Nearly all do, and nothing is wrong with them.
pub(super) fn is_simple(fields: &Fields) -> bool {
    fields.iter().all(|(name, value)| match name.as_str() {
        "type" => matches!(value.as_str(), Some("string" | "integer" | "boolean" | "number")),
        "description" | "format" => true,
        _ => false,
    }) && fields.contains_key("type")
}

fn check(fields: &Fields, level: Level, path: &Path, causes: &mut Vec<Cause>) {
    if level != Level::Root && is_simple(fields) {
        return;
    }
    let at = |field: &str| format!("{path}.{field}");
    if text(fields, "type") == "array" && !fields.contains_key("items") {
        causes.push(Cause::required(at("items"), "must be specified"));
    }
    if let Some(Value::Object(items)) = fields.get("items") {
        check(items, Level::Item, &Path::FieldSchema(path, "items"), causes);
    }
    for (name, property) in properties(fields) {
        check(property, Level::Field, &Path::Property(path, name), causes);
    }
    if let Some(additional) = fields.get("additionalProperties") {
        let part = "additionalProperties";
        if level == Level::Root {
            causes.push(Cause::forbidden(at(part), "must not be used at the root"));
        }
        if let Value::Object(additional) = additional {
            check(additional, Level::Field, &Path::FieldSchema(path, part), causes);
        }
    }
    check_extensions(fields, path, causes);
    check_pattern(fields, path, causes);
    let takes_both = is_integer_or_string(fields);
    for (inner, at) in alternatives(fields, path) {
        if !(takes_both && matches!(at, Path::Index(_, "anyOf", _))) {
            let is_first = matches!(at, Path::Index(_, "allOf", 0)) && is_integer_or_string(inner);
            check_inner(inner, &at, is_first, causes);
        }
    }
    check_type(fields, level, path, causes);
    if level == Level::Root || flag(fields, "x-kubernetes-embedded-resource") {
        check_identity(fields, level, path, causes);
    }
}

fn check_type(fields: &Fields, level: Level, path: &Path, causes: &mut Vec<Cause>) {
    let kind = text(fields, "type");
    let field = || format!("{path}.type");
    if flag(fields, "x-kubernetes-embedded-resource") {
        let why = "must be object if x-kubernetes-embedded-resource is true";
        match kind {
            "object" => {}
            "" => causes.push(Cause::required(field(), why)),
            other => causes.push(Cause::invalid(field(), &json!(other), why)),
        }
        if fields.contains_key("additionalProperties") {
            let why = "must not be used if x-kubernetes-embedded-resource is set";
            causes.push(Cause::forbidden(format!("{path}.additionalProperties"), why));
        }
        let is_open = flag(fields, "x-kubernetes-preserve-unknown-fields");
        if !is_open && properties(fields).next().is_none() {
            let why = "must not be empty if x-kubernetes-embedded-resource is true without \
                       x-kubernetes-preserve-unknown-fields";
            causes.push(Cause::required(format!("{path}.properties"), why));
        }
    } else if kind.is_empty()
        && !flag(fields, "x-kubernetes-int-or-string")
        && !flag(fields, "x-kubernetes-preserve-unknown-fields")
    {
        let why = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        causes.push(Cause::required(field(), why));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        causes.push(Cause::invalid(field(), &json!(kind), "must be object at the root"));
    }
}

/// `apiVersion`, `kind` and `metadata` are what they are in every object.
fn check_identity(fields: &Fields, level: Level, path: &Path, causes: &mut Vec<Cause>) {
    for (name, property) in properties(fields) {
        let expected = match name.as_str() {
            "kind" | "apiVersion" => "string",
            "metadata" => "object",
            _ => continue,
        };
        let at = format!("{path}.properties[{name}]");
        let kind = text(property, "type");
        if kind != expected {
            let why = format!("must be {expected}");
            causes.push(Cause::invalid(format!("{at}.type"), &json!(kind), &why));
        }
        if name == "metadata" && level == Level::Root && !restricts_names_alone(property) {
            let why = "must not specify anything other than name and generateName, but metadata \
                       is implicitly specified";
            causes.push(Cause::forbidden(at, why));
        }
    }
}

fn restricts_names_alone(metadata: &Fields) -> bool {
    let is_name = |name: &String| matches!(name.as_str(), "name" | "generateName");
    metadata.keys().all(|key| matches!(key.as_str(), "type" | "properties" | "default"))
        && properties(metadata).all(|(name, _)| is_name(name))
}

fn check_extensions(fields: &Fields, path: &Path, causes: &mut Vec<Cause>) {
    if !flag(fields, "x-kubernetes-int-or-string") {
        return;
    }
    for name in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
        if flag(fields, name) {
            let why = "must be false if x-kubernetes-int-or-string is true";
            causes.push(Cause::invalid(format!("{path}.{name}"), &json!(true), why));
        }
    }
}

fn check_pattern(fields: &Fields, path: &Path, causes: &mut Vec<Cause>) {
    let pattern = text(fields, "pattern");
    if pattern.is_empty() {
        return;
    }
    if let Err(error) = regex_lite::Regex::new(pattern) {
        let why = format!("must be a valid regular expression, but isn't: {error}");
        causes.push(Cause::invalid(format!("{path}.pattern"), &json!(pattern), &why));
    }
}

/// An alternative may narrow what is described outside of it, and nothing else.
fn check_inner(fields: &Fields, path: &Path, skips_any: bool, causes: &mut Vec<Cause>) {
    check_pattern(fields, path, causes);
    for (inner, at) in alternatives(fields, path) {
        if !(skips_any && matches!(at, Path::Index(_, "anyOf", _))) {
            check_inner(inner, &at, false, causes);
        }
    }
    if let Some(Value::Object(items)) = fields.get("items") {
        check_inner(items, &Path::FieldSchema(path, "items"), false, causes);
    }
    for (name, property) in properties(fields) {
        let at = Path::Property(path, name);
        check_inner(property, &at, false, causes);
        if name == "metadata" {
            let why = "must not be specified in a nested context";
            causes.push(Cause::forbidden(at.to_string(), why));
        }
    }
    let mut forbid = |name: &str, why: &str| {
        let why = format!("must be {why} to be structural");
        causes.push(Cause::forbidden(format!("{path}.{name}"), &why));
    };
    for name in OUTSIDE_TEXTS.into_iter().filter(|name| !text(fields, name).is_empty()) {
        forbid(name, "empty");
    }
    for name in OUTSIDE_FLAGS.into_iter().filter(|name| flag(fields, name)) {
        forbid(name, "false");
    }
    for name in OUTSIDE_VALUES {
        if fields.get(name).is_some_and(|value| !value.is_null()) {
            forbid(name, "undefined");
        }
    }
    for name in OUTSIDE_LISTS {
        if fields.get(name).and_then(Value::as_array).is_some_and(|list| !list.is_empty()) {
            forbid(name, "empty");
        }
    }
}

/// What an alternative narrows must be described outside of it.
fn complete(inner: &Fields, outer: &Value, path: &Path, at: &Path, causes: &mut Vec<Cause>) {
    for (deeper, at) in alternatives(inner, at) {
        complete(deeper, outer, path, &at, causes);
    }
    let mut compare = |inner: &Fields, outer: Option<&Value>, path: Path, at: Path| match outer {
        Some(outer) => complete(inner, outer, &path, &at, causes),
        None => {
            let why = format!("because it is defined in {at}");
            causes.push(Cause::required(path.to_string(), &why));
        }
    };
    if let Some(Value::Object(items)) = inner.get("items") {
        let [path, at] = [path, at].map(|path| Path::FieldSchema(path, "items"));
        compare(items, outer.get("items"), path, at);
    }
    for (name, field) in properties(inner) {
        let [path, at] = [path, at].map(|path| Path::Property(path, name));
        compare(field, outer.get("properties").and_then(|all| all.get(name)), path, at);
    }
}

/// The schemas under `anyOf`, `allOf`, `oneOf` and `not`, with their places.
fn alternatives<'a>(fields: &'a Fields, path: &'a Path<'a>) -> Vec<(&'a Fields, Path<'a>)> {
    let mut found = Vec::new();
    for name in ["anyOf", "allOf", "oneOf"] {
        let list = fields.get(name).and_then(Value::as_array).into_iter().flatten();
        for (at, one) in list.enumerate() {
            found.extend(one.as_object().map(|one| (one, Path::Index(path, name, at))));
        }
    }
    let not = fields.get("not").and_then(Value::as_object);
    found.extend(not.map(|not| (not, Path::FieldSchema(path, "not"))));
    found
}

/// The one way to say within alternatives that a number or a text will do.
pub(super) fn is_integer_or_string(fields: &Fields) -> bool {
    fields.get("anyOf") == Some(&json!([{"type": "integer"}, {"type": "string"}]))
}

pub(super) fn properties(fields: &Fields) -> impl Iterator<Item = (&String, &Fields)> {
    let properties = fields.get("properties").and_then(Value::as_object).into_iter().flatten();
    properties.filter_map(|(name, property)| Some((name, property.as_object()?)))
}

pub(super) fn text<'a>(fields: &'a Fields, name: &str) -> &'a str {
    fields.get(name).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn flag(fields: &Fields, name: &str) -> bool {
    fields.get(name) == Some(&Value::Bool(true))
}
