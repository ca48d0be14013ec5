//! `cargo xtask sim`: do many seeds of every scenario end well? Optimised, the tests of the lab take
//! many more of them than a test run has time for.

use std::process::Command;

use thiserror::Error;

use crate::{Failure, repository, summary::Summary, test};

#[derive(Debug, Error)]
#[error("no arguments are expected, found {0}")]
struct Unexpected(String);

/// Runs the tests of the lab in release.
pub fn run(arguments: &[String]) -> Result<Summary, Failure> {
    if let Some(argument) = arguments.first() {
        return Err(Unexpected(argument.clone()).into());
    }
    let output = Command::new(env!("CARGO"))
        .current_dir(repository())
        .args(["test", "--release", "--package", "gradus-lab", "--no-fail-fast"])
        .output()?;
    Ok(test::summary_of(&output))
}
