//! Is there a kubectl to try, and who hears of it where there is none? For the tests of every crate.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io, thread};

/// The kubectl that `GRADUS_KUBECTL` names, else the one in PATH, else the one that is built for the
/// real control plane: where it lies. Where there is none, that is said.
pub fn kubectl() -> Option<PathBuf> {
    if let Some(named) = env::var_os("GRADUS_KUBECTL").map(PathBuf::from) {
        assert!(answers(&named), "GRADUS_KUBECTL={}: expected a kubectl", named.display());
        return Some(named);
    }
    let home = || env::home_dir().map(|home| home.join(".cache"));
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home);
    let built = cache.and_then(|cache| fs::read_dir(cache.join("gradus")).ok());
    let built = built.into_iter().flatten().flatten().map(|entry| entry.path());
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(built);
    let found = folders.map(|folder| folder.join("kubectl")).find(|kubectl| answers(kubectl));
    if found.is_none() {
        not_tried("there is no kubectl in PATH; `cargo xtask real` builds one, with Go");
    }
    found
}

/// Says that this test has not tried what it is about. A test runner keeps what passed tests print to
/// itself; this goes past it, and `cargo xtask test` counts such a test as skipped.
pub fn not_tried(why: &str) {
    let test = thread::current();
    let line = format!("not tried: {}: {why}\n", test.name().unwrap_or("a test"));
    io::stderr().write_all(line.as_bytes()).expect("there is a standard error");
}

fn answers(kubectl: &Path) -> bool {
    let output = Command::new(kubectl).args(["version", "--client", "-o", "json"]).output();
    output.is_ok_and(|output| output.status.success())
}
