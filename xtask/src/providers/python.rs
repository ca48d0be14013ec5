//! Programs in Python: installed once with pip into a folder of the cache, in pinned versions.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use aws_lc_rs::digest::{SHA256, digest};

use crate::{Failure, servers};

/// An environment with packages; its programs are in `bin`.
pub struct Python {
    pub bin: PathBuf,
}

/// The environment of this name with these packages, made if it is missing.
pub fn ready(name: &str, packages: &[&str]) -> Result<Python, Failure> {
    let made_from = digest(&SHA256, packages.join(" ").as_bytes());
    let id: String = made_from.as_ref()[..6].iter().map(|byte| format!("{byte:02x}")).collect();
    let folder = servers::cache()?.join(format!("python-{name}-{id}"));
    let (bin, done) = (folder.join("bin"), folder.join("done"));
    if done.exists() {
        return Ok(Python { bin });
    }
    eprintln!("installing {} …", packages.join(", "));
    command(Path::new("python3"), &["-m", "venv", "--clear", &folder.to_string_lossy()])?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    command(&bin.join("python"), &[&pip[..], packages].concat())?;
    fs::write(done, "")?;
    Ok(Python { bin })
}

impl Python {
    /// Runs a script to its end.
    pub fn run(&self, script: &str, folder: &Path) -> Result<(), Failure> {
        let folder = folder.to_string_lossy();
        command(&self.bin.join("python"), &["-c", script, &folder])
    }
}

fn command(program: &Path, arguments: &[&str]) -> Result<(), Failure> {
    let output = Command::new(program).args(arguments).output()?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(format!("{} {}: {}", program.display(), arguments.join(" "), words.trim()).into())
}
