//! Do the dependencies of what is released have known holes, or licences and sources that we do not take?
//! Asked of cargo-deny, which is installed once into the cache folder; its rules are those of tidy.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::output;
use crate::{Failure, folder::Folder, repository, servers, tidy};

/// The version that is installed.
const VERSION: &str = "0.20.2";

/// Where all dependencies come from.
const REGISTRY: &str = "https://github.com/rust-lang/crates.io-index";

/// What cargo-deny finds is an error. Where it, or the list of known holes, cannot be had, a line says so.
pub(super) fn check() -> Result<(), Failure> {
    let program = match installed() {
        Ok(program) => program,
        Err(error) => {
            println!("  dependencies: not tried: cargo-deny cannot be installed: {error}");
            return Ok(());
        }
    };
    let folder = Folder::create("deny")?;
    let config = folder.path().join("deny.toml");
    fs::write(&config, rules())?;
    let deny = |words: &[&str]| {
        let mut command = Command::new(&program);
        command.arg("--manifest-path").arg(repository().join("Cargo.toml"));
        // It is called as `cargo deny` calls it, and reads the lock file that is committed.
        command.arg("--locked").args(words).arg("--config").arg(&config);
        output(&mut command)
    };
    deny(&["check", "licenses", "bans", "sources"])?;
    println!(
        "  dependencies: licences, duplicates by wildcard and sources are as cargo-deny wants"
    );
    match deny(&["fetch", "db"]) {
        Ok(_) => {
            deny(&["check", "--disable-fetch", "advisories"])?;
            println!("  dependencies: none has a hole that RustSec knows");
        }
        Err(error) => println!("  advisories: not tried: the list cannot be had: {error}"),
    }
    Ok(())
}

/// The program, installed if it is not there.
fn installed() -> Result<PathBuf, Failure> {
    let root = servers::cache()?.join(format!("cargo-deny-{VERSION}"));
    let program = root.join("bin/cargo-deny");
    if !program.exists() {
        eprintln!("installing cargo-deny {VERSION} into {} …", root.display());
        install(&root)?;
    }
    Ok(program)
}

fn install(root: &Path) -> Result<(), Failure> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["install", "cargo-deny", "--version", VERSION, "--locked", "--root"]);
    output(cargo.arg(root))?;
    Ok(())
}

/// What tidy asks for, in cargo-deny's words.
fn rules() -> String {
    let licences = tidy::LICENCES.map(|licence| format!("\"{licence}\"")).join(", ");
    format!(
        "[licenses]\nallow = [{licences}]\nunused-allowed-license = \"allow\"\n\
         [licenses.private]\nignore = true\n\
         [bans]\nmultiple-versions = \"allow\"\n\
         [advisories]\nunmaintained = \"workspace\"\n\
         [sources]\nunknown-registry = \"deny\"\nunknown-git = \"deny\"\n\
         allow-registry = [\"{REGISTRY}\"]\n"
    )
}

#[test]
fn the_rules_are_those_of_tidy() {
    let rules = rules();
    assert!(rules.contains("\"Apache-2.0\"") && !rules.contains("GPL"), "{rules}");
}
