//! What a jsonPath selects: fields and items. Other forms of kubectl's JSONPath are refused by name.

use serde_json::Value;
use thiserror::Error;

/// Why a path selects nothing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PathError {
    /// The path cannot be read.
    #[error("{0}")]
    Syntax(String),
    /// The body has nothing there.
    #[error("{0}")]
    NotFound(String),
}

/// The first value at a path; text without braces stands for itself.
pub fn select(path: &str, body: &Value) -> Result<Option<Value>, PathError> {
    let Some(inside) = path.strip_prefix('{') else {
        return Ok((!path.is_empty()).then(|| Value::from(path)));
    };
    let syntax = |message: String| PathError::Syntax(message);
    let Some((inside, rest)) = inside.split_once('}') else {
        return Err(syntax("unclosed action".to_owned()));
    };
    if !rest.is_empty() {
        return Err(syntax(format!("unsupported text {rest:?} behind the path {{{inside}}}")));
    }
    let mut here = body;
    let mut rest = inside.trim().strip_prefix('$').unwrap_or(inside.trim());
    while !rest.is_empty() {
        let (step, after) = step(rest).map_err(syntax)?;
        here = match step {
            Step::Field(name) => here
                .get(&*name)
                .ok_or_else(|| PathError::NotFound(format!("{name} is not found")))?,
            Step::Item(index) => item(here, index)?,
        };
        rest = after;
    }
    Ok(Some(here.clone()))
}

/// One step into a document.
enum Step {
    Field(String),
    /// From the end where below zero.
    Item(i64),
}

/// The first step of a path, and the rest.
fn step(path: &str) -> Result<(Step, &str), String> {
    let unsupported = || format!("unsupported jsonPath {path:?}: only fields and items are read");
    if let Some(rest) = path.strip_prefix('.') {
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        let is_plain = !name.is_empty() && !name.contains(['*', '\\', '?', '@', '\'', '"']);
        return is_plain.then(|| (Step::Field(name.to_owned()), rest)).ok_or_else(unsupported);
    }
    let inside = path.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let (inside, rest) = inside.ok_or_else(unsupported)?;
    if let Ok(index) = inside.parse() {
        return Ok((Step::Item(index), rest));
    }
    let quoted = inside.strip_prefix('\'').and_then(|name| name.strip_suffix('\''));
    match quoted.filter(|name| !name.contains('\'')) {
        Some(name) => Ok((Step::Field(name.to_owned()), rest)),
        None => Err(unsupported()),
    }
}

fn item(here: &Value, index: i64) -> Result<&Value, PathError> {
    let not_found = PathError::NotFound;
    let Some(items) = here.as_array() else {
        return Err(not_found("is not array or slice".to_owned()));
    };
    let length = items.len() as i64;
    let place = if index < 0 { index.saturating_add(length) } else { index };
    let found = usize::try_from(place).ok().and_then(|place| items.get(place));
    let missing = format!("array index out of bounds: index {place}, length {length}");
    found.ok_or_else(|| not_found(missing))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_and_items_are_found() {
        let body = json!({ "a": { "b-c": [1, { "d": "x" }] }, "n": null });
        let cases = [
            ("{$}", Ok(Some(body.clone()))),
            ("{}", Ok(Some(body.clone()))),
            ("{.n}", Ok(Some(json!(null)))),
            ("{$.a.b-c[0]}", Ok(Some(json!(1)))),
            ("{ .a['b-c'][-1].d }", Ok(Some(json!("x")))),
            ("text", Ok(Some(json!("text")))),
            ("{.x}", Err("x is not found")),
            ("{.a[0]}", Err("is not array or slice")),
            ("{.a.b-c[2]}", Err("array index out of bounds: index 2, length 2")),
            ("{.a", Err("unclosed action")),
            ("{..b}", Err("unsupported jsonPath \"..b\": only fields and items are read")),
            ("{.a[*]}", Err("unsupported jsonPath \"[*]\": only fields and items are read")),
            ("{.a}x", Err("unsupported text \"x\" behind the path {.a}")),
        ];
        for (path, expected) in cases {
            let found = select(path, &body).map_err(|error| error.to_string());
            assert_eq!(found, expected.map_err(str::to_owned), "{path}");
        }
    }
}
