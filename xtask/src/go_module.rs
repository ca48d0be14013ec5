//! Where are the files of a Go module? In Go's own cache, downloaded if they are not there.

use std::{path::PathBuf, process::Command};

use serde_json::Value;
use thiserror::Error;

/// Why there are no files.
#[derive(Debug, Error)]
#[error("go mod download {module}: {message}")]
pub struct GoModuleError {
    module: String,
    message: String,
}

/// The folder of a module.
pub fn folder(module: &str, version: &str) -> Result<PathBuf, GoModuleError> {
    let module = format!("{module}@{version}");
    let failed = |message: String| GoModuleError { module: module.clone(), message };
    let mut go = Command::new("go");
    // Outside any module: what is fetched must not depend on one.
    go.current_dir(std::env::temp_dir()).args(["mod", "download", "-json", &module]);
    let output = go.output().map_err(|error| failed(error.to_string()))?;
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let folder = answer["Dir"].as_str().map(PathBuf::from);
    folder.ok_or_else(|| {
        let said = answer["Error"].as_str().map(str::to_owned);
        failed(said.unwrap_or_else(|| String::from_utf8_lossy(&output.stderr).trim().to_owned()))
    })
}
