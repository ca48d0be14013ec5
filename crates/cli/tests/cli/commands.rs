//! Does kubectl find the plugin, and do the pages about its commands tell the truth? These tests say
//! so where there is no kubectl to try.

use std::path::Path;

use serde_json::Value;

use crate::cluster::{Cluster, sample};
use crate::controller::start;
use crate::docs::{Block, blocks, root, the_block};
use crate::plugin::Plugin;
use crate::program::DEBUG_TOKEN;
use crate::shell::Shell;

/// Pages that are tried at the same time.
const AT_ONCE: usize = 4;

/// The first minor version of kubectl 1 that is asked for.
const OLDEST: u32 = 29;

/// Installs the plugin as docs/plugin.md says; what is said then.
fn install(shell: &Shell, kubeconfig: &Path) -> String {
    shell.says(&the_block("sh install").text, kubeconfig)
}

#[test]
fn kubectl_finds_and_runs_the_plugin() {
    let Some(shell) = Shell::with_kubectl("found") else { return };
    let cluster = Cluster::start(0, &shell.home);
    cluster.create(sample("canary-with-pauses.yaml"));
    let run = |text: &str| shell.run(text, &cluster.kubeconfig);
    let version: Value = serde_json::from_str(&run("kubectl version --client -o json").1).unwrap();
    let minor = version["clientVersion"]["minor"].as_str().unwrap();
    let minor: u32 = minor.trim_end_matches('+').parse().unwrap();
    assert!(minor >= OLDEST, "kubectl 1.{minor} is older than 1.{OLDEST}");
    let said = install(&shell, &cluster.kubeconfig);
    assert!(said.starts_with("kubectl-argo-rollouts: v"), "{said}");
    let (is_found, said) = run("kubectl plugin list");
    assert!(is_found && said.contains("kubectl-argo-rollouts"), "{said}");
    let (is_shown, said) = run("kubectl argo rollouts get rollout checkout --no-color");
    assert!(is_shown && said.starts_with("Name:            checkout"), "{said}");
    let (is_known, said) = run("kubectl argo rollouts get rollout nobody");
    assert!(!is_known && said.contains("Error: rollout.argoproj.io \"nobody\""), "{said}");
}

#[test]
fn every_example_of_the_command_pages_works() {
    let blocks = blocks();
    let examples: Vec<&Block> = blocks.iter().filter(|block| block.info == "sh plugin").collect();
    assert!(examples.len() > 14, "nearly every command has an example");
    for (number, chunk) in examples.chunks(AT_ONCE).enumerate() {
        let shells: Option<Vec<Shell>> = (0..chunk.len())
            .map(|at| Shell::with_kubectl(&format!("page-{number}-{at}")))
            .collect();
        let Some(shells) = shells else { return };
        std::thread::scope(|scope| {
            for (block, shell) in chunk.iter().zip(shells) {
                scope.spawn(move || works(block, &shell));
            }
        });
    }
}

/// Runs the lines of a block on a cluster where `checkout` is paused in its second revision.
fn works(block: &Block, shell: &Shell) {
    let cluster = Cluster::start(0, &shell.home);
    for file in ["canary-with-pauses.yaml", "rolling-update.yaml"] {
        cluster.create(sample(file));
    }
    let (_controller, health, _) = start(&cluster.kubeconfig, &[]);
    install(shell, &cluster.kubeconfig);
    shell.says(
        "gradus status checkout -t 60s
         gradus set image checkout checkout=nginx:1.28
         gradus wait checkout --for=paused -t 60s",
        &cluster.kubeconfig,
    );
    std::fs::write(shell.home.join("token"), DEBUG_TOKEN).unwrap();
    let lines = block.text.replace("localhost:8080", &format!("localhost:{health}"));
    let (is_good, said) = shell.run(&lines, &cluster.kubeconfig);
    assert!(is_good, "{}:\n{}\n{said}", block.page, block.text);
}

#[test]
fn every_command_has_a_page() {
    let plugin = Plugin::install("pages", Path::new("/nowhere"));
    let help = plugin.says("--help");
    let commands = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let names: Vec<&str> =
        commands.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.contains(&"get") && names.contains(&"version"), "{help}");
    let examples = blocks();
    for name in names.into_iter().filter(|name| *name != "help") {
        let pages = ["docs/commands", "docs"].map(|at| root().join(at).join(format!("{name}.md")));
        let page = pages.iter().find(|page| page.exists());
        let page = page.unwrap_or_else(|| panic!("docs/commands/{name}.md is missing"));
        let page = page.display().to_string();
        let is_tried = |block: &Block| {
            let calls = ["rollouts", "gradus"].map(|program| format!("{program} {name}"));
            block.page == page
                && ["sh plugin", "console"].contains(&block.info.as_str())
                && calls.iter().any(|call| block.text.contains(call))
        };
        assert!(examples.iter().any(is_tried), "{page} has no example that a test runs");
    }
}
