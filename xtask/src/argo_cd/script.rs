//! How is a Lua script of Argo CD run on an object?

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use mlua::{Lua, LuaSerdeExt, serde::SerializeOptions};
use serde_json::{Map, Value};
use thiserror::Error;

/// Why a script gave no answer.
#[derive(Debug, Error)]
pub(super) enum ScriptError {
    #[error("{path}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("{path}: {message}")]
    Lua { path: PathBuf, message: String },
}

/// Runs a script as Argo CD does: the object is `obj`, fields that are null are not there. The clock
/// that it reads stands still.
pub(super) fn run(path: &Path, object: &Value, now: Timestamp) -> Result<Value, ScriptError> {
    let text = fs::read_to_string(path);
    let text = text.map_err(|source| ScriptError::File { path: path.to_owned(), source })?;
    let failed =
        |error: mlua::Error| ScriptError::Lua { path: path.to_owned(), message: error.to_string() };
    let lua = Lua::new();
    let options =
        SerializeOptions::new().serialize_none_to_null(false).serialize_unit_to_null(false);
    let object = lua.to_value_with(object, options).map_err(failed)?;
    lua.globals().set("obj", object).map_err(failed)?;
    let clock = lua.create_function(move |_, _format: String| Ok(whole_seconds(now)));
    let os: mlua::Table = lua.globals().get("os").map_err(failed)?;
    os.set("date", clock.map_err(failed)?).map_err(failed)?;
    let answer: mlua::Value = lua.load(text).eval().map_err(failed)?;
    lua.from_value(answer).map_err(failed)
}

fn whole_seconds(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// What changes one object into another, as a JSON merge patch; nothing where they are equal. An
/// empty table of Lua may be a list or an object: it equals both.
pub(super) fn difference(from: &Value, to: &Value) -> Option<Value> {
    let is_empty = |value: &Value| {
        value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
    };
    match (from, to) {
        (from, to) if from == to || is_empty(from) && is_empty(to) => None,
        (Value::Array(from), Value::Array(to)) if from.len() == to.len() => {
            let differs = from.iter().zip(to).any(|(from, to)| difference(from, to).is_some());
            differs.then(|| Value::Array(to.clone()))
        }
        (Value::Number(from), Value::Number(to)) if from.as_f64() == to.as_f64() => None,
        (Value::Object(from), Value::Object(to)) => {
            let gone = from.keys().filter(|name| !to.contains_key(*name) && !from[*name].is_null());
            let mut patch: Map<String, Value> =
                gone.map(|name| (name.clone(), Value::Null)).collect();
            for (name, to) in to {
                let part = difference(from.get(name).unwrap_or(&Value::Null), to);
                patch.extend(part.map(|part| (name.clone(), part)));
            }
            (!patch.is_empty()).then_some(Value::Object(patch))
        }
        (_, to) => Some(to.clone()),
    }
}

#[test]
fn a_difference_is_a_merge_patch() {
    use serde_json::json;
    let cases = [
        ("nothing", json!({ "a": 1 }), json!({ "a": 1 }), None),
        ("a value", json!({ "a": 1, "b": 2 }), json!({ "a": 3, "b": 2 }), Some(json!({ "a": 3 }))),
        (
            "one that goes",
            json!({ "a": { "b": 1 } }),
            json!({ "a": {} }),
            Some(json!({ "a": { "b": null } })),
        ),
        ("an empty list that became an object", json!({ "a": [] }), json!({ "a": {} }), None),
        ("a null that Lua does not have", json!({ "a": null }), json!({}), None),
        ("a list", json!({ "a": [1, 2] }), json!({ "a": [1, 3] }), Some(json!({ "a": [1, 3] }))),
    ];
    for (what, from, to, expected) in cases {
        assert_eq!(difference(&from, &to), expected, "{what}");
    }
}
