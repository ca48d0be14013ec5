//! `cargo xtask tidy`: is the repository as ARCHITECTURE.md and STYLE.md say? One line for each
//! finding: `path:line: what, expected`.

mod code;
mod files;
mod functions;
mod licence;
mod modules;
mod names;
mod packages;

use std::{fmt, fs, io, path::Path, process::Command};

use thiserror::Error;

use crate::{Failure, repository, summary::Summary};
use code::Source;
pub use licence::ALLOWED as LICENCES;
use packages::Metadata;

/// Why nothing could be checked.
#[derive(Debug, Error)]
pub enum TidyError {
    #[error("{command}: {message}")]
    Command { command: &'static str, message: String },
    #[error("{path}: {source}")]
    File { path: String, source: io::Error },
    #[error("cargo metadata: expected its documented form: {0}")]
    Metadata(#[from] serde_json::Error),
    #[error("no arguments are expected, found {0}")]
    Argument(String),
}

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    path: String,
    line: usize,
    text: String,
}

impl Finding {
    fn new(path: &str, line: usize, text: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, text: text.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}", self.path, self.line, self.text)
    }
}

/// Runs the task; each rule is one check.
pub fn run(arguments: &[String]) -> Result<Summary, Failure> {
    if let Some(argument) = arguments.first() {
        return Err(TidyError::Argument(argument.clone()).into());
    }
    let mut summary = Summary::default();
    for mut findings in check(&repository())? {
        findings.sort();
        for finding in &findings {
            println!("{finding}");
        }
        summary += if findings.is_empty() {
            Summary::of(true)
        } else {
            Summary { failed: findings.len(), ..Summary::default() }
        };
    }
    Ok(summary)
}

/// What each rule found.
fn check(root: &Path) -> Result<Vec<Vec<Finding>>, TidyError> {
    let tracked = tracked(root)?;
    let sources = sources(root, &tracked)?;
    let metadata = metadata(root)?;
    let lock = read(root, "Cargo.lock")?;
    Ok(vec![
        over(&sources, files::length),
        over(&sources, files::first_line),
        over(&sources, files::unfinished),
        over(&sources, files::api_strings),
        over(&sources, functions::length),
        modules::orphans(root, &sources, &metadata),
        names::ambiguous(&sources),
        names::unused(&sources),
        packages::arrows(root, &metadata),
        packages::unused(root, &metadata, &sources),
        packages::licences(&lock, &metadata),
        packages::sources(&lock, &metadata),
        packages::features(&lock, &metadata),
        machine_paths(root, &tracked)?,
    ])
}

fn over(sources: &[Source], rule: fn(&Source) -> Vec<Finding>) -> Vec<Finding> {
    sources.iter().flat_map(rule).collect()
}

/// Every file of the repository, those not yet committed included.
pub fn tracked(root: &Path) -> Result<Vec<String>, TidyError> {
    let command = "git ls-files";
    let arguments = ["ls-files", "--cached", "--others", "--exclude-standard"];
    let text = output(command, Command::new("git").current_dir(root).args(arguments))?;
    let mut files: Vec<String> = text.lines().map(str::to_owned).collect();
    // A file that is deleted but not yet committed is still listed.
    files.retain(|path| root.join(path).is_file());
    Ok(files)
}

fn sources(root: &Path, tracked: &[String]) -> Result<Vec<Source>, TidyError> {
    let rust = tracked.iter().filter(|path| path.ends_with(".rs"));
    rust.map(|path| Ok(Source::new(path, read(root, path)?))).collect()
}

fn metadata(root: &Path) -> Result<Metadata, TidyError> {
    let arguments = ["metadata", "--format-version=1", "--locked"];
    let text =
        output("cargo metadata", Command::new(env!("CARGO")).current_dir(root).args(arguments))?;
    Ok(serde_json::from_str(&text)?)
}

/// Names of this machine's folders: they mean nothing on another one.
fn machine_paths(root: &Path, tracked: &[String]) -> Result<Vec<Finding>, TidyError> {
    let home = std::env::var("HOME").unwrap_or_default();
    let names: Vec<String> =
        [root.display().to_string(), home].into_iter().filter(|name| name.len() > 1).collect();
    let mut findings = Vec::new();
    for path in tracked {
        let Ok(text) = fs::read_to_string(root.join(path)) else {
            continue; // Not text: an image, for example.
        };
        findings.extend(files::machine_paths(path, &text, &names));
    }
    Ok(findings)
}

fn read(root: &Path, path: &str) -> Result<String, TidyError> {
    fs::read_to_string(root.join(path))
        .map_err(|source| TidyError::File { path: path.to_owned(), source })
}

fn output(name: &'static str, command: &mut Command) -> Result<String, TidyError> {
    let failed = |message: String| TidyError::Command { command: name, message };
    let output = command.output().map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    String::from_utf8(output.stdout).map_err(|error| failed(error.to_string()))
}
