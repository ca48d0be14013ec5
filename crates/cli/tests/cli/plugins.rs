//! Plugins: what the documents say of them, and whether the examples do what is expected.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use gradus_controller::plugins::{LINES_PROTOCOL, LINES_VERSION, refused};
use serde_json::Value;

use crate::docs::{blocks, root, the_block};
use crate::program::{folder, gradus};

fn is_present(program: &str, argument: &str) -> bool {
    let mut run = Command::new(program);
    run.arg(argument).stdout(Stdio::null()).stderr(Stdio::null());
    run.status().is_ok_and(|status| status.success())
}

/// The example in Go, built; `None` where Go is absent.
fn built_in_go() -> Option<PathBuf> {
    if !is_present("go", "version") {
        println!("skipped: Go is not installed, and the example in Go is not tried");
        return None;
    }
    let program = folder("example-plugin").join("step");
    let mut go = Command::new("go");
    go.args(["build", "-o"]).arg(&program).arg(root().join("examples/plugins/step.go"));
    let built = go.env("CGO_ENABLED", "0").status().unwrap();
    assert!(built.success(), "the example in Go is built");
    Some(program)
}

#[test]
fn the_example_plugins_pass_the_check() {
    let block = the_block("sh check");
    assert_eq!(block.text.trim(), "gradus plugin check examples/plugins/step.py");
    let python = root().join("examples/plugins/step.py");
    let python = is_present("python3", "--version").then_some(python);
    if python.is_none() {
        println!("skipped: Python is not installed, and the example in Python is not tried");
    }
    for program in python.into_iter().chain(built_in_go()) {
        let text = std::fs::read_to_string(root().join("examples/plugins/step.go")).unwrap();
        assert!(text.lines().count() <= 80);
        let printed = gradus(&["plugin", "check", program.to_str().unwrap()]);
        let said = printed.stdout;
        assert_eq!(printed.code, Some(0), "{}:\n{said}", program.display());
        assert!(said.contains("ok     Run answers with a phase\n"), "{said}");
        assert!(said.ends_with(" 0 wrong\n"), "{said}");
    }
}

#[test]
fn a_program_that_is_no_plugin_fails_the_check() {
    let printed = gradus(&["plugin", "check", "/bin/true"]);
    assert_eq!(printed.code, Some(1));
    let said = printed.stdout;
    assert!(said.contains("WRONG  it starts, and answers InitPlugin"), "{said}");
    assert!(said.contains("plugin exited before we could connect"), "{said}");
}

#[test]
fn the_documented_configuration_is_accepted() {
    let found = blocks().into_iter().filter(|block| block.info == "yaml plugins");
    for block in found {
        let object: Value = serde_saphyr::from_str(&block.text).unwrap();
        assert_eq!(refused(&object["data"]), Vec::<String>::new(), "{}", block.page);
    }
}

#[test]
fn the_documented_lines_are_of_the_protocol() {
    let block = the_block("json lines");
    let lines: Vec<Value> =
        block.text.trim().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["protocol"], LINES_PROTOCOL);
    assert_eq!(lines[0]["version"], LINES_VERSION);
    for line in &lines[1..] {
        let kinds = ["method", "result", "error"].iter().filter(|kind| line.get(**kind).is_some());
        assert_eq!(kinds.count(), 1, "{line}");
        assert!(line["id"].is_u64(), "{line}");
    }
    let schema = std::fs::read_to_string(root().join("docs/plugin-protocol.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    assert_eq!(schema["$defs"]["greeting"]["properties"]["version"]["const"], LINES_VERSION);
    let methods = schema["$defs"]["request"]["properties"]["method"]["enum"].as_array().unwrap();
    for line in lines.iter().filter(|line| line.get("method").is_some()) {
        assert!(methods.contains(&line["method"]), "{line}");
    }
}
