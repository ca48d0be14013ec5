//! `cargo xtask bench`: how fast, and how small? Each figure with the command behind it.

use std::{
    io,
    path::PathBuf,
    process::{Command, Stdio},
};

use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::{
    Failure,
    build::{self, BuildError},
    repository,
    summary::Summary,
};

/// Name and way of each figure, in the order of the table.
const FIGURES: [(&str, Way); 7] = [
    ("sim_rollouts_per_s", Way::Rate),
    ("index_10k_rss_mb", Way::Memory),
    ("decide_mid_canary_instructions", Way::Instructions("decide")),
    ("decide_settled_instructions", Way::Instructions("decide-settled")),
    ("reconcile_settled_instructions", Way::Instructions("reconcile-settled")),
    ("template_hash_instructions", Way::Instructions("hash")),
    ("decode_rollout_instructions", Way::Instructions("decode")),
];

/// Two numbers of repetitions: what start and end cost is in both, and falls out.
const FEW: u32 = 20;
const MANY: u32 = 120;

/// Rollouts in the index whose memory is measured.
const INDEXED: &str = "10000";

/// The story whose rate is measured: a first deploy and one update.
const STORY: &str = "scenarios/canary_pause_promote.yaml";

#[derive(Clone, Copy, Debug)]
enum Way {
    /// Runs a second of one story in virtual time, checkers on, on one core.
    Rate,
    /// Resident memory of an index with 10,000 rollouts of two ReplicaSets each.
    Memory,
    /// Instructions of one operation, as callgrind counts them: they repeat exactly, seconds do not.
    Instructions(&'static str),
}

/// Why there is no figure.
#[derive(Debug, Error)]
enum BenchError {
    #[error("unknown option {0}: expected --json")]
    UnknownOption(String),
    #[error("{program} could not be run: {source}")]
    NotRun { program: String, source: io::Error },
    #[error("{program} failed:\n{message}")]
    Failed { program: String, message: String },
    #[error("{what}: expected {expected} in the output, found:\n{found}")]
    Output { what: String, expected: &'static str, found: String },
}

/// A number, and how to get it again.
struct Figure {
    name: &'static str,
    value: f64,
    command: String,
}

/// The programs that measure.
struct Programs {
    rate: PathBuf,
    measure: PathBuf,
}

/// Measures everything and prints a table, or one object.
pub fn run(arguments: &[String]) -> Result<Summary, Failure> {
    let json = match arguments {
        [] => false,
        [option] if option == "--json" => true,
        [.., last] => return Err(BenchError::UnknownOption(last.clone()).into()),
    };
    let programs = Programs { rate: example("rate")?, measure: example("measure")? };
    let mut figures = Vec::new();
    for (name, way) in FIGURES {
        figures.push(Figure { name, value: programs.value(way)?, command: way.command() });
    }
    print!("{}", if json { object(&figures) } else { table(&figures) });
    Ok(Summary::default())
}

impl Way {
    /// What a person types for the same number.
    fn command(self) -> String {
        let example = "cargo run --release -p gradus-lab --example";
        match self {
            Self::Rate => format!("{example} rate -- {STORY}"),
            Self::Memory => format!("{example} measure -- index {INDEXED}"),
            Self::Instructions(what) => format!(
                "(I({MANY}) - I({FEW})) / {}, I(N) = valgrind --tool=callgrind \
                 target/release/examples/measure {what} N",
                MANY - FEW
            ),
        }
    }
}

impl Programs {
    fn value(&self, way: Way) -> Result<f64, BenchError> {
        match way {
            Way::Rate => {
                let text = output(Command::new(&self.rate).arg(STORY))?;
                let words = text.trim().strip_suffix(" a second");
                let number = words.and_then(|words| words.rsplit(' ').next()?.parse().ok());
                found(number, way, "`… N a second`", text)
            }
            Way::Memory => {
                let text = output(Command::new(&self.measure).args(["index", INDEXED]))?;
                let report: Value = serde_json::from_str(&text).unwrap_or_default();
                let megabytes = report["after_kb"].as_f64().map(|kilobytes| kilobytes / 1024.0);
                found(megabytes, way, "`after_kb`", text)
            }
            Way::Instructions(what) => {
                let count = |times: u32| {
                    let mut valgrind = Command::new("valgrind");
                    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
                    let text =
                        output(valgrind.arg(&self.measure).args([what, &times.to_string()]))?;
                    found(collected(&text), way, "`Collected : N`", text)
                };
                Ok((count(MANY)? - count(FEW)?) / f64::from(MANY - FEW))
            }
        }
    }
}

fn example(name: &str) -> Result<PathBuf, BuildError> {
    build::program(&["--release", "--package", "gradus-lab", "--example", name])
}

/// All it printed; valgrind prints on standard error.
fn output(command: &mut Command) -> Result<String, BenchError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = match command.current_dir(repository()).stdin(Stdio::null()).output() {
        Ok(output) => output,
        Err(source) => return Err(BenchError::NotRun { program, source }),
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(BenchError::Failed { program, message: errors.into_owned() });
    }
    let text = if program == "valgrind" { errors } else { String::from_utf8_lossy(&output.stdout) };
    Ok(text.into_owned())
}

fn found(
    number: Option<f64>,
    way: Way,
    expected: &'static str,
    found: String,
) -> Result<f64, BenchError> {
    number.ok_or_else(|| BenchError::Output { what: way.command(), expected, found })
}

/// From callgrind's last words: `==1== Collected : 12345`.
fn collected(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.contains("Collected :"))?;
    line.rsplit(' ').next()?.parse().ok()
}

fn object(figures: &[Figure]) -> String {
    let numbers = figures.iter().map(|figure| (figure.name.to_owned(), json!(figure.value)));
    format!("{}\n", Value::Object(numbers.collect::<Map<_, _>>()))
}

fn table(figures: &[Figure]) -> String {
    let row =
        |Figure { name, value, command }: &Figure| format!("{name:<34}{value:>12.1}  {command}\n");
    figures.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures() -> Vec<Figure> {
        vec![Figure { name: "sim_rollouts_per_s", value: 1200.5, command: "rate x".to_owned() }]
    }

    #[test]
    fn a_row_names_the_figure_and_its_command() {
        let text = table(&figures());
        let words: Vec<&str> = text.split_whitespace().collect();
        assert_eq!(words, ["sim_rollouts_per_s", "1200.5", "rate", "x"]);
    }

    #[test]
    fn json_is_one_object() {
        assert_eq!(object(&figures()), "{\"sim_rollouts_per_s\":1200.5}\n");
    }

    #[test]
    fn instructions_are_read_from_callgrinds_words() {
        let text = "==7== Events    : Ir\n==7== Collected : 264157\n==7==\n";
        assert_eq!(collected(text), Some(264_157.0));
        assert_eq!(collected("==7== nothing"), None);
    }
}
