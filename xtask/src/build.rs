//! How does a program of this workspace get built, and where is it then?

use std::{
    io,
    path::PathBuf,
    process::{Command, Stdio},
};

use serde_json::Value;
use thiserror::Error;

use crate::repository;

/// Why there is no program.
#[derive(Debug, Error)]
pub enum BuildError {
    #[error("cargo build {arguments} failed:\n{message}")]
    Failed { arguments: String, message: String },
    #[error("cargo build {arguments}: expected a program to come of it")]
    NoProgram { arguments: String },
    #[error("cargo could not be run: {0}")]
    NotRun(#[from] io::Error),
}

/// Builds what these arguments of `cargo build` name, and returns its path.
pub fn program(arguments: &[&str]) -> Result<PathBuf, BuildError> {
    let output = Command::new(env!("CARGO"))
        .current_dir(repository())
        .args(["build", "--quiet", "--message-format=json-render-diagnostics"])
        .args(arguments)
        .stdin(Stdio::null())
        .output()?;
    let arguments = arguments.join(" ");
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(BuildError::Failed { arguments, message });
    }
    let path = executable(&String::from_utf8_lossy(&output.stdout));
    path.ok_or(BuildError::NoProgram { arguments })
}

/// The program among cargo's messages, one JSON object in each line.
fn executable(messages: &str) -> Option<PathBuf> {
    let parsed = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut programs =
        parsed.filter_map(|message| message["executable"].as_str().map(PathBuf::from));
    programs.next_back()
}

#[test]
fn the_program_is_where_cargo_says() {
    let messages = r#"
{"reason":"compiler-artifact","executable":null}
{"reason":"compiler-artifact","executable":"/target/release/gradus"}
{"reason":"build-finished","success":true}
"#;
    assert_eq!(executable(messages), Some(PathBuf::from("/target/release/gradus")));
}
