//! Where are the sources of Argo's suite and its compiled test program, and how do they get there?

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use thiserror::Error;

use crate::{
    go_module::{self, GoModuleError},
    servers::{self, ServersError},
};

/// The module and the version whose behaviour we promise.
const MODULE: &str = "github.com/argoproj/argo-rollouts";
const VERSION: &str = "v1.10.1";

/// The suite's package, and the plugin that its step-plugin tests start.
const PACKAGE: &str = "./test/e2e";
const PLUGIN: &str = "./test/cmd/step-plugin-e2e";

/// Argo Rollouts itself.
const CONTROLLER: &str = "./cmd/rollouts-controller";

/// Why there is no suite.
#[derive(Debug, Error)]
pub enum SuiteError {
    #[error(transparent)]
    Cache(#[from] ServersError),
    #[error(transparent)]
    Module(#[from] GoModuleError),
    #[error("go {what}: {message}")]
    Failed { what: String, message: String },
    #[error("{path}: {source}")]
    File { path: PathBuf, source: io::Error },
}

/// Its sources in Go's module cache, its programs in ours.
#[derive(Clone, Debug)]
pub struct Suite {
    sources: PathBuf,
    built: PathBuf,
}

impl Suite {
    /// Fetches and builds what is missing.
    pub fn ready() -> Result<Self, SuiteError> {
        let suite = Self::fetched()?;
        suite.build(&suite.program(), &["test", "-c", "-tags", "e2e"], PACKAGE)?;
        suite.build(&suite.plugin(), &["build"], PLUGIN)?;
        Ok(suite)
    }

    /// The sources alone.
    fn fetched() -> Result<Self, SuiteError> {
        let built = servers::cache()?.join(format!("argo-rollouts-{VERSION}"));
        fs::create_dir_all(built.join("plugin-bin")).map_err(|source| file(&built, source))?;
        Ok(Self { sources: go_module::folder(MODULE, VERSION)?, built })
    }

    /// The folder of the sources, where nothing is to be built.
    pub fn sources_alone() -> Result<PathBuf, SuiteError> {
        Ok(Self::fetched()?.sources)
    }

    /// The compiled tests.
    pub fn program(&self) -> PathBuf {
        self.built.join("e2e.test")
    }

    /// The folder they expect to run in; their manifests are read relative to it.
    pub fn folder(&self) -> PathBuf {
        self.sources.join("test/e2e")
    }

    /// The program of its step plugin.
    pub fn plugin(&self) -> PathBuf {
        self.built.join("plugin-bin/e2e-step-plugin")
    }

    /// Where the controller must run to find the suite's plugin.
    pub fn controller_folder(&self) -> &Path {
        &self.built
    }

    /// Keeps the output of a failed test.
    pub fn keep(&self, name: &str, content: &str) -> Result<PathBuf, SuiteError> {
        let folder = self.built.join("failed");
        fs::create_dir_all(&folder).map_err(|source| file(&folder, source))?;
        let path = folder.join(name);
        fs::write(&path, content).map_err(|source| file(&path, source))?;
        Ok(path)
    }

    /// Builds beside the final name and renames, so that an interrupted build leaves no half
    /// program.
    fn build(&self, program: &Path, command: &[&str], package: &str) -> Result<(), SuiteError> {
        if program.exists() {
            return Ok(());
        }
        eprintln!("building {package} of {MODULE} {VERSION}; several minutes the first time …");
        let began = Instant::now();
        let partial = program.with_extension(std::process::id().to_string());
        let mut go = Command::new("go");
        go.current_dir(&self.sources).args(command).arg("-o").arg(&partial).arg(package);
        output_of(go, &format!("{} {package}", command.join(" ")))?;
        fs::rename(&partial, program).map_err(|source| file(program, source))?;
        eprintln!("building {package}: {} s", began.elapsed().as_secs());
        Ok(())
    }
}

/// Argo's own controller, built if it is not there.
pub fn controller_program() -> Result<PathBuf, SuiteError> {
    let suite = Suite::fetched()?;
    let program = suite.built.join("rollouts-controller");
    suite.build(&program, &["build"], CONTROLLER)?;
    Ok(program)
}

/// The folder of Argo's sample plugins, built if they are not there.
pub fn sample_plugins(packages: &[&str]) -> Result<PathBuf, SuiteError> {
    let suite = Suite::fetched()?;
    let folder = suite.built.join("plugin-bin");
    for package in packages {
        let path = format!("./test/cmd/{package}");
        suite.build(&folder.join(package), &["build"], &path)?;
    }
    Ok(folder)
}

/// Argo's sources, with its examples.
pub fn sources() -> Result<PathBuf, SuiteError> {
    Ok(Suite::fetched()?.sources)
}

fn output_of(mut go: Command, what: &str) -> Result<Vec<u8>, SuiteError> {
    let output = go.stdin(Stdio::null()).output();
    let failed = |message| SuiteError::Failed { what: what.to_owned(), message };
    let output = output.map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

fn file(path: &Path, source: io::Error) -> SuiteError {
    SuiteError::File { path: path.to_owned(), source }
}
