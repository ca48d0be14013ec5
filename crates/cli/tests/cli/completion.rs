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

#[test]
fn bash_completes_with_the_script_it_is_given() {
    let folder = folder("completion-bash");
    let cluster = Cluster::start(0, &folder);
    cluster.create(sample("canary-with-pauses.yaml"));
    let plugin = Plugin::install("completion-bash", &cluster.kubeconfig);
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let script = plugin.says(&format!("completion {shell}"));
        assert!(script.contains("kubectl-argo-rollouts __complete"), "{shell}: {script}");
    }
    let script = "source <(kubectl-argo-rollouts completion bash)
        COMP_WORDS=(kubectl-argo-rollouts get rollout ''); COMP_CWORD=3
        __kubectl_argo_rollouts_complete; echo \"${COMPREPLY[@]}\"";
    let mut bash = Command::new("bash");
    let path = format!("{}:{}", plugin.folder().display(), std::env::var("PATH").unwrap());
    bash.args(["-c", script]).env("PATH", path).env("KUBECONFIG", &cluster.kubeconfig);
    let output = bash.output();
    match output {
        Err(error) => eprintln!("bash was not tried: {error}"),
        Ok(output) => assert_eq!(String::from_utf8_lossy(&output.stdout), "checkout\n"),
    }
}
