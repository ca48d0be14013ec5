//! Does kubectl find the plugin, and do the pages about its commands tell the truth? These tests say
//! so where there is no kubectl to try.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::cluster::{Cluster, sample};
use crate::controller::start;
use crate::docs::{Block, blocks, root};
use crate::found;
use crate::plugin::Plugin;
use crate::program::folder;

/// Pages that are tried at the same time.
const AT_ONCE: usize = 4;

/// The first minor version of kubectl 1 that is asked for.
const OLDEST: u32 = 29;

/// A shell in which `kubectl` and the plugin are found.
fn shell(text: &str, plugin: &Plugin, kubectl: &Path, kubeconfig: &Path) -> (bool, String) {
    let path = plugin.folder().join("kubectl");
    if !path.exists() {
        symlink(kubectl, &path).unwrap();
    }
    let path = format!("{}:{}", plugin.folder().display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", text]).current_dir(plugin.folder()).env("PATH", path);
    let output = shell.env("KUBECONFIG", kubeconfig).env("HOME", plugin.folder()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.success(), said + &String::from_utf8_lossy(&output.stderr))
}

#[test]
fn kubectl_finds_and_runs_the_plugin() {
    let Some(kubectl) = found::kubectl() else { return };
    let folder = folder("found");
    let cluster = Cluster::start(0, &folder);
    cluster.create(sample("canary-with-pauses.yaml"));
    let plugin = Plugin::install("found", &cluster.kubeconfig);
    let run = |text: &str| shell(text, &plugin, &kubectl, &cluster.kubeconfig);
    let version: Value = serde_json::from_str(&run("kubectl version --client -o json").1).unwrap();
    let minor = version["clientVersion"]["minor"].as_str().unwrap();
    let minor: u32 = minor.trim_end_matches('+').parse().unwrap();
    assert!(minor >= OLDEST, "kubectl 1.{minor} is older than 1.{OLDEST}");
    let (is_found, said) = run("kubectl plugin list");
    assert!(is_found && said.contains("kubectl-argo-rollouts"), "{said}");
    let (is_shown, said) = run("kubectl argo rollouts get rollout checkout --no-color");
    assert!(is_shown && said.starts_with("Name:            checkout"), "{said}");
    let (is_known, said) = run("kubectl argo rollouts get rollout nobody");
    assert!(!is_known && said.contains("Error: rollout.argoproj.io \"nobody\""), "{said}");
}

#[test]
fn every_example_of_the_command_pages_works() {
    let Some(kubectl) = found::kubectl() else { return };
    let blocks = blocks();
    let examples: Vec<&Block> = blocks.iter().filter(|block| block.info == "sh plugin").collect();
    assert!(examples.len() > 14, "nearly every command has an example");
    for (number, chunk) in examples.chunks(AT_ONCE).enumerate() {
        std::thread::scope(|scope| {
            for (at, block) in chunk.iter().enumerate() {
                let kubectl = &kubectl;
                scope.spawn(move || works(block, &format!("page-{number}-{at}"), kubectl));
            }
        });
    }
}

/// Runs the lines of a block on a cluster where `checkout` is paused in its second revision.
fn works(block: &Block, name: &str, kubectl: &Path) {
    let folder = folder(name);
    let cluster = Cluster::start(0, &folder);
    for file in ["canary-with-pauses.yaml", "rolling-update.yaml"] {
        cluster.create(sample(file));
    }
    let _controller = start(&cluster.kubeconfig, &[]);
    let plugin = Plugin::install(name, &cluster.kubeconfig);
    symlink(root().join("examples"), plugin.folder().join("examples")).unwrap();
    plugin.says("status checkout -t 60s");
    plugin.says("set image checkout checkout=nginx:1.28");
    plugin.says("wait checkout --for=paused -t 60s");
    let (is_good, said) = shell(&block.text, &plugin, kubectl, &cluster.kubeconfig);
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
