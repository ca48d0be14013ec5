//! `cargo xtask bench`: how fast, and how small? Each figure with the command behind it.

use std::{collections::BTreeMap, process::Command};

use serde_json::{Number, Value};
use thiserror::Error;

use crate::{Failure, repository, summary::Summary};

/// Arguments of cargo for each program that measures. It prints one JSON object: figures by name.
const PROGRAMS: &[&[&str]] = &[];

#[derive(Debug, Error)]
enum BenchError {
    #[error("unknown option {0}: expected --json")]
    UnknownOption(String),
    #[error("{command} failed:\n{message}")]
    Failed { command: String, message: String },
    #[error("{command}: expected one JSON object of numbers: {source}")]
    Output { command: String, source: serde_json::Error },
}

/// A number, and how to get it again.
struct Figure {
    value: Number,
    command: String,
}

/// Runs every program and prints a table, or one object.
pub fn run(arguments: &[String]) -> Result<Summary, Failure> {
    let json = match arguments {
        [] => false,
        [option] if option == "--json" => true,
        [.., last] => return Err(BenchError::UnknownOption(last.clone()).into()),
    };
    let mut figures = BTreeMap::new();
    for program in PROGRAMS {
        figures.extend(measure(program)?);
    }
    print!("{}", if json { object(&figures) } else { table(&figures) });
    Ok(Summary::default())
}

fn measure(arguments: &[&str]) -> Result<Vec<(String, Figure)>, Failure> {
    let command = format!("cargo {}", arguments.join(" "));
    let output = Command::new(env!("CARGO")).current_dir(repository()).args(arguments).output()?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(BenchError::Failed { command, message }.into());
    }
    let numbers: BTreeMap<String, Number> = serde_json::from_slice(&output.stdout)
        .map_err(|source| BenchError::Output { command: command.clone(), source })?;
    let figure = |(name, value)| (name, Figure { value, command: command.clone() });
    Ok(numbers.into_iter().map(figure).collect())
}

fn object(figures: &BTreeMap<String, Figure>) -> String {
    let numbers =
        figures.iter().map(|(name, figure)| (name.clone(), Value::Number(figure.value.clone())));
    format!("{}\n", Value::Object(numbers.collect()))
}

fn table(figures: &BTreeMap<String, Figure>) -> String {
    let row = |(name, figure): (&String, &Figure)| {
        format!("{name:<36}{:>14}  {}\n", figure.value.to_string(), figure.command)
    };
    figures.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures() -> BTreeMap<String, Figure> {
        let figure = Figure { value: 1200.into(), command: "cargo run".to_owned() };
        BTreeMap::from([("sim_rollouts_per_s".to_owned(), figure)])
    }

    #[test]
    fn a_row_names_the_figure_and_its_command() {
        let text = table(&figures());
        let words: Vec<&str> = text.split_whitespace().collect();
        assert_eq!(words, ["sim_rollouts_per_s", "1200", "cargo", "run"]);
    }

    #[test]
    fn json_is_one_object() {
        assert_eq!(object(&figures()), "{\"sim_rollouts_per_s\":1200}\n");
    }
}
