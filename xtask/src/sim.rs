//! `cargo xtask sim`: do many seeds of every scenario end well? More of them than a test run has
//! time for.

use std::process::Command;

use thiserror::Error;

use crate::{Failure, repository, summary::Summary};

/// What the test of seeds reads.
const SEEDS: &str = "GRADUS_SEEDS";

const DEFAULT_SEEDS: u64 = 10_000;

#[derive(Debug, Error)]
#[error("{0:?} is no number of seeds, expected one like {DEFAULT_SEEDS}")]
struct NoNumber(String);

/// Runs the test of seeds in release, with its output as it comes.
pub fn run(arguments: &[String]) -> Result<Summary, Failure> {
    let seeds = match arguments.first() {
        Some(text) => text.parse().map_err(|_| NoNumber(text.clone()))?,
        None => DEFAULT_SEEDS,
    };
    let status = Command::new(env!("CARGO"))
        .current_dir(repository())
        .args(["test", "--release", "--package", "gradus-lab", "--test", "seeds"])
        .args(["--", "--nocapture"])
        .env(SEEDS, seeds.to_string())
        .status()?;
    Ok(Summary::of(status.success()))
}
