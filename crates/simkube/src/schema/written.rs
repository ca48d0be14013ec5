//! What may a written schema say at all, and what must its lists, maps and rules say? The words are
//! the API server's.

use serde_json::{Map, Value, json};

use super::Cause;
use super::structural::{Path, flag, is_simple, properties, text};

type Fields = Map<String, Value>;

pub(super) const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
/// JSON schema knows them, CustomResourceDefinitions do not.
const UNSUPPORTED: [&str; 6] =
    ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"];
/// The reasons a validation rule may give.
const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// Everything that is wrong with a whole written schema, apart from its being structural.
pub fn problems(schema: &Value, path: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    if let Value::Object(fields) = schema {
        if flag(fields, "nullable") {
            let field = format!("{path}.nullable");
            causes.push(Cause::forbidden(field, "nullable cannot be true at the root"));
        }
        check(fields, &Path::Root(path), true, "", &mut causes);
    }
    causes
}

/// Can it be read as a structural schema at all?
pub fn is_readable(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => fields.iter().all(|(name, value)| match name.as_str() {
            "properties" => {
                value.as_object().into_iter().flatten().all(|(_, one)| is_readable(one))
            }
            "default" | "enum" | "example" => true,
            "items" if value.is_array() => false,
            name => !UNSUPPORTED.contains(&name) && is_readable(value),
        }),
        Value::Array(all) => all.iter().all(is_readable),
        _ => true,
    }
}

/// `no_default` says why no default may stand here or below; empty if one may.
fn check(fields: &Fields, path: &Path, is_root: bool, no_default: &str, causes: &mut Vec<Cause>) {
    if is_simple(fields) {
        return;
    }
    check_words(fields, path, no_default, causes);
    let has_properties = properties(fields).next().is_some();
    let mut below = |fields: &Fields, path: Path, no_default: &str| {
        check(fields, &path, false, no_default, causes);
    };
    for (name, property) in properties(fields) {
        let is_given = is_root && matches!(name.as_str(), "metadata" | "kind" | "apiVersion");
        let given = if is_given { format!("in top-level {name}") } else { no_default.to_owned() };
        below(property, Path::Property(path, name), &given);
    }
    for name in ["not", "items", "additionalProperties"] {
        if let Some(Value::Object(inner)) = fields.get(name) {
            below(inner, Path::FieldSchema(path, name), no_default);
        }
    }
    for name in ["allOf", "oneOf", "anyOf"] {
        let list = fields.get(name).and_then(Value::as_array).into_iter().flatten();
        for (index, one) in list.enumerate() {
            if let Value::Object(one) = one {
                below(one, Path::Index(path, name, index), no_default);
            }
        }
    }
    let additional = fields.get("additionalProperties");
    if has_properties && additional.is_some_and(|one| !one.is_null() && *one != true) {
        let why = "additionalProperties and properties are mutual exclusive";
        causes.push(Cause::forbidden(format!("{path}.additionalProperties"), why));
    }
    check_kinds(fields, path, causes);
    check_list_keys(fields, path, causes);
    check_rules(fields, path, causes);
}

fn check_words(fields: &Fields, path: &Path, no_default: &str, causes: &mut Vec<Cause>) {
    let at = |field: &str| format!("{path}.{field}");
    let kind = text(fields, "type");
    if !kind.is_empty() && !TYPES.contains(&kind) {
        causes.push(Cause::unsupported(at("type"), &json!(kind), &TYPES));
    }
    let has_default = fields.get("default").is_some_and(|value| !value.is_null());
    if has_default && !no_default.is_empty() {
        causes.push(Cause::forbidden(at("default"), &format!("must not be set {no_default}")));
    }
    for name in UNSUPPORTED.into_iter().filter(|name| fields.contains_key(*name)) {
        causes.push(Cause::forbidden(at(name), &format!("{name} is not supported")));
    }
    if kind == "null" {
        let why = "type cannot be set to null, use nullable as an alternative";
        causes.push(Cause::forbidden(at("type"), why));
    }
    if fields.get("items").is_some_and(Value::is_array) {
        let why = "items must be a schema object and not an array";
        causes.push(Cause::forbidden(at("items"), why));
    }
    if flag(fields, "uniqueItems") {
        let why =
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        causes.push(Cause::forbidden(at("uniqueItems"), why));
    }
    let open = "x-kubernetes-preserve-unknown-fields";
    if fields.get(open) == Some(&Value::Bool(false)) {
        causes.push(Cause::invalid(at(open), &json!(false), "must be true or undefined"));
    }
}

/// How lists and maps are merged must fit what they are.
fn check_kinds(fields: &Fields, path: &Path, causes: &mut Vec<Cause>) {
    let kind = text(fields, "type");
    for (name, wanted, known) in [
        ("x-kubernetes-map-type", "object", ["atomic", "granular"].as_slice()),
        ("x-kubernetes-list-type", "array", ["atomic", "set", "map"].as_slice()),
    ] {
        let Some(said) = fields.get(name).and_then(Value::as_str) else { continue };
        if kind != wanted {
            let why = format!("must be {wanted} if {name} is specified");
            let field = format!("{path}.type");
            causes.push(match kind {
                "" => Cause::required(field, &why),
                other => Cause::invalid(field, &json!(other), &why),
            });
        }
        if !known.contains(&said) {
            causes.push(Cause::unsupported(format!("{path}.{name}"), &json!(said), known));
        }
    }
    let items = fields.get("items").and_then(Value::as_object);
    let Some(items) = items.filter(|_| text(fields, "x-kubernetes-list-type") == "set") else {
        return;
    };
    let part = match text(items, "type") {
        "array" if items.contains_key("x-kubernetes-list-type") => "x-kubernetes-list-type",
        "object" => "x-kubernetes-map-type",
        _ => return,
    };
    if text(items, part) != "atomic" {
        let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let said = items.get(part).unwrap_or(&Value::Null);
        causes.push(Cause::invalid(format!("{path}.items.{part}"), said, why));
    }
}

/// The keys by which the items of a list are told apart.
fn check_list_keys(fields: &Fields, path: &Path, causes: &mut Vec<Cause>) {
    let at = |field: &str| format!("{path}.{field}");
    let (list, named) = ("x-kubernetes-list-type", "x-kubernetes-list-map-keys");
    let keys = fields.get(named).and_then(Value::as_array).map_or(&[] as &[_], Vec::as_slice);
    let kind = text(fields, list);
    if !keys.is_empty() && kind != "map" {
        let why = "must be map if x-kubernetes-list-map-keys is non-empty";
        causes.push(match kind {
            "" => Cause::required(at(list), why),
            other => Cause::invalid(at(list), &json!(other), why),
        });
    }
    let items = fields.get("items").and_then(Value::as_object);
    if items.is_some_and(|items| flag(items, "nullable")) && matches!(kind, "set" | "map") {
        let why = format!("cannot be nullable when {list} is {kind}");
        causes.push(Cause::forbidden(at("items.nullable"), &why));
    }
    if kind != "map" {
        return;
    }
    if keys.is_empty() {
        let why = "must not be empty if x-kubernetes-list-type is map";
        causes.push(Cause::required(at(named), why));
    }
    let Some(items) = items else {
        let why = "must have a schema if x-kubernetes-list-type is map";
        causes.push(Cause::required(at("items"), why));
        return;
    };
    if text(items, "type") != "object" {
        let why = "must be object if parent array's x-kubernetes-list-type is map";
        causes.push(Cause::invalid(at("items.type"), &json!(text(items, "type")), why));
        return;
    }
    for (index, key) in keys.iter().enumerate() {
        let found = properties(items).find(|(name, _)| *key == **name);
        match found {
            Some((name, property)) => {
                check_key(items, name, property, path, causes);
            }
            None => {
                let why = "entries must all be names of item properties";
                causes.push(Cause::invalid(at(named), &json!(keys), why));
            }
        }
        if keys[..index].contains(key) {
            let why = "must not contain duplicate entries";
            causes.push(Cause::invalid(at(named), &json!(keys), why));
        }
    }
}

fn check_key(items: &Fields, name: &str, key: &Fields, path: &Path, causes: &mut Vec<Cause>) {
    let at = |field: &str| format!("{path}.items.properties[{name}].{field}");
    if matches!(text(key, "type"), "array" | "object") {
        let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
        causes.push(Cause::invalid(at("type"), &json!("object"), why));
    }
    let required = items.get("required").and_then(Value::as_array);
    let is_required = required.is_some_and(|names| names.iter().any(|one| one == name));
    if !is_required && key.get("default").is_none_or(Value::is_null) {
        let why = "this property is in x-kubernetes-list-map-keys, so it must have a default or \
                   be a required property";
        causes.push(Cause::required(at("default"), why));
    }
    if flag(key, "nullable") {
        let why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
        causes.push(Cause::forbidden(at("nullable"), why));
    }
}

fn check_rules(fields: &Fields, path: &Path, causes: &mut Vec<Cause>) {
    let rules = fields.get("x-kubernetes-validations").and_then(Value::as_array);
    for (index, rule) in rules.into_iter().flatten().enumerate() {
        let at = |field: &str| format!("{path}.x-kubernetes-validations[{index}].{field}");
        let said = |field: &str| rule[field].as_str().unwrap_or_default();
        let has_lines = |text: &str| text.trim().contains(['\n', '\r']);
        let message = said("message");
        if said("rule").trim().is_empty() {
            causes.push(Cause::required(at("rule"), "rule is not specified"));
        } else if !message.is_empty() && message.trim().is_empty() {
            let why = "must be non-empty if specified";
            causes.push(Cause::invalid(at("message"), &json!(message), why));
        } else if has_lines(message) {
            let why = "must not contain line breaks";
            causes.push(Cause::invalid(at("message"), &json!(message), why));
        } else if has_lines(said("rule")) && message.is_empty() {
            let why = "message must be specified if rule contains line breaks";
            causes.push(Cause::required(at("message"), why));
        }
        if let Some(reason) = rule["reason"].as_str().filter(|reason| !REASONS.contains(reason)) {
            causes.push(Cause::unsupported(at("reason"), &json!(reason), &REASONS));
        }
    }
}
