//! RFC 6902: which operation does what to which pointer, and in whose words it fails.

use serde_json::{Map, Value};

use super::{MAX_JSON_OPERATIONS, PatchError};

/// Applies a JSON patch: all operations, or none of them.
pub fn json(target: &mut Value, operations: &[Value]) -> Result<(), PatchError> {
    if operations.len() > MAX_JSON_OPERATIONS {
        return Err(PatchError::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {MAX_JSON_OPERATIONS}, got {}",
            operations.len()
        )));
    }
    let mut draft = target.clone();
    for operation in operations {
        apply(&mut draft, operation)?;
    }
    *target = draft;
    Ok(())
}

fn apply(document: &mut Value, operation: &Value) -> Result<(), PatchError> {
    let Value::Object(operation) = operation else {
        return Err(PatchError::Malformed(format!(
            "error decoding patch: json: cannot unmarshal {} into Go value of type \
             handlers.jsonPatchOp",
            go_kind(operation)
        )));
    };
    match text(operation, "op").unwrap_or("unknown") {
        "add" => add(document, path(operation, "add")?, value(operation)),
        "remove" => remove(document, path(operation, "remove")?),
        "replace" => replace(document, path(operation, "replace")?, value(operation)),
        "move" => move_value(document, operation),
        "copy" => copy(document, operation),
        "test" => test(document, path(operation, "test")?, operation.get("value")),
        other => Err(does_not_apply(format!("Unexpected kind: {other}"))),
    }
}

fn add(document: &mut Value, path: &str, value: Value) -> Result<(), PatchError> {
    if path.is_empty() {
        *document = value;
        return Ok(());
    }
    let (parent, key) = parent_mut(document, path, "add")?;
    match parent {
        Value::Object(fields) => {
            fields.insert(key, value);
        }
        Value::Array(items) if key == "-" => items.push(value),
        Value::Array(items) => {
            let at = index(&key, items.len() + 1, path, "add")?;
            items.insert(at, value);
        }
        _ => return Err(missing_path("add", path)),
    }
    Ok(())
}

fn remove(document: &mut Value, path: &str) -> Result<(), PatchError> {
    let (parent, key) = parent_mut(document, path, "remove")?;
    match parent {
        Value::Object(fields) => match fields.remove(&key) {
            Some(_) => Ok(()),
            None => Err(does_not_apply(format!(
                "error in remove for path: '{path}': Unable to remove nonexistent key: {key}: \
                 missing value"
            ))),
        },
        Value::Array(items) => {
            let at = index(&key, items.len(), path, "remove")?;
            items.remove(at);
            Ok(())
        }
        _ => Err(missing_path("remove", path)),
    }
}

fn replace(document: &mut Value, path: &str, value: Value) -> Result<(), PatchError> {
    if path.is_empty() {
        *document = value;
        return Ok(());
    }
    let (parent, key) = parent_mut(document, path, "replace")?;
    match parent {
        // Replacing an absent field adds it; only an absent position is an error.
        Value::Object(fields) => {
            fields.insert(key, value);
            Ok(())
        }
        Value::Array(items) => {
            let at = index(&key, items.len(), path, "replace")?;
            items[at] = value;
            Ok(())
        }
        _ => Err(missing_path("replace", path)),
    }
}

fn move_value(document: &mut Value, operation: &Map<String, Value>) -> Result<(), PatchError> {
    let from = from(operation, "move")?;
    let path = path(operation, "move")?;
    let Some(value) = pointer(document, from).cloned() else {
        return Err(missing_path("move", from));
    };
    remove(document, from)?;
    add(document, path, value)
}

fn copy(document: &mut Value, operation: &Map<String, Value>) -> Result<(), PatchError> {
    let from = from(operation, "copy")?;
    let path = path(operation, "copy")?;
    let Some(value) = pointer(document, from).cloned() else {
        return Err(missing_path("copy", from));
    };
    add(document, path, value)
}

fn test(document: &Value, path: &str, expected: Option<&Value>) -> Result<(), PatchError> {
    let found = pointer(document, path).filter(|value| !value.is_null());
    if found == expected.filter(|value| !value.is_null()) {
        return Ok(());
    }
    Err(does_not_apply(format!("testing value {path} failed: test failed")))
}

fn text<'a>(operation: &'a Map<String, Value>, field: &str) -> Option<&'a str> {
    operation.get(field).and_then(Value::as_str)
}

fn path<'a>(operation: &'a Map<String, Value>, name: &str) -> Result<&'a str, PatchError> {
    text(operation, "path").ok_or_else(|| {
        does_not_apply(format!("{name} operation failed to decode path: missing value"))
    })
}

fn from<'a>(operation: &'a Map<String, Value>, name: &str) -> Result<&'a str, PatchError> {
    text(operation, "from").ok_or_else(|| {
        does_not_apply(format!("{name} operation failed to decode from: missing value"))
    })
}

fn value(operation: &Map<String, Value>) -> Value {
    operation.get("value").cloned().unwrap_or(Value::Null)
}

fn parent_mut<'a>(
    document: &'a mut Value,
    path: &str,
    name: &str,
) -> Result<(&'a mut Value, String), PatchError> {
    let (parent, key) = path.rsplit_once('/').ok_or_else(|| missing_path(name, path))?;
    let found = pointer_mut(document, parent).ok_or_else(|| missing_path(name, path))?;
    Ok((found, unescape(key)))
}

fn pointer<'a>(document: &'a Value, path: &str) -> Option<&'a Value> {
    let mut found = document;
    for token in path.split('/').skip(1) {
        found = match found {
            Value::Object(fields) => fields.get(&unescape(token))?,
            Value::Array(items) => items.get(position(token, items.len())?)?,
            _ => return None,
        };
    }
    (path.is_empty() || path.starts_with('/')).then_some(found)
}

fn pointer_mut<'a>(document: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    if !path.is_empty() && !path.starts_with('/') {
        return None;
    }
    let mut found = document;
    for token in path.split('/').skip(1) {
        found = match found {
            Value::Object(fields) => fields.get_mut(&unescape(token))?,
            Value::Array(items) => {
                let at = position(token, items.len())?;
                items.get_mut(at)?
            }
            _ => return None,
        };
    }
    Some(found)
}

/// Negative positions count from the end: the API server's JSON patch library allows them.
fn position(token: &str, length: usize) -> Option<usize> {
    let number: i64 = token.parse().ok()?;
    let length = i64::try_from(length).ok()?;
    let at = if number < 0 { number + length } else { number };
    usize::try_from(at).ok().filter(|_| at < length)
}

fn index(token: &str, length: usize, path: &str, name: &str) -> Result<usize, PatchError> {
    position(token, length).ok_or_else(|| {
        does_not_apply(format!(
            "error in {name} for path: '{path}': Unable to access invalid index: {token}: \
             invalid index referenced"
        ))
    })
}

fn unescape(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

fn missing_path(name: &str, path: &str) -> PatchError {
    does_not_apply(format!(
        "{name} operation does not apply: doc is missing path: \"{path}\": missing value"
    ))
}

fn does_not_apply(message: String) -> PatchError {
    PatchError::DoesNotApply(message)
}

/// What Go's JSON decoder calls the kind of a value in its messages.
pub(crate) fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
