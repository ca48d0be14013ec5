//! Does kubectl do what the documents say? These tests say so where there is no kubectl to try.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::cluster::Cluster;
use crate::docs::{blocks, root};
use crate::found;
use crate::program::{Running, command, folder};

#[test]
fn the_demo_is_open_to_kubectl_as_the_documents_say() {
    let Some(folder) = workplace("kubectl-demo") else { return };
    let mut program = command(&["demo"]);
    program.current_dir(&folder);
    let mut demo = Running::start(program);
    demo.until("cart      Healthy");
    let kubeconfig = folder.join("gradus-demo.kubeconfig");
    let mut said = String::new();
    for block in blocks().iter().filter(|block| block.info == "sh demo") {
        said += &shell(&block.text, &folder, &kubeconfig);
    }
    for expected in ["NAME", "checkout", "DESIRED", "rollout.argoproj.io/cart scaled", "Events:"] {
        assert!(said.contains(expected), "{expected:?} in:\n{said}");
    }
}

#[test]
fn a_cluster_is_set_up_as_the_documents_say() {
    let Some(folder) = workplace("kubectl-cluster") else { return };
    let cluster = Cluster::bare(0, &folder);
    let blocks = blocks();
    let block = blocks.iter().find(|block| block.info == "sh cluster").unwrap();
    let mut controller = None;
    for line in block.text.lines() {
        match line.strip_prefix("cargo run --release -- ") {
            None => drop(shell(line, &folder, &cluster.kubeconfig)),
            Some(arguments) => {
                let mut program = command(&arguments.split(' ').collect::<Vec<_>>());
                program.args(["--healthzPort=0", "--metricsPort=0"]);
                program.env("KUBECONFIG", &cluster.kubeconfig);
                controller = Some(Running::start(program));
            }
        }
    }
    assert!(controller.is_some(), "the block starts a controller");
    let began = Instant::now();
    while cluster.rollout("checkout")["status"]["phase"] != "Healthy" {
        assert!(began.elapsed() < Duration::from_secs(60), "{:#}", cluster.rollout("checkout"));
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A folder in which paths of the repository, and kubectl, lead somewhere; none where kubectl cannot
/// be had.
fn workplace(name: &str) -> Option<std::path::PathBuf> {
    let kubectl = found::kubectl()?;
    let folder = folder(name);
    symlink(kubectl, folder.join("kubectl")).unwrap();
    for part in ["examples", "manifests"] {
        symlink(root().join(part), folder.join(part)).unwrap();
    }
    Some(folder)
}

/// Runs lines of a shell; returns what they said.
fn shell(text: &str, folder: &Path, kubeconfig: &Path) -> String {
    let mut shell = Command::new("sh");
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    shell.args(["-e", "-c", text]).current_dir(folder).env("PATH", path);
    let output = shell.env("KUBECONFIG", kubeconfig).env("HOME", folder).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{said}{wrong}");
    said
}
