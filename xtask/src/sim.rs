//! `cargo xtask sim`: does every scenario end well, whatever happens? Optimised, the tests of the
//! lab try every fault at every write; with `--seeds`, so many mixed runs on all cores, with a bar.
//! A seed that fails can be told again, alone and line by line.

use std::process::Command;

use thiserror::Error;

use crate::{Failure, build, repository, summary::Summary, test};

#[derive(Debug, Error)]
enum SimError {
    #[error(
        "unknown option {0}: expected --seeds COUNT, --from FIRST, --seed SEED, --scenario NAME or --two"
    )]
    UnknownOption(String),
    #[error("{0} expects a value")]
    NoValue(String),
}

/// Runs the task.
pub fn run(arguments: &[String]) -> Result<Summary, Failure> {
    let words = words(arguments)?;
    if words.is_empty() {
        return every_case();
    }
    let program = build::program(&["--release", "--package", "gradus-lab", "--example", "seeds"])?;
    let status = Command::new(program).current_dir(repository()).args(words).status()?;
    Ok(Summary::of(status.success()))
}

/// The tests of the lab, in release.
fn every_case() -> Result<Summary, Failure> {
    let output = Command::new(env!("CARGO"))
        .current_dir(repository())
        .args(["test", "--release", "--package", "gradus-lab", "--no-fail-fast"])
        .output()?;
    Ok(test::summary_of(&output))
}

/// The words for the program; none if nothing is asked for.
fn words(arguments: &[String]) -> Result<Vec<String>, SimError> {
    let mut words = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(option) = arguments.next() {
        if option == "--two" {
            words.push(option.clone());
            continue;
        }
        let value = arguments.next().cloned().ok_or_else(|| SimError::NoValue(option.clone()))?;
        match option.as_str() {
            "--seeds" => words.push(value),
            "--seed" | "--from" | "--scenario" => words.extend([option.clone(), value]),
            _ => return Err(SimError::UnknownOption(option.clone())),
        }
    }
    Ok(words)
}

#[test]
fn a_count_or_one_seed_is_passed_on() {
    let words_of = |line: &str| {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        words(&arguments).map(|words| words.join(" ")).map_err(|error| error.to_string())
    };
    let cases = [
        ("no wish", "", Ok("")),
        ("so many", "--seeds 5", Ok("5")),
        ("from another one on", "--seeds 5 --from 9", Ok("5 --from 9")),
        ("of one scenario", "--scenario a --seeds 5", Ok("--scenario a 5")),
        ("one alone", "--seed 7 --scenario a", Ok("--seed 7 --scenario a")),
        ("two controllers", "--two --seeds 5", Ok("--two 5")),
        ("a value is missing", "--seeds", Err("--seeds expects a value")),
    ];
    for (what, line, expected) in cases {
        let expected = expected.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(words_of(line), expected, "{what}");
    }
    assert!(words_of("--sedes 5").is_err(), "a typing error is told");
}
