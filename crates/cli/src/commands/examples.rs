//! How is each command called? An example or two below its help.

use super::Caller;

/// A command, and calls of it without the name of the program.
type Example = (&'static str, &'static [&'static str]);

/// Of the program itself.
const FIRST: [&str; 3] = ["get rollout web --watch", "promote web", "explain rollout web"];

/// Of what `gradus` alone can do.
const OWN: [Example; 4] = [
    ("controller", &["controller", "controller --leader-elect=false --dry-run"]),
    ("demo", &["demo", "demo --once"]),
    ("plugin", &["plugin check ./my-plugin"]),
    ("plugin check", &["plugin check ./my-plugin", "plugin check --kind metric ./my-plugin"]),
];

const EXAMPLES: [Example; 28] = [
    ("abort", &["abort web"]),
    ("completion", &["completion bash"]),
    ("create", &["create -f rollout.yaml", "create -f rollout.yaml --watch"]),
    ("create analysisrun", &["create analysisrun --from smoke -a host=web"]),
    ("explain", &["explain rollout web", "explain rollout web -o json"]),
    ("get", &["get rollout web", "get rollout web --watch"]),
    ("get rollout", &["get rollout web", "get rollout web --watch"]),
    ("get experiment", &["get experiment compare"]),
    ("lint", &["lint -f rollout.yaml", "lint --strict -o github -f manifests"]),
    ("list", &["list rollouts", "list rollouts -A"]),
    ("list rollouts", &["list rollouts", "list rollouts --watch"]),
    ("list experiments", &["list experiments"]),
    ("pause", &["pause web"]),
    ("promote", &["promote web", "promote web --full"]),
    ("restart", &["restart web"]),
    ("retry", &["retry rollout web"]),
    ("retry rollout", &["retry rollout web"]),
    ("retry experiment", &["retry experiment compare"]),
    ("set", &["set image web web=nginx:1.28"]),
    ("set image", &["set image web web=nginx:1.28", "set image web *=nginx:1.28"]),
    (
        "simulate",
        &["simulate -f rollout.yaml --behaviour promote", "simulate --from old.yaml --to new.yaml"],
    ),
    ("status", &["status web", "status web --timeout 5m"]),
    ("terminate", &["terminate analysisrun web-2-smoke"]),
    ("terminate analysisrun", &["terminate analysisrun web-2-smoke"]),
    ("terminate experiment", &["terminate experiment compare"]),
    ("undo", &["undo web", "undo web --to-revision=3"]),
    ("version", &["version"]),
    ("wait", &["wait web --for=healthy --timeout 5m"]),
];

/// The table with an example below the help of every command that has one.
pub fn add(table: clap::Command, caller: Caller) -> clap::Command {
    let program = match caller {
        Caller::Gradus => "gradus",
        Caller::Kubectl => "kubectl argo rollouts",
    };
    let text = |calls: &[&str]| {
        let lines: Vec<String> = calls.iter().map(|call| format!("  {program} {call}")).collect();
        format!("Examples:\n{}", lines.join("\n"))
    };
    let own = OWN.iter().filter(|_| caller == Caller::Gradus);
    let table = EXAMPLES.iter().chain(own).fold(table, |table, (path, calls)| {
        let text = text(calls);
        let mut names = path.split(' ');
        let name = names.next().unwrap_or_default().to_owned();
        match names.next().map(str::to_owned) {
            None => table.mut_subcommand(name, |command| command.after_help(text)),
            Some(inner) => table.mut_subcommand(name, |command| {
                command.mut_subcommand(inner, |command| command.after_help(text))
            }),
        }
    });
    table.after_help(text(&FIRST))
}
