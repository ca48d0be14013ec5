//! What does a shell offer after each word?

use std::process::Command;

use crate::cluster::{Cluster, sample};
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
    let cases: [(&[&str], &str); 17] = [
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
        (&["create", "-f", ""], ":0"),
        (&["completion", "z"], "zsh :4"),
    ];
    for (words, expected) in cases {
        assert_eq!(offered(&plugin, words), expected, "{words:?}");
    }
    let described = plugin.says("__complete promot");
    assert!(described.starts_with("promote\tPromote a rollout"), "{described}");
}

/// A shell, how it is given a script, and a script that prints what it offers after `get rollout`.
const SHELLS: [(&str, &[&str], &str); 4] = [
    (
        "bash",
        &["bash", "-c"],
        "source <(kubectl-argo-rollouts completion bash)
        COMP_WORDS=(kubectl-argo-rollouts get rollout ''); COMP_CWORD=3
        __kubectl_argo_rollouts_complete; echo \"${COMPREPLY[@]}\"",
    ),
    (
        "zsh",
        &["zsh", "-f", "-c"],
        "compdef() { : }; _describe() { print -l -- \"${(@P)2}\" }
        source <(kubectl-argo-rollouts completion zsh)
        words=(kubectl-argo-rollouts get rollout ''); CURRENT=4; _kubectl_argo_rollouts",
    ),
    (
        "fish",
        &["fish", "--no-config", "-c"],
        "kubectl-argo-rollouts completion fish | source
        complete -C 'kubectl-argo-rollouts get rollout '",
    ),
    (
        "powershell",
        &["pwsh", "-NoProfile", "-Command"],
        "kubectl-argo-rollouts completion powershell | Out-String | Invoke-Expression
        (TabExpansion2 'kubectl-argo-rollouts get rollout ' 34).CompletionMatches.CompletionText",
    ),
];

/// Shells that are not on this machine are named, and only their scripts are looked at.
#[test]
fn every_shell_completes_live_names_with_the_script_it_is_given() {
    let folder = folder("completion-shells");
    let cluster = Cluster::start(0, &folder);
    cluster.create(sample("canary-with-pauses.yaml"));
    let plugin = Plugin::install("completion-shells", &cluster.kubeconfig);
    let path = format!("{}:{}", plugin.folder().display(), std::env::var("PATH").unwrap());
    for (name, program, script) in SHELLS {
        let text = plugin.says(&format!("completion {name}"));
        assert!(text.contains("kubectl-argo-rollouts __complete"), "{name}: {text}");
        let mut shell = Command::new(program[0]);
        shell.args(&program[1..]).arg(script).env("PATH", &path);
        shell.env("KUBECONFIG", &cluster.kubeconfig).env("HOME", plugin.folder());
        match shell.output() {
            Err(error) => eprintln!("{name} was not tried: {error}"),
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stdout);
                let wrong = String::from_utf8_lossy(&output.stderr);
                assert_eq!(said.trim(), "checkout", "{name}: {wrong}");
            }
        }
    }
}
