//! Custom kinds: everything comes from the schema of their definition. Each part of an object is
//! looked at by itself, and only if it changed.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::error::Cause;
use crate::object::Object;
use crate::schema::Schema;

/// Prunes and defaults the parts that differ from `before`. A new object of a kind with a status
/// subresource has no status to look at.
pub(super) fn complete(
    object: &mut Object,
    before: Option<&Object>,
    schema: &Schema,
    skip_status: bool,
) {
    if before.is_none_or(|before| !Arc::ptr_eq(&before.spec, &object.spec)) {
        complete_part(schema, "spec", &mut object.spec);
    }
    if !skip_status && before.is_none_or(|before| !Arc::ptr_eq(&before.status, &object.status)) {
        complete_part(schema, "status", &mut object.status);
    }
    let has_new_rest = before.is_none_or(|before| !Arc::ptr_eq(&before.rest, &object.rest));
    if has_new_rest && !object.rest.is_empty() {
        complete_rest(schema, Arc::make_mut(&mut object.rest));
    }
}

/// What the schema says against the parts that differ from `before`.
pub(super) fn check(object: &Object, before: Option<&Object>, schema: &Schema) -> Vec<Cause> {
    let mut causes = Vec::new();
    let parts = [
        ("spec", &object.spec, before.map(|before| &before.spec)),
        ("status", &object.status, before.map(|before| &before.status)),
    ];
    for (field, new, old) in parts {
        if old.is_none_or(|old| !Arc::ptr_eq(old, new)) {
            check_part(schema, field, new, old.map(|old| &**old), &mut causes);
        }
    }
    if before.is_none_or(|before| !Arc::ptr_eq(&before.rest, &object.rest)) {
        for (field, new) in &*object.rest {
            let old = before.and_then(|before| before.rest.get(field));
            check_part(schema, field, new, old, &mut causes);
        }
    }
    for field in schema.required() {
        let is_there = match field {
            "spec" => !object.spec.is_null(),
            "status" => !object.status.is_null(),
            "apiVersion" | "kind" | "metadata" => true,
            other => object.rest.contains_key(other),
        };
        if !is_there {
            causes.push(Cause::required(field, ""));
        }
    }
    causes
}

/// The fields no schema names, as the writer wrote them.
pub(super) fn unknown_fields(object: &Object, schema: &Schema) -> Vec<String> {
    let mut unknown = Vec::new();
    let rest = object.rest.iter().map(|(field, value)| (field.as_str(), value));
    for (field, value) in rest.chain([("spec", &*object.spec), ("status", &*object.status)]) {
        match schema.at(field) {
            _ if value.is_null() => {}
            Some(part) => unknown.extend(part.unknown_fields(value)),
            None if schema.preserves_unknown_fields() => {}
            None => unknown.push(field.to_owned()),
        }
    }
    unknown
}

fn complete_part(schema: &Schema, field: &str, value: &mut Arc<Value>) {
    let Some(part) = schema.at(field) else {
        if !value.is_null() && !schema.preserves_unknown_fields() {
            *value = Arc::default();
        }
        return;
    };
    if value.is_null() {
        let Some(default) = part.default_value() else { return };
        *value = Arc::new(default.clone());
    }
    let value = Arc::make_mut(value);
    part.prune(value);
    part.default(value);
}

fn complete_rest(schema: &Schema, rest: &mut Map<String, Value>) {
    let keeps = schema.preserves_unknown_fields();
    rest.retain(|field, value| match schema.at(field) {
        Some(part) => {
            part.prune(value);
            part.default(value);
            true
        }
        None => keeps,
    });
}

fn check_part(
    schema: &Schema,
    field: &str,
    new: &Value,
    old: Option<&Value>,
    causes: &mut Vec<Cause>,
) {
    if let Some(part) = schema.at(field).filter(|_| !new.is_null()) {
        causes.extend(part.validate(new, old.filter(|old| !old.is_null())));
    }
}
