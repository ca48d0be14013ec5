//! Does lint accept what Argo Rollouts ships? Its examples, documents and end-to-end manifests are
//! read where Go keeps them; nothing of them enters this repository.

use std::{
    fs, io,
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
const REFUSED: [(&str, &str); 12] = [
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
    ("test/e2e/step-plugin/template-rollout.yaml", "names that are to be replaced"),
];

/// Lints each file by itself, as a person would.
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
            let output = Command::new(&program)
                .args(["lint", "-f"])
                .arg(&file)
                .stdin(Stdio::null())
                .output()?;
            let is_expected = output.status.success() != is_refused;
            if !is_expected {
                println!("{name}:\n{}", String::from_utf8_lossy(&output.stderr));
            }
            summary += Summary::of(is_expected);
        }
    }
    Ok(summary)
}

/// All manifests below a folder. Pages of a documentation's tool are none.
fn manifests(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(manifests(&path)?);
            continue;
        }
        let is_yaml = path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml");
        if is_yaml && is_manifest(&fs::read_to_string(&path)?) {
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
