//! `lint`: would these manifests work? Every kind of ours, without a cluster, each finding with its
//! place.

mod advice;
mod among;
mod analyses;
mod beside;
mod conditions;
mod experiments;
mod finding;
mod ingresses;
mod kinds;
mod metrics;
mod numbers;
mod plugins;
mod pods;
mod promql;
mod providers;
mod report;
mod rollout;
mod scalers;
mod schema;
#[cfg(test)]
mod tests;
mod words;

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::Args;

use crate::output;
use beside::Beside;
use finding::{Finding, Severity, Stage};
use gradus_manifest::{self as manifest, Document, Source};
use report::Format;

/// Check manifests without a cluster
///
/// What is wrong is printed as `kubectl argo rollouts` does, and on standard error with file, line
/// and column. Warnings do not change the exit code, which is 1 where something is wrong.
#[derive(Debug, Args)]
pub struct Arguments {
    /// File, folder (with all below it) or - for standard input; may be repeated
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true)]
    filename: Vec<PathBuf>,
    /// Warnings fail too: the exit code is 1 where there is any
    #[arg(long)]
    strict: bool,
    /// How findings are printed: for people, as JSON, as SARIF 2.1.0 or as annotations of GitHub
    /// Actions
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
    /// Further arguments are ignored
    #[arg(hide = true)]
    rest: Vec<String>,
}

/// Checks everything and says what was found.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    for path in &arguments.filename {
        // Nothing found must not read like nothing wrong.
        if path.is_dir() && files(path)?.is_empty() {
            bail!("no .yaml, .yml or .json file in {}", path.display());
        }
    }
    let sources = sources(&arguments.filename)?;
    // Among others in a folder a file may be empty; one that is named may not.
    let is_named =
        |source: &Source| arguments.filename.iter().any(|path| path == Path::new(&source.name));
    let is_empty = |source: &Arc<Source>| manifest::read(source).is_ok_and(|all| all.is_empty());
    if let Some(source) = sources.iter().find(|one| is_named(one) && is_empty(one)) {
        bail!("no manifest in {}", source.name);
    }
    let findings = check(&sources);
    let is_fine = |one: &Finding| one.severity == Severity::Warning && !arguments.strict;
    match report::text(arguments.output, &findings) {
        Some(text) if text.is_empty() => {}
        Some(text) => output::say(&text)?,
        None => tell(&findings, arguments.strict)?,
    }
    let is_refused = !findings.iter().all(is_fine);
    Ok(if is_refused { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Everything that is wrong or doubtful with these texts, in their order.
fn check(sources: &[Arc<Source>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut documents: Vec<Document> = Vec::new();
    for source in sources {
        match manifest::read(source) {
            Ok(found) => documents.extend(found),
            Err(malformed) => findings.push(Finding::malformed(source, &malformed)),
        }
    }
    findings.extend(check_documents(&documents));
    findings
}

/// Everything that is wrong or doubtful with these documents, in their order; each mistake once.
fn check_documents(documents: &[Document]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for document in documents {
        let beside = Beside { document, all: documents };
        let mut found = schema::check(document);
        let is_rollout = rollout::is_rollout(document);
        found.extend(if is_rollout { of_rollout(beside) } else { analyses::of_others(beside) });
        found.extend(plugins::check(beside));
        found.extend(pods::check(document));
        found.extend(ingresses::check(beside));
        found.extend(among::check(beside));
        found.extend(scalers::check(beside));
        for one in found {
            let one = words::plain(document, one);
            if !findings.iter().any(|known| known.covers(&one)) {
                findings.push(one);
            }
        }
    }
    together(findings)
}

/// Fields that are missing at one place are one mistake. Advice waits until a file has no errors: it
/// may be about what they change.
fn together(all: Vec<Finding>) -> Vec<Finding> {
    let has_errors = |source: &Arc<Source>| {
        let mut errors = all.iter().filter(|one| one.severity == Severity::Error);
        errors.any(|one| Arc::ptr_eq(&one.source, source))
    };
    let kept = all.iter().filter(|one| one.rule != advice::RULE || !has_errors(&one.source));
    let mut findings: Vec<Finding> = Vec::new();
    for one in kept {
        if !findings.iter_mut().any(|known| known.takes_in(one)) {
            findings.push(one.clone());
        }
    }
    findings
}

/// What must be mended in these documents before they can be tried, each shown in its place.
pub fn refused(documents: &[Document]) -> Vec<String> {
    let found = check_documents(documents).into_iter();
    let wrong = found.filter(|finding| finding.severity == Severity::Error);
    wrong.map(|finding| finding.to_string()).collect()
}

/// What is wrong with a Rollout; where nothing is, what will surprise.
fn of_rollout(beside: Beside<'_>) -> Vec<Finding> {
    let (mut findings, spec) = rollout::check(beside);
    findings.extend(numbers::check(beside.document));
    findings.extend(advice::of(beside.document, &spec));
    findings
}

/// Prints the findings: the contract's lines on standard output, places on standard error.
fn tell(findings: &[Finding], is_strict: bool) -> std::io::Result<()> {
    let errors = || findings.iter().filter(|finding| finding.severity == Severity::Error);
    let is_undecodable = errors().any(|finding| finding.stage == Stage::Decoding);
    for finding in findings {
        output::warn(&finding.to_string());
    }
    if !is_undecodable {
        for error in errors() {
            output::say(error.for_scripts())?;
        }
    }
    let first = errors().find(|error| error.stage == Stage::Decoding).or_else(|| errors().next());
    match first {
        Some(error) => output::warn(&format!("Error: {}", error.in_one_line())),
        None if is_strict && !findings.is_empty() => {
            let (count, plural) = (findings.len(), if findings.len() == 1 { "" } else { "s" });
            output::warn(&format!("Error: {count} warning{plural}, and --strict lets none pass"));
        }
        None => {}
    }
    Ok(())
}

/// The texts of these files and folders, and of standard input.
pub fn sources(paths: &[PathBuf]) -> anyhow::Result<Vec<Arc<Source>>> {
    let mut found = Vec::new();
    for path in paths {
        if path == Path::new("-") {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("cannot read standard input")?;
            found.push(Arc::new(Source { name: "-".to_owned(), text }));
            continue;
        }
        for file in files(path)? {
            let text = std::fs::read_to_string(&file)
                .with_context(|| format!("cannot read {}", file.display()))?;
            found.push(Arc::new(Source { name: file.display().to_string(), text }));
        }
    }
    Ok(found)
}

/// A file itself; of a folder all manifests below it, by name.
fn files(path: &Path) -> anyhow::Result<BTreeSet<PathBuf>> {
    if !path.is_dir() {
        return Ok(BTreeSet::from([path.to_owned()]));
    }
    let mut found = BTreeSet::new();
    let entries =
        std::fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
    for entry in entries {
        let path = entry.with_context(|| format!("cannot read {}", path.display()))?.path();
        let is_manifest = path.extension().is_some_and(|extension| {
            ["yaml", "yml", "json"].iter().any(|known| extension == *known)
        });
        if path.is_dir() || is_manifest {
            found.extend(files(&path)?);
        }
    }
    Ok(found)
}
