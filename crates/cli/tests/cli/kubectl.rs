//! Does kubectl do what the documents say? These tests say so where there is no kubectl to try.

use std::time::{Duration, Instant};

use crate::cluster::Cluster;
use crate::docs::{blocks, the_block};
use crate::program::{Running, command};
use crate::shell::Shell;

#[test]
fn the_demo_is_open_to_kubectl_as_the_documents_say() {
    let Some(shell) = Shell::with_kubectl("kubectl-demo") else { return };
    let mut program = command(&["demo"]);
    program.current_dir(&shell.home);
    let mut demo = Running::start(program);
    demo.until("cart      Healthy");
    let kubeconfig = shell.home.join("gradus-demo.kubeconfig");
    let mut said = String::new();
    for block in blocks().iter().filter(|block| block.info == "sh demo") {
        said += &shell.says(&block.text, &kubeconfig);
    }
    for expected in ["NAME", "checkout", "DESIRED", "rollout.argoproj.io/cart scaled", "Events:"] {
        assert!(said.contains(expected), "{expected:?} in:\n{said}");
    }
}

#[test]
fn a_cluster_is_set_up_as_the_documents_say() {
    let Some(shell) = Shell::with_kubectl("kubectl-cluster") else { return };
    let cluster = Cluster::bare(0, &shell.home);
    let mut controller = None;
    for line in the_block("sh cluster").text.lines() {
        match line.strip_prefix("cargo run --release -- ") {
            None => drop(shell.says(line, &cluster.kubeconfig)),
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
