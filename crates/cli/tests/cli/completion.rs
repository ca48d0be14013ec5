//! What does a shell offer after each word?

use std::io::{ErrorKind, Write};
use std::process::{Command, Stdio};

use crate::cluster::{Cluster, sample};
use crate::docs::the_block;
use crate::found;
use crate::plugin::Plugin;
use crate::program::{finish, folder};

fn offered(plugin: &Plugin, words: &[&str]) -> String {
    let mut command = plugin.command("__completeNoDesc");
    command.args(words);
    finish(command).stdout.lines().collect::<Vec<_>>().join(" ")
}

#[test]
fn commands_flags_and_live_names_are_offered() {
    let folder = folder("completion");
    let cluster = Cluster::start(0, &folder);
    cluster.create(sample("canary-with-pauses.yaml"));
    cluster.create(sample("rolling-update.yaml"));
    let mut other = sample("canary-with-timed-pauses.yaml");
    other["metadata"]["namespace"] = "kube-system".into();
    cluster.store(&other);
    let plugin = Plugin::install("completion", &cluster.kubeconfig);
    let cases: [(&[&str], &str); 23] = [
        (&["pro"], "promote :4"),
        (&["get", ""], "rollout experiment help :4"),
        (&["get", "rollout", ""], "cart checkout :4"),
        (&["get", "ro", "ch"], "checkout :4"),
        (&["promote", "c"], "cart checkout :4"),
        (&["promote", "cart", ""], ":4"),
        (&["-n", "kube-system", "abort", ""], "search :4"),
        (&["abort", "--namespace=kube-system", ""], "search :4"),
        (&["retry", "rollout", "car"], "cart :4"),
        (&["set", "image", ""], "cart checkout :4"),
        (&["explain", "rollout", "ch"], "checkout :4"),
        (&["get", "experiment", ""], ":4"),
        (&["terminate", "analysisrun", ""], ":4"),
        (&["promote", "--fu"], "--full :4"),
        (&["wait", "cart", "--for", "p"], "paused promoted :4"),
        (&["wait", "cart", "--for=p"], "paused promoted :4"),
        (&["get", "ro", "cart", "-o", ""], "json yaml wide name :4"),
        (&["get", "ro", "cart", "--output=y"], "yaml :4"),
        (&["create", "-f", ""], ":0"),
        (&["create", "--filename=a"], ":0"),
        (&["promote", "cart", "-n", ""], ":4"),
        (&["abort", "-s", "http://127.0.0.1:1", ""], ":4"),
        (&["completion", "z"], "zsh :4"),
    ];
    for (words, expected) in cases {
        assert_eq!(offered(&plugin, words), expected, "{words:?}");
    }
    let described = plugin.says("__complete promot");
    assert!(described.starts_with("promote\tPromote a rollout"), "{described}");
}

/// What a person types, with the tabulator key, and what comes of it only if the word is completed.
const TYPED: [(&str, &str); 5] = [
    ("get rollout ch\t-o name", "rollout.argoproj.io/checkout"),
    ("get --namespace=kube-system ro se\t-o name", "rollout.argoproj.io/search"),
    ("wait checkout --for=abo\t-t 1ms", "rollout 'checkout' is not aborted in time"),
    ("lint -f with\t", "--> without-kind.yaml:1:1"),
    ("prom\tch\t-c -a", "Cannot use skip-current-step and skip-all-steps flags"),
];

/// A shell, how it is started for somebody who types, and how it learns the completion.
const SHELLS: [(&str, &str, &str); 3] = [
    ("bash", "bash --norc -i", "source <(kubectl-argo-rollouts completion bash)"),
    (
        "zsh",
        "zsh -f -i",
        "autoload -Uz compinit; compinit -u -D; source <(kubectl-argo-rollouts completion zsh)",
    ),
    ("fish", "fish --no-config -i", "kubectl-argo-rollouts completion fish | source"),
];

/// A cluster with rollouts in two namespaces, and the plugin in a folder with a manifest.
fn typed_at(name: &str) -> (Cluster, Plugin) {
    let cluster = Cluster::start(0, &folder(name));
    cluster.create(sample("canary-with-pauses.yaml"));
    let mut other = sample("canary-with-timed-pauses.yaml");
    other["metadata"]["namespace"] = "kube-system".into();
    cluster.store(&other);
    let plugin = Plugin::install(name, &cluster.kubeconfig);
    std::fs::write(plugin.folder().join("without-kind.yaml"), "a: 1\n").unwrap();
    (cluster, plugin)
}

/// Runs a program where the plugin is found, with this on its standard input; none where the
/// program is not on this machine.
fn run(plugin: &Plugin, cluster: &Cluster, mut command: Command, input: &str) -> Option<String> {
    let path = format!("{}:{}", plugin.folder().display(), std::env::var("PATH").unwrap());
    command.env("PATH", path).env("KUBECONFIG", &cluster.kubeconfig).env("TERM", "xterm");
    command.env("HOME", plugin.folder()).current_dir(plugin.folder());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        child => child.unwrap(),
    };
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    Some(String::from_utf8_lossy(&said).into_owned())
}

/// On a terminal, as `script` makes one where it is installed. Shells that are not on this machine
/// are named.
#[test]
fn every_shell_completes_what_a_person_types() {
    let (cluster, plugin) = typed_at("completion-shells");
    let mut missing = Vec::new();
    for (name, start, load) in SHELLS {
        let mut probe = Command::new(name);
        probe.arg("--version");
        if run(&plugin, &cluster, probe, "").is_none() {
            eprintln!("{name} was not tried: it is not on this machine");
            missing.push(name);
            continue;
        }
        let lines = TYPED.map(|(keys, _)| format!("kubectl-argo-rollouts {keys}\n")).concat();
        let mut terminal = Command::new("script");
        terminal.args(["-qec", start, "/dev/null"]);
        let Some(seen) = run(&plugin, &cluster, terminal, &format!("{load}\n{lines}exit\n")) else {
            return found::not_tried("there is no `script` to make a terminal");
        };
        for (keys, expected) in TYPED {
            assert!(seen.contains(expected), "{name}: {keys:?} in:\n{seen}");
        }
    }
    if missing.len() == SHELLS.len() {
        found::not_tried("there is no shell with completion on this machine");
    }
}

/// PowerShell is asked by its own function: it needs no terminal for that.
#[test]
fn powershell_completes_live_names_where_it_is_installed() {
    let (cluster, plugin) = typed_at("completion-powershell");
    let script = plugin.says("completion powershell");
    assert!(script.contains("kubectl-argo-rollouts __complete"), "{script}");
    let mut shell = Command::new("pwsh");
    shell.args(["-NoProfile", "-Command"]).arg(
        "kubectl-argo-rollouts completion powershell | Out-String | Invoke-Expression
        (TabExpansion2 'kubectl-argo-rollouts get rollout ' 34).CompletionMatches.CompletionText",
    );
    match run(&plugin, &cluster, shell, "") {
        None => found::not_tried("PowerShell is not on this machine"),
        Some(said) => assert_eq!(said.trim(), "checkout"),
    }
}

/// kubectl asks an executable beside the plugin, made as the documents say.
#[test]
fn kubectl_completes_live_names_as_the_documents_say() {
    let Some(kubectl) = found::kubectl() else { return };
    let (cluster, plugin) = typed_at("completion-kubectl");
    let lines = the_block("sh complete").text;
    let mut setup = Command::new("sh");
    setup.args(["-e", "-c", &lines.replace("~/.local/bin", &plugin.folder().to_string_lossy())]);
    run(&plugin, &cluster, setup, "").unwrap();
    let mut kubectl = Command::new(kubectl);
    kubectl.args(["__complete", "argo", "rollouts", "get", "rollout", ""]);
    let said = run(&plugin, &cluster, kubectl, "").unwrap();
    assert!(said.starts_with("checkout\n:4\n"), "{said}");
}
