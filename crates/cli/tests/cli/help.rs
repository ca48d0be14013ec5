//! Is every command shown with an example, and without flags that mean nothing to it?

use crate::cluster::{Cluster, sample};
use crate::controller::start;
use crate::plugin::Plugin;
use crate::program::{Running, folder, gradus};

/// The commands that a help page lists.
fn listed(help: &str) -> Vec<String> {
    let listed = help.split("\nCommands:\n").nth(1).unwrap_or_default();
    let lines = listed.lines().take_while(|line| line.starts_with("  "));
    // What a description is folded into stands further in.
    let lines = lines.filter(|line| !line.starts_with("   "));
    let names = lines.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

/// What a program says to some words.
type Help<'a> = &'a dyn Fn(&str) -> String;

/// All commands below these words, with their help.
fn pages(help: Help<'_>, words: &str, found: &mut Vec<(String, String)>) {
    let page = help(&format!("{words} --help"));
    for name in listed(&page) {
        pages(help, format!("{words} {name}").trim_start(), found);
    }
    found.push((words.to_owned(), page));
}

#[test]
fn every_command_has_an_example() {
    let plugin = Plugin::install("examples", std::path::Path::new("/nowhere"));
    let own = |words: &str| gradus(&words.split_whitespace().collect::<Vec<_>>()).stdout;
    let of_plugin = |words: &str| plugin.says(words);
    let programs: [(&str, Help<'_>, usize); 2] =
        [("gradus", &own, 33), ("kubectl argo rollouts", &of_plugin, 29)];
    for (program, help, at_least) in programs {
        let mut found = Vec::new();
        pages(help, "", &mut found);
        let names: Vec<&String> = found.iter().map(|(words, _)| words).collect();
        assert!(found.len() >= at_least, "{}: {names:?}", found.len());
        for (words, page) in &found {
            let expected = format!("Examples:\n  {program} {words}");
            assert!(page.contains(&expected), "{program} {words}: {page}");
        }
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
        ("get", "kubectl argo rollouts get needs one of its commands: rollout, experiment"),
        ("create", "kubectl argo rollouts create needs -f FILE, or one of its commands: analysis"),
        ("set image web", "kubectl argo rollouts set image needs <CONTAINER=IMAGE>"),
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
