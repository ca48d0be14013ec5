//! Does lint accept what Argo Rollouts ships? Its examples, documents and end-to-end manifests are
//! read where Go keeps them; nothing of them enters this repository.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::suite::Suite;
use crate::{
    Failure, build,
    servers::{ServersError, go_is_present},
    summary::Summary,
};

/// Where its manifests are.
const FOLDERS: [&str; 3] = ["examples", "docs", "test/e2e"];

/// Manifests that a cluster or the controller refuses too, and why.
const REFUSED: [(&str, &str); 13] = [
    ("examples/helm-blue-green/templates/rollout.yaml", "a template of Helm"),
    ("examples/helm-blue-green/templates/services.yaml", "a template of Helm"),
    ("examples/traffic-management/rollout-linkerd.yaml", "a placeholder without quotes"),
    ("test/e2e/expectedfailures/analysis-run-failfast.yaml", "wrong indentation"),
    ("test/e2e/expectedfailures/malformed-analysisrun.yaml", "memory: invalid"),
    ("test/e2e/expectedfailures/malformed-analysistemplate.yaml", "memory: invalid"),
    ("test/e2e/expectedfailures/malformed-clusteranalysistemplate.yaml", "memory: invalid"),
    ("test/e2e/expectedfailures/malformed-experiment.yaml", "memory: invalid"),
    ("test/e2e/expectedfailures/malformed-rollout-ephemeral.yaml", "memory: invalid"),
    ("test/e2e/expectedfailures/malformed-rollout.yaml", "memory: invalid"),
    ("test/e2e/functional/nginx-template.yaml", "names that are to be replaced"),
    ("test/e2e/step-plugin/disabled-rollout.yaml", "names that are to be replaced"),
    ("test/e2e/step-plugin/template-rollout.yaml", "names that are to be replaced"),
];

/// Manifests in the pages of the documentation that a cluster or the controller refuses too, by page
/// and number of the block, and why.
const REFUSED_BLOCKS: [(&str, usize, &str); 11] = [
    ("analysis/graphite.md", 1, "results is no name in a condition"),
    ("analysis/kayenta.md", 3, "spec of a template of an Experiment"),
    ("analysis/kayenta.md", 4, "count within the provider"),
    ("best-practices.md", 1, "number of a Service, not of its port"),
    ("features/analysis.md", 4, "a number as the value of an argument"),
    ("features/analysis.md", 7, "a number as the value of an argument"),
    ("features/analysis.md", 10, "capitals in a name"),
    ("features/analysis.md", 13, "capitals in a name"),
    ("features/hpa-support.md", 1, "blueGreen | canary as a field"),
    ("features/specification.md", 1, "replicaProgressThreshold as a step"),
    ("features/traffic-management/alb.md", 7, "ping-pong without a rootService"),
];

/// What lint says about parts of a manifest: no YAML, or without what every object needs.
const PARTS: [&str; 3] =
    ["error: yaml: line ", ": Required value", "error: a manifest needs a kind"];

/// Fewer whole manifests than this in the pages mean that they are no longer found.
const FEWEST_BLOCKS: usize = 150;

/// Lints each file and each block of a page by itself, as a person would.
pub fn check() -> Result<Summary, Failure> {
    if !go_is_present() {
        return Err(ServersError::GoIsAbsent.into());
    }
    let sources = Suite::sources_alone()?;
    let program = build::tested_program("gradus")?;
    let mut summary = Summary::default();
    for folder in FOLDERS {
        for file in manifests(&sources.join(folder))? {
            let name = file.strip_prefix(&sources).unwrap_or(&file).display().to_string();
            let is_refused = REFUSED.iter().any(|(refused, _)| *refused == name);
            let (is_accepted, said) = lint(&program, &fs::read_to_string(&file)?)?;
            let is_expected = is_accepted != is_refused;
            if !is_expected {
                println!("{name}:\n{said}");
            }
            summary += Summary::of(is_expected);
        }
    }
    summary += check_pages(&program, &sources.join("docs"))?;
    Ok(summary)
}

/// Proposals describe what never came to be.
fn check_pages(program: &Path, docs: &Path) -> Result<Summary, Failure> {
    let (mut summary, mut whole) = (Summary::default(), 0);
    for page in files(docs, &["md"])? {
        let name = page.strip_prefix(docs).unwrap_or(&page).display().to_string();
        if name.starts_with("proposals/") {
            continue;
        }
        for (number, text) in blocks(&fs::read_to_string(&page)?) {
            let (is_accepted, said) = lint(program, &text)?;
            let is_part = PARTS.iter().any(|part| said.contains(part));
            let mut listed = REFUSED_BLOCKS.iter();
            let is_refused = listed.any(|(page, at, _)| *page == name && *at == number);
            let is_expected = is_accepted != (is_part || is_refused);
            if !is_expected {
                println!("docs/{name}, block {number}:\n{said}");
            }
            whole += usize::from(is_accepted);
            summary += Summary::of(is_expected);
        }
    }
    if whole < FEWEST_BLOCKS {
        println!("docs: {whole} whole manifests in the pages, expected {FEWEST_BLOCKS} or more");
        summary += Summary::of(false);
    }
    Ok(summary)
}

/// Is a text accepted, and what is said about it?
fn lint(program: &Path, text: &str) -> Result<(bool, String), Failure> {
    let mut child = Command::new(program)
        .args(["lint", "-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(text.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    Ok((output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned()))
}

/// The fenced YAML of a page that says what it is, with its number among all of it.
fn blocks(page: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let (mut number, mut indent) = (0, None);
    for line in page.lines() {
        let (blanks, rest) = line.split_at(line.len() - line.trim_start().len());
        match indent {
            None if rest.starts_with("```yaml") || rest.starts_with("```yml") => {
                number += 1;
                indent = Some(blanks.len());
                found.push((number, String::new()));
            }
            Some(begun) if rest.starts_with("```") && blanks.len() == begun => indent = None,
            Some(begun) => {
                let kept = line.get(begun.min(blanks.len())..).unwrap_or_default();
                if let Some((_, text)) = found.last_mut() {
                    text.push_str(kept);
                    text.push('\n');
                }
            }
            None => {}
        }
    }
    found.retain(|(_, text)| is_manifest(text));
    found
}

/// All manifests below a folder. Pages of a documentation's tool are none.
fn manifests(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in files(folder, &["yaml", "yml"])? {
        if is_manifest(&fs::read_to_string(&path)?) {
            found.push(path);
        }
    }
    Ok(found)
}

/// All files below a folder with one of these endings.
fn files(folder: &Path, endings: &[&str]) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path, endings)?);
        } else if path.extension().is_some_and(|found| endings.iter().any(|one| found == *one)) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Patches and values of other tools have no kind.
fn is_manifest(text: &str) -> bool {
    let has = |key: &str| text.lines().any(|line| line.starts_with(key));
    has("apiVersion:") && has("kind:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_say_what_they_are_are_found_where_they_stand() {
        let page = "text\n```yaml\nspec: {}\n```\n- item\n    ```yaml title=\"x\"\n    \
                    apiVersion: v1\n    kind: Pod\n      a: b\n    ```\n```\nkind: no\n```\n";
        let expected = (2, "apiVersion: v1\nkind: Pod\n  a: b\n".to_owned());
        assert_eq!(blocks(page), [expected]);
    }
}
