//! `cargo xtask bench`: how fast, how small, and is that within its budget? Each figure with the
//! command behind it.
//!
//! Measured is what is shipped (`--profile dist`), which takes minutes to link.

mod real;

use std::{
    fmt, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::{Failure, build, repository, summary::Summary};

/// Name, way and budget of each figure, in the order of the table. Instructions and memory have a
/// budget; a rate per second says as much about the machine as about the program and has none.
const FIGURES: [(&str, Way, Budget); 11] = [
    ("sim_rollouts_per_s", Way::Rate, Budget::Unlimited),
    ("sim_rollout_instructions", Way::ScenarioInstructions, Budget::AtMost(6_280_000.0)),
    ("simulate_2h_ms", Way::Simulate("hours"), Budget::AtMost(30.0)),
    ("simulate_1000_pods_ms", Way::Simulate("pods"), Budget::AtMost(80.0)),
    ("index_10k_rss_mb", Way::Memory, Budget::AtMost(120.0)),
    ("background_500_runs_mb", Way::Runs, Budget::AtMost(20.0)),
    ("decide_mid_canary_instructions", Way::Instructions("decide"), Budget::AtMost(60_000.0)),
    ("decide_settled_instructions", Way::Instructions("decide-settled"), Budget::AtMost(30_000.0)),
    (
        "reconcile_settled_instructions",
        Way::Instructions("reconcile-settled"),
        Budget::AtMost(40_000.0),
    ),
    ("template_hash_instructions", Way::Instructions("hash"), Budget::AtMost(15_000.0)),
    ("decode_rollout_instructions", Way::Instructions("decode"), Budget::AtMost(155_000.0)),
];

/// Two numbers of repetitions: what start and end cost is in both, and falls out.
const FEW: u32 = 20;
const MANY: u32 = 120;
/// The same for whole scenarios.
const FEW_SCENARIOS: u32 = 2;
const MANY_SCENARIOS: u32 = 12;

/// Rollouts in the index whose memory is measured.
const INDEXED: &str = "10000";

/// AnalysisRuns whose memory is measured.
const RUNS: &str = "500";

/// The scenario that is measured: a first deploy and one update.
const SCENARIO: &str = "scenarios/canary_pause_promote.yaml";

#[derive(Clone, Copy, Debug)]
enum Way {
    /// Runs a second of one scenario in virtual time, checkers on, on one core.
    Rate,
    /// Resident memory of an index with 10,000 rollouts of two ReplicaSets each.
    Memory,
    /// Memory that background AnalysisRuns add, all measured at once.
    Runs,
    /// Instructions of one operation, as callgrind counts them: they repeat exactly, seconds do
    /// not.
    Instructions(&'static str),
    /// Instructions of one run of the scenario.
    ScenarioInstructions,
    /// Milliseconds of `gradus simulate`: two hours in five steps, or 1,000 pods in twenty.
    Simulate(&'static str),
}

/// What a figure may be.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Budget {
    AtMost(f64),
    /// It is printed, and may be anything.
    Unlimited,
}

impl Budget {
    fn is_kept(self, value: f64) -> bool {
        match self {
            Self::AtMost(most) => value <= most,
            Self::Unlimited => true,
        }
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(most) => write!(out, "at most {most}"),
            Self::Unlimited => out.write_str("no limit"),
        }
    }
}

/// Why there is no figure.
#[derive(Debug, Error)]
enum BenchError {
    #[error("unknown option {0}: expected --json or --real")]
    UnknownOption(String),
    #[error("{program} could not be run: {source}")]
    NotRun { program: String, source: io::Error },
    #[error("{program} failed:\n{message}")]
    Failed { program: String, message: String },
    #[error("{what}: expected {expected} in the output, found:\n{found}")]
    Output { what: String, expected: &'static str, found: String },
    #[error("over budget: {0}")]
    OverBudget(String),
}

/// A number, and how to get it again.
struct Figure {
    name: &'static str,
    value: f64,
    budget: Budget,
    command: String,
}

/// The program that measures.
struct Program(PathBuf);

/// `cargo xtask soak`.
pub use real::soak;

/// Measures everything and prints a table, or one object.
pub fn run(arguments: &[String]) -> Result<Summary, Failure> {
    let json = match arguments {
        [option, rest @ ..] if option == "--real" => return real::run(rest),
        [] => false,
        [option] if option == "--json" => true,
        [.., last] => return Err(BenchError::UnknownOption(last.clone()).into()),
    };
    let built = ["--profile", "dist", "--package", "gradus-lab", "--example", "measure"];
    let program = Program(build::program(&built)?);
    let mut figures = Vec::new();
    for (name, way, budget) in FIGURES {
        let (value, command) = (program.value(way)?, way.command());
        figures.push(Figure { name, value, budget, command });
    }
    print!("{}", if json { object(&figures) } else { table(&figures) });
    match over_budget(&figures) {
        None => Ok(Summary::default()),
        Some(over) => Err(BenchError::OverBudget(over).into()),
    }
}

impl Way {
    /// What a person types for the same number.
    fn command(self) -> String {
        let example = "cargo run --profile dist -p gradus-lab --example measure --";
        match self {
            Self::Rate => format!("{example} scenario {SCENARIO}"),
            Self::Memory => format!("{example} index {INDEXED}"),
            Self::Runs => format!("{example} runs {RUNS}"),
            Self::Simulate(what) => format!("{example} {what}"),
            Self::Instructions(what) => instructions(what, FEW, MANY),
            Self::ScenarioInstructions => {
                instructions(&format!("scenario {SCENARIO}"), FEW_SCENARIOS, MANY_SCENARIOS)
            }
        }
    }
}

/// What a person types, and calculates, for the instructions of one repetition.
fn instructions(what: &str, few: u32, many: u32) -> String {
    format!(
        "(I({many}) - I({few})) / {}, I(N) = valgrind --tool=callgrind \
         target/dist/examples/measure {what} N",
        many - few
    )
}

impl Program {
    fn value(&self, way: Way) -> Result<f64, BenchError> {
        match way {
            Way::Rate => {
                let text = output(Command::new(&self.0).args(["scenario", SCENARIO]))?;
                found(told_rate(&text), way, "`: N a second`", text)
            }
            Way::Memory => {
                let text = output(Command::new(&self.0).args(["index", INDEXED]))?;
                let report: Value = serde_json::from_str(&text).unwrap_or_default();
                let megabytes = report["after_kb"].as_f64().map(|kilobytes| kilobytes / 1024.0);
                found(megabytes, way, "`after_kb`", text)
            }
            Way::Runs => {
                let text = output(Command::new(&self.0).args(["runs", RUNS]))?;
                let report: Value = serde_json::from_str(&text).unwrap_or_default();
                let megabytes = report["added_kb"].as_f64().map(|kilobytes| kilobytes / 1024.0);
                found(megabytes, way, "`added_kb`", text)
            }
            Way::Simulate(what) => {
                let text = output(Command::new(&self.0).arg(what))?;
                let number = text.trim().strip_suffix(" ms").and_then(|text| text.parse().ok());
                found(number, way, "`N ms`", text)
            }
            Way::Instructions(what) => {
                let count = |times| count(way, &self.0, &[what], times);
                Ok((count(MANY)? - count(FEW)?) / f64::from(MANY - FEW))
            }
            Way::ScenarioInstructions => {
                let count = |times| count(way, &self.0, &["scenario", SCENARIO], times);
                let extra = count(MANY_SCENARIOS)? - count(FEW_SCENARIOS)?;
                Ok(extra / f64::from(MANY_SCENARIOS - FEW_SCENARIOS))
            }
        }
    }
}

/// All instructions of a program that does something so many times.
fn count(way: Way, program: &Path, what: &[&str], times: u32) -> Result<f64, BenchError> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    let text = output(valgrind.arg(program).args(what).arg(times.to_string()))?;
    found(collected(&text), way, "`Collected : N`", text)
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

/// From `1000 runs in 3.03 s: 330 a second`: the rate.
fn told_rate(text: &str) -> Option<f64> {
    let (before, _) = text.split_once(" a second")?;
    before.rsplit(' ').next()?.parse().ok()
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
    let row = |Figure { name, value, budget, command }: &Figure| {
        format!("{name:<34}{value:>12.1}  {:<18}  {command}\n", budget.to_string())
    };
    figures.iter().map(row).collect()
}

/// Which figures are not as they should be, in words; `None` when all are.
fn over_budget(figures: &[Figure]) -> Option<String> {
    let over = figures.iter().filter(|figure| !figure.budget.is_kept(figure.value));
    let words = over.map(|Figure { name, value, budget, .. }| format!("{name} {value}, {budget}"));
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| words.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures() -> Vec<Figure> {
        let (budget, command) = (Budget::AtMost(1300.0), "count x".to_owned());
        vec![Figure { name: "decide_instructions", value: 1200.5, budget, command }]
    }

    #[test]
    fn a_figure_beyond_its_budget_is_named() {
        let figure = |value: f64, budget: Budget| Figure { value, budget, ..figures().remove(0) };
        let cases = [
            ("without a limit", 0.1, Budget::Unlimited, None),
            ("small enough", 90.0, Budget::AtMost(90.0), None),
            ("too much", 91.0, Budget::AtMost(90.0), Some("91, at most 90")),
        ];
        for (what, value, budget, expected) in cases {
            let expected = expected.map(|words| format!("decide_instructions {words}"));
            assert_eq!(over_budget(&[figure(value, budget)]), expected, "{what}");
        }
        assert_eq!(over_budget(&[]), None);
    }

    #[test]
    fn a_row_names_the_figure_and_its_command() {
        let text = table(&figures());
        let words: Vec<&str> = text.split_whitespace().collect();
        let expected = ["decide_instructions", "1200.5", "at", "most", "1300", "count", "x"];
        assert_eq!(words, expected);
    }

    #[test]
    fn json_is_one_object() {
        assert_eq!(object(&figures()), "{\"decide_instructions\":1200.5}\n");
    }

    #[test]
    fn rates_are_read_from_the_words_of_the_program() {
        assert_eq!(told_rate("1000 runs in 3.03 s: 330 a second\n"), Some(330.0));
        assert_eq!(told_rate("nothing"), None);
    }

    #[test]
    fn instructions_are_read_from_callgrinds_words() {
        let text = "==7== Events    : Ir\n==7== Collected : 264157\n==7==\n";
        assert_eq!(collected(text), Some(264_157.0));
        assert_eq!(collected("==7== nothing"), None);
    }
}
