//! Custom kinds: everything comes from the schema of their definition. Each part of an object is
//! looked at by itself, and only if it changed.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::error::Cause;
use crate::kinds::{KindInfo, ScalePaths};
use crate::object::Object;
use crate::schema::Schema;

/// Prunes and defaults the parts that differ from `before`, and tells what it found. A new object
/// of a kind with a status subresource has no status to look at.
pub(super) fn complete(
    object: &mut Object,
    before: Option<&Object>,
    schema: &Schema,
    skip_status: bool,
) -> Sound {
    let mut sound = Sound::default();
    if before.is_none_or(|before| !Arc::ptr_eq(&before.spec, &object.spec)) {
        sound.spec = complete_part(schema, "spec", &mut object.spec);
    }
    if !skip_status && before.is_none_or(|before| !Arc::ptr_eq(&before.status, &object.status)) {
        sound.status = complete_part(schema, "status", &mut object.status);
    }
    let has_new_rest = before.is_none_or(|before| !Arc::ptr_eq(&before.rest, &object.rest));
    if has_new_rest && !object.rest.is_empty() {
        complete_rest(schema, Arc::make_mut(&mut object.rest));
    }
    sound
}

/// Which parts of an object were found to be just as the schema wants them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sound {
    spec: bool,
    status: bool,
}

/// What is wrong with the parts that differ from `before`. A status with a path of its own is
/// spoken of from there on.
pub(super) fn check(
    object: &Object,
    before: Option<&Object>,
    schema: &Schema,
    kind: &KindInfo,
    sound: Sound,
) -> Vec<Cause> {
    let is_new =
        |new: &Arc<Value>, old: Option<&Arc<Value>>| old.is_none_or(|old| !Arc::ptr_eq(old, new));
    let old_spec = before.map(|before| &before.spec);
    let old_status = before.map(|before| &before.status);
    let has_new_rest = before.is_none_or(|before| !Arc::ptr_eq(&before.rest, &object.rest));
    let sides = [
        ("spec", &object.spec, old_spec, sound.spec),
        ("status", &object.status, old_status, sound.status),
    ];
    let sides = sides.into_iter().filter(|(_, new, old, _)| is_new(new, *old));
    let sides = sides.map(|(field, new, old, sound)| (field, &**new, old.map(|old| &**old), sound));
    let rest = object.rest.iter().filter(|_| has_new_rest).map(|(field, new)| {
        (field.as_str(), new, before.and_then(|before| before.rest.get(field)), false)
    });
    let parts = sides.chain(rest).filter(|(_, new, ..)| !new.is_null());
    let parts = parts.filter_map(|(field, new, old, known_sound)| {
        let part = schema.at(field)?.known_sound(known_sound);
        let is_side = before.is_some() && kind.has_status && field == "status";
        let part = if is_side { part.by_itself() } else { part };
        part.can_be_wrong().then(|| (part, new, old.filter(|old| !old.is_null())))
    });
    let is_missing = |field: &&str| match *field {
        "spec" => object.spec.is_null(),
        "status" => object.status.is_null(),
        "apiVersion" | "kind" | "metadata" => false,
        other => !object.rest.contains_key(other),
    };
    let missing = schema.required().filter(is_missing).map(|field| Cause::required(field, ""));
    let mut more: Vec<Cause> = missing.collect();
    if is_new(&object.spec, old_spec) {
        more.extend(kind.scale.as_ref().and_then(|paths| check_scale(object, paths)));
    }
    schema.validate_parts(parts, more)
}

/// What the scale subresource could not show.
fn check_scale(object: &Object, paths: &ScalePaths) -> Option<Cause> {
    let field = format!(".{}", paths.wanted);
    let mut parts = paths.wanted.split('.').skip(1);
    let value = parts.try_fold(&*object.spec, |value, part| value.get(part))?;
    let kind = match value {
        Value::Number(number) => match number.as_i64() {
            Some(0..) => return None,
            Some(_) => {
                return Some(Cause::invalid(field, value, "should be a non-negative integer"));
            }
            None => "float64",
        },
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
        Value::Null => return None,
    };
    let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let why = format!("{field} accessor error: {shown} is of the type {kind}, expected int64");
    Some(Cause::invalid(field, &json!(0), &why))
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

/// True if there was nothing to do, and nothing is wrong.
fn complete_part(schema: &Schema, field: &str, value: &mut Arc<Value>) -> bool {
    let Some(part) = schema.at(field) else {
        if !value.is_null() && !schema.preserves_unknown_fields() {
            *value = Arc::default();
        }
        return false;
    };
    if value.is_null() {
        let Some(default) = part.default_value() else { return false };
        *value = Arc::new(default.clone());
    }
    if part.is_sound(value) {
        return true;
    }
    let value = Arc::make_mut(value);
    part.prune(value);
    part.default(value);
    false
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
