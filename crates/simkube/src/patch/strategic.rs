//! Strategic merge patch: lists merged by key, and the `$` directives that steer it.

use serde_json::{Map, Value};

use super::{Keys, PatchError, Strategy};

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const SET_ORDER: &str = "$setElementOrder/";
const DELETE_SCALARS: &str = "$deleteFromPrimitiveList/";

/// Applies a strategic merge patch to an object of a built-in kind: wholly, or not at all.
pub fn strategic(target: &mut Value, patch: &Value, keys: &Keys) -> Result<(), PatchError> {
    let Value::Object(patch) = patch else {
        return Err(PatchError::Malformed("Invalid JSON document".into()));
    };
    let mut fields = match target {
        Value::Object(fields) => fields.clone(),
        _ => Map::new(),
    };
    merge_map(&mut fields, patch, "", keys)?;
    *target = Value::Object(fields);
    Ok(())
}

fn merge_map(
    target: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    name: &str,
    keys: &Keys,
) -> Result<(), PatchError> {
    match directive(patch)? {
        Some(Directive::Replace) => {
            *target = without_directives(patch);
            return Ok(());
        }
        Some(Directive::Delete) => {
            target.clear();
            return Ok(());
        }
        Some(Directive::Merge) | None => {}
    }
    retain_keys(target, patch)?;
    for (key, change) in patch {
        if let Some(list) = key.strip_prefix(DELETE_SCALARS) {
            delete_scalars(target, list, change)?;
        } else if let Some(list) = key.strip_prefix(SET_ORDER) {
            // With a patch for the same list, the order is applied along with that patch.
            if !patch.contains_key(list) {
                set_order(target, list, &[], change, name, keys)?;
            }
        } else if !key.starts_with('$') {
            let order = patch.get(&format!("{SET_ORDER}{key}"));
            merge_field(target, key, change, order, name, keys)?;
        }
    }
    Ok(())
}

fn merge_field(
    target: &mut Map<String, Value>,
    key: &str,
    change: &Value,
    order: Option<&Value>,
    name: &str,
    keys: &Keys,
) -> Result<(), PatchError> {
    match (target.get_mut(key), change) {
        (_, Value::Null) => {
            target.remove(key);
        }
        (Some(Value::Object(fields)), Value::Object(change)) => {
            let deleted = directive(change)? == Some(Directive::Delete);
            merge_map(fields, change, key, keys)?;
            if deleted {
                target.remove(key);
            }
        }
        (Some(Value::Array(_)), Value::Array(changes)) => match order {
            Some(order) => set_order(target, key, changes, order, name, keys)?,
            None => {
                if let Some(Value::Array(items)) = target.get_mut(key) {
                    let before = items.clone();
                    let merged = merge_list(&before, changes, key, keys.strategy(name, key), keys)?;
                    let wanted: Vec<Value> =
                        changes.iter().filter(|c| !is_special(c)).cloned().collect();
                    *items = in_order(merged, &wanted, &before, keys.strategy(name, key));
                }
            }
        },
        (_, change) => {
            if let Some(value) = clean(change) {
                target.insert(key.to_owned(), value);
            }
        }
    }
    Ok(())
}

/// Merges `changes` into the list `key`, then puts it into the order the client asks for.
fn set_order(
    target: &mut Map<String, Value>,
    key: &str,
    changes: &[Value],
    order: &Value,
    name: &str,
    keys: &Keys,
) -> Result<(), PatchError> {
    let Value::Array(order) = order else {
        return Err(PatchError::Malformed("invalid patch format of setElementOrder list".into()));
    };
    let strategy = keys.strategy(name, key);
    let before = match target.get(key) {
        Some(Value::Array(items)) => items.clone(),
        _ => Vec::new(),
    };
    if strategy == Strategy::Plain {
        if !changes.is_empty() {
            target.insert(key.to_owned(), Value::Array(changes.iter().filter_map(clean).collect()));
        }
        return Ok(());
    }
    let merged = merge_list(&before, changes, key, strategy, keys)?;
    if !merged.is_empty() || target.contains_key(key) {
        let ordered = in_order(merged, order, &before, strategy);
        target.insert(key.to_owned(), Value::Array(ordered));
    }
    Ok(())
}

fn merge_list(
    before: &[Value],
    changes: &[Value],
    name: &str,
    strategy: Strategy,
    keys: &Keys,
) -> Result<Vec<Value>, PatchError> {
    match strategy {
        Strategy::Plain => Ok(changes.iter().filter_map(clean).collect()),
        Strategy::Set => {
            let mut items = before.to_vec();
            for change in changes {
                if !items.contains(change) {
                    items.push(change.clone());
                }
            }
            Ok(items)
        }
        Strategy::ByKey(key) => merge_by_key(before, changes, name, key, keys),
    }
}

fn merge_by_key(
    before: &[Value],
    changes: &[Value],
    name: &str,
    key: &str,
    keys: &Keys,
) -> Result<Vec<Value>, PatchError> {
    let mut items = before.to_vec();
    let mut replaced = false;
    for change in changes {
        let Value::Object(change) = change else {
            return Err(PatchError::Internal(format!(
                "expected a map in list {name}, got {change}"
            )));
        };
        let kind = directive(change)?;
        if kind == Some(Directive::Replace) && !change.contains_key(key) {
            replaced = true;
            continue;
        }
        let Some(id) = change.get(key) else {
            return Err(PatchError::Internal(format!(
                "map: {} does not contain declared merge key: {key}",
                Value::Object(change.clone())
            )));
        };
        let at = items.iter().position(|item| item.get(key) == Some(id));
        match (kind, at) {
            (Some(Directive::Delete), Some(_)) => items.retain(|item| item.get(key) != Some(id)),
            (Some(Directive::Delete), None) => {}
            (_, Some(at)) => {
                if let Value::Object(item) = &mut items[at] {
                    merge_map(item, change, name, keys)?;
                }
            }
            (_, None) => items.push(Value::Object(without_directives(change))),
        }
    }
    if replaced {
        return Ok(changes.iter().filter(|c| !is_special(c)).filter_map(clean).collect());
    }
    Ok(items)
}

/// Items named in `order` stand in that order; the others keep their places relative to the list
/// as the server had it; an item that is new to the server goes before what it is compared with.
fn in_order(
    merged: Vec<Value>,
    order: &[Value],
    server: &[Value],
    strategy: Strategy,
) -> Vec<Value> {
    if strategy == Strategy::Plain {
        return merged;
    }
    let place =
        |list: &[Value], item: &Value| list.iter().position(|one| same(one, item, strategy));
    let (mut wanted, mut others): (Vec<Value>, Vec<Value>) =
        merged.into_iter().partition(|item| place(order, item).is_some());
    wanted.sort_by_key(|item| place(order, item));
    others.sort_by_key(|item| place(server, item));
    let mut result = Vec::with_capacity(wanted.len() + others.len());
    let mut wanted = wanted.into_iter().peekable();
    let mut others = others.into_iter().peekable();
    while let (Some(left), Some(right)) = (others.peek(), wanted.peek()) {
        let other_first = match (place(server, left), place(server, right)) {
            (Some(left), Some(right)) => left < right,
            _ => false,
        };
        result.extend(if other_first { others.next() } else { wanted.next() });
    }
    result.extend(wanted);
    result.extend(others);
    result
}

fn same(left: &Value, right: &Value, strategy: Strategy) -> bool {
    match strategy {
        Strategy::ByKey(key) => left.get(key).is_some() && left.get(key) == right.get(key),
        Strategy::Set | Strategy::Plain => left == right,
    }
}

fn delete_scalars(
    target: &mut Map<String, Value>,
    list: &str,
    gone: &Value,
) -> Result<(), PatchError> {
    let Value::Array(gone) = gone else {
        return Err(PatchError::Malformed("invalid patch format of primitive list".into()));
    };
    if let Some(Value::Array(items)) = target.get_mut(list) {
        items.retain(|item| !gone.contains(item));
    }
    Ok(())
}

fn retain_keys(
    target: &mut Map<String, Value>,
    patch: &Map<String, Value>,
) -> Result<(), PatchError> {
    let malformed = || PatchError::Malformed("invalid patch format of retainKeys".into());
    let retained = match patch.get(RETAIN_KEYS) {
        None => return Ok(()),
        Some(Value::Array(retained)) => retained,
        Some(_) => return Err(malformed()),
    };
    let is_retained = |key: &str| retained.iter().any(|one| one == key);
    let named = patch.iter().filter(|(key, value)| !key.starts_with('$') && !value.is_null());
    if named.into_iter().any(|(key, _)| !is_retained(key)) {
        return Err(malformed());
    }
    target.retain(|key, _| is_retained(key));
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Directive {
    Replace,
    Delete,
    Merge,
}

fn directive(patch: &Map<String, Value>) -> Result<Option<Directive>, PatchError> {
    match patch.get(PATCH).map(|value| value.as_str().unwrap_or_default()) {
        None => Ok(None),
        Some("replace") => Ok(Some(Directive::Replace)),
        Some("delete") => Ok(Some(Directive::Delete)),
        Some("merge") => Ok(Some(Directive::Merge)),
        Some(other) => Err(PatchError::Internal(format!(
            "unknown patch type: {other} in map: {}",
            Value::Object(patch.clone())
        ))),
    }
}

fn is_special(item: &Value) -> bool {
    item.get(PATCH).is_some_and(|value| value == "replace" || value == "delete")
}

/// A value as it is stored when nothing was there before: no directives, no nulls in objects;
/// nothing at all if the patch asks for its deletion.
fn clean(value: &Value) -> Option<Value> {
    match value {
        Value::Object(fields) if fields.get(PATCH).is_some_and(|kind| kind == "delete") => None,
        Value::Object(fields) => Some(Value::Object(without_directives(fields))),
        Value::Array(items) => Some(Value::Array(items.iter().filter_map(clean).collect())),
        scalar => Some(scalar.clone()),
    }
}

fn without_directives(fields: &Map<String, Value>) -> Map<String, Value> {
    fields
        .iter()
        .filter(|(key, value)| !is_directive(key) && !value.is_null())
        .filter_map(|(key, value)| Some((key.clone(), clean(value)?)))
        .collect()
}

fn is_directive(key: &str) -> bool {
    key == PATCH
        || key == RETAIN_KEYS
        || key.starts_with(SET_ORDER)
        || key.starts_with(DELETE_SCALARS)
}
