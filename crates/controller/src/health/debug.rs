//! Who may see a World, and what of it? It holds whole specs, so it is shown to those alone who know a
//! token, and without the values of environment variables.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use axum::http::{HeaderMap, header};
use serde_json::Value;

/// In place of the value of an environment variable.
const NOT_SHOWN: &str = "(not shown)";

/// The token that opens `/debug/world`. It is never printed.
#[derive(Clone)]
pub struct DebugToken(Arc<[u8]>);

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum DebugTokenError {
    /// The file cannot be read.
    #[error("--debug-world-token-file {0}: {1}")]
    File(PathBuf, #[source] io::Error),
    /// Anybody would know it.
    #[error("--debug-world-token-file {0}: expected a token, found an empty file")]
    Empty(PathBuf),
}

impl DebugToken {
    /// The token in a file, without the white space around it.
    pub fn read(path: &Path) -> Result<Self, DebugTokenError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| DebugTokenError::File(path.to_owned(), error))?;
        match text.trim() {
            "" => Err(DebugTokenError::Empty(path.to_owned())),
            token => Ok(DebugToken(token.as_bytes().into())),
        }
    }

    /// This text is the token.
    #[cfg(test)]
    pub(super) fn of(text: &str) -> Self {
        DebugToken(text.as_bytes().into())
    }

    /// Does a request name this token, as `Authorization: Bearer TOKEN`?
    pub(super) fn admits(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(header::AUTHORIZATION).map(|given| given.as_bytes());
        let given = given.and_then(|given| given.strip_prefix(b"Bearer "));
        // In a time that says nothing of the token.
        given.is_some_and(|given| verify_slices_are_equal(given, &self.0).is_ok())
    }
}

/// Leaves out the values of environment variables, wherever containers stand: also in pod templates
/// that are kept as text.
pub(super) fn hide_env_values(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(hide_env_values),
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::Array(variables) if name == "env" => variables.iter_mut().for_each(hide),
                    field => hide_env_values(field),
                }
            }
        }
        Value::String(text) if text.starts_with('{') && text.contains(r#""env""#) => {
            // What is no JSON is no template, and stays.
            if let Ok(mut inner) = serde_json::from_str::<Value>(text) {
                hide_env_values(&mut inner);
                *text = inner.to_string();
            }
        }
        _ => {}
    }
}

fn hide(variable: &mut Value) {
    if let Some(value) = variable.get_mut("value") {
        *value = NOT_SHOWN.into();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_token_admits_who_names_it_exactly() {
        let token = DebugToken(b"s3cret"[..].into());
        let cases = [
            (Some("Bearer s3cret"), true),
            (Some("Bearer s3creT"), false),
            (Some("Bearer s3cre"), false),
            (Some("Bearer s3cret "), false),
            (Some("Bearer s3crets3cret"), false),
            (Some("Bearer "), false),
            (Some("s3cret"), false),
            (Some("Basic s3cret"), false),
            (None, false),
        ];
        for (given, is_admitted) in cases {
            let given = given.map(|given| (header::AUTHORIZATION, given.parse().unwrap()));
            assert_eq!(
                token.admits(&given.clone().into_iter().collect()),
                is_admitted,
                "{given:?}"
            );
        }
    }

    #[test]
    fn a_file_without_a_token_is_refused_by_name() {
        let path = std::env::temp_dir().join(format!("gradus-token-{}", std::process::id()));
        for (text, is_good) in [("\n s3cret \n", true), (" \n", false)] {
            std::fs::write(&path, text).unwrap();
            let token = DebugToken::read(&path);
            assert_eq!(token.is_ok(), is_good, "{text:?}");
            assert!(token.as_ref().is_ok_and(|token| *token.0 == *b"s3cret") || !is_good);
        }
        std::fs::remove_file(&path).unwrap();
        let missing = DebugToken::read(&path).err().unwrap().to_string();
        assert!(missing.starts_with("--debug-world-token-file /"), "{missing}");
    }

    #[test]
    fn values_of_environment_variables_are_not_shown_wherever_they_stand() {
        let container = |password: &str| {
            json!({ "name": "web", "args": ["--env"], "env": [
                { "name": "PASSWORD", "value": password },
                { "name": "POD", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } },
            ] })
        };
        let template = |password| json!({ "spec": { "containers": [container(password)] } });
        let document = |password| {
            json!({
                "world": { "spec": { "template": template(password).to_string() } },
                "decision": { "changes": [{ "op": { "Create": template(password) } }] },
                "note": "{ no JSON \"env\"",
            })
        };
        let mut shown = document("hunter2");
        hide_env_values(&mut shown);
        assert_eq!(shown, document(NOT_SHOWN), "and nothing else is changed");
        assert!(!shown.to_string().contains("hunter2"));
    }
}
