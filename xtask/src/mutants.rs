//! `cargo xtask mutants`: do the tests notice when the engine is changed? cargo-mutants makes one
//! deliberate change after the other; the engine's own tests are asked first, the scenarios about what
//! these miss. Changes that are known to make no difference are left out, with their reasons.

mod catalogue;

use std::{
    fs, io,
    num::ParseIntError,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use thiserror::Error;

use crate::{
    Failure, repository,
    servers::{self, ServersError},
    summary::Summary,
};
use catalogue::{Equivalent, Mutant};

/// The version of cargo-mutants; another makes other changes.
const VERSION: &str = "27.1.0";

/// What is changed when no path is given: the parts that act on other people's traffic.
const PARTS: [&str; 3] =
    ["crates/engine/src/rollout", "crates/engine/src/traffic", "crates/engine/src/interlock"];

/// Changes that are known to make no difference.
const EQUIVALENTS: &str = "xtask/mutants.json";

/// How many changes are tried unless all are asked for; each takes about a quarter of a minute.
const SAMPLE: usize = 50;

/// A test that takes longer waits for something that the change has removed. Seconds.
const TESTS_WITHIN: &str = "300";

#[derive(Debug, Error)]
enum MutantsError {
    #[error(
        "unknown option {0}: expected --all, --sample COUNT, --seed SEED or paths below crates/engine/src"
    )]
    UnknownOption(String),
    #[error("{0} expects a value")]
    NoValue(String),
    #[error("{option} {value}: {source}")]
    NoNumber { option: String, value: String, source: ParseIntError },
    #[error("{path}: expected a file or folder below {}", PARTS[0])]
    NoPath { path: String },
    #[error("cargo {what} failed:\n{message}")]
    Failed { what: String, message: String },
    #[error("{path}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("{path}: {source}")]
    Json { path: PathBuf, source: serde_json::Error },
    #[error("{EQUIVALENTS}: no such change: {0}; expected one that cargo-mutants still makes")]
    Outdated(String),
    #[error(transparent)]
    Cache(#[from] ServersError),
}

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wish {
    /// None for all.
    sample: Option<usize>,
    seed: u64,
    paths: Vec<String>,
}

/// Who is asked whether a change is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Jury {
    Engine,
    Scenarios,
}

/// Runs the task.
pub fn run(arguments: &[String]) -> Result<Summary, Failure> {
    let wish = Wish::parse(arguments)?;
    let program = installed()?;
    let all = listed(&program, &wish.paths)?;
    let known = equivalents(&all, &wish)?;
    let (equivalent, rest): (Vec<Mutant>, Vec<Mutant>) =
        all.into_iter().partition(|one| known.iter().any(|other| other.is(one)));
    for mutant in &equivalent {
        let reason = known.iter().find(|other| other.is(mutant)).map(|other| other.reason.as_str());
        println!("  equivalent: {}: {}", mutant.name, reason.unwrap_or_default());
    }
    let chosen = match wish.sample {
        Some(count) => catalogue::sample(rest, count, wish.seed),
        None => rest,
    };
    println!("  {} changes, seed {}", chosen.len(), wish.seed);
    let (missed, first) = tried(&program, &chosen, Jury::Engine)?;
    println!("  the engine's tests: {first}");
    let (missed, unviable) = match missed.is_empty() {
        true => (missed, first.unviable),
        false => {
            let (missed, second) = tried(&program, &missed, Jury::Scenarios)?;
            println!("  the scenarios, about what these missed: {second}");
            (missed, first.unviable)
        }
    };
    for mutant in &missed {
        println!("  MISSED: {}", mutant.name);
    }
    let viable = chosen.len() - unviable;
    let caught = viable - missed.len();
    println!("  {caught} of {viable} are caught, {} %", 100 * caught / viable.max(1));
    Ok(Summary { passed: caught, failed: missed.len(), skipped: unviable })
}

impl Wish {
    fn parse(arguments: &[String]) -> Result<Self, MutantsError> {
        let mut wish = Self { sample: Some(SAMPLE), seed: 1, paths: Vec::new() };
        let mut arguments = arguments.iter();
        while let Some(word) = arguments.next() {
            let mut number = || {
                let value = arguments.next().ok_or_else(|| MutantsError::NoValue(word.clone()))?;
                value.parse::<u64>().map_err(|source| MutantsError::NoNumber {
                    option: word.clone(),
                    value: value.clone(),
                    source,
                })
            };
            match word.as_str() {
                "--all" => wish.sample = None,
                "--sample" => wish.sample = usize::try_from(number()?).ok(),
                "--seed" => wish.seed = number()?,
                option if option.starts_with('-') => {
                    return Err(MutantsError::UnknownOption(option.to_owned()));
                }
                path => wish.paths.push(path.trim_end_matches('/').to_owned()),
            }
        }
        if wish.paths.is_empty() {
            wish.paths = PARTS.map(str::to_owned).to_vec();
        }
        Ok(wish)
    }
}

impl Jury {
    /// What cargo-mutants runs for each change.
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Engine => &["--test-package", "gradus-engine"],
            Self::Scenarios => {
                &["--test-package", "gradus-lab", "--cargo-test-arg=--test=scenarios"]
            }
        }
    }
}

/// cargo-mutants in the project's own cache, installed if it is not there.
fn installed() -> Result<PathBuf, MutantsError> {
    let root = servers::cache()?.join(format!("cargo-mutants-{VERSION}"));
    let program = root.join("bin/cargo-mutants");
    if !program.exists() {
        eprintln!("installing cargo-mutants {VERSION} into {} …", root.display());
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["install", "cargo-mutants", "--version", VERSION, "--locked", "--root"]);
        let output = output_of(cargo.arg(&root))?;
        succeeded(&output, "install cargo-mutants")?;
    }
    Ok(program)
}

/// Every change that can be made below these paths.
fn listed(program: &Path, paths: &[String]) -> Result<Vec<Mutant>, MutantsError> {
    let mut command = command(program);
    command.args(["--list", "--json", "--package", "gradus-engine"]);
    for path in paths {
        let is_folder = repository().join(path).is_dir();
        if !is_folder && !repository().join(path).is_file() {
            return Err(MutantsError::NoPath { path: path.clone() });
        }
        // A folder's own module lies beside it.
        let beside = format!("{path}.rs");
        if is_folder {
            command.args(["--file", &format!("{path}/**"), "--file", &beside]);
        } else {
            command.args(["--file", path]);
        }
    }
    let output = output_of(&mut command)?;
    succeeded(&output, "mutants --list")?;
    let mut all: Vec<Mutant> = serde_json::from_slice(&output.stdout)
        .map_err(|source| MutantsError::Json { path: program.to_owned(), source })?;
    for mutant in &mut all {
        let path = repository().join(&mutant.file);
        let text = fs::read_to_string(&path).map_err(|source| file(&path, source))?;
        mutant.find_line(&text);
    }
    Ok(all)
}

/// The list of the repository. All of it must still be made, where everything is looked at.
fn equivalents(all: &[Mutant], wish: &Wish) -> Result<Vec<Equivalent>, MutantsError> {
    let path = repository().join(EQUIVALENTS);
    let text = fs::read_to_string(&path).map_err(|source| file(&path, source))?;
    let known: Vec<Equivalent> =
        serde_json::from_str(&text).map_err(|source| MutantsError::Json { path, source })?;
    let is_made = |one: &&Equivalent| all.iter().any(|mutant| one.is(mutant));
    let is_whole = wish.paths == PARTS;
    match known.iter().find(|one| is_whole && !is_made(one)) {
        Some(outdated) => Err(MutantsError::Outdated(outdated.change.clone())),
        None => Ok(known),
    }
}

/// What a jury missed, and its figures.
fn tried(
    program: &Path,
    chosen: &[Mutant],
    jury: Jury,
) -> Result<(Vec<Mutant>, catalogue::Figures), MutantsError> {
    let folder = repository().join(format!("target/mutants-{jury:?}").to_lowercase());
    fs::create_dir_all(&folder).map_err(|source| file(&folder, source))?;
    let lines = folder.join("lines.diff");
    fs::write(&lines, catalogue::difference(chosen)).map_err(|source| file(&lines, source))?;
    let mut command = command(program);
    command
        .args(["--package", "gradus-engine", "--jobs", "1", "--no-times", "--colors", "never"])
        .args(["--timeout", TESTS_WITHIN, "--re", &catalogue::pattern(chosen), "--in-diff"])
        .arg(&lines)
        .arg("--output")
        .arg(&folder)
        .args(jury.arguments());
    // Its exit code says that something was missed; what, is in its files.
    let output = output_of(&mut command)?;
    let results = folder.join("mutants.out");
    let among = |name: &str| -> Result<Vec<Mutant>, MutantsError> {
        let path = results.join(name);
        let text = fs::read_to_string(&path).map_err(|source| file(&path, source))?;
        let is_named = |one: &&Mutant| text.lines().any(|line| line == one.name);
        Ok(chosen.iter().filter(is_named).cloned().collect())
    };
    let missed = among("missed.txt")?;
    let figures = catalogue::Figures {
        caught: among("caught.txt")?.len() + among("timeout.txt")?.len(),
        missed: missed.len(),
        unviable: among("unviable.txt")?.len(),
    };
    if figures.sum() != chosen.len() {
        let message = String::from_utf8_lossy(&output.stdout).into_owned();
        return Err(MutantsError::Failed { what: "mutants".to_owned(), message });
    }
    Ok((missed, figures))
}

fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(repository()).arg("mutants").stdin(Stdio::null());
    command
}

fn output_of(command: &mut Command) -> Result<Output, MutantsError> {
    let program = PathBuf::from(command.get_program());
    command.output().map_err(|source| file(&program, source))
}

fn succeeded(output: &Output, what: &str) -> Result<(), MutantsError> {
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(MutantsError::Failed { what: what.to_owned(), message })
}

fn file(path: &Path, source: io::Error) -> MutantsError {
    MutantsError::File { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_the_default_and_paths_narrow_it() {
        let parse = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            Wish::parse(&words)
        };
        let usual = parse(&[]).unwrap();
        assert_eq!((usual.sample, usual.paths), (Some(SAMPLE), PARTS.map(str::to_owned).to_vec()));
        assert_eq!(parse(&["--all"]).unwrap().sample, None);
        let narrow =
            parse(&["--sample", "9", "--seed", "4", "crates/engine/src/traffic/"]).unwrap();
        let paths = vec!["crates/engine/src/traffic".to_owned()];
        assert_eq!(narrow, Wish { sample: Some(9), seed: 4, paths });
        for bad in [&["--sample"][..], &["--seed", "x"], &["--every"]] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn every_equivalent_change_has_a_line_of_the_sources_and_a_reason() {
        let text = fs::read_to_string(repository().join(EQUIVALENTS)).unwrap();
        let known: Vec<Equivalent> = serde_json::from_str(&text).unwrap();
        for one in known {
            let source = fs::read_to_string(repository().join(&one.file)).unwrap();
            assert!(source.lines().any(|line| line.trim() == one.line), "{}", one.change);
            assert!(!one.reason.is_empty(), "{}", one.change);
        }
    }
}
