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

/// kubectl prints `<no description>` for a field without one.
#[test]
fn kubectl_explain_documents_every_kind() {
    let Some(shell) = Shell::with_kubectl("kubectl-explain") else { return };
    let cluster = Cluster::start(0, &shell.home);
    let canary = "rollout.spec.strategy.canary";
    let cases = [
        ("rollout", "Rollout runs a set of equal pods"),
        ("rollout.spec", "Number of desired pods, 0 or more. Default: 1."),
        (canary, "Default: 25%."),
        (&format!("{canary}.steps"), "0 to `maxTrafficWeight` (default 100)"),
        (&format!("{canary}.steps.pause"), "in seconds or as a duration such as"),
        (&format!("{canary}.trafficRouting.alb"), "Default: `alb.ingress.kubernetes.io`."),
        ("rollout.spec.selector", "Labels that an object must have"),
        ("rollout.status", "One of `Healthy`, `Progressing`, `Paused`"),
        ("analysistemplate.spec.metrics.provider.web", "Allowed: `GET`, `POST`, `PUT`."),
        ("clusteranalysistemplate", "in all namespaces"),
        ("analysisrun.spec.metrics", "Default: 4."),
        ("experiment.spec", "Default: 600."),
    ];
    for (what, expected) in cases {
        let said = shell.says(&format!("kubectl explain {what}"), &cluster.kubeconfig);
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(expected), "{expected:?} in:\n{said}");
        assert!(!said.contains("<no description>"), "{what} in:\n{said}");
    }
    let all = shell.says("kubectl explain rollout.spec --recursive", &cluster.kubeconfig);
    for field in ["maxSurge", "setWeight", "stickinessConfig", "progressDeadlineAbort"] {
        assert!(all.contains(field), "{field} in:\n{all}");
    }
}
