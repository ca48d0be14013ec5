//! Plugins: what the documents say of them, and whether the examples do what is expected.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use gradus_controller::plugins::{LINES_PROTOCOL, LINES_VERSION, refused};
use serde_json::Value;

use crate::docs::{blocks, root, the_block};
use crate::program::{folder, gradus};
use crate::schema::Schema;

fn is_present(program: &str, argument: &str) -> bool {
    let mut run = Command::new(program);
    run.arg(argument).stdout(Stdio::null()).stderr(Stdio::null());
    run.status().is_ok_and(|status| status.success())
}

/// The examples and their interfaces.
const EXAMPLES: [(&str, &str); 4] =
    [("step.py", "step"), ("step.go", "step"), ("metric.py", "metric"), ("router.go", "router")];

/// An example that can be run; `None` where its language is absent.
fn runnable(example: &str) -> Option<PathBuf> {
    let source = root().join("examples/plugins").join(example);
    if example.ends_with(".py") {
        let found = is_present("python3", "--version").then_some(source);
        if found.is_none() {
            println!("skipped: Python is not installed, and {example} is not tried");
        }
        return found;
    }
    if !is_present("go", "version") {
        println!("skipped: Go is not installed, and {example} is not tried");
        return None;
    }
    let program = folder(&format!("example-{example}")).join("plugin");
    let mut go = Command::new("go");
    go.args(["build", "-o"]).arg(&program).arg(source);
    assert!(go.env("CGO_ENABLED", "0").status().unwrap().success(), "{example} is built");
    Some(program)
}

/// A program that writes down all lines which go in and out of a plugin.
fn tapped(program: &Path, folder: &Path) -> PathBuf {
    let tee = ["/usr/bin/tee", "/bin/tee"].into_iter().find(|path| Path::new(path).exists());
    let (tee, here) = (tee.expect("a system has tee"), folder.display());
    let path = folder.join("tapped");
    let program = program.display();
    let text = format!("#!/bin/sh\n{tee} -a {here}/in | {program} | {tee} -a {here}/out\n");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn the_example_plugins_pass_the_check_and_all_that_is_said_fits_the_schema() {
    let block = the_block("sh check");
    assert_eq!(block.text.trim(), "gradus plugin check examples/plugins/step.py");
    let schema = Schema::read();
    for (example, kind) in EXAMPLES {
        let Some(program) = runnable(example) else { continue };
        let text = std::fs::read_to_string(root().join("examples/plugins").join(example)).unwrap();
        assert!(text.lines().count() <= 80, "{example}");
        let place = folder(&format!("tapped-{example}"));
        let tapped = tapped(&program, &place);
        let printed = gradus(&["plugin", "check", tapped.to_str().unwrap(), "--kind", kind]);
        let said = printed.stdout;
        assert_eq!(printed.code, Some(0), "{example}:\n{said}");
        assert!(said.ends_with(" 0 wrong\n"), "{said}");
        let heard = schema.fits(&place.join("in"), "request", kind);
        let methods = schema.methods(kind);
        let missing: Vec<&String> =
            methods.iter().filter(|method| !heard.contains(*method)).collect();
        assert!(missing.is_empty(), "{example}: {missing:?} are not played, only {heard:?}");
        schema.fits(&place.join("out"), "answer", kind);
    }
}

#[test]
fn what_the_controller_has_inherited_is_not_there_for_a_plugin() {
    let folder = folder("inherited");
    let program = folder.join("plugin");
    let text = "#!/bin/sh\nif [ -e /proc/self/fd/7 ]; then echo inherited; else echo bare; fi\n";
    std::fs::write(&program, text).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let gradus = env!("CARGO_BIN_EXE_gradus");
    let line = format!("exec 7</dev/null; exec {gradus} plugin check {}", program.display());
    let printed = Command::new("/bin/sh").args(["-c", &line]).output().unwrap();
    let said = String::from_utf8_lossy(&printed.stdout);
    assert!(said.contains("Unrecognized remote plugin message: bare"), "{said}");
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
    let schema = Schema::read();
    for line in &lines {
        assert_eq!(schema.wrong(line), None, "{line}");
    }
    let version = &schema.definition("greeting")["properties"]["version"]["const"];
    assert_eq!(*version, LINES_VERSION);
    let odd = [
        r#"{"id": 1}"#,
        r#"{"id": 0, "result": null}"#,
        r#"{"id": 1, "error": 5}"#,
        r#"{"id": 1, "result": null, "error": "x"}"#,
        r#"{"id": 1, "method": "Walk"}"#,
        r#"{"id": 1, "method": "Run", "params": {"rollout": 1}}"#,
        r#"{"protocol": "gradus-plugin", "version": 2, "kind": "step"}"#,
        r#"{"protocol": "gradus-plugin", "version": 1, "kind": "dance"}"#,
        "[]",
    ];
    for line in odd {
        assert!(schema.wrong(&serde_json::from_str(line).unwrap()).is_some(), "{line}");
    }
}
