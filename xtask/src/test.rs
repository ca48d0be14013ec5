//! `cargo xtask test`: is everything as it should be? CI runs this and nothing else.

use std::{
    collections::BTreeSet,
    env,
    process::{Command, Output},
    thread::available_parallelism,
    time::Instant,
};

use crate::{
    Failure, argo, argo_cd, balancers, chart, conformance, dataplane,
    interrupt::Ended,
    monitoring, plugins, providers, real, repository,
    servers::{Servers, ServersError},
    summary::Summary,
    tidy,
};

/// The kubectl that tests are to try.
const KUBECTL: &str = "GRADUS_KUBECTL";

/// How many tests run at once.
const THREADS: &str = "RUST_TEST_THREADS";

/// Many tests wait for a program or a server most of their time: two cores have room for more.
const THREADS_AT_LEAST: usize = 4;

/// How a test begins its line about what it is about and has not tried.
const NOT_TRIED: &str = "not tried: ";

/// One line of the report.
struct Stage {
    name: &'static str,
    run: fn() -> Result<Summary, Failure>,
}

/// From cheap to dear.
const STAGES: [Stage; 15] = [
    Stage { name: "format", run: || cargo(&["fmt", "--all", "--check"]) },
    Stage { name: "clippy", run: clippy },
    Stage { name: "tests and scenarios", run: tests },
    Stage { name: "tidy", run: || tidy::run(&[]) },
    Stage { name: "manifests of Argo", run: argo::manifests::check },
    Stage { name: "Argo CD", run: || argo_cd::run(&[]) },
    Stage { name: "chart", run: || chart::run(&[]) },
    Stage { name: "conformance", run: || conformance::run(&[]) },
    Stage { name: "real control plane", run: real::check },
    Stage { name: "data plane", run: dataplane::check },
    Stage { name: "load balancers", run: || balancers::run(&[]) },
    Stage { name: "sample plugins", run: || plugins::run(&[]) },
    Stage { name: "providers", run: || providers::run(&[]) },
    Stage { name: "monitoring", run: || monitoring::run(&[]) },
    Stage { name: "suite of Argo", run: argo::check },
];

/// Runs every stage, also after one has failed; Ctrl-C ends them all.
pub fn run(_arguments: &[String]) -> Result<Summary, Failure> {
    let mut total = Summary::default();
    for Stage { name, run } in &STAGES {
        let began = Instant::now();
        let (summary, note) = settle(run())?;
        println!("{name:<20}{:>6} s  {summary}{note}", began.elapsed().as_secs());
        total += summary;
    }
    Ok(total)
}

/// A stage that could not be run has failed, unless only Go is missing.
fn settle(outcome: Result<Summary, Failure>) -> Result<(Summary, String), Failure> {
    let error = match outcome {
        Ok(summary) => return Ok((summary, String::new())),
        Err(error) if error.is::<Ended>() => return Err(error),
        Err(error) => error,
    };
    let go_is_absent = matches!(error.downcast_ref(), Some(ServersError::GoIsAbsent));
    let summary = if go_is_absent { Summary::skipped() } else { Summary::of(false) };
    Ok((summary, format!(": {error}")))
}

fn clippy() -> Result<Summary, Failure> {
    cargo(&["clippy", "--quiet", "--workspace", "--all-targets", "--", "--deny", "warnings"])
}

/// The servers come first, though stages after this one need them too: tests try the kubectl that is
/// built with them.
fn tests() -> Result<Summary, Failure> {
    let mut command = command(&["test", "--workspace", "--no-fail-fast"]);
    if env::var_os(THREADS).is_none() {
        let threads = available_parallelism()?.get().max(THREADS_AT_LEAST);
        command.env(THREADS, threads.to_string());
    }
    if env::var_os(KUBECTL).is_none() {
        match Servers::ready(&repository()) {
            Ok(servers) => drop(command.env(KUBECTL, servers.kubectl())),
            // There may be one in PATH; those stages fail or are skipped by themselves.
            Err(error) => println!("  no kubectl is built for the tests: {error}"),
        }
    }
    Ok(summary_of(&command.output()?))
}

/// What `cargo test` counted; its output is shown if something failed.
pub fn summary_of(output: &Output) -> Summary {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let mut counted = counts(&text(&output.stdout));
    for line in not_tried(&text(&output.stderr)) {
        println!("  {line}");
        // Its test has ended well without doing anything.
        counted.passed = counted.passed.saturating_sub(1);
        counted.skipped += 1;
    }
    if output.status.success() {
        return counted;
    }
    show(output);
    // A crate that does not compile has no tests to count.
    let failed = counted.failed.max(1);
    Summary { failed, ..counted }
}

/// One command, one check.
fn cargo(arguments: &[&str]) -> Result<Summary, Failure> {
    let output = output(arguments)?;
    if !output.status.success() {
        show(&output);
    }
    Ok(Summary::of(output.status.success()))
}

fn output(arguments: &[&str]) -> Result<Output, Failure> {
    Ok(command(arguments).output()?)
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(repository()).args(arguments);
    command
}

/// What a failed command had to say.
fn show(output: &Output) {
    print!("{}", String::from_utf8_lossy(&output.stdout));
    eprint!("{}", String::from_utf8_lossy(&output.stderr));
}

/// The sum of all lines `test result: ok. 3 passed; 0 failed; 0 ignored; …`.
fn counts(text: &str) -> Summary {
    let mut total = Summary::default();
    for line in text.lines().filter(|line| line.starts_with("test result: ")) {
        let count = |what: &str| {
            let before = line.split([';', '.']).find_map(|part| part.trim().strip_suffix(what));
            before.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
        };
        total +=
            Summary { passed: count("passed"), failed: count("failed"), skipped: count("ignored") };
    }
    total
}

/// The lines of tests that have not tried what they are about; each once.
fn not_tried(text: &str) -> BTreeSet<String> {
    text.lines().filter(|line| line.starts_with(NOT_TRIED)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::{os::unix::process::ExitStatusExt, process::ExitStatus};

    use super::*;

    #[test]
    fn results_of_all_test_programs_are_added() {
        let text = "\
test a ... ok
test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s
test result: FAILED. 20 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1s
";
        assert_eq!(counts(text), Summary { passed: 23, failed: 2, skipped: 1 });
    }

    #[test]
    fn a_test_that_tried_nothing_is_skipped_not_passed() {
        let stdout = "test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let stderr = "\
     Running tests/kubectl/main.rs
not tried: kubectl_works: there is no kubectl
not tried: demo: there is no kubectl
not tried: demo: there is no kubectl
";
        let output = Output {
            status: ExitStatus::from_raw(0),
            stdout: stdout.into(),
            stderr: stderr.into(),
        };
        assert_eq!(summary_of(&output), Summary { passed: 3, failed: 0, skipped: 2 });
    }

    #[test]
    fn without_go_a_stage_is_skipped_and_says_why() {
        let (summary, note) = settle(Err(ServersError::GoIsAbsent.into())).unwrap();
        assert_eq!(summary, Summary::skipped());
        assert!(note.contains("Go is not installed"), "{note}");
    }

    #[test]
    fn any_other_error_is_a_failure() {
        let (summary, note) = settle(Err("broken".into())).unwrap();
        assert_eq!((summary, note.as_str()), (Summary::of(false), ": broken"));
    }

    #[test]
    fn an_interrupted_stage_ends_the_run() {
        assert!(settle(Err(Ended::Interrupted.into())).is_err());
    }
}
