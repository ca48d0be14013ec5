//! Where are the files of a Debian package? Downloaded once into the cache folder, and extracted there
//! without root.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
};

use thiserror::Error;

use crate::{Failure, servers};

/// Why there are no files.
#[derive(Debug, Error)]
#[error("{what}: {message}")]
struct DebianError {
    what: String,
    message: String,
}

/// What the root folder of a system holds that has this package alone.
pub fn extracted(package: &str) -> Result<PathBuf, Failure> {
    let folder = servers::cache()?.join(format!("{package}-debian"));
    let root = folder.join("root");
    if root.exists() {
        return Ok(root);
    }
    fs::create_dir_all(&folder)?;
    done(Command::new("apt-get").current_dir(&folder).args(["download", package]))?;
    let partial = folder.join(format!("root.{}", std::process::id()));
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "deb") {
            done(Command::new("dpkg-deb").arg("-x").arg(&path).arg(&partial))?;
        }
    }
    // An interrupted extraction leaves no half root.
    fs::rename(&partial, &root)?;
    Ok(root)
}

fn done(command: &mut Command) -> Result<(), DebianError> {
    let what = format!("{command:?}");
    let failed = |message: String| DebianError { what: what.clone(), message };
    let output =
        command.stdin(Stdio::null()).output().map_err(|error| failed(error.to_string()))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
    }
}
