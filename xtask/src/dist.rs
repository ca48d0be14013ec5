//! `cargo xtask dist`: the release folder, from nothing but this repository: the static program, its
//! image as an OCI archive, the chart, the manifests, completions, a manual page, a bill of materials and
//! checksums. The same sources give the same bytes: `--twice` builds again elsewhere and compares.

mod deny;
mod image;
mod materials;
mod pages;

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use thiserror::Error;

use crate::{Failure, build, repository, summary::Summary};

/// The largest program that may be shipped.
const LARGEST: u64 = 25_000_000;

#[derive(Debug, Error)]
pub(super) enum DistError {
    #[error("unknown option {0}: expected --twice")]
    UnknownOption(String),
    #[error("{program}: {message}")]
    Tool { program: String, message: String },
    #[error("gradus has {size} bytes: expected at most {LARGEST}")]
    TooLarge { size: u64 },
    #[error("gradus needs a loader: expected a static program")]
    NotStatic,
    #[error("two builds of the same sources differ: {0} and {1}")]
    Differs(String, String),
}

/// Makes `target/release-folder`, and says what is in it.
pub fn run(arguments: &[String]) -> Result<Summary, Failure> {
    if let Some(option) = arguments.iter().find(|argument| *argument != "--twice") {
        return Err(DistError::UnknownOption(option.clone()).into());
    }
    let target = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.unwrap_or_else(|| repository().join("target"));
    let folder = target.join("release-folder");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    deny::check()?;
    let release = Release { epoch: epoch()?, version: env!("CARGO_PKG_VERSION"), folder };
    let program = release.program(&target)?;
    if !arguments.is_empty() {
        release.is_reproducible(&program, &target.join("dist-again"))?;
    }
    release.write_all(&program)?;
    Ok(Summary::of(true))
}

/// What is being released.
pub(super) struct Release {
    /// When its sources were made, in seconds since 1970: every file has this time.
    pub(super) epoch: String,
    pub(super) version: &'static str,
    pub(super) folder: PathBuf,
}

impl Release {
    /// Builds the program, and refuses one that is too large or not static.
    fn program(&self, target: &Path) -> Result<PathBuf, Failure> {
        let built = self.built(target)?;
        let size = fs::metadata(&built)?.len();
        println!("  gradus: {size} bytes, at most {LARGEST}");
        if size > LARGEST {
            return Err(DistError::TooLarge { size }.into());
        }
        if loader(&fs::read(&built)?) {
            return Err(DistError::NotStatic.into());
        }
        let program = self.folder.join("gradus");
        fs::copy(&built, &program)?;
        Ok(program)
    }

    fn built(&self, target: &Path) -> Result<PathBuf, Failure> {
        let triple = host()?;
        let flags = format!(
            "-Ctarget-feature=+crt-static --remap-path-prefix={}=/src --remap-path-prefix={}=/cargo",
            repository().display(),
            cargo_home().display(),
        );
        let target = target.to_string_lossy().into_owned();
        let arguments = [
            "--locked",
            "--profile",
            "dist",
            "--package",
            "gradus",
            "--bin",
            "gradus",
            "--target",
            &triple,
            "--target-dir",
            &target,
        ];
        let variables = [("RUSTFLAGS", flags.as_str()), ("SOURCE_DATE_EPOCH", &self.epoch)];
        Ok(build::program_with(&arguments, &variables)?)
    }

    fn is_reproducible(&self, program: &Path, elsewhere: &Path) -> Result<(), Failure> {
        let again = self.built(elsewhere)?;
        let (one, other) = (checksum(program)?, checksum(&again)?);
        if one != other {
            return Err(DistError::Differs(one, other).into());
        }
        println!("  gradus: two builds, the same bytes ({one})");
        Ok(())
    }

    fn write_all(&self, program: &Path) -> Result<(), Failure> {
        let root = repository();
        let manifests = ["install.yaml", "namespace-install.yaml"];
        for name in manifests {
            fs::copy(root.join("manifests").join(name), self.folder.join(name))?;
        }
        let crds: String = gradus_api::crd::files()
            .into_iter()
            .map(|(_, text)| text)
            .collect::<Vec<_>>()
            .join("---\n");
        fs::write(self.folder.join("crds.yaml"), crds)?;
        pages::write(self, program)?;
        materials::write(self)?;
        self.chart(&root)?;
        image::write(self, program)?;
        self.checksums()
    }

    /// The chart, packed as Helm packs it: every file below a folder of the chart's name.
    fn chart(&self, root: &Path) -> Result<(), Failure> {
        let archive = self.folder.join(format!("gradus-chart-{}.tgz", self.version));
        self.pack(&root.join("charts"), &["gradus"], &archive)
    }

    /// A compressed archive with the same bytes for the same files.
    pub(super) fn pack(
        &self,
        folder: &Path,
        names: &[&str],
        archive: &Path,
    ) -> Result<(), Failure> {
        let plain = archive.with_extension("tar");
        self.tar(folder, names, &plain)?;
        let packed = output(Command::new("gzip").args(["-n", "-9", "-c"]).arg(&plain))?;
        fs::write(archive, packed.stdout)?;
        Ok(fs::remove_file(&plain)?)
    }

    /// An archive with the same bytes for the same files; links are followed.
    pub(super) fn tar(&self, folder: &Path, names: &[&str], archive: &Path) -> Result<(), Failure> {
        let time = format!("--mtime=@{}", self.epoch);
        let mut tar = Command::new("tar");
        tar.args(["--create", "--dereference", "--sort=name", "--format=ustar", "--owner=0"]);
        tar.args(["--group=0", "--numeric-owner", "--mode=u=rwX,go=rX", &time]);
        output(tar.arg("--file").arg(archive).arg("--directory").arg(folder).args(names))?;
        Ok(())
    }

    fn checksums(&self) -> Result<(), Failure> {
        let mut names: Vec<String> = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        let mut text = String::new();
        for name in &names {
            let path = self.folder.join(name);
            text.push_str(&format!("{}  {name}\n", checksum(&path)?));
            println!("  {name}: {} bytes", fs::metadata(&path)?.len());
        }
        fs::write(self.folder.join("SHA256SUMS"), text)?;
        println!("  all of it is in {}", self.folder.display());
        Ok(())
    }
}

/// Runs a tool that must succeed.
pub(super) fn output(command: &mut Command) -> Result<Output, DistError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |message: String| DistError::Tool { program: program.clone(), message };
    let output = command.output().map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(output);
    }
    Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

/// The SHA-256 of a file, in hexadecimal digits.
pub(super) fn checksum(path: &Path) -> Result<String, DistError> {
    let sum = output(Command::new("sha256sum").arg(path))?;
    let text = String::from_utf8_lossy(&sum.stdout).into_owned();
    // A name with odd letters is marked with a backslash.
    Ok(text.trim_start_matches('\\').chars().take_while(char::is_ascii_hexdigit).collect())
}

/// When the last commit was made; without a repository, 1970.
fn epoch() -> io::Result<String> {
    let mut git = Command::new("git");
    let git = git.current_dir(repository()).args(["log", "-1", "--format=%ct"]);
    let time = output(git).map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    Ok(time.unwrap_or_else(|_| "0".to_owned()))
}

/// The machine this program is built on.
fn host() -> Result<String, DistError> {
    let said = output(Command::new("rustc").arg("-vV"))?;
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.unwrap_or_default().to_owned())
}

fn cargo_home() -> PathBuf {
    let given = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = || env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo"));
    given.or_else(home).unwrap_or_else(|| PathBuf::from("/cargo"))
}

/// Does an ELF program name a loader (a program header of type 3)?
fn loader(program: &[u8]) -> bool {
    let number = |at: usize, size: usize| {
        let bytes = program.get(at..at + size).unwrap_or_default();
        bytes.iter().rev().fold(0_usize, |sum, byte| sum << 8 | usize::from(*byte))
    };
    let (table, size, count) = (number(32, 8), number(54, 2), number(56, 2));
    (0..count).any(|at| number(table + at * size, 4) == 3)
}

#[test]
fn a_program_with_a_loader_is_told_from_one_without() {
    let mut program = vec![0_u8; 200];
    program[32] = 64;
    program[54] = 56;
    program[56] = 2;
    program[64] = 1;
    assert!(!loader(&program));
    program[64 + 56] = 3;
    assert!(loader(&program));
    assert!(!loader(&[]));
}
