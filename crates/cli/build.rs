//! Which commit is built, and with which compiler? Tells `version`, where git and rustc say so.

use std::path::Path;
use std::process::Command;

/// Whether these have changed decides about `dirty`, together with the commit.
const SOURCES: [&str; 7] = [
    "src",
    "../api/src",
    "../engine/src",
    "../simkube/src",
    "../controller/src",
    "../lab/src",
    "../../Cargo.lock",
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=GRADUS_COMMIT");
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    tell("GRADUS_COMPILER", said(&rustc, &["--version"]));
    // Sources inside somebody else's repository are not of that repository's commit.
    if git(&["rev-parse", "--show-prefix"]).as_deref() != Some("crates/cli/") {
        return;
    }
    for path in ["HEAD", "logs/HEAD", "packed-refs"] {
        let path = git(&["rev-parse", "--git-path", path]);
        watch(&path.unwrap_or_default());
    }
    SOURCES.iter().for_each(|path| watch(path));
    tell("GRADUS_COMMIT", git(&["rev-parse", "HEAD"]));
    tell("GRADUS_DATE", git(&["show", "--no-patch", "--format=%cI", "HEAD"]));
    tell("GRADUS_TAG", git(&["describe", "--tags", "--exact-match", "--match", "v*", "HEAD"]));
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]);
    let state = changed.map(|changed| if changed.is_empty() { "clean" } else { "dirty" });
    tell("GRADUS_TREE", state.map(str::to_owned));
}

/// Where it is missing, cargo would build again each time.
fn watch(path: &str) {
    if Path::new(path).exists() {
        println!("cargo::rerun-if-changed={path}");
    }
}

/// Whoever builds without git may tell it through the environment.
fn tell(name: &str, value: Option<String>) {
    if let Some(value) = value.filter(|_| std::env::var_os(name).is_none()) {
        println!("cargo::rustc-env={name}={value}");
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    said("git", arguments)
}

fn said(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
