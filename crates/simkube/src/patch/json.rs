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
    for operation in operations {
        check(operation)?;
    }
    let mut draft = target.clone();
    for operation in operations {
        apply(&mut draft, operation)?;
    }
    *target = draft;
    Ok(())
}

/// An operation is an object, and what says what it does and where are texts.
fn check(operation: &Value) -> Result<(), PatchError> {
    let malformed = |found: &Value, into: &str| {
        let problem = format!("json: cannot unmarshal {} into Go {into}", go_kind(found));
        Err(PatchError::Malformed(format!("error decoding patch: {problem}")))
    };
    let Value::Object(fields) = operation else {
        return malformed(operation, "value of type handlers.jsonPatchOp");
    };
    for name in ["from", "op", "path"] {
        if let Some(found) = fields.get(name).filter(|found| !found.is_string() && !found.is_null())
        {
            return malformed(found, &format!("struct field jsonPatchOp.{name} of type string"));
        }
    }
    Ok(())
}

fn apply(document: &mut Value, operation: &Value) -> Result<(), PatchError> {
    let Value::Object(operation) = operation else { return Ok(()) };
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
    let (parent, key) = parent(document, path, "add")?;
    match parent {
        Container::Object(fields) => {
            fields.insert(key, value);
        }
        Container::List(items) if key == "-" => items.push(value),
        Container::List(items) => {
            let at = index(&key, items.len() + 1, path, "add")?;
            items.insert(at, value);
        }
    }
    Ok(())
}

fn remove(document: &mut Value, path: &str) -> Result<(), PatchError> {
    let (parent, key) = parent(document, path, "remove")?;
    match parent {
        Container::Object(fields) => match fields.remove(&key) {
            Some(_) => Ok(()),
            None => Err(does_not_apply(format!(
                "error in remove for path: '{path}': Unable to remove nonexistent key: {key}: \
                 missing value"
            ))),
        },
        Container::List(items) => {
            let at = index(&key, items.len(), path, "remove")?;
            items.remove(at);
            Ok(())
        }
    }
}

fn replace(document: &mut Value, path: &str, value: Value) -> Result<(), PatchError> {
    if path.is_empty() {
        if !value.is_object() && !value.is_array() {
            let message = "replace operation value must be object or array";
            return Err(does_not_apply(message.to_owned()));
        }
        *document = value;
        return Ok(());
    }
    let (parent, key) = parent(document, path, "replace")?;
    match parent {
        // Replacing an absent field adds it; only an absent position is an error.
        Container::Object(fields) => {
            fields.insert(key, value);
        }
        Container::List(items) => {
            let at = index(&key, items.len(), path, "replace")?;
            items[at] = value;
        }
    }
    Ok(())
}

fn move_value(document: &mut Value, operation: &Map<String, Value>) -> Result<(), PatchError> {
    let from = from(operation, "move")?;
    let path = path(operation, "move")?;
    let value = found(document, from, "move")?.unwrap_or_default();
    remove(document, from)?;
    add(document, path, value)
}

/// What is absent is copied as null; only an absent position is an error.
fn copy(document: &mut Value, operation: &Map<String, Value>) -> Result<(), PatchError> {
    let from = from(operation, "copy")?;
    let path = path(operation, "copy")?;
    let value = found(document, from, "copy")?.unwrap_or_default();
    add(document, path, value)
}

fn test(document: &mut Value, path: &str, expected: Option<&Value>) -> Result<(), PatchError> {
    let value = if path.is_empty() {
        Some(document.clone())
    } else {
        found(document, path, "test")?.filter(|value| !value.is_null())
    };
    if value.as_ref() == expected.filter(|value| !value.is_null()) {
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

/// What has fields or positions.
enum Container<'a> {
    Object(&'a mut Map<String, Value>),
    List(&'a mut Vec<Value>),
}

/// What holds the value that a pointer means, and the value's name or position in it. Whatever
/// stands before the first slash is not looked at; without a slash there is no value.
fn parent<'a>(
    document: &'a mut Value,
    path: &str,
    name: &str,
) -> Result<(Container<'a>, String), PatchError> {
    let missing = || missing_path(name, path);
    let mut tokens = path.split('/').skip(1).map(unescape);
    let mut key = tokens.next().ok_or_else(missing)?;
    let mut holder = document;
    for next in tokens {
        holder = match holder {
            Value::Object(fields) => fields.get_mut(&key),
            Value::Array(items) => {
                let at = position(&key, items.len()).ok_or_else(missing)?;
                items.get_mut(at)
            }
            _ => None,
        }
        .ok_or_else(missing)?;
        key = next;
    }
    match holder {
        Value::Object(fields) => Ok((Container::Object(fields), key)),
        Value::Array(items) => Ok((Container::List(items), key)),
        _ => Err(missing()),
    }
}

/// The value that a pointer means, nothing if it is an absent field.
fn found(document: &mut Value, path: &str, name: &str) -> Result<Option<Value>, PatchError> {
    let (parent, key) = parent(document, path, name)?;
    match parent {
        Container::Object(fields) => Ok(fields.get(&key).cloned()),
        Container::List(items) => {
            let at = index(&key, items.len(), path, name)?;
            Ok(items.get(at).cloned())
        }
    }
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

/// `~1` is a slash and `~0` a tilde, each read once: `~01` is `~1`.
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
