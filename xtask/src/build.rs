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
    program_with(arguments, &[])
}

/// The same, with variables of its own.
pub fn program_with(arguments: &[&str], variables: &[(&str, &str)]) -> Result<PathBuf, BuildError> {
    let path = executables(&messages(arguments, variables)?).pop();
    path.ok_or_else(|| BuildError::NoProgram { arguments: arguments.join(" ") })
}

/// The unoptimised program of this name; see [`tested_programs`].
pub fn tested_program(name: &str) -> Result<PathBuf, BuildError> {
    let [program] = tested_programs([name])?;
    Ok(program)
}

/// The unoptimised programs of these names. All of the workspace is selected, as for the tests: what
/// they have compiled serves here, while another selection would have other features and would
/// compile most of it again.
pub fn tested_programs<const COUNT: usize>(
    names: [&str; COUNT],
) -> Result<[PathBuf; COUNT], BuildError> {
    let arguments = ["--workspace", "--bins"];
    let programs = executables(&messages(&arguments, &[])?);
    let mut found = [const { PathBuf::new() }; COUNT];
    for (place, name) in found.iter_mut().zip(names) {
        let program = programs.iter().find(|path| path.ends_with(name)).cloned();
        *place = program.ok_or_else(|| BuildError::NoProgram { arguments: arguments.join(" ") })?;
    }
    Ok(found)
}

/// What cargo says while it builds, one JSON object in each line.
fn messages(arguments: &[&str], variables: &[(&str, &str)]) -> Result<String, BuildError> {
    let output = Command::new(env!("CARGO"))
        .current_dir(repository())
        .args(["build", "--quiet", "--message-format=json-render-diagnostics"])
        .args(arguments)
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(BuildError::Failed { arguments: arguments.join(" "), message });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The programs among cargo's messages.
fn executables(messages: &str) -> Vec<PathBuf> {
    let parsed = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    parsed.filter_map(|message| message["executable"].as_str().map(PathBuf::from)).collect()
}

#[test]
fn programs_are_where_cargo_says() {
    let messages = r#"
{"reason":"compiler-artifact","executable":null}
{"reason":"compiler-artifact","executable":"/target/release/gradus"}
{"reason":"compiler-artifact","executable":"/target/release/xtask"}
{"reason":"build-finished","success":true}
"#;
    let expected = ["/target/release/gradus", "/target/release/xtask"].map(PathBuf::from);
    assert_eq!(executables(messages), expected);
}
