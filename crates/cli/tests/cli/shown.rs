//! What is shown? Golden output on exported objects, in colour and without.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::found;
use crate::plugin::Plugin;
use crate::program::finish;

/// The moment at which the exported objects were true.
const AT: &str = "2026-03-09T12:00:00Z";

fn here(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder)
}

fn offline(name: &str) -> Plugin {
    Plugin::install(name, Path::new("/nowhere/kubeconfig"))
}

fn shown(mut command: Command) -> String {
    command.arg("--from-files").arg(here("exported")).args(["--at", AT]);
    let finished = finish(command);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    // Rows end all their cells; blanks at the end of a line are no part of a picture.
    let lines = finished.stdout.lines().map(|line| line.trim_end().replace('\x1b', "␛") + "\n");
    lines.collect()
}

fn golden(name: &str) -> String {
    std::fs::read_to_string(here("golden").join(name)).unwrap()
}

/// Command, file with what it shows.
const GOLDEN: [(&str, &str); 7] = [
    ("get rollout orders --no-color", "canary.txt"),
    ("get rollout orders", "canary-in-colour.txt"),
    ("get ro billing --no-color", "blue-green.txt"),
    ("get rollouts finder --no-color", "experiment-and-jobs.txt"),
    ("get rollout finder", "experiment-and-jobs-in-colour.txt"),
    ("get rollout gate", "ping-pong-in-colour.txt"),
    ("get exp finder-ddd-2-0 --no-color", "experiment.txt"),
];

#[test]
fn trees_look_as_they_always_did() {
    let plugin = offline("golden");
    for (words, file) in GOLDEN {
        assert_eq!(shown(plugin.command(words)), golden(file), "{words}");
    }
}

#[test]
fn colours_are_off_where_nobody_wants_them() {
    let plugin = offline("colours");
    for (name, value) in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let mut command = plugin.command("get rollout orders");
        command.env(name, value);
        assert_eq!(shown(command), golden("canary.txt"), "{name}={value}");
    }
    let mut command = plugin.command("get rollout orders");
    command.env("NO_COLOR", "");
    assert_eq!(shown(command), golden("canary-in-colour.txt"), "an empty NO_COLOR says nothing");
}

/// On a terminal of 90 columns, as `script` makes one where it is installed.
#[test]
fn a_narrow_terminal_gets_lines_that_fit() {
    let plugin = offline("narrow");
    let words = "get rollout finder --no-color --from-files";
    let program = plugin.folder().join("kubectl-argo-rollouts");
    let (program, files) = (program.display(), here("exported"));
    let line = format!("stty cols 90 rows 40; {program} {words} {} --at {AT}", files.display());
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm");
    match terminal.output() {
        Err(error) => {
            found::not_tried(&format!("there is no `script` to make a terminal: {error}"))
        }
        Ok(output) => {
            let shown = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(shown.contains("⟳ finder") && shown.contains('…'), "{shown}");
            let widest = shown.lines().map(|line| line.trim_end().chars().count()).max();
            assert!(widest.is_some_and(|widest| widest <= 90), "{widest:?}:\n{shown}");
            let wide = golden("experiment-and-jobs.txt");
            assert!(wide.lines().any(|line| line.chars().count() > 90), "90 columns are narrow");
        }
    }
}

#[test]
fn an_object_is_printed_in_the_form_asked_for() {
    let plugin = offline("forms");
    let cases = [
        ("get ro orders -o name", "rollout.argoproj.io/orders\n"),
        ("get exp finder-ddd-2-0 -o name", "experiment.argoproj.io/finder-ddd-2-0\n"),
        ("get ro orders -o jsonpath={.status.phase}", "Paused\n"),
    ];
    for (words, expected) in cases {
        assert_eq!(shown(plugin.command(words)), expected, "{words}");
    }
    let json = shown(plugin.command("get ro orders -o json"));
    let object: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(object["spec"]["replicas"], 4);
    let yaml: serde_json::Value =
        serde_saphyr::from_str(&shown(plugin.command("get ro orders -o yaml"))).unwrap();
    assert_eq!(yaml, object, "YAML says the same as JSON");
    assert_eq!(
        shown(plugin.command("get ro billing -o wide --no-color")),
        golden("blue-green.txt")
    );
}

/// A busy namespace has thousands of Events, and somebody who is sent one file names that.
#[test]
fn a_large_export_and_a_single_file_are_read() {
    let event =
        "- {apiVersion: v1, kind: Event, metadata: {name: e}, involvedObject: {kind: Pod}}\n";
    let rollout = std::fs::read_to_string(here("exported").join("billing.yaml")).unwrap();
    let file = crate::program::folder("large").join("all.yaml");
    let events = event.repeat(30_000);
    let list = format!("apiVersion: v1\nkind: List\nitems:\n{events}---\n{rollout}");
    std::fs::write(&file, list).unwrap();
    let plugin = offline("large");
    let words = format!("get rollout billing -o name --from-files {}", file.display());
    assert_eq!(plugin.says(&words), "rollout.argoproj.io/billing\n");
}

#[test]
fn what_is_not_in_the_files_is_said() {
    let plugin = offline("not-there");
    let files = here("exported").display().to_string();
    let cases = [
        (format!("get ro ordrs --from-files {files}"), "did you mean \"orders\"?"),
        (format!("get ro zebra --from-files {files}"), "the files hold "),
        (format!("get ro orders -n other --from-files {files}"), "of namespace shop: add -n shop"),
        (format!("get exp zebra --from-files {files} -n other"), "the files hold no Experiments"),
        (format!("explain rollout/ordrs --from-files {files}"), "did you mean \"orders\"?"),
        ("get ro orders --from-files /nowhere".to_owned(), "cannot read folder /nowhere"),
        (format!("get ro orders -w --from-files {files}"), "--watch needs a cluster"),
        (format!("get ro orders --world x --from-files {files}"), "cannot be used with"),
        ("get ro orders --at 2024-01-01T00:00:00Z".to_owned(), "Usage:"),
        (format!("explain rollout ordrs --from-files {files}"), "did you mean \"orders\"?"),
        (format!("explain pod x --from-files {files}"), "pod cannot be explained"),
    ];
    for (words, expected) in cases {
        let refused = plugin.run(&words);
        assert_eq!(refused.code, Some(1), "{words}");
        assert!(refused.stderr.contains(expected), "{words}: {}", refused.stderr);
    }
}
