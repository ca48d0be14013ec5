//! Is every command shown with an example, and without flags that mean nothing to it?

use crate::cluster::{Cluster, sample};
use crate::controller::start;
use crate::plugin::Plugin;
use crate::program::{Running, folder, gradus};

/// Commands that people call; the controller and the demo have pages of their own.
const COMMANDS: [&str; 20] = [
    "abort",
    "completion",
    "create",
    "explain",
    "get rollout",
    "get experiment",
    "lint",
    "list rollouts",
    "list experiments",
    "pause",
    "promote",
    "restart",
    "retry rollout",
    "set image",
    "simulate",
    "status",
    "terminate",
    "undo",
    "version",
    "wait",
];

#[test]
fn every_command_has_an_example() {
    let plugin = Plugin::install("examples", std::path::Path::new("/nowhere"));
    for command in COMMANDS {
        let words: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        let help = gradus(&words).stdout;
        let first = command.split(' ').next().unwrap();
        assert!(help.contains(&format!("Examples:\n  gradus {first}")), "{command}: {help}");
        let help = plugin.says(&format!("{command} --help"));
        let expected = format!("Examples:\n  kubectl argo rollouts {first}");
        assert!(help.contains(&expected), "{command}: {help}");
    }
}

#[test]
fn commands_without_a_cluster_offer_no_way_to_one_and_take_it() {
    let plugin = Plugin::install("local", std::path::Path::new("/nowhere"));
    for command in ["completion", "lint", "simulate", "version"] {
        let help = plugin.says(&format!("{command} --help"));
        assert!(!help.contains("--kubeconfig"), "{command}: {help}");
        assert!(!help.contains("--namespace"), "{command}: {help}");
    }
    plugin.says("version -n default --context prod");
    plugin.says("-n default version");
    assert!(plugin.says("abort --help").contains("--kubeconfig"));
}

#[test]
fn a_wrong_number_of_arguments_is_said_in_words() {
    let plugin = Plugin::install("arity", std::path::Path::new("/nowhere"));
    let cases = [
        ("abort", "kubectl argo rollouts abort needs <NAMES>"),
        ("promote a b", "kubectl argo rollouts promote takes no further argument \"b\""),
        ("get service x", "kubectl argo rollouts get has no command \"service\""),
        ("get rollout a b", "kubectl argo rollouts get rollout takes no further argument \"b\""),
    ];
    for (words, expected) in cases {
        let said = plugin.run(words);
        assert_eq!(said.code, Some(1), "{words}");
        assert!(said.stderr.starts_with(expected), "{words}: {}", said.stderr);
    }
}

#[test]
fn every_document_of_a_file_is_created() {
    let folder = folder("create-all");
    let cluster = Cluster::start(0, &folder);
    let plugin = Plugin::install("create-all", &cluster.kubeconfig);
    let sample = crate::docs::root().join("examples/rollouts/blue-green.yaml");
    let said = plugin.says(&format!("create -f {}", sample.display()));
    let documents = std::fs::read_to_string(&sample).unwrap().matches("\nkind: ").count();
    assert!(documents > 1 && said.lines().count() == documents, "{said}");
    assert!(said.contains("rollout.argoproj.io/colors created"), "{said}");
    assert!(said.lines().any(|line| line.starts_with("service/")), "{said}");
    let half = folder.join("half.yaml");
    let text = "apiVersion: v1\nkind: Service\nmetadata: {name: half}\n---\n\
                apiVersion: v1\nkind: Pod\nmetadata: {name: half}\n";
    std::fs::write(&half, text).unwrap();
    let refused = plugin.run(&format!("create -f {}", half.display()));
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "nothing is made");
}

#[test]
fn a_watched_rollout_keeps_its_status_and_weight_in_view() {
    let folder = folder("in-view");
    let cluster = Cluster::start(0, &folder);
    cluster.create(sample("canary-with-pauses.yaml"));
    let (_controller, ..) = start(&cluster.kubeconfig, &[]);
    let plugin = Plugin::install("in-view", &cluster.kubeconfig);
    plugin.says("status checkout --timeout 60s");
    let mut command = plugin.command("get rollout checkout --watch --no-color --timeout-seconds 1");
    command.env("LINES", "12");
    let mut watching = Running::start(command);
    assert!(watching.end().success());
    let text = watching.seen.join("\n");
    let frames: Vec<&str> = text.split("\x1b[H\x1b[2J\x1b[0;0H").skip(1).collect();
    assert!(!frames.is_empty(), "{text}");
    for frame in frames {
        assert!(frame.trim_end().lines().count() < 12, "{frame}");
        assert!(frame.contains("Status:") && frame.contains("SetWeight:"), "{frame}");
        assert!(frame.contains(" more lines"), "{frame}");
    }
}
