//! Where are the programs of the real control plane, and how do they get there?
//!
//! They are compiled once from `xtask/control-plane` with Go alone, into a cache outside the work
//! tree. The cache's name holds a hash of what they are made from, so an upgrade builds anew.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use thiserror::Error;

/// The version of the Kubernetes servers; the one in `control-plane/kubernetes/go.mod`.
const KUBERNETES: &str = "v1.35.4";

/// Program and the folder below `control-plane` it is built from.
const PROGRAMS: [(&str, &str, &str); 4] = [
    ("etcd", "etcd", "."),
    ("kube-apiserver", "kubernetes", "./kube-apiserver"),
    ("kube-controller-manager", "kubernetes", "./kube-controller-manager"),
    ("kubectl", "kubernetes", "./kubectl"),
];

/// Why the programs are not there.
#[derive(Debug, Error)]
pub enum ServersError {
    #[error(
        "Go is not installed, and the real control plane is built with it: \
         put `go` into PATH (https://go.dev/dl)"
    )]
    GoIsAbsent,
    #[error("building {program} failed: expected `go build` in {folder} to succeed")]
    Build { program: &'static str, folder: PathBuf },
    #[error("neither XDG_CACHE_HOME nor HOME is set: expected one, for the built servers")]
    NoCache,
    #[error("{path}: {source}")]
    File { path: PathBuf, source: io::Error },
}

/// A folder with all four programs.
#[derive(Clone, Debug)]
pub struct Servers {
    folder: PathBuf,
}

impl Servers {
    /// Builds what is missing, with a line of progress for each program.
    pub fn ready(repository: &Path) -> Result<Self, ServersError> {
        let sources = repository.join("xtask/control-plane");
        let folder = cache()?.join(format!("control-plane-{:016x}", fingerprint(&sources)?));
        fs::create_dir_all(&folder).map_err(|source| file(&folder, source))?;
        for (number, (program, module, package)) in PROGRAMS.into_iter().enumerate() {
            if folder.join(program).exists() {
                continue;
            }
            if !go_is_present() {
                return Err(ServersError::GoIsAbsent);
            }
            eprintln!("building {program}, {} of {} …", number + 1, PROGRAMS.len());
            let began = Instant::now();
            build(program, &sources.join(module), package, &folder)?;
            eprintln!("building {program}: {} s", began.elapsed().as_secs());
        }
        Ok(Self { folder })
    }

    pub fn etcd(&self) -> PathBuf {
        self.folder.join("etcd")
    }

    pub fn api_server(&self) -> PathBuf {
        self.folder.join("kube-apiserver")
    }

    pub fn controller_manager(&self) -> PathBuf {
        self.folder.join("kube-controller-manager")
    }

    pub fn kubectl(&self) -> PathBuf {
        self.folder.join("kubectl")
    }
}

/// True if `go` can be run.
pub fn go_is_present() -> bool {
    let answer = Command::new("go").arg("version").stdout(Stdio::null()).status();
    answer.is_ok_and(|status| status.success())
}

/// Builds beside the final name and renames, so that an interrupted build leaves no half program.
fn build(
    program: &'static str,
    module: &Path,
    package: &str,
    folder: &Path,
) -> Result<(), ServersError> {
    go_build(program, module, package, &linker_flags(), folder)
}

/// A program of one Go module of ours, built once into the cache.
pub fn built(program: &'static str, module: &Path, package: &str) -> Result<PathBuf, ServersError> {
    let folder = cache()?.join(format!("{program}-{:016x}", fingerprint(module)?));
    let path = folder.join(program);
    if path.exists() {
        return Ok(path);
    }
    if !go_is_present() {
        return Err(ServersError::GoIsAbsent);
    }
    fs::create_dir_all(&folder).map_err(|source| file(&folder, source))?;
    eprintln!("building {program} …");
    let began = Instant::now();
    go_build(program, module, package, "-s -w", &folder)?;
    eprintln!("building {program}: {} s", began.elapsed().as_secs());
    Ok(path)
}

fn go_build(
    program: &'static str,
    module: &Path,
    package: &str,
    linker_flags: &str,
    folder: &Path,
) -> Result<(), ServersError> {
    let partial = folder.join(format!("{program}.{}", std::process::id()));
    let status = Command::new("go")
        .current_dir(module)
        .args(["build", "-trimpath", "-buildvcs=false", "-ldflags", linker_flags, "-o"])
        .arg(&partial)
        .arg(package)
        .env("CGO_ENABLED", "0")
        .status()
        .map_err(|source| file(Path::new("go"), source))?;
    if !status.success() {
        return Err(ServersError::Build { program, folder: module.to_owned() });
    }
    let built = folder.join(program);
    fs::rename(&partial, &built).map_err(|source| file(&built, source))
}

/// Stripped, and telling their version: a server that says `v0.0.0` turns newer features off.
fn linker_flags() -> String {
    let package = "k8s.io/component-base/version";
    let mut parts = KUBERNETES.trim_start_matches('v').split('.');
    let (major, minor) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    format!(
        "-s -w -X {package}.gitVersion={KUBERNETES} -X {package}.gitMajor={major} \
         -X {package}.gitMinor={minor}"
    )
}

/// Where built programs are kept, outside the work tree.
pub fn cache() -> Result<PathBuf, ServersError> {
    let base = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let base = base.filter(|path| path.is_absolute()).or_else(home);
    Ok(base.ok_or(ServersError::NoCache)?.join("gradus"))
}

/// FNV-1a over every source file's name and content, and the flags.
fn fingerprint(sources: &Path) -> Result<u64, ServersError> {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    let mut feed = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for path in files(sources)? {
        feed(path.strip_prefix(sources).unwrap_or(&path).as_os_str().as_encoded_bytes());
        feed(&fs::read(&path).map_err(|source| file(&path, source))?);
    }
    feed(linker_flags().as_bytes());
    Ok(hash)
}

/// Every file below a folder, sorted.
fn files(folder: &Path) -> Result<Vec<PathBuf>, ServersError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(|source| file(folder, source))? {
        let path = entry.map_err(|source| file(folder, source))?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn file(path: &Path, source: io::Error) -> ServersError {
    ServersError::File { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_told_is_the_version_built() {
        let module = include_str!("../control-plane/kubernetes/go.mod");
        assert!(module.contains(&format!("k8s.io/kubernetes {KUBERNETES}\n")));
    }

    #[test]
    fn the_same_sources_have_the_same_fingerprint() {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("control-plane");
        assert_eq!(fingerprint(&sources).unwrap(), fingerprint(&sources).unwrap());
    }
}
