//! Does docs/write-a-controller.md tell the truth? Its commands run, and its code is the
//! operator's.

use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_database-operator");

fn example() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The fenced blocks of the page: what stands after the fence, and the text.
fn blocks() -> Vec<(String, String)> {
    let page = text(&example().join("../../docs/write-a-controller.md"));
    let parts = page.split("\n```").skip(1).step_by(2);
    let block = |part: &str| {
        let (info, text) = part.split_once('\n').expect("a fence ends its line");
        (info.to_owned(), text.to_owned())
    };
    parts.map(block).collect()
}

#[test]
fn every_piece_of_code_is_a_piece_of_the_operator() {
    let files = std::fs::read_dir(example().join("src")).unwrap();
    let paths = files.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let sources: Vec<String> = paths.map(|path| text(&path)).collect();
    let mut count = 0;
    for (_, code) in blocks().iter().filter(|(info, _)| info == "rust") {
        assert!(sources.iter().any(|source| source.contains(code.as_str())), "in no file:\n{code}");
        count += 1;
    }
    assert!(count > 5, "the page walks through the code");
}

#[test]
fn the_manifest_is_the_sample() {
    let sample = text(&example().join("orders.yaml"));
    let shown: Vec<_> = blocks().into_iter().filter(|(info, _)| info == "yaml operator").collect();
    assert_eq!(shown.len(), 1);
    assert_eq!(shown[0].1.trim_end(), sample.trim_end());
}

#[test]
fn every_command_runs() {
    let mut count = 0;
    for (_, commands) in blocks().iter().filter(|(info, _)| info == "sh operator") {
        for line in commands.lines() {
            let rest = line.strip_prefix("cargo run --release -p database-operator -- ");
            let rest = rest.or(line.strip_prefix("database-operator "));
            let arguments = rest.unwrap_or_else(|| panic!("unknown: {line}")).split_whitespace();
            let output = Command::new(PROGRAM).args(arguments).output().unwrap();
            assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
            count += 1;
        }
    }
    assert_eq!(count, 2);
}

#[test]
fn the_demo_tells_the_whole_scenario_and_no_secret() {
    let output = Command::new(PROGRAM).arg("demo").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told = String::from_utf8(output.stdout).unwrap();
    let mut rest = told.as_str();
    for words in ["Created: Secret", "Ready", "Refused", "Stopped", "Ready", "CredentialsLost"] {
        let at = rest.find(words).unwrap_or_else(|| panic!("no {words} in:\n{told}"));
        rest = &rest[at..];
    }
    let is_hex = |word: &str| word.len() >= 32 && word.bytes().all(|b| b.is_ascii_hexdigit());
    assert!(!told.split_whitespace().any(is_hex), "nothing like a password is shown:\n{told}");
}

#[test]
fn the_operator_is_small_enough_to_read() {
    let is_source = |path: &PathBuf| path.is_file() && !path.ends_with("scenarios.rs");
    let files = std::fs::read_dir(example().join("src")).unwrap();
    let paths = files.map(|entry| entry.unwrap().path()).filter(is_source);
    let total: usize = paths.map(|path| text(&path).lines().count()).sum();
    assert!(total <= 600, "{total} lines, expected at most 600");
}
